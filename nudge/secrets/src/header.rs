//! Finds credentials in headers and cookies.

use super::classify::{is_passwordish, is_placeholder, is_random, is_reference, is_uuid, wordy_share};
use super::names::{NamePromise, judge_name};
use super::verdict::{decoded_pair, is_basic_pair, is_secret, is_token_like};

/// Returns true for the value of a header that contains a credential: `Bearer X`, `Basic X`, `token X`, or the
/// credential alone.
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

/// Returns true for a secret among the parameters of a header, such as `Key name="…", token="…"`.
fn parameter_credential(rest: &str) -> bool {
    rest.split([',', ' ', ';'])
        .filter_map(|part| part.split_once('='))
        .any(|(_, value)| is_random(value.trim_matches(['"', '\'']), 20))
}

/// Returns true when the credential of a header is a literal, and not a reference, a placeholder or a plain word.
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

/// Returns true when the value of an ordinary assignment begins with a scheme, as in `x-api-key: Bearer X`.
pub(super) fn scheme_credential(line: &str) -> bool {
    let Some((scheme, rest)) = line.trim().split_once(' ') else {
        return false;
    };
    ["bearer", "basic", "token", "bot", "apikey"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        && literal_credential(rest.split_ascii_whitespace().next().unwrap_or(""))
}

/// Returns true when one of the pairs in `session=…; other=…` has a random-looking value.
pub(super) fn cookie_credential(line: &str) -> bool {
    line.split([';', ' ']).filter_map(|pair| pair.split_once('=')).any(|(name, value)| {
        let value = value.trim_matches(['"', '\'']);
        !is_reference(value)
            && !is_placeholder(value)
            && (is_random(value, 14)
                || is_uuid(value.as_bytes()) && judge_name(name.as_bytes()) > NamePromise::None
                || is_secret(judge_name(name.as_bytes()), value, false))
    })
}
