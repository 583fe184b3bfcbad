//! `nudge edit`: opens a hint in the user's editor, and stores it if nobody changed it meanwhile. A text that cannot
//! be stored is kept in its file, so that nothing typed is lost.

mod text;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use nudge::{Error, ErrorKind, Result, Service as _};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::{CommandOutput, RunningSession, address, parsed, reworded, tell};
use crate::args::{ContextFlags, Edit, Global};
use crate::output;
use text::Hint;

pub fn run(args: &Edit, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let hint = pick(&session, args)?;
    if hint.fields["meta"]["sensitivity"] == "secret" {
        return Err(invalid("A secret is not written to a file; store it anew with `nudge set ... --secret`."));
    }
    let before = text::document(&hint);
    let file = Draft::write(&before).map_err(|error| no_file(&error))?;
    let _until_the_end = ignore_interrupts();
    loop {
        let edited = open_editor(&file.path);
        let after = std::fs::read(&file.path).map_err(|error| edited.clone().err().unwrap_or_else(|| no_file(&error)));
        let after = after?;
        if after == before.as_bytes() || after.trim_ascii().is_empty() {
            edited?;
            tell("nothing was changed");
            return Ok(String::new().into());
        }
        if let Err(error) = edited {
            return Err(file.kept(&error, &after));
        }
        let stored = text::params(&after, &hint, args.allow_secret).and_then(|params| {
            still_there(&session, args, &hint)?;
            session.remote.call("nudge.set_hint", &params)
        });
        let error = match stored {
            Ok(result) => return session.render(&result, output::stored),
            Err(error) => error,
        };
        // A conflict with another change cannot be mended by further editing.
        if error.kind() == ErrorKind::Conflict || !std::io::stdin().is_terminal() || !edits_again(&error) {
            return Err(file.kept(&error, &after));
        }
    }
}

/// The file that is edited, in a folder of its own; both are removed on drop.
struct Draft {
    folder: TempDir,
    path: PathBuf,
}

impl Draft {
    /// Writes the file, readable by the user alone, whatever the umask.
    fn write(text: &str) -> std::io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("nudge-edit-");
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir()?;
        let path = folder.path().join("hint.jsonc");
        std::fs::write(&path, text)?;
        for_us_alone(&path)?;
        Ok(Self { folder, path })
    }

    /// Keeps the file, unless its text is marked as a secret or was refused as one. Returns the error with the path.
    fn kept(self, error: &Error, text: &[u8]) -> Error {
        let said = error.message().trim_end_matches('.');
        let secret = error.kind() == ErrorKind::SecretRejected || text::says_secret(&String::from_utf8_lossy(text));
        let said = if secret {
            format!("{said}; your text was not kept, because secrets do not belong on disk.")
        } else if let Err(failed) = for_us_alone(&self.path) {
            format!("{said}; your text could not be kept ({failed}).")
        } else {
            // The whole folder stays, with an editor's backup of the text.
            let _ = self.folder.keep();
            format!("{said}; your text is in {}.", self.path.display())
        };
        reworded(error, said)
    }
}

/// Makes the file readable by the user alone; an editor may have replaced it by a new one.
fn for_us_alone(file: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    #[cfg(not(unix))]
    file.metadata()?;
    Ok(())
}

/// Makes this process survive the terminal's signals, so that it can tidy up or keep the text: Ctrl-C is meant for
/// the editor, and is no answer at the prompt. A handler, unlike an ignored signal, is not inherited by the editor;
/// it stays until the process ends.
#[cfg(unix)]
fn ignore_interrupts() -> impl Sized {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    crate::children::leave_signals(&[SignalKind::interrupt(), SignalKind::hangup()]);
    let within = runtime.enter();
    for kind in [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()] {
        let _ = signal(kind);
    }
    drop(within);
    Some(runtime)
}

/// Makes this process survive Ctrl-C, which on Windows lasts only while the result is kept.
#[cfg(not(unix))]
fn ignore_interrupts() -> impl Sized {
    tokio::signal::windows::ctrl_c().ok()
}

/// A row of `nudge.why`, with the hint as raw JSON text.
#[derive(Deserialize)]
struct Row {
    hint: Box<RawValue>,
    #[serde(default)]
    match_explain: Value,
}

/// Picks the variant to edit: the named one, the only one, or the one that `get` returns here.
fn pick(session: &RunningSession, args: &Edit) -> Result<Hint> {
    #[derive(Deserialize)]
    struct Rows {
        variants: Vec<Row>,
        verdict: String,
    }
    let rows: Rows = text::read(why(session, args)?.get())?;
    let mut hints = rows.variants.iter().map(|row| text::read(row.hint.get())).collect::<Result<Vec<Hint>>>()?;
    let at = match &args.variant {
        // It says what may have been meant.
        _ if hints.is_empty() => return Err(Error::not_found(rows.verdict)),
        Some(variant) => hints
            .iter()
            .position(|hint| hint.variant() == variant)
            .ok_or_else(|| Error::not_found("There is no such variant; `nudge why` lists the variants of a key."))?,
        None if hints.len() == 1 || rows.variants[0].match_explain["matched"] == true => 0,
        None => return Err(invalid("The key has several variants and none fits here; name one with `variant`.")),
    };
    Ok(hints.swap_remove(at))
}

fn why(session: &RunningSession, args: &Edit) -> Result<Box<RawValue>> {
    let params = address(&args.name);
    session.call_here("nudge.why", params, &ContextFlags::default())
}

/// Refuses when the hint was deleted meanwhile. Its version alone does not tell: one that was deleted and set anew
/// begins with version 1 again.
fn still_there(session: &RunningSession, args: &Edit, hint: &Hint) -> Result<()> {
    let now = parsed(&why(session, args)?)?;
    let same =
        |row: &Value| ["variant", "created_at"].iter().all(|field| row["hint"].get(field) == hint.fields.get(*field));
    if now["variants"].as_array().is_some_and(|rows| rows.iter().any(same)) {
        return Ok(());
    }
    Err(Error::conflict("The hint was deleted meanwhile, so nothing was changed; look with `nudge why`."))
}

/// Runs the editor as git does: as a shell command, with the file as its argument.
fn open_editor(file: &Path) -> Result<()> {
    let named = |name: &str| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    match shell(named("VISUAL").or_else(|| named("EDITOR")).as_deref(), file).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(invalid("The editor failed, so nothing was changed; set EDITOR to one that works.")),
        Err(error) => Err(invalid(format!("The editor cannot be started: {error}; set EDITOR to one that works."))),
    }
}

#[cfg(not(windows))]
fn shell(editor: Option<&str>, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{} \"$@\"", editor.unwrap_or("vi")), "editor"]).arg(file);
    command
}

/// Builds the command line for `cmd`, which must be passed raw: `cmd` strips one pair of quotes from the whole and
/// knows no backslash escapes. A file name on Windows holds no quote.
#[cfg(windows)]
fn shell(editor: Option<&str>, file: &Path) -> Command {
    use std::os::windows::process::CommandExt as _;

    let mut command = Command::new("cmd");
    command.args(["/D", "/S", "/C"]).raw_arg(format!("\"{} \"{}\"\"", editor.unwrap_or("notepad"), file.display()));
    command
}

/// Asks whether to edit again. Anything but `n` and the end of file is a yes.
fn edits_again(error: &Error) -> bool {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "nudge: {}\n[Enter] edits again, n gives up: ", output::visible(error.message()));
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
    invalid(format!("The file for the editor fails: {error}; set TMPDIR to a folder of yours."))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::invalid(message)
}
