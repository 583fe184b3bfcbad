//! Reports the answers about hints, in lines for a model. The command line prints them with columns and colours of its
//! own.

use std::fmt::Write as _;

use nudge_core::report::{AnswerReport, format_value, indent_text, list_members};
use serde_json::Value;

/// Reports the result of `nudge.get_hint`.
pub(super) fn report_found(answer: &Value) -> AnswerReport {
    let hint = &answer["hint"];
    let mut lines = vec![describe_value(hint)];
    lines.extend(describe_meta(hint));
    lines.push(format!("applies {}, {}", describe_place(hint), describe_state(hint)));
    lines.push(describe_match(answer));
    AnswerReport::from_lines(lines)
}

/// Reports the result of `nudge.set_hint`.
pub(super) fn report_stored(answer: &Value) -> AnswerReport {
    let hint = &answer["hint"];
    let unchanged = if answer["unchanged"] == true { ", unchanged" } else { "" };
    // The model has just written the value, so it does not read it again.
    let (version, ttl) = (&hint["version"], format_value(&hint["meta"]["ttl"]));
    let mut lines = vec![format!("stored {}, v{version}, ttl {ttl}{unchanged}", describe_name(hint))];
    let place = answer["reach"].as_str().map_or_else(|| format!("applies {}", describe_place(hint)), str::to_owned);
    let variant = hint["variant"].as_str().map_or_else(String::new, |variant| format!(" (variant {variant})"));
    lines.push(place + &variant);
    lines.extend(["note", "keeping", "telling"].iter().filter_map(|name| answer[*name].as_str()).map(str::to_owned));
    if answer["previous"].is_object() {
        lines.push(format!("it replaced {}", describe_value(&answer["previous"])));
    }
    if let Some(variants @ 2..) = answer["variants"].as_u64() {
        lines.push(format!("the key has {variants} variants now"));
    }
    AnswerReport::from_lines(lines)
}

/// Reports the result of `nudge.query`: a line for each hint, and the reasons below it.
pub(super) fn report_matches(answer: &Value) -> AnswerReport {
    let rows = list_members(&answer["hints"]);
    if rows.is_empty() {
        return AnswerReport::from_line("no hint fits; nudge_list_components lists what there is");
    }
    let mut lines = Vec::with_capacity(3 * rows.len());
    for row in rows {
        let hint = &row["hint"];
        lines.push(describe_value(hint));
        lines.extend(describe_meta(hint).map(|meta| format!("  {meta}")));
        lines.push(format!("  {}; {}", describe_match(row), describe_state(hint)));
    }
    AnswerReport::from_lines(lines)
}

/// Reports the result of `nudge.bump`.
pub(super) fn report_bumped(answer: &Value) -> AnswerReport {
    let hint = &answer["hint"];
    AnswerReport::from_line(format!("counted: {}, {}", describe_name(hint), describe_state(hint)))
}

/// Reports the result of `nudge.delete_hint`.
pub(super) fn report_deleted(answer: &Value) -> AnswerReport {
    let count = match answer["deleted_count"].as_u64() {
        Some(count @ 2..) => format!("deleted {count} variants of "),
        _ => "deleted ".to_owned(),
    };
    // A repeated call about a secret does not name it again.
    let previous = &answer["previous"];
    let hint = if previous.is_null() { "a hint".to_owned() } else { describe_value(previous) };
    AnswerReport::from_line(format!("{count}{hint}"))
}

/// Reports the result of `nudge.list_components`.
pub(super) fn report_components(answer: &Value) -> AnswerReport {
    let components = list_members(&answer["components"]);
    if components.is_empty() {
        return AnswerReport::from_line("nothing is stored");
    }
    let count = |row: &Value| format!("{}: {} hints", format_value(&row["name"]), row["hint_count"]);
    AnswerReport::from_lines(components.iter().map(count).collect())
}

/// Reports the result of `nudge.import`.
pub(super) fn report_imported(answer: &Value) -> AnswerReport {
    let removed = answer["removed"].as_u64().map_or_else(String::new, |removed| format!(", removed {removed}"));
    let mut lines = vec![format!("imported {}, skipped {}{}", answer["imported"], answer["skipped"], removed)];
    let refusal = |error: &Value| format!("{}: {}", describe_name(error), format_value(&error["reason"]));
    lines.extend(list_members(&answer["errors"]).iter().map(refusal));
    AnswerReport::from_lines(lines)
}

fn describe_name(hint: &Value) -> String {
    format!("{}/{}", format_value(&hint["component"]), format_value(&hint["key"]))
}

/// Returns name and value in full, and the kind of a value that is no plain text.
fn describe_value(hint: &Value) -> String {
    let value = &hint["value"];
    let text = [value, &value["cmd"], &value["abs"], &value["body"]].into_iter().find_map(Value::as_str);
    let text = text.map_or_else(|| value["data"].to_string(), indent_text);
    let kind = value["type"].as_str().map(|kind| {
        let more =
            ["shell", "os", "format", "defaults"].iter().map(|name| &value[*name]).filter(|more| !more.is_null());
        more.fold(kind.to_owned(), |kind, more| format!("{kind}, {}", format_value(more)))
    });
    format!("{}: {text}{}", describe_name(hint), kind.map_or_else(String::new, |kind| format!(" ({kind})")))
}

