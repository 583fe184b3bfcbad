//! Terms that are much like a word that no text holds.

use std::cmp::Reverse;

use nudge_core::words::words;
use rusqlite::Connection;

/// Letters of a word from which one or two may be wrong. Shorter words are like too many others.
const MIN_ONE_WRONG: usize = 4;
const MIN_TWO_WRONG: usize = 6;
/// Most terms that stand for one word, the nearest ones.
const MAX_NEAR: usize = 4;
/// Most words that are looked for so: each is compared with every term.
const MAX_UNKNOWN: usize = 8;

/// A part of a word, which is compared by itself.
struct Part {
    /// Whose it is.
    word: usize,
    folded: String,
    /// Where each of its letters begins.
    starts: Vec<usize>,
    /// What its forms have in common, as far as one can tell of a misspelt word.
    stem: Box<str>,
    /// Letters that may be wrong.
    wrong: usize,
}

/// Returns for each word the terms near to it, nearest first; for those beyond the first eight, none.
pub(super) fn near(c: &Connection, vocabulary: &str, unknown: &[&str]) -> rusqlite::Result<Vec<Vec<String>>> {
    let mut near: Vec<Vec<(usize, String)>> = vec![Vec::new(); unknown.len()];
    let parts: Vec<_> = unknown.iter().take(MAX_UNKNOWN).enumerate().flat_map(|(at, word)| parts(at, word)).collect();
    if !parts.is_empty() {
        let mut statement = c.prepare_cached(&format!("SELECT term FROM {vocabulary}"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let term = row.get_ref(0)?.as_str()?;
            let letters = term.chars().count();
            for part in &parts {
                if let Some(wrong) = part.wrong_letters(term, letters) {
                    near[part.word].push((wrong, term.to_owned()));
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
fn parts(word: usize, text: &str) -> impl Iterator<Item = Part> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| part.chars().all(char::is_alphabetic));
    parts.filter_map(move |part| {
        let folded = part.to_lowercase();
        let starts: Vec<_> = folded.char_indices().map(|(at, _)| at).collect();
        let wrong = match starts.len() {
            MIN_TWO_WRONG.. => 2,
            MIN_ONE_WRONG.. => 1,
            _ => return None,
        };
        let stem = words(&folded).into_iter().next().map(|word| word.stem).unwrap_or_default();
        Some(Part { word, folded, starts, stem, wrong })
    })
}

impl Part {
    /// How many letters are wrong, if few are. Terms are stems, so endings do not count.
    fn wrong_letters(&self, term: &str, letters: usize) -> Option<usize> {
        if letters < MIN_ONE_WRONG - 1 {
            return None;
        }
        let of = |word: &str, its_letters: usize, most: usize| {
            let close = its_letters.abs_diff(letters) <= most;
            close.then(|| strsim::osa_distance(word, term)).filter(|wrong| *wrong <= most)
        };
        let begin = self.starts.get(letters).filter(|_| letters * 3 >= self.starts.len() * 2);
        let ways = [
            of(&self.folded, self.starts.len(), self.wrong),
            of(&self.stem, self.stem.chars().count(), self.wrong),
            begin.and_then(|end| of(&self.folded[..*end], letters, 1)),
        ];
        ways.into_iter().flatten().min()
    }
}
