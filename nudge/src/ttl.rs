//! The time to live of a hint (semantics section 4).

use std::fmt;
use std::str::FromStr;

use nudge_core::clock::Millis;
use nudge_core::error::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest accepted duration in milliseconds: ten years.
const MAX_MS: f64 = 10.0 * 365.25 * 24.0 * 3_600_000.0;

/// A time to live: `session`, or a duration of weeks, days, hours, minutes and seconds that counts from `updated_at`. A
/// duration is written as people write it (`2h`, `1d12h`) or in ISO 8601. A text in ISO 8601 is kept as given. A text
/// in the other form is converted to ISO 8601.
///
/// ```
/// let ttl: nudge::Ttl = "P1DT2H".parse()?;
/// assert_eq!(ttl.millis(), Some(26 * 3_600_000));
/// assert_eq!("1d 2h".parse::<nudge::Ttl>()?.as_str(), "P1DT2H");
/// assert!("P1M".parse::<nudge::Ttl>().unwrap_err().message().contains("P30D"));
/// # Ok::<(), nudge::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ttl(Option<Box<(Millis, Box<str>)>>);

impl Ttl {
    /// The ttl of a hint that ends with the session.
    pub const SESSION: Self = Self(None);

    /// Returns the duration in milliseconds; `None` for `session`.
    pub fn millis(&self) -> Option<Millis> {
        self.0.as_ref().map(|duration| duration.0)
    }

    /// Returns the text in ISO 8601, or `session`.
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or("session", |duration| &duration.1)
    }

    /// Returns the time at which a hint that was updated at `updated_at` expires. `Millis::MAX` means never.
    pub(crate) fn expires_at(&self, updated_at: Millis) -> Millis {
        self.millis().map_or(Millis::MAX, |ms| updated_at.saturating_add(ms))
    }
}

impl FromStr for Ttl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "session" {
            return Ok(Self::SESSION);
        }
        let refuse = |why: &str| {
            Error::invalid(format!(
                "A ttl is `session` or a duration such as 90m, 2h, 30d, PT2H or P30D (weeks, days, hours, minutes, seconds; at most 10 years): {why}."
            ))
        };
        let iso = to_iso(text);
        let text = iso.as_deref().unwrap_or(text);
        let ms = duration_ms(text).map_err(refuse)?;
        Ok(Self(Some(Box::new((ms, text.into())))))
    }
}

/// Converts a duration as people write it (`90m`, `1d 12h`) to ISO 8601. `None` for a text that is not a sequence of
/// numbers with units.
fn to_iso(text: &str) -> Option<String> {
    let (mut date, mut time) = (String::new(), String::new());
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
        let (number, tail) = rest.split_at(end);
        // Upper case is not accepted, because `1M` could mean a month or a minute.
        let unit = tail.chars().next().filter(|unit| "wdhms".contains(*unit))?;
        let part = if "wd".contains(unit) { &mut date } else { &mut time };
        part.push_str(number);
        part.push(unit.to_ascii_uppercase());
        rest = tail[1..].trim_start();
    }
    match (date.is_empty(), time.is_empty()) {
        (true, true) => None,
        (_, true) => Some(format!("P{date}")),
        (_, false) => Some(format!("P{date}T{time}")),
    }
}

