//! A prompt: its words, and what a search would look for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_core::words::{identifier, words};
use nudge_storage::search::Words;

fuzz_target!(|text: &str| {
    for word in words(text) {
        assert!(!word.stem.is_empty() && !word.folded.is_empty());
    }
    identifier(text);
    assert!(Words::of(text).len() <= Words::of_query(text).len());
});
