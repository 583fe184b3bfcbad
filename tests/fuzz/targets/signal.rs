//! Parses the file of a signal, writes it, and parses it again. Both signals must be equal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nudge_core::clock::{Millis, parse_time};
use nudge_signals::{Signal, is_newer, next};

/// 9999-01-01T00:00:00Z in milliseconds. The clock stays below this time, because the last second of that year has no
/// later time in the format.
const MAX_NOW_MS: Millis = 253_370_764_800_000;

fuzz_target!(|text: &str| {
    if let Ok(signal) = Signal::parse(text) {
        let written = signal.to_text().expect("a signal is JSON");
        assert_eq!(Signal::parse(&written), Ok(signal.clone()));
        // The clock shows the signal's own time. The next signal must still get a later time.
        let now = parse_time(&signal.timestamp).unwrap_or(0).min(MAX_NOW_MS);
        let later = next(now, Some(&signal.timestamp));
        assert!(is_newer(&later, &signal.timestamp, now), "{later} {}", signal.timestamp);
    }
    is_newer(text, "2026-01-01T00:00:00Z", Millis::MAX);
});
