//! Finds the lines of a text that contain secrets. A result has whole lines, because a rule reads more of a line than
//! its match.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::SecretGuard;

/// Neighbouring lines of a text that look like a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpan {
    /// The byte range of the lines, without the line end of the last one.
    pub range: Range<usize>,
    /// The rule that matched.
    pub rule: &'static str,
}

/// Largest number of searches for secrets that only several lines together show. After that, all of the remaining text
/// is marked.
const ROUNDS: usize = 32;
/// Smallest length of a part of a credential that is broken over lines, and smallest length of the whole, in bytes.
const PART: usize = 8;
const BROKEN: usize = 20;

impl SecretGuard {
    /// Returns the lines for which [`check`](Self::check) refuses a text, in order and without overlaps. The text
    /// without these lines passes. If only several lines together show a secret, all these lines are one span. If a
    /// refused text has no such lines, the whole text is one span.
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

    /// Marks a credential that was broken over two lines: the end of one line and the beginning of the next form one
    /// word.
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

    /// Marks further lines while the text without the marked lines still matches a rule.
    fn mark_together(self, text: &str, lines: &[Range<usize>], marks: &mut Marks) {
        for _ in 0..ROUNDS {
            let Some(rule) = self.check(None, &join_unmarked(text, lines, marks, 0..lines.len())) else { return };
            let hits = |part: Range<usize>| self.check(None, &join_unmarked(text, lines, marks, part)).is_some();
            let end = first_true(1..=lines.len(), |end| hits(0..end));
            // Finds the last line at which a part that matches can begin.
            let start = first_true(1..=end, |start| !hits(start..end)) - 1;
            let before = marks.len();
            // A rule may depend on the length of the text. If the smaller part does not match, all lines are marked.
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

/// The indexes of the marked lines, each with the rule that matched.
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

/// Returns the lines of a part as one text, in which every marked line is empty.
fn join_unmarked(text: &str, lines: &[Range<usize>], marks: &Marks, part: Range<usize>) -> String {
    let shown = |index: usize| if marks.contains_key(&index) { "" } else { &text[lines[index].clone()] };
    part.map(shown).collect::<Vec<_>>().join("\n")
}

/// Returns the first number for which `is` is true, by binary search. `is` must be false up to some number and true
/// from there on. It must be true for the last number.
fn first_true(range: RangeInclusive<usize>, is: impl Fn(usize) -> bool) -> usize {
    let (mut first, mut last) = range.into_inner();
    while first < last {
        let middle = first + (last - first) / 2;
        if is(middle) { last = middle } else { first = middle + 1 }
    }
    first
}

/// Marks each private key from its first line to its last, or to the first line that cannot be part of a key.
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

/// Marks the other lines of a broken credential: meaningless single words directly before or after a marked line.
fn mark_around(text: &str, lines: &[Range<usize>], marks: &mut Marks) {
    let known: Vec<_> = marks.iter().map(|(index, rule)| (*index, *rule)).collect();
    let is_more = |index: &usize| lines.get(*index).is_some_and(|line| is_wrapped(text[line.clone()].trim()));
    for (index, rule) in known {
        mark_lines(marks, (index + 1..lines.len()).take_while(is_more), rule);
        mark_lines(marks, (0..index).rev().take_while(is_more), rule);
    }
}

/// Returns true when the line is one long word of base64 or hex that has a digit.
fn is_wrapped(line: &str) -> bool {
    line.len() >= 16 && line.bytes().all(is_token) && line.bytes().any(|byte| byte.is_ascii_digit())
}

const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'.')
}

/// Returns the last word of a line if it can be the beginning of a credential; otherwise `None`.
fn end_word(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let line = line.strip_suffix('\\').unwrap_or(line);
    let start = line.bytes().rposition(|byte| !is_token(byte)).map_or(0, |i| i + 1);
    line.get(start..).filter(|word| !word.is_empty())
}

/// Returns the line if it is a single word that can be the rest of a credential; otherwise `None`.
fn find_single_word(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.trim_end_matches(['"', '\'', ',', ';', '`']);
    (!line.is_empty() && line.bytes().all(is_token)).then_some(line)
}

/// Turns the marked lines into spans. Neighbouring lines with the same rule are one span.
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

    /// Returns the text without its spans. The test fails if the guard still refuses the result.
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
