//! Recognises credentials in texts, commands and JSON (semantics section 7 of Nudge).
//!
//! [`SecretGuard::check`] returns the rule for which it refuses a text. [`SecretGuard::check_json`] also returns the
//! path inside a JSON value. [`SecretGuard::find_spans`] returns the lines of a text that a caller must leave out. The
//! guard has no settings and no state, stores no text, and reads neither files nor the environment.
//!
//! Rules run from the surest to the least sure, and the first match wins. The order is: structure (private keys, JSON
//! web tokens), formats with a prefix, hex runs, credentials in URLs, assignments and headers, options of commands,
//! netrc entries, sentences, encoded credentials, and random strings.
//!
//! Every rule reads each byte a bounded number of times. So the time of a scan is linear in the length of the text.
//!
//! ```
//! use nudge_secrets::SecretGuard;
//!
//! // The text is built from parts, so that no scanner reports this page as a leak.
//! let text = ["The build needs a login.\nDB_PASSWORD=", "q7Zk2Vx9Lw4Tn8Rb\nIt takes two minutes."].concat();
//! let guard = SecretGuard::new();
//! assert_eq!(guard.check(None, &text), Some("secret-assignment"));
//! let spans = guard.find_spans(&text);
//! assert_eq!(spans.len(), 1);
//! assert_eq!(text[spans[0].range.clone()].lines().count(), 1);
//! ```
//!
//! The example `redact` is a filter that leaves such lines out of its input.

mod assign;
mod classify;
mod command;
mod commit;
mod formats;
mod header;
mod names;
mod netrc;
mod prose;
mod random;
mod read;
#[cfg(test)]
mod sibling_tests;
mod spans;
mod structure;
mod survey;
#[cfg(test)]
mod tests;
mod url;
mod verdict;

use names::NamePromise;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use structure::TokenContent;
use survey::TextSurvey;

pub use spans::SecretSpan;

/// The reason why a text was refused, and the path to it. The value never contains the text that matched.
///
/// `rule` is a short name such as `aws-access-key`, `hex-32-64`, `jwt` or `secret-assignment`. `path` leads to the
/// string inside the checked value, as in `value.data.auth.token` or `value.data[3]`. If an object key is the secret,
/// `path` is the path of the object with `(key)` at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that matched.
    pub rule: &'static str,
    /// The path of the string that matched.
    pub path: String,
}

/// Recognises credentials in text and in JSON values (semantics section 7).
///
/// The guard has no state, so copying it is free. It does not depend on the hints.
///
/// It refuses these texts:
///
/// - AWS keys, and tokens of other issuers with a known prefix
/// - a run of 32 to 64 hex digits, unless a label such as `sha256:` precedes it or the syntax around it shows a commit
/// - JSON web tokens and blocks of private keys
/// - credentials in URLs, and in headers such as `Authorization`
/// - values of password options, and netrc entries
/// - a literal that is assigned to a name of a secret, also inside a sentence
///
/// References pass: `$VAR`, `${VAR}`, `$(…)`, `<placeholder>`, `vault:…`, a path.
///
/// The time is linear in the length of the text, even for hostile text. A short command takes a few microseconds, and
/// 64 KiB take less than 10 ms.
///
/// ```
/// use nudge_secrets::SecretGuard;
///
/// let guard = SecretGuard::new();
/// assert_eq!(guard.check(None, "cargo test -p search"), None);
/// assert_eq!(guard.check(Some("DB_PASSWORD"), "${DB_PASSWORD}"), None);
/// // The token is built from parts, so that no scanner reports this page as a leak.
/// let token = ["ghp", "_", "q7Zk2Vx9Lw4Tn8Rb3Yc6Md1Hf5Js0PgAeUoK"].concat();
/// assert_eq!(guard.check(None, &token), Some("github-token"));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct SecretGuard;

/// Length of a key in a path from which the key is cut, in characters.
const SEGMENT_LIMIT: usize = 64;

/// Largest number of bytes of readable text that the guard decodes from base64 in one value.
const DECODE_LIMIT: usize = 8 * 1024;

/// Largest size of a text that is parsed as JSON inside JSON, in bytes.
const NESTED_LIMIT: usize = 64 * 1024;

/// Largest size of a JSON text that is scanned both as text and by its parts, in bytes.
const TWICE_LIMIT: usize = 4 * 1024;

// The methods take `&self`, so that a later guard can have settings without a change of its interface.
#[allow(clippy::unused_self, clippy::trivially_copy_pass_by_ref)]
impl SecretGuard {
    /// Makes a guard.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Scans a text. `name` is the key or variable to which the text is assigned, if there is one.
    ///
    /// Returns the name of the rule that matched, or `None` for harmless text. If the text is a JSON object or array,
    /// the function also scans the values inside it.
    #[must_use]
    pub fn check(&self, name: Option<&str>, text: &str) -> Option<&'static str> {
        scan_text(&mut Place::root("", name), text, true).map(|finding| finding.rule)
    }

    /// Scans a JSON value: each object key, each string with its key as the name, and JSON inside a string, one level
    /// deep.
    ///
    /// `path` is the path of `value` itself, such as `value.data`. Returns the first finding.
    #[must_use]
    pub fn check_json(&self, path: &str, value: &Value) -> Option<Finding> {
        walk(value, &mut Place::root(path, None), true)
    }
}

