//! Normalises texts for the facts, and limits their size.

use std::borrow::Cow;

const SIGNATURE_MAX: usize = 300;
const DOC_MAX: usize = 2_000;
/// Largest number of bytes of a documentation that are read.
const DOC_READ_MAX: usize = 64 * 1024;

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

/// Cuts a text to `max` bytes, with `…` at the end.
fn truncate_text(text: &str, max: usize) -> String {
    let end = text.floor_char_boundary(max - '…'.len_utf8());
    format!("{}…", &text[..end])
}
