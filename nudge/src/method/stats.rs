//! `nudge.stats`

use nudge_core::suggest::{Counts, STATS, SessionStats};
use nudge_core::table::{NoParams, Row, answer};
use serde::Serialize;

use crate::cache::Nudge;

pub(super) static ROW: Row<Nudge> =
    Row { method: STATS, run: |nudge, _, params| answer(params, |_: NoParams| Ok(nudge.stats())) };

/// Result of [`Nudge::stats`]: since the store was made, or was taken over by the process that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Live hints, variants counted.
    pub hints: usize,
    /// Calls of `get_hint` and `query` that found something.
    pub hits: u64,
    /// Of all the sessions below, and of suggestions to nobody in particular.
    #[serde(flatten)]
    pub all: Counts,
    /// The client sessions that are remembered, the last active one first.
    pub sessions: Vec<SessionStats>,
}

impl Nudge {
    /// Says what the store was good for.
    pub fn stats(&self) -> Stats {
        let hints = self.store.counts(self.now()).iter().map(|(_, count)| count).sum();
        let (all, sessions) = self.suggester.stats();
        Stats { hints, hits: self.hits(), all, sessions }
    }
}