/// Describes what was said about a hint, besides where it applies.
fn describe_meta(hint: &Value) -> Option<String> {
    let meta = &hint["meta"];
    let fact = |name: &str| {
        let text = indent_text(&format_value(&meta[name]));
        (!text.is_empty()).then(|| format!("{name}: {text}"))
    };
    let facts: Vec<_> =
        ["reason", "tags", "priority", "confidence", "sensitivity"].into_iter().filter_map(fact).collect();
    (!facts.is_empty()).then(|| facts.join("; "))
}

fn describe_place(hint: &Value) -> String {
    let Some(scope) = hint["meta"]["scope"].as_object() else { return "everywhere".to_owned() };
    let field = |(name, value): (&String, &Value)| format!("{name}={}", format_value(value));
    format!("where {}", scope.iter().map(field).collect::<Vec<_>>().join(" "))
}

/// Describes variant, version, age and use: a later call may have to name them.
fn describe_state(hint: &Value) -> String {
    let variant = hint["variant"].as_str().map_or_else(String::new, |variant| format!("variant {variant} "));
    let mut out = format!("{}v{} of {}", variant, hint["version"], format_value(&hint["updated_at"]));
    let _ = write!(out, ", ttl {}", format_value(&hint["meta"]["ttl"]));
    if let Some(author) = hint["meta"]["added_by"].as_str().or(hint["meta"]["source"].as_str()) {
        let _ = write!(out, ", by {author}");
    }
    for (name, word) in [("use_count", "used"), ("failure_count", "failed")] {
        if let Some(count) = hint[name].as_u64() {
            let _ = write!(out, ", {word} {count}x");
        }
    }
    out
}

/// Describes why a hint was chosen, or what speaks against it.
fn describe_match(row: &Value) -> String {
    let explain = &row["match_explain"];
    let reasons: Vec<_> = list_members(&explain["reasons"]).iter().map(format_value).collect();
    let head = if explain["matched"] == false { "not here: " } else { "" };
    let reasons = if reasons.is_empty() { "it fits everywhere".to_owned() } else { reasons.join("; ") };
    format!("{head}{reasons} (score {})", format_value(&explain["score"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hint_is_told_in_lines() {
        let hint = json!({"component": "web", "key": "build", "variant": "a1", "value": {"type": "command", "shell": "zsh", "cmd": "make\nmake x"},
            "meta": {"reason": "it is quick", "tags": ["a", "b"], "ttl": "P30D", "scope": {"branch": ["main"], "repo": ["x", "y"]}, "added_by": "agent:t"},
            "version": 2, "updated_at": "2026-01-01T00:00:00Z", "use_count": 3});
        let explain = json!({"matched": true, "score": 0.5, "reasons": ["repo=x matched", "used 3 times"]});
        let told = report_found(&json!({"hint": hint, "match_explain": explain})).to_model_text();
        assert_eq!(
            told,
            "web/build: make\n  make x (command, zsh)\nreason: it is quick; tags: a, b\n\
             applies where branch=main repo=x, y, variant a1 v2 of 2026-01-01T00:00:00Z, ttl P30D, by agent:t, used 3x\n\
             repo=x matched; used 3 times (score 0.5)"
        );
        let stored = report_stored(
            &json!({"hint": hint, "variants": 2, "keeping": "it ends", "previous": {"component": "web", "key": "build", "value": "old"}}),
        );
        let told = stored.to_model_text();
        assert_eq!(
            told,
            "stored web/build, v2, ttl P30D\napplies where branch=main repo=x, y (variant a1)\n\
             it ends\nit replaced web/build: old\nthe key has 2 variants now"
        );
    }

    #[test]
    fn lists_and_nothing_are_told_in_lines() {
        let row = json!({"hint": {"component": "a", "key": "b", "value": {"type": "json", "data": {"a": 2, "z": 1}}, "meta": {"ttl": "session"}, "version": 1, "updated_at": "T"},
            "match_explain": {"matched": false, "score": 0.1, "reasons": ["cwd is not /x"]}});
        assert_eq!(
            report_matches(&json!({"hints": [row]})).to_model_text(),
            "a/b: {\"a\":2,\"z\":1} (json)\n  not here: cwd is not /x (score 0.1); v1 of T, ttl session"
        );
        assert!(report_matches(&json!({"hints": []})).to_model_text().starts_with("no hint fits"));
        assert_eq!(report_components(&json!({"components": [{"name": "a", "hint_count": 2}]})).lines, ["a: 2 hints"]);
        let import =
            json!({"imported": 1, "skipped": 1, "errors": [{"component": "a", "key": "b", "reason": "E_INVALID"}]});
        assert_eq!(report_imported(&import).lines, ["imported 1, skipped 1", "a/b: E_INVALID"]);
        let deleted = json!({"deleted_count": 2, "previous": {"component": "a", "key": "b", "value": "v"}});
        assert_eq!(report_deleted(&deleted).lines, ["deleted 2 variants of a/b: v"]);
    }
}
