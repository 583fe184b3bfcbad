//! Checks a text that may hold credentials; without the marked lines it must pass.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_secrets::SecretGuard;

fuzz_target!(|text: &str| {
    let guard = SecretGuard::new();
    let spans = guard.find_spans(text);
    // Some marked parts of a key would pass alone.
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
