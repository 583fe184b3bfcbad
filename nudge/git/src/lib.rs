//! Runs git in folders of others, without the programs that these folders name.
//!
//! A repository's own settings can name programs in dozens of keys (filters, hooks, monitors, helpers, remotes), and so can
//! its hooks folder and its attributes. Switching each key off by name loses against the next version of git. So:
//!
//! 1. [`Git`] asks a few questions in the folder itself, which read settings and refs and run nothing. There git makes
//!    its own check of the folder's owner (`safe.directory`).
//! 2. [`GitRepository`] does everything else in a git folder of our own, which borrows objects, refs, index and work tree
//!    by links, as `git-new-workdir` does. It takes only settings that are data: how files are compared, who commits,
//!    where `origin` is.
//!
//! | what could run | why it does not |
//! |---|---|
//! | `git` itself from the checkout | the program is found by a whole path outside of it, and gets such a PATH |
//! | filters, merge and diff drivers, text conversions | settings define them, attributes only name them |
//! | hooks, monitors, pagers, editors, aliases, signers | as above, and there is no folder of hooks |
//! | helpers for credentials, SSH or proxies that the repository names | only the user's own settings are read, and for a remote alone |
//! | `ext::` and other helpers in a remote's address, programs of a promisor | protocols are a list; nothing is fetched lazily |
//! | hooks and settings of a remote that is a folder of this machine | its side is started by us, with hooks switched off |
//!
//! On systems where not every user may make links (Windows), the keys that name programs are switched off one by one.
//!
//! **Architecture invariant:** nothing else in Nudge starts git.

mod failure;
mod repository;
mod settings;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_core::patience;
use nudge_os::process::{ChildProgram, RunLimits, StderrUse};
use nudge_os::programs;

pub use failure::GitFailure;
pub use repository::{CallReach, GitCall, GitRepository, RemoteVerb};

/// The bounds of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Most time.
    pub time: Duration,
    /// Most bytes of output.
    pub output_bytes: usize,
}

/// A path without hooks and without settings.
pub(crate) const NOWHERE: &str = "/dev/null";
/// Most memory of git and of each program that it starts. A repository's `objects/info/alternates` that is a link to an
/// endless file filled 1,079 MiB in the five seconds of a call.
pub(crate) const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// Switches for questions in the folder itself. They run nothing by themselves; these hold for versions to come.
const SWITCHES: [&str; 6] = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"];
/// Variables that every call has.
const VARIABLES: [(&str, &str); 11] = [
    ("LC_ALL", "C"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", ":"),
    ("GIT_MERGE_AUTOEDIT", "no"),
];
/// Variables of the caller's that say where the user's own settings are.
const OF_SETTINGS: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
/// Variables of the caller's by which git means another repository than that of the folder, or takes that of another user.
const OF_PLACE: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "SUDO_UID",
];

/// The git of this machine, for a folder.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    folder: PathBuf,
    path: OsString,
    is_place_of_caller: bool,
}

impl Git {
    /// Finds git, outside the checkout that the folder lies in.
    ///
    /// # Errors
    /// [`GitFailure::Missing`].
    pub fn find(folder: &Path) -> Result<Self, GitFailure> {
        let program = programs::find_outside("git", folder).ok_or(GitFailure::Missing)?;
        let path = programs::path_outside(&std::env::var_os("PATH").unwrap_or_default(), folder);
        Ok(Self { program, folder: folder.to_owned(), path, is_place_of_caller: false })
    }

    /// Lets the caller's environment say which repository is meant, as it does for git itself.
    #[must_use]
    pub fn by_place_of_caller(mut self) -> Self {
        self.is_place_of_caller = true;
        self
    }

    /// Asks a question in the folder itself, with the repository's own settings in force. It must be one that reads
    /// settings, refs and names of folders alone, such as `rev-parse`, `symbolic-ref` or `config`, or makes a repository
    /// where there is none.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn ask(&self, words: &[&str], limits: CallLimits) -> Result<Vec<u8>, GitFailure> {
        let mut program = self.new_program();
        program.args(SWITCHES).args(words).current_dir(&self.folder).env("PWD", &self.folder);
        pass_on(&mut program, &OF_SETTINGS);
        if self.is_place_of_caller {
            pass_on(&mut program, &OF_PLACE);
        }
        run_program(&mut program, words, limits)
    }

    /// As [`ask`](Self::ask), as text without the line's end.
    ///
    /// # Errors
    /// Why there is no answer, or none that is text.
    pub fn ask_line(&self, words: &[&str], limits: CallLimits) -> Result<String, GitFailure> {
        parse_line(self.ask(words, limits)?)
    }

    fn new_program(&self) -> ChildProgram {
        let mut program = ChildProgram::new(&self.program);
        program.env("PATH", &self.path).memory(MAX_MEMORY_BYTES);
        for (name, value) in VARIABLES {
            program.env(name, value);
        }
        program
    }
}

/// The text of an answer, without the line's end.
fn parse_line(answer: Vec<u8>) -> Result<String, GitFailure> {
    let text = String::from_utf8(answer).map_err(|_| GitFailure::Unfit("an answer of git is no text"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Passes on the caller's values of these.
fn pass_on(program: &mut ChildProgram, names: &[&str]) {
    for name in names {
        if let Some(value) = std::env::var_os(name) {
            program.env(name, value);
        }
    }
}

fn run_program(program: &mut ChildProgram, words: &[&str], limits: CallLimits) -> Result<Vec<u8>, GitFailure> {
    let verb = || words.first().copied().unwrap_or_default().to_owned();
    let limits = RunLimits { time: limits.time, output_bytes: limits.output_bytes, is_given_up: &patience::is_over };
    let output = program.errors(StderrUse::Kept).run(limits).map_err(|failure| GitFailure::Run(verb(), failure))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(GitFailure::from_refusal(verb(), output.status.code(), &output.stderr))
}

/// A word for the shell that git starts a remote's side with.
fn shell_word(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}
