//! `nudge doctor`

mod hints;

use std::time::{Duration, Instant};

use nudge::{Error, ErrorKind, Result};
use nudge_agents::{doctor, find_binary};
use nudge_app::unserved::open_alone;
use nudge_app::{settings, sources};
use nudge_client::RuntimeDir;
use serde_json::{Map, Value, json};

use super::{CommandOutput, RunningSession, parse_value, to_raw};
use crate::args::{DoctorArgs, GlobalFlags};
use crate::output;

/// The longest wait for a PRIMARY whose files were removed. A living PRIMARY restores them within milliseconds.
const LIFE_PATIENCE: Duration = Duration::from_millis(500);

/// Prints the report. The exit code is 1 when a check has failed.
pub fn run(args: &DoctorArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    if args.hints {
        return hints::run(global);
    }
    let (session, status) = check_session(global);
    let mut data = check_data(&status)?;
    let clients = match doctor::check_clients(args) {
        // The checks of the sources' files run in any case.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            data.push(with_name("agents", failed_check(error.message())));
            Vec::new()
        }
        clients => clients?,
    };
    let path = find_binary()?.to_string_lossy().into_owned();
    let has_failed = |check: &Value| check["ok"] == false;
    let checks = clients.iter().filter_map(|client| client["checks"].as_array());
    let wrong = checks.flatten().chain(&data).chain([&session]).any(has_failed);
    let binary = json!({"path": path, "version": env!("CARGO_PKG_VERSION")});
    let report = json!({"binary": binary, "session": session, "data": data, "clients": clients});
    let done =
        if global.json { super::to_raw_output(&to_raw(&report)?) } else { output::render_doctor(&report).into() };
    Ok(CommandOutput { code: u8::from(wrong), ..done })
}

/// Checks the files of the sources in use, and the model. The report contains the model even if there is none, because
/// searches then compare only words. `status` is the session's status, null when no session runs: this process cannot
/// see which model the session's server has open.
fn check_data(status: &Value) -> Result<Vec<Value>> {
    let values = settings::read()?;
    let mut checks: Vec<_> = kept_hints(&status["keeping"]).into_iter().collect();
    for spec in sources::list_sources().iter().filter(|spec| spec.alone) {
        let standing = match status[spec.name] {
            Value::Object(_) => Ok(Some(status[spec.name].clone())),
            _ => open_alone(spec, &values).map(|source| {
                let status = source.in_use().then(|| source.report_status().remove(spec.name)).flatten();
                source.close();
                status
            }),
        };
        let check = match standing {
            Ok(None) => continue,
            Ok(Some(status)) => match status["error"].as_str() {
                Some(error) => failed_check(error),
                None => json!({"ok": true, "detail": output::render_members(&status)}),
            },
            Err(error) => failed_check(error.message()),
        };
        checks.push(with_name(spec.name, check));
    }
    let check = match sources::model_id(&values, &settings::data_dir(&values)) {
        Ok(Some(id)) => check_model(&id, status),
        Ok(None) => json!({"ok": null, "detail": "none; things are found by words alone (`nudge model add`)"}),
        Err(error) => failed_check(error.message()),
    };
    checks.push(with_name("model", check));
    Ok(checks)
}

/// Warns about hints that the session cannot write or has set aside. Returns `None` when there is nothing to report.
fn kept_hints(keeping: &Value) -> Option<Value> {
    let check = match (keeping["failed"].as_str(), keeping["aside"].as_str()) {
        (Some(why), _) if keeping["on"] == false => failed_check(why),
        (Some(why), _) => json!({"ok": false, "detail": why, "fix": "make room there, or make it writable"}),
        (None, Some(told)) => {
            let fix = "raise `max_hints` or delete hints for more room; `nudge hints recover FILE` reads a copy, `nudge import FILE` a JSON file";
            json!({"ok": true, "detail": told, "fix": fix})
        }
        (None, None) => return None,
    };
    Some(with_name("kept hints", check))
}

/// Checks the files of the model. Does not load the model: only a session that has loaded it can say whether it works.
fn check_model(id: &str, status: &Value) -> Value {
    let state = sources::list_sources().iter().find_map(|spec| status[spec.name]["model"].as_str());
    match state {
        Some("failed") => failed_check(&format!("The session could not load {id}; see its log, or take another one.")),
        Some("ready") => json!({"ok": true, "detail": format!("{id}, in the session's memory")}),
        _ => json!({"ok": true, "detail": format!("{id}, by its files; loaded when it is asked for")}),
    }
}

fn with_name(name: &str, mut check: Value) -> Value {
    check["name"] = name.into();
    check
}

/// Makes a failed check from an error's message.
fn failed_check(message: &str) -> Value {
    let (what, fix) = doctor::split_advice(message);
    json!({"ok": false, "detail": what, "fix": fix})
}

/// Checks whether the session answers, and how fast. Also returns the session's status. A missing session is no
/// failure, because the first agent starts one.
fn check_session(global: &GlobalFlags) -> (Value, Value) {
    let failed = |error: &Error| (failed_check(error.message()), Value::Null);
    let is_held = RuntimeDir::find(global.runtime_dir.as_deref())
        .and_then(|dir| dir.map_or(Ok(false), |dir| Ok(dir.look_at_lock()? || dir.ask_for_life(LIFE_PATIENCE))));
    match is_held {
        Ok(true) => {}
        Ok(false) => return (json!({"ok": null, "detail": "none runs; the first agent starts one"}), Value::Null),
        Err(error) => return failed(&error),
    }
    let begun = Instant::now();
    let status =
        RunningSession::open(global).and_then(|session| parse_value(&session.call("nudge.status", &Map::new())?));
    match status {
        Ok(status) => {
            let mut out = json!({"ok": true, "ms": doctor::to_millis(begun.elapsed())});
            for name in ["role", "pid", "port", "version", "hints", "members"] {
                out[name] = status[name].clone();
            }
            if let Some(told) = output::files_put_back(&status["files_put_back"]) {
                out["detail"] = told.into();
            }
            (out, status)
        }
        Err(error) => failed(&error),
    }
}
