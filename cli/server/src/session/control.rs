//! The methods that exist only over HTTP: `nudge.shutdown`, `nudge.forget`, `nudge.recover` and `nudge.change_log`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge::{Error, HINTS, MethodSpec, Millis, Result, parse_time};
use nudge_app::kept::log::HintChange;
use nudge_client::RuntimeDir;
use nudge_core::clock::rfc3339;
use nudge_core::once::OnceByKey;
use nudge_core::source::LoggedChange;
use nudge_core::table::{MethodTable, NoParams, TableRow, TableService, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::end_summary::EndSummary;
use super::keeper::{HintKeeper, KeptRecovery};
use super::open::OpenSources;
use super::rows::{PrimaryRows, leaving_error};
use super::time::SessionTime;

/// The method that ends the session.
pub const SHUTDOWN: &str = "nudge.shutdown";
/// The method that empties the kept hints.
pub const FORGET: &str = "nudge.forget";

/// The method that puts a backup in the place of the kept hints.
pub const RECOVER: &str = "nudge.recover";
/// The method that reads the change logs.
pub const CHANGE_LOG: &str = "nudge.change_log";

/// The most changes of an answer.
const MAX_CHANGES: usize = 1_000;

const ABOUT: &str = "Ends the session: this server, and every other that stands in line for it.";
const ABOUT_FORGET: &str = "Empties what is kept for next time; what the session holds now is not kept any more.";
const ABOUT_CHANGE_LOG: &str = "\
The last change of each kept hint and record that changed since a time, oldest first; of removed ones for 180 days.";
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
    &TableRow {
        method: MethodSpec::new(CHANGE_LOG, "Change log", ABOUT_CHANGE_LOG, build_schema::<ChangeLogParams>)
            .read_only(),
        run: |control, _, params| answer_typed(params, |params: ChangeLogParams| control.read_change_log(&params)),
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

/// Params of `nudge.change_log`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeLogParams {
    /// RFC 3339. Absent: from the first change.
    #[serde(default, deserialize_with = "wire::given")]
    since: Option<String>,
    /// The most changes, the latest (100; 1000 at most).
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

#[derive(Serialize)]
struct ChangeLogAnswer {
    changes: Vec<ChangeEntry>,
}

/// The last change of a stored object.
#[derive(Serialize)]
struct ChangeEntry {
    source: &'static str,
    /// `set` or `delete`.
    what: &'static str,
    /// The time, RFC 3339.
    at: String,
    /// The client that made the change; absent when unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    by: String,
    /// The names of a hint, or the `name` of an object of another source.
    #[serde(flatten)]
    names: Map<String, Value>,
    /// The changed fields; absent for a removed object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    /// The identity of the object on every machine, a ULID.
    object: String,
    /// The database in which the change was made.
    origin: String,
    #[serde(skip)]
    clock: i64,
}

impl ChangeEntry {
    fn new<'a>(source: &'static str, names: impl IntoIterator<Item = (&'a str, String)>, change: LoggedChange) -> Self {
        let names = names.into_iter().filter(|(_, name)| !name.is_empty());
        Self {
            source,
            what: if change.is_gone { "delete" } else { "set" },
            at: rfc3339::format_time(change.time()),
            names: names.map(|(field, name)| (field.to_owned(), name.into())).collect(),
            fields: change.list_changed().map(str::to_owned).collect(),
            by: change.author,
            object: change.object,
            origin: change.origin,
            clock: change.clock,
        }
    }
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
    fn read_change_log(&self, params: &ChangeLogParams) -> Result<ChangeLogAnswer> {
        let limit = params.limit.unwrap_or(100);
        if !(1..=MAX_CHANGES).contains(&limit) {
            return Err(Error::invalid(format!("`limit` is 1 to {MAX_CHANGES}; give another one.")));
        }
        let since: Millis = match &params.since {
            Some(text) => parse_time(text)
                .ok_or_else(|| Error::invalid("`since` is a time such as 2026-01-31T14:05:00Z; write it like that."))?,
            None => 0,
        };
        let hints = self.keeper.read_changes(since, limit)?.into_iter().map(|HintChange { name, logged }| {
            let names = [("component", name.component), ("key", name.key), ("variant", name.variant)];
            ChangeEntry::new(HINTS, names, logged)
        });
        let mut changes: Vec<_> = hints.collect();
        for (spec, source) in self.sources.iter() {
            let logged = source.read_changes(since, limit)?.into_iter();
            changes.extend(logged.map(|change| ChangeEntry::new(spec.name, [("name", change.name.clone())], change)));
        }
        changes.sort_by_key(|change| change.clock);
        changes.drain(..changes.len().saturating_sub(limit));
        Ok(ChangeLogAnswer { changes })
    }

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
