//! `nudge.stats`

use nudge_core::suggest::{Counts, HourStats, STATS, SessionStats};
use nudge_core::table::{NoParams, Row, answer};
use serde::Serialize;

use crate::cache::Nudge;

pub(super) static ROW: Row<Nudge> =
    Row { method: STATS, run: |nudge, _, params| answer(params, |_: NoParams| Ok(nudge.stats())) };

/// Result of [`Nudge::stats`], counted since the store was made or was taken over by this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Number of live hints, variants counted.
    pub hints: usize,
    /// Number of calls of `get_hint` and `query` that found something.
    pub hits: u64,
    /// Totals of all sessions, and of suggestions without a session.
    #[serde(flatten)]
    pub all: Counts,
    /// The remembered client sessions, the last active one first.
    pub sessions: Vec<SessionStats>,
    /// The last 48 hours in which something was told or came of it, oldest first.
    pub hours: Vec<HourStats>,
}

impl Nudge {
    /// Tells how often hints were asked for and suggested, and the outcomes.
    pub fn stats(&self) -> Stats {
        let hints = self.store.counts(self.now()).iter().map(|(_, count)| count).sum();
        let (all, sessions, hours) = self.suggester.stats();
        Stats { hints, hits: self.hits(), all, sessions, hours }
    }
}
