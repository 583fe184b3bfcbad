//! A store as a JSON document (specification section 3, contract section 6): written by export, read
//! by import.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::clock::{Millis, rfc3339};
use crate::error::{Error, Result};
use crate::hint::{Exported, Hint, HintMeta, HintValue};
use crate::wire;

/// The version that exports carry.
const SCHEMA_VERSION: &str = "1.0";
/// Most bytes of the unknown top-level keys that are kept.
const MAX_EXTRA_BYTES: usize = 64 << 10;

/// Top-level keys that Nudge does not know, by name.
pub(crate) type Extra = BTreeMap<String, Box<RawValue>>;

/// An exported store. Serializes as `{"schema_version", "created_at", "session_id", "components", ...}`.
#[derive(Debug, Clone)]
pub struct Payload {
    /// By component and key, the one under `hints` first among the variants of a key.
    hints: Vec<Arc<Hint>>,
    session_id: String,
    created_at: Millis,
    extra: Option<Arc<RawValue>>,
}

impl Payload {
    pub(crate) fn new(
        mut hints: Vec<Arc<Hint>>,
        session_id: &str,
        created_at: Millis,
        extra: Option<Arc<RawValue>>,
    ) -> Self {
        // The empty scope stands under `hints`, else the most specific one; ties go by digest.
        let specificity = |hint: &Hint| match hint.scope.specificity() {
            0 => u8::MAX,
            fields => fields,
        };
        hints.sort_by(|a, b| {
            let by_name = a.component.cmp(&b.component).then_with(|| a.key.cmp(&b.key));
            by_name.then_with(|| specificity(b).cmp(&specificity(a))).then_with(|| a.variant().cmp(b.variant()))
        });
        Self { hints, session_id: session_id.into(), created_at, extra }
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema_version", SCHEMA_VERSION)?;
        map.serialize_entry("created_at", &rfc3339::text(self.created_at))?;
        map.serialize_entry("session_id", &self.session_id)?;
        map.serialize_entry("components", &Components(&self.hints))?;
        if let Some(extra) = &self.extra {
            let extra: BTreeMap<String, &RawValue> =
                serde_json::from_str(extra.get()).map_err(serde::ser::Error::custom)?;
            for (name, value) in extra {
                map.serialize_entry(&name, value)?;
            }
        }
        map.end()
    }
}

struct Components<'a>(&'a [Arc<Hint>]);

impl Serialize for Components<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let components = self.0.chunk_by(|a, b| a.component == b.component);
        serializer.collect_map(components.map(|hints| (&*hints[0].component, Component(hints))))
    }
}

struct Component<'a>(&'a [Arc<Hint>]);

impl Serialize for Component<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = || self.0.chunk_by(|a, b| a.key == b.key);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("hints", &Map(keys().map(|variants| (&*variants[0].key, Exported(&variants[0])))))?;
        if keys().any(|variants| variants.len() > 1) {
            let further = keys().filter(|variants| variants.len() > 1);
            map.serialize_entry(
                "variants",
                &Map(further.map(|variants| (&*variants[0].key, Further(&variants[1..])))),
            )?;
        }
        map.end()
    }
}

struct Further<'a>(&'a [Arc<Hint>]);

impl Serialize for Further<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut by_digest: Vec<_> = self.0.iter().collect();
        by_digest.sort_by_key(|hint| hint.variant());
        serializer.collect_seq(by_digest.into_iter().map(|hint| Exported(hint)))
    }
}

/// An iterator of pairs as a map.
struct Map<I>(I);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)> + Clone> Serialize for Map<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}

/// A payload as read: its hints in document order, each parsed on its own so that one broken hint
/// spoils no other.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub hints: Vec<Entry<'a>>,
    pub extra: Extra,
}

/// One hint of a document, or what is wrong with it.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub component: String,
    /// Empty where a whole component is wrong.
    pub key: String,
    /// Not a hint at all: a component, or a list of variants, of the wrong type.
    pub hint: Option<&'a RawValue>,
}

