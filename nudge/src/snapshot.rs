//! Defines the JSON document of a store (semantics sections 6 and 13). Export writes it, and import reads it.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::HashMap;
use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::{Error, Result};
use nudge_core::scope::Scope;
use nudge_core::wire;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::hint::{Hint, HintInExport, HintMeta, HintUsage, HintValue};

/// The schema version of exports.
const SCHEMA_VERSION: &str = "1.0";
/// The most bytes of the unknown top-level keys that are kept.
const MAX_EXTRA_BYTES: usize = 64 << 10;

/// The largest integer that every language can represent.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Unknown top-level keys, by name.
pub(crate) type Extra = BTreeMap<String, Box<RawValue>>;

/// An exported store. Serializes as `{"schema_version", "created_at", "session_id", "components", ...}`.
#[derive(Debug, Clone)]
pub struct ExportPayload {
    /// The hints by component and key. The first variant of a key is the one that is written under `hints`.
    hints: Vec<Arc<Hint>>,
    session_id: String,
    created_at: Millis,
    extra: Option<Arc<RawValue>>,
}

impl ExportPayload {
    pub(crate) fn new(
        hints: Vec<Arc<Hint>>,
        session_id: &str,
        created_at: Millis,
        extra: Option<Arc<RawValue>>,
    ) -> Self {
        // The variant with the empty scope is written under `hints`. Without such a variant, the most specific variant
        // is written there; the digest decides between equally specific variants.
        let specificity = |hint: &Hint| match hint.scope.specificity() {
            0 => u8::MAX,
            fields => fields,
        };
        // The hints are sorted component by component, because sorting all hints at once would read the whole memory
        // many times.
        let mut components: HashMap<Arc<str>, Vec<Arc<Hint>>, foldhash::fast::RandomState> = HashMap::default();
        for hint in hints {
            components.entry_ref(&hint.component).or_default().push(hint);
        }
        let mut components: Vec<_> = components.into_iter().collect();
        components.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (_, hints) in &mut components {
            hints.sort_unstable_by(|a, b| {
                let by_key = a.key.cmp(&b.key).then_with(|| specificity(b).cmp(&specificity(a)));
                by_key.then_with(|| a.variant().cmp(b.variant()))
            });
        }
        let hints = components.into_iter().flat_map(|(_, hints)| hints).collect();
        Self { hints, session_id: session_id.into(), created_at, extra }
    }
}

impl Serialize for ExportPayload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema_version", SCHEMA_VERSION)?;
        map.serialize_entry("created_at", &rfc3339::TimeText::from_millis(self.created_at))?;
        map.serialize_entry("session_id", &self.session_id)?;
        map.serialize_entry("components", &SerializedComponents(&self.hints))?;
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

struct SerializedComponents<'a>(&'a [Arc<Hint>]);

impl Serialize for SerializedComponents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let components = self.0.chunk_by(|a, b| a.component == b.component);
        serializer.collect_map(components.map(|hints| (&*hints[0].component, SerializedComponent(hints))))
    }
}

struct SerializedComponent<'a>(&'a [Arc<Hint>]);

impl Serialize for SerializedComponent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = || self.0.chunk_by(|a, b| a.key == b.key);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("hints", &PairMap(keys().map(|variants| (&*variants[0].key, HintInExport(&variants[0])))))?;
        if keys().any(|variants| variants.len() > 1) {
            let further = keys().filter(|variants| variants.len() > 1);
            map.serialize_entry(
                "variants",
                &PairMap(further.map(|variants| (&*variants[0].key, FurtherVariants(&variants[1..])))),
            )?;
        }
        map.end()
    }
}

struct FurtherVariants<'a>(&'a [Arc<Hint>]);

impl Serialize for FurtherVariants<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut by_digest: Vec<_> = self.0.iter().collect();
        by_digest.sort_by_key(|hint| hint.variant());
        serializer.collect_seq(by_digest.into_iter().map(|hint| HintInExport(hint)))
    }
}

/// Serializes an iterator of pairs as a map.
struct PairMap<I>(I);

