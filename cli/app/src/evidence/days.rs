//! The counts of each day.

use chrono::{DateTime, Local, TimeZone};
use nudge::Millis;
use nudge_core::clock::Clock;
use nudge_core::suggest::SuggestCounts;
use serde::{Deserialize, Serialize};

/// The number of days that are kept and `nudge.stats` returns, today included.
const KEPT_DAYS: Millis = 30;
const DAY_MS: Millis = 86_400_000;
/// The most days in a log. It has more than `KEPT_DAYS` days only while the clock's time is not plausible.
const MAX_DAYS: usize = 60;

/// A day in the answer of `nudge.stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayStats {
    /// The date in the time zone of the server, such as `2026-01-31`.
    pub day: String,
    /// The lines that were told on this day, and the outcomes that were reported on this day.
    #[serde(flatten)]
    pub counts: SuggestCounts,
    /// The number of hooks that were too late.
    pub late: u64,
}

/// The days that have counts, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayLog {
    days: Vec<DayStats>,
}

impl DayLog {
    /// Lists the days, oldest first.
    pub(super) fn list_days(&self) -> &[DayStats] {
        &self.days
    }

    /// Returns true when there is no day.
    pub fn is_empty(&self) -> bool {
        self.days.is_empty()
    }

    /// Adds counts to the day of the time `now`.
    pub fn count(&mut self, counts: SuggestCounts, late: u64, now: Millis) {
        if counts != SuggestCounts::default() || late > 0 {
            self.add_day(DayStats { day: name_day(&Local, now), counts, late });
        }
    }

    /// Adds the days of another log.
    pub fn add_days(&mut self, other: &Self) {
        other.days.iter().cloned().for_each(|day| self.add_day(day));
    }

    /// Adds the counts of a day.
    pub(super) fn add_day(&mut self, new: DayStats) {
        match self.days.binary_search_by(|known| known.day.cmp(&new.day)) {
            Ok(index) => {
                let known = &mut self.days[index];
                known.counts.add_counts(new.counts);
                known.late = known.late.saturating_add(new.late);
            }
            Err(index) => self.days.insert(index, new),
        }
    }

    /// Drops days that are too old according to the plausible time, which cannot jump. If the clock was ahead, there
    /// may be days after today; their counts become counts of today.
    pub fn drop_old(&mut self, clock: &dyn Clock) {
        let today = name_day(&Local, clock.now());
        let over = name_day(&Local, clock.plausible_time() - KEPT_DAYS * DAY_MS);
        self.days.retain(|day| day.day > over);
        while let Some(day) = self.days.pop_if(|day| day.day > today) {
            self.add_day(DayStats { day: today.clone(), ..day });
        }
        while self.days.len() > MAX_DAYS
            && let (Some(newest), Some(before)) = (self.days.pop(), self.days.last())
        {
            self.add_day(DayStats { day: before.day.clone(), ..newest });
        }
    }

    /// Drops all days except the last `KEPT_DAYS`, and returns those.
    pub fn into_last_days(mut self, clock: &dyn Clock) -> Vec<DayStats> {
        self.drop_old(clock);
        let over = name_day(&Local, clock.now() - KEPT_DAYS * DAY_MS);
        self.days.retain(|day| day.day > over);
        self.days
    }
}

/// Returns the date of a time in a time zone.
fn name_day<Z: TimeZone<Offset: std::fmt::Display>>(zone: &Z, time: Millis) -> String {
    DateTime::from_timestamp_millis(time)
        .expect("a clock stays within the calendar")
        .with_timezone(zone)
        .format("%Y-%m-%d")
        .to_string()
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;
    use nudge::ManualClock;

    use super::*;

    const START_MS: Millis = 1_767_225_600_000;

    fn told(suggestions: u64) -> SuggestCounts {
        SuggestCounts { suggestions, ..SuggestCounts::default() }
    }

    /// A clock that is `ahead_ms` milliseconds ahead of the plausible time.
    struct AheadClock {
        clock: ManualClock,
        ahead_ms: Millis,
    }

    impl Clock for AheadClock {
        fn now(&self) -> Millis {
            self.clock.now() + self.ahead_ms
        }

        fn plausible_time(&self) -> Millis {
            self.clock.now()
        }
    }

    fn sum(log: &DayLog) -> u64 {
        log.days.iter().map(|day| day.counts.suggestions + day.late).sum()
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let moment = nudge::parse_time("2026-12-31T23:30:00Z").unwrap();
        for (hours, day) in [(0, "2026-12-31"), (1, "2027-01-01"), (-5, "2026-12-31")] {
            assert_eq!(name_day(&FixedOffset::east_opt(hours * 3600).unwrap(), moment), day);
        }
    }

    #[test]
    fn a_day_has_the_sum_of_its_counts_and_days_without_any_are_left_out() {
        let (clock, mut log, mut other) = (ManualClock::new(START_MS), DayLog::default(), DayLog::default());
        log.count(SuggestCounts::default(), 0, START_MS);
        assert!(log.is_empty());
        log.count(told(2), 0, START_MS + 2 * DAY_MS);
        log.count(told(1), 1, START_MS);
        other.count(told(4), 1, START_MS);
        other.count(told(0), 3, START_MS + DAY_MS);
        log.add_days(&other);
        clock.advance_by(2 * DAY_MS);
        let days = log.into_last_days(&clock);
        let rows: Vec<_> = days.iter().map(|day| (&*day.day, day.counts.suggestions, day.late)).collect();
        assert_eq!(rows, [("2026-01-01", 5, 2), ("2026-01-02", 0, 3), ("2026-01-03", 2, 0)]);
    }

    #[test]
    fn thirty_days_are_told() {
        let mut log = DayLog::default();
        (0..100).for_each(|day| log.count(told(1), 0, START_MS + day * DAY_MS));
        let days = log.into_last_days(&ManualClock::new(START_MS + 99 * DAY_MS));
        assert_eq!((days.len(), &*days[0].day, &*days[29].day), (30, "2026-03-12", "2026-04-10"));
    }

    #[test]
    fn a_clock_that_jumps_destroys_no_day_and_makes_no_hundreds() {
        let mut clock = AheadClock { clock: ManualClock::new(START_MS + 29 * DAY_MS), ahead_ms: 0 };
        let mut log = DayLog::default();
        (0..30).for_each(|day| log.count(told(1), 0, START_MS + day * DAY_MS));
        for jump in 0..500 {
            clock.ahead_ms = jump * 400 * DAY_MS;
            log.count(told(1), 0, clock.now());
            log.drop_old(&clock);
            assert!(log.days.len() <= MAX_DAYS);
        }
        assert_eq!((sum(&log), &*log.days[0].day), (530, "2026-01-01"));
        clock.ahead_ms = 0;
        let days = log.into_last_days(&clock);
        assert_eq!((days.len(), days[0].counts.suggestions, days[29].counts.suggestions), (30, 1, 501));
    }
}
