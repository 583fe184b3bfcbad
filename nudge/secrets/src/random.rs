//! Finds values that are only a random string, and long tokens after a short prefix.

use super::classify::{
    CharMix, case_changes, count_distinct, is_random, is_test_key, is_uuid, is_word_byte, wordy_share,
};
use super::names::describes_public;
use super::structure::{TokenContent, decode_base64};
use super::verdict::is_public_token;

/// Smallest length of a string that is judged by its looks alone, in bytes.
const BARE_MIN: usize = 38;

/// Returns true when nearly the whole text is a single random string.
pub(super) fn is_bare_random(text: &str) -> bool {
    let text = text.trim().trim_matches(['"', '\'', '`', ',', ';']);
    if text.len() < BARE_MIN || text.len() > 4096 {
        return false;
    }
    let bytes = text.as_bytes();
    if !bytes.iter().all(|b| is_word_byte(b) || matches!(b, b'+' | b'/' | b'=' | b'-' | b'.' | b'~' | b':' | b'!')) {
        return false;
    }
    let mix = CharMix::from_bytes(bytes);
    if mix.count_classes() < 2 || mix.digit == 0 || mix.count_letters() < 8 || mix.symbol * 6 > bytes.len() {
        return false;
    }
    if !is_beyond_hex(bytes) || is_uuid(bytes) {
        return false;
    }
    // A string without capitals or without small letters may be base32, a hash of nix or a host name. It counts only if
    // it is one long piece without punctuation.
    if (mix.upper == 0 || mix.lower == 0) && (mix.symbol > 0 || bytes.len() < 40) {
        return false;
    }
    is_random(text, BARE_MIN)
        && wordy_share(bytes) < 38
        && count_distinct(bytes, 14) > 13
        && has_solid_piece(bytes)
        && !is_public_token(text)
        && !text.rsplit_once('=').is_some_and(|(_, value)| is_test_key(value))
        && !is_labelled_digest(text)
        && !is_readable(text)
}

/// Returns true if the whole text is a token of Mattermost: 26 characters of a special alphabet, some of them digits.
pub(super) fn is_chat_token(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    bytes.len() == 26
        && bytes.iter().all(|b| b"ybndrfg8ejkmcpqxot1uwisza345h769".contains(b))
        && bytes.iter().filter(|b| b.is_ascii_digit()).count() >= 3
        && is_beyond_hex(bytes)
        && wordy_share(bytes) < 60
        && count_distinct(bytes, 10) > 9
}

/// Returns true for a digest after its label: `sha256-…`, `h1:…`, `Algo:…`.
fn is_labelled_digest(text: &str) -> bool {
    text.split_once([':', '-']).is_some_and(|(label, _)| {
        let label = label.to_ascii_lowercase();
        matches!(
            label.as_str(),
            "sha1" | "sha224" | "sha256" | "sha384" | "sha512" | "md5" | "blake2b" | "blake3" | "h1" | "crc32" | "xxh3"
        )
    })
}

/// Returns true when the bytes have at least 20 letters and digits in a row, or 12 if the string is well mixed. The
/// pieces of names with points or dashes are shorter.
fn has_solid_piece(bytes: &[u8]) -> bool {
    let mix = CharMix::from_bytes(bytes);
    let mixed = mix.upper > 5 && mix.lower > 5 && mix.digit > 2;
    bytes
        .split(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'+' | b'/'))
        .any(|piece| piece.len() >= if mixed { 12 } else { 20 })
        && {
            let slashes = bytes.split(|b| *b == b'/').count() - 1;
            slashes * 10 <= bytes.len()
        }
}

fn is_readable(text: &str) -> bool {
    matches!(decode_base64(text), TokenContent::Text(_))
}

/// Smallest length of a word that [`has_prefixed_token`] reads, in bytes.
pub(super) const PREFIXED_MIN: usize = 36;

/// Returns true for `abc_live_` and 30 or more random letters and digits. Such a token has the prefix of an issuer that
/// is not in the table of formats.
pub(super) fn has_prefixed_token(text: &str) -> bool {
    text.as_bytes().split(|b| !(is_word_byte(b) || *b == b'-')).any(|word| {
        if !(PREFIXED_MIN..=300).contains(&word.len()) {
            return false;
        }
        let word = std::str::from_utf8(word).unwrap_or("");
        let Some(separator) = word.rfind(['_', '-']) else {
            return false;
        };
        let (prefix, body) = (&word[..separator], &word[separator + 1..]);
        let mix = CharMix::from_bytes(body.as_bytes());
        (30..=200).contains(&body.len())
            && (2..=20).contains(&prefix.len())
            && prefix.starts_with(|c: char| c.is_ascii_alphabetic())
            && CharMix::from_bytes(prefix.as_bytes()).digit <= 2
            && mix.lower > 3
            && is_beyond_hex(body.as_bytes())
            && mix.upper > 3
            && mix.digit > 1
            && is_random(body, 30)
            && wordy_share(body.as_bytes()) < 35
            && !is_public_token(word)
            && !is_labelled_digest(word)
            && !is_readable(body)
    })
}

/// Smallest length of a word that [`is_long_random`] reads, in bytes.
pub(super) const LONG_MIN: usize = 40;

/// Returns true for a word of 40 or more well-mixed letters and digits. The word ends at blanks, quotes and `=`.
pub(super) fn is_long_random(word: &str) -> bool {
    let (name, word) = word.rsplit_once('=').unwrap_or(("", word));
    if word.len() < LONG_MIN || describes_public(name.as_bytes()) {
        return false;
    }
    if is_bot_token(word) {
        return true;
    }
    // A secret key of AWS has 40 characters and may contain slashes. A path may contain slashes too, but seldom such a
    // mix of characters.
    let base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+');
    let plain = |b: u8| is_word_byte(&b) || b == b'-';
    let aws = word.len() == 40 && word.bytes().all(base64);
    if word.len() > 512 || !(aws || word.bytes().all(plain)) {
        return false;
    }
    let bytes = word.as_bytes();
    let mix = CharMix::from_bytes(bytes);
    let is_drawn = || {
        let share = wordy_share(bytes);
        share < 34 || (share < 60 && case_changes(bytes) * 3 >= bytes.len())
    };
    mix.lower > 6
        && is_beyond_hex(bytes)
        && mix.upper > 6
        && mix.digit > 0
        && mix.symbol * 8 < word.len()
        && is_drawn()
        && has_solid_piece(bytes)
        && !is_public_token(word)
        && !is_labelled_digest(word)
        && !is_readable(word)
}

/// Returns true for a token of a Discord bot. It has three parts with points between them: an encoded number, six
/// characters, and 27 to 40 characters.
fn is_bot_token(word: &str) -> bool {
    let mut parts = word.split('.');
    let (Some(user), Some(time), Some(mac), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let mix = CharMix::from_bytes(word.as_bytes());
    user.starts_with(['M', 'N', 'O'])
        && (23..=28).contains(&user.len())
        && (6..=7).contains(&time.len())
        && (26..=42).contains(&mac.len())
        && mix.lower > 4
        && mix.upper > 4
        && mix.digit > 1
        && word.bytes().all(|b| is_word_byte(&b) || matches!(b, b'-' | b'.'))
        && wordy_share(word.as_bytes()) < 60
}

/// Returns true when several letters are not hex digits. A long run of hex digits is a digest, which other modules
/// judge.
fn is_beyond_hex(bytes: &[u8]) -> bool {
    bytes.iter().filter(|b| b.is_ascii_alphabetic() && !b.is_ascii_hexdigit()).nth(4).is_some()
}
