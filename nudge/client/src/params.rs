//! Inserts the context into the params of a call. The rest of the text stays unchanged, with its key order, duplicate
//! keys and all digits.

use std::ops::Range;

use nudge::{Error, Result};
use nudge_core::wire;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The params of a call as text, with the position of their `context`.
#[derive(Debug)]
pub struct CallParams {
    text: Box<RawValue>,
    place: ContextPlace,
    given: Option<Value>,
}

/// The position of the context in the text of the params.
#[derive(Debug)]
enum ContextPlace {
    /// The params have no context. It is inserted after the first brace.
    Absent,
    At(Range<usize>),
    /// The service must refuse these params: they are no object, they have two contexts, or their context has a name
    /// twice.
    Wrong,
}

impl CallParams {
    /// Reads params, and finds the position of their context.
    pub fn read(text: Box<RawValue>) -> Self {
        let (place, given) = find_context(text.get()).unwrap_or((ContextPlace::Wrong, None));
        Self { text, place, given }
    }

    /// Returns the params unchanged.
    pub fn as_raw(&self) -> &RawValue {
        &self.text
    }

    /// Returns true when a context can be inserted. Returns false for params that the service must refuse.
    pub fn can_be_filled(&self) -> bool {
        !matches!(self.place, ContextPlace::Wrong)
    }

    /// Returns the context in the params; `None` if they have none. An explicit null is `Some`.
    pub fn given_context(&self) -> Option<&Value> {
        self.given.as_ref()
    }

    /// Returns the params with `context`, which replaces a given one. Params that the service must refuse stay
    /// unchanged.
    ///
    /// # Errors
    /// `E_INVALID` when the result cannot be written as JSON.
    pub fn with_context(&self, context: &Map<String, Value>) -> Result<Box<RawValue>> {
        let unwritable = |_| Error::invalid("The params cannot be written as JSON.");
        let context = serde_json::to_string(context).map_err(unwritable)?;
        let text = self.text.get();
        let filled = match &self.place {
            ContextPlace::Wrong => return Ok(self.text.clone()),
            ContextPlace::At(range) => format!("{}{context}{}", &text[..range.start], &text[range.end..]),
            ContextPlace::Absent => {
                let rest = &text[1..];
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                format!("{{\"context\":{context}{comma}{rest}")
            }
        };
        RawValue::from_string(filled).map_err(unwritable)
    }
}

/// Finds the context of params; `None` when the service must refuse them.
fn find_context(params: &str) -> Option<(ContextPlace, Option<Value>)> {
    #[derive(Deserialize)]
    struct GivenContext<'a> {
        #[serde(borrow, default, deserialize_with = "read_present")]
        context: Option<&'a RawValue>,
    }
    /// Reads a field as `Some`, even when the value is null.
    fn read_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Some)
    }
    // serde would also accept a list, and read its items as the fields in order.
    if !params.starts_with('{') {
        return None;
    }
    let Some(context) = serde_json::from_str::<GivenContext<'_>>(params).ok()?.context.map(RawValue::get) else {
        return Some((ContextPlace::Absent, None));
    };
    let value: Value = serde_json::from_str(context).ok()?;
    // A map keeps only one of two equal names, so the function compares its size with the number of members in the
    // text.
    let is_whole = match &value {
        Value::Object(map) => wire::read_members(context).is_ok_and(|members| members.len() == map.len()),
        _ => true,
    };
    // `context` is a slice of `params`, so the difference of the addresses is its position.
    let start = context.as_ptr().addr().checked_sub(params.as_ptr().addr())?;
    is_whole.then_some((ContextPlace::At(start..start + context.len()), Some(value)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_context_changes() {
        for (given, filled) in [
            ("{}", r#"{"context":{"branch":"dev"}}"#),
            (r#"{ "key" : 5.0, "key": 1 }"#, r#"{"context":{"branch":"dev"}, "key" : 5.0, "key": 1 }"#),
            (
                r#"{"a":1, "context": {"cwd":"/x"} ,"b":[12345678901234567890]}"#,
                r#"{"a":1, "context": {"cwd":"/x","branch":"dev"} ,"b":[12345678901234567890]}"#,
            ),
            (r#"{"context":null}"#, r#"{"context":{"branch":"dev"}}"#),
            // The service refuses these params, so they stay unchanged.
            (r#"{"context":{},"context":{}}"#, r#"{"context":{},"context":{}}"#),
            (r#"{"context":{"cwd":"/a","cwd":"/b"}}"#, r#"{"context":{"cwd":"/a","cwd":"/b"}}"#),
            ("[1]", "[1]"),
        ] {
            let params = CallParams::read(RawValue::from_string(given.into()).unwrap());
            let mut context = params.given_context().and_then(Value::as_object).cloned().unwrap_or_default();
            context.insert("branch".into(), json!("dev"));
            assert_eq!(params.with_context(&context).unwrap().get(), filled, "{given}");
        }
    }
}
