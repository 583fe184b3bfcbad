//! Finds the repository of a folder, the URL of its remote `origin` and its branch, from git's own files. It runs no
//! program.
//!
//! The reader gives the same answers as git itself: the output of `git remote get-url origin` and of `git rev-parse
//! --abbrev-ref HEAD` in the folder. Before the first commit, the branch is the output of `git symbolic-ref --short
//! HEAD`.
//!
//! The reader supports the usual repository: a folder or a file `.git`, linked worktrees, settings with plain includes,
//! and refs in files. For any other repository it returns [`GitAnswer::Unsure`], and a caller that can run git asks
//! git. An answer that differs from git's is a bug (`tests/git_context.rs` compares them), unless git itself fails
//! because of a setting that does not change the answer. The rules are those of git 2.47. If known versions of git
//! differ, the answer is `Unsure`.
//!
//! **Architecture invariant:** this crate starts no process and no thread, writes nothing, opens only regular files of
//! bounded size (1 MiB, 8 MiB for `packed-refs`) and follows a bounded number of includes and refs. No file in a
//! repository can make the crate panic, block or run without end.
//!
//! ```
//! use nudge_git_files::{GitDetector, GitAnswer, GitEnv};
//! # fn main() -> std::io::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("nudge-doc-{}", std::process::id()));
//! # for sub in [".git/objects", ".git/refs/heads"] { std::fs::create_dir_all(dir.join(sub))?; }
//! # std::fs::write(dir.join(".git/HEAD"), "ref: refs/heads/dev\n")?;
//! # std::fs::write(dir.join(".git/refs/heads/dev"), "0".repeat(39) + "1\n")?;
//! # std::fs::write(dir.join(".git/config"),
//! #     "[remote \"origin\"] url = https://host/org/app.git\n")?;
//! # let mut env = GitEnv::empty();
//! # env.assume_owned = true;
//! // A program calls `GitDetector::new()`; a test passes its own environment.
//! let mut detector = GitDetector::with_env(env);
//! match detector.detect(&dir) {
//!     GitAnswer::Inside(info) => {
//!         assert_eq!(info.remote.as_deref(), Some("https://host/org/app.git"));
//!         assert_eq!(info.branch.as_deref(), Some("dev"));
//!     }
//!     GitAnswer::Outside => println!("not a repository"),
//!     GitAnswer::Unsure(why) => println!("ask git: {why}"),
//! }
//! # std::fs::remove_dir_all(&dir)
//! # }
//! ```

mod config;
mod discover;
mod env;
mod layers;
mod probe;
mod refs;
mod remote;
mod scalars;

use std::path::{Path, PathBuf};

pub use env::GitEnv;

use layers::{ConfigLayers, ConfigScope};
use probe::{DetectStop, FileProbe, PathSight, PathWitness, Res};
use refs::RepoRefs;

/// The most folders whose answers a [`GitDetector`] remembers.
const SLOTS_MAX: usize = 8;

/// The answer for a folder, according to git's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitAnswer {
    /// The folder is in no repository, or in a repository that git refuses to use, because it has another owner or
    /// because a `.git` file names no repository. Git commands fail here.
    Outside,
    /// The folder is in a repository.
    Inside(GitInfo),
    /// The reader cannot tell git's answer, for example because of reftable, an unknown extension, a set `GIT_DIR` or a
    /// file that it does not parse. The caller must ask git. The text gives the reason in a few words, without any
    /// content of the files.
    Unsure(&'static str),
}

/// A repository as git sees it from one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitInfo {
    /// The top of the work tree, as `git rev-parse --show-toplevel` prints it. In a bare repository and inside `.git`
    /// that command fails. The root is then the repository's own folder (`git rev-parse --absolute-git-dir`), and
    /// remote and branch are still known.
    pub root: PathBuf,
    /// The top of the main worktree, even for a folder in a linked worktree. If the main worktree is unknown, the
    /// folder that all worktrees share.
    pub main: PathBuf,
    /// The output of `git remote get-url origin`, with `url.<base>.insteadOf` applied; `None` without such a remote.
    /// The URL may hold credentials.
    pub remote: Option<String>,
    /// The output of `git rev-parse --abbrev-ref HEAD`: the branch, or `HEAD` when it is detached. Before the first
    /// commit that command fails; this is then the output of `git symbolic-ref --short HEAD`. `None` when both commands
    /// fail.
    ///
    /// When a tag `v1` makes the name of the branch `v1` ambiguous, git prints `heads/v1`. In such a case only git can
    /// answer.
    pub branch: Option<String>,
}

