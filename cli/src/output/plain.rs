//! Prints any result as plain text, for the verbs without a view of their own: names and values, and a table for
//! each list of objects.

use std::fmt::Write as _;

use nudge_core::text::one_line;
use serde_json::{Map, Value};

use super::table::{cut, fitting};
use super::{FAINT, styled};

/// Longest text in a cell; `--json` prints all of it.
const MAX_CELL_CHARS: usize = 80;
/// To how many columns of the terminal a cell may be cut.
const LEAST_CELL: usize = 12;

/// Prints a result, with its members in their order.
pub fn plain(result: &Value) -> String {
    let Value::Object(members) = result else { return format!("{}\n", cell(result)) };
    if members.is_empty() {
        return styled(FAINT, "done") + "\n";
    }
    let mut out = String::new();
    let mut named: Vec<(String, String)> = Vec::new();
    for (name, value) in members {
        match (rows(value), value) {
            (Some(rows), _) => {
                out.push_str(&aligned(&std::mem::take(&mut named)));
                out.push_str(&listed(&rows));
            }
            (None, Value::Object(inner)) => {
                named.extend(inner.iter().map(|(inner, value)| (format!("{name}.{inner}"), cell(value))));
            }
            (None, _) => named.push((name.clone(), cell(value))),
        }
    }
    out + &aligned(&named)
}

/// Prints names and values in two aligned columns.
fn aligned(named: &[(String, String)]) -> String {
    let width = named.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    named.iter().fold(String::new(), |mut out, (name, value)| {
        let _ = writeln!(out, "{}", format!("{name:width$}  {value}").trim_end());
        out
    })
}

/// Returns the rows of a list of objects; `None` for everything else.
fn rows(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = value.as_array().filter(|list| !list.is_empty())?;
    list.iter().map(Value::as_object).collect()
}

fn listed(rows: &[&Map<String, Value>]) -> String {
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let head: Vec<_> = names.iter().map(|name| name.to_uppercase()).collect();
    let row =
        |row: &&Map<String, Value>| names.iter().map(|name| row.get(*name).map(cell).unwrap_or_default()).collect();
    // What stands further left matters more.
    let goes = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
    let columns: Vec<_> = head.iter().enumerate().map(|(at, head)| cut(head, LEAST_CELL, goes(at))).collect();
    fitting(&columns, rows.iter().map(|cells| (row(cells), false)).collect())
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    one_line(&text, MAX_CELL_CHARS)
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
        });
        assert_eq!(
            anstream::adapter::strip_str(&plain(&result)).to_string(),
            "count      2\nnote.name  a\nnote.tags  x, y\n\
             NAME  TEXT             N\na     one ⏎ \\u{1b}two\nb                      5\nnone\n"
        );
        assert_eq!(anstream::adapter::strip_str(&plain(&json!({}))).to_string(), "done\n");
        assert_eq!(plain(&json!("x")), "x\n");
    }
}
