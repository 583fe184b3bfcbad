//! Serde helpers for all interfaces: for fields that are "not given", for a list given as one value, and for compact
//! JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use nudge_secrets::SecretGuard;

/// The deepest nesting of accepted JSON, counted from `params` (semantics section 5).
const MAX_DEPTH: usize = 64;

/// The name that messages use for the params as a whole.
const PARAMS: &str = "params";

/// Parses `params` of a method.
///
/// # Errors
/// `E_INVALID` with the field's path; [`ErrorKind::ParamsNotObject`] when `raw` is no object.
pub fn parse_params<'de, T: Deserialize<'de>>(raw: &'de RawValue) -> Result<T> {
    if !raw.get().starts_with('{') {
        return Err(Error::new(ErrorKind::ParamsNotObject, "`params` must be a JSON object."));
    }
    check_depth(raw.get())?;
    parse_json(raw.get(), PARAMS)
}

/// Parses JSON text. Only wrong JSON needs a second pass, which finds the path of the error. In messages, `root` is the
/// name of the whole text; fields of `params` are named without it.
///
/// # Errors
/// `E_INVALID` about the field. The message is the type's own sentence if that sentence begins with "must". Otherwise
/// the message begins with "Correct".
pub fn parse_json<'de, T: Deserialize<'de>>(text: &'de str, root: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|plain| {
        let error = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(text)).err();
        let path = error.as_ref().map(|error| error.path().to_string()).filter(|path| path != ".");
        let reason = error.map_or_else(|| plain.to_string(), |error| error.inner().to_string());
        let field = path.map(|path| shorten_text(&if root == PARAMS { path } else { format!("{root}.{path}") }));
        let place = field.as_deref().unwrap_or(root);
        let message = match shorten_text(&without_values(&reason)) {
            rule if rule.starts_with("must ") => format!("`{place}` {rule}."),
            reason => format!("Correct `{place}`: {reason}."),
        };
        // The message may repeat the name of an unknown field, and such a name may be a secret too.
        match (SecretGuard::new().check(None, &message), &field) {
            (None, Some(field)) => Error::invalid(message).about(field),
            (None, None) => Error::invalid(message),
            (Some(_), _) => {
                Error::invalid(format!("Correct `{root}`: it does not have the form that the method takes."))
            }
        }
    })
}

/// Removes the caller's values from a serde message, because a value may be a secret.
fn without_values(reason: &str) -> String {
    // The position is useless, because it counts from the start of a fragment of the JSON. The path says more.
    let reason = without_position(reason).trim_end_matches('.');
    let (cut, rest) = match (reason.find("string \""), reason.find("unknown variant `")) {
        (Some(start), _) => (start + "string".len(), reason.rfind("\", expected").map(|end| end + 1)),
        (None, Some(start)) => (start + "unknown variant".len(), reason.rfind("`, expected").map(|end| end + 1)),
        (None, None) => return reason.to_owned(),
    };
    format!("{}{}", &reason[..cut], rest.map_or("", |rest| &reason[rest.max(cut)..]))
}

/// Removes the position at the end of a serde message.
fn without_position(message: &str) -> &str {
    message.split_once(" at line ").map_or(message, |(reason, _)| reason)
}

/// Shortens a caller's text for a message: at most 240 characters, without control characters.
pub fn shorten_text(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(240).collect()
}

fn check_depth(json: &str) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::invalid(
                        "The JSON is nested too deeply; 64 levels counted from `params` are the most.",
                    ));
                }
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    Ok(())
}

/// Deserializes an optional field; `null`, `[]` and `{}` mean "not given".
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(GivenVisitor(PhantomData))
}

/// Works like [`given`], but returns the type's default for "not given".
pub fn given_or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    given(deserializer).map(Option::unwrap_or_default)
}

/// Works like [`given_or_default`], but accepts only an object, because serde would also read a struct from a list.
pub fn object_or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(GivenObject(PhantomData)).map(Option::unwrap_or_default)
}

struct GivenVisitor<T>(PhantomData<T>);

