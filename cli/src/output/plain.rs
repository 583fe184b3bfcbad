//! Prints any result as plain text, for verbs without their own format: names with values, and a table for each list of
//! objects.

use std::fmt::Write as _;

use nudge_core::clock::rfc3339;
use nudge_core::report::AnswerReport;
use nudge_core::text::one_line;
use serde_json::{Map, Value};

use super::table::{cut_column, render_fitting};
use super::time::to_local;
use super::{FAINT, visible_lines, with_style};

/// The most characters of a text in a cell; `--json` prints the whole text.
const MAX_CELL_CHARS: usize = 80;
/// The least width of a cell after a cut, in terminal columns.
const LEAST_CELL: usize = 12;

/// Prints a result. The members keep their order.
pub fn render_plain(result: &Value) -> String {
    let Value::Object(members) = result else { return format!("{}\n", to_cell(result)) };
    if members.is_empty() {
        return with_style(FAINT, "done") + "\n";
    }
    let mut out = String::new();
    let mut named: Vec<(String, String)> = Vec::new();
    for (name, value) in members {
        match (read_rows(value), value) {
            (Some(rows), _) => {
                out.push_str(&align_columns(&std::mem::take(&mut named)));
                out.push_str(&render_table(&rows));
            }
            (None, Value::Object(inner)) => {
                named.extend(inner.iter().map(|(inner, value)| (format!("{name}.{inner}"), to_whole_text(value))));
            }
            (None, _) => named.push((name.clone(), to_whole_text(value))),
        }
    }
    out + &align_columns(&named)
}

/// Prints an answer for users, without its notes.
pub fn render_report(report: &AnswerReport) -> String {
    let mut out = String::new();
    for line in &report.lines {
        let _ = writeln!(out, "{}", visible_lines(line));
    }
    if !report.rows.is_empty() {
        let columns: Vec<_> =
            (0..).zip(report.columns).map(|(index, head)| cut_column(head, LEAST_CELL, index)).collect();
        let cells =
            |row: &Vec<String>| row.iter().map(|text| one_line(&with_local_time(text), MAX_CELL_CHARS)).collect();
        out.push_str(&render_fitting(&columns, report.rows.iter().map(|row| (cells(row), false)).collect()));
    }
    out
}

/// Prints names and values in two aligned columns.
fn align_columns(named: &[(String, String)]) -> String {
    let width = named.iter().map(|(name, _)| name.chars().count()).fold(0, usize::max);
    named.iter().fold(String::new(), |mut out, (name, value)| {
        // Prints a text with several lines below its name.
        let _ = if value.contains('\n') {
            writeln!(out, "{name}\n  {}", value.trim_end().replace('\n', "\n  "))
        } else {
            writeln!(out, "{}", format!("{name:width$}  {value}").trim_end())
        };
        out
    })
}

/// Returns the rows of a list of objects. Returns `None` for any other value.
fn read_rows(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    list.iter().map(Value::as_object).collect()
}

fn render_table(rows: &[&Map<String, Value>]) -> String {
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let head: Vec<_> = names.iter().map(|name| name.to_uppercase()).collect();
    let row =
        |row: &&Map<String, Value>| names.iter().map(|name| to_cell(row.get(*name).unwrap_or(&Value::Null))).collect();
    // The further right a column is, the earlier it is left out. All columns after the 255th are left out first.
    let goes = (0..u8::MAX).chain(std::iter::repeat(u8::MAX));
    let columns: Vec<_> = head.iter().zip(goes).map(|(head, goes)| cut_column(head, LEAST_CELL, goes)).collect();
    render_fitting(&columns, rows.iter().map(|cells| (row(cells), false)).collect())
}

/// Returns the complete text of a value.
fn to_whole_text(value: &Value) -> String {
    match value {
        Value::Array(list) if list.is_empty() => "none".to_owned(),
        _ => visible_lines(&to_text(value)),
    }
}

fn to_cell(value: &Value) -> String {
    one_line(&to_text(value), MAX_CELL_CHARS)
}

fn to_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => with_local_time(text),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Converts a time in UTC to the user's time zone. Any other text stays as it is.
fn with_local_time(text: &str) -> String {
    match rfc3339::parse(text) {
        Some(time) if text.ends_with('Z') => to_local(time),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_values_and_tables() {
        let result = json!({
            "count": 2,
            "note": {"name": "a", "tags": ["x", "y"]},
            "notes": [{"name": "a", "text": "one\n\u{1b}two"}, {"name": "b", "n": 5}],
            "none": [],
            "text": "one\n\u{1b}two\n",
        });
        assert_eq!(
            anstream::adapter::strip_str(&render_plain(&result)).to_string(),
            "count      2\nnote.name  a\nnote.tags  x, y\n\
             NAME  TEXT             N\na     one ⏎ \\u{1b}two\nb                      5\nnone  none\ntext\n  one\n  \\u{1b}two\n"
        );
        assert_eq!(anstream::adapter::strip_str(&render_plain(&json!({}))).to_string(), "done\n");
        assert_eq!(render_plain(&json!("x")), "x\n");
    }
}
