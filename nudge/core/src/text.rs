//! Makes foreign text fit for one line of a screen or a prompt.

use std::fmt::Write as _;

use crate::clock::Millis;

/// Makes control, bidi and zero-width characters visible, so that a stored value cannot control a terminal or hide from
/// its reader. The selectors and joiners of an emoji stay, because they change how it is drawn.
///
/// ```
/// assert_eq!(nudge_core::text::make_visible("a\u{1b}[31m\u{202e}b"), "a\\u{1b}[31m\\u{202e}b");
/// assert_eq!(nudge_core::text::make_visible("❤\u{fe0f}"), "❤\u{fe0f}");
/// ```
pub fn make_visible(text: &str) -> String {
    if !text.chars().any(is_hidden) {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    for (place, c) in chars.iter().enumerate() {
        if is_hidden(*c) && !is_of_emoji(&chars, place) {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(*c);
        }
    }
    out
}

/// Works like [`make_visible`], but keeps line breaks and tabs.
pub fn visible_lines(text: &str) -> String {
    text.split_inclusive(['\n', '\t']).fold(String::new(), |mut out, part| {
        let kept = part.len() - usize::from(part.ends_with(['\n', '\t']));
        out.push_str(&make_visible(&part[..kept]));
        out.push_str(&part[kept..]);
        out
    })
}

/// Writes bytes as hexadecimal digits.
///
/// ```
/// assert_eq!(nudge_core::text::to_hex(&[0x0f, 0xa0]), "0fa0");
/// ```
pub fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| DIGITS[usize::from(digit)]));
    text
}

/// Returns true for control characters, for line and paragraph separators, and for all characters that Unicode lets a
/// terminal show as nothing (`Default_Ignorable_Code_Point`): a text could hide in them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns true when a line may contain a file's name: the name has no hidden characters. The selectors and joiners of
/// an emoji are allowed, and joiners between letters of a script that uses them.
///
/// ```
/// use nudge_core::text::is_tellable_name;
///
/// assert!(is_tellable_name("I ❤\u{fe0f} notes.md") && is_tellable_name("👩\u{200d}👧.md"));
/// assert!(!is_tellable_name("a\u{200d}b.md") && !is_tellable_name("x\u{202e}dm.exe"));
/// ```
pub fn is_tellable_name(name: &str) -> bool {
    let chars: Vec<char> = name.chars().collect();
    let has_letters = |place: usize| {
        let is_letter = |c: Option<&char>| c.is_some_and(|c| !c.is_ascii() && c.is_alphanumeric() || is_mark(*c));
        is_letter(place.checked_sub(1).and_then(|before| chars.get(before))) && is_letter(chars.get(place + 1))
    };
    (0..chars.len()).all(|place| match chars[place] {
        '\u{200c}' | '\u{200d}' if has_letters(place) => true,
        c => !is_hidden(c) || is_of_emoji(&chars, place),
    })
}

/// Returns true for a character of the scripts of India and nearby. Unicode does not count their vowel signs and
/// viramas as letters.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{d7f}')
}

/// Returns true when the hidden character at index `place` is a part of an emoji: one selector after its sign, or one
/// joiner between two signs. Returns false for further selectors or joiners, because a text could hide in them.
fn is_of_emoji(chars: &[char], place: usize) -> bool {
    let sign = |place: Option<usize>| place.and_then(|place| chars.get(place)).copied();
    let is_emoji = |c: Option<char>| c.is_some_and(is_emoji);
    let (before, after) = (sign(place.checked_sub(1)), sign(Some(place + 1)));
    match chars[place] {
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_keycap = before.is_some_and(|c| c.is_ascii_digit() || matches!(c, '#' | '*'));
            is_emoji(before) || is_keycap && after == Some('\u{20e3}')
        }
        '\u{200d}' => {
            let drawn = if before == Some('\u{fe0f}') { sign(place.checked_sub(2)) } else { before };
            is_emoji(drawn) && is_emoji(after)
        }
        _ => false,
    }
}

/// Returns true for a character of the Unicode blocks that have emoji.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}'..='\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
        && !is_hidden(c)
}