struct GivenObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for GivenObject<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(None),
            Some(_) => Err(de::Error::invalid_type(de::Unexpected::Seq, &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

macro_rules! forward {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: de::Error>(self, value: $type) -> Result<Self::Value, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        })*
    };
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for GivenVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    forward!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String);

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut counted = CountedElements { inner: &mut seq, taken: false };
        match T::deserialize(SeqAccessDeserializer::new(&mut counted)) {
            Ok(value) => Ok(counted.taken.then_some(value)),
            Err(error) if counted.taken => Err(error),
            Err(error) => match seq.next_element::<IgnoredAny>() {
                Ok(None) => Ok(None),
                _ => Err(error),
            },
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut counted = CountedElements { inner: &mut map, taken: false };
        match T::deserialize(MapAccessDeserializer::new(&mut counted)) {
            Ok(value) => Ok(counted.taken.then_some(value)),
            Err(error) if counted.taken => Err(error),
            Err(error) => match map.next_key::<IgnoredAny>() {
                Ok(None) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Passes on the elements of a list, and records whether there was any.
struct CountedElements<'a, A> {
    inner: &'a mut A,
    taken: bool,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for CountedElements<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let next = self.inner.next_element_seed(seed);
        self.taken |= !matches!(next, Ok(None));
        next
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for CountedElements<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let next = self.inner.next_key_seed(seed);
        self.taken |= !matches!(next, Ok(None));
        next
    }

    fn next_value_seed<S: de::DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// Deserializes a list; a single string counts as a list of one. `null` and `{}` are an empty list.
pub fn one_or_many<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(OneOrMany(PhantomData))
}

struct OneOrMany<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        Ok(vec![T::deserialize(text.into_deserializer())?])
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<T>, A::Error> {
        match map.next_key::<IgnoredAny>()? {
            None => Ok(Vec::new()),
            Some(_) => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
        }
    }
}

/// Returns the members of a JSON object as raw text, in order, including duplicate names.
///
/// # Errors
/// Refuses JSON that is not an object.
pub fn read_members(json: &str) -> serde_json::Result<Vec<(String, &RawValue)>> {
    struct MemberList<'a>(Vec<(String, &'a RawValue)>);
    struct MemberListVisitor;
    impl<'de> Visitor<'de> for MemberListVisitor {
        type Value = MemberList<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(MemberList(members))
        }
    }
    impl<'de> Deserialize<'de> for MemberList<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(MemberListVisitor)
        }
    }
    serde_json::from_str::<MemberList<'_>>(json).map(|members| members.0)
}

/// Rewrites JSON as compact text and keeps the order of keys.
///
/// # Errors
/// The reason: a duplicate key, or an integer that other languages cannot represent.
pub fn compact_json(json: &str) -> Result<Box<RawValue>, String> {
    if has_big_integer(json) {
        return Err("an integer is beyond 2^53 - 1; store it as a string".into());
    }
    let mut out = String::with_capacity(json.len());
    let mut deserializer = serde_json::Deserializer::from_str(json);
    de::DeserializeSeed::deserialize(CompactWriter(&mut out), &mut deserializer)
        .and_then(|()| RawValue::from_string(out))
        .map_err(|error| without_position(&error.to_string()).to_owned())
}

/// Returns true when valid JSON contains an integer literal beyond 2^53 - 1. The function searches the text itself,
/// because the parser turns the largest integers into floats.
fn has_big_integer(json: &str) -> bool {
    const MAX_SAFE: u64 = (1 << 53) - 1;
    let bytes = json.as_bytes();
    let (mut position, mut in_string) = (0, false);
    while position < bytes.len() {
        match bytes[position] {
            b'\\' if in_string => position += 1,
            b'"' => in_string = !in_string,
            b'0'..=b'9' if !in_string => {
                let end = position
                    + bytes[position..]
                        .iter()
                        .take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
                        .count();
                let number = &json[position..end];
                if number.bytes().all(|byte| byte.is_ascii_digit())
                    && number.parse::<u64>().is_ok_and(|n| n <= MAX_SAFE).eq(&false)
                {
                    return true;
                }
                position = end;
                continue;
            }
            _ => {}
        }
        position += 1;
    }
    false
}

/// Writes the JSON that it visits into the string, as compact text.
struct CompactWriter<'a>(&'a mut String);

impl<'de> de::DeserializeSeed<'de> for CompactWriter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl CompactWriter<'_> {
    fn write<T: serde::Serialize, E: de::Error>(self, value: T) -> Result<(), E> {
        self.0.push_str(&serde_json::to_string(&value).map_err(E::custom)?);
        Ok(())
    }
}

impl<'de> Visitor<'de> for CompactWriter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.write(value)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.write(value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.write(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.push_str("null");
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut separator = '[';
        loop {
            let before = self.0.len();
            self.0.push(separator);
            if seq.next_element_seed(CompactWriter(self.0))?.is_none() {
                self.0.truncate(before);
                break;
            }
            separator = ',';
        }
        self.0.push_str(if separator == '[' { "[]" } else { "]" });
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = hashbrown::HashSet::<String, foldhash::fast::RandomState>::default();
        self.0.push('{');
        while let Some(key) = map.next_key::<String>()? {
            if !seen.is_empty() {
                self.0.push(',');
            }
            CompactWriter(self.0).write(&key)?;
            self.0.push(':');
            map.next_value_seed(CompactWriter(self.0))?;
            if !seen.insert(key) {
                return Err(de::Error::custom("an object has the same key twice"));
            }
        }
        self.0.push('}');
        Ok(())
    }
}

