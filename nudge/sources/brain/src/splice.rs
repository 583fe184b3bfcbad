//! Changes one field in the frontmatter of a file: replaces the lines of the field, and keeps every other byte. The
//! change is made only if a parser then sees the new value of this field and no other difference.

use std::fmt::Write as _;

use nudge_core::error::{Error, Result};
use nudge_core::text::{escape_hidden, is_hidden, one_line};
use serde_json::Value;
use serde_norway::Value as Yaml;

use crate::front::{FileParts, find_foreign_fields, parse_mapping, split_file};

/// The most characters of the new line that an error message shows. The data of the error has the whole line.
const LINE_CHARS: usize = 400;

/// The text of a file with a changed field, and the lines that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplicedFile {
    /// The new text of the file.
    pub text: String,
    /// The removed and the added lines, in the form of a diff.
    pub diff: String,
}

/// Sets a field at the top level of the frontmatter. The value may be a text, a number, a truth value, or a list of
/// these. An item of a list may also be a mapping from names to texts.
///
/// # Errors
/// `E_INVALID` for a name or a value that is not supported. `E_CONFLICT` when the change cannot be limited to the lines
/// of one field.
///
/// ```
/// use nudge_brain::splice::set_field;
/// use serde_json::json;
///
/// let text = "---\nid: a\nconfidence: 0.8  # guessed\n---\nText.\n";
/// let set = set_field(text, "confidence", &json!(0.9))?;
/// assert_eq!(set.text, "---\nid: a\nconfidence: 0.9  # guessed\n---\nText.\n");
/// assert_eq!(set.diff, "-confidence: 0.8  # guessed\n+confidence: 0.9  # guessed\n");
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
pub fn set_field(text: &str, name: &str, value: &Value) -> Result<SplicedFile> {
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name {
        return Err(Error::invalid("`field` must be a name of letters, digits, `_` and `-`.").about("field"));
    }
    let flow = to_flow_yaml(value)?;
    let end = if text.lines().next().is_some_and(|_| text.contains("\r\n")) { "\r\n" } else { "\n" };
    if let Some(why) = find_foreign_fields(text) {
        return Err(foreign_error(name, &flow, why));
    }
    let FileParts { open, yaml, close, body } = split_file(text);
    if open.is_empty() {
        let added = format!("{name}: {flow}{end}");
        let text = format!("---{end}{added}---{end}{body}");
        let is_read =
            split_file(&text).yaml == added && split_file(&text).body == body && !body.starts_with('\u{feff}');
        if !is_read {
            return Err(conflict_error(name, &added));
        }
        check_change("", &added, name, &flow)?;
        return Ok(SplicedFile { text, diff: format!("+---\n+{name}: {flow}\n+---\n") });
    }
    let (range, lines) = match find_field(yaml, name) {
        Some(found) => {
            let key = &found.first[..found.colon];
            (found.range, format!("{key}: {flow}{}{}", found.comment, found.end))
        }
        None => (yaml.len()..yaml.len(), format!("{name}: {flow}{end}")),
    };
    let old = &yaml[range.clone()];
    let new = [&yaml[..range.start], &lines, &yaml[range.end..]].concat();
    check_change(yaml, &new, name, &flow)?;
    let side = |sign: &'static str, lines: &str| lines.lines().flat_map(|line| [sign, line, "\n"]).collect::<String>();
    let diff = side("-", old) + &side("+", &lines);
    Ok(SplicedFile { text: [open, &new, close, body].concat(), diff })
}

/// Returns a value as one line of YAML. A JSON string is a valid double-quoted string in YAML.
fn to_flow_yaml(value: &Value) -> Result<String> {
    let refused =
        || Error::invalid("`value` must be a text, a number, true, false, or a list of those.").about("value");
    match value {
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::String(text) => Ok(to_yaml_scalar(text)),
        Value::Array(list) => {
            let items = list.iter().map(|item| match item {
                Value::Array(_) => Err(refused()),
                Value::Object(fields) => {
                    let fields = fields.iter().map(|(name, value)| match value {
                        Value::String(text) => Ok(format!("{}: {}", to_yaml_scalar(name), to_yaml_scalar(text))),
                        _ => Err(refused()),
                    });
                    Ok(format!("{{{}}}", fields.collect::<Result<Vec<_>>>()?.join(", ")))
                }
                item => to_flow_yaml(item),
            });
            Ok(format!("[{}]", items.collect::<Result<Vec<_>>>()?.join(", ")))
        }
        Value::Null | Value::Object(_) => Err(refused()),
    }
}