impl<K: Serialize, V: Serialize, I: Iterator<Item = (K, V)> + Clone> Serialize for PairMap<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}

/// Receives the hints of a payload while it is read. Each component is delivered before the next one is read, so that
/// both can use the same memory.
pub(crate) trait PayloadReader {
    /// Takes the next hint in document order.
    fn take_entry(&mut self, entry: PayloadEntry<'_>);
    /// Drops the hints that were taken so far, because all hints will be delivered again.
    fn forget_taken(&mut self);
}

/// An entry of a document, with content that may be wrong.
#[derive(Debug)]
pub(crate) struct PayloadEntry<'a> {
    pub component: Arc<str>,
    /// The key; empty when the whole component is wrong.
    pub key: String,
    pub body: EntryBody<'a>,
}

/// The content under a key.
#[derive(Debug)]
pub(crate) enum EntryBody<'a> {
    /// A hint that was parsed together with the whole document.
    Hint(Box<HintDocument>),
    /// JSON that may be a hint, or only a hint's value.
    Raw(&'a RawValue),
    /// No hint, because a component or a list of variants has the wrong type.
    Wrong,
}

/// Reads a payload. Each hint is read separately, so that a wrong hint does not affect the others. Returns the
/// payload's other members.
///
/// # Errors
/// `E_INVALID` when the payload is no store, or a store with another schema.
pub(crate) fn read(payload: &RawValue, reader: &mut impl PayloadReader) -> Result<Extra> {
    let not_a_store = || {
        Error::invalid("`payload` must be a store, `{\"components\": {NAME: {\"hints\": {KEY: ...}}}}`.")
            .about("payload")
    };
    // A single pass is enough if every hint is right. Otherwise the structure is read first, and then each hint
    // separately.
    let mut json = serde_json::Deserializer::from_str(payload.get());
    let well = WellFormed(reader).deserialize(&mut json);
    let well = well.and_then(|top| json.end().map(|()| top)).ok();
    let is_read = well.is_some();
    let top = if let Some(top) = well {
        top
    } else {
        reader.forget_taken();
        serde_json::from_str::<Pairs<'_>>(payload.get()).map_err(|_| not_a_store())?.0
    };
    let (mut extra, mut components) = (Extra::new(), None);
    for (name, value) in top {
        match &*name {
            "schema_version" => check_schema(value)?,
            "components" => components = Some(value),
            "created_at" | "session_id" => {}
            _ => {
                let value = wire::compact_json(value.get())
                    .map_err(|why| Error::invalid(format!("A top-level key of the payload is wrong: {why}.")))?;
                extra.insert(name, value);
            }
        }
    }
    check_extra_size(&extra)?;
    if !is_read {
        let ObjectMembers(components): Pairs<'_> =
            components.and_then(|raw| serde_json::from_str(raw.get()).ok()).ok_or_else(not_a_store)?;
        for (name, component) in components {
            read_component(&name.into(), component, reader);
        }
    }
    Ok(extra)
}

fn take_component(name: &Arc<str>, component: WellFormedComponent, reader: &mut impl PayloadReader) {
    let entry = |key, WholeHint(hint)| PayloadEntry { component: Arc::clone(name), key, body: EntryBody::Hint(hint) };
    for (key, hint) in component.hints.into_iter().flat_map(|all| all.0) {
        reader.take_entry(entry(key, hint));
    }
    for (key, hints) in component.variants.into_iter().flat_map(|all| all.0) {
        for hint in hints {
            reader.take_entry(entry(key.clone(), hint));
        }
    }
}

