//! Checks a text that may contain credentials. The text without the marked lines must pass the guard.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_secrets::SecretGuard;

fuzz_target!(|text: &str| {
    let guard = SecretGuard::new();
    let spans = guard.find_spans(text);
    // The guard refuses the text only if it marks a part. It may mark parts of a key in a text that passes.
    assert!(guard.check(None, text).is_none() || !spans.is_empty());
    let (mut left, mut at) = (String::new(), 0);
    for span in &spans {
        assert!(at <= span.range.start && span.range.start <= span.range.end && span.range.end <= text.len());
        left.push_str(&text[at..span.range.start]);
        at = span.range.end;
    }
    left.push_str(&text[at..]);
    assert_eq!(guard.check(None, &left), None, "what is left");
    let _ = guard.check(Some("PASSWORD"), text);
});
