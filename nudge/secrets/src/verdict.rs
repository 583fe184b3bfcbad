//! Decides whether a value is a secret, from the kind of secret that its name suggests.

use super::classify::{
    CharMix, count_distinct, digit_changes, is_env_name, is_odd_word, is_passwordish, is_placeholder, is_random,
    is_reference, is_uuid, is_version_or_number, is_word_byte, wordy_share,
};
use super::names::NamePromise;
use super::structure::{TokenContent, decode_base64};
use aho_corasick::{AhoCorasick, Anchored, Input, StartKind};
use std::sync::LazyLock;

/// Returns true when `value` is a literal secret. `promised` is the kind of secret that the name suggests. `shouted`
/// means the form `NAME=value` of environment variables, where even a plain word is a literal.
pub(super) fn is_secret(promised: NamePromise, value: &str, shouted: bool) -> bool {
    let value = value.trim().trim_end_matches(['.', ',', ':', ';']);
    let value = value.strip_prefix("base64:").unwrap_or(value);
    let bytes = value.as_bytes();
    if bytes.len() < 5 {
        return false;
    }
    // Checks for references and placeholders last, because they take the most time.
    let suspicious = match promised {
        NamePromise::Password => is_password(value, shouted),
        NamePromise::Token | NamePromise::Header => is_uuid(bytes) || is_token_like(value) || is_basic_pair(value),
        NamePromise::Weak => {
            let path = bytes.contains(&b'/') && wordy_share(bytes) >= 30;
            (is_random(value, 20) && CharMix::from_bytes(bytes).digit > 0 && !path && !is_public_token(value))
                || (bytes.len() >= 14 && decoded_pair(value))
        }
        _ => false,
    };
    suspicious && !value.contains("...") && !is_member_access(value) && !is_reference(value) && !is_placeholder(value)
}

fn is_password(value: &str, shouted: bool) -> bool {
    let bytes = value.as_bytes();
    let word = shouted
        && bytes.len() >= 6
        && !bytes.iter().any(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'(' | b'{'))
        && !is_env_name(bytes)
        && !is_version_or_number(bytes);
    word || is_passwordish(value)
        || is_uuid(bytes)
        || is_token_like(value)
        || is_number_code(bytes)
        || is_joined_words(value)
}

/// Words that occur in names but not in passwords. A value with such a word names a kind of secret, or the place that
/// stores it.
const NAMING_WORDS: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "secret",
    "secrets",
    "key",
    "keys",
    "token",
    "tokens",
    "credential",
    "credentials",
    "user",
    "name",
    "value",
    "auth",
    "admin",
    "root",
    "test",
    "default",
    "example",
    "config",
    "database",
    "data",
    "store",
    "service",
    "file",
    "path",
    "hash",
    "field",
    "type",
    "input",
    "string",
    "generated",
    "random",
    "required",
    "invalid",
    "valid",
    "reset",
    "change",
    "policy",
    "manager",
    "version",
    "from",
    "with",
    "your",
    "this",
    "that",
    "here",
    "none",
    "null",
    "env",
    "prod",
    "production",
    "staging",
    "stage",
    "local",
    "server",
    "client",
    "vault",
    "sha",
    "aes",
    "rsa",
    "scram",
    "bcrypt",
    "argon",
    "utf",
    "plain",
    "text",
    "base",
    "form",
    "element",
    "text",
    "component",
    "html",
    "json",
    "yaml",
    "main",
];

/// Returns true for a password of several words that are joined by punctuation: `Copper-maple-42`, `river_Stone_7`,
/// `correct-horse-battery`.
fn is_joined_words(value: &str) -> bool {
    let bytes = value.as_bytes();
    if !(10..=64).contains(&bytes.len()) || !bytes.iter().any(|b| matches!(b, b'-' | b'_' | b'.')) {
        return false;
    }
    let mix = CharMix::from_bytes(bytes);
    let pieces = || value.split(['-', '_', '.']);
    let words = || pieces().filter(|piece| piece.bytes().filter(u8::is_ascii_alphabetic).count() >= 3);
    let is_piece = |piece: &str| {
        let letters = piece.trim_end_matches(|c: char| c.is_ascii_digit());
        piece.len() <= 14
            && !piece.is_empty()
            && letters.bytes().all(|b| b.is_ascii_alphabetic())
            && !NAMING_WORDS.iter().any(|word| letters.eq_ignore_ascii_case(word))
    };
    let is_number = |piece: &str| piece.bytes().all(|b| b.is_ascii_digit());
    let is_phrase = || {
        let is_dashed = !value.contains(['_', '.']) && mix.digit == 0;
        is_dashed && pieces().count() >= 3 && pieces().all(|piece| piece.len() >= 4)
    };
    words().count() >= 2
        && pieces().all(|piece| is_piece(piece) || is_number(piece))
        && (mix.digit >= 2 || (mix.digit > 0 && mix.upper > 0) || is_phrase())
        && !is_env_name(bytes)
        && !is_version_or_number(bytes)
}