/// Returns a text as a YAML scalar: without quotes if it then means the same text in every position, else with quotes.
fn to_yaml_scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_alphabetic())
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '/' | '.'))
        && !text.ends_with(' ')
        && serde_norway::from_str::<Yaml>(text).is_ok_and(|read| read.as_str() == Some(text));
    if is_plain {
        return text.to_owned();
    }
    // YAML reads some of these characters as the end of a line, so they are escaped.
    escape_hidden(&Value::from(text).to_string(), is_hidden, |out, c| {
        let _ = write!(out, "\\U{:08x}", u32::from(c));
    })
}

/// The lines of a field in the frontmatter.
struct FieldLines<'a> {
    range: std::ops::Range<usize>,
    /// The first line of the field. `colon` is the offset of the colon in this line.
    first: &'a str,
    colon: usize,
    /// The comment after a value that has one line, with the blanks before the comment.
    comment: &'a str,
    /// The line end of the last line: `\n`, `\r\n`, or empty at the end of the file.
    end: &'a str,
}

/// Finds a field. The lines of a field begin with the name in column 0, and end before the next name in column 0. Blank
/// lines, and comments in column 0, belong to the field only if more of the value follows.
fn find_field<'a>(yaml: &'a str, name: &str) -> Option<FieldLines<'a>> {
    let mut offset = 0;
    let mut found: Option<FieldLines<'a>> = None;
    for line in yaml.split_inclusive('\n') {
        let begin = offset;
        offset += line.len();
        let text = line.trim_end();
        if let Some(field) = &mut found {
            if begins_field(text) {
                break;
            }
            // More of the value may follow a blank line or a comment.
            if !text.is_empty() && !text.starts_with('#') {
                field.range.end = offset;
                field.comment = "";
            }
        } else if let Some(colon) = colon_of(text, name) {
            let comment = find_comment(&line.trim_end_matches(['\r', '\n'])[colon + 1..]);
            found = Some(FieldLines { range: begin..offset, first: text, colon, comment, end: "" });
        }
    }
    let mut found = found?;
    let lines = &yaml[..found.range.end];
    found.end = &lines[lines.trim_end_matches(['\r', '\n']).len()..];
    Some(found)
}

/// Returns true when a line begins another field: the text starts in column 0 and does not continue a value.
fn begins_field(line: &str) -> bool {
    let is_item = line == "-" || line.starts_with("- ") || line.starts_with("-\t");
    !line.is_empty() && !line.starts_with([' ', '\t', '#', ']', '}']) && !is_item
}

/// Returns the offset of the colon after a name; `None` if the line does not begin with this name.
fn colon_of(line: &str, name: &str) -> Option<usize> {
    let quoted = [name.to_owned(), format!("\"{name}\""), format!("'{name}'")];
    quoted.iter().find_map(|key| {
        let rest = line.strip_prefix(key.as_str())?;
        let after = rest.trim_start_matches([' ', '\t']);
        let value = after.strip_prefix(':')?;
        let is_end = value.is_empty() || value.starts_with([' ', '\t']);
        is_end.then_some(line.len() - after.len())
    })
}

/// Returns the comment at the end of a value, with the blanks before it. Returns an empty text if there is no comment,
/// or if it is unclear where the comment begins.
fn find_comment(value: &str) -> &str {
    let trimmed = value.trim_start();
    let closing = match trimmed.chars().next() {
        Some('|' | '>' | '&' | '*') => return "",
        Some('[' | '{') => {
            let Some(offset) = closing_bracket(trimmed) else { return "" };
            Some(offset)
        }
        _ => find_closing_quote(trimmed),
    };
    // A quoted text ends at its quote, and a list ends at its bracket. In any other value, a `#` after a blank begins a
    // comment.
    let from = closing.map_or(0, |offset| value.len() - trimmed.len() + offset + 1);
    let begin = value[from..].match_indices('#').map(|(offset, _)| from + offset);
    let mut begin = begin.filter(|offset| value[..*offset].ends_with([' ', '\t']));
    begin.next().map_or("", |offset| &value[value[..offset].trim_end().len()..])
}

