//! The methods that exist only over HTTP: `nudge.shutdown`, `nudge.forget` and `nudge.recover`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge::{MethodSpec, Result};
use nudge_client::RuntimeDir;
use nudge_core::once::OnceByKey;
use nudge_core::table::{MethodTable, NoParams, TableRow, TableService, answer_typed, build_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::keeper::{EndSummary, HintKeeper, KeptRecovery};
use super::open::OpenSources;
use super::rows::{PrimaryRows, leaving_error};
use super::time::SessionTime;

/// The method that ends the session.
pub const SHUTDOWN: &str = "nudge.shutdown";
/// The method that empties the kept hints.
pub const FORGET: &str = "nudge.forget";

/// The method that puts a backup in the place of the kept hints.
pub const RECOVER: &str = "nudge.recover";

const ABOUT: &str = "Ends the session: this server, and every other that stands in line for it.";
const ABOUT_FORGET: &str = "Empties what is kept for next time; what the session holds now is not kept any more.";
const ABOUT_RECOVER: &str = "Puts a backup in the place of the kept hints, and reads its hints into the session.";

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
                control.sources.forget_counts()?;
                Ok(ForgottenCount { forgotten })
            })
        },
    },
    &TableRow {
        method: MethodSpec::new(RECOVER, "Recover hints", ABOUT_RECOVER, build_schema::<HintRecoverParams>)
            .destructive()
            .idempotent(),
        run: |control, _, params| {
            answer_typed(params, |params: HintRecoverParams| {
                let KeptRecovery { hints, replaced } = control.keeper.recover_kept(&params.file)?;
                Ok(HintRecovery { hints, replaced })
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
    /// The file with the hints of a session that could not write its database.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<String>,
}

#[derive(Serialize)]
struct ForgottenCount {
    /// The number of hints that were kept.
    forgotten: usize,
}

/// Params of `nudge.recover`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HintRecoverParams {
    /// The absolute path of a backup.
    file: PathBuf,
}

#[derive(Serialize)]
struct HintRecovery {
    /// The number of kept hints after the recovery.
    hints: usize,
    /// The path where the replaced database is kept; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<PathBuf>,
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
        self.sources.write_counts();
        self.time.leave_time(true);
        let EndSummary { hints, kept, place, left } = self.keeper.summarize_end(self.sources.count_hints());
        self.stop.send_replace(true);
        let left = HintsLeft { hints, kept, file: place.clone().ok(), why: place.err(), left };
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
