//! `nudge SOURCE edit NUMBER`: shows a record as lines `name: value`, then an empty line, then its last field.

use std::fmt::Write as _;

use nudge::{Error, Result};
use nudge_app::sources;
use nudge_core::service::EditSpec;
use serde_json::{Map, Value};

use super::super::{CommandOutput, editor, parse_value};
use super::{ask_source, show_result};
use crate::args::{GlobalFlags, SourceVerb};
use crate::output;

/// Reads the record, opens it in the editor, and stores the changed fields.
pub fn run(call: &SourceVerb, edited: &EditSpec, global: &GlobalFlags) -> Result<CommandOutput> {
    if !editor::is_there() {
        let names: Vec<_> = edited.fields.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("There is no terminal for an editor; give what changes by {}.", names.join(", "));
        return Err(edited.fields.iter().fold(Error::invalid(message), |error, name| error.about(name)));
    }
    let read = sources::find_method(edited.read).unwrap_or(call.method);
    let item = parse_value(&ask_source(SourceVerb { method: read, here: None, ..call.clone() }, global)?)?;
    let before = build_document(&item, edited);
    let was = parse_fields(&before, edited)?;
    let number = &call.params[edited.id];
    editor::edit_text(
        &format!("{}-{number}.md", call.source.name),
        &before,
        |_| false,
        |after| {
            let text = str::from_utf8(after).map_err(|_| Error::invalid("The text is not UTF-8; edit it again."))?;
            let mut params = parse_fields(text, edited)?;
            params.retain(|name, value| was.get(name) != Some(value));
            if params.is_empty() {
                return Ok(editor::report_unchanged());
            }
            params.insert(edited.id.into(), number.clone());
            params.insert(edited.version.1.into(), item[edited.version.0].clone());
            show_result(&ask_source(SourceVerb { params, ..call.clone() }, global)?, global)
        },
    )
}

/// Builds the text to edit.
fn build_document(item: &Value, edited: &EditSpec) -> String {
    let (lines, rest) = edited.fields.split_at(edited.fields.len() - 1);
    let text = |name: &str| item[name].as_str().unwrap_or("");
    let mut out = format!(
        "# Version {} of {}. The {} stands below the empty line; an empty file changes nothing.\n",
        item[edited.version.0], item[edited.id], rest[0]
    );
    for name in lines {
        let _ = writeln!(out, "{name}: {}", output::make_visible(text(name)));
    }
    let _ = writeln!(out, "\n{}", text(rest[0]));
    out
}

/// Reads the fields from the edited text.
fn parse_fields(text: &str, edited: &EditSpec) -> Result<Map<String, Value>> {
    let (lines, last) = edited.fields.split_at(edited.fields.len() - 1);
    let mut found = Map::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line = line.trim();
        if line.is_empty() {
            // Removes the line break at the end, which editors and `build_document` add.
            let body = rest.strip_suffix("\r\n").or_else(|| rest.strip_suffix('\n')).unwrap_or(rest);
            found.insert(last[0].into(), body.into());
            return Ok(found);
        }
        if line.starts_with('#') {
            continue;
        }
        let named = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
        let known = named.filter(|(name, _)| lines.contains(name));
        if known.is_none_or(|(name, value)| found.insert(name.into(), value.into()).is_some()) {
            let all = lines.join(", ");
            let message = format!("Above the empty line there is one line each of {all}, with a colon; edit it again.");
            return Err(Error::invalid(message));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EDITED: EditSpec = EditSpec {
        read: "nudge.x.get",
        id: "id",
        fields: &["title", "kind", "body"],
        version: ("version", "if_match_version"),
    };

    fn one(title: &str, body: &str) -> Value {
        json!({"id": 3, "version": 2, "title": title, "kind": "issue", "body": body})
    }

    #[test]
    fn what_is_not_touched_is_as_it_was() {
        for body in ["", "x", "x\n", "\n\n# x\r\ny: z\n\n", "title: other", " \t"] {
            let text = build_document(&one("A: title # of", body), &EDITED);
            let read = parse_fields(&text, &EDITED).unwrap();
            assert_eq!(Value::from(read), json!({"title": "A: title # of", "kind": "issue", "body": body}), "{text}");
        }
    }

    #[test]
    fn a_text_is_read_with_line_ends_of_any_kind_and_without_what_is_left_out() {
        let read = |text: &str| parse_fields(text, &EDITED).map(Value::from).unwrap();
        assert_eq!(read("\u{feff}# x\r\n title : a\r\n\r\nb\r\n"), json!({"title": "a", "body": "b"}));
        assert_eq!(read("kind: spec"), json!({"kind": "spec"}));
        assert_eq!(read("\nonly a body"), json!({"body": "only a body"}));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for bad in ["a title", "titel: x\n\nb", "title: a\ntitle: b\n", "body: x\n"] {
            assert!(parse_fields(bad, &EDITED).is_err(), "{bad}");
        }
    }
}
