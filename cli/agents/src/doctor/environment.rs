//! Finds environment variables that a client does not pass on to the servers that it starts.

use std::path::Path;

use serde_json::{Value, json};

use super::settings::ServerEntry;
use crate::clients::ClientSpec;

/// The variable that names the session's directory.
const SESSION: &str = "NUDGE_RUNTIME_DIR";
/// The clients that pass only a dozen environment variables to their servers, without those of Nudge. Their hooks get
/// all variables.
const SCRUBBING: &[&str] = &["codex"];

/// Returns true when the client does not pass the user's [`SESSION`] to the entry's server. The server would then join
/// another session than the hooks.
pub fn withholds_session(client: &ClientSpec, entry: &Value) -> bool {
    let is_set = entry["env"][SESSION].as_str().is_some_and(|dir| !dir.is_empty());
    let passed = |variable: &Value| variable == SESSION || variable["name"] == SESSION;
    let is_passed = entry["env_vars"].as_array().is_some_and(|variables| variables.iter().any(passed));
    find_withheld(client).is_some() && !is_set && !is_passed
}

/// Returns advice on how to pass the user's session to the server. Returns `None` when the client passes it on.
pub fn advise_on_session(client: &ClientSpec, entry: &ServerEntry) -> Option<String> {
    let env = format!("env = {{ {SESSION} = {} }}", json!(find_withheld(client)?));
    Some(if entry.by_plugin {
        correct_plugin(&env, &entry.file)
    } else {
        format!("put `{env}` under [mcp_servers.nudge] in {}", entry.file.display())
    })
}

/// Returns advice for the plugin. The user cannot change the plugin's entry, and therefore needs another entry as well.
fn correct_plugin(env: &str, file: &Path) -> String {
    let entry = format!("`command = \"nudge\"`, `args = [\"serve\"]` and `{env}`");
    format!("put [mcp_servers.nudge] with {entry} into {}", file.display())
}

/// Returns the user's [`SESSION`] if it is set and the client withholds it from servers.
fn find_withheld(client: &ClientSpec) -> Option<String> {
    let dir = std::env::var_os(SESSION).filter(|dir| !dir.is_empty())?;
    SCRUBBING.contains(&client.name).then(|| dir.to_string_lossy().into_owned())
}
