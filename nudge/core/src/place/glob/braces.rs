//! Braces: the alternatives of a pattern, one after the other. None of them is stored, so that a pattern takes the
//! memory of its text, however many it stands for.

use smallvec::SmallVec;

use super::matching::class_end;
use crate::steps::{StepBudget, TooMany};

/// The alternatives of a pattern with [`check_pairs`] brackets and braces.
pub(super) struct BraceAlternatives<'a> {
    pattern: &'a str,
    /// The alternative so far.
    text: String,
    /// The braces on the way to it, in the order of their beginnings.
    forks: SmallVec<[BraceFork; 4]>,
    begun: bool,
}

/// Braces of which one part is in the alternative.
struct BraceFork {
    /// The braces around these, as an index.
    around: Option<usize>,
    /// Length of the alternative before the part.
    before: usize,
    /// The start of the next part, if there is one.
    next: Option<usize>,
    /// The position past the `}`; 0 until it is known.
    end: usize,
}

impl<'a> BraceAlternatives<'a> {
    pub fn new(pattern: &'a str) -> Self {
        Self { pattern, text: String::with_capacity(pattern.len()), forks: SmallVec::new(), begun: false }
    }

    /// Returns the next alternative. The start that it shares with the one before is not read again.
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
                // Outside of braces a comma is a character as any other.
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

    /// Goes back to the last braces that have a further part: returns where that begins, and the braces.
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

/// Returns the length up to and with the `}` of the braces that `text` is in.
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

/// Returns the length of a range at the start of `text`, such as `{1..3}`, `{a..e}` or `{1..9..2}`: other tools expand
/// these, here they are literal.
fn range_end(text: &str) -> Option<usize> {
    let body = text.strip_prefix('{')?;
    let end = body
        .find(|c: char| !c.is_alphanumeric() && c != '-' && c != '.')
        .filter(|&end| body[end..].starts_with('}'))?;
    let parts: SmallVec<[_; 4]> = body[..end].split("..").collect();
    let is_range = (2..=3).contains(&parts.len()) && parts.iter().all(|part| !part.is_empty() && !part.contains('.'));
    is_range.then_some(end + 2)
}

/// Checks that every bracket and brace has its partner.
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
