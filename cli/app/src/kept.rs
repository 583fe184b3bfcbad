//! The hints that outlive a session (semantics section 12). They are rows of `hints.db` in the folder for data
//! ([`database`]). Earlier versions had them in `kept.json` in the folder for state ([`state_folder`]), in the format of
//! an export, which is still the readable form.

use std::collections::BTreeMap;

use nudge_core::text::to_hex;
use nudge_core::wire::json_text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

pub mod database;
pub mod folder;
pub mod log;
pub mod state_folder;

/// The advice for a state folder on a file system without locks.
pub const NO_LOCKS: &str = "its file system has no locks, so set XDG_STATE_HOME to a folder on a disk of this machine";

/// The ttl of hints that are stored without one in a session that keeps.
pub const KEPT_TTL: &str = "P365D";

/// The bytes of a scope's digest in a variant's name.
const VARIANT_BYTES: usize = 6;
/// The canonical form of a scope without conditions. Its variant has no name.
const EMPTY_SCOPE: &str = "{}";

/// The names under which a hint is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantName {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    /// The variant: a digest of the scope; empty for a hint without a scope.
    pub variant: String,
}

impl VariantName {
    /// Names an exported hint. A scope in another form than an export writes gets another name than the store gives it.
    pub fn from_export(component: &str, key: &str, hint: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct ExportedName<'a> {
            #[serde(borrow)]
            meta: ExportedScope<'a>,
        }
        #[derive(Deserialize)]
        struct ExportedScope<'a> {
            #[serde(borrow, default)]
            scope: Option<&'a RawValue>,
        }
        // A hint without `meta` has no scope.
        let scope = serde_json::from_str::<ExportedName<'_>>(hint.get()).ok().and_then(|hint| hint.meta.scope);
        let scope = scope.map(RawValue::get).filter(|scope| *scope != EMPTY_SCOPE);
        let variant = scope.map_or_else(String::new, |scope| to_hex(&Sha256::digest(scope)[..VARIANT_BYTES]));
        Self { component: component.to_owned(), key: key.to_owned(), variant }
    }
}

/// The hints of an export, with the other fields that a kept file of an earlier version has.
#[derive(Debug, Default, Deserialize)]
pub struct KeptDocument<'a> {
    #[serde(borrow, default)]
    schema_version: Option<&'a RawValue>,
    /// The session that wrote the document.
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    /// The hints.
    #[serde(borrow)]
    pub components: BTreeMap<String, KeptComponent<'a>>,
    /// The content hashes (marks) of hints that the session still has but must not write again.
    #[serde(default)]
    pub forgotten: Vec<String>,
}

/// The hints of a component, as in an export.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct KeptComponent<'a> {
    #[serde(borrow)]
    hints: BTreeMap<String, &'a RawValue>,
    #[serde(borrow, skip_serializing_if = "BTreeMap::is_empty")]
    variants: BTreeMap<String, Vec<&'a RawValue>>,
}

impl<'a> KeptDocument<'a> {
    /// Reads an export or a kept file of an earlier version.
    ///
    /// # Errors
    /// Fails for any other text.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        // Refuses a list, because serde would read the items of a list as the fields in order.
        if !text.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("it is no object"));
        }
        serde_json::from_str(text)
    }

    /// Builds a document from hints, each with its component and key. Further hints of the same key become variants.
    pub fn from_hints(hints: impl Iterator<Item = (&'a str, &'a str, &'a RawValue)>) -> Self {
        let mut document = Self::default();
        for (component, key, hint) in hints {
            let component = document.components.entry(component.to_owned()).or_default();
            if component.hints.contains_key(key) {
                component.variants.entry(key.to_owned()).or_default().push(hint);
            } else {
                component.hints.insert(key.to_owned(), hint);
            }
        }
        document
    }

    /// Returns true when the session with this id wrote the document.
    pub fn is_of(&self, session: &str) -> bool {
        self.session_id.is_some_and(|id| serde_json::from_str::<String>(id.get()).is_ok_and(|id| id == session))
    }

    /// Iterates over every hint with its component and key.
    pub fn iter_hints(&self) -> impl Iterator<Item = (&str, &str, &'a RawValue)> {
        self.components.iter().flat_map(|(name, component)| {
            let first = component.hints.iter().map(|(key, hint)| (key.as_str(), *hint));
            let further =
                component.variants.iter().flat_map(|(key, hints)| hints.iter().map(|hint| (key.as_str(), *hint)));
            first.chain(further).map(|(key, hint)| (name.as_str(), key, hint))
        })
    }

    /// Returns the number of hints, variants included.
    pub fn count_hints(&self) -> usize {
        self.iter_hints().count()
    }

    /// Returns the document as a payload for `nudge.import`.
    pub fn to_payload(&self) -> String {
        write_payload(self.schema_version, &self.components)
    }

    /// Returns the document without its hints as a payload for `nudge.import`, which checks the version of the format.
    pub fn to_empty_payload(&self) -> String {
        write_payload(self.schema_version, &BTreeMap::new())
    }
}

