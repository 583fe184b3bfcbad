//! Finds terms that are similar to a word that no text holds.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use nudge_core::words::{is_cjk, split_words};
use rusqlite::Connection;

use super::{FullText, TextIndexCache};

/// Numbers of letters from which a word may have one or two wrong letters. Shorter words are similar to too many
/// others.
const MIN_ONE_WRONG: usize = 4;
const MIN_TWO_WRONG: usize = 6;
/// Largest number of terms that replace one word. The nearest terms are chosen.
const MAX_NEAR: usize = 4;
/// Largest number of clauses that replace a word of a script without spaces.
const MAX_CLAUSES: usize = 64;
/// Largest number of words of a question that are replaced, because each word is compared with many terms.
const MAX_UNKNOWN: usize = 8;

/// A part of a word. Each part is compared with the terms separately.
struct WordPart {
    /// The index of the word that has this part.
    word: usize,
    folded: String,
    /// The byte offset of each letter in `folded`.
    starts: Vec<usize>,
    /// The stem of the part. For a misspelt word it may be wrong.
    stem: Box<str>,
    /// The letters of the part and of its stem, as a set of bits.
    letters: u32,
    /// The number of letters that may be wrong.
    wrong: usize,
}

/// A term of the index, with facts that are quick to compare.
#[derive(Debug)]
pub(super) struct SpeltTerm {
    term: Box<str>,
    chars: usize,
    letters: u32,
}

/// Reads the terms that begin with the letter `first`.
pub(super) fn read_terms(c: &Connection, vocabulary: &str, first: char) -> rusqlite::Result<Vec<SpeltTerm>> {
    let sql = format!("SELECT term FROM {vocabulary} WHERE term >= ?1 AND term < ?2");
    // The last character of Unicode is no letter, so no term begins with it.
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

/// Reads the terms of scripts without spaces. For such a script, FTS5 treats the text between two punctuation marks as
/// one word, so each term is a clause.
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

/// Returns true when all characters of a word belong to a script without spaces.
pub(super) fn is_part_of_clauses(word: &str) -> bool {
    word.chars().all(is_cjk)
}

/// Returns the clauses that contain the word.
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

/// Returns the near terms of each word, nearest first; words after the eighth get none. It compares a word only with
/// terms that begin with the first or second letter of the word. Comparing all terms takes ten times as long.
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
        // If two terms are equally near, the longer one comes first, because it has more correct letters.
        terms.sort_by(|a, b| (a.0, Reverse(a.1.len()), &a.1).cmp(&(b.0, Reverse(b.1.len()), &b.1)));
        terms.dedup();
        terms.truncate(MAX_NEAR);
        terms.into_iter().map(|(_, term)| term).collect()
    });
    Ok(nearest.collect())
}

/// Returns the parts of a word that consist of letters only and are long enough for a wrong letter.
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

/// Returns how many letters may be wrong in a word with this many letters.
fn may_be_wrong(letters: usize) -> usize {
    match letters {
        MIN_TWO_WRONG.. => 2,
        MIN_ONE_WRONG.. => 1,
        _ => 0,
    }
}

/// Returns the letters of a word as a set of bits. Comparing two sets quickly shows that two words are too different.
fn letter_bits(word: &str) -> u32 {
    word.bytes().fold(0, |letters, byte| letters | 1 << (byte % 32))
}

impl WordPart {
    /// Returns how many letters of the word are wrong if it means this term; `None` if too many are wrong. Terms are
    /// stems, so the function also compares the stem and the beginning of the word.
    fn wrong_letters(&self, spelt: &SpeltTerm) -> Option<usize> {
        let SpeltTerm { ref term, chars, letters } = *spelt;
        // Each letter that only the term has is a wrong one. A letter has up to four bytes, each with its own bit.
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
