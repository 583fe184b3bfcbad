//! Defines the result of a lookup, from a store in this process or from the running session.

use std::fmt;
use std::sync::Arc;

use nudge::{HintValue, Match, MatchExplain, Result, ScoreParts, Sensitivity};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::store::{to_raw, unknown_form};

/// A hint that a [`Store`](crate::Store) of either kind has found. It computes reasons and score parts only when a
/// caller needs them.
#[derive(Debug, Clone)]
pub struct FoundHint(FoundIn);

#[derive(Clone)]
enum FoundIn {
    Own(Match),
    Session(Arc<HintTold>),
}

/// An answer of `nudge.get_hint`.
struct HintTold {
    /// The hint's JSON, exactly as the server sent it.
    hint: Box<RawValue>,
    fields: HintFields,
    explain: MatchExplain,
}

/// The fields of a hint that [`FoundHint`] has accessors for.
#[derive(Deserialize)]
struct HintFields {
    component: String,
    key: String,
    value: HintValue,
    #[serde(default)]
    variant: String,
    version: u64,
    #[serde(default)]
    meta: HintMetaFields,
}

/// The fields of a hint's `meta` that [`FoundHint`] has accessors for.
#[derive(Default, Deserialize)]
struct HintMetaFields {
    #[serde(default)]
    sensitivity: Option<Sensitivity>,
}

impl FoundHint {
    /// Parses an answer of `nudge.get_hint`.
    pub(crate) fn parse(result: &RawValue) -> Result<Self> {
        #[derive(Deserialize)]
        struct GotHintReply {
            hint: Box<RawValue>,
            match_explain: MatchExplain,
        }
        let read = || {
            let GotHintReply { hint, match_explain: explain } = serde_json::from_str(result.get())?;
            let fields = serde_json::from_str(hint.get())?;
            Ok::<_, serde_json::Error>(Self(FoundIn::Session(Arc::new(HintTold { hint, fields, explain }))))
        };
        read().map_err(unknown_form)
    }

    /// Returns the component.
    pub fn component(&self) -> &str {
        match &self.0 {
            FoundIn::Own(found) => found.hint().component(),
            FoundIn::Session(told) => &told.fields.component,
        }
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        match &self.0 {
            FoundIn::Own(found) => found.hint().key(),
            FoundIn::Session(told) => &told.fields.key,
        }
    }

    /// Returns the value's text, see [`HintValue::text`].
    pub fn text(&self) -> &str {
        self.value().text()
    }

    /// Returns the value, even when it is secret.
    pub fn value(&self) -> &HintValue {
        match &self.0 {
            FoundIn::Own(found) => found.hint().value(),
            FoundIn::Session(told) => &told.fields.value,
        }
    }

    /// Returns the variant, which is the digest of the scope. It is `""` when the hint applies everywhere.
    pub fn variant(&self) -> &str {
        match &self.0 {
            FoundIn::Own(found) => found.hint().variant(),
            FoundIn::Session(told) => &told.fields.variant,
        }
    }

    /// Returns the hint's version, which counts how many times the hint was set.
    pub fn version(&self) -> u64 {
        match &self.0 {
            FoundIn::Own(found) => found.hint().version(),
            FoundIn::Session(told) => told.fields.version,
        }
    }

    /// Returns true when the value is secret and must not be shown.
    pub fn is_secret(&self) -> bool {
        match &self.0 {
            FoundIn::Own(found) => found.hint().is_secret(),
            FoundIn::Session(told) => told.fields.meta.sensitivity == Some(Sensitivity::Secret),
        }
    }

    /// Returns the score, from 0 to 1. A session sends it with four decimals.
    pub fn score(&self) -> f64 {
        match &self.0 {
            FoundIn::Own(found) => found.score(),
            FoundIn::Session(told) => told.explain.score,
        }
    }

    /// Returns the addends of the score, with their names.
    pub fn parts(&self) -> ScoreParts {
        match &self.0 {
            FoundIn::Own(found) => found.parts(),
            FoundIn::Session(told) => told.explain.parts.clone(),
        }
    }

    /// Returns the reasons why the hint fits, and the reasons for its score.
    pub fn reasons(&self) -> Vec<String> {
        match &self.0 {
            FoundIn::Own(found) => found.reasons(),
            FoundIn::Session(told) => told.explain.reasons.clone(),
        }
    }

    /// Returns the hint as JSON in the form of `nudge.get_hint`.
    ///
    /// # Errors
    /// A hint that cannot be written as JSON; no such hint is known.
    pub fn hint(&self) -> Result<Box<RawValue>> {
        match &self.0 {
            FoundIn::Own(found) => to_raw(&**found.hint()),
            FoundIn::Session(told) => Ok(told.hint.clone()),
        }
    }
}

impl From<Match> for FoundHint {
    fn from(found: Match) -> Self {
        Self(FoundIn::Own(found))
    }
}

/// Leaves the value out of debug output, because it may be secret.
impl fmt::Debug for FoundIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}