fn write_payload(schema_version: Option<&RawValue>, components: &BTreeMap<String, KeptComponent<'_>>) -> String {
    #[derive(Serialize)]
    struct WrittenPayload<'a> {
        // Passes the version on, because `nudge.import` refuses an unknown version.
        #[serde(skip_serializing_if = "Option::is_none")]
        schema_version: Option<&'a RawValue>,
        components: &'a BTreeMap<String, KeptComponent<'a>>,
    }
    // The serialization of texts cannot fail.
    json_text(&WrittenPayload { schema_version, components })
}

/// Returns true for an exported hint that outlives its session: its ttl is not `session`, and the hint is no secret.
/// Nudge never writes a secret to disk.
pub fn is_lasting(hint: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct HintDuration {
        meta: DurationMeta,
    }
    #[derive(Deserialize)]
    struct DurationMeta {
        #[serde(default)]
        ttl: Option<String>,
        #[serde(default)]
        sensitivity: Option<String>,
    }
    serde_json::from_str::<HintDuration>(hint.get()).is_ok_and(|HintDuration { meta }| {
        meta.sensitivity.as_deref() != Some("secret") && meta.ttl.as_deref().is_some_and(|ttl| ttl != "session")
    })
}

/// Returns the number of kept hints from a result of `nudge.status`. Returns `None` when the result does not say it.
pub fn count_kept(status: &RawValue) -> Option<usize> {
    #[derive(Deserialize)]
    struct KeepingAnswer {
        keeping: KeepingStatus,
    }
    #[derive(Deserialize)]
    struct KeepingStatus {
        hints: Option<usize>,
    }
    serde_json::from_str::<KeepingAnswer>(status.get()).ok()?.keeping.hints
}

#[cfg(test)]
mod tests {
    use nudge::{Scope, ScopeSpec};
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn a_document_passes_hints_on_byte_for_byte() {
        let open = r#"{"value":{"type":"json","data":{"z":1.0,"a":2}},"meta":{"ttl":"P1D"}}"#;
        let short = r#"{"value":"x","meta":{"ttl":"session"}}"#;
        let text = format!(
            r#"{{"schema_version":"1.0","session_id":"s","components":{{"a":{{"hints":{{"k":{short},"l":{open}}},"variants":{{"k":[{open},{short}]}}}},"b":{{"hints":{{"k":{short}}}}}}},"extra":1}}"#
        );
        let document = KeptDocument::read(&text).unwrap();
        assert!(document.is_of("s") && !document.is_of("t"));
        assert_eq!(document.count_hints(), 5);
        let lasting = document.iter_hints().filter(|(.., hint)| is_lasting(hint));
        let lasting: Vec<_> = lasting.map(|(component, key, hint)| (component, key, hint.get())).collect();
        assert_eq!(lasting, [("a", "l", open), ("a", "k", open)]);
        assert_eq!(
            document.to_payload(),
            text.replace(r#""session_id":"s","#, "").replace(r#","extra":1"#, ""),
            "as an import takes it"
        );
        assert_eq!(document.to_empty_payload(), r#"{"schema_version":"1.0","components":{}}"#);
        assert!(KeptDocument::read("{\"components\":[]}").is_err() && KeptDocument::read("").is_err());
    }

    #[test]
    fn a_row_is_named_as_the_store_names_the_variant() {
        let spec: ScopeSpec = serde_json::from_value(json!({"branch": "dev", "repo": "h/o/r"})).unwrap();
        let scope = Scope::new(&spec).unwrap();
        for (scope, variant) in [(Some(&scope), scope.variant()), (None, "")] {
            let hint = to_raw_value(&json!({"value": "x", "meta": {"scope": scope}})).unwrap();
            assert_eq!(VariantName::from_export("a", "k", &hint).variant, variant);
        }
        let plain = to_raw_value("x").unwrap();
        assert_eq!(VariantName::from_export("a", "k", &plain).variant, "");
    }
}