impl<'a> Document<'a> {
    /// Reads the frame of a payload.
    ///
    /// # Errors
    /// `E_INVALID` when it is no store, or one of another schema.
    pub fn read(payload: &'a RawValue) -> Result<Self> {
        let not_a_store =
            || Error::invalid("payload must be a store, `{\"components\": {NAME: {\"hints\": {KEY: ...}}}}`.");
        let Pairs(top) = serde_json::from_str(payload.get()).map_err(|_| not_a_store())?;
        let mut document = Self { hints: Vec::new(), extra: Extra::new() };
        let mut components = None;
        for (name, value) in top {
            match &*name {
                "schema_version" => check_schema(value)?,
                "components" => components = Some(value),
                "created_at" | "session_id" => {}
                _ => {
                    let value = wire::compact(value.get())
                        .map_err(|why| Error::invalid(format!("A top-level key of the payload is wrong: {why}.")))?;
                    document.extra.insert(name, value);
                }
            }
        }
        if document.extra.iter().map(|(name, value)| name.len() + value.get().len()).sum::<usize>() > MAX_EXTRA_BYTES {
            return Err(Error::invalid("The unknown top-level keys of the payload may have 64 KiB at most."));
        }
        let Pairs(components) =
            components.and_then(|raw| serde_json::from_str(raw.get()).ok()).ok_or_else(not_a_store)?;
        for (name, component) in components {
            document.read_component(name, component);
        }
        Ok(document)
    }

    fn read_component(&mut self, name: String, raw: &'a RawValue) {
        #[derive(Deserialize)]
        struct Component<'a> {
            #[serde(borrow, default)]
            hints: Option<Pairs<'a>>,
            #[serde(borrow, default)]
            variants: Option<Pairs<'a>>,
        }
        let component = Some(raw.get()).filter(|text| text.starts_with('{'));
        let Some(component) = component.and_then(|text| serde_json::from_str::<Component<'a>>(text).ok()) else {
            return self.hints.push(Entry { component: name, key: String::new(), hint: None });
        };
        for (key, hint) in component.hints.map(|pairs| pairs.0).unwrap_or_default() {
            self.hints.push(Entry { component: name.clone(), key, hint: Some(hint) });
        }
        for (key, list) in component.variants.map(|pairs| pairs.0).unwrap_or_default() {
            match serde_json::from_str::<Vec<&RawValue>>(list.get()) {
                Ok(hints) => {
                    self.hints.extend(hints.into_iter().map(|hint| Entry {
                        component: name.clone(),
                        key: key.clone(),
                        hint: Some(hint),
                    }));
                }
                Err(_) => self.hints.push(Entry { component: name.clone(), key, hint: None }),
            }
        }
    }
}

fn check_schema(value: &RawValue) -> Result<()> {
    let version: Option<String> = serde_json::from_str(value.get())
        .map_err(|_| Error::invalid("schema_version must be a string such as `1.0`."))?;
    match version.as_deref().map(|version| version.split('.').next().unwrap_or(version)) {
        None | Some("1") => Ok(()),
        Some(_) => Err(Error::invalid("The payload has another schema version; this one reads 1.x.")),
    }
}

/// The members of an object in document order, duplicates included.
#[derive(Debug)]
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

/// A hint of a document; what is absent is filled in by the importer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HintDocument {
    value: Option<HintValue>,
    #[serde(deserialize_with = "wire::object_or_default")]
    pub meta: HintMeta,
    #[serde(deserialize_with = "wire::given")]
    pub version: Option<u64>,
    #[serde(deserialize_with = "time")]
    pub created_at: Option<Millis>,
    #[serde(deserialize_with = "time")]
    pub updated_at: Option<Millis>,
    #[serde(deserialize_with = "time")]
    pub last_used_at: Option<Millis>,
    #[serde(deserialize_with = "wire::given_or_default")]
    pub use_count: u64,
    #[serde(deserialize_with = "wire::given_or_default")]
    pub failure_count: u32,
    #[serde(deserialize_with = "time")]
    pub last_failed_at: Option<Millis>,
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    let text: Option<String> = wire::given(deserializer)?;
    let parse = |text: String| rfc3339::parse(&text).ok_or_else(|| serde::de::Error::custom("a time must be RFC 3339"));
    text.map(parse).transpose()
}

impl HintDocument {
    /// Reads a hint, or a bare value standing for one.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn read(raw: &RawValue) -> Result<(HintValue, Self)> {
        #[derive(Deserialize)]
        struct Probe {
            value: Option<IgnoredAny>,
        }
        let is_hint = raw.get().starts_with('{')
            && serde_json::from_str::<Probe>(raw.get()).is_ok_and(|probe| probe.value.is_some());
        if !is_hint {
            return Ok((wire::parse(raw.get(), "hint")?, Self::default()));
        }
        let mut hint: Self = wire::parse(raw.get(), "hint")?;
        let value = hint.value.take().ok_or_else(|| Error::invalid("A hint needs a value."))?;
        if hint.version == Some(0) {
            return Err(Error::invalid("The version of a hint is 1 or more."));
        }
        Ok((value, hint))
    }
}
