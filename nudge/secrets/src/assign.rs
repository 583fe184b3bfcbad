//! Finds secrets in assignments: `name = value`, `name: value`, `"name": "value"`, `<name>value</name>`, headers and
//! similar forms. The name raises a suspicion, and the value decides.

use super::classify::{
    CharMix, is_passwordish, is_placeholder, is_random, is_reference, is_spaced_code, is_uuid, is_wordlike,
    starts_with_lower,
};
use super::command::is_chosen_password;
use super::header::{cookie_credential, header_credential, scheme_credential};
use super::names::{NamePromise, is_carrier, is_namer, judge_name};
use super::read::{WrittenValue, ceil_boundary, find_separator, name_before, value_after};
use super::verdict::{has_brackets, is_noise, is_public_token, is_secret};

/// Largest number of bytes that are read of a value.
const VALUE_LIMIT: usize = 256;
/// Number of values in a text that are read at full length.
const MANY: usize = 256;

/// Finds a literal that is assigned to a name of a secret.
pub(super) fn find_assignment(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    // The name in `name: X` or `key="X"`. A field `value: Y` that follows has the value for this name.
    let mut announced: Option<&str> = None;
    let mut judged = 0;
    // Caches the results for the last name and the last assignment, because texts repeat them.
    let mut last_name = ("", NamePromise::None, false);
    let mut last_judged = (0, "", "");
    for (i, &b) in bytes.iter().enumerate() {
        if !matches!(b, b'=' | b':' | b'>' | b',') {
            continue;
        }
        let Some(name) = find_separator(bytes, i, b).and_then(|end| name_before(text, end)) else {
            continue;
        };
        let last = name.rsplit(' ').next().unwrap_or(name);
        let full = announced.filter(|_| is_carrier(last)).unwrap_or(name);
        if last_name.0 != full {
            last_name = (full, judge_name(full.as_bytes()), is_namer(last));
        }
        let (_, mut promised, namer) = last_name;
        if b == b',' && bytes[..i.saturating_sub(name.len() + 2)].ends_with(b"auth=(") {
            promised = NamePromise::Password;
        }
        let is_note =
            promised == NamePromise::None && b == b':' && bytes.get(i + 1) == Some(&b' ') && is_described(bytes, i);
        if promised == NamePromise::None && !is_note && !namer {
            continue;
        }
        // In a text with very many candidates, only the beginnings of the later values are read.
        judged += 1;
        let limit = if judged > MANY { VALUE_LIMIT / 8 } else { VALUE_LIMIT };
        let value = value_after(text, i + 1, b, limit);
        if namer {
            announced = Some(value.text);
        }
        if last_judged == (b, full, value.line) {
            continue;
        }
        last_judged = (b, full, value.line);
        // Matches the form "password for staging: X".
        if is_note && is_noted_password(&value) {
            return Some("secret-assignment");
        }
        if let Some(rule) = judge_value(promised, full.as_bytes(), &value, text, i) {
            return Some(rule);
        }
    }
    None
}

/// Returns true when the words before the colon at byte `i` say what a password is for.
fn is_described(bytes: &[u8], i: usize) -> bool {
    const TERMS: [&str; 5] = ["password ", "passwd ", "passphrase ", "api key ", "token "];
    const LINKS: [&str; 6] = ["for", "of ", "on ", "to ", "in ", "is "];
    let lead = &bytes[i.saturating_sub(48)..i];
    let lead =
        lead.iter().rposition(|b| matches!(b, b'\n' | b'"' | b':')).map_or(lead, |position| &lead[position + 1..]);
    let begins = |start: &usize| matches!(lead[*start], b'p' | b'P' | b'a' | b'A' | b't' | b'T');
    (0..lead.len()).filter(begins).any(|start| {
        TERMS.iter().any(|term| {
            let rest = &lead[start..];
            starts_with_lower(rest, term) && LINKS.iter().any(|link| starts_with_lower(&rest[term.len()..], link))
        })
    })
}

/// Returns true for a password that a person has noted in prose: letters with digits or punctuation among them, without
/// blanks.
fn is_noted_password(value: &WrittenValue<'_>) -> bool {
    let bytes = value.long.as_bytes();
    if bytes.len() < 6 || !bytes.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let mix = CharMix::from_bytes(bytes);
    is_secret(NamePromise::Password, value.long, false)
        && (mix.digit >= 3 || (mix.symbol > 0 && mix.digit > 0) || is_random(value.long, 10))
        && !value.long.contains(['/', '('])
}

