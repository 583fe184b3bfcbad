//! Builds the report of a method's answer for a person.

use serde_json::Value;

/// An answer in the form that a person sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerReport {
    /// The lines above the table.
    pub lines: Vec<String>,
    /// The headings of a table; on a narrow terminal the last columns are dropped first.
    pub columns: &'static [&'static str],
    /// The rows. A time in UTC is shown in the reader's time zone.
    pub rows: Vec<Vec<String>>,
    /// The notes about the answer, for stderr.
    pub notes: Vec<String>,
    /// Is true when the method did nothing; the command then fails.
    pub is_refused: bool,
}

impl AnswerReport {
    /// Makes a report of one line.
    pub fn from_line(line: impl Into<String>) -> Self {
        Self { lines: vec![line.into()], ..Self::default() }
    }
}

/// Returns the elements of a list; an empty slice for any other value.
pub fn list_members(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Makes a row for each element of a list.
pub fn build_rows(list: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    list_members(list).iter().map(row).collect()
}

/// Formats a value as text. Null becomes an empty text, and the elements of a list follow one another.
///
/// ```
/// use nudge_core::report::format_value;
/// use serde_json::json;
///
/// let values = [json!(null), json!("a b"), json!(7), json!(["x", "y"])];
/// assert_eq!(values.map(|value| format_value(&value)), ["", "a b", "7", "x, y"]);
/// ```
pub fn format_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(format_value).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
