//! Converts lengths, columns and times between number types, for values that always fit.

use std::time::{Instant, SystemTime};

/// Converts a length, a count or a limit into a column of a database.
///
/// # Panics
/// Panics above 2^63 - 1, which no length and no limit of Nudge reaches.
pub fn to_column(count: usize) -> i64 {
    i64::try_from(count).expect("a length is less than 2^63")
}

/// Converts the result of a `count(*)`.
///
/// # Panics
/// Panics for a number below 0, which no count is, and for a number beyond the address space.
pub fn from_count(count: i64) -> usize {
    usize::try_from(count).expect("a count of rows is not negative and fits into memory")
}

/// Returns the milliseconds that have passed since `since`.
pub fn elapsed_ms(since: Instant) -> u64 {
    let elapsed = since.elapsed();
    elapsed.as_secs().saturating_mul(1_000).saturating_add(elapsed.subsec_millis().into())
}

/// Returns the nanoseconds from 1970 to a file's time. Users can set any file time: a time before 1970 gives 0, and a
/// time after 2262 gives `i64::MAX`.
pub fn unix_ns(time: SystemTime) -> i64 {
    let after = time.duration_since(SystemTime::UNIX_EPOCH);
    after.map_or(0, |after| i64::try_from(after.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn any_time_of_a_file_is_a_number() {
        let at_ns = |ns| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
        assert_eq!(unix_ns(at_ns(1_500_000_000)), 1_500_000_000);
        assert_eq!(unix_ns(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 0);
        assert_eq!(unix_ns(at_ns(u64::MAX)), i64::MAX);
    }

    #[test]
    fn lengths_and_counts_go_to_columns_and_back() {
        assert_eq!(from_count(to_column(20_000)), 20_000);
    }
}
