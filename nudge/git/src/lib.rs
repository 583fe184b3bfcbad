//! Runs git in foreign folders, without running the programs that the settings of these folders name.
//!
//! A repository can name programs in dozens of settings (filters, hooks, monitors, helpers, remotes), in its folder of
//! hooks and in its attributes. Switching off each setting by name is not enough, because a new version of git may add
//! another one. Therefore:
//!
//! 1. [`Git`] runs only a few commands in the folder itself. They read settings and refs, and run no programs. Git
//!    itself checks the folder's owner there (`safe.directory`).
//! 2. [`GitRepository`] does all other work in a git folder that Nudge makes. Links lead from this folder to the
//!    repository's objects, refs, index and work tree, in the way of `git-new-workdir`. The folder has copies only of
//!    settings that are data: how files are compared, who commits, and the address of `origin`.
//!
//! | program | reason why it does not run |
//! |---|---|
//! | `git` itself from the checkout | its path is absolute and outside the checkout; PATH lacks the checkout too |
//! | filters, merge and diff drivers, text conversions | only settings define them; attributes just name them |
//! | hooks, monitors, pagers, editors, aliases, signers | settings define them too, and there is no folder of hooks |
//! | the repository's helpers for credentials, SSH or proxies | only the user's own settings are read, for a remote |
//! | `ext::`, other helpers in remotes' addresses, promisors' programs | git has a protocol list; no lazy fetch |
//! | hooks and settings of a remote that is a folder of this machine | Nudge starts its side, with hooks off |
//!
//! On systems where not every user can make links (Windows), Nudge instead switches off each setting that may name a
//! program.
//!
//! **Architecture invariant:** no other code of Nudge starts git.

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

/// The limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The longest time of the call.
    pub time: Duration,
    /// The most bytes of output.
    pub output_bytes: usize,
}

/// A path at which there are no hooks and no settings.
pub(crate) const NOWHERE: &str = "/dev/null";
/// The most memory of git and of each program that git starts. Without a limit, git filled 1,079 MiB in the five
/// seconds of a call, because `objects/info/alternates` was a link to an endless file.
pub(crate) const MAX_MEMORY_BYTES: u64 = 1 << 30;
/// Switches for commands in the folder itself. Current versions of git run no programs for these commands; the switches
/// are a precaution against later versions.
const SWITCHES: [&str; 6] = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"];
/// Variables that every call gets.
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
/// The caller's variables that name the user's own settings files.
const OF_SETTINGS: [&str; 3] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];
/// The caller's variables that choose a repository other than the folder's, or that allow a repository of another user.
const OF_PLACE: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "SUDO_UID",
];

/// The git of this machine, for one folder.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    folder: PathBuf,
    path: OsString,
    is_place_of_caller: bool,
}

impl Git {
    /// Finds git outside the checkout around the folder.
    ///
    /// # Errors
    /// [`GitFailure::Missing`].
    pub fn find(folder: &Path) -> Result<Self, GitFailure> {
        let program = programs::find_outside("git", folder).ok_or(GitFailure::Missing)?;
        let path = programs::path_outside(&std::env::var_os("PATH").unwrap_or_default(), folder);
        Ok(Self { program, folder: folder.to_owned(), path, is_place_of_caller: false })
    }

    /// Lets the caller's variables choose the repository, as git itself does.
    #[must_use]
    pub fn by_place_of_caller(mut self) -> Self {
        self.is_place_of_caller = true;
        self
    }

    /// Runs a command in the folder itself, with the repository's own settings. The command must only read settings,
    /// refs and names of folders, like `rev-parse`, `symbolic-ref` or `config`, or make a repository where there is
    /// none. Returns the output.
    ///
    /// # Errors
    /// The reason why the command failed.
    pub fn ask(&self, words: &[&str], limits: CallLimits) -> Result<Vec<u8>, GitFailure> {
        let mut program = self.new_program();
        program.args(SWITCHES).args(words).current_dir(&self.folder).env("PWD", &self.folder);
        pass_on(&mut program, &OF_SETTINGS);
        if self.is_place_of_caller {
            pass_on(&mut program, &OF_PLACE);
        }
        run_program(&mut program, words, limits)
    }

    /// Runs a command like [`ask`](Self::ask), and returns the output as text without its line end.
    ///
    /// # Errors
    /// The reason why the command failed, or an error when the output is no text.
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

/// Returns the output of a command as text, without its line end.
fn parse_line(answer: Vec<u8>) -> Result<String, GitFailure> {
    let text = String::from_utf8(answer).map_err(|_| GitFailure::Unfit("an answer of git is no text"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Passes the caller's values of these variables to the program.
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

/// Quotes a word for the shell with which git starts the remote side.
fn shell_word(word: &OsStr) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"))
}
