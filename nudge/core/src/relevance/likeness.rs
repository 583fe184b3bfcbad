//! Finds similar words: words with one or two wrong letters, and words of which one begins with the other.

use super::StemEntry;
use crate::words::TextWord;

/// The weight of a match by the beginning of a word.
const BEGIN: f64 = 0.6;
/// The weight of a match with one wrong letter.
const ONE_WRONG: f64 = 0.85;
/// The weight of a match with one wrong letter in a word of five letters.
const ONE_WRONG_OF_FIVE: f64 = 0.65;
/// The weight of a match with two wrong letters.
const TWO_WRONG: f64 = 0.65;
/// The fewest letters of a word that can match with one wrong letter.
const MIN_ONE_WRONG: usize = 5;
/// The fewest letters of a word that can match with two wrong letters.
const MIN_TWO_WRONG: usize = 8;
/// The fewest letters of a word that can match by its beginning.
const MIN_BEGIN: usize = 5;

/// The first bytes of a stem; `None` for a shorter stem.
pub(super) type Head = Option<[u8; MIN_BEGIN]>;

pub(super) fn head_of_stem(stem: &str) -> Head {
    stem.as_bytes().first_chunk().copied()
}

/// The set of letters in a word, one bit for each letter. A comparison of two sets rules out most unlike words at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LetterSet(u32);

impl LetterSet {
    pub(super) fn from_word(word: &str) -> Self {
        Self(word.bytes().fold(0, |letters, byte| letters | 1 << (byte % 32)))
    }

    /// Returns the least number of wrong letters that two words with these sets can have.
    fn least_wrong(self, other: Self) -> u32 {
        (self.0 & !other.0).count_ones().max((other.0 & !self.0).count_ones())
    }
}

/// A searched word, prepared for the comparison with the words of an index.
pub(super) struct WordLikeness<'a> {
    word: &'a TextWord,
    head: Head,
    letters: LetterSet,
    /// The number of letters that may be wrong.
    wrong: usize,
    chars: usize,
}

impl<'a> WordLikeness<'a> {
    pub(super) fn new(word: &'a TextWord) -> Self {
        let chars = word.folded.chars().count();
        let is_spelt = word.folded.chars().all(char::is_alphabetic);
        let wrong = match chars {
            _ if !is_spelt => 0,
            MIN_TWO_WRONG.. => 2,
            MIN_ONE_WRONG.. => 1,
            _ => 0,
        };
        Self { word, head: head_of_stem(&word.stem), letters: LetterSet::from_word(&word.folded), wrong, chars }
    }

    /// Returns the weight of the searched word in a text with this stem; `None` when the words are not similar.
    pub(super) fn find_share(&self, entry: &StemEntry) -> Option<f64> {
        let begins = |long: &str, short: &str| long.starts_with(short);
        let begin = self.head.is_some()
            && self.head == entry.head
            && (begins(&self.word.stem, &entry.stem) || begins(&entry.stem, &self.word.stem));
        let typos = entry.forms.iter().filter_map(|(form, letters)| self.find_typo_share(form, *letters));
        typos.fold(begin.then_some(BEGIN), max_share)
    }

    fn find_typo_share(&self, form: &str, letters: LetterSet) -> Option<f64> {
        // The least number of wrong letters is correct only for ASCII, because other letters have several bytes.
        if self.wrong == 0 || form.is_ascii() && self.letters.least_wrong(letters) as usize > self.wrong {
            return None;
        }
        if form.len().abs_diff(self.word.folded.len()) > 2 * self.wrong || !form.chars().all(char::is_alphabetic) {
            return None;
        }
        match strsim::osa_distance(&self.word.folded, form) {
            1 if self.chars > MIN_ONE_WRONG => Some(ONE_WRONG),
            1 => Some(ONE_WRONG_OF_FIVE),
            2 if self.wrong == 2 => Some(TWO_WRONG),
            _ => None,
        }
    }
}

pub(super) fn max_share(best: Option<f64>, share: f64) -> Option<f64> {
    Some(best.map_or(share, |best| best.max(share))).filter(|share| *share > 0.0)
}
