//! Terms that are much like a word that no text holds.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use nudge_core::words::{is_cjk, split_words};
use rusqlite::Connection;

use super::{FullText, TextIndexCache};

/// Letters of a word from which one or two may be wrong. Shorter words are like too many others.
const MIN_ONE_WRONG: usize = 4;
const MIN_TWO_WRONG: usize = 6;
/// Most terms that stand for one word, the nearest ones.
const MAX_NEAR: usize = 4;
/// Most clauses that stand for two characters of a script without spaces.
const MAX_CLAUSES: usize = 64;
/// Most words that are looked for so: each is compared with many terms.
const MAX_UNKNOWN: usize = 8;

/// A part of a word, which is compared by itself.
struct WordPart {
    /// The number of its word.
    word: usize,
    folded: String,
    /// The offset of each of its letters.
    starts: Vec<usize>,
    /// The stem, as far as a misspelt word has one.
    stem: Box<str>,
    /// The letters that it has.
    letters: u32,
    /// Letters that may be wrong.
    wrong: usize,
}

/// A term, and its facts to compare first.
#[derive(Debug)]
pub(super) struct SpeltTerm {
    term: Box<str>,
    chars: usize,
    letters: u32,
}

/// The terms that begin with a letter.
pub(super) fn read_terms(c: &Connection, vocabulary: &str, first: char) -> rusqlite::Result<Vec<SpeltTerm>> {
    let sql = format!("SELECT term FROM {vocabulary} WHERE term >= ?1 AND term < ?2");
    // The last character is no letter, so that no term begins with it.
    let Some(next) = (first..=char::MAX).nth(1) else { return Ok(Vec::new()) };
    let mut statement = c.prepare_cached(&sql)?;
    let mut rows = statement.query([first.to_string(), next.to_string()])?;
    let mut terms = Vec::new();
    while let Some(row) = rows.next()? {
        let term = row.get_ref(0)?.as_str()?;
        terms.push(SpeltTerm { term: term.into(), chars: term.chars().count(), letters: letter_bits(term) });
    }
    Ok(terms)
}

/// Returns the terms of scripts without spaces. FTS5 takes the text between two signs for one word, so each is a
/// clause.
pub(super) fn read_clauses(c: &Connection, vocabulary: &str) -> rusqlite::Result<Vec<Box<str>>> {
    let mut statement = c.prepare_cached(&format!("SELECT term FROM {vocabulary}"))?;
    let mut rows = statement.query([])?;
    let mut clauses = Vec::new();
    while let Some(row) = rows.next()? {
        let term = row.get_ref(0)?.as_str()?;
        if !term.is_ascii() && term.chars().any(is_cjk) {
            clauses.push(term.into());
        }
    }
    Ok(clauses)
}

/// Returns true when a word is of a script without spaces.
pub(super) fn is_part_of_clauses(word: &str) -> bool {
    word.chars().all(is_cjk)
}

/// The clauses that hold a word.
pub(super) fn find_holding(
    c: &Connection,
    full_text: &FullText,
    known: &TextIndexCache,
    word: &str,
) -> rusqlite::Result<Vec<String>> {
    let clauses = known.find_clauses(c, full_text)?;
    let holding = clauses.iter().filter(|clause| clause.contains(word)).take(MAX_CLAUSES);
    Ok(holding.map(ToString::to_string).collect())
}

/// Returns for each word the terms near to it, nearest first; for those beyond the first eight, none. The first letter
/// of a word is right, or has changed places with the second: to go through all terms takes ten times as long.
pub(super) fn find_near(
    c: &Connection,
    full_text: &FullText,
    known: &TextIndexCache,
    unknown: &[&str],
) -> rusqlite::Result<Vec<Vec<String>>> {
    let mut near: Vec<Vec<(usize, String)>> = vec![Vec::new(); unknown.len()];
    let parts: Vec<_> =
        unknown.iter().take(MAX_UNKNOWN).enumerate().flat_map(|(index, word)| split_parts(index, word)).collect();
    let firsts: BTreeSet<char> = parts.iter().flat_map(|part| part.folded.chars().take(2)).collect();
    for first in firsts {
        let parts: Vec<_> = parts.iter().filter(|part| part.folded.chars().take(2).any(|c| c == first)).collect();
        for spelt in &*known.find_terms(c, full_text, first)? {
            for part in &parts {
                if let Some(wrong) = part.wrong_letters(spelt) {
                    near[part.word].push((wrong, spelt.term.to_string()));
                }
            }
        }
    }
    let nearest = near.into_iter().map(|mut terms| {
        // The longer of two that are equally near has more letters right.
        terms.sort_by(|a, b| (a.0, Reverse(a.1.len()), &a.1).cmp(&(b.0, Reverse(b.1.len()), &b.1)));
        terms.dedup();
        terms.truncate(MAX_NEAR);
        terms.into_iter().map(|(_, term)| term).collect()
    });
    Ok(nearest.collect())
}

/// The parts of a word that are spelt, and so can be misspelt.
fn split_parts(word: usize, text: &str) -> impl Iterator<Item = WordPart> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| part.chars().all(char::is_alphabetic));
    parts.filter_map(move |part| {
        let folded = part.to_lowercase();
        let starts: Vec<_> = folded.char_indices().map(|(start, _)| start).collect();
        let wrong = may_be_wrong(starts.len());
        if wrong == 0 {
            return None;
        }
        let stem = split_words(&folded).into_iter().next().map(|word| word.stem).unwrap_or_default();
        let letters = letter_bits(&folded) | letter_bits(&stem);
        Some(WordPart { word, folded, starts, stem, letters, wrong })
    })
}

/// How many letters may be wrong of so many.
fn may_be_wrong(letters: usize) -> usize {
    match letters {
        MIN_TWO_WRONG.. => 2,
        MIN_ONE_WRONG.. => 1,
        _ => 0,
    }
}

/// Returns the bytes that a word has, one bit each, so that most unlike words are passed over at once.
fn letter_bits(word: &str) -> u32 {
    word.bytes().fold(0, |letters, byte| letters | 1 << (byte % 32))
}

impl WordPart {
    /// How many letters are wrong, if few are. Terms are stems, so endings do not count.
    fn wrong_letters(&self, spelt: &SpeltTerm) -> Option<usize> {
        let SpeltTerm { ref term, chars, letters } = *spelt;
        // Each letter too many is a wrong one, and has four bytes at most.
        let too_many = (letters & !self.letters).count_ones() as usize;
        if chars < MIN_ONE_WRONG - 1 || too_many > self.wrong * if term.is_ascii() { 1 } else { 4 } {
            return None;
        }
        let count_wrong = |word: &str, its_chars: usize, most: usize| {
            let close = its_chars.abs_diff(chars) <= most;
            close.then(|| strsim::osa_distance(word, term)).filter(|wrong| *wrong <= most)
        };
        let stem_chars = self.stem.chars().count();
        let begin = self.starts.get(chars).filter(|_| chars * 3 >= self.starts.len() * 2);
        let ways = [
            count_wrong(&self.folded, self.starts.len(), self.wrong),
            count_wrong(&self.stem, stem_chars, may_be_wrong(stem_chars)),
            begin.and_then(|end| count_wrong(&self.folded[..*end], chars, 1)),
        ];
        ways.into_iter().flatten().min()
    }
}
