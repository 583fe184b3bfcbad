//! Whole numbers with a range, for the params of methods. Only the type states the range and the default; the check,
//! the JSON Schema and the sentence in the documentation come from the type.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::Number;

use crate::error::{Error, Result};
use crate::wire;

/// The member of a schema with its range in words; [`build_schema`](crate::table::build_schema) moves it into the
/// description.
pub(crate) const RANGE_WORDS: &str = "x-range";

/// A whole number from `MIN` to `MAX`. With a `MAX` of `usize::MAX` there is no upper bound.
///
/// Any other number is refused with a sentence such as "`confirm_ms` must be a whole number from 1 to 60000".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BoundedNumber<const MIN: usize, const MAX: usize>(usize);

impl<const MIN: usize, const MAX: usize> BoundedNumber<MIN, MAX> {
    /// Returns the number if it is in the range.
    pub fn new(number: usize) -> Option<Self> {
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    /// Checks the number that a caller sent in a `field` of the params.
    ///
    /// # Errors
    /// `E_INVALID` with the field, when the number is out of the range.
    pub fn check(number: usize, field: &str) -> Result<Self> {
        Self::new(number).ok_or_else(|| Error::invalid(format!("`{field}` {}.", Self::describe_rule())).about(field))
    }

    /// Returns the number.
    pub const fn get(self) -> usize {
        self.0
    }

    /// Returns the end of a sentence about a field that is out of the range.
    fn describe_rule() -> String {
        match MAX {
            usize::MAX => format!("must be a whole number of {MIN} or more"),
            most => format!("must be a whole number from {MIN} to {most}"),
        }
    }

    fn build_schema(range: String) -> Schema {
        let mut schema = json_schema!({"type": "integer", "minimum": MIN});
        if MAX != usize::MAX {
            schema.insert("maximum".into(), MAX.into());
        }
        schema.insert(RANGE_WORDS.into(), range.into());
        schema
    }

    /// Returns the range in the words that end a description.
    fn describe_range() -> String {
        match MAX {
            usize::MAX if MIN == 0 => String::new(),
            usize::MAX => format!(", {} or more", group_digits(MIN)),
            most => format!(", {} to {}", group_digits(MIN), group_digits(most)),
        }
    }
}

impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for BoundedNumber<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?.as_u64().and_then(|number| usize::try_from(number).ok());
        number.and_then(Self::new).ok_or_else(|| D::Error::custom(Self::describe_rule()))
    }
}

impl<const MIN: usize, const MAX: usize> JsonSchema for BoundedNumber<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("BoundedNumber_{MIN}_{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Self::build_schema(Self::describe_range())
    }
}

/// A whole number from `MIN` to `MAX`, and `DEFAULT` when the caller gives none, `null`, `[]` or `{}`.
///
/// ```
/// use nudge_core::limit::Limit;
///
/// let given: Limit<5, 50> = serde_json::from_str("7")?;
/// assert_eq!((given.get(), Limit::<5, 50>::default().get()), (7, 5));
/// let refused = serde_json::from_str::<Limit<5, 50>>("51").unwrap_err();
/// assert!(refused.to_string().starts_with("must be a whole number from 1 to 50"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Limit<const DEFAULT: usize, const MAX: usize, const MIN: usize = 1>(Option<BoundedNumber<MIN, MAX>>);

impl<const DEFAULT: usize, const MAX: usize, const MIN: usize> Limit<DEFAULT, MAX, MIN> {
    /// Makes a limit as if a caller had sent `number`. `None` when the number is out of the range.
    pub fn new(number: usize) -> Option<Self> {
        BoundedNumber::new(number).map(|number| Self(Some(number)))
    }

    /// Returns true when the caller sent no number; serde then leaves the field out of a request.
    pub const fn is_absent(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number that the caller sent, or the default.
    pub fn get(self) -> usize {
        self.get_or(None)
    }

    /// Returns the number that the caller sent. Without one, returns the setting, cut to the range, or else the
    /// default.
    pub fn get_or(self, setting: Option<usize>) -> usize {
        self.0.map_or_else(|| setting.unwrap_or(DEFAULT).clamp(MIN, MAX), BoundedNumber::get)
    }
}

impl<'de, const DEFAULT: usize, const MAX: usize, const MIN: usize> Deserialize<'de> for Limit<DEFAULT, MAX, MIN> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        wire::given(deserializer).map(Self)
    }
}

