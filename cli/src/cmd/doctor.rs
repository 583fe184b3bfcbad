//! `nudge doctor`

use std::time::Instant;

use nudge::{Error, Result};
use nudge_client::RuntimeDir;
use serde_json::{Map, Value, json};

use super::{CommandOutput, RunningSession, parsed, raw};
use crate::agents::doctor;
use crate::args::{Doctor, Global};
use crate::output;

/// Prints the report. The exit code is 1 when a check has failed.
pub fn run(args: &Doctor, global: &Global) -> Result<CommandOutput> {
    let clients = doctor::clients(args)?;
    let path = std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let session = session(global);
    let failed = |check: &Value| check["ok"] == false;
    let checks = clients.iter().filter_map(|client| client["checks"].as_array());
    let wrong = failed(&session) || checks.flatten().any(failed);
    let report =
        json!({"binary": {"path": path, "version": env!("CARGO_PKG_VERSION")}, "session": session, "clients": clients});
    let done = if global.json { super::json(&raw(&report)?) } else { output::doctor(&report).into() };
    Ok(CommandOutput { code: u8::from(wrong), ..done })
}

/// Checks that the session answers, and how fast. A missing session is no failure: the first agent starts it.
fn session(global: &Global) -> Value {
    let failed = |error: &Error| {
        let (what, fix) = doctor::advice(error);
        json!({"ok": false, "detail": what, "fix": fix})
    };
    match RuntimeDir::find(global.runtime_dir.as_deref()) {
        Ok(Some(dir)) if dir.is_held() => {}
        Ok(_) => return json!({"ok": null, "detail": "none runs; the first agent starts one"}),
        Err(error) => return failed(&error),
    }
    let begun = Instant::now();
    let status = RunningSession::open(global).and_then(|session| parsed(&session.call("nudge.status", &Map::new())?));
    match status {
        Ok(status) => {
            let mut out = json!({"ok": true, "ms": doctor::ms(begun.elapsed())});
            for name in ["role", "pid", "port", "version", "hints", "members"] {
                out[name] = status[name].clone();
            }
            out
        }
        Err(error) => failed(&error),
    }
}
