//! Recognises which commands in a project's settings are plainly Nudge.
//!
//! Anyone may have written a project's settings, so a client starts their commands only if the user agrees. The doctor
//! does not ask the user, so it starts only Nudge itself, and without a shell.

use std::path::{Path, PathBuf};

use nudge_os::programs;
use serde_json::{Value, json};

use super::super::clients::strip_guard;
use super::launch::{LaunchCommand, shorten_foreign};

/// The reason why a command was not started.
pub enum NotStarted {
    /// The command is `nudge`, but PATH has no such program.
    Missing(String),
    /// The command may start another program.
    Unclear(String),
}

impl NotStarted {
    /// Describes the reason in words.
    pub fn to_words(&self) -> String {
        match self {
            Self::Missing(name) => format!("{} is not there, or cannot be run", shorten_foreign(name)),
            Self::Unclear(what) => format!("{} is not started: it is not plainly nudge", shorten_foreign(what)),
        }
    }
}

/// Returns the program of a server. The entry's only argument must be `serve`, and all its variables must be Nudge's.
///
/// # Errors
/// The reason why the doctor does not start it.
pub fn find_server_program(launch: &LaunchCommand, exe: &Path) -> Result<PathBuf, NotStarted> {
    if let Some(name) = launch.variable_names().find(|name| !name.starts_with("NUDGE_")) {
        return Err(NotStarted::Unclear(format!("{} with a variable {name}", launch.command)));
    }
    if launch.args != ["serve"] {
        // The message does not show the arguments, because they may contain a secret.
        return Err(NotStarted::Unclear(format!("{} with other words than `serve`", launch.command)));
    }
    find_program(&launch.command, exe)
}

/// Returns the program of a hook. The hook's only argument must be `hook`.
///
/// # Errors
/// The reason why the doctor does not start it.
pub fn find_hook_program(handler: &Value, exe: &Path) -> Result<PathBuf, NotStarted> {
    let Some(line) = handler["command"].as_str() else { return Err(NotStarted::Unclear(String::new())) };
    let command = match handler.get("args") {
        Some(args) => Some(line).filter(|_| *args == json!(["hook"])),
        None => strip_guard(line).strip_suffix(" hook").and_then(|path| match path.strip_prefix('"') {
            // Inside quotes, a shell reads these characters literally.
            Some(quoted) => quoted.strip_suffix('"').filter(|path| is_plain(path, " ()'&;,=@+~#")),
            None => Some(path).filter(|path| is_plain(path, "")),
        }),
    };
    find_program(command.ok_or_else(|| NotStarted::Unclear(line.into()))?, exe)
}

/// Returns true when a shell reads a path literally. `more` are further harmless characters.
fn is_plain(path: &str, more: &str) -> bool {
    let separator = if cfg!(windows) { '\\' } else { '/' };
    path.chars().all(|c| c.is_alphanumeric() || "/._-:".contains(c) || c == separator || more.contains(c))
}

/// Returns this binary, or the `nudge` in PATH, if the command names it.
fn find_program(command: &str, exe: &Path) -> Result<PathBuf, NotStarted> {
    let path = Path::new(command);
    let is_name = ["nudge", "nudge.exe"].contains(&command);
    let found = if is_name {
        programs::find_program(command).ok_or_else(|| NotStarted::Missing(command.into()))?
    } else {
        path.to_owned()
    };
    let unclear = || NotStarted::Unclear(command.into());
    // Refuses a relative path, because it would depend on the project's folder.
    let real = Some(found).filter(|path| path.is_absolute()).and_then(|path| path.canonicalize().ok());
    let real = real.ok_or_else(unclear)?;
    let known = programs::find_program("nudge").into_iter().chain([exe.to_owned()]);
    // Returns the known path. The given path may be a link, which another user could change before the start.
    known.into_iter().find(|known| known.canonicalize().is_ok_and(|known| known == real)).ok_or_else(unclear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn hooks_with_syntax_of_a_shell_are_held_back() {
        // Under each of these names there is a link to the program, so only the syntax decides.
        let folder = tempfile::tempdir().unwrap();
        let exe = std::env::current_exe().unwrap();
        let create_link = |name: &str| {
            let path = folder.path().join(name).join("nudge");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&exe, &path).unwrap();
            path.display().to_string()
        };
        let is_started = |line: String| find_hook_program(&json!({"command": line}), &exe).is_ok();
        assert!(is_started(format!("{} hook", create_link("plain"))));
        for name in ["a b", "a;b", "~", "é(1)"] {
            assert!(is_started(format!("\"{}\" hook", create_link(name))), "{name}");
            assert!(!is_started(format!("{} hook", folder.path().join(name).join("nudge").display())));
        }
        for name in ["$(x)", "`x`", "a\"b", "a\\b", "a!b", "a\nb", "a*b", "$HOME"] {
            let path = create_link(name);
            assert!(!is_started(format!("\"{path}\" hook")) && !is_started(format!("{path} hook")), "{name}");
            assert!(find_hook_program(&json!({"command": path, "args": ["hook"]}), &exe).is_ok(), "no shell reads it");
        }
    }
}
