//! Starts the commands in a client's settings as the client would.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nudge::SecretGuard;
use nudge_client::RuntimeDir;
use nudge_os::process::ChildProgram;
use nudge_os::programs;
use serde_json::Value;

/// The most characters of another program's text that are shown.
const MAX_CHARS: usize = 200;
/// The least bytes of a variable's value that is hidden as a possible secret. A shorter value would occur in many texts
/// by chance.
const MIN_SECRET_BYTES: usize = 6;

/// The command of a server's entry, with its arguments and variables.
pub struct LaunchCommand {
    pub command: String,
    pub args: Vec<String>,
    env: Vec<(String, String)>,
}

/// Returns true when an entry names a server that is reached over HTTP, in the format of any client.
pub fn is_remote(entry: &Value) -> bool {
    ["url", "httpUrl", "serverUrl"].iter().any(|name| entry[name].is_string())
}

impl LaunchCommand {
    /// Reads an entry in the format of any client. Returns `None` when the entry has no command.
    pub fn from_entry(entry: &Value) -> Option<Self> {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (command, args, env) = match &entry["command"] {
            Value::String(command) => (command.clone(), texts(&entry["args"]), &entry["env"]),
            // opencode has the command and its arguments in a single list; older versions of Zed have an object.
            Value::Array(_) => {
                let mut words = texts(&entry["command"]);
                (if words.is_empty() { return None } else { words.remove(0) }, words, &entry["environment"])
            }
            Value::Object(inner) => {
                let inner = |name: &str| inner.get(name).unwrap_or(&Value::Null);
                (inner("path").as_str()?.to_owned(), texts(inner("args")), inner("env"))
            }
            _ => return None,
        };
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let env = env.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect();
        Some(Self { command, args, env })
    }

    /// Returns true when the entry names another session than that of the user.
    pub fn is_elsewhere(&self) -> bool {
        let given = std::env::var_os("NUDGE_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let usual = || Some(RuntimeDir::find(None).ok()??.path().to_owned());
        let here = given.or_else(usual).unwrap_or_else(|| "/tmp/nudge".into());
        self.find_variable("NUDGE_RUNTIME_DIR").is_some_and(|dir| !dir.is_empty() && Path::new(dir) != here)
    }

    /// Returns the names of the variables that the entry sets.
    pub fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.env.iter().map(|(name, _)| name.as_str())
    }

    fn find_variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the path of the program. Searches PATH if the command is a bare name.
    pub fn find_program(&self) -> Option<PathBuf> {
        let path = self.find_variable("PATH").map(Into::into).or_else(|| std::env::var_os("PATH"));
        find_as_client(&self.command, path.as_deref())
    }

    /// Returns the command that starts the server in the session of the folder `runtime`.
    pub fn to_server(&self, path: &Path, runtime: &Path) -> ChildProgram {
        let mut program = ChildProgram::new(path);
        program.args(&self.args);
        remove_own_variables(&mut program);
        for (name, value) in &self.env {
            program.env(name, value);
        }
        program.env("NUDGE_RUNTIME_DIR", runtime);
        isolate_state(&mut program, runtime);
        program
    }

    /// Shortens a text that the process wrote. Replaces the values of its variables, because they may be secret.
    pub fn redact(&self, text: &str) -> String {
        let secrets = self.env.iter().filter(|(_, value)| value.len() >= MIN_SECRET_BYTES);
        let text = secrets.fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("[{name}]")));
        shorten_foreign(&text)
    }
}

/// Finds a program as a client in the current folder would: in the folders of PATH, or by the given path.
fn find_as_client(command: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    which::which_in(command, path.map(programs::whole_path), here).ok()
}

/// Returns the program of a hook's handler as a client would start it: directly if the handler has `args`, and
/// otherwise through a shell.
///
/// # Errors
/// The reason in words, when the handler has no command or the program does not exist.
pub fn to_program(handler: &Value) -> Result<ChildProgram, String> {
    let line = handler["command"].as_str().ok_or("it names no command")?;
    let Some(args) = handler["args"].as_array() else { return shell_program(line) };
    let path = find_as_client(line, std::env::var_os("PATH").as_deref());
    let mut program = ChildProgram::new(&path.ok_or_else(|| format!("there is no program {line}"))?);
    program.args(args.iter().filter_map(Value::as_str));
    Ok(program)
}

