//! Converts a hint to a text to edit, and back. The value is always raw JSON text, so unedited parts stay exactly as
//! they were.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nudge::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::invalid_error;
use crate::output;

/// A stored hint.
#[derive(Deserialize)]
pub struct EditedHint {
    /// The value as raw JSON text.
    value: Box<RawValue>,
    /// All other fields.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl EditedHint {
    pub fn variant(&self) -> &str {
        self.fields.get("variant").and_then(Value::as_str).unwrap_or("")
    }
}

/// Parses an answer of the server; an unexpected form is an error.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|_| Error::unavailable("The server answered something unexpected; update it."))
}

/// Builds the text to edit: a comment, then JSON. The text has no scope, because the scope is part of the hint's
/// identity.
pub fn build_document(hint: &EditedHint) -> String {
    let field = |name: &str| hint.fields.get(name).unwrap_or(&Value::Null);
    let mut meta = field("meta").clone();
    let scope = meta.as_object_mut().and_then(|meta| meta.remove("scope"));
    let name = |name: &str| output::make_visible(field(name).as_str().unwrap_or(""));
    let mut out = String::new();
    let _ = writeln!(out, "// {}/{}, version {}", name("component"), name("key"), field("version"));
    match scope {
        Some(scope) => {
            let _ = writeln!(out, "// applies where {scope} (to change that, set another variant)");
        }
        None => out.push_str("// applies everywhere\n"),
    }
    out.push_str("// Lines that begin with // are ignored; an empty file changes nothing.\n");
    out.push_str(&indent_json(&format!("{{\"value\":{},\"meta\":{meta}}}", hint.value)));
    out.push('\n');
    out
}

/// Adds line breaks and indentation to JSON. No token changes.
fn indent_json(json: &str) -> String {
    let (mut out, mut depth, mut in_string, mut escaped) = (String::with_capacity(json.len() * 2), 0, false, false);
    let line = |out: &mut String, depth: usize| {
        let _ = write!(out, "\n{:1$}", "", depth * 2);
    };
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            out.push(c);
            continue;
        }
        match c {
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth -= 1;
                if out.trim_end().ends_with(['{', '[']) {
                    out.truncate(out.trim_end().len());
                } else {
                    line(&mut out, depth);
                }
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => {
                in_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

/// Converts the edited text to the params of `nudge.set_hint`.
pub fn to_set_params(text: &[u8], hint: &EditedHint, allow_secret: bool) -> Result<Box<RawValue>> {
    let text = str::from_utf8(text).map_err(|_| invalid_error("The text is not UTF-8; edit it again."))?;
    let body = without_comments(text);
    let not_json = |error: serde_json::Error| invalid_error(format!("The text is not JSON: {error}; edit it again."));
    let body: &RawValue = serde_json::from_str(&body).map_err(not_json)?;
    let members: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(body.get()).ok();
    if members.is_none_or(|members| members.is_empty()) {
        return Err(invalid_error("The text must be an object with `value` and `meta`; edit it again."));
    }
    let mut address = json!({
        "component": hint.fields.get("component"),
        "key": hint.fields.get("key"),
        "if_match_version": hint.fields.get("version"),
        "variant": hint.variant(),
    });
    if allow_secret {
        address["allow_secret"] = true.into();
    }
    // Joins the two objects as text, so that the server can refuse a name that both objects have.
    let address = address.to_string();
    let (address, body) = (address.trim_end_matches('}'), body.get().trim_start_matches('{'));
    RawValue::from_string(format!("{address},{body}")).map_err(not_json)
}

/// Returns true when the text marks the hint as secret, even if the text is not valid JSON.
pub fn says_secret(text: &str) -> bool {
    let filler = |c: char| c.is_ascii_whitespace() || c == '"' || c == '\'' || c == ':';
    let plainly = text.to_ascii_lowercase();
    let mut plainly = plainly.split("sensitivity").skip(1);
    let read: Option<Value> = serde_json::from_str(&without_comments(text)).ok();
    plainly.any(|rest| rest.trim_start_matches(filler).starts_with("secret"))
        || read.is_some_and(|read| read["meta"]["sensitivity"] == "secret")
}

/// Removes lines that begin with `//`. A JSON string cannot contain a line break, so no such line is part of a string.
fn without_comments(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}');
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(value: &str) -> EditedHint {
        let json = format!(
            r#"{{"component":"a","key":"k","version":3,"variant":"v","value":{value},"meta":{{"priority":5,"scope":{{"os":["linux"]}}}}}}"#
        );
        read(&json).unwrap()
    }

    #[test]
    fn no_token_is_respelled() {
        let value =
            r#"{"z":1.50,"a":[1e+20,-0.0,{},[],{"q":"\\\"{[,:"}],"huge":123456789012345678901234567890,"s":"\u00e9"}"#;
        let hint = hint(value);
        let text = build_document(&hint);
        assert!(
            text.contains("\n    \"z\": 1.50,\n    \"a\": [\n      1e+20,\n      -0.0,\n      {},\n      [],"),
            "{text}"
        );
        let edited = text.replace("\"priority\": 5", "\"priority\": 6");
        let sent = to_set_params(edited.as_bytes(), &hint, true).unwrap();
        let sent: BTreeMap<String, Box<RawValue>> = serde_json::from_str(sent.get()).unwrap();
        assert_eq!(indent_json(sent["value"].get()), indent_json(value));
        assert_eq!(indent_json(sent["meta"].get()), "{\n  \"priority\": 6\n}");
        let rest = ["component", "key", "if_match_version", "variant", "allow_secret"].map(|name| sent[name].get());
        assert_eq!(rest, ["\"a\"", "\"k\"", "3", "\"v\"", "true"]);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let hint = hint("\"x\"");
        for bad in ["[]", "{}", "\"x\"", "{", "// only this", "{\"value\":1} x"] {
            assert!(to_set_params(bad.as_bytes(), &hint, false).is_err(), "{bad}");
        }
        assert!(to_set_params(b"{\"value\":\"\xff\"}", &hint, false).is_err());
        assert!(to_set_params("\u{feff}// x\n{\"value\":1}\n".as_bytes(), &hint, false).is_ok());
    }

    #[test]
    fn secrets_are_seen_in_broken_texts() {
        for yes in [
            r#"{"meta": {"sensitivity" : "secret"}}"#,
            r#"{"meta": {"sensitivity": "SECRET",}"#,
            "sensitivity: secret",
            r#"{"meta": {"sensiti\u0076ity": "secret"}}"#,
            r#"{"meta": {"sensitivity": "\u0073ecret"}}"#,
        ] {
            assert!(says_secret(yes), "{yes}");
        }
        for no in [r#"{"meta": {"sensitivity": "normal"}, "value": "a secret"}"#, "", "{"] {
            assert!(!says_secret(no), "{no}");
        }
    }
}