/// Returns the members of an object that was written as a literal in the code, such as params.
///
/// # Panics
/// Panics for JSON that is not an object.
pub fn object_members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => panic!("params are written as an object"),
    }
}

/// Writes plain data as JSON.
///
/// # Panics
/// Panics for a map whose keys are not strings. No type of Nudge has such a map.
pub fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data is JSON")
}

/// Writes plain data as JSON with line breaks and indents, for people.
///
/// # Panics
/// Panics like [`json_text`].
pub fn pretty_json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data is JSON")
}

/// Writes plain data as JSON for a raw value.
///
/// # Panics
/// Panics like [`json_text`].
pub fn raw_json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("plain data is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Probe {
        #[serde(default, deserialize_with = "given")]
        text: Option<String>,
        #[serde(default, deserialize_with = "given")]
        list: Option<Vec<u8>>,
        #[serde(default, deserialize_with = "given")]
        number: Option<u8>,
        #[serde(default, deserialize_with = "one_or_many")]
        many: Vec<String>,
    }

    #[test]
    fn not_given() {
        let none = Probe { text: None, list: None, number: None, many: vec![] };
        for nothing in ["null", "[]", "{}", " [ ] "] {
            for field in ["text", "list", "number", "many"] {
                assert_eq!(parse_json::<Probe>(&format!("{{\"{field}\":{nothing}}}"), "params"), Ok(none_like(&none)));
            }
        }
        for bad in [
            "{\"text\":[1]}",
            "{\"text\":{\"a\":1}}",
            "{\"list\":\"x\"}",
            "{\"number\":5.0}",
            "{\"number\":[3]}",
            "{\"many\":[1]}",
            "{\"many\":{\"a\":1}}",
            "{\"x\":1}",
            "{\"text\":1,\"text\":2}",
        ] {
            let error = parse_json::<Probe>(bad, "params").unwrap_err();
            assert_eq!(error.reason(), "E_INVALID", "{bad}");
        }
        assert_eq!(parse_json::<Probe>("{\"many\":\"a\"}", "params").unwrap().many, ["a"]);
    }

    fn none_like(probe: &Probe) -> Probe {
        Probe { text: probe.text.clone(), list: None, number: None, many: vec![] }
    }

    /// Promise (hints): A refusal of params repeats no value from them.
    #[test]
    fn values_stay_out_of_messages() {
        #[derive(Debug, serde::Deserialize)]
        struct Sample {
            _number: u8,
        }
        for (json, expected) in [
            (r#"{"_number":"s\"x\", expected y"}"#, "Correct `_number`: invalid type: string, expected u8."),
            (r#"{"_number":"multi\nline"}"#, "Correct `_number`: invalid type: string, expected u8."),
            (r#"{"_number":300}"#, "Correct `_number`: invalid value: integer `300`, expected u8."),
        ] {
            assert_eq!(parse_json::<Sample>(json, "params").unwrap_err().message(), expected);
        }
        let os = parse_json::<crate::place::Os>("\"beos`, expected\"", "os").unwrap_err();
        assert_eq!(os.message(), "Correct `os`: unknown variant, expected one of `linux`, `darwin`, `windows`.");
        let key = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
        let field = parse_json::<Probe>(&format!("{{\"{key}\":1}}"), "params").unwrap_err();
        assert!(!field.message().contains(&key), "{}", field.message());
    }

    #[test]
    fn compact_text() {
        let text = |json: &str| compact_json(json).map(|raw| raw.get().to_owned());
        assert_eq!(
            text(r#" { "b" : [ 1 , 2.50 , [] , {} ], "a" : "\u0041\n" , "n":null } "#).unwrap(),
            r#"{"b":[1,2.5,[],{}],"a":"A\n","n":null}"#
        );
        assert_eq!(text("9007199254740991").unwrap(), "9007199254740991");
        assert_eq!(text("[1e20, \"9007199254740992\"]").unwrap(), "[1e+20,\"9007199254740992\"]");
        for bad in [
            "9007199254740992",
            "-9007199254740992",
            "[123456789012345678901234567890]",
            r#"{"a":1,"\u0061":2}"#,
            "1e999",
        ] {
            assert!(text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn depth() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_depth(&nested(64)).is_ok());
        assert!(check_depth(&nested(65)).is_err());
        assert!(check_depth(&format!("{:?}", "[".repeat(100))).is_ok());
    }
}
