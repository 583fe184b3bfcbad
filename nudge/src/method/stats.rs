//! `nudge.stats`

use nudge_core::clock::rfc3339;
use nudge_core::service::Method;
use nudge_core::table::{NoParams, Row, answer, schema};
use serde::Serialize;

use crate::cache::Nudge;

const ABOUT: &str = "How often hints were asked for and suggested, and what came of the suggestions.";

pub(super) static ROW: Row<Nudge> = Row {
    method: Method::new("nudge.stats", "Statistics", ABOUT, schema::<NoParams>).reads().quick(),
    run: |nudge, _, params| answer(params, |_: NoParams| Ok(nudge.stats())),
};

/// What came of suggestions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Hints that were suggested.
    pub suggestions: u64,
    /// Bytes of their value text.
    pub bytes: u64,
    /// Commands that worked and had been suggested to the client session that ran them.
    pub followed: u64,
    /// Those that failed.
    pub failed: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: Self) {
        self.suggestions += other.suggestions;
        self.bytes += other.bytes;
        self.followed += other.followed;
        self.failed += other.failed;
    }
}

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

/// One client session in [`Stats`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStats {
    /// What it calls itself.
    pub client_session: String,
    /// What was suggested to it.
    #[serde(flatten)]
    pub counts: Counts,
    /// When it was last told something, or told something.
    pub last_active: String,
}

impl Nudge {
    /// Says what the store was good for.
    pub fn stats(&self) -> Stats {
        let hints = self.store.counts(self.now()).iter().map(|(_, count)| count).sum();
        let shown = self.shown.lock();
        let (mut all, mut sessions) = (shown.gone, Vec::new());
        for (name, session) in shown.sessions() {
            all.add(session.counts);
            sessions.push((session.last, name, session.counts));
        }
        sessions.sort_by(|(a, a_name, _), (b, b_name, _)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
        let sessions = sessions.into_iter().map(|(last, name, counts)| SessionStats {
            client_session: name.to_owned(),
            counts,
            last_active: rfc3339::text(last),
        });
        Stats { hints, hits: self.hits(), all, sessions: sessions.collect() }
    }
}
