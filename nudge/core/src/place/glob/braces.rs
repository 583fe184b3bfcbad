//! Expands braces and returns the alternatives of a pattern one by one. It stores no alternative, so a pattern takes
//! only the memory of its text, even with many alternatives.

use smallvec::SmallVec;

use super::matching::class_end;
use crate::steps::{StepBudget, TooMany};

/// The alternatives of a pattern whose brackets and braces passed [`check_pairs`].
pub(super) struct BraceAlternatives<'a> {
    pattern: &'a str,
    /// The current alternative, as far as it is built.
    text: String,
    /// The braces that lead to the current alternative, in the order of their beginnings.
    forks: SmallVec<[BraceFork; 4]>,
    begun: bool,
}

/// A pair of braces of which one part is chosen.
struct BraceFork {
    /// The index of the fork around this one, if there is one.
    around: Option<usize>,
    /// The length of the text before the chosen part.
    before: usize,
    /// The start of the next part, if there is one.
    next: Option<usize>,
    /// The position after the `}`; 0 until it is known.
    end: usize,
}

impl<'a> BraceAlternatives<'a> {
    pub fn new(pattern: &'a str) -> Self {
        Self { pattern, text: String::with_capacity(pattern.len()), forks: SmallVec::new(), begun: false }
    }

    /// Returns the next alternative. The beginning that it shares with the previous alternative is not read again.
    pub fn next(&mut self, steps: &mut StepBudget) -> Result<Option<&str>, TooMany> {
        let Some((mut position, mut inside)) = self.resume() else { return Ok(None) };
        while let Some(first) = self.pattern.as_bytes().get(position) {
            let rest = &self.pattern[position..];
            let copied = match (first, inside) {
                (b'[', _) => class_end(rest).unwrap_or(1),
                (b'{', _) => {
                    let range = range_end(rest);
                    if range.is_none() {
                        self.forks.push(BraceFork { around: inside, before: self.text.len(), next: None, end: 0 });
                        inside = Some(self.forks.len() - 1);
                        position += 1;
                    }
                    range.unwrap_or(0)
                }
                (b',', Some(fork)) => {
                    let fork = &mut self.forks[fork];
                    if fork.end == 0 {
                        let length = find_closing(rest);
                        steps.take_steps(length)?;
                        fork.end = position + length;
                    }
                    fork.next = Some(position + 1);
                    (position, inside) = (fork.end, fork.around);
                    0
                }
                (b'}', Some(fork)) => {
                    let fork = &mut self.forks[fork];
                    (fork.next, fork.end) = (None, position + 1);
                    (position, inside) = (position + 1, fork.around);
                    0
                }
                // A comma outside of braces is an ordinary character.
                _ => {
                    let special = |byte: &u8| matches!(byte, b'[' | b'{' | b',' | b'}');
                    rest.bytes().skip(1).position(|byte| special(&byte)).map_or(rest.len(), |found| 1 + found)
                }
            };
            steps.take_steps(2 + copied / 8)?;
            self.text.push_str(&rest[..copied]);
            position += copied;
        }
        Ok(Some(&self.text))
    }

    /// Goes back to the last braces that have another part. Returns the position of that part, and the index of the
    /// braces around it.
    fn resume(&mut self) -> Option<(usize, Option<usize>)> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some((0, None));
        }
        loop {
            let fork = self.forks.last()?;
            if let Some(next) = fork.next {
                self.text.truncate(fork.before);
                return Some((next, Some(self.forks.len() - 1)));
            }
            self.forks.pop();
        }
    }
}

/// Returns the number of bytes of `text` up to and including the `}` that closes the braces around it.
fn find_closing(text: &str) -> usize {
    let (mut depth, mut position) = (1, 0);
    while let Some(found) = text[position..].find(['[', '{', '}']) {
        position += found;
        match text.as_bytes()[position] {
            b'[' => position += class_end(&text[position..]).unwrap_or(1) - 1,
            b'{' => depth += 1,
            _ => depth -= 1,
        }
        position += 1;
        if depth == 0 {
            break;
        }
    }
    position
}

/// Returns the length of a range at the start of `text`, such as `{1..3}`, `{a..e}` or `{1..9..2}`. Shells expand
/// ranges; here they are literal text.
fn range_end(text: &str) -> Option<usize> {
    let body = text.strip_prefix('{')?;
    let end = body
        .find(|c: char| !c.is_alphanumeric() && c != '-' && c != '.')
        .filter(|&end| body[end..].starts_with('}'))?;
    let parts: SmallVec<[_; 4]> = body[..end].split("..").collect();
    let is_range = (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty() && !part.contains('.'));
    is_range.then_some(end + 2)
}

/// Checks that every bracket and brace is closed.
pub(super) fn check_pairs(pattern: &str) -> Result<(), &'static str> {
    let (mut depth, mut position) = (0_usize, 0);
    while let Some(found) = pattern[position..].find(['[', ']', '{', '}']) {
        position += found;
        match pattern.as_bytes()[position] {
            b'[' => position += class_end(&pattern[position..]).ok_or("has a `[` without its `]`")? - 1,
            b']' => return Err("has a `]` without its `[`"),
            b'{' => depth += 1,
            _ => depth = depth.checked_sub(1).ok_or("has a `}` without its `{`")?,
        }
        position += 1;
    }
    if depth == 0 { Ok(()) } else { Err("has a `{` without its `}`") }
}
