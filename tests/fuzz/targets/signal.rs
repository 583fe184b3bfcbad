//! The file of a signal. What is read is written so that it is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_signals::{Signal, is_newer, next};

fuzz_target!(|text: &str| {
    if let Ok(signal) = Signal::parse(text) {
        let written = signal.text().expect("a signal is JSON");
        assert_eq!(Signal::parse(&written), Ok(signal.clone()));
        let later = next(0, Some(&signal.timestamp));
        assert!(is_newer(&later, &signal.timestamp), "{later} {}", signal.timestamp);
    }
    is_newer(text, "2026-01-01T00:00:00Z");
});
