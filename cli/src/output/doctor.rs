//! Writes the output of `doctor`.

use std::fmt::Write as _;

use serde_json::Value;

use super::{BAD, FAINT, GOOD, STRONG, count_noun, make_visible, to_text, with_style};

/// Writes a line for each check. Below a failed check, writes the advice.
pub fn render_doctor(report: &Value) -> String {
    let binary = &report["binary"];
    let mut out = format!("{}\n", with_style(STRONG, "Nudge"));
    let [path, version] = ["path", "version"].map(|name| to_text(&binary[name]));
    let detail = format!("{path} ({version})");
    write_check(&mut out, &serde_json::json!({"ok": true, "detail": detail}), "binary");
    write_check(&mut out, &report["session"], "session");
    let data = || report["data"].as_array().into_iter().flatten();
    for check in data() {
        write_check(&mut out, check, &to_text(&check["name"]));
    }
    let (mut failed, mut warned) = (0, 0);
    let mut count = |check: &Value| {
        failed += u64::from(check["ok"] == false);
        warned += u64::from(is_warning(check));
    };
    data().chain([&report["session"]]).for_each(&mut count);
    for client in report["clients"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "\n{}", with_style(STRONG, to_text(&client["title"])));
        for check in client["checks"].as_array().into_iter().flatten() {
            write_check(&mut out, check, &to_text(&check["name"]));
            count(check);
        }
    }
    let told = match (failed, warned) {
        (0, 0) => "all is well".to_owned(),
        (0, warned) => format!("it works, with {}", count_noun(warned, "warning")),
        (failed, _) => format!("{} failed", count_noun(failed, "check")),
    };
    let _ = writeln!(out, "\n{told}");
    out
}

/// Returns true for a check that passed and still has advice.
fn is_warning(check: &Value) -> bool {
    check["ok"] == true && check["fix"].is_string()
}

fn write_check(out: &mut String, check: &Value, name: &str) {
    let mark = match &check["ok"] {
        Value::Bool(false) => with_style(BAD, "✘"),
        Value::Bool(true) if is_warning(check) => with_style(BAD, "!"),
        Value::Bool(true) => with_style(GOOD, "✔"),
        _ => with_style(FAINT, "-"),
    };
    let mut facts = Vec::new();
    // Only the check of the session has a role and a number of hints.
    if let (Some(role), Some(hints)) = (check["role"].as_str(), check["hints"].as_u64()) {
        let hints = count_noun(hints, "hint");
        let [pid, port, version] = ["pid", "port", "version"].map(|name| to_text(&check[name]));
        facts.push(format!("{} (pid {pid}, port {port}, version {version}) with {hints}", make_visible(role)));
    }
    facts.extend(check["ms"].as_f64().map(|ms| format!("{ms:.1} ms")));
    facts.extend(check["detail"].as_str().map(make_visible));
    let _ = writeln!(out, "  {mark} {name:<10}  {}", facts.join(", "));
    if let Some(fix) = check["fix"].as_str() {
        let _ = writeln!(out, "    {:<10}  {} {}", "", with_style(STRONG, "fix:"), make_visible(fix));
    }
}
