//! Explains a choice in words and in numbers. The form of the explanation is the same for every source.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use smallvec::SmallVec;

/// The explanation for an item that a read returns.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MatchExplain {
    /// Is true when the item fits the caller's context: every condition of its scope is met.
    pub matched: bool,
    /// The score, 0 to 1; it is sent with four decimals.
    #[serde(serialize_with = "four_decimals")]
    pub score: f64,
    /// The addends of the score.
    pub parts: ScoreParts,
    /// The reasons for the match; without a match, the condition that was not met.
    pub reasons: Vec<String>,
}

/// Named addends of a score. Each source has its own names; semantics section 3 lists the names for hints.
///
/// Serializes as an object, in the order of the parts, with four decimals.
///
/// ```
/// use nudge_core::explain::ScoreParts;
///
/// let parts = ScoreParts::from([("words", 0.25), ("freshness", 0.5)]);
/// assert_eq!((parts.get_part("words"), parts.get_part("similarity")), (Some(0.25), None));
/// assert_eq!(parts.total(), 0.75);
/// assert_eq!(serde_json::to_string(&parts)?, r#"{"words":0.25,"freshness":0.5}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Default)]
pub struct ScoreParts(SmallVec<[(Cow<'static, str>, f64); 6]>);

impl ScoreParts {
    /// Adds a part at the end.
    pub fn push(&mut self, name: &'static str, value: f64) {
        self.0.push((Cow::Borrowed(name), value));
    }

    /// Returns the part with this name, if there is one.
    pub fn get_part(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
    }

    /// Returns every part in order, not rounded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Returns the sum of the parts: the score.
    pub fn total(&self) -> f64 {
        self.0.iter().map(|(_, value)| value).sum()
    }
}

impl<const N: usize> From<[(&'static str, f64); N]> for ScoreParts {
    fn from(parts: [(&'static str, f64); N]) -> Self {
        Self(parts.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }
}

impl fmt::Debug for ScoreParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for ScoreParts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, &round_number(value))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ScoreParts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = ScoreParts;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScoreParts, A::Error> {
                let mut parts = ScoreParts::default();
                while let Some((name, value)) = map.next_entry::<String, f64>()? {
                    parts.0.push((Cow::Owned(name), value));
                }
                Ok(parts)
            }
        }
        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Rounds a number for display: at most four decimals.
pub fn round_number(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// Serializes a number with [`round_number`], for serde.
///
/// # Errors
/// The serializer's own errors.
// serde requires this signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub fn four_decimals<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(round_number(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let explain = MatchExplain {
            matched: true,
            score: 0.123_456,
            parts: ScoreParts::from([("b", 0.1), ("a", 0.023_456)]),
            reasons: vec!["because".into()],
        };
        let text = serde_json::to_string(&explain).unwrap();
        assert_eq!(text, r#"{"matched":true,"score":0.1235,"parts":{"b":0.1,"a":0.0235},"reasons":["because"]}"#);
        let read: MatchExplain = serde_json::from_str(&text).unwrap();
        assert_eq!((read.parts.get_part("a"), read.score), (Some(0.0235), 0.1235));
        assert!((explain.parts.total() - explain.score).abs() < 1e-9);
    }
}
