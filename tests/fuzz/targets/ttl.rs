//! Parses any text as a ttl, and as a time in an export.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge::{Ttl, parse_time};

fuzz_target!(|text: &str| {
    if let Ok(ttl) = text.parse::<Ttl>() {
        // A ttl in ISO 8601 stays as it is. A short form such as `2h` becomes ISO 8601.
        if text == "session" || text.starts_with('P') {
            assert_eq!(ttl.as_str(), text);
        }
        assert_eq!(ttl.as_str().parse::<Ttl>().ok().as_ref(), Some(&ttl), "{text}");
        assert!(ttl.millis().is_none_or(|ms| (1..=315_576_000_000).contains(&ms)), "{text}");
    }
    let _ = parse_time(text);
});