/// A step from a value to a value inside it.
#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The position in the walk through a value: the steps to the current value, and the name to which that value is
/// assigned. The path is built only for a finding, because most values are clean.
struct Place<'a> {
    root: &'a str,
    steps: Vec<Step<'a>>,
    name: Option<&'a str>,
    /// Number of bytes of base64 text that the guard may still decode in this value.
    decode: usize,
}

impl<'a> Place<'a> {
    const fn root(root: &'a str, name: Option<&'a str>) -> Self {
        Self { root, steps: Vec::new(), name, decode: DECODE_LIMIT }
    }

    fn path(&self) -> String {
        let mut path = self.root.to_owned();
        for step in &self.steps {
            match step {
                Step::Key(key) => path = child(&path, key),
                // The result is dropped, because writing to a string cannot fail.
                Step::Index(index) => drop(write!(path, "[{index}]")),
            }
        }
        path
    }

    fn finding(&self, rule: &'static str) -> Finding {
        Finding { rule, path: self.path() }
    }
}

fn walk<'a>(value: &'a Value, place: &mut Place<'a>, may_parse: bool) -> Option<Finding> {
    match value {
        Value::String(text) => scan_text(place, text, may_parse),
        Value::Array(items) => {
            let mut flag: Option<&str> = None;
            for (index, item) in items.iter().enumerate() {
                place.steps.push(Step::Index(index));
                // Treats the array as a list of arguments, such as `["--password", "X"]`.
                let found = flag
                    .zip(item.as_str())
                    .and_then(|(flag, text)| command::flag_argument(flag, text))
                    .map(|rule| place.finding(rule))
                    .or_else(|| walk(item, place, may_parse));
                if found.is_some() {
                    return found;
                }
                place.steps.pop();
                flag =
                    item.as_str().filter(|text| text.starts_with('-') && text.len() < 64 && !text.contains([' ', '=']));
            }
            None
        }
        Value::Object(map) => walk_object(map, place, may_parse),
        _ => None,
    }
}

/// Scans a string. If `may_parse` is true, also scans JSON inside it.
fn scan_text(place: &mut Place<'_>, text: &str, may_parse: bool) -> Option<Finding> {
    let nested = if may_parse { parse_nested(text) } else { None };
    let rule = match &nested {
        // The parts of a long JSON text say more than the whole. So the whole is scanned only for shapes.
        Some(_) if text.len() > TWICE_LIMIT => scan_shapes(&TextSurvey::new(text)),
        _ => scan(place.name, text, &mut place.decode),
    };
    if let Some(rule) = rule {
        return Some(place.finding(rule));
    }
    let nested = nested?;
    walk(&nested, &mut Place::root("", place.name), false)?;
    // Walks again with the real path, because there is a finding to report.
    walk(&nested, &mut Place::root(&place.path(), place.name), false)
}

fn walk_object<'a>(map: &'a Map<String, Value>, place: &mut Place<'a>, may_parse: bool) -> Option<Finding> {
    if is_private_jwk(map) {
        return Some(Finding { rule: "private-key", path: child(&place.path(), "d") });
    }
    let outer = place.name;
    // In `{"name": "API_TOKEN", "value": …}`, the name of the value is in another field.
    let announced = map.iter().find(|(key, _)| names::is_namer(key)).and_then(|(_, value)| value.as_str());
    for (key, value) in map {
        if let Some(rule) = scan(None, key, &mut place.decode) {
            return Some(Finding { rule, path: child(&place.path(), "(key)") });
        }
        place.steps.push(Step::Key(key));
        place.name = if names::is_carrier(key) { announced.or(outer).or(Some(key)) } else { Some(key) };
        let found = walk(value, place, may_parse);
        if found.is_some() {
            return found;
        }
        place.steps.pop();
        place.name = outer;
    }
    None
}

/// Returns true for a JSON web key that contains its private part.
fn is_private_jwk(map: &Map<String, Value>) -> bool {
    map.contains_key("kty")
        && ["d", "k"]
            .iter()
            .any(|part| map.get(*part).and_then(Value::as_str).is_some_and(|d| classify::is_random(d, 20)))
}

/// Appends a segment to a path. Escapes unusual characters, and shows a segment of 64 characters or more as its first
/// 63 and `…`.
fn child(path: &str, segment: &str) -> String {
    let mut out = String::with_capacity(path.len() + segment.len().min(SEGMENT_LIMIT) + 1);
    out.push_str(path);
    if !path.is_empty() {
        out.push('.');
    }
    let mut shown = 0;
    for c in segment.chars() {
        let escaped: String = if c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric() {
            c.to_string()
        } else {
            c.escape_unicode().to_string()
        };
        let width = escaped.chars().count();
        if shown + width >= SEGMENT_LIMIT {
            out.push('…');
            break;
        }
        out.push_str(&escaped);
        shown += width;
    }
    out
}