/// Reads git's files and remembers the answers.
///
/// A second call for the same folder compares the stamps (time, length, inode) of all files on which the first answer
/// depends, whether they exist or not. If any stamp differs, the detector reads the files again. It keeps the answers
/// for the last 8 folders, except `Unsure` answers. A file that was written in the last 20 ms before the read is read
/// again next time, because its stamp would not show a second change.
///
/// The environment is read when the detector is made. Make a new detector after changing variables or the user of the
/// process.
pub struct GitDetector {
    env: GitEnv,
    probe: FileProbe,
    slots: Vec<DetectedAnswer>,
}

/// An answer, and the files on which it depends.
struct DetectedAnswer {
    cwd: PathBuf,
    answer: GitAnswer,
    witnesses: Vec<PathWitness>,
}

impl GitDetector {
    /// Makes a detector with the variables of this process ([`GitEnv::from_process`]).
    #[must_use]
    pub fn new() -> Self {
        Self::with_env(GitEnv::from_process())
    }

    /// Makes a detector with the given environment.
    #[must_use]
    pub fn with_env(env: GitEnv) -> Self {
        Self { env, probe: FileProbe::new(), slots: Vec::new() }
    }

    /// Returns git's answer for `cwd`, the absolute path of a folder. Links in the path are resolved. For a path that
    /// is not a folder the answer is [`GitAnswer::Outside`].
    pub fn detect(&mut self, cwd: &Path) -> GitAnswer {
        if let Some(index) = self.slots.iter().position(|slot| slot.cwd.as_os_str() == cwd.as_os_str()) {
            let slot = self.slots.remove(index);
            if slot.witnesses.iter().all(PathWitness::still_holds) {
                let answer = slot.answer.clone();
                self.slots.push(slot);
                return answer;
            }
        }
        self.probe.begin_answer();
        let answer = match read(&mut self.probe, &self.env, cwd) {
            Ok(info) => GitAnswer::Inside(info),
            Err(DetectStop::Outside) => GitAnswer::Outside,
            Err(DetectStop::Unsure(why)) => return GitAnswer::Unsure(why),
        };
        if self.probe.lasting {
            if self.slots.len() >= SLOTS_MAX {
                self.slots.remove(0);
            }
            self.slots.push(DetectedAnswer {
                cwd: cwd.to_owned(),
                answer: answer.clone(),
                witnesses: std::mem::take(&mut self.probe.witnesses),
            });
        }
        answer
    }
}

impl Default for GitDetector {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for GitDetector {
    /// Leaves out the remembered files and answers, because a URL may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitDetector").field("folders", &self.slots.len()).finish_non_exhaustive()
    }
}

/// Returns git's answer for `cwd`, with the variables of this process. A caller with several folders keeps a
/// [`GitDetector`].
#[must_use]
pub fn detect_git(cwd: &Path) -> GitAnswer {
    GitDetector::new().detect(cwd)
}

/// Returns git's answer for `cwd`, with the given environment.
#[must_use]
pub fn git_with(env: &GitEnv, cwd: &Path) -> GitAnswer {
    GitDetector::with_env(env.clone()).detect(cwd)
}

/// Returns the main worktree of a repository. `common` is the folder that its worktrees share. The main worktree is the
/// parent of `common` if `common` has the name `.git`. Otherwise it is `common` itself, as in a bare repository.
#[must_use]
pub fn main_worktree(common: &Path) -> &Path {
    let is_dot_git = common.file_name().is_some_and(|name| name == ".git");
    common.parent().filter(|_| is_dot_git).unwrap_or(common)
}

/// Reads one answer from the files. Remembered answers are not used.
fn read(probe: &mut FileProbe, env: &GitEnv, cwd: &Path) -> Res<GitInfo> {
    if env.redirected_by.is_some() {
        return Err(DetectStop::Unsure("a variable like GIT_DIR is set"));
    }
    let Some(real) = probe.resolve_path(cwd) else {
        return match probe.stat(cwd) {
            PathSight::Absent | PathSight::NotDir => Err(DetectStop::Outside),
            _ => Err(DetectStop::Unsure("the folder cannot be seen")),
        };
    };
    let repo = discover::discover_repo(probe, env, &real)?;
    let mut layers = ConfigLayers::new(env);
    layers.add_outer(probe)?;
    let file = repo.common.join("config");
    layers.add_file(probe, ConfigScope::Repository, &file, repo.config, 0)?;
    let file = repo.git_dir.join("config.worktree");
    layers.add_file(probe, ConfigScope::Repository, &file, repo.worktree_config, 0)?;
    let remote = remote::origin_url(probe, &repo.common, &layers.entries)?;
    let branch = RepoRefs::new(&repo.git_dir, &repo.common, repo.hex_len).name_head(probe)?;
    let root = repo.top.unwrap_or(repo.git_dir);
    Ok(GitInfo { main: repo.main.unwrap_or_else(|| root.clone()), root, remote, branch })
}
