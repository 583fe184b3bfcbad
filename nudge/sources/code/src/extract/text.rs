//! Texts as they are kept: on one line, of bounded size.

const SIGNATURE_MAX: usize = 300;
const DOC_MAX: usize = 2_000;

/// A declaration on one line.
pub(crate) fn signature(text: &str) -> String {
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
    cut(out, SIGNATURE_MAX)
}

/// A documentation, its lines kept.
pub(crate) fn doc(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).take(DOC_MAX).collect();
    Some(cut(text, DOC_MAX))
}

fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max - '…'.len_utf8()));
        text.push('…');
    }
    text
}
