//! `name = value`, `name: value`, `"name": "value"`, `<name>value</name>`, headers and the like:
//! the name says what to expect, the value decides.

use super::classify::{
    Mix, distinct, is_env_name, is_passwordish, is_placeholder, is_random, is_reference, is_uuid, is_version_or_number,
    is_word_byte, is_wordlike, starts_with_lower, wordy_share,
};
use super::names::{Promise, is_carrier, is_namer, promise};
use super::structure::{Encoded, decode_base64};

/// How much of a value is read.
const VALUE_LIMIT: usize = 256;
/// How much of a name is read.
const NAME_LIMIT: usize = 96;
/// How many values are read at full length in one text.
const MANY: usize = 256;

/// Finds an assignment of a literal to a secret-looking name.
pub(super) fn find(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    // The name announced by `name: X` or `key="X"`, waiting for its `value: Y`.
    let mut announced: Option<&str> = None;
    let mut judged = 0;
    let mut last_judged = (0, "", "");
    for (i, &b) in bytes.iter().enumerate() {
        if !matches!(b, b'=' | b':' | b'>' | b',') {
            continue;
        }
        let Some(name) = separator(bytes, i, b).and_then(|end| name_before(text, end)) else {
            continue;
        };
        let last = name.rsplit(' ').next().unwrap_or(name);
        let named = if names_carrier(last) { announced.unwrap_or(name) } else { name };
        let promised = promise(named.as_bytes());
        let is_note =
            promised == Promise::None && b == b':' && bytes.get(i + 1) == Some(&b' ') && is_described(bytes, i);
        if promised == Promise::None && !is_note && !is_namer(last) {
            continue;
        }
        // Texts with very many candidates have only the beginnings of the later values read.
        judged += 1;
        let limit = if judged > MANY { VALUE_LIMIT / 8 } else { VALUE_LIMIT };
        let value = value_after(text, i + 1, b, limit);
        if is_namer(last) {
            announced = Some(value.text);
        }
        // "password for staging: X"
        if is_note && is_noted_password(&value) {
            return Some("secret-assignment");
        }
        // The same assignment again gets the same answer.
        if last_judged == (b, named, value.line) {
            continue;
        }
        last_judged = (b, named, value.line);
        if let Some(rule) = judge(promised, named.as_bytes(), &value, text, i) {
            return Some(rule);
        }
    }
    None
}

fn names_carrier(last: &str) -> bool {
    last.len() <= 12 && is_carrier(last)
}

/// Whether the words before the colon at `i` speak of a password for something.
fn is_described(bytes: &[u8], i: usize) -> bool {
    const TERMS: [&str; 5] = ["password ", "passwd ", "passphrase ", "api key ", "token "];
    const LINKS: [&str; 6] = ["for", "of ", "on ", "to ", "in ", "is "];
    let lead = &bytes[i.saturating_sub(48)..i];
    let lead = lead.iter().rposition(|b| matches!(b, b'\n' | b'"' | b':')).map_or(lead, |at| &lead[at + 1..]);
    let begins = |at: &usize| matches!(lead[*at], b'p' | b'P' | b'a' | b'A' | b't' | b'T');
    (0..lead.len()).filter(begins).any(|at| {
        TERMS.iter().any(|term| {
            let rest = &lead[at..];
            starts_with_lower(rest, term) && LINKS.iter().any(|link| starts_with_lower(&rest[term.len()..], link))
        })
    })
}

/// A password noted in prose: digits or marks among the letters, in one piece.
fn is_noted_password(value: &Value<'_>) -> bool {
    let bytes = value.long.as_bytes();
    if bytes.len() < 6 || !bytes.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let mix = Mix::of(bytes);
    is_secret(Promise::Password, value.long, false)
        && (mix.digit >= 3 || (mix.symbol > 0 && mix.digit > 0) || is_random(value.long, 10))
        && !value.long.contains(['/', '('])
}

