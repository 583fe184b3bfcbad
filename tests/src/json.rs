//! Contains JSON values that keep the order of keys and duplicate keys.
//!
//! `serde_json::Value` sorts keys unless a feature is on. Crates share features within one build, so that feature would
//! change the crates under test too. So the runner has its own small type.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number. `5` and `5.0` are different numbers.
    Number(serde_json::Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object: pairs in the written order, with duplicates.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a JSON text.
    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| format!("not JSON: {e}: {}", shorten(text)))
    }

    /// Returns the compact text.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the compact text as a raw value.
    pub fn raw(&self) -> Result<Box<RawValue>, String> {
        serde_json::value::to_raw_value(self).map_err(|e| e.to_string())
    }

    /// Returns the value of a key of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(pairs) => pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Returns the string; `None` for another type.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the number as a count; `None` if it is no count.
    #[must_use]
    pub fn as_usize(&self) -> Option<usize> {
        match self {
            Self::Number(n) => n.as_u64().and_then(|n| usize::try_from(n).ok()),
            _ => None,
        }
    }

    /// Returns `("$op", argument)` if this is an object with a single key that begins with `$`.
    #[must_use]
    pub fn operator(&self) -> Option<(&str, &Self)> {
        match self {
            Self::Object(pairs) => match pairs.as_slice() {
                [(key, argument)] if key.starts_with('$') => Some((key, argument)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the text of the value at a JSON pointer (RFC 6901), byte by byte as in `text`.
#[must_use]
pub fn text_at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let mut value = text;
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        value = if value.trim_start().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
            items.get(key.parse::<usize>().ok()?)?.get()
        } else {
            let pairs: Pairs<'_> = serde_json::from_str(value).ok()?;
            pairs.0.into_iter().find(|(k, _)| *k == key)?.1.get()
        };
    }
    Some(value)
}

/// Returns the beginning of a text for a message.
#[must_use]
pub fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 1_200;
    if text.chars().count() <= MAX_CHARS {
        text.to_owned()
    } else {
        let head: String = text.chars().take(MAX_CHARS).collect();
        format!("{head}... ({} bytes)", text.len())
    }
}

struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
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

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Number(n) => n.serialize(serializer),
            Self::String(s) => serializer.serialize_str(s),
            Self::Array(items) => items.serialize(serializer),
            Self::Object(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                for (key, value) in pairs {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(Json::Number(n.into()))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Number(n.into()))
    }
    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Json, E> {
        serde_json::Number::from_f64(n).map(Json::Number).ok_or_else(|| E::custom("a number out of range"))
    }
    fn visit_str<E>(self, s: &str) -> Result<Json, E> {
        Ok(Json::String(s.to_owned()))
    }
    fn visit_string<E>(self, s: String) -> Result<Json, E> {
        Ok(Json::String(s))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Json::Object(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_order_duplicates_and_fractions() {
        let text = r#"{"z":1,"a":[5.0,5,-3,null,true],"z":"\u0001"}"#;
        assert_eq!(Json::parse(text).unwrap().text(), text);
    }

    #[test]
    fn text_at_takes_the_text_as_it_stands() {
        let text = r#"{"b": {"z":1,  "a/b":[10,{"k":"v"}]}}"#;
        assert_eq!(text_at(text, ""), Some(text));
        assert_eq!(text_at(text, "/b"), Some(r#"{"z":1,  "a/b":[10,{"k":"v"}]}"#));
        assert_eq!(text_at(text, "/b/a~1b/1/k"), Some("\"v\""));
        assert_eq!(text_at(text, "/b/x"), None);
        assert_eq!(text_at(text, "/b/a~1b/7"), None);
    }
}
