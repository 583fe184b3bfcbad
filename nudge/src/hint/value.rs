//! Defines the five kinds of values.

use std::collections::BTreeMap;
use std::fmt;

use nudge_core::error::{Error, Result};
use nudge_core::place::Os;
use nudge_core::safety::paths;
use nudge_core::wire;
use schemars::JsonSchema;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// The most bytes of a value's text.
const MAX_BYTES: usize = 64 << 10;

/// The value of a hint. Commands are data: Nudge never runs one.
#[derive(Clone)]
pub enum HintValue {
    /// A plain string.
    Text(Box<str>),
    /// A command line: `{"type":"command", ...}`.
    Command(CommandValue),
    /// An absolute path: `{"type":"path", ...}`.
    Path(Box<PathValue>),
    /// A text with placeholders: `{"type":"template", ...}`.
    Template(Box<TemplateValue>),
    /// JSON: `{"type":"json", "data": ...}`. `data` is stored as compact JSON that keeps the order of keys.
    Json(Box<RawValue>),
}

/// A command line.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandValue {
    /// The shell for which the line is written, if it matters.
    pub shell: Option<CommandShell>,
    /// The command line itself.
    pub cmd: Box<str>,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum CommandShell {
    Bash,
    Sh,
    Powershell,
    Cmd,
    Zsh,
    Fish,
}

/// An absolute path.
#[derive(Clone, PartialEq, Eq)]
pub struct PathValue {
    /// The systems for which the path is meant. This is information for the reader, not a condition.
    pub os: Vec<Os>,
    /// The path in POSIX or drive form. In a stored hint it has no `.`, `//` or trailing slash.
    pub abs: String,
}

/// A text with placeholders.
#[derive(Clone, PartialEq, Eq)]
pub struct TemplateValue {
    /// The template language.
    pub format: TemplateFormat,
    /// The text.
    pub body: String,
    /// The values for placeholders to which the caller gives no value.
    pub defaults: BTreeMap<String, String>,
}

/// A template language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum TemplateFormat {
    Mustache,
    Handlebars,
    Jinja,
    Interpolate,
}

impl HintValue {
    /// Makes a command for any shell.
    pub fn command(cmd: &str) -> Self {
        Self::Command(CommandValue { shell: None, cmd: cmd.into() })
    }

    /// Makes an absolute path.
    pub fn path(abs: &str) -> Self {
        Self::Path(Box::new(PathValue { os: Vec::new(), abs: abs.into() }))
    }

    /// Makes a JSON value.
    ///
    /// # Errors
    /// `E_INVALID` for duplicate keys, and for integers beyond 2^53 - 1.
    pub fn json(json: &str) -> Result<Self> {
        wire::compact_json(json)
            .map(Self::Json)
            .map_err(|why| Error::invalid(format!("Correct the JSON value: {why}.")))
    }

    /// Returns the text of the value: the string, `cmd`, `abs`, `body`, or `data` as compact JSON.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Command(command) => &command.cmd,
            Self::Path(path) => &path.abs,
            Self::Template(template) => &template.body,
            Self::Json(json) => json.get(),
        }
    }

    /// Returns the relative paths of files and folders in the value, at most four.
    pub fn paths(&self) -> Vec<String> {
        crate::method::suggest::named_paths(self)
    }

    /// Returns the command line that an agent would run: `cmd` or a plain string (semantics section 10). `None` for
    /// other kinds.
    pub fn command_line(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Command(command) => Some(&command.cmd),
            _ => None,
        }
    }

    /// Returns true for a value of the type `command`.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// Checks the sizes. Refuses with `E_INVALID`.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        let defaults: usize = match self {
            Self::Template(template) => template.defaults.iter().map(|(name, value)| name.len() + value.len()).sum(),
            _ => 0,
        };
        if self.text().len() > MAX_BYTES || defaults > MAX_BYTES {
            return Err(Error::invalid("A value may have 64 KiB of text at most; store where to find it instead."));
        }
        Ok(())
    }

    /// Normalises a path value.
    ///
    /// # Errors
    /// `E_SCOPE_INVALID` for a path that is not absolute, or that leads out of its root with `..`.
    pub(crate) fn normalize(&mut self) -> Result<()> {
        if let Self::Path(path) = self {
            path.abs = paths::normalize_path(&path.abs)?;
        }
        Ok(())
    }
}

impl From<&str> for HintValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for HintValue {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl PartialEq for HintValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Command(a), Self::Command(b)) => a == b,
            (Self::Path(a), Self::Path(b)) => a == b,
            (Self::Template(a), Self::Template(b)) => a == b,
            (Self::Json(a), Self::Json(b)) => a.get() == b.get(),
            _ => false,
        }
    }
}

/// Prints only the kind, because the value may be a secret.
impl fmt::Debug for HintValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Text(_) => "Text",
            Self::Command(_) => "Command",
            Self::Path(_) => "Path",
            Self::Template(_) => "Template",
            Self::Json(_) => "Json",
        };
        write!(f, "{kind}(..)")
    }
}

impl Serialize for HintValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = match self {
            Self::Text(text) => return serializer.serialize_str(text),
            _ => serializer.serialize_map(None)?,
        };
        match self {
            Self::Text(_) => {}
            Self::Command(command) => {
                map.serialize_entry("type", "command")?;
                if let Some(shell) = command.shell {
                    map.serialize_entry("shell", &shell)?;
                }
                map.serialize_entry("cmd", &command.cmd)?;
            }
            Self::Path(path) => {
                map.serialize_entry("type", "path")?;
                if !path.os.is_empty() {
                    map.serialize_entry("os", &path.os)?;
                }
                map.serialize_entry("abs", &path.abs)?;
            }
            Self::Template(template) => {
                map.serialize_entry("type", "template")?;
                map.serialize_entry("format", &template.format)?;
                map.serialize_entry("body", &template.body)?;
                if !template.defaults.is_empty() {
                    map.serialize_entry("defaults", &template.defaults)?;
                }
            }
            Self::Json(json) => {
                map.serialize_entry("type", "json")?;
                map.serialize_entry("data", json)?;
            }
        }
        map.end()
    }
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum HintValueKind {
    Command,
    Path,
    Template,
    Json,
}

