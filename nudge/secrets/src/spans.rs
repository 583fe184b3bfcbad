//! Finds the lines with secrets in a text. A result consists of whole lines, because a rule reads more of a line than
//! its match.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::SecretGuard;

/// Lines of a text that look like a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpan {
    /// The bytes of the lines, without the line end after the last.
    pub range: Range<usize>,
    /// The rule that matched.
    pub rule: &'static str,
}

/// The most searches for secrets that only several lines together show; after that the rest of the text is marked as a
/// whole.
const ROUNDS: usize = 32;
/// The shortest part of a credential that is broken over lines, and the shortest such credential, in bytes.
const PART: usize = 8;
const BROKEN: usize = 20;

impl SecretGuard {
    /// Returns the lines for which [`check`](Self::check) refuses a text, in order and without overlaps. The text
    /// without them passes. A secret that only several lines together show is a span of all these lines. A text that is
    /// refused for no particular lines is one span.
    #[must_use]
    pub fn find_spans(&self, text: &str) -> Vec<SecretSpan> {
        let lines = split_lines(text);
        let mut marks = Marks::new();
        for (index, line) in lines.iter().enumerate() {
            if let Some(rule) = self.check(None, &text[line.clone()]) {
                marks.insert(index, rule);
            }
        }
        mark_keys(text, &lines, &mut marks);
        self.mark_broken(text, &lines, &mut marks);
        mark_around(text, &lines, &mut marks);
        self.mark_together(text, &lines, &mut marks);
        join_marked(&lines, &marks)
    }

    /// Marks a credential that was wrapped: the end of one line and the beginning of the next form one word.
    fn mark_broken(self, text: &str, lines: &[Range<usize>], marks: &mut Marks) {
        for index in 1..lines.len() {
            let (Some(first), Some(second)) =
                (end_word(&text[lines[index - 1].clone()]), find_single_word(&text[lines[index].clone()]))
            else {
                continue;
            };
            let is_part = |part: &str| part.len() >= PART;
            if is_part(first) && is_part(second) && first.len() + second.len() >= BROKEN {
                let whole = [first, second].concat();
                if let Some(rule) = self.check(None, &whole) {
                    marks.entry(index - 1).or_insert(rule);
                    marks.entry(index).or_insert(rule);
                }
            }
        }
    }

    /// Marks the lines that still match after all marked lines are removed.
    fn mark_together(self, text: &str, lines: &[Range<usize>], marks: &mut Marks) {
        for _ in 0..ROUNDS {
            let Some(rule) = self.check(None, &join_unmarked(text, lines, marks, 0..lines.len())) else { return };
            let hits = |part: Range<usize>| self.check(None, &join_unmarked(text, lines, marks, part)).is_some();
            let end = first_true(1..=lines.len(), |end| hits(0..end));
            // The last line at which a matching part can begin.
            let start = first_true(1..=end, |start| !hits(start..end)) - 1;
            let before = marks.len();
            // A rule may depend on the length of the text, so the smaller part need not match.
            let part = if hits(start..end) { start..end } else { 0..lines.len() };
            mark_lines(marks, part, rule);
            if marks.len() == before {
                break;
            }
        }
        if let Some(rule) = self.check(None, &join_unmarked(text, lines, marks, 0..lines.len())) {
            mark_lines(marks, 0..lines.len(), rule);
        }
    }
}

/// The numbers of the marked lines, each with its rule.
type Marks = BTreeMap<usize, &'static str>;

fn mark_lines(marks: &mut Marks, lines: impl IntoIterator<Item = usize>, rule: &'static str) {
    for index in lines {
        marks.entry(index).or_insert(rule);
    }
}

fn split_lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|line| {
            let range = start..start + line.trim_end_matches(['\n', '\r']).len();
            start += line.len();
            range
        })
        .collect()
}

/// Returns the lines of a part, with every marked line empty.
fn join_unmarked(text: &str, lines: &[Range<usize>], marks: &Marks, part: Range<usize>) -> String {
    let shown = |index: usize| if marks.contains_key(&index) { "" } else { &text[lines[index].clone()] };
    part.map(shown).collect::<Vec<_>>().join("\n")
}

/// Returns the first number for which `is` is true. It must be false up to some number and true from there on; for the
/// last number it is known to be true.
fn first_true(range: RangeInclusive<usize>, is: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut last) = range.into_inner();
    while first < last {
        let middle = first + (last - first) / 2;
        if is(middle) { last = middle } else { first = middle + 1 }
    }
    first
}

/// Marks private keys from their first line to their last, or to the first line that cannot be a part of a key.
fn mark_keys(text: &str, lines: &[Range<usize>], marks: &mut Marks) {
    let mut is_inside = false;
    for (index, line) in lines.iter().enumerate() {
        let line = &text[line.clone()];
        is_inside |= line.contains("-----BEGIN ") && line.contains("PRIVATE KEY");
        if is_inside {
            marks.insert(index, "private-key");
            let is_last = line.contains("-----END ");
            let is_prose = line.split_whitespace().count() > 6;
            is_inside = !is_last && !is_prose;
        }
    }
}

