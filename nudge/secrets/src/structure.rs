//! Finds shapes that are secret in any context: blocks of private keys, JSON web tokens, runs of hex digits, encoded
//! credentials.

use super::classify::{count_distinct, is_word_byte, wordy_share};
use super::formats::starts_token;
use aho_corasick::AhoCorasick;
use std::ops::Range;
use std::sync::LazyLock;

/// Returns true for a block of a private key with a body. The armour lines alone, as in a regex or in documentation,
/// are harmless.
pub(super) fn private_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(start) = text[from..].find("PRIVATE KEY").map(|i| from + i) {
        from = start + "PRIVATE KEY".len();
        let begin = bytes[start.saturating_sub(60)..start].windows(5).rev().any(|w| w.eq_ignore_ascii_case(b"BEGIN"));
        if begin && has_key_body(&bytes[from..]) {
            return true;
        }
    }
    ["Key Block-----\nVersion", "OpenVPN Static key V1-----"].iter().any(|mark| marks_key(text, mark))
}

/// Returns true for a key file of `PuTTY`, which has no armour lines.
pub(super) fn putty_key(text: &str) -> bool {
    text.len() >= 100 && marks_key(text, "Private-Lines:")
}

fn marks_key(text: &str, mark: &str) -> bool {
    text.find(mark).is_some_and(|start| has_key_body(&text.as_bytes()[start + mark.len()..]))
}

/// Returns true when key material follows, which means base64 characters within the next 400 bytes. Armour headers and
/// line ends may come before it.
fn has_key_body(rest: &[u8]) -> bool {
    let mut run = Vec::with_capacity(128);
    for line in rest[..rest.len().min(400)].split(|b| matches!(b, b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b' ' | b'\t'))
    {
        let line = line.strip_prefix(b"n").filter(|l| l.len() % 4 == 0).unwrap_or(line);
        let is_body =
            line.len() >= 8 && line.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
        if is_body {
            run.extend_from_slice(line);
        } else if line.len() > 5 && line[line.len().min(1)..].starts_with(b"----") {
            // An armour line ends the block, or begins another one.
            break;
        }
        if run.len() >= 96 {
            break;
        }
    }
    run.len() >= 20 && count_distinct(&run, 8) >= 8 && wordy_share(&run) < 60
}

/// Returns true for a JSON web token, `eyJ….eyJ….…`: two JSON objects in base64 and a signature. `dot` is the offset of
/// the first point. The function reads each part only once, to find its end.
pub(super) fn is_web_token(bytes: &[u8], dot: usize) -> bool {
    let is_part = |b: &u8| is_word_byte(b) || *b == b'-';
    let head = bytes[..dot].iter().rev().take_while(|b| is_part(b)).count();
    let header = &bytes[dot - head..dot];
    let Some(start) = header.windows(3).position(|w| w == b"eyJ") else {
        return false;
    };
    let claims = bytes[dot + 1..].iter().take_while(|b| is_part(b)).count();
    let after = dot + 1 + claims;
    header.len() - start >= 8
        && claims >= 7
        && bytes.get(after) == Some(&b'.')
        && bytes.get(after + 1).is_some_and(is_part)
        && count_distinct(&header[start..], 6) > 5
        && count_distinct(&bytes[dot + 1..after], 6) > 5
}

/// Returns the maximal runs of 32 to 64 hex digits that have no digest label before them (semantics section 7).
pub(super) fn hex_runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    const LABELS: [&[u8]; 7] = [b"md5", b"sha1", b"sha224", b"sha256", b"sha384", b"sha512", b"blake3"];
    let mut start = 0;
    std::iter::from_fn(move || {
        while start + 32 <= bytes.len() {
            // A run can begin only after the last byte here that is no hex digit.
            if let Some(offset) = bytes[start..start + 32].iter().rposition(|b| !b.is_ascii_hexdigit()) {
                start += offset + 1;
                continue;
            }
            let length = bytes[start..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
            let run = start..start + length;
            start = run.end + 1;
            let labelled = run.start > 0
                && matches!(bytes[run.start - 1], b':' | b'-')
                && LABELS.iter().any(|label| {
                    let head = &bytes[..run.start - 1];
                    head.len() >= label.len() && head[head.len() - label.len()..].eq_ignore_ascii_case(label)
                });
            if length <= 64 && !labelled {
                return Some(run);
            }
        }
        None
    })
}

/// The decoded content of a word in base64.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenContent {
    /// The word is not base64, or its content is binary.
    Opaque,
    /// The content is readable text.
    Text(String),
}

/// Decodes base64 in both alphabets, with or without padding. Reads at most 4 KiB.
pub(super) fn decode_base64(token: &str) -> TokenContent {
    let body = token.trim_end_matches('=').as_bytes();
    let body = &body[..body.len().min(4096)];
    let mut out = Vec::with_capacity(body.len() / 4 * 3 + 3);
    let (mut acc, mut bits) = (0_u32, 0_u32);
    for &b in body {
        let six = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return TokenContent::Opaque,
        };
        acc = (acc << 6 | u32::from(six)) & 0x00ff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from(acc >> bits & 0xff).unwrap_or(0));
            // Most words are not text, and their first bytes already show that.
            if out.len() == 12 && !mostly_readable(&out) {
                return TokenContent::Opaque;
            }
        }
    }
    if out.len() < 4 || !mostly_readable(&out) {
        return TokenContent::Opaque;
    }
    TokenContent::Text(String::from_utf8_lossy(&out).into_owned())
}

fn mostly_readable(bytes: &[u8]) -> bool {
    let readable = bytes.iter().filter(|b| matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t')).count();
    readable * 10 >= bytes.len() * 9
}

/// Returns the words of at least `min` base64 characters, from left to right.
pub(super) fn base64_tokens(text: &str, min: usize) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '=' | '-' | '_'))
        .map(|token| token.rsplit_once('=').map_or(token, |(head, tail)| if tail.is_empty() { head } else { tail }))
        .map(|token| token.trim_matches('='))
        .filter(move |token| token.len() >= min)
}

/// The beginnings of PEM armour and of JSON objects, in base64.
static ENCODED_STARTS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(["LS0tLS1C", "eyJ", "ewog", "ew0K"]).ok());

/// Returns true when `text` contains base64 that begins like PEM armour or a JSON object, which is worth decoding.
pub(super) fn has_encoded_start(text: &str) -> bool {
    ENCODED_STARTS
        .as_ref()
        .is_some_and(|marks| marks.find_iter(text).take(32).any(|found| starts_token(text.as_bytes(), found.start())))
}
