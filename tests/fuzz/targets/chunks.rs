//! A text in markdown, cut into pieces that cover it in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_brain::chunk::{chunks, tokens};
use nudge_brain::outline::Outline;

fuzz_target!(|text: &str| {
    let outline = Outline::of(text);
    let chunks = chunks(text, &outline);
    let mut begin = 0;
    for chunk in &chunks {
        assert!(chunk.range.start >= begin && chunk.range.end <= text.len());
        tokens(&text[chunk.range.clone()]);
        begin = chunk.range.start;
    }
    assert_eq!(chunks.is_empty(), text.trim().is_empty());
    outline.heading();
});
