//! Durations as users write them.

use nudge::Ttl;

/// Parses the value of `--ttl`. Returns it in the form of semantics section 4.
pub(super) fn parse_ttl(text: &str) -> Result<String, String> {
    text.parse::<Ttl>().map(|ttl| ttl.to_string()).map_err(|error| {
        let why = error.message().rsplit_once("): ").map_or(error.message(), |(_, why)| why).trim_end_matches('.');
        format!("write 90m, 2h, 30d, 1w, 1d12h, session, or ISO 8601 such as P30D ({why})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, stored) in [("1d 12h", "P1DT12H"), ("session", "session"), ("PT2H", "PT2H")] {
            assert_eq!(parse_ttl(text).as_deref(), Ok(stored), "{text}");
        }
        for (text, why) in [("1M", "use days"), ("2m1h", "in the order"), ("P1M", "use days (P30D)")] {
            let told = parse_ttl(text).unwrap_err();
            assert!(told.starts_with("write 90m, 2h, 30d") && told.contains(why), "{text}: {told}");
        }
    }
}
