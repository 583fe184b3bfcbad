//! Times for users: in their time zone, and as the time left. With `--json`, times stay in UTC, as methods return them.

use chrono::{DateTime, Local, TimeZone};
use nudge::{Millis, Ttl};
use serde_json::Value;

/// Formats a time in the user's time zone: `2026-01-31 14:05`.
pub fn to_local(time: Millis) -> String {
    in_zone(&Local, time)
}

/// Formats the time of a recent event: today's as the time of day, `14:05:09`, and an earlier one with its date.
pub fn recent_time(time: Millis) -> String {
    let date = |time| format_time(&Local, time, "%Y-%m-%d");
    if date(time) == date(now()) { format_time(&Local, time, "%H:%M:%S") } else { to_local(time) }
}

fn in_zone<Z: TimeZone<Offset: std::fmt::Display>>(zone: &Z, time: Millis) -> String {
    format_time(zone, time, "%Y-%m-%d %H:%M")
}

fn format_time<Z: TimeZone<Offset: std::fmt::Display>>(zone: &Z, time: Millis, form: &str) -> String {
    let utc = DateTime::from_timestamp_millis(time).unwrap_or_default();
    utc.with_timezone(zone).format(form).to_string()
}

/// Returns the present time of this machine's clock.
pub fn now() -> Millis {
    chrono::Utc::now().timestamp_millis()
}

/// Returns the time at which a hint expires. Returns `None` for a hint that ends with the session. Secrets are not kept
/// for the next session, so a secret has no expiry here, even if it has a ttl.
pub fn expires_at(hint: &Value) -> Option<Millis> {
    if hint["meta"]["sensitivity"] == "secret" {
        return None;
    }
    let ttl: Ttl = hint["meta"]["ttl"].as_str()?.parse().ok()?;
    nudge::parse_time(hint["updated_at"].as_str()?)?.checked_add(ttl.millis()?)
}

/// Formats a duration in one unit, rounded down: `45s`, `5m`, `3h`, `2d`.
pub fn show_span(millis: Millis) -> String {
    match millis.max(0) / 1000 {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Formats the time left until `end`, rounded to one unit. A hint that has just got two hours shows `2h`.
pub fn show_time_left(end: Millis) -> String {
    let millis = end.saturating_sub(now());
    let half = match millis {
        ..60_000 => 500,
        60_000..3_600_000 => 30_000,
        3_600_000..172_800_000 => 1_800_000,
        _ => 43_200_000,
    };
    show_span(millis.saturating_add(half))
}

/// Describes the end of a hint: its expiry, and the time left until then. Returns `None` for a hint that does not
/// expire.
pub fn describe_end(hint: &Value) -> Option<String> {
    let end = expires_at(hint)?;
    Some(format!("{} (in {})", to_local(end), show_time_left(end)))
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_those_of_the_zone() {
        let moment = nudge::parse_time("2026-12-31T23:30:00Z").unwrap();
        for (hours, told) in [(0, "2026-12-31 23:30"), (1, "2027-01-01 00:30"), (-5, "2026-12-31 18:30")] {
            assert_eq!(in_zone(&FixedOffset::east_opt(hours * 3600).unwrap(), moment), told);
        }
        assert_eq!(format_time(&FixedOffset::east_opt(19_800).unwrap(), moment, "%H:%M:%S"), "05:00:00");
    }

    #[test]
    fn spans() {
        let minute = 60_000;
        for (millis, told) in [
            (-5, "0s"),
            (59_999, "59s"),
            (minute, "1m"),
            (119 * minute, "1h"),
            (47 * 60 * minute, "47h"),
            (48 * 60 * minute, "2d"),
            (365 * 24 * 60 * minute, "365d"),
        ] {
            assert_eq!(show_span(millis), told);
        }
    }

    #[test]
    fn time_left_is_rounded_to_the_nearest_unit() {
        for (millis, told) in
            [(7_200_000, "2h"), (2_592_000_000, "30d"), (3_600_000, "1h"), (-5, "0s"), (172_800_000, "2d")]
        {
            // The function reads the clock a moment later.
            assert_eq!(show_time_left(now() + millis), told);
        }
    }

    #[test]
    fn a_hint_with_a_duration_has_an_expiry_and_one_for_the_session_has_none() {
        let hint = |ttl: &str| json!({"meta": {"ttl": ttl}, "updated_at": "2026-01-01T00:00:00.000Z"});
        assert_eq!(expires_at(&hint("PT2H")), nudge::parse_time("2026-01-01T02:00:00Z"));
        assert_eq!(expires_at(&hint("session")), None);
        let mut secret = hint("P30D");
        secret["meta"]["sensitivity"] = "secret".into();
        assert_eq!(expires_at(&secret), None, "it is not there the next time");
    }
}