/// Marks the further lines of a wrapped credential: single words without a meaning right before or after a marked line.
fn mark_around(text: &str, lines: &[Range<usize>], marks: &mut Marks) {
    let known: Vec<_> = marks.iter().map(|(index, rule)| (*index, *rule)).collect();
    let is_more = |index: &usize| lines.get(*index).is_some_and(|line| is_wrapped(text[line.clone()].trim()));
    for (index, rule) in known {
        mark_lines(marks, (index + 1..lines.len()).take_while(is_more), rule);
        mark_lines(marks, (0..index).rev().take_while(is_more), rule);
    }
}

/// Returns true when a line is one long word of base64 or hex with a digit.
fn is_wrapped(line: &str) -> bool {
    line.len() >= 16 && line.bytes().all(is_token) && line.bytes().any(|byte| byte.is_ascii_digit())
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'.')
}

/// Returns the last word of a line, if it can be the beginning of a credential.
fn end_word(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let line = line.strip_suffix('\\').unwrap_or(line);
    let start = line.bytes().rposition(|byte| !is_token(byte)).map_or(0, |i| i + 1);
    line.get(start..).filter(|word| !word.is_empty())
}

/// Returns the line if it is a single word that can be the rest of a credential.
fn find_single_word(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.trim_end_matches(['"', '\'', ',', ';', '`']);
    (!line.is_empty() && line.bytes().all(is_token)).then_some(line)
}

/// Makes spans of the marked lines; neighbouring lines with the same rule form one span.
fn join_marked(lines: &[Range<usize>], marks: &Marks) -> Vec<SecretSpan> {
    let mut spans: Vec<(usize, SecretSpan)> = Vec::new();
    for (index, rule) in marks {
        let line = &lines[*index];
        match spans.last_mut() {
            Some((last, span)) if *last + 1 == *index && span.rule == *rule => {
                span.range.end = line.end;
                *last = *index;
            }
            _ => spans.push((*index, SecretSpan { range: line.clone(), rule })),
        }
    }
    spans.into_iter().map(|(_, span)| span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> String {
        ["ghp", "_", "q7Zk2Vx9Lw4Tn8Rb3Yc6Md1Hf5Js0PgAeUoK"].concat()
    }

    /// Returns the text without its spans, and checks that it passes.
    fn without(text: &str) -> String {
        let guard = SecretGuard::new();
        let mut out = String::new();
        let mut position = 0;
        for span in guard.find_spans(text) {
            assert!(span.range.start >= position, "in order");
            out += &text[position..span.range.start];
            out += "[line withheld]";
            position = span.range.end;
        }
        out += &text[position..];
        assert_eq!(guard.check(None, &out), None, "{out}");
        out
    }

    #[test]
    fn harmless_text_has_none() {
        for text in ["", "\n", "cargo test -p search\nall passed\n", "a\r\nb"] {
            assert_eq!(SecretGuard::new().find_spans(text), []);
        }
    }

    #[test]
    fn a_line_goes_and_its_neighbours_stay() {
        let text = format!("first\nexport TOKEN={}\r\nlast\n", token());
        assert_eq!(without(&text), "first\n[line withheld]\r\nlast\n");
        assert_eq!(SecretGuard::new().find_spans(&text)[0].range.start, 6);
    }

    #[test]
    fn a_key_goes_from_its_first_line_to_its_last() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
        let (begin, end) =
            (["-----BEGIN RSA PRIV", "ATE KEY-----"].concat(), ["-----END RSA PRIV", "ATE KEY-----"].concat());
        let text = format!("see\n{begin}\n{body}\n{body}\nabc=\n{end}\nthen go on with the usual work\n");
        assert_eq!(without(&text), "see\n[line withheld]\nthen go on with the usual work\n");
        let open = format!("see\n{begin}\n{body}\n{body}\n");
        assert!(!without(&open).contains("MII"), "one that was cut off");
    }

    #[test]
    fn a_wrapper_goes_whole() {
        let token = token();
        for cut in [8, 14, 20, 26] {
            let (first, second) = token.split_at(cut);
            let text = format!("the token is\n{first}\n{second}\nand no more\n");
            let left = without(&text);
            assert!(!left.contains(second) && left.contains("and no more"), "{left}");
        }
        let password = ["pass", "word"].concat();
        let text = format!("{password}:\n  Xk29-fLm3pQ7\nok\n");
        let left = without(&text);
        assert!(left.ends_with("ok\n"), "{left}");
    }

    #[test]
    fn many_secrets_and_odd_texts_end() {
        let many = format!("a line\n{}\n", token()).repeat(200);
        assert_eq!(without(&many).matches("withheld").count(), 200);
        let long = "a ".repeat(30_000) + &token();
        assert_eq!(SecretGuard::new().find_spans(&long).len(), 1);
    }

    #[test]
    fn the_first_yes_is_found() {
        for limit in 1..9 {
            assert_eq!(first_true(1..=8, |index| index >= limit), limit, "{limit}");
        }
        assert_eq!(first_true(1..=1, |_| false), 1);
    }
}
