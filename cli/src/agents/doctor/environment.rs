//! What a client keeps from the servers that it starts.

use std::path::Path;

use serde_json::{Value, json};

use super::settings::ServerEntry;
use crate::agents::clients::Client;

/// The variable by which a session is found.
const SESSION: &str = "NUDGE_RUNTIME_DIR";
/// Clients that give their servers a dozen variables of the environment, none of which is ours. Hooks get them all.
const SCRUBBING: &[&str] = &["codex"];

/// Whether the user's session is kept from the server of an entry: it would be in another one than the hooks.
pub fn keeps_session(client: &Client, entry: &Value) -> bool {
    let is_set = entry["env"][SESSION].as_str().is_some_and(|dir| !dir.is_empty());
    let passed = |variable: &Value| variable == SESSION || variable["name"] == SESSION;
    let is_passed = entry["env_vars"].as_array().is_some_and(|variables| variables.iter().any(passed));
    session(client).is_some() && !is_set && !is_passed
}

/// What to do so that its server gets the user's session, where it is kept from it.
pub fn correct(client: &Client, entry: &ServerEntry) -> Option<String> {
    let env = format!("env = {{ {SESSION} = {} }}", json!(session(client)?));
    Some(if entry.by_plugin {
        correct_plugin(&env, &entry.file)
    } else {
        format!("put `{env}` under [mcp_servers.nudge] in {}", entry.file.display())
    })
}

/// The plugin's own entry cannot be changed: it takes one of the user's.
fn correct_plugin(env: &str, file: &Path) -> String {
    let entry = format!("`command = \"nudge\"`, `args = [\"serve\"]` and `{env}`");
    format!("put [mcp_servers.nudge] with {entry} into {}", file.display())
}

/// The user's session as it is named here, if the client keeps it from servers.
fn session(client: &Client) -> Option<String> {
    let dir = std::env::var_os(SESSION).filter(|dir| !dir.is_empty())?;
    SCRUBBING.contains(&client.name).then(|| dir.to_string_lossy().into_owned())
}