fn read_component(name: &Arc<str>, raw: &RawValue, reader: &mut impl PayloadReader) {
    let wrong = |key: String| PayloadEntry { component: Arc::clone(name), key, body: EntryBody::Wrong };
    let Ok(ObjectMembers(fields)) = serde_json::from_str::<Pairs<'_>>(raw.get()) else {
        return reader.take_entry(wrong(String::new()));
    };
    for (field, members) in fields {
        if is_nothing(members) || !matches!(&*field, "hints" | "variants") {
            continue;
        }
        let Ok(ObjectMembers(members)) = serde_json::from_str::<Pairs<'_>>(members.get()) else {
            reader.take_entry(wrong(String::new()));
            continue;
        };
        for (key, hint) in members {
            if field == "variants" && is_nothing(hint) {
                continue;
            }
            if field == "hints" {
                reader.take_entry(PayloadEntry { component: Arc::clone(name), key, body: EntryBody::Raw(hint) });
            } else if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(hint.get()) {
                for hint in list {
                    reader.take_entry(PayloadEntry {
                        component: Arc::clone(name),
                        key: key.clone(),
                        body: EntryBody::Raw(hint),
                    });
                }
            } else {
                reader.take_entry(wrong(key));
            }
        }
    }
}

/// Returns true for `null`, `[]` and `{}`, which mean that no value was given.
fn is_nothing(raw: &RawValue) -> bool {
    let mut text = raw.get().chars().filter(|c| !c.is_ascii_whitespace());
    let head: String = text.by_ref().take(5).collect();
    matches!(&*head, "null" | "[]" | "{}")
}

/// Refuses unknown top-level keys of more than [`MAX_EXTRA_BYTES`].
pub(crate) fn check_extra_size(extra: &Extra) -> Result<()> {
    if extra.iter().map(|(name, value)| name.len() + value.get().len()).sum::<usize>() > MAX_EXTRA_BYTES {
        return Err(Error::invalid("The unknown top-level keys of a store may have 64 KiB in all; leave some out."));
    }
    Ok(())
}

fn check_schema(value: &RawValue) -> Result<()> {
    let version: Option<String> = serde_json::from_str(value.get())
        .map_err(|_| Error::invalid("`schema_version` must be a string such as `1.0`.").about("schema_version"))?;
    match version.as_deref().map(|version| version.split('.').next().unwrap_or(version)) {
        None | Some("1") => Ok(()),
        Some(_) => Err(Error::invalid("The payload has another schema version; this one reads 1.x.")),
    }
}

/// The members of an object in document order, including duplicates.
#[derive(Debug)]
struct ObjectMembers<V>(Vec<(String, V)>);

/// The members as raw JSON text. They are parsed one by one.
type Pairs<'a> = ObjectMembers<&'a RawValue>;

/// Reads a document in which every hint is right, such as an export, and returns its other members. This reader takes
/// one pass; the reader that skips wrong hints takes five.
struct WellFormed<'r, R>(&'r mut R);

/// Reads the components of a document in which every hint is right.
struct WellFormedComponents<'r, R>(&'r mut R);

#[derive(Deserialize)]
struct WellFormedComponent {
    #[serde(default)]
    hints: Option<ObjectMembers<WholeHint>>,
    #[serde(default)]
    variants: Option<ObjectMembers<Vec<WholeHint>>>,
}

/// A hint of which the value is present.
struct WholeHint(Box<HintDocument>);

/// Accepts only a JSON object, because serde would also read a struct from a list.
struct ObjectOnly<T>(T);

impl<'de, R: PayloadReader> DeserializeSeed<'de> for WellFormed<'_, R> {
    type Value = Vec<(String, &'de RawValue)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, R: PayloadReader> Visitor<'de> for WellFormed<'_, R> {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a store")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut rest, mut has_components) = (Vec::new(), false);
        while let Some(name) = map.next_key::<String>()? {
            if name != "components" {
                rest.push((name, map.next_value()?));
            } else if std::mem::replace(&mut has_components, true) {
                return Err(de::Error::duplicate_field("components"));
            } else {
                map.next_value_seed(WellFormedComponents(&mut *self.0))?;
            }
        }
        if has_components { Ok(rest) } else { Err(de::Error::missing_field("components")) }
    }
}

