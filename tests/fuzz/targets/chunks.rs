//! Splits a markdown text into chunks. The chunks must cover the text in order.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_brain::chunk::{chunk_text, count_tokens};
use nudge_brain::outline::TextOutline;

fuzz_target!(|text: &str| {
    let outline = TextOutline::parse(text);
    let chunks = chunk_text(text, &outline);
    let mut begin = 0;
    for chunk in &chunks {
        assert!(chunk.range.start >= begin && chunk.range.end <= text.len());
        count_tokens(&text[chunk.range.clone()]);
        begin = chunk.range.start;
    }
    assert_eq!(chunks.is_empty(), text.trim().is_empty());
    outline.first_heading();
});