/// Returns true for a password of six or more digits. Shorter numbers are counts and ports.
fn is_number_code(bytes: &[u8]) -> bool {
    bytes.len() >= 6 && bytes.iter().all(u8::is_ascii_digit) && count_distinct(bytes, 4) > 3
}

/// Returns true for code that reads a field: `user.password`, `config.db.pass`.
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

/// Returns true for a value that looks like a token or key: it looks random, or its letters and digits form no words.
pub(super) fn is_token_like(value: &str) -> bool {
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
    let mix = CharMix::from_bytes(bytes);
    if mix.space > 0 || !value.is_ascii() || mix.digit == 0 || has_brackets(value) {
        let marked = mix.symbol >= 4 && bytes.len() >= 20 && wordy_share(bytes) < 48 && !has_brackets(value);
        return is_odd_word(value) || (mix.space == 0 && value.is_ascii() && (marked || is_noise(bytes)));
    }
    // In some tokens, words of the issuer come before the random part.
    if value.rsplit_once('_').is_some_and(|(_, tail)| tail.len() >= 16 && is_token_like(tail)) {
        return true;
    }
    // In `abc123def456` and `s3cr3t-t0k3n`, digits and letters alternate.
    let share = wordy_share(bytes);
    let blocks = bytes.windows(2).filter(|w| w[0].is_ascii_digit() != w[1].is_ascii_digit()).count();
    bytes.len() >= 8
        && mix.count_letters() >= 2
        && (share < 40
            || (blocks >= 3 && share < 75 && mix.digit >= 4)
            || (mix.symbol == 0 && mix.digit >= 3 && bytes.len() >= 12)
            || (mix.symbol == 0 && bytes.len() >= 14 && share < 75 && digit_changes(bytes) >= 2))
}

/// Returns true for a mix of letters, digits and many kinds of punctuation, as key generators of frameworks make it.
pub(super) fn is_noise(bytes: &[u8]) -> bool {
    let mix = CharMix::from_bytes(bytes);
    mix.symbol >= 6 && mix.digit >= 3 && mix.space == 0 && bytes.len() >= 32 && wordy_share(bytes) < 48
}

/// Returns true for `user:password` in base64, as in the configuration of `docker` and `npm`.
pub(super) fn decoded_pair(value: &str) -> bool {
    let TokenContent::Text(inner) = decode_base64(value) else {
        return false;
    };
    is_basic_pair(&inner)
}

/// Returns true for `user:password` whose password is a literal.
pub(super) fn is_basic_pair(value: &str) -> bool {
    let Some((user, pass)) = value.split_once(':') else {
        return false;
    };
    let plain_user = !user.is_empty()
        && user.len() <= 64
        && user.bytes().all(|b| is_word_byte(&b) || matches!(b, b'.' | b'-' | b'@' | b'+'));
    plain_user && !pass.starts_with("//") && is_secret(NamePromise::Password, pass, false)
}

/// Beginnings of random-looking values that are known to be public.
#[rustfmt::skip]
const PUBLIC_STARTS: &[&str] = &[
    "sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "SHA256:", "h1:", "q1:", "pk_", "pk.", "pub", "evt_",
    "cus_", "pi_", "price_", "prod_", "sub_", "arn:", "urn:", "did:", "data:", "AAAAB3Nza", "AAAAC3Nza",
    "AAAAE2Vj", "AAAAGnNr", "LS0tLS1CRUdJTiBD", "LS0tLS1CRUdJTiBQVUJ", "bafy", "age1", "npm-", "npub1", "ssh-",
    "phc_", "AROA", "AIDA", "projects/", "sk_test_", "rk_test_",
];

static PUBLIC: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().start_kind(StartKind::Anchored).build(PUBLIC_STARTS).ok());

/// Returns true for a random-looking value that is known to be public.
pub(super) fn is_public_token(value: &str) -> bool {
    let length = value.len();
    // Recognises IPFS ids, reCAPTCHA site keys, certificates, and ciphertexts of KMS and sealed-secret by their shape
    // and length.
    let by_length = (value.starts_with("Qm") && length == 46)
        || (value.starts_with("6L") && length == 40)
        || (length > 100 && ["MII", "AQICA", "AgA", "AgB"].iter().any(|start| value.starts_with(start)));
    by_length || PUBLIC.as_ref().is_some_and(|starts| starts.find(Input::new(value).anchored(Anchored::Yes)).is_some())
}

pub(super) fn has_brackets(value: &str) -> bool {
    value.bytes().any(|b| matches!(b, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'<' | b'>'))
}
