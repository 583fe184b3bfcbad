//! Defines the errors of all methods (semantics section 6).

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Map, Value, json};

/// The kind of an [`Error`]. Every kind has one JSON-RPC code and one reason string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such component, key or variant, or no variant fits the context (40401).
    NotFound,
    /// A type, size, range or schema rule is broken (40001).
    Invalid,
    /// `if_match_version` differs from the stored version (40901).
    Conflict,
    /// The secret guard refused a text (40002).
    SecretRejected,
    /// A glob is illegal, or a path could lead out of its folder (40003).
    ScopeInvalid,
    /// A limit of the store is reached (42901).
    Quota,
    /// The PRIMARY or its journal cannot be reached (50301).
    Unavailable,
    /// JSON-RPC: there is no such method (-32601).
    UnknownMethod,
    /// JSON-RPC: `params` is not an object (-32602).
    ParamsNotObject,
    /// An error with a code that this version does not define, from a newer server or another source. The code, reason
    /// and data are kept. [`ErrorKind::ALL`] does not include this kind.
    Other,
}

impl ErrorKind {
    /// All kinds with a code of their own; bindings compare their exception classes with this list.
    pub const ALL: [Self; 9] = [
        Self::NotFound,
        Self::Invalid,
        Self::Conflict,
        Self::SecretRejected,
        Self::ScopeInvalid,
        Self::Quota,
        Self::Unavailable,
        Self::UnknownMethod,
        Self::ParamsNotObject,
    ];

    /// Returns the JSON-RPC error code.
    pub const fn code(self) -> i32 {
        match self {
            Self::NotFound => 40401,
            Self::Invalid => 40001,
            Self::Conflict => 40901,
            Self::SecretRejected => 40002,
            Self::ScopeInvalid => 40003,
            Self::Quota => 42901,
            Self::Unavailable => 50301,
            Self::UnknownMethod => -32601,
            Self::ParamsNotObject => -32602,
            // JSON-RPC's code for an internal error, because the exact kind is unknown.
            Self::Other => -32603,
        }
    }

    /// Returns the stable name, which is sent as `data.reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "E_NOT_FOUND",
            Self::Invalid | Self::ParamsNotObject => "E_INVALID",
            Self::Conflict => "E_CONFLICT",
            Self::SecretRejected => "E_SECRET_REJECTED",
            Self::ScopeInvalid => "E_SCOPE_INVALID",
            Self::Quota => "E_QUOTA",
            Self::Unavailable => "E_UNAVAILABLE",
            Self::UnknownMethod => "E_UNKNOWN_METHOD",
            Self::Other => "E_OTHER",
        }
    }

    /// Returns the kind with this JSON-RPC code, if there is one. A client uses this function to read an error.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

/// A refused call: it changed nothing, and [`Error::message`] names the remedy.
///
/// Serializes as a JSON-RPC error object, `{"code", "message", "data": {"reason", ...}}`.
#[derive(Clone, PartialEq)]
pub struct Error(Box<ErrorBody>);

#[derive(Clone, PartialEq)]
struct ErrorBody {
    kind: ErrorKind,
    /// The kind's code, or the server's code for [`ErrorKind::Other`].
    code: i32,
    message: String,
    data: Map<String, Value>,
}

