//! Selects the words of a question that carry meaning.

use std::collections::HashSet;

use nudge_core::words::{WordWeight, is_cjk, split_words};

/// Largest number of words of a question that are used. From a longer question the first and the last words are kept,
/// because they show what the user wants.
pub(super) const MAX_WORDS: usize = 32;
/// Length limit of a word, in bytes. A longer word is a hash or no word at all.
const MAX_WORD_BYTES: usize = 100;

/// The words of a question, each once, without function words such as "the".
///
/// A name stays whole: `client_max_body_size` and `foo.rs` are one word each. Chinese, Japanese and Korean write no
/// spaces, so each pair of neighbouring characters is a word.
///
/// ```
/// use nudge_storage::search::QuestionWords;
///
/// let words = QuestionWords::from_text("Why does tokio::spawn panic in foo.rs? (E0502) AND \"NOT near\"*");
/// assert_eq!(words.iter().collect::<Vec<_>>(), ["tokio", "spawn", "panic", "foo.rs", "E0502", "near"]);
/// assert!(QuestionWords::from_text("what is this about?").is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuestionWords {
    words: Vec<String>,
    /// The words as the text writes them between spaces. Their trigrams are searched.
    pieces: Vec<String>,
    /// True for a question that a caller asks on purpose.
    is_query: bool,
}

impl QuestionWords {
    /// Takes the words of a text that an agent receives. The result is empty if the text has only function words.
    pub fn from_text(text: &str) -> Self {
        Self::new(text, WordWeight::Little)
    }

    /// Takes the words of a query that a caller typed. If the query has only function words, the function takes these.
    ///
    /// ```
    /// use nudge_storage::search::QuestionWords;
    ///
    /// assert_eq!(QuestionWords::of_query("how to").iter().collect::<Vec<_>>(), ["how", "to"]);
    /// ```
    pub fn of_query(text: &str) -> Self {
        let words = Self::from_text(text);
        let words = if words.is_empty() { Self::new(text, WordWeight::Nothing) } else { words };
        Self { is_query: true, ..words }
    }

    fn new(text: &str, least: WordWeight) -> Self {
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let pieces = text.split(|c| !is_inside(c)).map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()));
        let (mut known, mut found) = (HashSet::new(), Self::default());
        for piece in pieces.filter(|piece| !piece.is_empty() && piece.len() <= MAX_WORD_BYTES) {
            let parts = split_words(piece);
            // Different forms of a word have the same stem and count once.
            let stems: Vec<_> = parts.iter().map(|part| part.stem.clone()).collect();
            let is_weak = parts.iter().all(|part| part.weight() < least);
            if (is_weak && !is_spelt_as_a_name(piece)) || !known.insert(stems) {
                continue;
            }
            found.pieces.push(piece.to_owned());
            if piece.chars().any(is_cjk) {
                // Leaves out a single character between others, because it is mostly a particle.
                let alone = parts.len() == 1;
                let parts = parts.into_iter().filter(|part| part.weight() >= least).map(|part| part.folded.to_string());
                let parts = parts.filter(|part| alone || part.chars().count() > 1);
                let new: Vec<_> = parts.filter(|part| !found.words.contains(part)).collect();
                found.words.extend(new);
            } else {
                found.words.push(piece.to_owned());
            }
        }
        for words in [&mut found.words, &mut found.pieces] {
            if words.len() > MAX_WORDS {
                words.drain(MAX_WORDS / 2..words.len() - MAX_WORDS / 2);
            }
        }
        found
    }

    /// Returns the words, in the order of the question.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str)
    }

    /// Returns true for a question that a caller asks on purpose. The words that no text holds then count in no share.
    pub(super) fn is_query(&self) -> bool {
        self.is_query
    }

    /// Returns the words as the text writes them between spaces.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().map(String::as_str)
    }

    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns true when there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Returns true when a word is a name from a program and not a word of a language. Such a name has a digit, an
/// underscore, a dot, or a capital after its first letter.
pub(super) fn is_name(word: &str) -> bool {
    let is_capital_or_dot = |c: char| c.is_uppercase() || c == '.';
    is_spelt_as_a_name(word) || (word.contains(char::is_alphabetic) && word.chars().skip(1).any(is_capital_or_dot))
}

/// Returns true when the spelling shows that a word is a name, such as `many_to_one` or `3.4.x`. It does not matter
/// whether the parts of the name carry meaning.
fn is_spelt_as_a_name(word: &str) -> bool {
    word.contains(char::is_alphabetic) && word.contains(|c: char| c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_word() {
        for (text, expected) in [
            ("", ""),
            ("a - . _ \" * ^ : + { } ( )", ""),
            ("body:secret title:* NEAR(a b, 2)", "body secret title NEAR"),
            ("-foo_bar- ..foo.rs..", "foo_bar foo.rs"),
            ("nudge/core/src/words.rs:42", "nudge core src words.rs 42"),
            ("migrate migrations MIGRATING", "migrate"),
            ("don't panic", "don panic"),
            ("把数据库迁移一下", "把数 数据 据库 库迁 迁移 移一 一下"),
            ("clippyの警告", "clippy 警告"),
            ("null\0byte", "null byte"),
            ("is it many_to_one in 3.4.x?", "many_to_one 3.4.x"),
        ] {
            assert_eq!(QuestionWords::from_text(text).iter().collect::<Vec<_>>().join(" "), expected, "{text:?}");
        }
        assert!(QuestionWords::from_text(&"x".repeat(MAX_WORD_BYTES + 1)).is_empty());
    }

    #[test]
    fn what_is_a_name() {
        for name in ["E0502", "client_max_body_size", "foo.rs", "PaymentSplitter", "iPhone", "SELECT", "3.4.x"] {
            assert!(is_name(name), "{name}");
        }
        for word in ["Uploads", "sign-in", "413", "3.14", "migrations", "データ"] {
            assert!(!is_name(word), "{word}");
        }
    }

    #[test]
    fn of_a_long_text_the_ends_count() {
        let text: Vec<_> = (0..500).map(|number| format!("w{number}x")).collect();
        let words = QuestionWords::from_text(&text.join(" "));
        let all: Vec<_> = words.iter().collect();
        assert_eq!((all.len(), all[0], all[15], all[16], all[31]), (32, "w0x", "w15x", "w484x", "w499x"));
    }
}
