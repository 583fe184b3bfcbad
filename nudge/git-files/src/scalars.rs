//! Reads git's booleans and numbers.

/// Reads a boolean as git does. `None` for a value at which git fails.
pub(super) fn parse_boolean(value: Option<&[u8]>) -> Option<bool> {
    let Some(value) = value else {
        return Some(true);
    };
    let is = |word: &&[u8]| value.eq_ignore_ascii_case(word);
    if [&b"true"[..], b"yes", b"on"].iter().any(is) {
        return Some(true);
    }
    if [&b""[..], b"false", b"no", b"off"].iter().any(is) {
        return Some(false);
    }
    parse_number(value).map(|n| n != 0)
}

/// Reads a plain decimal number with git's units `k`, `m` and `g`. `None` for octal, hexadecimal and padded forms,
/// which only git reads.
pub(super) fn parse_number(value: &[u8]) -> Option<i64> {
    let text = str::from_utf8(value).ok()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        unit if unit.eq_ignore_ascii_case("k") => 1 << 10,
        unit if unit.eq_ignore_ascii_case("m") => 1 << 20,
        unit if unit.eq_ignore_ascii_case("g") => 1 << 30,
        _ => return None,
    };
    let bare = digits.strip_prefix('-').unwrap_or(digits);
    if bare.starts_with('+') || (bare.len() > 1 && bare.starts_with('0')) {
        return None;
    }
    let product = digits.parse::<i64>().ok()?.checked_mul(factor)?;
    i32::try_from(product).ok().map(i64::from)
}

#[cfg(test)]
mod tests {
    use super::{parse_boolean, parse_number};

    #[test]
    fn scalars() {
        assert_eq!(parse_boolean(None), Some(true));
        assert_eq!(parse_boolean(Some(b"")), Some(false));
        assert_eq!(parse_boolean(Some(b"YES")), Some(true));
        assert_eq!(parse_boolean(Some(b"0")), Some(false));
        assert_eq!(parse_boolean(Some(b"2")), Some(true));
        assert_eq!(parse_boolean(Some(b"maybe")), None);
        assert_eq!(parse_number(b"1k"), Some(1024));
        assert_eq!(parse_number(b"-1"), Some(-1));
        for bad in [&b"010"[..], b"", b"k", b"1x", b"+1", b"-", b"99999999999999999999", b"3g"] {
            assert_eq!(parse_number(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
