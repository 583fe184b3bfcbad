//! Defines the clocks. Only this module reads the system's clocks.

mod plausible;

use std::sync::atomic::{AtomicI64, Ordering};

pub use plausible::{PlausibleClock, TimeStamp};

/// Milliseconds since the Unix epoch, UTC.
pub type Millis = i64;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Millis;

    /// Returns the milliseconds since a fixed moment, which may be before the process started. A user who sets the
    /// clock does not change this number.
    fn uptime(&self) -> Millis {
        read_uptime()
    }

    /// Returns the time by which code decides whether to delete old data. It is never later than [`now`](Self::now),
    /// and it stays behind when the clock jumps forward ([`PlausibleClock`]).
    fn plausible_time(&self) -> Millis {
        self.now()
    }

    /// Returns true when data that was stored at `stored_at` has existed until `end` and may be deleted. Either
    /// [`plausible_time`](Self::plausible_time) must have reached `end`, or, for data that was stored after the clock
    /// jumped, [`now`](Self::now) must have.
    fn has_lived_until(&self, end: Millis, _stored_at: Millis) -> bool {
        self.now() >= end
    }
}

/// Returns the milliseconds since the system started, including the time for which it slept.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn read_uptime() -> Millis {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

/// Returns the milliseconds since the first call of this function.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn read_uptime() -> Millis {
    static FIRST: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    Millis::try_from(FIRST.elapsed().as_millis()).unwrap_or(Millis::MAX)
}

/// The operating system's clock. On Linux it is the coarse clock, with ticks of about 4 ms, because that clock is ten
/// times cheaper to read.
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

/// A clock for tests, which moves only when a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicI64,
    uptime: AtomicI64,
}

impl ManualClock {
    /// Makes a clock that shows `now`.
    pub const fn new(now: Millis) -> Self {
        Self { now: AtomicI64::new(now), uptime: AtomicI64::new(0) }
    }

    /// Moves the clock and the uptime forward by `delta` milliseconds, and returns the new time.
    pub fn advance_by(&self, delta: Millis) -> Millis {
        self.uptime.fetch_add(delta, Ordering::SeqCst);
        self.jump_by(delta)
    }

    /// Moves the clock by `delta` milliseconds without any uptime, as a user who sets the clock. Returns the new time.
    pub fn jump_by(&self, delta: Millis) -> Millis {
        self.now.fetch_add(delta, Ordering::SeqCst) + delta
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.now.load(Ordering::SeqCst)
    }

    fn uptime(&self) -> Millis {
        self.uptime.load(Ordering::SeqCst)
    }
}

/// Parses a time in the format of the JSON interfaces (RFC 3339, any offset) to milliseconds since 1970.
pub fn parse_time(text: &str) -> Option<Millis> {
    rfc3339::parse(text)
}

/// Times as text: RFC 3339, UTC, three decimals and `Z` (semantics section 4).
pub mod rfc3339 {
    use std::ops::Range;

    use chrono::{DateTime, Datelike};
    use serde::{Serialize, Serializer};

    use super::Millis;

    const DAY_MS: Millis = 86_400_000;
    /// The first and the last time with a year from 0 to 9999.
    const FIRST: Millis = -62_167_219_200_000;
    const LAST: Millis = 253_402_300_799_999;
    /// The number of days in 400 years; after them the calendar repeats.
    const ERA_DAYS: i64 = 146_097;
    /// The number of days from 0000-03-01 to 1970-01-01.
    const EPOCH_DAYS: i64 = 719_468;

    /// A time as text, for example `2026-01-01T00:00:00.000Z`. It needs no allocation, because an export consists
    /// mostly of timestamps.
    #[derive(Clone, Copy)]
    pub struct TimeText([u8; 24]);

