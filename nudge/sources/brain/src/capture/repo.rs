//! Commits by git's plumbing, in an index of their own: the user's checkout, index, stash and configuration stay as they
//! are, however many captures run at once. Credentials, proxies and hooks are git's own business.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nudge_core::error::{Error, Result};

use crate::git::ELSEWHERE;

/// How long git has: a remote may be far away.
const LIMIT: Duration = Duration::from_mins(1);
const MAX_OUTPUT: u64 = 16 << 20;
/// The repository that a brain is in.
pub struct Repo {
    root: PathBuf,
    /// The brain's folder in it, with a slash at its end; empty at its top.
    prefix: String,
    /// Whether its user has said how to reach other machines.
    has_ssh: bool,
}

/// Where a branch begins.
pub struct Base {
    /// The branch that it goes to.
    pub name: String,
    /// `None` in a repository without any commit.
    pub commit: Option<String>,
}

/// How the names of the remote's branches begin here.
const REMOTE: &str = "refs/remotes/origin/";

/// A file to commit.
pub struct Blob {
    /// Below the brain.
    pub path: String,
    pub text: String,
    /// Whether it adds to a file that is there.
    pub is_there: bool,
}

/// What a commit is made of.
pub struct Commit<'a> {
    pub base: Option<&'a str>,
    pub files: &'a [Blob],
    pub message: &'a str,
    /// Seconds since 1970: the same commit made twice is one.
    pub at: i64,
    /// A file for the index.
    pub index: &'a Path,
}

impl Repo {
    /// The repository of a brain.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` where there is none, or no git.
    pub fn open(root: &Path) -> Result<Self> {
        let none = || {
            Error::unavailable(format!(
                "The brain {} is in no repository; `nudge brain init --git` there makes it one.",
                root.display()
            ))
        };
        let repo = Self { root: root.to_owned(), prefix: String::new(), has_ssh: true };
        let prefix = repo
            .git(&["rev-parse", "--show-prefix"])
            .map_err(|error| if error.is_start { error.into() } else { none() })?;
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_ssh =
            is_set("GIT_SSH_COMMAND") || is_set("GIT_SSH") || repo.git(&["config", "core.sshCommand"]).is_ok();
        Ok(Self { prefix, has_ssh, ..repo })
    }

