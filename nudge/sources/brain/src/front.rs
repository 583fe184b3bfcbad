//! Splits a file into frontmatter and body. Frontmatter is the text between the first two `---` lines; its fields are
//! YAML. Each byte of a file is in exactly one part, so no byte is lost.

use serde_json::{Map, Value};
use serde_norway::Mapping;

/// The parts of a file. The whole text is `open + yaml + close + body`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileParts<'a> {
    /// The byte order mark and the first fence (a `---` line); empty without frontmatter.
    pub open: &'a str,
    /// The text between the two fences.
    pub yaml: &'a str,
    /// The second fence.
    pub close: &'a str,
    /// The text after the second fence.
    pub body: &'a str,
}

const BOM: char = '\u{feff}';

/// Splits a file into its parts. If the first line is not a fence, or there is no second fence, the whole text is body.
///
/// ```
/// use nudge_brain::front::split_file;
///
/// let split = split_file("---\nid: a\n---\nText.\n\n---\n");
/// assert_eq!((split.yaml, split.body), ("id: a\n", "Text.\n\n---\n"));
/// ```
pub fn split_file(text: &str) -> FileParts<'_> {
    let whole = FileParts { open: "", yaml: "", close: "", body: text };
    let after_mark = text.strip_prefix(BOM).unwrap_or(text);
    let mark = text.len() - after_mark.len();
    let Some(first) = after_mark.split_inclusive('\n').next().filter(|line| line.ends_with('\n')) else { return whole };
    if first.trim_end() != "---" {
        return whole;
    }
    let begin = mark + first.len();
    let mut offset = begin;
    for line in text[begin..].split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let end = offset + line.len();
            return FileParts {
                open: &text[..begin],
                yaml: &text[begin..offset],
                close: &text[offset..end],
                body: &text[end..],
            };
        }
        offset += line.len();
    }
    whole
}

/// Returns the reason if a file has fields in a form that [`split_file`] does not read. A frontmatter block that Nudge
/// adds to such a file would hide the fields from the program that uses them.
///
/// ```
/// use nudge_brain::front::find_foreign_fields;
///
/// assert_eq!(find_foreign_fields("+++\ntitle = 'x'\n+++\nText.\n"), Some("its frontmatter is TOML (`+++`)"));
/// assert_eq!(find_foreign_fields("---\nid: a\n---\n+++\n"), None);
/// ```
pub fn find_foreign_fields(text: &str) -> Option<&'static str> {
    let FileParts { open, yaml, body, .. } = split_file(text);
    let fields = if open.is_empty() { body.strip_prefix(BOM).unwrap_or(body) } else { yaml };
    let starts_directive = |line: &str| line.starts_with("%YAML") || line.starts_with("%TAG");
    if !open.is_empty() {
        let mut lines = yaml.lines();
        return lines.find_map(|line| {
            (starts_directive(line).then_some("its frontmatter begins with a directive (`%YAML`)"))
                .or_else(|| is_logseq_property(line).then_some("its fields are Logseq's (`name:: value`)"))
        });
    }
    let mut lines = fields.lines().skip_while(|line| line.trim().is_empty());
    let first = lines.next()?;
    match first.trim() {
        "+++" => return Some("its frontmatter is TOML (`+++`)"),
        "{" => return Some("its frontmatter is JSON (`{`)"),
        _ if starts_directive(first) => return Some("its frontmatter begins with a directive (`%YAML`)"),
        _ if is_logseq_property(first) => return Some("its fields are Logseq's (`name:: value`)"),
        _ => {}
    }
    if fields.starts_with("---") && first.trim_end() == "---" {
        return Some("its frontmatter begins (`---`) and is never closed");
    }
    // A line of dashes may also be a horizontal rule. It begins a block of fields only if a field follows.
    let mut fences = fields.lines().skip_while(|line| line.trim() != "---").skip(1);
    let is_block = fences.next().is_some_and(is_yaml_field) && fences.any(|line| matches!(line.trim(), "---" | "..."));
    let is_late = is_block && before_block(fields).all(|line| line.trim().is_empty() || is_title(line));
    is_late.then_some("its frontmatter (`---`) does not begin in the first line")
}

/// Returns the lines before the first `---` line.
fn before_block(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| line.trim() != "---")
}

/// Returns true for a line that some programs write before a block of fields: a heading or a comment.
fn is_title(line: &str) -> bool {
    line.starts_with('#') || line.trim_start().starts_with("<!--")
}

