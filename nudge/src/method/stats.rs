//! `nudge.stats`: counts of suggestions and outcomes.

use nudge_core::suggest::{HourStats, STATS, SessionStats, SuggestCounts};
use nudge_core::table::{NoParams, TableRow, answer_typed};
use serde::Serialize;

use crate::cache::Nudge;

pub(super) static ROW: TableRow<Nudge> =
    TableRow { method: STATS, run: |nudge, _, params| answer_typed(params, |_: NoParams| Ok(nudge.stats())) };

/// Result of [`Nudge::stats`]. The counts begin when the store was made, or when this process became PRIMARY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HintStats {
    /// The number of live hints; each variant counts.
    pub hints: usize,
    /// The number of calls of `get_hint` and `query` that found a hint.
    pub hits: u64,
    /// The counts of all client sessions together, and of suggestions without a client session.
    #[serde(flatten)]
    pub all: SuggestCounts,
    /// The remembered client sessions, the last active one first.
    pub sessions: Vec<SessionStats>,
    /// The last 48 hours in which a hint was suggested or a suggestion had an outcome, oldest first.
    pub hours: Vec<HourStats>,
}

impl Nudge {
    /// Returns the number of lookups and suggestions, and the outcomes.
    pub fn stats(&self) -> HintStats {
        let hints = self.store.count_live(self.now()).iter().map(|(_, count)| count).sum();
        let (all, sessions, hours) = self.suggester.collect_stats();
        HintStats { hints, hits: self.hit_count(), all, sessions, hours }
    }
}