/// Finds the bracket that ends the list or the mapping at the start of the text. Returns `None` when the list continues
/// in another line or contains a comment.
fn closing_bracket(text: &str) -> Option<usize> {
    let (mut depth, mut is_at_start, mut offset) = (0_usize, true, 0);
    while let Some(sign) = text[offset..].chars().next() {
        match sign {
            '[' | '{' => depth += 1,
            ']' | '}' if depth == 1 => return Some(offset),
            ']' | '}' => depth -= 1,
            '"' | '\'' if is_at_start => offset += find_closing_quote(&text[offset..])?,
            '#' if text[..offset].ends_with([' ', '\t']) => return None,
            _ => {}
        }
        // A quote inside a word does not begin a quoted text.
        is_at_start = matches!(sign, '[' | '{' | ',' | ':') || is_at_start && matches!(sign, ' ' | '\t');
        offset += text[offset..].chars().next()?.len_utf8();
    }
    None
}

/// Finds the quote that ends a quoted text. Inside the text, a single quote is doubled, and a double quote has a
/// backslash before it.
fn find_closing_quote(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let mut signs = text.char_indices().skip(1).peekable();
    while let Some((offset, sign)) = signs.next() {
        if sign == '\\' && quote == '"' {
            signs.next();
        } else if sign == quote {
            if quote == '"' || signs.peek().is_none_or(|(_, next)| *next != quote) {
                return Some(offset);
            }
            signs.next();
        }
    }
    None
}

/// Checks that a parser sees the change of this field, and no other change.
fn check_change(old: &str, new: &str, name: &str, flow: &str) -> Result<()> {
    let refused = || conflict_error(name, flow);
    let read = |text: &str| parse_mapping(text).map_err(|_| refused());
    let (was, is) = (read(old)?, read(new)?);
    let (key, wanted) = (Yaml::from(name), serde_norway::from_str::<Yaml>(flow).map_err(|_| refused())?);
    let others_stay = was.iter().all(|(other, value)| *other == key || is.get(other) == Some(value));
    let count = was.len() + usize::from(!was.contains_key(&key));
    let is_set = is.get(&key) == Some(&wanted) && is.len() == count && others_stay;
    if is_set { Ok(()) } else { Err(refused()) }
}

/// Makes the error for a file whose fields have another form. A YAML block before these fields would hide them from the
/// program that uses them.
fn foreign_error(name: &str, flow: &str, why: &str) -> Error {
    Error::conflict(format!("The file is left as it is: {why}; set `{name}` there with your editor."))
        .with_data("set", format!("{name}: {flow}"))
}

