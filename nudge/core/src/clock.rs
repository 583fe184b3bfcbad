//! The source of time. Nothing else in the library reads a clock.

use std::sync::atomic::{AtomicI64, Ordering};

/// Milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Millis;
}

/// The operating system's clock, in its coarse form where there is one (ticks of about 4 ms on Linux,
/// and ten times cheaper to read).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn now(&self) -> Millis {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn now(&self) -> Millis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |time| Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX))
    }
}

/// A clock that moves only when told to, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Makes a clock that stands at `now`.
    pub const fn new(now: Millis) -> Self {
        Self(AtomicI64::new(now))
    }

    /// Moves the clock by `by` milliseconds and returns the new time.
    pub fn advance(&self, by: Millis) -> Millis {
        self.0.fetch_add(by, Ordering::SeqCst) + by
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}

/// Parses a time in the format of the JSON interfaces (RFC 3339, any offset) to milliseconds since 1970.
pub fn parse_time(text: &str) -> Option<Millis> {
    rfc3339::parse(text)
}

/// Times as text: RFC 3339, UTC, three decimals and `Z` (semantics section 4).
pub mod rfc3339 {
    use chrono::{DateTime, Datelike, Timelike};
    use serde::{Serialize, Serializer};

    use super::Millis;

    /// A time as text, for example `2026-01-01T00:00:00.000Z`, written without an allocation: an export is mostly
    /// timestamps.
    #[derive(Clone, Copy)]
    pub struct Stamp([u8; 24]);

    impl Stamp {
        /// Writes `at`.
        #[inline]
        pub fn of(at: Millis) -> Self {
            let time = DateTime::from_timestamp_millis(at).unwrap_or_default();
            // The digits are written directly: `format!` costs more than all the rest.
            let mut text = *b"0000-00-00T00:00:00.000Z";
            let numbers = [
                (0..4, time.year().unsigned_abs()),
                (5..7, time.month()),
                (8..10, time.day()),
                (11..13, time.hour()),
                (14..16, time.minute()),
                (17..19, time.second()),
                (20..23, time.timestamp_subsec_millis()),
            ];
            for (place, mut number) in numbers {
                for digit in text[place].iter_mut().rev() {
                    *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
                    number /= 10;
                }
            }
            Self(text)
        }

        /// Returns the text.
        #[inline]
        pub fn as_str(&self) -> &str {
            // Digits and ASCII signs are always UTF-8.
            str::from_utf8(&self.0).unwrap_or_default()
        }
    }

    impl Serialize for Stamp {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.as_str())
        }
    }

    /// Writes `at`, for example `2026-01-01T00:00:00.000Z`.
    pub fn text(at: Millis) -> String {
        Stamp::of(at).as_str().to_owned()
    }

    /// Parses a time with any offset; years 0 to 9999.
    pub fn parse(text: &str) -> Option<Millis> {
        let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
        (0..=9999).contains(&time.year()).then(|| time.timestamp_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_is_close_to_the_standard_one() {
        let std = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let gap = SystemClock.now() - i64::try_from(std.as_millis()).unwrap();
        assert!(gap.abs() < 1000, "{gap}");
    }

    #[test]
    fn times_read_back() {
        for (text, ms) in [
            ("2026-01-01T00:00:00.000Z", 1_767_225_600_000),
            ("1969-12-31T23:59:59.999Z", -1),
            ("0000-01-01T00:00:00.000Z", -62_167_219_200_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!(rfc3339::parse(text), Some(ms));
            assert_eq!(rfc3339::text(ms), text);
        }
        assert_eq!(rfc3339::parse("2026-01-01T01:30:00+01:30"), Some(1_767_225_600_000));
        for bad in ["2026-01-01", "yesterday", "", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"] {
            assert_eq!(rfc3339::parse(bad), None, "{bad}");
        }
    }
}