/// Returns true for a line `name: value` without indentation.
fn is_yaml_field(line: &str) -> bool {
    line.split_once(':')
        .is_some_and(|(name, value)| is_field_name(name) && (value.is_empty() || value.starts_with(' ')))
}

/// Returns true for a line `name:: value`, alone or as the first item of a list.
fn is_logseq_property(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    line.split_once("::")
        .is_some_and(|(name, value)| is_field_name(name) && (value.is_empty() || value.starts_with(' ')))
}

fn is_field_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

/// The most bytes of frontmatter that is read as YAML. `MAX_BRACKETS` limits the brackets in it, because the parser's
/// time grows with the square of the open brackets.
const MAX_YAML_BYTES: usize = 64 << 10;
const MAX_BRACKETS: usize = 1_000;

/// Parses YAML. A text with only blank lines and comments gives no fields. The error is the number of the faulty line
/// in the file.
pub fn parse_mapping(yaml: &str) -> Result<Mapping, usize> {
    if yaml.lines().all(|line| line.trim().is_empty() || line.starts_with('#')) {
        return Ok(Mapping::new());
    }
    let brackets = yaml.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if yaml.len() > MAX_YAML_BYTES || brackets > MAX_BRACKETS {
        return Err(2);
    }
    // The first fence is line 1 of the file.
    serde_norway::from_str(yaml).map_err(|error| error.location().map_or(1, |location| location.line()) + 1)
}

/// The fields of a file, as far as they can be read. Some authors write invalid YAML.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrontmatterFields {
    /// The fields by name.
    pub all: Map<String, Value>,
    /// The reason why the text was read line by line: it is not valid YAML. `None` for valid YAML.
    pub problem: Option<String>,
}

impl FrontmatterFields {
    /// Reads the text between the two fences.
    pub fn read(yaml: &str) -> Self {
        match parse_mapping(yaml) {
            Ok(mapping) => {
                let field = |(name, value): (serde_norway::Value, serde_norway::Value)| {
                    // A field is skipped if JSON cannot hold its name or value, such as a list as a name.
                    Some((to_plain_text(&serde_json::to_value(name).ok()?)?, serde_json::to_value(value).ok()?))
                };
                Self { all: mapping.into_iter().filter_map(field).collect(), problem: None }
            }
            Err(line) => {
                let problem = format!("line {line}: the frontmatter is no YAML; it was read line by line");
                Self { all: by_lines(yaml), problem: Some(problem) }
            }
        }
    }

