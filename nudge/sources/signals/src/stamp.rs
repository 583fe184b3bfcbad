//! Makes and compares the timestamps of signals. For a reader, a signal is new when its time is later than the time of
//! the last signal that the reader saw. Most readers compare times; the reader of the upstream specification compares
//! texts. So the timestamp of a new signal must be later in both ways. This also holds for two signals in the same
//! millisecond, and after a signal from a clock that is ahead.

use nudge_core::clock::{Millis, rfc3339};

/// The most milliseconds that a timestamp may be ahead of the clock. A later timestamp is ignored: no other signal
/// would be newer, and the signal would never become old.
const MAX_AHEAD_MS: Millis = 60_000;

/// Parses a time; returns `None` for a time more than a minute after `now`.
pub fn parse_past(text: &str, now: Millis) -> Option<Millis> {
    parse_stamp(text).filter(|time| *time <= now.saturating_add(MAX_AHEAD_MS))
}

/// Returns true for a time that is more than a minute after `now`.
pub fn is_ahead(text: &str, now: Millis) -> bool {
    parse_stamp(text).is_some() && parse_past(text, now).is_none()
}

/// Parses a time in RFC 3339. Accepts two forms of other programs too: without an offset (read as UTC), and with an
/// offset without a colon.
pub fn parse_stamp(text: &str) -> Option<Millis> {
    if !text.is_ascii() || text.len() > 64 {
        return None;
    }
    let with_colon = || {
        let (rest, minutes) = text.split_at_checked(text.len().checked_sub(2)?)?;
        rfc3339::parse(&format!("{rest}:{minutes}"))
    };
    rfc3339::parse(text).or_else(|| rfc3339::parse(&format!("{text}Z"))).or_else(with_colon)
}

/// Returns the timestamp for a signal that is sent at `now` and replaces a signal with the timestamp `stored`. The new
/// timestamp is later as a time and, if `stored` is in UTC, also as a text.
///
/// ```
/// use nudge_signals::next;
/// assert_eq!(next(0, None), "1970-01-01T00:00:00.000Z");
/// assert_eq!(next(0, Some("1970-01-01T00:00:00.000Z")), "1970-01-01T00:00:00.001Z");
/// // As texts, `00.500Z` comes before `00Z`.
/// assert_eq!(next(500, Some("1970-01-01T00:00:00Z")), "1970-01-01T00:00:01.000Z");
/// ```
pub fn next(now: Millis, stored: Option<&str>) -> String {
    let usual = rfc3339::format_time(now);
    let Some((stored, last)) = stored.and_then(|stored| Some((stored, parse_past(stored, now)?))) else { return usual };
    // `stored` may have had fractions of a millisecond, and `last` does not have them.
    let later = if now > last { usual } else { rfc3339::format_time(last + 1) };
    // For a stored text in another time zone, a comparison of the texts says nothing about the times.
    let local = stored.strip_suffix("+00:00").unwrap_or(stored);
    let in_utc = !local.contains('+') && !local.get(10..).is_some_and(|time| time.contains('-'));
    let text =
        if in_utc && *later <= *stored { rfc3339::format_time((last.div_euclid(1000) + 1) * 1000) } else { later };
    // No text is later than the last second of the year 9999. Then the current time is used.
    if parse_stamp(&text).is_some_and(|new| new > last) { text } else { rfc3339::format_time(now) }
}

