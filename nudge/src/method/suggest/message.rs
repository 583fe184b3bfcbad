//! Finds fixes that repeat the text of an error (semantics section 10).

use std::collections::HashSet;

use foldhash::fast::RandomState;
use nudge_core::words::{TextWord, WordWeight, split_words};

use crate::hint::Hint;

/// The number of consecutive words that a text must share with an error to count as repeating it.
const ROW: usize = 3;
/// The number of lines that are read at the end of an error.
const LINES: usize = 12;

/// The words of an error, in groups of three consecutive words.
#[derive(Default)]
pub(super) struct ErrorWords(HashSet<[Box<str>; ROW], RandomState>);

impl ErrorWords {
    pub(super) fn of_error(error: &str) -> Self {
        let lines: Vec<_> = error.lines().filter(|line| !line.trim().is_empty()).collect();
        Self(lines.iter().rev().take(LINES).flat_map(|line| iter_triples(line)).collect())
    }

    /// Returns true for a fix whose value or reason repeats the error.
    pub(super) fn is_repeated_by(&self, fix: &Hint) -> bool {
        self.is_repeated_in(fix.text()) || fix.reason().is_some_and(|why| self.is_repeated_in(why))
    }

    /// Returns true for a text that shares three consecutive words with the error. At least one of the words must carry
    /// meaning: `psycopg2 or psycopg` counts, but `no such file` does not.
    fn is_repeated_in(&self, text: &str) -> bool {
        !self.0.is_empty() && iter_triples(text).any(|row| self.0.contains(&row))
    }

    /// Returns true for a fix that quotes an error other than this one.
    pub(super) fn is_not_of(&self, fix: &Hint) -> bool {
        let prose = Some(fix.text()).filter(|_| !fix.value().is_command());
        prose.into_iter().chain(fix.reason()).any(has_quotes) && !self.is_repeated_by(fix)
    }
}

/// Returns true for a text that quotes at least three words of a program's output. Backticks do not count, because
/// people put them around commands.
fn has_quotes(text: &str) -> bool {
    ['"', '\''].iter().any(|quote| find_quoted(text, *quote).any(|quoted| split_words(quoted).len() >= ROW))
}

/// Finds the texts in one kind of quotation marks. A mark between letters is an apostrophe.
fn find_quoted(text: &str, quote: char) -> impl Iterator<Item = &str> {
    let stands_in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut from = None;
    text.match_indices(quote).filter_map(move |(start, _)| {
        let after = start + quote.len_utf8();
        match from {
            None if !stands_in_word(text[..start].chars().next_back()) => {
                from = Some(after);
                None
            }
            Some(begin) if !stands_in_word(text[after..].chars().next()) => {
                from = None;
                text.get(begin..start)
            }
            _ => None,
        }
    })
}

/// Returns the groups of three consecutive words of a text in which at least one word carries meaning.
fn iter_triples(text: &str) -> impl Iterator<Item = [Box<str>; ROW]> {
    let words = split_words(text);
    let rows: Vec<_> = words
        .windows(ROW)
        .filter(|row| row.iter().any(|word| word.weight() == WordWeight::Full))
        .map(make_triple)
        .collect();
    rows.into_iter()
}

fn make_triple(words: &[TextWord]) -> [Box<str>; ROW] {
    std::array::from_fn(|index| words[index].folded.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_quotes_a_message() {
        for (text, quotes_one) in [
            ("fix: 'Error loading psycopg2': uv sync", true),
            ("fix: \"Could not find profile named 'x'\": export Y", true),
            ("the machine's own is 21, and it's not what Loom can read", false),
            ("'no' and 'yes' are both fine", false),
            ("Can't locate ... in @INC: all of Perl's modules are in local/", false),
            ("say `just dev and wait`", false),
            ("it's 'never closed, and that is all", false),
        ] {
            assert_eq!(has_quotes(text), quotes_one, "{text}");
        }
    }

    #[test]
    fn what_repeats_a_message() {
        let error = "Exit code 1\ndjango.core.ImproperlyConfigured: Error loading psycopg2 or psycopg module\n";
        for (text, repeats) in [
            ("fix: 'Error loading psycopg2 or psycopg module': uv sync --extra postgres", true),
            ("loading Psycopg2 or something", true),
            ("psycopg needs the extra postgres", false),
            ("exit code 1 means nothing", false),
            ("", false),
        ] {
            assert_eq!(ErrorWords::of_error(error).is_repeated_in(text), repeats, "{text}");
        }
        assert!(!ErrorWords::of_error("x.c:1: No such file or directory").is_repeated_in("no such file or directory"));
        assert!(!ErrorWords::of_error("").is_repeated_in("a b c"));
    }
}