    /// Returns the text of a field. A number or a truth value is converted to text.
    pub fn get_text(&self, name: &str) -> Option<String> {
        to_plain_text(self.all.get(name)?).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the texts of a list field. A single text is split at commas, or at `#` as Obsidian writes tags.
    pub fn get_texts(&self, name: &str) -> Vec<String> {
        let clean = |text: &str| text.trim().trim_start_matches('#').to_owned();
        let texts: Vec<_> = match self.all.get(name) {
            Some(Value::Array(list)) => list.iter().filter_map(to_plain_text).map(|text| clean(&text)).collect(),
            Some(Value::String(text)) if text.contains(',') => text.split(',').map(clean).collect(),
            Some(Value::String(text)) if text.contains('#') => text.split_whitespace().map(clean).collect(),
            Some(value) => to_plain_text(value).iter().map(|text| clean(text)).collect(),
            None => Vec::new(),
        };
        texts.into_iter().filter(|text| !text.is_empty()).collect()
    }

    /// Returns the number in a field. A text is parsed as a number.
    pub fn get_number(&self, name: &str) -> Option<f64> {
        match self.all.get(name)? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }
}

/// Returns a value as text; `None` for a list, a mapping or null.
pub fn to_plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads lines of the form `name: value`, and list items below a name.
fn by_lines(text: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut above = None;
    for line in text.lines() {
        let unquoted = |value: &str| Value::from(value.trim().trim_matches(['"', '\'']));
        if let Some(item) = line.trim_start().strip_prefix("- ") {
            if let Some(list) = above.as_ref().and_then(|name: &String| fields.get_mut(name)) {
                match list {
                    Value::Array(list) => list.push(unquoted(item)),
                    Value::Null => *list = Value::Array(vec![unquoted(item)]),
                    _ => {}
                }
            }
            continue;
        }
        let is_name = |name: &str| !name.is_empty() && !name.contains([' ', '\t', '#', '{', '[']);
        let Some((name, value)) = line.split_once(':').filter(|(name, _)| is_name(name)) else { continue };
        let name = name.trim_matches(['"', '\'']).to_owned();
        let value = if value.trim().is_empty() { Value::Null } else { unquoted(value) };
        // If a name occurs several times, the first field counts.
        fields.entry(name.clone()).or_insert(value);
        above = Some(name);
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_pair_of_fences_is_frontmatter() {
        for (text, yaml, body) in [
            ("", None, ""),
            ("body", None, "body"),
            ("---\nid: a\n---\nbody", Some("id: a\n"), "body"),
            ("---\n---\nbody", Some(""), "body"),
            ("---\nid: a\n...\nbody\n---\n", Some("id: a\n"), "body\n---\n"),
            ("---  \nid: a\n---\t\nbody", Some("id: a\n"), "body"),
            ("---\r\nid: a\r\n---\r\nbody\r\n", Some("id: a\r\n"), "body\r\n"),
            ("\u{feff}---\nid: a\n---\nbody", Some("id: a\n"), "body"),
            ("---\nid: a\n---", Some("id: a\n"), ""),
            ("---\nnote: |\n  ---\n  in\n---\nx", Some("note: |\n  ---\n  in\n"), "x"),
            ("---foo\nid: a\n---\nx", None, "---foo\nid: a\n---\nx"),
            ("---\nid: a\nx", None, "---\nid: a\nx"),
            (" ---\nid: a\n---\nx", None, " ---\nid: a\n---\nx"),
            ("\n---\nid: a\n---\nx", None, "\n---\nid: a\n---\nx"),
            ("---", None, "---"),
        ] {
            let split = split_file(text);
            assert_eq!([split.open, split.yaml, split.close, split.body].concat(), text);
            assert_eq!((split.yaml, split.body), (yaml.unwrap_or_default(), body), "{text:?}");
            assert_eq!(split.open.is_empty(), yaml.is_none(), "{text:?}");
        }
    }

    #[test]
    fn fields_are_read_whatever_their_types() {
        let fields = FrontmatterFields::read(
            "id: 0198\ntitle: yes\nversion: 2\ntags: [x, y, 1]\naliases: one, two\nobsidian: '#retry #net'\none: alone\n\
             confidence: '0.8'\nbig: .nan\nnone:\nnested: {a: 1}\n1: x\n",
        );
        assert_eq!(fields.problem, None);
        for (name, text) in [("id", "0198"), ("title", "yes"), ("version", "2"), ("1", "x")] {
            assert_eq!(fields.get_text(name).as_deref(), Some(text), "{name}");
        }
        assert!(["none", "nested", "absent", "tags"].iter().all(|name| fields.get_text(name).is_none()));
        for (name, texts) in [
            ("tags", &["x", "y", "1"][..]),
            ("aliases", &["one", "two"]),
            ("obsidian", &["retry", "net"]),
            ("one", &["alone"]),
            ("none", &[]),
            ("nested", &[]),
        ] {
            assert_eq!(fields.get_texts(name), texts, "{name}");
        }
        assert_eq!((fields.get_number("confidence"), fields.get_number("version")), (Some(0.8), Some(2.0)));
        assert_eq!((fields.get_number("big"), fields.get_number("title")), (None, None));
    }

    #[test]
    fn what_is_no_yaml_is_read_line_by_line() {
        for (yaml, name, value) in [
            (
                "name: retry\ndescription: Retries use jitter: see net/\n",
                "description",
                json!("Retries use jitter: see net/"),
            ),
            ("id: a\nmeta:\n\tx: 1\nconfidence: 0.1\n", "confidence", json!("0.1")),
            ("id: a\nid: b\n", "id", json!("a")),
            ("owner: @me\ntags:\n  - \"x\"\n- y\n", "tags", json!(["x", "y"])),
            ("- a\n- b\n", "a", json!(null)),
        ] {
            let fields = FrontmatterFields::read(yaml);
            assert_eq!(fields.all.get(name).cloned().unwrap_or_default(), value, "{yaml}");
            assert!(fields.problem.is_some(), "{yaml}");
        }
        assert_eq!(FrontmatterFields::read("# nothing yet\n\n"), FrontmatterFields::default());
        // For YAML, this template is a mapping.
        assert_eq!(FrontmatterFields::read("id: {{id}}\n").get_text("id"), None);
        let deep = "[".repeat(100_000);
        assert!(FrontmatterFields::read(&format!("x: {deep}")).problem.is_some());
    }
}