/// Judges the value after the separator `b` at byte `i`. `promised` is the kind of secret that the name suggests.
fn judge_value(
    promised: NamePromise,
    name: &[u8],
    value: &WrittenValue<'_>,
    text: &str,
    i: usize,
) -> Option<&'static str> {
    let b = text.as_bytes()[i];
    match promised {
        NamePromise::None => None,
        NamePromise::Header => header_credential(value.line).then_some("authorization-header"),
        NamePromise::Cookie => cookie_credential(value.line).then_some("cookie"),
        NamePromise::Phrase => is_phrase(value.line).then_some("recovery-phrase"),
        _ if b == b',' && !opens_list(text.as_bytes(), i, name.len()) => None,
        _ if b == b',' => (value.quoted && (is_random(value.text, 12) || is_listed_secret(promised, value.text)))
            .then_some("secret-assignment"),
        _ if b == b'>' => element_text(text, i, name.len())
            .is_some_and(|inner| is_secret(promised, inner, false))
            .then_some("secret-assignment"),
        // A colon without a blank after it, as in `group:artifact`, is neither YAML nor JSON.
        _ if b == b':' && !value.quoted && text.as_bytes().get(i + 1).is_some_and(|b| !b.is_ascii_whitespace()) => {
            let value = value.text.split(':').next().unwrap_or("");
            // Matches the form `image:tag@sha256:…`.
            if value.contains("@sha") {
                return None;
            }
            let strict = match promised {
                NamePromise::Weak => false,
                NamePromise::Token => is_random(value, 16) || is_uuid(value.as_bytes()),
                _ => is_passwordish(value) && !value.contains('/'),
            };
            (strict && is_secret(promised, value, false)).then_some("secret-assignment")
        }
        _ => {
            let query = i > name.len() && matches!(text.as_bytes()[i - name.len() - 1], b'?' | b'&');
            let spelled = name.iter().any(u8::is_ascii_lowercase);
            (is_secret(promised, value.text, b == b'=' && (query || !spelled))
                || (query && promised == NamePromise::Weak && is_query_key(value.text))
                || (!value.quoted
                    && !query
                    && value.long.len() > value.text.len()
                    && (promised == NamePromise::Password && !has_brackets(value.long)
                        || promised == NamePromise::Token && is_noise(value.long.as_bytes()))
                    && is_secret(promised, value.long, false))
                || (!value.quoted && promised == NamePromise::Password && is_spaced_code(value.line.trim_end()))
                || (promised >= NamePromise::Token && scheme_credential(value.line)))
            .then_some("secret-assignment")
        }
    }
}

/// Returns true when `X` in `?key=X` looks like a secret. Such an `X` may be shorter than other values, because
/// ordinary parameters of a page rarely look random.
fn is_query_key(value: &str) -> bool {
    is_random(value, 12)
        && value.bytes().any(|b| b.is_ascii_digit())
        && !value.contains('/')
        && !is_public_token(value)
        && !is_reference(value)
        && !is_placeholder(value)
}

/// Returns true when the quoted name before the comma at byte `i` is the first item in its brackets, or is an option.
/// In a longer list, the text after a name is only the next item.
fn opens_list(bytes: &[u8], i: usize, name: usize) -> bool {
    let quote = i.saturating_sub(name + 2);
    let before = bytes[..quote].iter().rev().find(|b| **b != b' ');
    bytes.get(quote + 1) == Some(&b'-') || before.is_none_or(|b| matches!(b, b'(' | b'[' | b'{' | b'='))
}

/// Returns true for a secret in `("NAME", "value")`. The check is stricter than for an assignment, because a list of
/// names has the same form.
fn is_listed_secret(promised: NamePromise, value: &str) -> bool {
    let mix = CharMix::from_bytes(value.as_bytes());
    promised >= NamePromise::Token && (mix.digit >= 2 || mix.symbol >= 4) && is_secret(promised, value, false)
}

/// Returns the text between `<name>` and `</`, for a `>` at byte `i`.
fn element_text(text: &str, i: usize, name: usize) -> Option<&str> {
    if i <= name || !matches!(text.as_bytes()[i - name - 1], b'<' | b':') {
        return None;
    }
    let stop = ceil_boundary(text, text.len().min(i + 1 + VALUE_LIMIT));
    let rest = text.get(i + 1..stop)?;
    rest.split_once("</").map(|(inner, _)| inner)
}

/// Returns true for twelve or more plain lower-case words.
fn is_phrase(line: &str) -> bool {
    let words = line.split([' ', ',']).filter(|w| !w.is_empty());
    let good =
        words.clone().filter(|w| (3..=8).contains(&w.len()) && w.bytes().all(|b| b.is_ascii_lowercase())).count();
    good >= 12 && good == words.count() && line.split(' ').any(|w| is_wordlike(w.as_bytes()))
}

/// Returns true when `value`, the whole value of a key, is a literal secret.
pub(super) fn names_literal(promised: NamePromise, value: &str) -> bool {
    match promised {
        NamePromise::Cookie => cookie_credential(value),
        NamePromise::Phrase => is_phrase(value),
        _ => {
            is_secret(promised, value, false)
                || (promised >= NamePromise::Token && scheme_credential(value))
                || (promised == NamePromise::Token && is_chosen_password(value) && !is_placeholder(value))
        }
    }
}
