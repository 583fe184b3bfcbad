//! Defines hints, as they are stored and as JSON (semantics section 13).

use std::fmt;
use std::sync::Arc;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::{Error, Result};
use nudge_core::limit::BoundedNumber;
use nudge_core::scope::{Scope, ScopeSpec};
use nudge_core::suggest::unproven;
use nudge_core::wire;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::ttl::Ttl;

/// The name of the source of the hints.
pub const NAME: &str = "hints";

mod size;
mod value;

pub use value::{CommandShell, CommandValue, HintValue, PathValue, TemplateFormat, TemplateValue};

/// The most bytes of a component or key.
const MAX_NAME_BYTES: usize = 256;
/// The range of a hint's priority.
type PriorityRange = BoundedNumber<1, 10>;
const MAX_TAGS: usize = 32;
const MAX_TAG_BYTES: usize = 64;
const MAX_REASON_BYTES: usize = 2 << 10;

/// The number of failures at which a hint becomes doubtful (semantics section 10).
pub const DOUBTFUL_FAILURES: u32 = 3;

/// Says if a value is a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    /// The value is a secret: redacted wherever people look, never written to disk.
    Secret,
    /// An ordinary value.
    Normal,
}

/// The origin of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HintOrigin {
    /// A person.
    User,
    /// A coding agent.
    Agent,
    /// The output of a tool.
    ToolOutput,
    /// An import.
    FileImport,
}

impl HintOrigin {
    /// Returns the word used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::ToolOutput => "tool-output",
            Self::FileImport => "file-import",
        }
    }
}

/// A caller's data about a hint, besides its value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HintMeta {
    /// Why it is worth knowing.
    #[serde(deserialize_with = "wire::given")]
    pub reason: Option<String>,
    /// Words to find it by.
    #[serde(deserialize_with = "wire::given_or_default")]
    #[schemars(description = "")]
    pub tags: Vec<String>,
    /// How much it counts among variants; 5 when absent.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(with = "Option<PriorityRange>", description = "")]
    pub priority: Option<u8>,
    /// 0 to 1, 0.5 when absent.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(range(min = 0.0, max = 1.0))]
    #[schemars(description = "")]
    pub confidence: Option<f64>,
    /// `session`, or a duration such as `2h` from the last set.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(with = "Option<String>")]
    pub ttl: Option<Ttl>,
    /// `secret` exempts the value from the guard and hides it.
    #[serde(deserialize_with = "wire::given")]
    pub sensitivity: Option<Sensitivity>,
    /// The scope.
    #[serde(deserialize_with = "wire::object_or_default")]
    pub scope: ScopeSpec,
    /// The origin.
    #[serde(deserialize_with = "wire::given")]
    #[schemars(description = "")]
    pub source: Option<HintOrigin>,
    /// Such as `agent:codex`.
    #[serde(deserialize_with = "wire::given")]
    pub added_by: Option<String>,
}

impl HintMeta {
    /// Checks sizes and ranges (semantics section 5).
    pub(crate) fn check_limits(&self) -> Result<()> {
        if self.reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON_BYTES) {
            return Err(Error::invalid("`meta.reason` may have 2 KiB at most.").about("meta.reason"));
        }
        if self.tags.len() > MAX_TAGS || self.tags.iter().any(|tag| !(1..=MAX_TAG_BYTES).contains(&tag.len())) {
            return Err(
                Error::invalid("`meta.tags` may have 32 tags at most, each of 1 to 64 bytes.").about("meta.tags")
            );
        }
        if let Some(priority) = self.priority {
            PriorityRange::check(priority.into(), "meta.priority")?;
        }
        if self.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
            return Err(Error::invalid("`meta.confidence` must be a number from 0 to 1.").about("meta.confidence"));
        }
        if self.added_by.as_ref().is_some_and(|name| name.len() > MAX_NAME_BYTES) {
            return Err(Error::invalid("`meta.added_by` may have 256 bytes at most.").about("meta.added_by"));
        }
        self.scope.check_sizes()
    }
}

/// Checks a component or key: 1 to 256 bytes without control characters.
///
/// # Errors
/// `E_INVALID`. The message names `field`.
pub fn check_name(field: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.chars().any(char::is_control) {
        return Err(
            Error::invalid(format!("`{field}` must have 1 to 256 bytes and no control characters.")).about(field)
        );
    }
    Ok(())
}

/// A stored hint. It never changes: every change makes a new hint, so a reader's copy stays as it is.
///
/// A hint serializes in full, even when its value is secret; [`Hint::as_redacted`] hides secrets.
#[derive(Clone)]
pub struct Hint {
    pub(crate) component: Arc<str>,
    pub(crate) key: Box<str>,
    pub(crate) value: HintValue,
    pub(crate) scope: Arc<Scope>,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) tags: Box<[Arc<str>]>,
    pub(crate) ttl: Ttl,
    /// NaN means that no confidence was given. A plain number takes half the size of an `Option`.
    confidence: f64,
    /// The priority; 0 means that none was given.
    priority: u8,
    sensitivity: Option<Sensitivity>,
    source: Option<HintOrigin>,
    pub(crate) version: u64,
    pub(crate) created_at: Millis,
    pub(crate) updated_at: Millis,
    /// The time of the last use; [`NEVER`] means that there was none.
    last_used_at: Millis,
    pub(crate) use_count: u64,
    /// The bytes of the hint in an export, with its key; see [`Hint::measure`].
    pub(crate) bytes: u32,
    /// The bytes of the hint in memory. Shared scopes and tags count in full.
    pub(crate) held: u32,
    /// Fields that few hints have.
    rare: Option<Box<RareFields>>,
}

