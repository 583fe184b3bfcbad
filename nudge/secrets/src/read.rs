//! Reads the name before a separator and the value after it.

use super::classify::is_word_byte;

/// Largest number of bytes that are read of a name.
const NAME_LIMIT: usize = 96;

/// Checks if the byte `b` at `i` separates a name from a value. Returns the offset at which the name ends.
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
            // In `${NAME:-…}`, the colon begins a default value.
            let default = matches!(next, b'-' | b'?' | b'+' | b'=') && in_braces(&bytes[..i]);
            (!default
                && next != b':'
                && previous != b':'
                && next != b'='
                && !(next == b'/' && bytes.get(i + 2) == Some(&b'/')))
            .then_some(i)
        }
        // Accepts XML text in the form `<name>value<`.
        b'>' => (is_word_byte(&previous) && !matches!(next, b'=' | b'>' | b' ')).then_some(i),
        // Accepts the form `define("NAME", "value")`.
        b',' => (matches!(previous, b'"' | b'\'') && matches!(next, b' ' | b'"' | b'\'')).then_some(i),
        _ => None,
    }
}

/// Returns true when the bytes end with `${NAME`.
fn in_braces(head: &[u8]) -> bool {
    let name = head.iter().rev().take(64).take_while(|b| is_word_byte(b)).count();
    head[..head.len() - name].ends_with(b"${")
}

/// Returns the name that ends before `end`. Blanks, quotes and brackets may follow the name.
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
    // Skips a type between name and value, as in `api_key: str = "X"` and `let api_key: &str = "X"`.
    if matches!(&bytes[start..end], b"str" | b"String" | b"string") {
        let typed = bytes[..start].strip_suffix(b"&").unwrap_or(&bytes[..start]);
        if let Some(name) = typed.strip_suffix(b": ").or_else(|| typed.strip_suffix(b":")) {
            return name_before(text, name.len());
        }
    }
    // In "API key: …", the name has two words, and the first one qualifies the second.
    if start > 1 && bytes[start - 1] == b' ' && length <= 12 && bytes[start - 2].is_ascii_alphabetic() {
        let word =
            bytes[start.saturating_sub(20)..start - 1].iter().rev().take_while(|b| b.is_ascii_alphanumeric()).count();
        start -= word + 1;
    }
    text.get(start..end)
}

/// A value, and how it is written.
pub(super) struct WrittenValue<'a> {
    /// The value up to the closing quote, or up to the first delimiter.
    pub text: &'a str,
    /// The value up to the next blank, if it has no quotes; it may be longer than `text`.
    pub long: &'a str,
    /// The value up to the closing quote or the end of the line. Headers need this form.
    pub line: &'a str,
    pub quoted: bool,
}

/// Reads the value that begins at `from` or after blanks there.
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
    // In a YAML block scalar, `|` or `>` and a line break come before the value.
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

/// The bytes that end a value without quotes. A byte with 1 ends only `text`, with 2 also `long`, and with 3 also
/// `line`.
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
