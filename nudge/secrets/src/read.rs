//! Reads the name before a separator and the value after it.

use super::classify::is_word_byte;

/// The most bytes of a name that are read.
const NAME_LIMIT: usize = 96;

/// Checks if byte `i` separates a name from a value; returns the end of the name's side.
pub(super) fn find_separator(bytes: &[u8], i: usize, b: u8) -> Option<usize> {
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
            // In `${NAME:-…}` the colon begins a default.
            let default = matches!(next, b'-' | b'?' | b'+' | b'=') && in_braces(&bytes[..i]);
            (!default
                && next != b':'
                && previous != b':'
                && next != b'='
                && !(next == b'/' && bytes.get(i + 2) == Some(&b'/')))
            .then_some(i)
        }
        // XML text has the form `<name>value<`.
        b'>' => (is_word_byte(&previous) && !matches!(next, b'=' | b'>' | b' ')).then_some(i),
        // The form is `define("NAME", "value")`.
        b',' => (matches!(previous, b'"' | b'\'') && matches!(next, b' ' | b'"' | b'\'')).then_some(i),
        _ => None,
    }
}

/// Returns true when `head` ends in `${NAME`.
fn in_braces(head: &[u8]) -> bool {
    let name = head.iter().rev().take(64).take_while(|b| is_word_byte(b)).count();
    head[..head.len() - name].ends_with(b"${")
}

/// Returns the name that ends just before `end`, apart from blanks, quotes and brackets.
pub(super) fn name_before(text: &str, end: usize) -> Option<&str> {
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
    // A type may come between name and value: `api_key: str = "X"`, `let api_key: &str = "X"`.
    if matches!(&bytes[start..end], b"str" | b"String" | b"string") {
        let typed = bytes[..start].strip_suffix(b"&").unwrap_or(&bytes[..start]);
        if let Some(name) = typed.strip_suffix(b": ").or_else(|| typed.strip_suffix(b":")) {
            return name_before(text, name.len());
        }
    }
    // "API key: …" has a name of two words; the first word qualifies the second.
    if start > 1 && bytes[start - 1] == b' ' && length <= 12 && bytes[start - 2].is_ascii_alphabetic() {
        let word =
            bytes[start.saturating_sub(20)..start - 1].iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
        start -= word + 1;
    }
    text.get(start..end)
}

/// A value and the way it was written.
pub(super) struct WrittenValue<'a> {
    /// The text up to the closing quote, or to the first delimiter.
    pub text: &'a str,
    /// For a value without quotes, the text up to the next blank, when that is longer.
    pub long: &'a str,
    /// The text up to the end of the line or to the closing quote, for headers.
    pub line: &'a str,
    pub quoted: bool,
}

/// Reads the value that starts at or after `from`.
pub(super) fn value_after(text: &str, from: usize, separator: u8, limit: usize) -> WrittenValue<'_> {
    let bytes = text.as_bytes();
    let stop = ceil_boundary(text, bytes.len().min(from + limit));
    let mut position = from;
    if separator == b'=' && bytes.get(position) == Some(&b'>') {
        position += 1;
    }
    while position < stop && matches!(bytes[position], b' ' | b'\t' | b'(') && position < from + 24 {
        position += 1;
    }
    // A YAML block scalar has `|` or `>` and a new line before its value.
    if separator == b':' && position < stop && matches!(bytes[position], b'|' | b'>') {
        let skip = bytes[position..stop]
            .iter()
            .take_while(|b| matches!(b, b'|' | b'>' | b'-' | b'+' | b' ' | b'\n' | b'\r'))
            .count();
        position += skip;
    }
    let open = bytes[position..stop].iter().take(3).take_while(|b| matches!(b, b'"' | b'\'' | b'`' | b'\\')).count();
    let start = position + open;
    let quote = if open > 0 { bytes[start - 1] } else { 0 };
    let rest = &bytes[start.min(stop)..stop];
    let slice = |length: usize| text.get(start..start + length).unwrap_or("");
    if quote != 0 && quote != b'\\' {
        let length = rest.iter().position(|b| *b == quote || matches!(b, b'\n' | b'\r')).unwrap_or(rest.len());
        let closed = slice(length).trim_end_matches('\\');
        return WrittenValue { text: closed, long: closed, line: closed, quoted: true };
    }
    let (mut short, mut long) = (None, None);
    let mut line = rest.len();
    for (i, b) in rest.iter().enumerate() {
        match ENDS[usize::from(*b)] {
            0 => {}
            1 => short = short.or(Some(i)),
            2 => long = long.or(Some(i)),
            _ => {
                line = i;
                break;
            }
        }
    }
    let long = long.unwrap_or(line);
    WrittenValue { text: slice(short.unwrap_or(long).min(long)), long: slice(long), line: slice(line), quoted: false }
}

/// The bytes that end an unquoted value: 1 ends only `text`, 2 also ends `long`, 3 also ends `line`.
const ENDS: [u8; 256] = {
    let mut table = [0; 256];
    let ends = *b",;&|)]}<>\\ \t\n\r\"'`";
    let mut i = 0;
    while i < ends.len() {
        table[ends[i] as usize] = match ends[i] {
            b' ' | b'\t' => 2,
            b'\n' | b'\r' | b'"' | b'\'' | b'`' => 3,
            _ => 1,
        };
        i += 1;
    }
    table
};

pub(super) fn ceil_boundary(text: &str, mut index: usize) -> usize {
    while index < text.len() && !text.is_char_boundary(index) {
        index += 1;
    }
    index.min(text.len())
}
