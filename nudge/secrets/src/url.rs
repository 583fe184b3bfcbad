//! Finds credentials in URLs and connection strings.

use super::classify::{is_placeholder, is_reference};
use super::command::{is_oracle_login, is_random_argument};

/// Returns true for `scheme://user:password@host` or `user:password@tcp(host)`.
pub(super) fn has_credentials(text: &str) -> bool {
    const AUTHORITY_LIMIT: usize = 240;
    const MANY: usize = 256;
    let bytes = text.as_bytes();
    let mut sign = 0;
    for (count, (start, _)) in text.match_indices("://").enumerate() {
        // Without an `@` after the scheme, there is no credential.
        if sign < start + 3 {
            let Some(next) = text[start + 3..].find('@') else {
                break;
            };
            sign = start + 3 + next;
        }
        let limit = if count < MANY { AUTHORITY_LIMIT } else { AUTHORITY_LIMIT / 4 };
        if sign > start + 3 + limit {
            continue;
        }
        let rest = &bytes[start + 3..bytes.len().min(start + 3 + limit)];
        let end = rest
            .iter()
            .position(|b| {
                b.is_ascii_whitespace()
                    || matches!(b, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | b',')
            })
            .unwrap_or(rest.len());
        let authority = rest[..end].iter().rposition(|b| *b == b'@').map(|i| &rest[..i]);
        // A password may contain `/`, `?` or `#` without encoding. So if the port seems to contain other characters
        // than digits, the function looks for a later `@`.
        let authority = authority.or_else(|| {
            let far = rest
                .iter()
                .position(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`'))
                .unwrap_or(rest.len());
            let i = rest[..far].iter().rposition(|b| *b == b'@')?;
            let colon = rest[..end].iter().position(|b| *b == b':')?;
            // The colons in `[::1]` are part of the host.
            let is_odd = !rest.starts_with(b"[") && rest[colon + 1..end].iter().any(|b| !b.is_ascii_digit());
            is_odd.then_some(&rest[..i])
        });
        if authority.and_then(|a| std::str::from_utf8(a).ok()).is_some_and(is_userinfo) {
            return true;
        }
    }
    // Matches the form `jdbc:oracle:thin:user/password@host`.
    if text.match_indices(":thin:").take(MANY).any(|(start, mark)| {
        let rest = text[start + mark.len()..].get(..AUTHORITY_LIMIT).unwrap_or(&text[start + mark.len()..]);
        is_oracle_login(rest.split_ascii_whitespace().next().unwrap_or(""))
    }) {
        return true;
    }
    let mut from = 0;
    text.match_indices("@tcp(").any(|(end, _)| {
        let head = &bytes[end.saturating_sub(120).max(from)..end];
        from = end;
        let start =
            head.iter().rposition(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`')).map_or(0, |i| i + 1);
        std::str::from_utf8(&head[start..]).is_ok_and(is_userinfo)
    })
}

/// Returns true when `user:password`, or a token alone, contains a literal credential.
fn is_userinfo(info: &str) -> bool {
    let Some((user, pass)) = info.split_once(':') else {
        return is_random_argument(info, 20);
    };
    if pass.contains(['{', '}', '[', '(']) && (pass.contains('{') && pass.contains('}'))
        || pass.starts_with(['$', '<']) && is_reference(pass)
    {
        return false;
    }
    let user_token = is_random_argument(user, 24) && !pass.contains(['$', '<', '{']);
    user_token
        || (user != pass
            && pass.len() >= 3
            && !is_reference(pass)
            && !is_placeholder(pass)
            && !pass.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
}
