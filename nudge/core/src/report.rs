//! Builds the report of an answer: tables and colours of it are the command line's, plain lines are a model's.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::text::visible_lines;

/// An answer as it is shown to a person, and to a model.
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
    /// The lines for a model, in place of the lines and rows above; empty where it reads those.
    pub model_lines: Vec<String>,
}

impl AnswerReport {
    /// Makes a report of one line.
    pub fn from_line(line: impl Into<String>) -> Self {
        Self { lines: vec![line.into()], ..Self::default() }
    }

    /// Makes a report of lines.
    pub fn from_lines(lines: Vec<String>) -> Self {
        Self { lines, ..Self::default() }
    }

    /// Makes the report of an answer that has none of its own: a line for each member, and for each row of a list.
    ///
    /// ```
    /// use nudge_core::report::AnswerReport;
    /// use serde_json::json;
    ///
    /// let answer = json!({"id": 5, "note": {"by": "amy"}, "found": [{"n": 1}, {"n": 2}], "late": [], "signal": null});
    /// let lines = AnswerReport::from_members(&answer).lines;
    /// assert_eq!(lines, ["id: 5", "note.by: amy", "found: n: 1", "found: n: 2", "late: none", "signal: none"]);
    /// ```
    pub fn from_members(answer: &Value) -> Self {
        let Value::Object(members) = answer else { return Self::from_line(format_value(answer)) };
        let mut lines = Vec::new();
        for (name, value) in members {
            match value {
                Value::Object(inner) => {
                    let inner = inner.iter().filter(|(_, value)| !value.is_null());
                    lines.extend(inner.map(|(inner, value)| describe_member(&format!("{name}.{inner}"), value)));
                }
                Value::Array(list) if list.iter().any(Value::is_object) => {
                    let row = |row: &Value| match row.as_object() {
                        Some(members) => {
                            let cells: Vec<_> =
                                members.iter().map(|(name, value)| describe_member(name, value)).collect();
                            join_cells(cells.iter().map(String::as_str))
                        }
                        None => format_value(row),
                    };
                    lines.extend(list.iter().map(|member| format!("{name}: {}", row(member))));
                }
                value => lines.push(describe_member(name, value)),
            }
        }
        if lines.is_empty() {
            lines.push("done".to_owned());
        }
        Self::from_lines(lines)
    }

    /// Writes the report as lines for a model, which reads no columns: the cells of a row stand one behind the other.
    /// Flags of the command line are called by the param that they give.
    ///
    /// ```
    /// use nudge_core::report::AnswerReport;
    ///
    /// let report = AnswerReport {
    ///     columns: &["ID", "TITLE"],
    ///     rows: vec![vec!["5".into(), "One".into()]],
    ///     notes: vec!["3 more; `--limit` shows them".into()],
    ///     ..AnswerReport::default()
    /// };
    /// assert_eq!(report.to_model_text(), "id, title\n5, One\n3 more; `limit` shows them");
    /// ```
    pub fn to_model_text(&self) -> String {
        let head = (!self.rows.is_empty()).then(|| self.columns.join(", ").to_lowercase());
        let row = |row: &Vec<String>| join_cells(row.iter().map(String::as_str));
        let lines: Vec<String> = if self.model_lines.is_empty() {
            self.lines.iter().cloned().chain(head).chain(self.rows.iter().map(row)).collect()
        } else {
            self.model_lines.clone()
        };
        let notes = self.notes.iter().map(|note| name_params(note));
        visible_lines(&lines.into_iter().chain(notes).collect::<Vec<_>>().join("\n"))
    }
}

fn describe_member(name: &str, value: &Value) -> String {
    let is_nothing = value.is_null() || *value == json!([]);
    let text = if is_nothing { "none".to_owned() } else { indent_text(&format_value(value)) };
    format!("{name}: {text}")
}

/// Joins the cells of a row; empty ones are left out.
fn join_cells<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    cells.filter(|cell| !cell.is_empty()).map(indent_text).collect::<Vec<_>>().join(", ")
}

/// Replaces the flags that a text names between backticks by the params that they give: `--max-bytes` by `max_bytes`.
fn name_params(text: &str) -> String {
    let mut parts = text.split("`--");
    let mut out = parts.next().expect("a split has a first part").to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(part.len());
        let _ = write!(out, "`{}{}", part[..end].replace('-', "_"), &part[end..]);
    }
    out
}

/// Indents the lines of a text after its first, so that none of them passes for a line of the answer.
///
/// ```
/// assert_eq!(nudge_core::report::indent_text("a\nb\n"), "a\n  b");
/// ```
pub fn indent_text(text: &str) -> String {
    text.trim_end_matches('\n').replace('\n', "\n  ")
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
