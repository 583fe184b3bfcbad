//! Edits a text in the user's editor. If a text cannot be stored, its file stays, so the user's work is not lost.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use nudge::{Error, ErrorKind, Result};
use tempfile::TempDir;

use super::{CommandOutput, print_note};
use crate::output;

/// Opens the text in the editor as a file with this name, and stores the result. If the text is refused, opens the
/// editor again as long as the user continues. A text for which `says_secret` returns true does not stay on disk.
///
/// # Errors
/// The last error of `store`, with the path of the file; `E_INVALID` when the editor fails.
pub fn edit_text(
    name: &str,
    before: &str,
    says_secret: impl Fn(&[u8]) -> bool,
    mut store: impl FnMut(&[u8]) -> Result<CommandOutput>,
) -> Result<CommandOutput> {
    let file = DraftFile::write(name, before).map_err(|error| no_file(&error))?;
    let _until_the_end = ignore_interrupts();
    loop {
        let edited = run_editor(&file.path);
        let after = std::fs::read(&file.path).map_err(|error| edited.clone().err().unwrap_or_else(|| no_file(&error)));
        let after = after?;
        if after == before.as_bytes() || after.trim_ascii().is_empty() {
            edited?;
            return Ok(report_unchanged());
        }
        let is_secret = |error: &Error| error.kind() == ErrorKind::SecretRejected || says_secret(&after);
        if let Err(error) = edited {
            return Err(file.keep_file(&error, is_secret(&error)));
        }
        let error = match store(&after) {
            Ok(stored) => return Ok(stored),
            Err(error) => error,
        };
        // A second edit cannot resolve a conflict with another change.
        if error.kind() == ErrorKind::Conflict || !std::io::stdin().is_terminal() || !edits_again(&error) {
            return Err(file.keep_file(&error, is_secret(&error)));
        }
    }
}

/// Prints that the user changed nothing, and returns an empty output.
pub fn report_unchanged() -> CommandOutput {
    print_note("nothing was changed");
    String::new().into()
}

/// Returns true when an editor is available: a variable names one, or a terminal can show the default editor.
pub fn is_there() -> bool {
    find_editor().is_some() || std::io::stdin().is_terminal()
}

/// The edited file, in its own folder. A drop removes both.
struct DraftFile {
    folder: TempDir,
    path: PathBuf,
}

impl DraftFile {
    /// Writes the file. Only the user can read it, even with another umask.
    fn write(name: &str, text: &str) -> std::io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("nudge-edit-");
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir()?;
        let path = folder.path().join(name);
        std::fs::write(&path, text)?;
        for_us_alone(&path)?;
        Ok(Self { folder, path })
    }

    /// Keeps the file, unless its text is a secret. Returns the error with the path of the file.
    fn keep_file(self, error: &Error, is_secret: bool) -> Error {
        let said = error.message().trim_end_matches('.');
        let said = if is_secret {
            format!("{said}; your text was not kept, because secrets do not belong on disk.")
        } else if let Err(failed) = for_us_alone(&self.path) {
            format!("{said}; your text could not be kept ({failed}).")
        } else {
            // Keeps the whole folder, because it may contain an editor's backup of the text.
            let _ = self.folder.keep();
            format!("{said}; your text is in {}.", self.path.display())
        };
        error.clone().with_message(said)
    }
}

/// Makes the file readable only for the user again, because the editor may have replaced the file.
fn for_us_alone(file: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    #[cfg(not(unix))]
    file.metadata()?;
    Ok(())
}

/// Makes this process survive the terminal's signals, so that it can still remove or keep the text. Ctrl-C then ends
/// only the work of the editor. This function sets handlers, because the editor would inherit ignored signals. The
/// handlers stay until the process ends.
#[cfg(unix)]
fn ignore_interrupts() -> impl Sized {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    nudge_os::process::leave_signals(&[SignalKind::interrupt(), SignalKind::hangup()]);
    let within = runtime.enter();
    for kind in [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()] {
        let _ = signal(kind);
    }
    drop(within);
    Some(runtime)
}

/// Makes this process survive Ctrl-C. On Windows this lasts only until the result is dropped.
#[cfg(not(unix))]
fn ignore_interrupts() -> impl Sized {
    tokio::signal::windows::ctrl_c().ok()
}

/// Returns the editor that a variable names, if any.
fn find_editor() -> Option<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    named("VISUAL").or_else(|| named("EDITOR"))
}

/// Runs the editor as git does: as a shell command that has the file as its argument.
fn run_editor(file: &Path) -> Result<()> {
    match shell_command(find_editor().as_deref(), file).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::invalid("The editor failed, so nothing was changed; set EDITOR to one that works.")),
        Err(error) => {
            Err(Error::invalid(format!("The editor cannot be started: {error}; set EDITOR to one that works.")))
        }
    }
}

#[cfg(not(windows))]
fn shell_command(editor: Option<&str>, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{} \"$@\"", editor.unwrap_or("vi")), "editor"]).arg(file);
    command
}

/// Builds the command line for `cmd`. It must be passed raw: `cmd` removes one pair of quotes around the whole line and
/// has no backslash escapes. A file name on Windows cannot contain a quote.
#[cfg(windows)]
fn shell_command(editor: Option<&str>, file: &Path) -> Command {
    use std::os::windows::process::CommandExt as _;

    let mut command = Command::new("cmd");
    command.args(["/D", "/S", "/C"]).raw_arg(format!("\"{} \"{}\"\"", editor.unwrap_or("notepad"), file.display()));
    command
}

/// Asks whether to edit again. Only `n` and the end of the input count as no.
fn edits_again(error: &Error) -> bool {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "nudge: {}\n[Enter] edits again, n gives up: ", output::make_visible(error.message()));
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    let on = matches!(read, Ok(1..)) && !answer.trim().to_ascii_lowercase().starts_with('n');
    if !on && !answer.ends_with('\n') {
        let _ = writeln!(stderr);
    }
    on
}

fn no_file(error: &std::io::Error) -> Error {
    Error::invalid(format!("The file for the editor fails: {error}; set TMPDIR to a folder of yours."))
}
