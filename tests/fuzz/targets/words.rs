//! Splits a prompt into words and into search terms.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_core::words::{fold_identifier, split_words};
use nudge_storage::search::QuestionWords;

fuzz_target!(|text: &str| {
    for word in split_words(text) {
        assert!(!word.stem.is_empty() && !word.folded.is_empty());
    }
    fold_identifier(text);
    assert!(QuestionWords::from_text(text).len() <= QuestionWords::of_query(text).len());
});
