//! Builds the report of an answer for a person.

use serde_json::Value;

/// An answer as it is shown to a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerReport {
    /// The first lines.
    pub lines: Vec<String>,
    /// The heads of a table; where there is little room, the last go first.
    pub columns: &'static [&'static str],
    /// The rows. A time in UTC is shown in the reader's zone.
    pub rows: Vec<Vec<String>>,
    /// The notes beside it, on stderr.
    pub notes: Vec<String>,
    /// Nothing was done, so that the command has failed.
    pub is_refused: bool,
}

impl AnswerReport {
    /// Makes a report of one line.
    pub fn from_line(line: impl Into<String>) -> Self {
        Self { lines: vec![line.into()], ..Self::default() }
    }
}

/// The members of a list; none where it is none.
pub fn list_members(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A row for each member of a list.
pub fn build_rows(list: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    list_members(list).iter().map(row).collect()
}

/// A value as text: nothing of null, and members one after the other.
///
/// ```
/// use nudge_core::report::format_value;
/// use serde_json::json;
///
/// assert_eq!([json!(null), json!("a b"), json!(7), json!(["x", "y"])].map(|value| format_value(&value)), ["", "a b", "7", "x, y"]);
/// ```
pub fn format_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(format_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
