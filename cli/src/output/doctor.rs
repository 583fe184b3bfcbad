//! The output of `doctor`.

use std::fmt::Write as _;

use serde_json::Value;

use super::{BAD, FAINT, GOOD, STRONG, plural, styled, text, visible};

/// Prints a line for each check, with the fix below a failed one.
pub fn doctor(report: &Value) -> String {
    let binary = &report["binary"];
    let mut out = format!("{}\n", styled(STRONG, "Nudge"));
    line(&mut out, &serde_json::json!({"ok": true, "detail": in_words(binary)}), "binary");
    line(&mut out, &report["session"], "session");
    let data = report["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    for check in data {
        line(&mut out, check, &text(&check["name"]));
    }
    let (mut failed, mut warned) = (0, 0);
    let mut count = |check: &Value| {
        failed += u64::from(check["ok"] == false);
        warned += u64::from(is_warning(check));
    };
    data.iter().chain([&report["session"]]).for_each(&mut count);
    for client in report["clients"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "\n{}", styled(STRONG, text(&client["title"])));
        for check in client["checks"].as_array().into_iter().flatten() {
            line(&mut out, check, &text(&check["name"]));
            count(check);
        }
    }
    let told = match (failed, warned) {
        (0, 0) => "all is well".to_owned(),
        (0, warned) => format!("it works, with {}", plural(warned, "warning")),
        (failed, _) => format!("{} failed", plural(failed, "check")),
    };
    let _ = writeln!(out, "\n{told}");
    out
}

/// Returns true for a check that works but has advice.
fn is_warning(check: &Value) -> bool {
    check["ok"] == true && check["fix"].is_string()
}

fn in_words(binary: &Value) -> String {
    format!("{} ({})", binary["path"].as_str().unwrap_or_default(), binary["version"].as_str().unwrap_or_default())
}

fn line(out: &mut String, check: &Value, name: &str) {
    let mark = match &check["ok"] {
        Value::Bool(false) => styled(BAD, "✘"),
        Value::Bool(true) if is_warning(check) => styled(BAD, "!"),
        Value::Bool(true) => styled(GOOD, "✔"),
        _ => styled(FAINT, "-"),
    };
    let mut facts = Vec::new();
    // Only the session's check has these fields.
    if let Some(role) = check["role"].as_str() {
        let hints = plural(check["hints"].as_u64().unwrap_or_default(), "hint");
        let [pid, port, version] = ["pid", "port", "version"].map(|name| text(&check[name]));
        facts.push(format!("{} (pid {pid}, port {port}, version {version}) with {hints}", visible(role)));
    }
    facts.extend(check["ms"].as_f64().map(|ms| format!("{ms:.1} ms")));
    facts.extend(check["detail"].as_str().map(visible));
    let _ = writeln!(out, "  {mark} {name:<10}  {}", facts.join(", "));
    if let Some(fix) = check["fix"].as_str() {
        let _ = writeln!(out, "    {:<10}  {} {}", "", styled(STRONG, "fix:"), visible(fix));
    }
}
