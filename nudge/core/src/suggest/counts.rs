//! Counts the suggestions and their outcome.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize, Serializer};

use super::evidence::FactEvidence;
use crate::clock::{Millis, rfc3339};

const HOUR_MS: Millis = 3_600_000;
/// The most hours that are remembered. Hours without counts are not remembered.
const MAX_HOURS: usize = 48;

/// The outcome of suggestions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestCounts {
    /// The number of suggestions made.
    pub suggestions: u64,
    /// The bytes of the suggestions.
    pub bytes: u64,
    /// The commands that worked in a client session after this session was told to run them.
    pub followed: u64,
    /// The commands that failed in a client session after this session was told to run them.
    pub failed: u64,
}

impl SuggestCounts {
    /// Adds other counts to these.
    pub fn add_counts(&mut self, other: Self) {
        self.suggestions = self.suggestions.saturating_add(other.suggestions);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.followed = self.followed.saturating_add(other.followed);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

/// The counts since they were last taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewCounts {
    /// The outcome of all suggestions.
    pub all: SuggestCounts,
    /// The counts by fact and client session.
    pub evidence: FactEvidence,
}

/// A client session in the answer of `nudge.stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStats {
    /// The name that the agent gives the session.
    pub client_session: String,
    /// The outcome of the session's suggestions.
    #[serde(flatten)]
    pub counts: SuggestCounts,
    /// The time at which the session last asked for suggestions or reported an outcome.
    pub last_active: String,
}

/// An hour in the answer of `nudge.stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HourStats {
    /// The beginning of the hour.
    #[serde(serialize_with = "in_text")]
    pub since: Millis,
    /// The lines that were told in this hour, and the outcomes that were reported in it.
    #[serde(flatten)]
    pub counts: SuggestCounts,
}

// serde requires this signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn in_text<S: Serializer>(time: &Millis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339::format_time(*time))
}

/// The counts of the last hours.
#[derive(Default)]
pub(super) struct RecentHours {
    /// The hours with counts, oldest first.
    hours: VecDeque<HourStats>,
    /// The counts that were not taken yet.
    new: SuggestCounts,
}

impl RecentHours {
    pub fn add_counts(&mut self, counts: SuggestCounts, now: Millis) {
        if counts == SuggestCounts::default() {
            return;
        }
        self.new.add_counts(counts);
        let since = now - now.rem_euclid(HOUR_MS);
        match self.hours.back_mut() {
            // After the clock was set back, the counts go to the last known hour.
            Some(last) if last.since >= since => last.counts.add_counts(counts),
            _ => {
                if self.hours.len() == MAX_HOURS {
                    self.hours.pop_front();
                }
                self.hours.push_back(HourStats { since, counts });
            }
        }
    }

    /// Returns the counts since the last call.
    pub fn take_new(&mut self) -> SuggestCounts {
        std::mem::take(&mut self.new)
    }

    pub fn to_stats(&self) -> Vec<HourStats> {
        self.hours.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_with_something_in_them_are_remembered() {
        let (mut hours, counts) =
            (RecentHours::default(), SuggestCounts { suggestions: 1, ..SuggestCounts::default() });
        hours.add_counts(SuggestCounts::default(), 0);
        assert_eq!(hours.to_stats(), []);
        for now in [5 * HOUR_MS, 6 * HOUR_MS - 1, 6 * HOUR_MS, 9 * HOUR_MS + 7, 8 * HOUR_MS] {
            hours.add_counts(counts, now);
        }
        let told: Vec<_> =
            hours.to_stats().iter().map(|hour| (hour.since / HOUR_MS, hour.counts.suggestions)).collect();
        assert_eq!(told, [(5, 2), (6, 1), (9, 2)]);
        assert_eq!((hours.take_new().suggestions, hours.take_new().suggestions), (5, 0));
        (0..100).for_each(|hour| hours.add_counts(counts, (10 + hour) * HOUR_MS));
        assert_eq!((hours.to_stats().len(), hours.to_stats()[0].since), (MAX_HOURS, 62 * HOUR_MS));
    }
}
