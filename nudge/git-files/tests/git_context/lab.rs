//! A folder with test repositories, calls of git itself, and the comparison of git with the reader.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nudge_git_files::{GitAnswer, GitEnv, git_with};

/// The name of an object that does not exist. Refs do not need the object.
pub const OBJECT: &str = "1111111111111111111111111111111111111111";

/// The configuration file of a plain repository.
pub const PLAIN: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";

/// The answer of git itself in a folder.
#[derive(Debug, PartialEq, Eq)]
pub enum Truth {
    /// No git command works here.
    Refuses,
    /// Git ends with a fatal error, for instance because of a setting.
    Dies,
    Answers {
        root: PathBuf,
        remote: Option<String>,
        branch: Option<String>,
    },
}

/// The environment of a test case: its own folder, a home folder, and environment variables.
pub struct Lab {
    pub root: PathBuf,
    pub vars: Vec<(&'static str, String)>,
    _dir: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path().canonicalize().expect("a real path");
        let home = root.join("home");
        fs::create_dir(&home).expect("a home folder");
        let vars = vec![("HOME", home.to_str().expect("UTF-8").to_owned())];
        Self { root, vars, _dir: dir }
    }

    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.vars.retain(|var| var.0 != name);
        self.vars.push((name, value.into()));
    }

    /// Returns the variables as the environment of the reader.
    pub fn env(&self) -> GitEnv {
        let get = |name: &str| {
            let found = self.vars.iter().find(|var| var.0 == name);
            found.map(|var| var.1.clone())
        };
        let mut env = GitEnv::empty();
        env.home = get("HOME").map(PathBuf::from);
        env.xdg_config_home = get("XDG_CONFIG_HOME").map(PathBuf::from);
        env.config_global = get("GIT_CONFIG_GLOBAL").map(PathBuf::from);
        env.config_system = get("GIT_CONFIG_SYSTEM").map(PathBuf::from);
        env.redirected_by =
            ["GIT_DIR", "GIT_CEILING_DIRECTORIES", "SUDO_UID"].into_iter().find(|name| get(name).is_some());
        env
    }

    fn command(&self, cwd: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(args).current_dir(cwd).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // `PWD` is the folder as the caller wrote it, as in a shell.
        command.env("PWD", cwd);
        if !self.vars.iter().any(|var| var.0 == "GIT_CONFIG_SYSTEM") {
            command.env("GIT_CONFIG_NOSYSTEM", "1");
        }
        command.envs(self.vars.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs git, and panics if it fails.
    pub fn git(&self, cwd: &Path, args: &[&str]) {
        let mut command = self.command(cwd, args);
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "n");
            command.env(format!("GIT_{role}_EMAIL"), "e@x");
        }
        let output = command.output().expect("git is installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {errors}");
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    pub fn write(&self, relative: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("folders");
        }
        fs::write(&path, text).expect("a file");
        path
    }

    pub fn link(&self, target: &str, relative: &str) {
        symlink(target, self.path(relative)).expect("a link");
    }

    pub fn dir(&self, relative: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(&path).expect("folders");
        path
    }

    /// Writes the files of a git directory into `folder`: a branch `main` with a commit, and a configuration file with
    /// the usual lines followed by `config`.
    pub fn bones(&self, folder: &str, config: &str) {
        self.dir(&format!("{folder}/objects"));
        self.dir(&format!("{folder}/refs/tags"));
        self.write(&format!("{folder}/HEAD"), "ref: refs/heads/main\n");
        self.refer(folder, "refs/heads/main");
        self.write(&format!("{folder}/config"), format!("{PLAIN}{config}"));
    }

    /// Makes a repository `r` with a work tree, and returns its folder.
    pub fn repo(&self, config: &str) -> PathBuf {
        self.bones("r/.git", config);
        self.path("r")
    }

    /// Lets git itself make a repository in `folder`, with one commit.
    pub fn real_repo(&self, folder: &str) -> PathBuf {
        let path = self.dir(folder);
        self.git(&path, &["init", "-q", "-b", "main", "--template="]);
        self.commit(&path);
        path
    }

    pub fn commit(&self, path: &Path) {
        self.git(path, &["commit", "-q", "--allow-empty", "-m", "m"]);
    }

    /// Makes a loose ref.
    pub fn refer(&self, folder: &str, name: &str) {
        self.write(&format!("{folder}/{name}"), format!("{OBJECT}\n"));
    }

    /// Writes the `HEAD` of `r`.
    pub fn head(&self, text: &str) {
        self.write("r/.git/HEAD", text);
    }

    pub fn global(&self, text: impl AsRef<[u8]>) {
        self.write("home/.gitconfig", text);
    }

    /// Returns git's answer in `cwd`.
    pub fn truth(&self, cwd: &Path) -> Truth {
        let run = |args: &[&str]| -> Output { self.command(cwd, args).output().expect("git is installed") };
        let places = run(&["rev-parse", "--absolute-git-dir", "--show-toplevel"]);
        let printed = String::from_utf8_lossy(&places.stdout).into_owned();
        let Some(root) = printed.lines().last() else {
            let why = String::from_utf8_lossy(&places.stderr);
            let refuses =
                ["not a git repository", "dubious ownership", "invalid gitfile", "cannot use bare repository"];
            return if refuses.iter().any(|words| why.contains(words)) { Truth::Refuses } else { Truth::Dies };
        };
        let remote = run(&["remote", "get-url", "origin"]);
        // Before the first commit, `git rev-parse HEAD` fails or reads `HEAD` as the name of a file.
        let born = run(&["rev-parse", "--verify", "--quiet", "HEAD"]).status.success();
        let question: &[&str] =
            if born { &["rev-parse", "--abbrev-ref", "HEAD"] } else { &["symbolic-ref", "--short", "HEAD"] };
        let branch = run(question);
        let remote = match remote.status.code() {
            Some(0) => Some(line(&remote)),
            Some(2) => None,
            _ => return Truth::Dies,
        };
        let branch = match branch.status.code() {
            Some(0) => Some(line(&branch)),
            _ => None,
        };
        Truth::Answers { root: PathBuf::from(root), remote, branch }
    }

    /// Compares the reader with git. `Ok(true)` means that the reader was sure and right, `Ok(false)` that it was
    /// unsure. `Err` describes how an answer of which the reader was sure differs from git's.
    pub fn compare(&self, cwd: &Path) -> Result<bool, String> {
        self.judge(cwd, git_with(&self.env(), cwd))
    }

    /// Compares an answer of the reader with git's answer.
    pub fn judge(&self, cwd: &Path, answer: GitAnswer) -> Result<bool, String> {
        let info = match answer {
            GitAnswer::Unsure(_) => return Ok(false),
            GitAnswer::Outside => None,
            GitAnswer::Inside(info) => Some(info),
        };
        let answer = info.map_or(Truth::Refuses, |info| Truth::Answers {
            root: info.root,
            remote: info.remote,
            branch: info.branch,
        });
        let truth = self.truth(cwd);
        // Git also ends with an error because of settings that the reader does not need.
        if answer == truth || truth == Truth::Dies {
            Ok(true)
        } else {
            Err(format!("reader {answer:?}\n   git {truth:?}"))
        }
    }
}

fn line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.strip_suffix('\n').map(str::to_owned).unwrap_or(text)
}