impl<const DEFAULT: usize, const MAX: usize, const MIN: usize> JsonSchema for Limit<DEFAULT, MAX, MIN> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Limit_{DEFAULT}_{MAX}_{MIN}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let range = BoundedNumber::<MIN, MAX>::describe_range();
        BoundedNumber::<MIN, MAX>::build_schema(format!("{range}; {} when absent", group_digits(DEFAULT)))
    }
}

/// Adds the range in words to the first sentence of a description; an empty description stays empty.
pub(crate) fn describe_in_range(description: &str, range: &str) -> String {
    if description.is_empty() {
        return String::new();
    }
    let is_end = |index: &usize| description[index + 1..].chars().next().is_none_or(char::is_whitespace);
    let end = description.match_indices('.').map(|(index, _)| index).find(is_end).unwrap_or(description.len());
    let (first, rest) = description.split_at(end);
    format!("{first}{range}.{}", rest.strip_prefix('.').unwrap_or(""))
}

/// Writes a number for people: 60000 becomes `60,000`.
fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let is_start = |index: usize| index > 0 && (digits.len() - index).is_multiple_of(3);
    digits.char_indices().flat_map(|(index, digit)| is_start(index).then_some(',').into_iter().chain([digit])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::table;

    #[derive(Debug, Default, serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct LimitedParams {
        /// Most rows.
        limit: Limit<10, 1_000>,
        /// Bytes.
        bytes: Limit<2_000, { usize::MAX }, 0>,
        /// Steps.
        #[schemars(description = "")]
        hops: Limit<2, 3, 0>,
        /// Milliseconds of 1.5 seconds. Absent: none.
        #[serde(deserialize_with = "wire::given")]
        ms: Option<BoundedNumber<1, 60_000>>,
    }

    #[test]
    fn absent_is_the_default_and_out_of_range_is_refused() {
        let read = |json: Value| wire::parse_json::<LimitedParams>(&json.to_string(), "params");
        for absent in [json!({}), json!({"limit": null, "ms": null}), json!({"limit": [], "hops": {}})] {
            let LimitedParams { limit, bytes, hops, ms } = read(absent).unwrap();
            assert_eq!((limit.get(), bytes.get(), hops.get(), ms), (10, 2_000, 2, None));
        }
        let LimitedParams { limit, bytes, hops, ms } =
            read(json!({"limit": 1_000, "bytes": 0, "hops": 0, "ms": 1})).unwrap();
        assert_eq!((limit.get(), bytes.get(), hops.get(), ms.unwrap().get()), (1_000, 0, 0, 1));
        assert_eq!((limit.get_or(Some(7)), Limit::<5, 50>::default().get_or(Some(70))), (1_000, 50));
        for (json, field, message) in [
            (json!({"limit": 0}), "limit", "`limit` must be a whole number from 1 to 1000."),
            (json!({"limit": 1.5}), "limit", "`limit` must be a whole number from 1 to 1000."),
            (json!({"hops": -1}), "hops", "`hops` must be a whole number from 0 to 3."),
            (json!({"bytes": -1}), "bytes", "`bytes` must be a whole number of 0 or more."),
            (json!({"ms": 60_001}), "ms", "`ms` must be a whole number from 1 to 60000."),
        ] {
            let refused = read(json).unwrap_err();
            assert_eq!((refused.message(), refused.field()), (message, Some(field)));
        }
        assert_eq!(BoundedNumber::<1, 10>::check(11, "meta.priority").unwrap_err().field(), Some("meta.priority"));
    }

    #[test]
    fn a_schema_says_the_range_in_words() {
        let schema = table::build_schema::<LimitedParams>();
        assert_eq!(
            schema["properties"],
            json!({
                "limit": {"type": "integer", "minimum": 1, "maximum": 1_000, "description": "Most rows, 1 to 1,000; 10 when absent."},
                "bytes": {"type": "integer", "description": "Bytes; 2,000 when absent."},
                "hops": {"type": "integer", "maximum": 3},
                "ms": {"type": "integer", "minimum": 1, "maximum": 60_000, "description": "Milliseconds of 1.5 seconds, 1 to 60,000. Absent: none."},
            })
        );
        assert_eq!(schema.get("required"), None);
    }
}