/// Parses a duration to milliseconds, at least 1. The error is the end of a sentence.
fn duration_ms(text: &str) -> Result<Millis, &'static str> {
    const UNITS: [(bool, char, f64); 5] = [
        (false, 'W', 604_800_000.0),
        (false, 'D', 86_400_000.0),
        (true, 'H', 3_600_000.0),
        (true, 'M', 60_000.0),
        (true, 'S', 1000.0),
    ];
    let mut rest = text.strip_prefix('P').ok_or("years and months have no fixed length, use days")?;
    let (mut in_time, mut next_unit, mut total, mut decimals) = (false, 0, 0.0, false);
    if rest.is_empty() || rest.ends_with('T') {
        return Err("a number and a unit are missing");
    }
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            if in_time {
                return Err("T may stand once");
            }
            (in_time, rest) = (true, time);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or("a unit is missing")?;
        let (number, tail) = rest.split_at(end);
        let unit = tail.chars().next().expect("the unit begins where the number ends");
        if decimals {
            return Err("only the last unit may have decimals");
        }
        let (whole, fraction) =
            number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
        decimals = fraction.is_some();
        if whole.is_empty()
            || fraction.is_some_and(|digits| digits.is_empty() || digits.contains('.'))
            || number.len() > 24
        {
            return Err("a number cannot be read");
        }
        if unit == 'Y' || (unit == 'M' && !in_time) {
            return Err("years and months have no fixed length, use days (P30D)");
        }
        let index =
            UNITS.iter().position(|&(time, name, _)| time == in_time && name == unit).ok_or("a unit is unknown")?;
        if index < next_unit {
            return Err("units must stand in the order W, D, T, H, M, S, each once");
        }
        next_unit = index + 1;
        total += number.parse::<f64>().map_err(|_| "a number cannot be read")? * UNITS[index].2;
        rest = &tail[1..];
    }
    if total <= 0.0 {
        return Err("it must be longer than zero");
    }
    if total > MAX_MS {
        return Err("it is longer than 10 years");
    }
    // The conversion cannot overflow, because `total` is at most `MAX_MS`.
    #[allow(clippy::cast_possible_truncation)]
    Ok((total.round() as Millis).max(1))
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Ttl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(|error: Error| de::Error::custom(error.message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [
            ("P1W", 604_800_000),
            ("P1D", 86_400_000),
            ("P1DT2H", 93_600_000),
            ("PT2H", 7_200_000),
            ("PT1M", 60_000),
            ("PT0.5S", 500),
            ("PT1.5H", 5_400_000),
            ("PT0.0001S", 1),
            ("P3650D", 315_360_000_000),
            // Ten years to the millisecond, and the longest number that is accepted.
            ("P3652.5D", 315_576_000_000),
            ("P000000000000000000000001D", 86_400_000),
        ] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
        for text in [
            "",
            "P",
            "PT",
            "P1DT",
            "2H",
            "P1Y",
            "P1M",
            "P1Y2D",
            "PT0S",
            "-PT1H",
            "P-1D",
            "PT1H2",
            "PT1.5H2M",
            "PT2M1H",
            "P1D1D",
            "PTT1H",
            "pt1h",
            "P3654D",
            "PT315576000.001S",
            "P0000000000000000000000001D",
            "P99999999999999999999D",
            "PT.5S",
            "PT1.S",
            "PT1..5S",
            "P1H",
            "PT1D",
            "PT1é",
            "PT 1H",
            "Session",
        ] {
            assert!(duration_ms(text).is_err(), "{text}");
        }
    }

    #[test]
    fn months_and_years_are_refused_with_what_to_write() {
        for text in ["P1Y", "P1M", "P2M1D"] {
            assert!(duration_ms(text).unwrap_err().contains("use days"), "{text}");
        }
    }

    #[test]
    fn a_ttl_is_written_as_it_was_given_or_in_iso_8601() {
        for (text, written) in [
            ("PT2H", "PT2H"),
            ("session", "session"),
            ("2h", "PT2H"),
            ("90m", "PT90M"),
            ("45s", "PT45S"),
            ("30d", "P30D"),
            ("1w", "P1W"),
            ("1d12h", "P1DT12H"),
            (" 1d 12h ", "P1DT12H"),
            ("1.5h", "PT1.5H"),
        ] {
            assert_eq!(text.parse::<Ttl>().unwrap().to_string(), written, "{text}");
        }
        for (text, why) in [
            ("", "use days"),
            ("2", "use days"),
            ("1y", "use days"),
            ("1M", "use days"),
            ("2 hours", "use days"),
            ("2H", "use days"),
            ("0h", "longer than zero"),
            ("20000d", "longer than 10 years"),
            ("2m1h", "in the order"),
            ("1.5h2m", "decimals"),
        ] {
            let refused = text.parse::<Ttl>().unwrap_err();
            assert!(refused.message().contains(why), "{text}: {refused}");
        }
    }
}