const NEVER: Millis = Millis::MIN;

#[derive(Clone, Default)]
struct RareFields {
    added_by: Option<Box<str>>,
    failure_count: u32,
    last_failed_at: Option<Millis>,
}

/// Counters and times of a hint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HintUsage {
    pub count: u64,
    pub last: Option<Millis>,
    pub failures: u32,
    pub last_failed: Option<Millis>,
}

impl Hint {
    /// Makes a checked hint with version 1 and no uses.
    pub(crate) fn new(
        component: Arc<str>,
        key: &str,
        value: HintValue,
        meta: HintMeta,
        scope: Arc<Scope>,
        now: Millis,
    ) -> Self {
        Self {
            component,
            key: key.into(),
            value,
            scope,
            reason: meta.reason.map(Into::into),
            tags: meta.tags.into_iter().map(Into::into).collect(),
            ttl: meta.ttl.unwrap_or_default(),
            confidence: meta.confidence.unwrap_or(f64::NAN),
            priority: meta.priority.unwrap_or_default(),
            sensitivity: meta.sensitivity,
            source: meta.source,
            version: 1,
            created_at: now,
            updated_at: now,
            last_used_at: NEVER,
            use_count: 0,
            bytes: 0,
            held: 0,
            rare: meta
                .added_by
                .map(|name| Box::new(RareFields { added_by: Some(name.into()), ..RareFields::default() })),
        }
    }