/// Changes a hook's environment so that the hook runs in the session of the folder `runtime`.
pub fn adapt_hook(mut program: ChildProgram, runtime: &Path, patience_ms: u64) -> ChildProgram {
    remove_own_variables(&mut program);
    program.env("NUDGE_RUNTIME_DIR", runtime).env("NUDGE_HOOK_MS", patience_ms.to_string());
    program
}

#[cfg(windows)]
fn shell_program(line: &str) -> Result<ChildProgram, String> {
    let mut program = ChildProgram::new(&programs::find_program("cmd").ok_or("there is no cmd")?);
    // The line must not be quoted, because `cmd` has its own rules for quotes.
    program.arg("/C").raw_arg(line);
    Ok(program)
}

#[cfg(not(windows))]
fn shell_program(line: &str) -> Result<ChildProgram, String> {
    let mut program = ChildProgram::new(&programs::find_program("sh").ok_or("there is no sh")?);
    program.args(["-c", line]);
    Ok(program)
}

/// Keeps a child away from the user's kept hints, whatever the child's entry sets. The child's hints apply in every
/// folder.
fn isolate_state(program: &mut ChildProgram, runtime: &Path) {
    program.env("NUDGE_KEEP", "0").env("NUDGE_DEFAULT_REACH", "everywhere");
    // Also sets the folders, because the flag `--keep` in an entry would override the variable.
    program.env("XDG_STATE_HOME", runtime.with_file_name("state"));
    program.env("NUDGE_DATA_DIR", runtime.with_file_name("data"));
}

/// Removes all `NUDGE_` variables, because they could lead the child to the user's own session.
fn remove_own_variables(program: &mut ChildProgram) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().to_ascii_uppercase().starts_with("NUDGE_") {
            program.env_remove(name);
        }
    }
}

/// Shortens a text of another program. Hides the whole text if it looks like a credential.
pub fn shorten_foreign(text: &str) -> String {
    if SecretGuard::new().check(None, text).is_some() {
        return "[what it says looks like a credential]".into();
    }
    let short: String = text.chars().take(MAX_CHARS).collect();
    if short.len() < text.len() { short + "…" } else { short }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_of_every_client_are_read() {
        let env = json!({"TOKEN": "opensesame", "N": 5});
        for entry in [
            json!({"type": "stdio", "command": "/n", "args": ["serve", "-x"], "env": env}),
            json!({"type": "local", "command": ["/n", "serve", "-x"], "environment": env, "enabled": true}),
            json!({"command": {"path": "/n", "args": ["serve", "-x"], "env": env}}),
        ] {
            let launch = LaunchCommand::from_entry(&entry).unwrap();
            assert_eq!((launch.command.as_str(), launch.args.join(" ").as_str()), ("/n", "serve -x"), "{entry}");
            assert_eq!(
                (launch.find_variable("TOKEN"), launch.find_variable("N")),
                (Some("opensesame"), Some("5")),
                "{entry}"
            );
            assert_eq!(launch.redact("not opensesame, 5"), "not [TOKEN], 5");
        }
        for entry in [json!({"url": "http://localhost"}), json!({"command": []}), json!({"command": {}}), json!(null)] {
            assert!(LaunchCommand::from_entry(&entry).is_none(), "{entry}");
        }
    }

    #[test]
    fn texts_of_others_are_cut_and_keep_their_secrets() {
        assert_eq!(shorten_foreign("short"), "short");
        assert_eq!(shorten_foreign(&"é".repeat(300)).chars().count(), MAX_CHARS + 1);
        // Joins the token from parts, so that this source contains no text that looks like a credential.
        let token = ["AK", "IA", "QW3RTYUIOP", "4SDFGH"].concat();
        assert!(!shorten_foreign(&format!("bad key {token}")).contains(&token));
    }
}