/// Whether byte `i` separates a name from a value; returns where the name's side ends.
fn separator(bytes: &[u8], i: usize, b: u8) -> Option<usize> {
    let next = bytes.get(i + 1).copied().unwrap_or(b' ');
    let previous = if i > 0 { bytes[i - 1] } else { return None };
    match b {
        b'=' => {
            if matches!(next, b'=' | b'~') || matches!(previous, b'=' | b'!' | b'<' | b'>' | b'~') {
                return None;
            }
            let marks = bytes[..i].iter().rev().take(2).take_while(|b| matches!(b, b':' | b'?' | b'+' | b'|')).count();
            Some(i - marks)
        }
        b':' => {
            (next != b':' && previous != b':' && next != b'=' && !(next == b'/' && bytes.get(i + 2) == Some(&b'/')))
                .then_some(i)
        }
        // XML text: `<name>value<`.
        b'>' => (is_word_byte(&previous) && !matches!(next, b'=' | b'>' | b' ')).then_some(i),
        // `define("NAME", "value")`
        b',' => (matches!(previous, b'"' | b'\'') && matches!(next, b' ' | b'"' | b'\'')).then_some(i),
        _ => None,
    }
}

/// The name that ends just before `end`, past blanks, quotes and brackets.
fn name_before(text: &str, end: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let closing = bytes[..end]
        .iter()
        .rev()
        .take(6)
        .take_while(|b| matches!(b, b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\' | b']' | b')' | b'*'))
        .count();
    let end = end - closing;
    let is_name = |b: &u8| is_word_byte(b) || matches!(b, b'-' | b'.');
    let length = bytes[end.saturating_sub(NAME_LIMIT)..end].iter().rev().take_while(|b| is_name(b)).count();
    if length == 0 {
        return None;
    }
    let mut start = end - length;
    // "API key: …": two words, the first of which qualifies the second.
    if start > 1 && bytes[start - 1] == b' ' && length <= 12 && bytes[start - 2].is_ascii_alphabetic() {
        let word =
            bytes[start.saturating_sub(20)..start - 1].iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
        start -= word + 1;
    }
    text.get(start..end)
}

/// A value and how it was written.
pub(super) struct Value<'a> {
    /// Up to the closing quote, or up to the first delimiter.
    pub text: &'a str,
    /// Without quotes: up to the next blank, when that is longer.
    pub long: &'a str,
    /// Up to the end of the line or quote: for headers.
    pub line: &'a str,
    pub quoted: bool,
}

/// Reads the value that starts at or after `from`.
pub(super) fn value_after(text: &str, from: usize, separator: u8, limit: usize) -> Value<'_> {
    let bytes = text.as_bytes();
    let stop = ceil_boundary(text, bytes.len().min(from + limit));
    let mut at = from;
    if separator == b'=' && bytes.get(at) == Some(&b'>') {
        at += 1;
    }
    while at < stop && matches!(bytes[at], b' ' | b'\t' | b'(') && at < from + 24 {
        at += 1;
    }
    // YAML block scalars: `|` or `>` and a new line.
    if separator == b':' && at < stop && matches!(bytes[at], b'|' | b'>') {
        let skip = bytes[at..stop]
            .iter()
            .take_while(|b| matches!(b, b'|' | b'>' | b'-' | b'+' | b' ' | b'\n' | b'\r'))
            .count();
        at += skip;
    }
    let open = bytes[at..stop].iter().take(3).take_while(|b| matches!(b, b'"' | b'\'' | b'`' | b'\\')).count();
    let at = at + open;
    let quote = if open > 0 { bytes[at - 1] } else { 0 };
    let rest = &bytes[at.min(stop)..stop];
    let slice = |length: usize| text.get(at..at + length).unwrap_or("");
    if quote != 0 && quote != b'\\' {
        let length = rest.iter().position(|b| *b == quote || matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let closed = slice(length).trim_end_matches('\\');
        return Value { text: closed, long: closed, line: closed, quoted: true };
    }
    let (mut short, mut long) = (None, None);
    let mut line = rest.len();
    for (i, b) in rest.iter().enumerate() {
        match b {
            b'\n' | b'\r' | b'"' | b'\'' | b'`' => {
                line = i;
                break;
            }
            b' ' | b'\t' => long = long.or(Some(i)),
            b',' | b';' | b'&' | b'|' | b')' | b']' | b'}' | b'<' | b'>' | b'\\' => {
                short = short.or(Some(i).filter(|_| long.is_none()));
            }
            _ => {}
        }
    }
    let long = long.unwrap_or(line);
    Value { text: slice(short.unwrap_or(long)), long: slice(long), line: slice(line), quoted: false }
}