    /// Returns true when value and meta are equal. Times and counts are not compared.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let said = |hint: &Self| (hint.priority(), hint.confidence(), hint.sensitivity, hint.source);
        self.value == other.value
            && self.scope.variant() == other.scope.variant()
            && said(self) == said(other)
            && (&self.reason, &self.tags, &self.ttl) == (&other.reason, &other.tags, &other.ttl)
            && self.added_by() == other.added_by()
    }

    /// Returns the hint's component.
    pub fn component(&self) -> &str {
        &self.component
    }

    /// Returns the hint's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the digest of the scope; `""` when the hint applies everywhere.
    pub fn variant(&self) -> &str {
        self.scope.variant()
    }

    /// Returns the value, even when it is secret.
    pub fn value(&self) -> &HintValue {
        &self.value
    }

    /// Returns the text of the value; see [`HintValue::text`].
    pub fn text(&self) -> &str {
        self.value.text()
    }

    /// Returns the scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the reason why the hint is worth knowing; `None` if none was given.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Returns the tags.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(|tag| &**tag)
    }

    /// Returns the priority, 1 to 10; `None` if none was given.
    pub fn priority(&self) -> Option<u8> {
        (self.priority > 0).then_some(self.priority)
    }

    /// Returns the confidence, 0 to 1; `None` if none was given.
    pub fn confidence(&self) -> Option<f64> {
        (!self.confidence.is_nan()).then_some(self.confidence)
    }

    /// Returns the time to live. It counts from `updated_at`.
    pub fn ttl(&self) -> &Ttl {
        &self.ttl
    }

    /// Returns true when the value is a secret.
    pub fn is_secret(&self) -> bool {
        self.sensitivity == Some(Sensitivity::Secret)
    }

    /// Returns the kind of origin; `None` if none was given.
    pub fn source(&self) -> Option<HintOrigin> {
        self.source
    }

    /// Returns the name of the author; `None` if none was given.
    pub fn added_by(&self) -> Option<&str> {
        self.rare.as_ref()?.added_by.as_deref()
    }

    /// Returns true when the hint was learned and has worked in only one client session. Nudge tells such a hint only
    /// after the failure that the hint repaired (semantics section 10).
    pub(crate) fn is_unproven(&self) -> bool {
        self.source == Some(HintOrigin::ToolOutput) && self.tags().any(unproven::is_tag)
    }

    /// Returns the version. Every set increases it by one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the time of the first set.
    pub fn created_at(&self) -> Millis {
        self.created_at
    }

    /// Returns the time of the last set.
    pub fn updated_at(&self) -> Millis {
        self.updated_at
    }

    /// Returns the time of the last bump.
    pub fn last_used_at(&self) -> Option<Millis> {
        (self.last_used_at != NEVER).then_some(self.last_used_at)
    }

    /// Returns the number of uses.
    pub fn use_count(&self) -> u64 {
        self.use_count
    }

    /// Returns the number of failures since the hint last worked (semantics section 10).
    pub fn failure_count(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.failure_count)
    }

    /// Returns the time of the last failure.
    pub fn last_failed_at(&self) -> Option<Millis> {
        self.rare.as_ref().and_then(|rare| rare.last_failed_at)
    }

    /// Returns true when the hint has failed so often that it ranks after all hints that are not doubtful.
    pub fn is_doubtful(&self) -> bool {
        self.failure_count() >= DOUBTFUL_FAILURES
    }

    /// Returns true when the hint has expired at `now`. No method shows an expired hint.
    pub fn is_expired(&self, now: Millis) -> bool {
        now >= self.expires_at()
    }

    /// Returns true when the ttl is a duration and not `session`.
    pub fn has_expiry(&self) -> bool {
        *self.ttl() != Ttl::SESSION
    }

    pub(crate) fn expires_at(&self) -> Millis {
        self.ttl.expires_at(self.updated_at)
    }

    pub(crate) fn usage(&self) -> HintUsage {
        HintUsage {
            count: self.use_count,
            last: self.last_used_at(),
            failures: self.failure_count(),
            last_failed: self.last_failed_at(),
        }
    }

    pub(crate) fn set_usage(&mut self, usage: HintUsage) {
        self.use_count = usage.count;
        self.last_used_at = usage.last.unwrap_or(NEVER);
        if self.rare.is_some() || usage.failures > 0 || usage.last_failed.is_some() {
            let rare = self.rare.get_or_insert_default();
            (rare.failure_count, rare.last_failed_at) = (usage.failures, usage.last_failed);
        }
    }

    /// Returns a wrapper that serializes a secret value as `"[secret]"`.
    pub fn as_redacted(&self) -> RedactedHint<'_> {
        RedactedHint(self)
    }

    fn serialize_fields<M: SerializeMap>(&self, map: &mut M, redact: bool, named: bool) -> Result<(), M::Error> {
        if named {
            map.serialize_entry("component", &*self.component)?;
            map.serialize_entry("key", &*self.key)?;
            if !self.scope.is_empty() {
                map.serialize_entry("variant", self.scope.variant())?;
            }
        }
        if redact && self.is_secret() {
            map.serialize_entry("value", "[secret]")?;
        } else {
            map.serialize_entry("value", &self.value)?;
        }
        map.serialize_entry("meta", &SerializedMeta(self))?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("created_at", &rfc3339::TimeText::from_millis(self.created_at))?;
        map.serialize_entry("updated_at", &rfc3339::TimeText::from_millis(self.updated_at))?;
        if let Some(used) = self.last_used_at() {
            map.serialize_entry("last_used_at", &rfc3339::TimeText::from_millis(used))?;
        }
        if self.use_count > 0 {
            map.serialize_entry("use_count", &self.use_count)?;
        }
        if self.failure_count() > 0 {
            map.serialize_entry("failure_count", &self.failure_count())?;
        }
        if let Some(failed) = self.last_failed_at() {
            map.serialize_entry("last_failed_at", &rfc3339::TimeText::from_millis(failed))?;
        }
        Ok(())
    }
}

struct SerializedMeta<'a>(&'a Hint);

impl Serialize for SerializedMeta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hint = self.0;
        let mut map = serializer.serialize_map(None)?;
        if let Some(reason) = &hint.reason {
            map.serialize_entry("reason", reason)?;
        }
        if !hint.tags.is_empty() {
            struct SerializedTags<'a>(&'a Hint);
            impl Serialize for SerializedTags<'_> {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_seq(self.0.tags())
                }
            }
            map.serialize_entry("tags", &SerializedTags(hint))?;
        }
        if let Some(priority) = hint.priority() {
            map.serialize_entry("priority", &priority)?;
        }
        if let Some(confidence) = hint.confidence() {
            map.serialize_entry("confidence", &confidence)?;
        }
        map.serialize_entry("ttl", &hint.ttl)?;
        if let Some(sensitivity) = hint.sensitivity {
            map.serialize_entry("sensitivity", &sensitivity)?;
        }
        if !hint.scope.is_empty() {
            map.serialize_entry("scope", &*hint.scope)?;
        }
        if let Some(source) = hint.source {
            map.serialize_entry("source", &source)?;
        }
        if let Some(name) = hint.added_by() {
            map.serialize_entry("added_by", name)?;
        }
        map.end()
    }
}

fn serialize<S: Serializer>(hint: &Hint, serializer: S, redact: bool, named: bool) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    hint.serialize_fields(&mut map, redact, named)?;
    map.end()
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self, serializer, false, true)
    }
}

/// A hint that serializes with `"[secret]"` in place of a secret value.
pub struct RedactedHint<'a>(&'a Hint);

impl Serialize for RedactedHint<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, serializer, true, true)
    }
}

/// A hint in the format of an export. Component and key are keys of the objects around it.
pub(crate) struct HintInExport<'a>(pub &'a Hint);

impl Serialize for HintInExport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, serializer, false, false)
    }
}

impl fmt::Debug for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hint({}/{} {} v{})", self.component, self.key, self.scope.variant(), self.version)
    }
}