/// The fields of all kinds of values. `type` may come last, so the check that the fields belong together runs after all
/// fields are read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HintValueFields {
    r#type: HintValueKind,
    #[serde(default, deserialize_with = "wire::given")]
    shell: Option<CommandShell>,
    cmd: Option<String>,
    #[serde(default, deserialize_with = "wire::given_or_default")]
    os: Vec<Os>,
    abs: Option<String>,
    format: Option<TemplateFormat>,
    body: Option<String>,
    #[serde(default, deserialize_with = "wire::given_or_default")]
    defaults: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "some_raw")]
    data: Option<Box<RawValue>>,
}

/// Deserializes `data`. A null is a value here and not an absent field.
fn some_raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl HintValueFields {
    fn into_value(self) -> Result<HintValue, String> {
        const REQUIRED: &str = "a required field is there";
        let (kind, required, allowed): (_, &[&str], &[&str]) = match self.r#type {
            HintValueKind::Command => ("command", &["cmd"], &["shell"]),
            HintValueKind::Path => ("path", &["abs"], &["os"]),
            HintValueKind::Template => ("template", &["format", "body"], &["defaults"]),
            HintValueKind::Json => ("json", &["data"], &[]),
        };
        let present = [
            ("shell", self.shell.is_some()),
            ("cmd", self.cmd.is_some()),
            ("os", !self.os.is_empty()),
            ("abs", self.abs.is_some()),
            ("format", self.format.is_some()),
            ("body", self.body.is_some()),
            ("defaults", !self.defaults.is_empty()),
            ("data", self.data.is_some()),
        ];
        for (name, is_present) in present {
            if is_present && !required.contains(&name) && !allowed.contains(&name) {
                return Err(format!("a value of type {kind} has no field `{name}`"));
            }
            if !is_present && required.contains(&name) {
                return Err(format!("a value of type {kind} needs the field `{name}`"));
            }
        }
        Ok(match self.r#type {
            HintValueKind::Command => {
                HintValue::Command(CommandValue { shell: self.shell, cmd: self.cmd.expect(REQUIRED).into() })
            }
            HintValueKind::Path => HintValue::Path(Box::new(PathValue { os: self.os, abs: self.abs.expect(REQUIRED) })),
            HintValueKind::Template => HintValue::Template(Box::new(TemplateValue {
                format: self.format.expect(REQUIRED),
                body: self.body.expect(REQUIRED),
                defaults: self.defaults,
            })),
            HintValueKind::Json => {
                HintValue::Json(wire::compact_json(self.data.as_deref().map_or("null", RawValue::get))?)
            }
        })
    }
}

impl<'de> Deserialize<'de> for HintValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = HintValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an object with a type (command, path, template, json)")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<HintValue, E> {
        Ok(text.into())
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<HintValue, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HintValue, A::Error> {
        let fields = HintValueFields::deserialize(de::value::MapAccessDeserializer::new(map))?;
        fields.into_value().map_err(de::Error::custom)
    }
}

/// The schema is short, because hosts load it into a prompt. The description of the field has the details.
impl JsonSchema for HintValue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HintValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{"type": "string"}, {"type": "object"}]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_read_back() {
        for json in [
            r#""docker compose build router""#,
            r#"{"type":"command","shell":"bash","cmd":"make"}"#,
            r#"{"type":"command","cmd":"make"}"#,
            r#"{"type":"path","os":["linux","darwin"],"abs":"/srv"}"#,
            r#"{"type":"template","format":"jinja","body":"{{x}}","defaults":{"x":"1"}}"#,
            r#"{"type":"json","data":{"b":1,"a":[null,true,0.5]}}"#,
            r#"{"type":"json","data":null}"#,
        ] {
            let value: HintValue = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
            assert!(!format!("{value:?}").contains("make"));
        }
        let late: HintValue = serde_json::from_str(r#"{"data":[1],"type":"json"}"#).unwrap();
        assert_eq!(late.text(), "[1]");
    }

    #[test]
    fn refused() {
        for json in [
            "1",
            "null",
            "[]",
            "true",
            "{}",
            r#"{"type":"command"}"#,
            r#"{"type":"command","cmd":1}"#,
            r#"{"cmd":"x"}"#,
            r#"{"type":"shell","cmd":"x"}"#,
            r#"{"type":"command","cmd":"x","data":1}"#,
            r#"{"type":"command","cmd":"x","extra":1}"#,
            r#"{"type":"command","cmd":"x","shell":"tcsh"}"#,
            r#"{"type":"path","abs":"/x","os":["beos"]}"#,
            r#"{"type":"json"}"#,
            r#"{"type":"template","body":"x"}"#,
            r#"{"type":"json","data":{"a":1,"a":2}}"#,
            r#"{"type":"json","data":9007199254740993}"#,
        ] {
            assert!(serde_json::from_str::<HintValue>(json).is_err(), "{json}");
        }
        assert!(HintValue::from("x".repeat(65_536)).check_sizes().is_ok());
        assert!(HintValue::from("x".repeat(65_537)).check_sizes().is_err());
    }
}