/// Returns true when a signal with the time `timestamp` is newer than a signal with the time `last_seen`. Two different
/// texts of the same millisecond are two signals, and the file holds the newer one. If `last_seen` is invalid or in the
/// future, every other text is newer.
pub fn is_newer(timestamp: &str, last_seen: &str, now: Millis) -> bool {
    match (parse_stamp(timestamp), parse_past(last_seen, now)) {
        (Some(new), Some(seen)) => new > seen || (new == seen && timestamp != last_seen),
        _ => timestamp != last_seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time 2026-03-05T10:35:00Z.
    const AT: Millis = 1_772_706_900_000;

    #[test]
    fn times_that_programs_write() {
        for text in [
            "2026-03-05T10:35:00Z",
            "2026-03-05T10:35:00.000Z",
            "2026-03-05T10:35:00+00:00",
            "2026-03-05T10:35:00.000000+00:00",
            "2026-03-05T10:35:00",
            "2026-03-05T10:35:00.000400",
            "2026-03-05T12:35:00+0200",
            "2026-03-05T05:35:00-05:00",
        ] {
            assert_eq!(parse_stamp(text), Some(AT), "{text}");
        }
        for text in ["", "now", "2026-03-05", "1772706900", "2026-03-05T25:00:00Z", "é", &"2".repeat(99)] {
            assert_eq!(parse_stamp(text), None, "{text}");
        }
    }

    #[test]
    fn a_later_signal_is_later_for_every_reader() {
        for (now, stored) in [
            (AT, "2026-03-05T10:35:00.000Z"),
            (AT, "2026-03-05T10:35:00Z"),
            (AT + 500, "2026-03-05T10:35:00Z"),
            (AT, "2026-03-05T10:35:00.999Z"),
            (AT, "2026-03-05T10:35:00.999999Z"),
            (AT + 123, "2026-03-05T10:35:00.123456Z"),
            (AT + 123, "2026-03-05T10:35:00.123456"),
            (AT + 123, "2026-03-05T10:35:00.123456+00:00"),
            (AT + 500, "2026-03-05T10:35:00+00:00"),
            (AT, "2026-03-05T10:35:00+00:00"),
            (AT - 60_000, "2026-03-05T10:35:00.000Z"),
            (AT, "2026-03-05T10:34:00Z"),
        ] {
            let new = next(now, Some(stored));
            assert!(is_newer(&new, stored, now), "{new} after {stored}");
            assert!(*new > *stored, "{new} after {stored}, as texts");
            assert!(
                parse_stamp(&new).unwrap() <= now.max(parse_stamp(stored).unwrap() + 1000),
                "{new} is not further than it must be"
            );
        }
        // A stored time in another zone is only compared as a time, not as a text.
        for stored in ["2026-03-05T12:35:00+02:00", "2026-03-05T05:35:00-05:00"] {
            assert!(is_newer(&next(AT, Some(stored)), stored, AT), "{stored}");
        }
    }

    #[test]
    fn what_is_no_time_or_the_last_one_holds_nobody_up() {
        for stored in ["9999-12-31T23:59:59.999Z", "2126-01-01T00:00:00Z", "2026-03-05T10:36:01Z", "soon", ""] {
            let new = next(AT, Some(stored));
            assert_eq!(new, "2026-03-05T10:35:00.000Z", "{stored}");
            assert!(is_newer(&new, stored, AT), "{stored}");
        }
        assert_eq!(parse_past("2026-03-05T10:36:00Z", AT), Some(AT + 60_000));
    }

    #[test]
    fn the_literal_form_misses_what_comes_within_a_tick() {
        // The upstream specification compares `nudge.timestamp <= lastSeen`. Here two signals have the same time,
        // because `date` writes whole seconds.
        let (first, second) = ("2026-03-05T10:35:00Z", "2026-03-05T10:35:00Z");
        assert!(second <= first, "the second is taken for processed");
        let ours = next(AT, Some(first));
        assert!(*ours > *first && is_newer(&ours, first, AT));
        // Milliseconds alone do not help: as a text, a time with milliseconds sorts before the same second without
        // them.
        assert!(*rfc3339::format_time(AT + 500) < *first);
    }

    #[test]
    fn newer() {
        for (timestamp, last_seen, newer) in [
            ("2026-03-05T10:35:00Z", "2026-03-05T10:35:00Z", false),
            ("2026-03-05T10:35:01Z", "2026-03-05T10:35:00Z", true),
            ("2026-03-05T10:35:00Z", "2026-03-05T10:35:01Z", false),
            ("2026-03-05T10:35:00.500Z", "2026-03-05T10:35:00Z", true),
            ("2026-03-05T10:35:00.123456Z", "2026-03-05T10:35:00.123400Z", true),
            ("2026-03-05T12:35:00+02:00", "2026-03-05T10:34:00Z", true),
            ("2026-03-05T10:35:00Z", "never", true),
            ("2026-03-05T10:35:00Z", "", true),
        ] {
            assert_eq!(is_newer(timestamp, last_seen, AT), newer, "{timestamp} after {last_seen}");
        }
    }
}
