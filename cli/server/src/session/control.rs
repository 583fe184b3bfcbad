//! The methods that exist only over HTTP: `nudge.shutdown` and `nudge.forget`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge::{MethodSpec, Result};
use nudge_client::RuntimeDir;
use nudge_core::once::OnceByKey;
use nudge_core::table::{MethodTable, NoParams, TableRow, TableService, answer_typed, build_schema};
use serde::Serialize;
use tokio::sync::watch;

use super::keeper::{EndSummary, HintKeeper};
use super::open::OpenSources;
use super::rows::{PrimaryRows, leaving_error};
use super::time::SessionTime;

/// The method that ends the session.
pub const SHUTDOWN: &str = "nudge.shutdown";
/// The method that empties the kept hints.
pub const FORGET: &str = "nudge.forget";

const ABOUT: &str = "Ends the session: this server, and every other that stands in line for it.";
const ABOUT_FORGET: &str = "Empties what is kept for next time; what the session holds now is not kept any more.";

static TABLE: MethodTable<SessionControl> = MethodTable(&[
    &TableRow {
        // The method is vital, although it first writes the last changes, which may take long on a slow disk.
        method: MethodSpec::new(SHUTDOWN, "Stop the server", ABOUT, build_schema::<NoParams>)
            .destructive()
            .idempotent()
            .vital(),
        run: |control, _, params| answer_typed(params, |_: NoParams| control.shut_down()),
    },
    &TableRow {
        method: MethodSpec::new(FORGET, "Forget", ABOUT_FORGET, build_schema::<NoParams>).destructive().idempotent(),
        run: |control, _, params| {
            answer_typed(params, |_: NoParams| {
                let forgotten = control.keeper.forget_kept()?;
                control.sources.forget_days()?;
                Ok(ForgottenCount { forgotten })
            })
        },
    },
]);

#[derive(Serialize)]
struct StoppingAnswer {
    stopping: bool,
    /// The counts of the hints, if there are any.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    hints: Option<HintsLeft>,
}

#[derive(Serialize)]
struct HintsLeft {
    /// The number of hints that the session had.
    hints: usize,
    /// The number of these hints that are kept for later sessions.
    kept: usize,
    /// The file with the kept hints.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The reason why no hints are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize)]
struct ForgottenCount {
    /// The number of hints that the kept file had.
    forgotten: usize,
}

/// The service that ends the server's session.
pub struct SessionControl {
    /// The runtime directory.
    pub dir: RuntimeDir,
    /// The session's rows.
    pub rows: Arc<PrimaryRows>,
    /// The sources, which report the number of their hints.
    pub sources: Arc<OpenSources>,
    /// Keeps the hints for later sessions.
    pub keeper: Arc<HintKeeper>,
    /// The session's time, which is saved for the next session.
    pub time: Arc<SessionTime>,
    /// Becomes true when a caller ends the session.
    pub stop: watch::Sender<bool>,
    /// True after the first call of `nudge.shutdown`; a second call then does nothing.
    pub ended: AtomicBool,
}

impl SessionControl {
    fn shut_down(&self) -> Result<StoppingAnswer> {
        match self.rows.end_session(&self.dir) {
            // The rows are already closed: this process is about to leave, and the session may continue in another
            // process.
            None if !self.ended.load(Ordering::Relaxed) => return Err(leaving_error()),
            Some(Err(error)) => tracing::error!(error = error.message(), "the session was not ended cleanly"),
            None | Some(Ok(())) => {}
        }
        self.ended.store(true, Ordering::Relaxed);
        // No caller can change anything now. When the caller gets the answer, all files are written.
        self.keeper.flush();
        self.sources.write_days();
        self.time.leave_time(true);
        let EndSummary { hints, kept, place } = self.keeper.summarize_end(self.sources.count_hints());
        self.stop.send_replace(true);
        let left = HintsLeft { hints, kept, file: place.clone().ok(), why: place.err() };
        Ok(StoppingAnswer { stopping: true, hints: Some(left).filter(|left| left.hints > 0) })
    }
}

impl TableService for SessionControl {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // A repeated call does nothing.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}