fn ceil_boundary(text: &str, mut at: usize) -> usize {
    while at < text.len() && !text.is_char_boundary(at) {
        at += 1;
    }
    at.min(text.len())
}

/// Judges the value found at separator `b` (byte `i`) for `name`.
fn judge(promised: Promise, name: &[u8], value: &Value<'_>, text: &str, i: usize) -> Option<&'static str> {
    let b = text.as_bytes()[i];
    match promised {
        Promise::None => None,
        Promise::Header => header_credential(value.line).then_some("authorization-header"),
        Promise::Cookie => cookie_credential(value.line).then_some("cookie"),
        Promise::Phrase => is_phrase(value.line).then_some("recovery-phrase"),
        _ if b == b',' => (value.quoted && (is_random(value.text, 12) || is_listed_secret(promised, value.text)))
            .then_some("secret-assignment"),
        _ if b == b'>' => element_text(text, i, name.len())
            .is_some_and(|inner| is_secret(promised, inner, false))
            .then_some("secret-assignment"),
        // `group:artifact` and the like: no blank after the colon, so neither YAML nor JSON.
        _ if b == b':' && !value.quoted && text.as_bytes().get(i + 1).is_some_and(|b| !b.is_ascii_whitespace()) => {
            let value = value.text.split(':').next().unwrap_or("");
            let strict = match promised {
                Promise::Weak => false,
                Promise::Token => is_random(value, 16) || is_uuid(value.as_bytes()),
                _ => is_passwordish(value) && !value.contains('/'),
            };
            (strict && is_secret(promised, value, false)).then_some("secret-assignment")
        }
        _ => {
            let query = i > name.len() && matches!(text.as_bytes()[i - name.len() - 1], b'?' | b'&');
            let spelled = name.iter().any(u8::is_ascii_lowercase);
            (is_secret(promised, value.text, !spelled && b == b'=')
                || (!value.quoted
                    && !query
                    && value.long.len() > value.text.len()
                    && promised == Promise::Password
                    && !has_brackets(value.long)
                    && is_secret(promised, value.long, false))
                || (promised >= Promise::Token && scheme_credential(value.line)))
            .then_some("secret-assignment")
        }
    }
}

fn has_brackets(value: &str) -> bool {
    value.bytes().any(|b| matches!(b, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>'))
}

/// `("NAME", "value")`: stricter than an assignment, since lists of names look the same.
fn is_listed_secret(promised: Promise, value: &str) -> bool {
    let mix = Mix::of(value.as_bytes());
    promised >= Promise::Token && (mix.digit >= 2 || mix.symbol >= 4) && is_secret(promised, value, false)
}

/// The text of `<name>text</`, for the `>` at byte `i`.
fn element_text(text: &str, i: usize, name: usize) -> Option<&str> {
    if i <= name || !matches!(text.as_bytes()[i - name - 1], b'<' | b':') {
        return None;
    }
    let stop = ceil_boundary(text, text.len().min(i + 1 + VALUE_LIMIT));
    let rest = text.get(i + 1..stop)?;
    rest.split_once("</").map(|(inner, _)| inner)
}

/// Whether `value`, given to a name that promises `promised`, is a literal secret.
/// `shouted` means an environment-style `NAME=value`, where even a plain word is a literal.
pub(super) fn is_secret(promised: Promise, value: &str, shouted: bool) -> bool {
    if value.contains("...") {
        return false;
    }
    let value = value.trim().trim_end_matches(['.', ',', ':', ';']);
    let value = value.strip_prefix("base64:").unwrap_or(value);
    let bytes = value.as_bytes();
    if bytes.len() < 5 {
        return false;
    }
    // The costly questions, whether the value refers or stands in, come last.
    let suspicious = match promised {
        Promise::Password => is_password(value, shouted),
        Promise::Token | Promise::Header => is_uuid(bytes) || is_token_like(value) || is_basic_pair(value),
        Promise::Weak => is_random(value, 20) && Mix::of(bytes).digit > 0 && !is_public_token(value),
        _ => false,
    };
    suspicious && !is_member_access(value) && !is_reference(value) && !is_placeholder(value)
}

fn is_password(value: &str, shouted: bool) -> bool {
    let bytes = value.as_bytes();
    let word = shouted
        && bytes.len() >= 6
        && !bytes.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'(' | b'{'))
        && !is_env_name(bytes)
        && !is_version_or_number(bytes);
    word || is_passwordish(value) || is_uuid(bytes) || is_token_like(value) || is_number_code(bytes)
}

/// Six or more digits given as a password; short counts and ports are no secrets.
fn is_number_code(bytes: &[u8]) -> bool {
    bytes.len() >= 6 && bytes.iter().all(u8::is_ascii_digit) && distinct(bytes, 4) > 3
}

/// `user.password`, `config.db.pass`: code, not a literal.
fn is_member_access(value: &str) -> bool {
    value.contains('.')
        && value.bytes().filter(u8::is_ascii_digit).count() <= 2
        && value.split('.').all(|part| {
            part.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
                && part.bytes().all(|b| is_word_byte(&b))
                && is_mostly_words(part)
        })
}

fn is_mostly_words(part: &str) -> bool {
    part.len() < 6 || wordy_share(part.as_bytes()) >= 40
}

/// Values of tokens and keys: random-looking from 12 bytes on, or a mix of letters and digits that makes no words.
fn is_token_like(value: &str) -> bool {
    let bytes = value.as_bytes();
    if is_version_or_number(bytes) || is_env_name(bytes) {
        return false;
    }
    if is_random(value, 10) {
        return true;
    }
    if value.len() >= 14 && decoded_pair(value) {
        return true;
    }
    let mix = Mix::of(bytes);
    if mix.space > 0 || !value.is_ascii() || mix.digit == 0 || has_brackets(value) {
        let noise = mix.symbol >= 6 && mix.digit >= 3 && bytes.len() >= 32;
        return mix.space == 0
            && mix.symbol >= 4
            && bytes.len() >= 20
            && wordy_share(bytes) < 48
            && (noise || !has_brackets(value))
            && value.is_ascii();
    }
    // `abc123def456`, `s3cr3t-t0k3n`: digits among the letters, in one piece or in odd company.
    let share = wordy_share(bytes);
    let blocks = bytes.windows(2).filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit()).count();
    bytes.len() >= 8
        && mix.letters() >= 2
        && (share < 40
            || (blocks >= 3 && share < 75 && mix.digit >= 4)
            || (mix.symbol == 0 && mix.digit >= 3 && bytes.len() >= 12))
}

