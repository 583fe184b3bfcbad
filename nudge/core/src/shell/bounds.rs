//! Limits the input of the parser. The parser is recursive, stores lists as left-deep trees, and reads nested parts
//! more than once, so this module first counts everything that can nest. The count includes text in quotes, because
//! only the parser can tell where quotes end. A count that is too high only means that the line is refused.

use std::borrow::Cow;

/// The longest line that the parser gets, in bytes, without its here-documents: 8 KiB.
pub const MAX_BYTES: usize = 8 << 10;
/// The most here-documents that are cut out of a line; the parser gets the text of any others.
const MAX_DOCUMENTS: usize = 16;
/// The most openings of `( )` and `{ }`, together with the [`OPENING_WORDS`].
const MAX_OPENINGS: usize = 160;
/// The most openings that may have further openings inside.
const MAX_DEEP: usize = 16;
/// The most openings of `$( )`, `${ }`, `<( )` and backticks that may have further openings inside. Each of them
/// doubles the parser's time.
const MAX_DEEP_EXPANSIONS: usize = 6;
/// The most commands that are joined in one line. Each of them makes the tree one level deeper.
const MAX_JOINED: usize = 256;
/// The longest line with arithmetic or `[[`, in bytes. Operators nest there without brackets.
const MAX_BYTES_OF_EXPRESSIONS: usize = 512;

/// The words that begin a nested part without a bracket.
const OPENING_WORDS: [&str; 12] =
    ["if", "elif", "else", "while", "until", "for", "case", "select", "function", "coproc", "time", "!"];

/// Returns the line for the parser, without the text of here-documents; `None` when the line is beyond a limit.
pub(super) fn bound_line(line: &str) -> Option<Cow<'_, str>> {
    let line = without_documents(line);
    (line.len() <= MAX_BYTES && nests_little(&line)).then_some(line)
}

fn nests_little(line: &str) -> bool {
    let bytes = line.as_bytes();
    let mut openings = line.split_ascii_whitespace().filter(|word| OPENING_WORDS.contains(word)).count();
    let (mut deep, mut deep_expansions, mut joined) = (openings, 0, 0);
    for (index, &byte) in bytes.iter().enumerate() {
        let expands = index > 0 && matches!(bytes[index - 1], b'$' | b'<' | b'>' | b'=' | b'@' | b'?' | b'*' | b'+');
        match byte {
            b'(' | b'{' | b'`' => {
                openings += 1;
                if !is_leaf(&bytes[index + 1..], byte) {
                    deep += 1;
                    deep_expansions += usize::from(expands || byte == b'`');
                }
            }
            b';' | b'&' | b'|' | b'\n' => joined += 1,
            _ => {}
        }
    }
    let expressions = ["((", "[[", "$["].iter().any(|opening| line.contains(opening));
    openings <= MAX_OPENINGS
        && deep <= MAX_DEEP
        && deep_expansions <= MAX_DEEP_EXPANSIONS
        && joined <= MAX_JOINED
        && (!expressions || line.len() <= MAX_BYTES_OF_EXPRESSIONS)
}

/// Returns true when the text from an opening to its end has no further opening. An empty `()` is no leaf, because it
/// begins a function.
fn is_leaf(rest: &[u8], opening: u8) -> bool {
    let Some(end) = rest.iter().position(|byte| b"(){}`\"'\\#<$".contains(byte)) else { return false };
    let closes = matches!((opening, rest[end]), (b'(', b')') | (b'{', b'}') | (b'`', b'`'));
    closes && !rest[..end].trim_ascii().is_empty()
}

/// Cuts out the text of here-documents, which may be whole programs, and keeps their end lines. A here-document without
/// an end line stays.
fn without_documents(line: &str) -> Cow<'_, str> {
    if !line.contains("<<") || !line.contains('\n') {
        return line.into();
    }
    let mut out = String::new();
    let mut lines = line.split_inclusive('\n');
    let mut documents = 0;
    while let Some(text) = lines.next() {
        out.push_str(text);
        for (end, tabs) in ends_of_documents(text) {
            documents += 1;
            if documents > MAX_DOCUMENTS {
                out.extend(lines);
                return out.into();
            }
            let is_end = |line: &&str| {
                let line = line.trim_end_matches(['\n', '\r']);
                (if tabs { line.trim_start_matches('\t') } else { line }) == end
            };
            let ahead = lines.clone();
            match lines.find(is_end) {
                Some(last) => out.push_str(last),
                None => lines = ahead,
            }
        }
    }
    out.into()
}

/// Returns the words that end the here-documents of a line, and whether tabs before each word are ignored.
fn ends_of_documents(line: &str) -> Vec<(&str, bool)> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find("<<") {
        rest = &rest[start + 2..];
        if let Some(after) = rest.strip_prefix('<') {
            rest = after;
            continue;
        }
        let (tabs, word) = rest.strip_prefix('-').map_or((false, rest), |word| (true, word));
        let word = word.trim_start_matches([' ', '\t', '\\', '\'', '"']);
        let end = word.find(|c: char| !c.is_alphanumeric() && !"_-.".contains(c)).unwrap_or(word.len());
        if end > 0 && out.len() < MAX_DOCUMENTS {
            out.push((&word[..end], tabs));
        }
    }
    out
}
