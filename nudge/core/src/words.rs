//! Relevance of words: which of a prompt's words say something, and whether a text has one of them.

use std::collections::HashSet;

/// The words of a prompt that say something, ready to be looked for in thousands of texts.
///
/// ```
/// use nudge_core::words::Words;
///
/// let words = Words::of("Please run the API-tests");
/// assert_eq!(words.first_in("make api").as_deref(), Some("api"));
/// assert_eq!(words.first_in("please and the"), None);
/// ```
#[derive(Default)]
pub struct Words {
    words: HashSet<String>,
    /// A Bloom filter with one hash: a word of a text is copied and looked up only when its bit is set.
    marks: [u64; MARKS / 64],
}

const MARKS: usize = 1024;
/// Shortest word that is looked for.
const MIN_BYTES: usize = 3;

impl Words {
    /// The words of a prompt that have three letters at least, and are not too common in English.
    pub fn of(prompt: &str) -> Self {
        Self::new(all(prompt).filter(|word| !COMMON.contains(&word.as_str())).collect())
    }

    /// The words of a question that somebody asks on purpose: common ones count where there are no others.
    pub fn of_query(query: &str) -> Self {
        let words = Self::of(query);
        if words.words.is_empty() { Self::new(all(query).collect()) } else { words }
    }

    fn new(words: HashSet<String>) -> Self {
        let mut marks = [0; MARKS / 64];
        for word in &words {
            let mark = mark(word.as_bytes());
            marks[mark / 64] |= 1 << (mark % 64);
        }
        Self { words, marks }
    }

    /// Returns false when the word is surely none of these.
    #[inline]
    fn may_have(&self, word: &[u8]) -> bool {
        let mark = mark(word);
        self.marks[mark / 64] & 1 << (mark % 64) != 0
    }

    /// The first word of `text` that is one of these, in lower case.
    // It runs for every text of every hint, in another crate.
    #[inline]
    pub fn first_in(&self, text: &str) -> Option<String> {
        if self.words.is_empty() {
            return None;
        }
        let known = |word: &str| Some(word.to_lowercase()).filter(|word| self.words.contains(word));
        if !text.is_ascii() {
            return words(text).find_map(known);
        }
        // Nearly every text of every hint comes by here.
        let mut words = text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
        words.find_map(|word| {
            if word.len() < MIN_BYTES || !self.may_have(word) {
                return None;
            }
            str::from_utf8(word).ok().and_then(known)
        })
    }
}

/// Every word with three letters at least, in lower case.
fn all(text: &str) -> impl Iterator<Item = String> {
    let letters = |word: &String| word.chars().filter(|c| c.is_alphabetic()).count();
    words(text).map(str::to_lowercase).filter(move |word| letters(word) >= 3)
}

/// The number of a word's bit, which is the same in upper and in lower case.
#[inline]
fn mark(word: &[u8]) -> usize {
    let folded = |at: usize| word.get(at).map_or(0, |byte| usize::from(byte | 0x20));
    (folded(0) + 31 * folded(1) + 7 * folded(2) + word.len()) % MARKS
}

/// The runs of letters and digits that have three bytes at least.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= MIN_BYTES)
}

/// English words too common to say anything about a prompt.
const COMMON: &[&str] = &[
    "about", "add", "after", "again", "all", "also", "and", "any", "are", "back", "because", "been", "before", "being",
    "but", "can", "change", "could", "did", "does", "doing", "done", "down", "each", "even", "every", "few", "first",
    "for", "from", "get", "give", "had", "has", "have", "having", "help", "her", "here", "him", "his", "how", "into",
    "its", "just", "know", "let", "like", "look", "made", "make", "many", "may", "more", "most", "much", "must",
    "need", "new", "not", "now", "off", "one", "only", "other", "our", "out", "over", "own", "please", "put", "same",
    "see", "set", "she", "should", "show", "some", "such", "take", "tell", "than", "thank", "thanks", "that", "the",
    "their", "them", "then", "there", "these", "they", "thing", "things", "think", "this", "those", "through", "too",
    "two", "under", "until", "use", "used", "using", "very", "want", "was", "way", "well", "were", "what", "when",
    "where", "which", "while", "who", "why", "will", "with", "without", "work", "would", "yes", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_prompt() {
        let prompt = Words::of("Please run the API-tests of StraßE 42abc, İstanbul, x1y2 and the a1b2c3");
        let found = |text: &str| prompt.first_in(text);
        for (text, word) in [
            ("docker run x", "run"),
            ("RUN", "run"),
            ("the:api", "api"),
            ("42ABC", "42abc"),
            ("STRASSE straße", "straße"),
            ("A1B2C3", "a1b2c3"),
            ("(İSTANBUL)", "i\u{307}stanbul"),
        ] {
            assert_eq!(found(text).as_deref(), Some(word), "{text}");
        }
        for text in ["", "the please and", "runs", "apis test", "x1y2", "42"] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
