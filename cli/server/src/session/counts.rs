//! Counts, for each day, the lines that the session tells. If the session keeps its hints, adds the counts to those of
//! earlier sessions.

use std::sync::Arc;

use nudge::Result;
use nudge_app::days::DayLog;
use nudge_client::{LateHookCounter, RuntimeDir};
use nudge_core::clock::Clock;
use nudge_core::suggest::SuggestCounts;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};

use super::keeper::OFF;
use super::status::describe_hooks;

/// Counts by day. Each call passes the counts of suggestions since the call before.
pub struct DayCounter {
    clock: Arc<dyn Clock>,
    /// The runtime directory, in which hooks note that they were too late.
    runtime: RuntimeDir,
    /// True when the file keeps the counts of all sessions.
    is_kept: bool,
    /// Not locked during a write of the file, because `nudge.stats` must not wait for a disk.
    state: Mutex<CounterState>,
}

struct CounterState {
    hooks: LateHookCounter,
    /// The days of this session, without the counts that the file already has.
    unwritten: DayLog,
    /// The reason why the file could not be written.
    failed: Option<String>,
}

impl DayCounter {
    /// Starts to count. If the session `goes_on` from an earlier server, that server has counted the hooks so far.
    pub fn new(clock: Arc<dyn Clock>, runtime: RuntimeDir, is_kept: bool, goes_on: bool) -> Self {
        let hooks = LateHookCounter::begin(&runtime, !goes_on);
        let state = Mutex::new(CounterState { hooks, unwritten: DayLog::default(), failed: None });
        Self { clock, runtime, is_kept, state }
    }

    fn count(&self, new: SuggestCounts) -> MutexGuard<'_, CounterState> {
        let mut state = self.state.lock();
        let late = state.hooks.count_new(&self.runtime);
        state.unwritten.count(new, late, self.clock.now());
        state.unwritten.drop_old(&*self.clock);
        state
    }

    /// Adds the counts to the file, if there are any and the session keeps its hints.
    pub fn write(&self, new: SuggestCounts) {
        let mut state = self.count(new);
        if !self.is_kept || state.unwritten.is_empty() {
            return;
        }
        let days = std::mem::take(&mut state.unwritten);
        drop(state);
        let written = days.add_to_file(&*self.clock);
        let mut state = self.state.lock();
        let failed = written.err().map(|error| error.message().to_owned());
        if let Some(error) = &failed {
            state.unwritten.add_days(&days);
            if state.failed != failed {
                tracing::warn!(error, "the counts of the day are not kept");
            }
        }
        state.failed = failed;
    }

    /// Returns the members that the server adds to `nudge.stats`: the report on hooks, the last days, and the reason
    /// why days are missing.
    pub fn describe_stats(&self, new: SuggestCounts) -> Map<String, Value> {
        let state = self.count(new);
        let (unwritten, failed) = (state.unwritten.clone(), state.failed.clone());
        drop(state);
        let (mut days, why) = match DayLog::read() {
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

    /// Forgets the counts of all days, including those of this session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be removed.
    pub fn forget(&self, new: SuggestCounts) -> Result<()> {
        self.count(new).unwritten = DayLog::default();
        DayLog::forget()
    }
}
