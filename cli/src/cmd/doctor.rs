//! `nudge doctor`

use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge::{Error, ErrorKind, Result};
use nudge_client::RuntimeDir;
use nudge_core::clock::SystemClock;
use nudge_core::embed::Model;
use serde_json::{Map, Value, json};

use super::source::open_alone;
use super::{CommandOutput, RunningSession, parsed, raw};
use crate::agents::doctor;
use crate::args::{Doctor, Global};
use crate::{output, settings, sources};

/// How long a model may take to load.
const MODEL_WAIT: Duration = Duration::from_secs(10);

/// Prints the report. The exit code is 1 when a check has failed.
pub fn run(args: &Doctor, global: &Global) -> Result<CommandOutput> {
    let mut data = data()?;
    let clients = match doctor::clients(args) {
        // What is kept is looked at all the same.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            data.push(named("agents", failed(error.message())));
            Vec::new()
        }
        clients => clients?,
    };
    let path = std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let session = session(global);
    let has_failed = |check: &Value| check["ok"] == false;
    let checks = clients.iter().filter_map(|client| client["checks"].as_array());
    let wrong = checks.flatten().chain(&data).chain([&session]).any(has_failed);
    let binary = json!({"path": path, "version": env!("CARGO_PKG_VERSION")});
    let report = json!({"binary": binary, "session": session, "data": data, "clients": clients});
    let done = if global.json { super::json(&raw(&report)?) } else { output::doctor(&report).into() };
    Ok(CommandOutput { code: u8::from(wrong), ..done })
}

/// Checks what sources keep in files, and the model. What nobody uses is left out, but for the model: without it things
/// are found by words alone.
fn data() -> Result<Vec<Value>> {
    let values = settings::read()?;
    let mut checks = Vec::new();
    for spec in sources::all().iter().filter(|spec| spec.alone) {
        let standing = open_alone(spec, &values).map(|source| {
            let status = source.in_use().then(|| source.status().remove(spec.name)).flatten();
            source.close();
            status
        });
        let check = match standing {
            Ok(None) => continue,
            Ok(Some(status)) => match status["error"].as_str() {
                Some(error) => failed(error),
                None => json!({"ok": true, "detail": output::members(&status)}),
            },
            Err(error) => failed(error.message()),
        };
        checks.push(named(spec.name, check));
    }
    let check = match sources::models(&values, &settings::data_dir(&values), Arc::new(SystemClock)).get(MODEL_WAIT) {
        Model::Ready(model) => json!({"ok": true, "detail": model.id()}),
        Model::Absent => json!({"ok": null, "detail": "none; things are found by words alone (`nudge model add`)"}),
        Model::Loading => json!({"ok": null, "detail": "it takes long to load; try again"}),
        Model::Failed(error) => failed(error.message()),
    };
    checks.push(named("model", check));
    Ok(checks)
}

fn named(name: &str, mut check: Value) -> Value {
    check["name"] = name.into();
    check
}

/// A check that failed with an error.
fn failed(message: &str) -> Value {
    let (what, fix) = doctor::advice(message);
    json!({"ok": false, "detail": what, "fix": fix})
}

/// Checks that the session answers, and how fast. A missing session is no failure: the first agent starts it.
fn session(global: &Global) -> Value {
    let failed = |error: &Error| failed(error.message());
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