impl<'de, R: PayloadReader> DeserializeSeed<'de> for WellFormedComponents<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, R: PayloadReader> Visitor<'de> for WellFormedComponents<'_, R> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, ObjectOnly(component))) = map.next_entry::<String, _>()? {
            take_component(&name.into(), component, self.0);
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for WholeHint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ObjectOnly(hint) = ObjectOnly::<Box<HintDocument>>::deserialize(deserializer)?;
        if hint.value.is_none() {
            return Err(de::Error::custom("no hint"));
        }
        Ok(Self(hint))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = ObjectOnly<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ObjectOnly<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(ObjectOnly)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for ObjectMembers<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for MembersVisitor<V> {
            type Value = ObjectMembers<V>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectMembers<V>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(ObjectMembers(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

/// A hint of a document. [`HintDocument::into_hint`] fills in absent fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct HintDocument {
    value: Option<HintValue>,
    #[serde(deserialize_with = "wire::object_or_default")]
    pub meta: HintMeta,
    #[serde(deserialize_with = "wire::given")]
    pub version: Option<u64>,
    #[serde(deserialize_with = "read_time")]
    pub created_at: Option<Millis>,
    #[serde(deserialize_with = "read_time")]
    pub updated_at: Option<Millis>,
    #[serde(deserialize_with = "read_time")]
    pub last_used_at: Option<Millis>,
    #[serde(deserialize_with = "wire::given_or_default")]
    pub use_count: u64,
    #[serde(deserialize_with = "wire::given_or_default")]
    pub failure_count: u32,
    #[serde(deserialize_with = "read_time")]
    pub last_failed_at: Option<Millis>,
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    struct ParsedTime(Millis);
    impl<'de> Deserialize<'de> for ParsedTime {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_str(TimeVisitor).map(Self)
        }
    }
    struct TimeVisitor;
    impl Visitor<'_> for TimeVisitor {
        type Value = Millis;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Millis, E> {
            rfc3339::parse(text).ok_or_else(|| E::custom("a time must be RFC 3339"))
        }
    }
    Ok(wire::given::<ParsedTime, _>(deserializer)?.map(|time| time.0))
}

impl HintDocument {
    /// Reads a hint, or only a hint's value.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn read(body: EntryBody<'_>) -> Result<(HintValue, Self)> {
        #[derive(Deserialize)]
        struct ValueProbe {
            value: Option<IgnoredAny>,
        }
        let raw = match body {
            EntryBody::Hint(hint) => return hint.into_parts(),
            EntryBody::Raw(raw) => raw,
            EntryBody::Wrong => return Err(Error::invalid("A component must be an object.")),
        };
        let is_hint = raw.get().starts_with('{')
            && serde_json::from_str::<ValueProbe>(raw.get()).is_ok_and(|probe| probe.value.is_some());
        if !is_hint {
            return Ok((wire::parse_json(raw.get(), "hint")?, Self::default()));
        }
        wire::parse_json::<Self>(raw.get(), "hint")?.into_parts()
    }

    /// Makes the hint. Missing times become `now`.
    pub fn into_hint(self, component: &Arc<str>, key: &str, value: HintValue, scope: Arc<Scope>, now: Millis) -> Hint {
        let mut hint = Hint::new(Arc::clone(component), key, value, self.meta, scope, now);
        hint.version = self.version.unwrap_or(1);
        hint.updated_at = self.updated_at.unwrap_or(now);
        hint.created_at = self.created_at.unwrap_or(hint.updated_at);
        hint.set_usage(HintUsage {
            count: self.use_count,
            last: self.last_used_at,
            failures: self.failure_count,
            last_failed: self.last_failed_at,
        });
        hint
    }

    /// Checks the counts, and separates the value from the other fields.
    fn into_parts(mut self) -> Result<(HintValue, Self)> {
        let value = self.value.take().ok_or_else(|| Error::invalid("A hint needs a value."))?;
        let counts = [self.version.unwrap_or(1), self.use_count];
        if self.version == Some(0) || counts.into_iter().any(|count| count > MAX_SAFE) {
            return Err(Error::invalid("The version of a hint is 1 to 2^53 - 1, its use_count 0 to 2^53 - 1."));
        }
        Ok((value, self))
    }
}