fn conflict_error(name: &str, flow: &str) -> Error {
    let line = format!("{name}: {}", flow.trim_start_matches(&format!("{name}: ")).trim_end());
    let shown = one_line(&line, LINE_CHARS);
    Error::conflict(format!(
        "This field cannot be changed without touching others; write the line `{shown}` into the file yourself."
    ))
    .with_data("set", line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn edit(yaml: &str) -> Result<SplicedFile> {
        set_field(&format!("---\n{yaml}---\nx\n"), "confidence", &json!(0.9))
    }

    #[test]
    fn the_lines_of_the_field_change_and_no_others() {
        for (yaml, diff) in [
            ("", "+confidence: 0.9\n"),
            ("# nothing yet\n", "+confidence: 0.9\n"),
            ("id: a\n", "+confidence: 0.9\n"),
            ("id: a\nconfidence: 0.8\n", "-confidence: 0.8\n+confidence: 0.9\n"),
            ("confidence: 0.8   # why\nid: a\n", "-confidence: 0.8   # why\n+confidence: 0.9   # why\n"),
            ("confidence: \"0.8 # no\" # str\n", "-confidence: \"0.8 # no\" # str\n+confidence: 0.9 # str\n"),
            ("confidence: \"0.8\" #\"str\n", "-confidence: \"0.8\" #\"str\n+confidence: 0.9 #\"str\n"),
            ("confidence: 'it''s' # 'str'\n", "-confidence: 'it''s' # 'str'\n+confidence: 0.9 # 'str'\n"),
            ("confidence: \"a \\\" # b\" # c\n", "-confidence: \"a \\\" # b\" # c\n+confidence: 0.9 # c\n"),
            ("confidence: a#b\n", "-confidence: a#b\n+confidence: 0.9\n"),
            ("\"confidence\": 0.4\n", "-\"confidence\": 0.4\n+\"confidence\": 0.9\n"),
            ("confidence : 0.4\n", "-confidence : 0.4\n+confidence : 0.9\n"),
            ("confidence:\n", "-confidence:\n+confidence: 0.9\n"),
            (
                "confidence:\n  - a\n  # in\n  - b\n# of id\nid: a\n",
                "-confidence:\n-  - a\n-  # in\n-  - b\n+confidence: 0.9\n",
            ),
            ("confidence:\n- a\n- b\nid: a\n", "-confidence:\n-- a\n-- b\n+confidence: 0.9\n"),
            ("confidence: [\n  x, # one\n  y\n]\nid: a\n", "-confidence: [\n-  x, # one\n-  y\n-]\n+confidence: 0.9\n"),
            ("confidence: |\n  one\n\n  id: no\nid: a\n", "-confidence: |\n-  one\n-\n-  id: no\n+confidence: 0.9\n"),
            ("confidence: a long\n  one\nid: a\n", "-confidence: a long\n-  one\n+confidence: 0.9\n"),
            ("note: |\n  ---\n  confidence: no\n", "+confidence: 0.9\n"),
            ("id: {{id}}\nconfidence: 1\n", "-confidence: 1\n+confidence: 0.9\n"),
            ("base: &b {x: 1}\nuse: *b\nconfidence: 1\n", "-confidence: 1\n+confidence: 0.9\n"),
        ] {
            assert_eq!(edit(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}")).diff, diff, "{yaml}");
        }
    }

    #[test]
    fn a_comment_after_a_list_stays_and_so_does_the_end_of_its_line() {
        for (line, expected) in [
            ("t: [x, \"y, z\"]  # c\n", "t: [b]  # c\n"),
            ("t: {it's: '# [no]', a: [1]} # c\n", "t: [b] # c\n"),
            ("t: [] # c\r\n", "t: [b] # c\r\n"),
            ("t: 'A b'  # c\n", "t: [b]  # c\n"),
            // It is unclear where this value ends, so the comment is not kept.
            ("t: [x, # c\n  y]\n", "t: [b]\n"),
            ("t: [\"x # c\n  y\"]\n", "t: [b]\n"),
        ] {
            let text = format!("---\nid: a\n{line}---\nOne.\r\n");
            let done = set_field(&text, "t", &json!(["b"])).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            assert_eq!(done.text, format!("---\nid: a\n{expected}---\nOne.\r\n"));
        }
    }

    #[test]
    fn what_cannot_be_one_change_is_refused() {
        for yaml in [
            "id: a\nmeta:\n\tx: 1\nconfidence: 0.1\n",
            "id: a\nid: b\nconfidence: 0.1\n",
            "description: Retries use jitter: see net/\n",
            "owner: @me\nconfidence: 0.4\n",
            "{\"id\": \"a\", \"confidence\": 0.2}\n",
            "confidence: &c 1\nother: *c\n",
            "- a\n- b\n",
        ] {
            let refused = edit(yaml).expect_err(yaml);
            assert_eq!((refused.reason(), &refused.data()["set"]), ("E_CONFLICT", &json!("confidence: 0.9")), "{yaml}");
            assert!(refused.message().contains("`confidence: 0.9`"), "{refused}");
        }
        for (name, value) in
            [("a b", json!(1)), ("", json!(1)), ("a", json!(null)), ("a", json!([[1]])), ("a", json!({}))]
        {
            assert_eq!(set_field("x", name, &value).expect_err(name).reason(), "E_INVALID");
        }
    }

    #[test]
    fn fields_of_another_form_are_left_alone_and_the_reason_is_told() {
        for (text, why) in [
            ("+++\ntitle = 'x'\n+++\nbody\n", "TOML"),
            ("\u{feff}+++\r\ntitle = 'x'\r\n+++\r\n", "TOML"),
            ("{\n\"title\": \"x\"\n}\nbody\n", "JSON"),
            ("---\nid: a\nno end", "never closed"),
            ("---", "never closed"),
            ("\n---\nid: a\n---\nx\n", "first line"),
            (" ---\nid: a\n---\nx\n", "first line"),
            ("# Title\n\n---\nid: a\n---\nx\n", "first line"),
            ("<!-- made by x -->\n---\nid: a\n...\nx\n", "first line"),
            ("%YAML 1.2\n---\nid: a\n---\nx\n", "%YAML"),
            ("---\n%YAML 1.2\nid: a\n---\nx\n", "%YAML"),
            ("title:: x\ntags:: a, b\n\n- body\n", "Logseq"),
            ("- title:: x\n- body\n", "Logseq"),
            ("---\ntitle:: x\n---\nbody\n", "Logseq"),
        ] {
            let refused = set_field(text, "confidence", &json!(0.9)).expect_err(text);
            assert_eq!((refused.reason(), &refused.data()["set"]), ("E_CONFLICT", &json!("confidence: 0.9")), "{text}");
            assert!(refused.message().contains(why), "{text}: {refused}");
        }
    }

    #[test]
    fn ends_of_lines_and_files_without_fences_stay_as_they_are() {
        for (text, expected) in [
            ("---\r\nid: a\r\n---\r\nx\r\n", "---\r\nid: a\r\nt: b\r\n---\r\nx\r\n"),
            ("\u{feff}---\nid: a\n---\nx", "\u{feff}---\nid: a\nt: b\n---\nx"),
            ("---\nid: a\n---", "---\nid: a\nt: b\n---"),
            ("# x\n\ny\n", "---\nt: b\n---\n# x\n\ny\n"),
            ("", "---\nt: b\n---\n"),
            ("# x\n\n---\n\ny\n", "---\nt: b\n---\n# x\n\n---\n\ny\n"),
            ("---foo\nx", "---\nt: b\n---\n---foo\nx"),
            ("a::b is a path of C++\n", "---\nt: b\n---\na::b is a path of C++\n"),
        ] {
            assert_eq!(set_field(text, "t", &json!("b")).map(|set| set.text).unwrap_or_default(), expected, "{text:?}");
        }
    }

    #[test]
    fn values_are_read_as_they_were_given() {
        for value in [
            json!("plain"),
            json!("no"),
            json!("1.10"),
            json!(""),
            json!("a: b # c"),
            json!("ends "),
            json!("\"q\" \\ 'q'\n\t\u{1}é🚀"),
            json!("[x]"),
            json!(1),
            json!(-0.5),
            json!(true),
            json!(["x", "no", 1, "a, b"]),
            json!([]),
            json!("~"),
            json!("- x"),
            json!("null"),
            json!("2024-01-01"),
            json!("\u{85}\u{2028}"),
        ] {
            let set = set_field("---\nid: a\n---\nx", "t", &value).unwrap_or_else(|error| panic!("{value}: {error}"));
            let read = crate::front::FrontmatterFields::read(split_file(&set.text).yaml);
            assert_eq!(read.all.get("t"), Some(&value), "{}", set.text);
        }
    }

    proptest! {
        /// In any frontmatter, either this one field changes, or the file stays the same.
        #[test]
        fn one_field_changes_or_none(
            lines in proptest::collection::vec("(id|t|tags|note|\"t\"|# c| *- [a-z]|  [a-z]: x|\t|)(:|: )(\\[[a-z, ]*\\]?|[a-z#'\" |>&*{}]{0,8})( # c)?", 0..8),
            (value, is_list) in ("[ -~é]{0,12}", any::<bool>()),
        ) {
            let value = if is_list { json!([value]) } else { json!(value) };
            let text = format!("---\n{}\n---\nbody\n---\n", lines.join("\n"));
            if let Ok(done) = set_field(&text, "t", &value) {
                let (old, new) = (split_file(&text), split_file(&done.text));
                prop_assert_eq!((old.open, old.close, old.body), (new.open, new.close, new.body));
                let mut was = crate::front::FrontmatterFields::read(old.yaml).all;
                was.insert("t".into(), value.clone());
                prop_assert_eq!(was, crate::front::FrontmatterFields::read(new.yaml).all);
                let again = set_field(&done.text, "t", &value).map(|again| again.text);
                prop_assert_eq!(again.ok(), Some(done.text));
            }
        }
    }
}
