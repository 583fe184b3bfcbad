//! Processes that outlive their caller and its terminal.

use std::process::{Command, Stdio};

use nudge::{Error, Result};
use nudge_core::source::SourceSpec;

/// Starts a command of a source in a new process. First detaches the calling process from its terminal, so that the new
/// process survives the end of the caller's parent or login session.
///
/// # Errors
/// `E_UNAVAILABLE` when the program cannot be started.
pub fn start_in_background(source: &SourceSpec, words: &[&str]) -> Result<()> {
    let failed = |error: std::io::Error| {
        Error::unavailable(format!("Nothing can be started in the background ({error}); try again without --detach."))
    };
    let program = std::env::current_exe().map_err(failed)?;
    leave_the_terminal();
    let mut command = Command::new(program);
    command.arg(source.name).args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    set_apart(&mut command);
    command.spawn().map(drop).map_err(failed)
}

/// Detaches this process from the terminal and its signals. Also changes the current folder to the root, so that the
/// user can remove the earlier folder.
pub fn leave_the_terminal() {
    #[cfg(unix)]
    let _ = rustix::process::setsid();
    let root = if cfg!(windows) { std::env::temp_dir() } else { "/".into() };
    let _ = std::env::set_current_dir(root);
}

/// Gives a program a process group of its own, without a console.
#[cfg(windows)]
pub fn set_apart(command: &mut Command) {
    use std::os::windows::process::CommandExt as _;

    const DETACHED_PROCESS: u32 = 0x8;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP);
}

/// Does nothing on Unix, because [`leave_the_terminal`] has already made a process group.
#[cfg(not(windows))]
pub fn set_apart(_: &mut Command) {}