/// base64 of `user:password`, as in `docker` and `npm` configuration.
fn decoded_pair(value: &str) -> bool {
    let Encoded::Text(inner) = decode_base64(value) else {
        return false;
    };
    is_basic_pair(&inner)
}

/// `user:password` with a literal password.
pub(super) fn is_basic_pair(value: &str) -> bool {
    let Some((user, pass)) = value.split_once(':') else {
        return false;
    };
    let plain_user = !user.is_empty()
        && user.len() <= 64
        && user.bytes().all(|b| is_word_byte(&b) || matches!(b, b'.' | b'-' | b'@' | b'+'));
    plain_user && !pass.starts_with("//") && is_secret(Promise::Password, pass, false)
}

/// Random-looking values that are known not to be secret.
pub(super) fn is_public_token(value: &str) -> bool {
    const PUBLIC: &[&str] = &[
        "sha1-",
        "sha256-",
        "sha384-",
        "sha512-",
        "sha256:",
        "SHA256:",
        "h1:",
        "q1:",
        "pk_",
        "pk.",
        "pub",
        "evt_",
        "cus_",
        "pi_",
        "price_",
        "prod_",
        "sub_",
        "arn:",
        "urn:",
        "did:",
        "data:",
        "AAAAB3Nza",
        "AAAAC3Nza",
        "AAAAE2Vj",
        "AAAAGnNr",
        "LS0tLS1CRUdJTiBD",
        "LS0tLS1CRUdJTiBQVUJ",
        "bafy",
        "age1",
        "npm-",
        "npub1",
        "ssh-",
        "phc_",
        "AROA",
        "AIDA",
        "projects/",
    ];
    let length = value.len();
    // Reported by shape and length: IPFS, reCAPTCHA site keys, certificates, KMS and sealed-secret ciphertexts.
    let by_length = (value.starts_with("Qm") && length == 46)
        || (value.starts_with("6L") && length == 40)
        || (length > 100 && ["MII", "AQICA", "AgA", "AgB"].iter().any(|start| value.starts_with(start)));
    by_length || PUBLIC.iter().any(|start| value.starts_with(start))
}