/// Returns a copy in which `escape` replaces every character for which `hidden` is true.
pub fn escape_hidden(text: &str, hidden: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if hidden(c) {
            escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns the text as one line of visible characters, at most `max_chars`; line breaks become `⏎`.
///
/// ```
/// assert_eq!(nudge_core::text::one_line("make\n  all", 80), "make ⏎   all");
/// assert_eq!(nudge_core::text::one_line("abcdef", 3), "abc…");
/// ```
pub fn one_line(text: &str, max_chars: usize) -> String {
    let folded = text.split('\n').map(str::trim_end).collect::<Vec<_>>().join(" ⏎ ");
    clip_text(&make_visible(&folded), max_chars)
}

/// Returns the first `max_chars` characters, with `…` in place of the rest.
pub fn clip_text(text: &str, max_chars: usize) -> String {
    let mut out = text.to_owned();
    if let Some((end, _)) = out.char_indices().nth(max_chars) {
        out.truncate(end);
        out.push('…');
    }
    out
}

/// Returns the text before the first of `marks`, or the whole text if there is none.
///
/// ```
/// use nudge_core::text::before_mark;
///
/// assert_eq!(["host:80/a?b", "host"].map(|text| before_mark(text, &['/', '?'])), ["host:80", "host"]);
/// ```
pub fn before_mark<'a>(text: &'a str, marks: &[char]) -> &'a str {
    text.find(marks).map_or(text, |end| &text[..end])
}

/// Returns the text after the last of `marks`, such as the name in a path, or the whole text if there is none.
///
/// ```
/// use nudge_core::text::after_mark;
///
/// assert_eq!(["a/b.rs", "b.rs", "a/"].map(|text| after_mark(text, &['/'])), ["b.rs", "b.rs", ""]);
/// ```
pub fn after_mark<'a>(text: &'a str, marks: &[char]) -> &'a str {
    text.rsplit_once(marks).map_or(text, |(_, rest)| rest)
}

/// Returns the first line without its line break. The result is empty when the text is empty or begins with a line
/// break.
pub fn first_line(text: &str) -> &str {
    let line = before_mark(text, &['\n']);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Returns the time since `then`, for people: `just now`, `5m ago`, `3h ago`, `2d ago`.
pub fn format_ago(then: Millis, now: Millis) -> String {
    let minutes = now.saturating_sub(then).max(0) / 60_000;
    match minutes {
        0 => "just now".into(),
        1..=59 => format!("{minutes}m ago"),
        60..=2_879 => format!("{}h ago", minutes / 60),
        _ => format!("{}d ago", minutes / 1_440),
    }
}

/// Returns the time since `then` as a short text, for models: `now`, `5m`, `3h`, `2d`.
pub fn format_age(then: Millis, now: Millis) -> String {
    let ago = format_ago(then, now);
    ago.strip_suffix(" ago").map_or_else(|| "now".into(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_as_nothing_is_shown() {
        // Each pair is the first and the last character of a hidden range; their neighbours are letters or signs.
        for (first, last) in [
            (0x00, 0x1f),
            (0x7f, 0x9f),
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x206f),
            (0x3164, 0x3164),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfffb),
            (0x1_bca0, 0x1_bca3),
            (0x1_d173, 0x1_d17a),
            (0xe_0000, 0xe_0fff),
        ] {
            let hidden = |code: u32| char::from_u32(code).is_some_and(is_hidden);
            assert!((first..=last).all(hidden), "{first:x} to {last:x}");
            assert!(first == 0 || !hidden(first - 1), "before {first:x}");
            assert!(!hidden(last + 1), "after {last:x}");
        }
        assert_eq!(make_visible("rm\u{115f} -r\u{fe0f}\u{e0100}"), "rm\\u{115f} -r\\u{fe0f}\\u{e0100}");
    }

    #[test]
    fn selectors_and_joiners_are_told_where_they_draw_an_emoji_or_a_letter_and_nowhere_else() {
        for name in ["❤\u{fe0f}", "⚙\u{fe0f} x", "👩\u{200d}👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥", "1\u{fe0f}\u{20e3}"]
        {
            assert!(is_tellable_name(name) && make_visible(name) == name, "{name:?}");
        }
        for name in ["می\u{200c}خواهم", "क्\u{200d}ष"] {
            assert!(is_tellable_name(name), "{name:?}");
        }
        for name in [
            "a\u{fe0f}",
            "❤\u{fe0f}\u{fe0f}",
            "❤\u{fe0f}\u{fe0e}",
            "👩\u{200d}",
            "👩\u{200d}\u{200d}👧",
            "a\u{200d}b",
            "\u{200c}م",
            "\u{fe0f}",
            "1\u{fe0f}",
            "🏴\u{e0067}",
            "م\u{202e}م",
        ] {
            assert!(!is_tellable_name(name) && make_visible(name) != name, "{name:?}");
        }
    }
}
