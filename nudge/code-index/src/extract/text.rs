//! Normalises texts for the facts, and limits their size.

use std::borrow::Cow;

const SIGNATURE_MAX: usize = 300;
const DOC_MAX: usize = 2_000;
/// Largest number of bytes of a documentation that are read.
const DOC_READ_MAX: usize = 64 * 1024;
/// Largest number of bytes of the words from comments and messages in one body.
const PROSE_MAX: usize = 400;
/// Largest number of bytes of one comment or message that are read.
pub(crate) const PROSE_READ_MAX: usize = 4 * 1024;
/// The lengths of the words that are taken from comments and messages.
const PROSE_WORD: std::ops::RangeInclusive<usize> = 3..=24;

/// Writes a declaration on one line.
pub(crate) fn clean_signature(text: &str) -> String {
    let text = text.trim_end().trim_end_matches(['{', ':']).trim_end();
    let text = text.strip_suffix("=>").or_else(|| text.strip_suffix('=')).unwrap_or(text).trim_end();
    let mut out = String::with_capacity(text.len().min(SIGNATURE_MAX));
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > SIGNATURE_MAX {
            break;
        }
    }
    out.retain(|c| !c.is_control());
    if out.len() > SIGNATURE_MAX { truncate_text(&out, SIGNATURE_MAX) } else { out }
}

/// Trims a documentation and keeps its lines; `None` if it is empty.
pub(crate) fn clean_doc(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(text.chars().filter(|c| *c == '\n' || !c.is_control()).take(DOC_READ_MAX).collect())
}

/// Returns the beginning of a documentation that the facts store.
pub(crate) fn truncate_doc(doc: &str) -> Cow<'_, str> {
    if doc.len() <= DOC_MAX { Cow::Borrowed(doc) } else { Cow::Owned(truncate_text(doc, DOC_MAX)) }
}

/// Adds the words of a comment or a string to `prose`, each once, in lower case. A text without a space is a key or a
/// value and no prose. A word with digits may be a part of a credential, so it is left out.
pub(crate) fn add_prose(text: &str, prose: &mut String) {
    let has_letters = |word: &&str| word.chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '_' | '\''));
    let tokens = text.split_ascii_whitespace().map(|token| token.trim_matches(|c: char| !c.is_alphanumeric()));
    if !text.trim().contains(char::is_whitespace) {
        return;
    }
    for word in tokens.filter(has_letters).flat_map(|token| token.split(['-', '_', '\''])) {
        let word = word.to_lowercase();
        if !PROSE_WORD.contains(&word.len()) || prose.split(' ').any(|known| known == word) {
            continue;
        }
        if prose.len() + 1 + word.len() > PROSE_MAX {
            return;
        }
        if !prose.is_empty() {
            prose.push(' ');
        }
        prose.push_str(&word);
    }
}

/// Cuts a text to `max` bytes, with `…` at the end.
fn truncate_text(text: &str, max: usize) -> String {
    let end = text.floor_char_boundary(max - '…'.len_utf8());
    format!("{}…", &text[..end])
}
