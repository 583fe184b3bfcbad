//! An exported store as plain structs, read and written by `serde_json` alone.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Store {
    schema_version: String,
    created_at: String,
    session_id: String,
    pub components: BTreeMap<String, Component>,
}

#[derive(Serialize, Deserialize)]
pub struct Component {
    pub hints: BTreeMap<String, Hint>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    variants: BTreeMap<String, Vec<Hint>>,
}

#[derive(Serialize, Deserialize)]
pub struct Hint {
    value: Value,
    #[serde(default)]
    meta: Meta,
    version: u64,
    created_at: String,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    use_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failed_at: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Meta {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Scope>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added_by: Option<String>,
}

// In the byte order of the names, as the canonical form has them.
#[derive(Serialize, Deserialize)]
struct Scope {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branch: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cwd_glob: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env_match: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    env_required: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    os: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repo: Vec<String>,
}

/// A string, or a command; the data has no other kinds.
#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Command(Command),
}

#[derive(Serialize, Deserialize)]
struct Command {
    r#type: String,
    cmd: String,
}

// By hand, because serde's `untagged` reads everything into a buffer first.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        impl<'de> Visitor<'de> for ValueVisitor {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Value, A::Error> {
                Command::deserialize(de::value::MapAccessDeserializer::new(map)).map(Value::Command)
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}