/// The member of `data` that names the field that the error is about.
const FIELD: &str = "field";
/// The member of `data` that lists the further fields that the message names.
const OTHER_FIELDS: &str = "other_fields";

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error. `message` is one plain sentence. The message must name the remedy and hold no secret.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut data = Map::new();
        data.insert("reason".into(), kind.reason().into());
        Self(Box::new(ErrorBody { kind, code: kind.code(), message: message.into(), data }))
    }

    /// Adds a member to `data`.
    #[must_use]
    pub fn with_data(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.data.insert(name.into(), value.into());
        self
    }

    /// Adds a field of the params that the error is about, such as `meta.priority`. The message must name the field
    /// between backticks. The first field is sent as `data.field`, further fields in `data.other_fields`.
    #[must_use]
    pub fn about(mut self, field: &str) -> Self {
        debug_assert!(self.message().contains(&format!("`{field}`")), "{field} is not in: {}", self.message());
        if self.field().is_none() {
            return self.with_data(FIELD, field);
        }
        if let Value::Array(others) = self.0.data.entry(OTHER_FIELDS).or_insert_with(|| json!([])) {
            others.push(field.into());
        }
        self
    }

    /// Replaces the message and keeps kind, code and data.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Reads an error object that a server sent. An error with an unknown code becomes [`ErrorKind::Other`] and keeps
    /// its code, message and data. JSON that is not an error object becomes [`ErrorKind::Unavailable`].
    pub fn from_json(object: &Value) -> Self {
        let code = object["code"].as_i64().and_then(|code| i32::try_from(code).ok());
        let kind = match code {
            Some(code) => ErrorKind::from_code(code).unwrap_or(ErrorKind::Other),
            None => ErrorKind::Unavailable,
        };
        let message = object["message"].as_str().unwrap_or("The server gave no reason; see its log.");
        let mut error = Self::new(kind, message);
        error.0.code = code.unwrap_or(kind.code());
        if let Some(data) = object["data"].as_object() {
            error.0.data.extend(data.clone());
        }
        error
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the JSON-RPC code, for example 40401.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// Returns the stable name, for example `E_NOT_FOUND`. For [`ErrorKind::Other`], returns the name that the server
    /// sent.
    pub fn reason(&self) -> &str {
        match self.0.kind {
            ErrorKind::Other => self.0.data["reason"].as_str().unwrap_or(ErrorKind::Other.reason()),
            kind => kind.reason(),
        }
    }

    /// Returns the message, one plain sentence that names the remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the path of the field of the params that the error is about, such as `meta.priority`.
    pub fn field(&self) -> Option<&str> {
        self.0.data.get(FIELD)?.as_str()
    }

    /// Returns the message in the caller's words. `word` may return another word for a field that the error is about.
    /// Only the first mention of each field is replaced, because a later mention may be part of a value.
    pub fn message_in(&self, word: impl Fn(&str) -> Option<String>) -> String {
        let others = self.0.data.get(OTHER_FIELDS).and_then(Value::as_array).into_iter().flatten();
        let fields = self.field().into_iter().chain(others.filter_map(Value::as_str));
        fields.fold(self.message().to_owned(), |message, field| match word(field) {
            Some(word) => message.replacen(&format!("`{field}`"), &format!("`{word}`"), 1),
            None => message,
        })
    }

    /// Returns the part for programs: `reason`, `field`, and members that depend on the kind (`near_misses`, `limit`,
    /// ...).
    pub fn data(&self) -> &Map<String, Value> {
        &self.0.data
    }

    /// Returns the whole error as a JSON-RPC error object.
    pub fn to_json(&self) -> Value {
        json!({"code": self.code(), "message": self.message(), "data": self.data()})
    }

    /// Makes an [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Makes an [`ErrorKind::Invalid`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Makes an [`ErrorKind::ScopeInvalid`].
    pub fn scope(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ScopeInvalid, message)
    }

    /// Makes an [`ErrorKind::Conflict`].
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// Makes an [`ErrorKind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Makes an [`ErrorKind::Quota`]. `limit` is the name of the limit that is reached, and `max` is its value.
    pub fn quota(limit: &str, max: usize, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Quota, message).with_data("limit", limit).with_data("max", max)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.reason(), self.code(), self.0.message)
    }
}

impl std::error::Error for Error {}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Error", 3)?;
        object.serialize_field("code", &self.code())?;
        object.serialize_field("message", self.message())?;
        object.serialize_field("data", self.data())?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_read_back() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::from_code(kind.code()), Some(kind));
            let error = Error::new(kind, "do that").with_data("more", 1);
            assert_eq!(Error::from_json(&error.to_json()), error);
        }
        assert_eq!(Error::from_json(&json!({"message": "?"})).kind(), ErrorKind::Unavailable);
    }

    #[test]
    fn a_field_gets_the_word_of_its_caller() {
        let error =
            Error::invalid("`tags` may not be `all`; give `keys`, or the tag `keys`.").about("tags").about("keys");
        let read = Error::from_json(&error.to_json());
        assert_eq!((read.field(), &read), (Some("tags"), &error));
        let said = read.message_in(|field| Some(format!("--{field}")));
        assert_eq!(said, "`--tags` may not be `all`; give `--keys`, or the tag `keys`.");
        assert_eq!(read.message_in(|_| None), error.message());
        let reworded = read.with_message("Nothing was done.");
        assert_eq!((reworded.field(), reworded.message()), (Some("tags"), "Nothing was done."));
    }

    #[test]
    fn an_unknown_code_is_kept_and_is_not_no_server() {
        let newer = json!({"code": 41801, "message": "do that", "data": {"reason": "E_TEAPOT", "more": 1}});
        let error = Error::from_json(&newer);
        assert_eq!((error.kind(), error.code(), error.reason()), (ErrorKind::Other, 41801, "E_TEAPOT"));
        assert_eq!(error.to_json(), newer);
        assert_eq!(Error::from_json(&json!({"code": 7, "data": {"reason": 5}})).reason(), "E_OTHER");
    }
}