    /// Where a branch begins: with a remote at a branch that the remote has, so that nothing else is sent with it; else
    /// at the checkout.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` where no branch of the remote is known.
    pub fn base(&self, wanted: Option<&str>) -> Result<Base> {
        let wanted = wanted.filter(|name| is_ref(name)).map(str::to_owned);
        if self.remote().is_none() {
            let commit = wanted.as_ref().and_then(|name| self.commit_of(&format!("refs/heads/{name}")));
            let name = wanted.or_else(|| self.named_by("HEAD", "refs/heads/")).unwrap_or_else(|| "main".to_owned());
            return Ok(Base { name, commit: commit.or_else(|| self.commit_of("HEAD")) });
        }
        let name = wanted
            .or_else(|| self.named_by("refs/remotes/origin/HEAD", REMOTE))
            .or_else(|| self.own_of_the_remote())
            .or_else(|| self.upstream());
        let Some(name) = name else {
            return Err(Error::unavailable(
                "No branch of the brain's remote is known to begin at; `git push -u origin BRANCH` there makes one, \
                 and `capture: {base: BRANCH}` in brain.yaml names it.",
            ));
        };
        let tracked = format!("{REMOTE}{name}");
        if self.commit_of(&tracked).is_none() {
            let fetched = format!("+refs/heads/{name}:{tracked}");
            self.git(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "origin", &fetched])?;
        }
        Ok(Base { commit: self.commit_of(&tracked), name })
    }

    /// What the remote says its own branch is.
    fn own_of_the_remote(&self) -> Option<String> {
        let said = self.git(&["ls-remote", "--symref", "origin", "HEAD"]).ok()?;
        let name = said.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.strip_suffix("\tHEAD"))?;
        Some(name.to_owned()).filter(|name| is_ref(name))
    }

    /// The branch of the remote that the checkout's own follows, or that has its name.
    fn upstream(&self) -> Option<String> {
        let followed = self.git(&["rev-parse", "--symbolic-full-name", "@{upstream}"]).ok();
        let followed = followed.and_then(|full| full.strip_prefix(REMOTE).map(str::to_owned));
        let same =
            || self.named_by("HEAD", "refs/heads/").filter(|name| self.commit_of(&format!("{REMOTE}{name}")).is_some());
        followed.or_else(same)
    }

    /// The branch that a symbolic name stands for.
    fn named_by(&self, name: &str, before: &str) -> Option<String> {
        let full = self.git(&["symbolic-ref", "--quiet", name]).ok()?;
        full.strip_prefix(before).map(str::to_owned)
    }

    /// The commit that a name stands for.
    pub fn commit_of(&self, name: &str) -> Option<String> {
        self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")]).ok()
    }

    /// Whether a commit is in the checkout, or in a branch of the remote.
    pub fn is_merged(&self, commit: &str, into: Option<&str>) -> bool {
        let remote = into.map(|name| format!("{REMOTE}{name}"));
        ["HEAD"].into_iter().chain(remote.as_deref()).any(|name| {
            self.commit_of(name).is_some() && self.git(&["merge-base", "--is-ancestor", commit, name]).is_ok()
        })
    }

    /// The text of a file in a commit.
    pub fn text(&self, commit: &str, path: &str) -> Option<String> {
        self.raw(&["cat-file", "blob", &format!("{commit}:{}{path}", self.prefix)], "", &[]).ok()
    }

    /// Whether a commit has a file of this path.
    pub fn has(&self, commit: &str, path: &str) -> bool {
        self.git(&["cat-file", "-e", &format!("{commit}:{}{path}", self.prefix)]).is_ok()
    }

    /// Makes a commit; no branch has it yet.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn commit(&self, commit: &Commit<'_>) -> Result<String> {
        let Commit { base, files, message, at, index } = *commit;
        let date = format!("@{at} +0000");
        let mut env = vec![("GIT_INDEX_FILE", index.to_string_lossy().into_owned())];
        match base {
            Some(base) => self.raw(&["read-tree", base], "", &env)?,
            None => self.raw(&["read-tree", "--empty"], "", &env)?,
        };
        for Blob { path, text, .. } in files {
            let hash = self.raw(&["hash-object", "-w", "--stdin", "--no-filters"], text, &env)?;
            let entry = format!("100644,{},{}{path}", hash.trim(), self.prefix);
            self.raw(&["update-index", "--add", "--cacheinfo", &entry], "", &env)?;
        }
        let tree = self.raw(&["write-tree"], "", &env)?;
        env.clear();
        env.extend([("GIT_AUTHOR_DATE", date.clone()), ("GIT_COMMITTER_DATE", date)]);
        // Only who has set none needs one.
        for (role, words) in [("AUTHOR", "GIT_AUTHOR_IDENT"), ("COMMITTER", "GIT_COMMITTER_IDENT")] {
            if self.git(&["var", words]).is_err() {
                let names = if role == "AUTHOR" {
                    ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"]
                } else {
                    ["GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"]
                };
                env.extend(names.into_iter().zip(["Nudge".to_owned(), "nudge@localhost".to_owned()]));
            }
        }
        let mut words = vec!["commit-tree", tree.trim(), "-F", "-"];
        words.extend(base.into_iter().flat_map(|base| ["-p", base]));
        Ok(self.raw(&words, message, &env)?.trim().to_owned())
    }

    /// Gives a commit its branch, unless there is one of this name with another commit; whether it has it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn branch(&self, name: &str, commit: &str) -> Result<bool> {
        let full = format!("refs/heads/{name}");
        let made = self.git(&["update-ref", &full, commit, ""]);
        match self.commit_of(&full) {
            Some(known) => Ok(known == commit),
            None => made.map(|_| false).map_err(Error::from),
        }
    }

    /// The address of the remote, as it is written in the configuration.
    pub fn remote(&self) -> Option<String> {
        self.git(&["config", "--get", "remote.origin.url"]).ok().filter(|url| !url.is_empty())
    }

    /// Sends a commit to a branch of the remote.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn push(&self, name: &str, commit: &str) -> Result<()> {
        self.git(&["push", "--quiet", "origin", &format!("{commit}:refs/heads/{name}")])?;
        Ok(())
    }

    #[cfg(feature = "llm")]
    /// What git's helpers know for an address: the password, if there is one.
    pub fn credential(&self, host: &str) -> Option<String> {
        let asked = format!("protocol=https\nhost={host}\n\n");
        let said = self.raw(&["credential", "fill"], &asked, &[]).ok()?;
        said.lines().find_map(|line| line.strip_prefix("password=").map(str::to_owned))
    }

    /// What a branch proposes in words, and what it would bring, as a diff.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn diff(&self, branch: &str) -> Result<String> {
        let (since, branch) = (self.since(branch)?.0, format!("refs/heads/{branch}"));
        let said = self.raw(&["log", "-1", "--format=%b", &branch, "--"], "", &[])?;
        let said = if said.trim().is_empty() { String::new() } else { format!("{}\n\n", said.trim()) };
        let words = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", &since, &branch, "--"];
        Ok(said + &self.raw(&words, "", &[])?)
    }

    /// What a branch and the checkout have in common, and whether that is anything: a capture into a repository without
    /// commits shares none with what is committed later.
    fn since(&self, branch: &str) -> Result<(String, bool)> {
        if let Ok(commit) = self.git(&["merge-base", "HEAD", &format!("refs/heads/{branch}")]) {
            return Ok((commit, true));
        }
        // The tree without files, by the hash of this repository.
        Ok((self.git(&["hash-object", "-t", "tree", "--stdin"])?, false))
    }

    /// The branches that begin so, the oldest first, that the checkout does not have yet.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn branches(&self, prefix: &str) -> Result<Vec<String>> {
        let pattern = format!("refs/heads/{}", prefix.trim_end_matches('/'));
        let mut words = vec!["for-each-ref", "--sort=committerdate", "--format=%(refname:lstrip=2)"];
        let below = format!("{pattern}/");
        let pattern = if prefix.ends_with('/') { &below } else { &pattern };
        if self.commit_of("HEAD").is_some() {
            words.push("--no-merged=HEAD");
        }
        words.push(pattern);
        Ok(self.git(&words)?.lines().map(str::to_owned).collect())
    }

    /// Merges a branch into the checkout, which has no changes of its own at the paths that it brings.
    ///
    /// # Errors
    /// `E_CONFLICT` where it has; `E_UNAVAILABLE` when git does not do it.
    pub fn merge(&self, branch: &str) -> Result<()> {
        let (since, is_shared) = self.since(branch)?;
        let full = format!("refs/heads/{branch}");
        let paths = self.raw(&["diff", "--name-only", "-z", &since, &full, "--"], "", &[])?;
        let names: Vec<_> =
            paths.split('\0').filter(|path| !path.is_empty()).map(|path| format!(":(top,literal){path}")).collect();
        let mut words = vec!["status", "--porcelain", "--untracked-files=all", "--"];
        words.extend(names.iter().map(String::as_str));
        let dirty = self.git(&words)?;
        if !dirty.is_empty() {
            let path = dirty.lines().next().and_then(|line| line.get(3..)).unwrap_or_default();
            return Err(Error::conflict(format!(
                "{path} has changes of yours; commit or remove them, then review again."
            )));
        }
        let mut words = vec!["merge", "--quiet", "--no-edit", &full];
        if !is_shared && self.commit_of("HEAD").is_some() {
            words.push("--allow-unrelated-histories");
        }
        let done = self.git(&words);
        done.map(drop).map_err(|error| {
            let _ = self.git(&["merge", "--abort"]);
            Error::conflict(format!("Git does not merge {branch} ({}); merge it by hand.", error.text))
        })
    }

    /// Runs git and returns its first lines, trimmed.
    fn git(&self, words: &[&str]) -> std::result::Result<String, Failed> {
        self.raw(words, "", &[]).map(|text| text.trim_end().to_owned())
    }

    fn raw(&self, words: &[&str], stdin: &str, env: &[(&str, String)]) -> std::result::Result<String, Failed> {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ELSEWHERE {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        command.env("GIT_ASKPASS", "").env("SSH_ASKPASS", "");
        if !self.has_ssh {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        command.envs(env.iter().map(|(name, value)| (name, value)));
        run(&mut command, words.first().copied().unwrap_or_default(), stdin)
    }
}

/// Whether a text can be the name of a branch, and nothing else.
pub fn is_ref(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/' | b'.'))
        && !name.contains("..")
        && !name.contains("//")
        && !name.ends_with(['.'])
        && !name.to_ascii_lowercase().ends_with(".lock")
}

/// Git did not do it.
struct Failed {
    text: String,
    /// There is no git.
    is_start: bool,
}

impl From<Failed> for Error {
    fn from(Failed { text, is_start }: Failed) -> Self {
        let advice = if is_start { "install it" } else { "see to it, then `nudge brain jobs --retry`" };
        Self::unavailable(format!("Git does not do it: {text}; {advice}."))
    }
}

fn run(command: &mut Command, verb: &str, stdin: &str) -> std::result::Result<String, Failed> {
    let failed = |text: String, is_start: bool| Failed { text, is_start };
    let mut child = command.spawn().map_err(|error| failed(format!("there is no git that runs ({error})"), true))?;
    let (mut input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let text = stdin.to_owned();
    thread::spawn(move || input.as_mut().map(|input| input.write_all(text.as_bytes())));
    let (tell, told) = mpsc::channel();
    let tell_errors = tell.clone();
    let read = |from: Option<&mut dyn std::io::Read>| {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            let _ = from.take(MAX_OUTPUT).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    thread::spawn(move || {
        let mut output = output;
        let _ = tell.send((true, read(output.as_mut().map(|output| output as &mut dyn std::io::Read))));
    });
    thread::spawn(move || {
        let mut errors = errors;
        let _ = tell_errors.send((false, read(errors.as_mut().map(|errors| errors as &mut dyn std::io::Read))));
    });
    let (mut out, mut said) = (String::new(), String::new());
    for _ in 0..2 {
        match told.recv_timeout(LIMIT) {
            Ok((true, text)) => out = text,
            Ok((false, text)) => said = text,
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed(format!("`git {verb}` takes longer than {} s", LIMIT.as_secs()), false));
            }
        }
    }
    let status = child.wait().map_err(|error| failed(format!("`git {verb}` cannot be waited for ({error})"), false))?;
    if status.success() {
        return Ok(out);
    }
    let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    // An address may hold a password.
    let line =
        if nudge_core::safety::secrets::SecretGuard::new().check(None, line).is_some() { "(withheld)" } else { line };
    Err(failed(format!("`git {verb}` says: {}", nudge_core::text::one_line(line, 200)), false))
}