    impl TimeText {
        /// Writes a time. A time whose year does not fit into four digits becomes the beginning of 1970.
        ///
        /// # Panics
        /// Never: each digit is a remainder of a division by 10.
        #[inline]
        pub fn from_millis(millis: Millis) -> Self {
            let millis = if (FIRST..=LAST).contains(&millis) { millis } else { 0 };
            let (days, ms) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
            let (year, month, day) = date_from_days(days);
            // The digits are written directly, because `format!` costs more than all other steps together.
            let mut text = *b"0000-00-00T00:00:00.000Z";
            let mut write = |place: Range<usize>, mut number: i64| {
                for digit in text[place].iter_mut().rev() {
                    *digit = b'0' + u8::try_from(number % 10).expect("a digit of a year from 0 to 9999");
                    number /= 10;
                }
            };
            write(0..4, year);
            write(5..7, month);
            write(8..10, day);
            write(11..13, ms / 3_600_000);
            write(14..16, ms / 60_000 % 60);
            write(17..19, ms / 1000 % 60);
            write(20..23, ms % 1000);
            Self(text)
        }

        /// Returns the text.
        ///
        /// # Panics
        /// Never: the text has only digits and ASCII signs.
        #[inline]
        pub fn as_str(&self) -> &str {
            str::from_utf8(&self.0).expect("digits and ASCII signs are UTF-8")
        }
    }

    impl Serialize for TimeText {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.as_str())
        }
    }

    /// Writes a time, for example `2026-01-01T00:00:00.000Z`.
    pub fn format_time(time: Millis) -> String {
        TimeText::from_millis(time).as_str().to_owned()
    }

    /// Parses a time with any offset; years 0 to 9999.
    pub fn parse(text: &str) -> Option<Millis> {
        if let Some(millis) = parse_own(text.as_bytes()) {
            return Some(millis);
        }
        let time = DateTime::parse_from_rfc3339(text).ok()?.to_utc();
        (0..=9999).contains(&time.year()).then(|| time.timestamp_millis())
    }

    /// Parses the form that [`TimeText`] writes and that nearly all input has; `None` for any other form. The library
    /// `chrono` would take ten times as many instructions.
    fn parse_own(text: &[u8]) -> Option<Millis> {
        let text: &[u8; 24] = text.try_into().ok()?;
        let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if signs.iter().any(|&(place, sign)| text[place] != sign) {
            return None;
        }
        let number = |place: Range<usize>| {
            text[place].iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        // The comparison at the end refuses a day that its month does not have. `chrono` handles leap seconds.
        if !(1..=12).contains(&month) || day == 0 || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let days = days_from_date(year, month, day);
        (date_from_days(days) == (year, month, day))
            .then_some(days * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + number(20..23)?)
    }

    /// Returns the Gregorian date of a day since 1970. The years of this calculation begin in March, so that a leap day
    /// is the last day of the year. The months from March to July then have 153 days together, and so have August to
    /// December.
    fn date_from_days(days: i64) -> (i64, i64, i64) {
        let day = days + EPOCH_DAYS;
        let (era, of_era) = (day.div_euclid(ERA_DAYS), day.rem_euclid(ERA_DAYS));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        (year + era * 400 + next, month, day)
    }

    /// Returns the number of days from 1970 to a date.
    fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - EPOCH_DAYS
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
            assert_eq!(rfc3339::format_time(ms), text);
        }
        assert_eq!(rfc3339::parse("2026-01-01T01:30:00+01:30"), Some(1_767_225_600_000));
        for bad in ["2026-01-01", "yesterday", "", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"] {
            assert_eq!(rfc3339::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_are_those_of_a_library() {
        let library = |millis| {
            let time = chrono::DateTime::from_timestamp_millis(millis).unwrap();
            time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
        };
        // Tests each day of 400 years and of both ends of the range, at different times of day.
        let days = (-1..146_100).chain(-719_528..-719_000).chain(2_932_000..2_932_897);
        for (day, ms) in days.zip((0..).step_by(86_413)) {
            let millis = day * 86_400_000 + ms % 86_400_000;
            let text = rfc3339::format_time(millis);
            assert_eq!((&text, rfc3339::parse(&text)), (&library(millis), Some(millis)));
        }
        for bad in ["2026-02-29T00:00:00.000Z", "2026-00-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z"] {
            assert_eq!(rfc3339::parse(bad), None, "{bad}");
        }
        assert_eq!(rfc3339::parse("2016-12-31T23:59:60.000Z"), Some(1_483_228_800_000));
        assert_eq!(rfc3339::format_time(Millis::MAX), "1970-01-01T00:00:00.000Z");
    }
}