/// `Bearer X`, `Basic X`, `token X`, or the credential alone.
pub(super) fn header_credential(line: &str) -> bool {
    let line = line.trim().trim_end_matches([',', ';', '}', ')']);
    let (scheme, rest) = line.split_once([' ', '+']).unwrap_or(("", line));
    if scheme.is_empty() || !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
        return literal_credential(line.split_ascii_whitespace().next().unwrap_or(""));
    }
    let rest = rest.trim_start_matches([' ', ':', '"', '\'', '=']);
    let credential = rest.split_ascii_whitespace().next().unwrap_or("");
    match scheme.to_ascii_lowercase().as_str() {
        "basic" => decoded_pair(credential) || literal_credential(credential),
        "bearer" | "token" | "apikey" | "api-key" | "ssws" | "geniekey" | "splunk" | "key" | "bot" | "negotiate"
        | "digest" | "jwt" | "oauth" | "hmac" | "sharedkey" => literal_credential(credential),
        _ => is_random(credential, 16) || is_random(scheme, 16) || parameter_credential(rest),
    }
}

/// `Key name="…", token="…"` inside a header.
fn parameter_credential(rest: &str) -> bool {
    rest.split([',', ' ', ';'])
        .filter_map(|part| part.split_once('='))
        .any(|(_, value)| is_random(value.trim_matches(['"', '\'']), 20))
}

/// A header's credential is literal unless it refers, stands in, or is a plain word.
fn literal_credential(credential: &str) -> bool {
    let credential = credential
        .strip_prefix("key=")
        .or_else(|| credential.strip_prefix("token="))
        .unwrap_or(credential)
        .trim_matches(['"', '\'', '\\', ',']);
    let bytes = credential.as_bytes();
    let odd = bytes.len() >= 8
        && (is_token_like(credential)
            || is_uuid(bytes)
            || is_basic_pair(credential)
            || is_passwordish(credential)
            || (bytes.len() >= 24 && wordy_share(bytes) < 70));
    odd && !is_reference(credential) && !is_placeholder(credential)
}

/// `x-api-key: Bearer X` and such: a scheme inside an ordinary assignment.
fn scheme_credential(line: &str) -> bool {
    let Some((scheme, rest)) = line.trim().split_once(' ') else {
        return false;
    };
    matches!(scheme.to_ascii_lowercase().as_str(), "bearer" | "basic" | "token" | "bot" | "apikey")
        && literal_credential(rest.split_ascii_whitespace().next().unwrap_or(""))
}

/// `session=…; other=…` with a random-looking value.
fn cookie_credential(line: &str) -> bool {
    line.split([';', ' ']).filter_map(|pair| pair.split_once('=')).any(|(name, value)| {
        let value = value.trim_matches(['"', '\'']);
        !is_reference(value)
            && !is_placeholder(value)
            && (is_random(value, 14)
                || is_uuid(value.as_bytes()) && promise(name.as_bytes()) > Promise::None
                || is_secret(promise(name.as_bytes()), value, false))
    })
}

/// Twelve or more plain lower-case words.
fn is_phrase(line: &str) -> bool {
    let words = line.split([' ', ',']).filter(|w| !w.is_empty());
    let good =
        words.clone().filter(|w| (3..=8).contains(&w.len()) && w.bytes().all(|b| b.is_ascii_lowercase())).count();
    good >= 12 && good == words.count() && line.split(' ').any(|w| is_wordlike(w.as_bytes()))
}

/// The value of a key, as a whole.
pub(super) fn names_literal(promised: Promise, value: &str) -> bool {
    match promised {
        Promise::Cookie => cookie_credential(value),
        Promise::Phrase => is_phrase(value),
        _ => is_secret(promised, value, false) || (promised >= Promise::Token && scheme_credential(value)),
    }
}
