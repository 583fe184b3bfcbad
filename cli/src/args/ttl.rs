//! Durations as people write them.

use nudge::Ttl;

/// Reads the value of `--ttl`: `90m`, `2h`, `30d`, `1w`, `1d12h`, `session` or an ISO-8601 duration. Returns it in the
/// words of semantics section 4.
pub(super) fn parse_ttl(text: &str) -> Result<String, String> {
    let ttl = to_iso(text).unwrap_or_else(|| text.to_owned());
    match ttl.parse::<Ttl>() {
        Ok(_) => Ok(ttl),
        Err(error) => {
            let why = error.message().rsplit_once("): ").map(|(_, why)| why.trim_end_matches('.'));
            // The library knows no form other than that of ISO 8601.
            let why = why.filter(|_| ttl.starts_with('P')).unwrap_or("years and months have no fixed length, use days");
            Err(format!("write 90m, 2h, 30d, 1w, 1d12h, session, or ISO 8601 such as P30D ({why})"))
        }
    }
}

/// Returns the same duration in ISO 8601; `None` for a text that is not a row of numbers with units.
fn to_iso(text: &str) -> Option<String> {
    let (mut date, mut time) = (String::new(), String::new());
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|end| *end > 0)?;
        let (number, tail) = rest.split_at(end);
        // No upper case: `1M` could be a month or a minute.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, stored) in [
            ("2h", "PT2H"),
            ("90m", "PT90M"),
            ("45s", "PT45S"),
            ("30d", "P30D"),
            ("1w", "P1W"),
            ("1d12h", "P1DT12H"),
            ("1d 12h", "P1DT12H"),
            ("1.5h", "PT1.5H"),
            ("session", "session"),
            ("PT2H", "PT2H"),
            ("P1DT2H", "P1DT2H"),
        ] {
            assert_eq!(parse_ttl(text).as_deref(), Ok(stored), "{text}");
        }
        for (text, why) in [
            ("", "use days"),
            ("2", "use days"),
            ("h", "use days"),
            ("1y", "use days"),
            ("1M", "use days"),
            ("2 hours", "use days"),
            ("0h", "longer than zero"),
            ("20000d", "longer than 10 years"),
            ("2m1h", "in the order"),
            ("1.5h2m", "decimals"),
            ("P1M", "use days (P30D)"),
        ] {
            let told = parse_ttl(text).unwrap_err();
            assert!(told.starts_with("write 90m, 2h, 30d") && told.contains(why), "{text}: {told}");
        }
    }
}
