//! Contains an exported store as plain structs, which `serde_json` reads and writes, and maps that find a hint.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
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

// The fields are in the byte order of their names, as the canonical form demands.
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

/// The hints by name and by tag. Both maps share the hints, so that lookups can run while other hints are stored.
#[derive(Default)]
pub struct Kept {
    by_name: HashMap<(Arc<str>, String), Arc<Hint>, RandomState>,
    by_tag: HashMap<String, Vec<Arc<Hint>>, RandomState>,
}

impl Kept {
    pub fn new(store: Store) -> Self {
        let mut kept = Self::default();
        for (component, Component { hints, .. }) in store.components {
            let component: Arc<str> = component.into();
            for (key, hint) in hints {
                let hint = Arc::new(hint);
                for tag in &hint.meta.tags {
                    kept.by_tag.entry_ref(tag).or_default().push(Arc::clone(&hint));
                }
                kept.by_name.insert((Arc::clone(&component), key), hint);
            }
        }
        kept
    }

    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the hints by component and key, in the order of an export.
    pub fn shown(&self) -> BTreeMap<&str, BTreeMap<&str, &Hint>> {
        let mut shown: BTreeMap<&str, BTreeMap<&str, &Hint>> = BTreeMap::new();
        for ((component, key), hint) in &self.by_name {
            shown.entry(component).or_default().insert(key, hint);
        }
        shown
    }
}

/// A string or a command. The data has no values of other types.
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

// This is written by hand, because serde's `untagged` first copies everything into a buffer.
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
