//! Counts the lines that the session tells, for each day and for each fact. If the session keeps its hints, adds the
//! counts to those of earlier sessions.

use std::sync::Arc;

use nudge::Result;
use nudge_app::evidence::{DayLog, EvidenceStore};
use nudge_client::{LateHookCounter, RuntimeDir};
use nudge_core::clock::Clock;
use nudge_core::source::DataDir;
use nudge_core::suggest::NewCounts;
use nudge_core::suggest::evidence::FactEvidence;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};

use super::keeper::OFF;
use super::status::describe_hooks;

/// Counts by day and by fact. Each call passes the counts of suggestions since the call before.
pub struct SessionCounts {
    clock: Arc<dyn Clock>,
    store: EvidenceStore,
    /// The runtime directory, in which hooks note that they were too late.
    runtime: RuntimeDir,
    /// True when the database keeps the counts of all sessions.
    is_kept: bool,
    /// Not locked during a write of the database, because `nudge.stats` must not wait for a disk.
    state: Mutex<CounterState>,
}

struct CounterState {
    hooks: LateHookCounter,
    /// The days of this session, without the counts that the database already has.
    unwritten: DayLog,
    /// The counts by fact that the database does not have yet. Empty if the session keeps nothing.
    evidence: FactEvidence,
    /// The reason why the database could not be written.
    failed: Option<String>,
}

impl SessionCounts {
    /// Starts to count. If the session `goes_on` from an earlier server, that server has counted the hooks so far.
    pub fn new(clock: Arc<dyn Clock>, data: DataDir, runtime: RuntimeDir, is_kept: bool, goes_on: bool) -> Self {
        let hooks = LateHookCounter::begin(&runtime, !goes_on);
        let (unwritten, evidence) = (DayLog::default(), FactEvidence::default());
        let state = Mutex::new(CounterState { hooks, unwritten, evidence, failed: None });
        let store = EvidenceStore::new(data, Arc::clone(&clock));
        Self { clock, store, runtime, is_kept, state }
    }

    fn count(&self, new: NewCounts) -> MutexGuard<'_, CounterState> {
        let mut state = self.state.lock();
        let late = state.hooks.count_new(&self.runtime);
        state.unwritten.count(new.all, late, self.clock.now());
        if self.is_kept {
            state.evidence.add_evidence(new.evidence);
        }
        state.unwritten.drop_old(&*self.clock);
        state
    }

    /// Adds the counts to the database, if there are any and the session keeps its hints.
    pub fn write(&self, new: NewCounts) {
        let mut state = self.count(new);
        if !self.is_kept || state.unwritten.is_empty() && state.evidence.is_empty() {
            return;
        }
        let (days, evidence) = (std::mem::take(&mut state.unwritten), std::mem::take(&mut state.evidence));
        drop(state);
        let written = self.store.add_counts(&days, &evidence);
        let mut state = self.state.lock();
        let failed = written.err().map(|error| error.message().to_owned());
        if let Some(error) = &failed {
            state.unwritten.add_days(&days);
            state.evidence.add_evidence(evidence);
            if state.failed != failed {
                tracing::warn!(error, "the counts are not kept");
            }
        }
        state.failed = failed;
    }

    /// Returns the members that the server adds to `nudge.stats`: the report on hooks, the last days, and the reason
    /// why days are missing.
    pub fn describe_stats(&self, new: NewCounts) -> Map<String, Value> {
        let state = self.count(new);
        let (unwritten, failed) = (state.unwritten.clone(), state.failed.clone());
        drop(state);
        let (mut days, why) = match self.store.read_days() {
            _ if !self.is_kept => (DayLog::default(), Some(OFF.to_owned())),
            Ok(days) => (days, failed),
            Err(error) => (DayLog::default(), Some(error.message().to_owned())),
        };
        days.add_days(&unwritten);
        let mut members: Map<_, _> = describe_hooks(&self.runtime).into_iter().collect();
        members.insert("days".to_owned(), json!(days.into_last_days(&*self.clock)));
        if let Some(why) = why {
            let why = why.trim_end_matches('.');
            members.insert("days_note".into(), format!("only the days of this session are counted: {why}").into());
        }
        members
    }

    /// Forgets all counts, including those of this session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be removed.
    pub fn forget(&self, new: NewCounts) -> Result<()> {
        let mut state = self.count(new);
        (state.unwritten, state.evidence) = (DayLog::default(), FactEvidence::default());
        drop(state);
        self.store.forget()
    }
}
