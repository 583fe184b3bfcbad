//! What people read. Scripts use `--json`.

use std::fmt::Write as _;

use serde_json::Value;

/// The exit code for an error: 1 not found, 2 invalid input, 3 no server, 4 any other refusal.
pub fn exit_code(error: &nudge::Error) -> u8 {
    use nudge::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => 1,
        Kind::Invalid | Kind::ScopeInvalid | Kind::UnknownMethod | Kind::ParamsNotObject => 2,
        Kind::Unavailable => 3,
        _ => 4,
    }
}

/// Text with control, bidi and zero-width characters made visible, so that a stored value cannot
/// steer a terminal.
pub fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// As [`visible`], with line breaks kept and the lines after the first indented by `indent`.
fn block(text: &str, indent: usize) -> String {
    let lines: Vec<_> = text.trim_end_matches('\n').split('\n').map(visible).collect();
    lines.join(&format!("\n{:indent$}", ""))
}

/// The text of a hint's value; a secret is never shown.
pub fn value_text(hint: &Value) -> String {
    if hint["meta"]["sensitivity"] == "secret" {
        return "[secret]".into();
    }
    let value = &hint["value"];
    let text = [value, &value["cmd"], &value["abs"], &value["body"]].into_iter().find_map(Value::as_str);
    text.map_or_else(|| value["data"].to_string(), str::to_owned)
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), visible)
}

/// What `set` prints.
pub fn stored(result: &Value) -> String {
    let hint = &result["hint"];
    let mut out =
        format!("✔ upserted hint {}/{} (v{})\n", text(&hint["component"]), text(&hint["key"]), hint["version"]);
    let meta = &hint["meta"];
    let list = |value: &Value| value.as_array().map(|list| list.iter().map(text).collect::<Vec<_>>().join(","));
    let mut facts = Vec::new();
    facts.extend(meta["priority"].as_u64().map(|priority| format!("priority={priority}")));
    facts.extend(list(&meta["tags"]).map(|tags| format!("tags={tags}")));
    facts.push(format!("ttl={}", text(&meta["ttl"])));
    let fields = meta["scope"].as_object().map(|scope| scope.keys().cloned().collect::<Vec<_>>().join(","));
    facts.push(format!("scope={}", fields.unwrap_or_else(|| "everywhere".into())));
    let _ = writeln!(out, "  score base: {}", facts.join(" "));
    if result["variants"].as_u64().is_some_and(|variants| variants > 1) {
        let _ = writeln!(out, "  the key has {} variants now", result["variants"]);
    }
    out
}

/// What `get` prints.
pub fn found(result: &Value) -> String {
    let mut out = format!("value: {}\n", block(&value_text(&result["hint"]), 7));
    let explain = &result["match_explain"];
    let _ = writeln!(out, "match:\n  score: {:.2}\n  reasons:", explain["score"].as_f64().unwrap_or_default());
    for reason in explain["reasons"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "    - {}", text(reason));
    }
    out
}

/// What `query` prints: name, score and value, aligned.
pub fn rows(result: &Value) -> String {
    let rows: Vec<_> = result["hints"].as_array().into_iter().flatten().collect();
    let names: Vec<_> =
        rows.iter().map(|row| format!("{}/{}", text(&row["hint"]["component"]), text(&row["hint"]["key"]))).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for (row, name) in rows.iter().zip(&names) {
        let score = row["score"].as_f64().unwrap_or_default();
        let _ = writeln!(out, "{name:width$}  {score:.2}  {}", block(&value_text(&row["hint"]), width + 8));
        if row["match_explain"]["matched"] == false {
            let _ = writeln!(out, "{:width$}        not here: {}", "", text(&row["match_explain"]["reasons"][0]));
        }
    }
    if out.is_empty() { "no hints\n".into() } else { out }
}

/// What `status` prints.
pub fn status(result: &Value) -> String {
    let mut out = String::new();
    for (name, value) in result.as_object().into_iter().flatten() {
        match value.as_object() {
            Some(inner) => {
                let inner: Vec<_> = inner.iter().map(|(name, value)| format!("{name} {}", text(value))).collect();
                let _ = writeln!(out, "{name:<11} {}", inner.join(", "));
            }
            None => {
                let _ = writeln!(out, "{name:<11} {}", text(value));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(visible("a\u{1b}[31m\u{202e}b\u{200b}é"), "a\\u{1b}[31m\\u{202e}b\\u{200b}é");
        let hint = json!({"component": "a\u{7}", "key": "k", "value": "x\n\u{1b}]52;y", "meta": {}});
        let row = json!({"hints": [{"hint": hint, "score": 0.5, "match_explain": {"matched": true, "reasons": []}}]});
        assert_eq!(rows(&row), "a\\u{7}/k  0.50  x\n                \\u{1b}]52;y\n");
    }

    #[test]
    fn secrets_are_hidden() {
        let hint = json!({"value": "open", "meta": {"sensitivity": "secret"}});
        assert_eq!(
            found(&json!({"hint": hint, "match_explain": {"score": 0.5, "reasons": ["x"]}})),
            "value: [secret]\nmatch:\n  score: 0.50\n  reasons:\n    - x\n"
        );
    }
}