/// Parses a string that is a JSON object or array; `None` for any other string.
fn parse_nested(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let bracketed =
        (trimmed.starts_with('{') && trimmed.ends_with('}')) || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    if !bracketed || trimmed.len() > NESTED_LIMIT {
        return None;
    }
    serde_json::from_str(trimmed).ok()
}

/// Runs all rules on one text.
fn scan(name: Option<&str>, text: &str, decode: &mut usize) -> Option<&'static str> {
    if text.len() < 5 {
        return None;
    }
    let view = TextSurvey::new(text);
    let promised = name.map_or(NamePromise::None, |name| names::judge_name(name.as_bytes()));
    if view.is_plain() && promised == NamePromise::None {
        return None;
    }
    scan_plain(promised, &view)
        .or_else(|| scan_encoded(promised, &view, decode))
        .or_else(|| if view.words.is_empty() { None } else { scan_bare(name, &view) })
}

/// Runs the rules that recognise a secret by its shape alone.
fn scan_shapes(view: &TextSurvey<'_>) -> Option<&'static str> {
    let text = view.text;
    if (view.has_any(TextSurvey::DASHES) && structure::private_key(text)) || structure::putty_key(text) {
        return Some("private-key");
    }
    if let Some(rule) = view.long_words(formats::SHORTEST).find_map(formats::find_format) {
        return Some(rule);
    }
    if view.long_words(32).any(|word| holds_hex(text, word)) {
        return Some("hex-32-64");
    }
    (view.has_any(TextSurvey::AT) && url::has_credentials(text)).then_some("url-credentials")
}

/// Returns true when `word`, a part of `text`, contains a run of hex digits that is not a commit.
fn holds_hex(text: &str, word: &str) -> bool {
    let start = (word.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    structure::hex_runs(word.as_bytes()).any(|run| !commit::is_commit(text, start + run.start, run.len()))
}

/// Runs the rules on plain text. Skips each rule whose necessary characters the survey did not find.
fn scan_plain(promised: NamePromise, view: &TextSurvey<'_>) -> Option<&'static str> {
    scan_shapes(view)
        .or_else(|| named(promised, view.text))
        .or_else(|| if view.has_any(TextSurvey::SEPARATOR) { assign::find_assignment(view.text) } else { None })
        .or_else(|| {
            if view.has_any(TextSurvey::BLANK | TextSurvey::SEPARATOR) {
                command::find_in_command(view.text)
            } else {
                None
            }
        })
        .or_else(|| {
            if view.has_any(TextSurvey::BLANK) {
                netrc::find_netrc_password(view.text).or_else(|| prose::find_in_prose(view.text))
            } else {
                None
            }
        })
        .or_else(|| if view.text.is_ascii() { None } else { prose::find_unspaced(view.text) })
}

/// Checks the text as the value of a name. `promised` is the kind of secret that the name suggests.
fn named(promised: NamePromise, text: &str) -> Option<&'static str> {
    let whole = text.trim();
    match promised {
        NamePromise::None => None,
        NamePromise::Header => header::header_credential(whole).then_some("authorization-header"),
        _ if whole.len() > 512 || whole.contains('\n') => None,
        _ => assign::names_literal(promised, whole).then_some("secret-assignment"),
    }
}

/// Finds credentials inside base64: keys, JSON, `user:password` and similar texts.
fn scan_encoded(promised: NamePromise, view: &TextSurvey<'_>, decode: &mut usize) -> Option<&'static str> {
    const SHORTEST: usize = 24;
    let worth = view.text.len() < 4096 || promised > NamePromise::None || structure::has_encoded_start(view.text);
    if !worth {
        return None;
    }
    view.long_words(SHORTEST).flat_map(|word| structure::base64_tokens(word, SHORTEST)).find_map(|token| {
        if *decode == 0 {
            return None;
        }
        let TokenContent::Text(inner) = structure::decode_base64(token) else {
            return None;
        };
        *decode = decode.saturating_sub(inner.len());
        scan_plain(NamePromise::None, &TextSurvey::new(&inner)).map(|_| "encoded-secret")
    })
}

/// Checks if the whole text is only a random string.
fn scan_bare(name: Option<&str>, view: &TextSurvey<'_>) -> Option<&'static str> {
    if name.is_some_and(|n| names::describes_public(n.as_bytes())) {
        return None;
    }
    // A certificate or a public key is no secret. Private keys were found before.
    if view.has_any(TextSurvey::DASHES) && view.text.contains("-----BEGIN ") {
        return None;
    }
    (random::is_bare_random(view.text)
        || random::is_chat_token(view.text)
        || view.long_words(random::PREFIXED_MIN).any(random::has_prefixed_token)
        || view.long_words(random::LONG_MIN).any(random::is_long_random))
    .then_some("random-string")
}
