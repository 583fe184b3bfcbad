//! Reports what was recalled, in lines for a model.

use serde_json::Value;

use crate::report::{AnswerReport, format_value, list_members};
use crate::service::tool_name;

/// Bytes of an answer with reasons. A reason that does not fit beside the lines is left out, because a line is what was
/// asked for.
const MAX_EXPLAINED_BYTES: usize = 4_500;
/// Bytes kept for what is said below the lines.
const NOTES_BYTES: usize = 200;

/// Reports the result of `nudge.recall`: a line for each item, and below it the reason and the call that returns all of
/// it.
pub(super) fn report_recalled(answer: &Value) -> AnswerReport {
    let items = list_members(&answer["items"]);
    if items.is_empty() {
        let lines = vec!["nothing is remembered of this".to_owned()];
        return AnswerReport { notes: describe_rest(answer), ..AnswerReport::from_lines(lines) };
    }
    let told: usize = items.iter().map(|item| format_value(&item["line"]).len() + 1).sum();
    let mut room = MAX_EXPLAINED_BYTES.saturating_sub(told + NOTES_BYTES);
    let mut lines = Vec::with_capacity(2 * items.len());
    for item in items {
        lines.push(format_value(&item["line"]));
        let reason =
            format!("  {}: {}{}", format_value(&item["source"]), format_value(&item["why"]), describe_call(item));
        if let Some(left) = room.checked_sub(reason.len() + 1) {
            room = left;
            lines.push(reason);
        }
    }
    AnswerReport { notes: describe_rest(answer), ..AnswerReport::from_lines(lines) }
}

/// Describes the call that returns all of an item. The line of a hint begins with the component and key of that call.
fn describe_call(item: &Value) -> String {
    let more = &item["more"];
    match more["method"].as_str() {
        None => String::new(),
        Some("nudge.get_hint") => "; nudge_get_hint".to_owned(),
        Some(method) => format!("; {} {}", tool_name(method), more["params"]),
    }
}

/// Says what the limits held back, and which sources were late.
fn describe_rest(answer: &Value) -> Vec<String> {
    let omitted = answer["omitted"].as_u64().filter(|more| *more > 0);
    let omitted = omitted.map(|more| format!("{more} more; `limit` and `max_bytes` make room"));
    let late = list_members(&answer["late"]);
    let late = (!late.is_empty()).then(|| format!("no answer in time: {}", format_value(&answer["late"])));
    omitted.into_iter().chain(late).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_item_has_its_line_its_reason_and_its_call() {
        let hint = json!({"line": "web/build: make", "source": "hints", "why": "it says build",
            "more": {"method": "nudge.get_hint", "params": {"component": "web", "key": "build"}}});
        let record = json!({"line": "make fails", "source": "records", "why": "it holds make",
            "more": {"method": "nudge.records.get", "params": {"id": 5}}});
        let told = report_recalled(&json!({"items": [hint, record], "omitted": 2, "late": ["code"]})).to_model_text();
        let lines: Vec<_> = told.lines().collect();
        assert_eq!(
            lines,
            [
                "web/build: make",
                "  hints: it says build; nudge_get_hint",
                "make fails",
                "  records: it holds make; nudge_records_get {\"id\":5}",
                "2 more; `limit` and `max_bytes` make room",
                "no answer in time: code",
            ]
        );
        let nothing = report_recalled(&json!({"items": [], "omitted": 0})).to_model_text();
        assert_eq!(nothing, "nothing is remembered of this");
    }

    #[test]
    fn lines_that_fill_the_answer_leave_no_room_for_reasons() {
        let item = json!({"line": "x".repeat(399), "source": "code", "why": "y".repeat(200), "more": {"method": "nudge.code.node", "params": {"id": "z"}}});
        let told = report_recalled(&json!({"items": vec![item; 10], "omitted": 9})).to_model_text();
        assert_eq!(told.matches("xxx\n").count(), 10);
        assert!(told.len() <= MAX_EXPLAINED_BYTES, "{} bytes", told.len());
    }
}
