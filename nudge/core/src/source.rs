//! Defines a source: it chooses the lines that an agent should be told, and says why, given the agent's context and the
//! last event.
//!
//! A source is a crate with one [`SourceSpec`]; the binary has one list of these specs. The specs are static, so a
//! PROXY, which opens no source, can still list the sources of the PRIMARY. The PRIMARY opens each source with a
//! [`SourceHost`]. The opened source runs until [`Source::close`]:
//!
//! 1. `open` takes at most 20 ms, because callers wait for it. It reads the data that the source stored, and starts no
//!    work.
//! 2. [`work`](Source::work) runs on its own thread if [`SourceSpec::works`] is true: it watches, computes and sends.
//! 3. [`tick`](Source::tick) runs every few seconds. Calls, and requests for [offers](Source::find_offers), come at any
//!    time and from any thread.
//! 4. `close` ends the source: afterwards it acknowledges no call.
//!
//! **The duties of a source.** A source acknowledges a change only after it has stored the change, inside the
//! [`Fence`], which checks that this process still holds the session's lock. It carries out a call with a key only once
//! ([`crate::once`]). It reports each change to the [`ChangeSink`]. It never lets a secret into a line, an event, a log
//! or a file.

mod alone;
mod log;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge_os::dir::{PrivateDir, UnfitDir, advise_on_disk, create_private};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::clock::{Clock, Millis};
use crate::context::EnvNames;
use crate::embed::ModelProvider;
use crate::error::{Error, Result};
use crate::service::{Caller, MethodSpec, Service};
use crate::settings::{Setting, SettingValues};
use crate::suggest::{CommandOutcome, OutcomeEffect, SourceOffers, SuggestRequest};

pub use alone::NoSession;
pub use log::{FieldChange, LoggedChange, TICKS_PER_MS};
pub use work::{SourceWorker, StopFlag, give_way, gives_way};

/// The description of a source, known without opening it.
#[derive(Debug)]
pub struct SourceSpec {
    /// A lower-case word, such as `records`: the source's methods are `nudge.records.*`, its tools `nudge_records_*`,
    /// its settings `records.*`, its commands `nudge records ...`. Only the hints, the oldest source, have no such
    /// prefix.
    pub name: &'static str,
    /// The methods that the source answers.
    pub methods: fn() -> Vec<&'static MethodSpec>,
    /// The line of the instructions that every agent reads over MCP; 160 bytes at most.
    pub guide: &'static str,
    /// The settings.
    pub settings: &'static [Setting],
    /// The resources that clients can read and watch by URI, if the source has any.
    pub resources: Option<&'static SourceResources>,
    /// The method that lists the source's contents. When not all lines fit, a hook tells the model the name of this
    /// method.
    pub list: &'static str,
    /// The environment variables of a caller on which any answer may depend. With every context, front ends send the
    /// variables that are set. [`Source::env_names`] returns the variables that depend on stored data; the server asks
    /// for their values when it needs them.
    pub env: &'static [&'static str],
    /// Is true when the command line may open the source in its own process if no server runs. The data is then in
    /// files that any process can read and write.
    pub alone: bool,
    /// The commands that consist of more than one call. They run in the process of the command line, also when a server
    /// runs.
    pub commands: &'static [LongCommand],
    /// Is true when the source needs a thread for [`Source::work`].
    pub works: bool,
    /// Opens the source, within 20 ms.
    pub open: fn(SourceHost<'_>) -> Result<Arc<dyn Source>>,
}

/// A command of a source that consists of more than one call, such as `nudge signals watch`. It may run and print
/// events until it is stopped.
#[derive(Debug)]
pub struct LongCommand {
    /// The name, the params and the texts, as for a method. Only the command line calls this row.
    pub row: MethodSpec,
    /// Runs the command, with the params as JSON.
    pub run: fn(&RawValue, &CommandHost<'_>) -> Result<()>,
}

/// An addition that the command line makes to a method's answer. It runs in the caller's process, because a server may
/// not do such work for a caller: for example, it may not send the user's texts to another machine.
#[derive(Debug)]
pub struct AnswerFinish {
    /// The boolean setting of the source that switches the addition on.
    pub setting: &'static str,
    /// Extends the answer, given the params and the answer. After a failure, the answer says what failed.
    pub run: fn(&Map<String, Value>, &mut Value, &CommandHost<'_>),
}

/// The functions and values that the command line gives a [`LongCommand`].
pub struct CommandHost<'a> {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Is set when the command must end: after Ctrl-C, or when the reader of its output has gone.
    pub stop: StopFlag,
    /// Prints an event: a line for people, which may hold any characters, and an object for programs.
    pub say: &'a (dyn Fn(&str, &Value) + Sync),
    /// Writes a setting of the source into the user's own settings file, given its name and its value. Tells the user
    /// when the new value takes effect only later.
    pub keep: &'a dyn Fn(&str, &str) -> Result<()>,
    /// Prints a text of several lines as one event.
    pub show: &'a dyn Fn(&str, &Value),
    /// Makes the host for opening the source in this process, without a server.
    pub open: &'a dyn Fn() -> Result<SourceHost<'static>>,
    /// Reads a setting that is a list. The setting may belong to any source. Returns an empty list when it is not set.
    pub list: &'a dyn Fn(&str) -> Result<Vec<String>>,
    /// Finds a program by its name on the user's search path.
    pub program: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Starts another command of the source in a process that continues after this process and its caller end.
    pub behind: &'a dyn Fn(&[&str]) -> Result<()>,
}

/// The resources of a source: one resource that lists names, and one for each name. Clients read them by calls of the
/// source's methods, so a PROXY can offer them too.
#[derive(Debug)]
pub struct SourceResources {
    /// URI of the list, such as `nudge://components`.
    pub list_uri: &'static str,
    /// Title of the list.
    pub list_title: &'static str,
    /// Description of the list.
    pub list_about: &'static str,
    /// The method without params that answers the list.
    pub list: &'static str,
    /// Returns the names in the result of `list`, in any order.
    pub names: fn(&RawValue) -> Vec<String>,
    /// The beginning of each item's URI, such as `nudge://component/`; the name follows, percent-encoded.
    pub item_uri: &'static str,
    /// The word for an item, such as `component`.
    pub item_name: &'static str,
    /// Title of an item.
    pub item_title: &'static str,
    /// Description of an item.
    pub item_about: &'static str,
    /// Returns the method that reads an item, and the params for a name.
    pub item: fn(&str) -> (&'static str, Value),
    /// Returns the part of an item's result that clients are shown.
    pub shown: fn(&RawValue) -> Option<Box<RawValue>>,
    /// A page about the good use of the source, for an agent that wants to read it; prompts do not carry this text.
    pub page: Option<&'static SourcePage>,
}

/// A text that comes with a source and never changes.
#[derive(Debug)]
pub struct SourcePage {
    /// The URI, such as `nudge://examples`.
    pub uri: &'static str,
    /// The name.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// The description.
    pub about: &'static str,
    /// Markdown.
    pub text: &'static str,
}

/// An open source.
pub trait Source: Service {
    /// Returns the offers that the source makes for this request, best first. The server asks all sources at once while
    /// a user waits for the prompt, so this must be fast and must not ask a model. The server holds no lock during the
    /// call. It drops an offer that comes after [`SuggestRequest::deadline`].
    ///
    /// The server uses at most [`SuggestRequest::limit`] offers with at most [`SuggestRequest::max_bytes`] in total.
    /// [`SourceOffers::omitted`] counts the offers that the source left out because of these limits.
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        let _ = request;
        SourceOffers::default()
    }

    /// Returns true when the value behind the offer with this id is now a secret. The server then never shows an
    /// earlier line of this offer again.
    fn is_secret(&self, id: &str) -> bool {
        let _ = id;
        false
    }

    /// Counts the outcome of a command for each item of the source that names the command.
    ///
    /// # Errors
    /// The error that prevented storing the count.
    fn note_outcome(&self, caller: Caller<'_>, ran: &CommandOutcome<'_>) -> Result<OutcomeEffect> {
        let _ = (caller, ran);
        Ok(OutcomeEffect::default())
    }

    /// Returns the environment variables that any answer can depend on.
    fn env_names(&self) -> EnvNames {
        EnvNames::default()
    }

    /// Returns true when the source holds data, or when the user has switched it on. The tools of a source that is not
    /// in use are not listed. The event loop calls this, so it must not block.
    fn in_use(&self) -> bool {
        true
    }

    /// Returns the source's members of `nudge.status`, named after the things that they count. Every status request
    /// calls this, so it should be quick.
    fn report_status(&self) -> Map<String, Value>;

    /// Returns the source's members of `nudge.stats`.
    fn report_stats(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Returns the last changes of the source's stored objects since a time, oldest first; when there are more than
    /// `limit`, the latest ones. A source without a change log returns nothing.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the log cannot be read.
    fn read_changes(&self, since: Millis, limit: usize) -> Result<Vec<LoggedChange>> {
        let _ = (since, limit);
        Ok(Vec::new())
    }

    /// Does overdue work, such as dropping expired data. Runs every few seconds, on a thread that may block.
    fn tick(&self, now: Millis) {
        let _ = now;
    }

    /// Works until `stop` is set. Runs once, on its own thread, after the server has begun to answer calls.
    fn work(&self, stop: &StopFlag) {
        let _ = stop;
    }

    /// Ends the source: afterwards it acknowledges no call. The stop flag of [`work`](Self::work) was set just before,
    /// but `work` may still run.
    fn close(&self) {}
}

/// The environment in which the server opens a source.
pub struct SourceHost<'a> {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The session that the source is opened for.
    pub session: SessionIdentity,
    /// The folder for the source's files.
    pub data: DataDir,
    /// The folder for files that the source can make again: any program may remove them at any time.
    pub cache: DataDir,
    /// Keeps this process from acknowledging a change that the next PRIMARY would not see.
    pub fence: Arc<dyn Fence>,
    /// The rows, for a source that keeps its state only for the session.
    pub session_rows: Arc<dyn SessionRows>,
    /// The rows that the source has stored in this session, in any order. The iterator ends early when the process
    /// gives up the session.
    pub rows: Box<dyn Iterator<Item = SessionRow> + 'a>,
    /// Receives the source's changes and reports them to clients.
    pub changes: Arc<dyn ChangeSink>,
    /// The model, if there is one.
    pub models: Arc<dyn ModelProvider>,
    /// The values of the source's own settings.
    pub settings: Arc<SettingValues>,
}

/// The identity of a session, the same for every PRIMARY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionIdentity {
    /// The random id; each session has its own.
    pub id: String,
    /// The time at which the session began.
    pub created_at: Millis,
}

/// The check at every commit that this process is still PRIMARY, for changes that a source stores in its own files.
/// [`SessionRows::write`] contains this check.
pub trait Fence: Send + Sync {
    /// Runs `keep`, which stores one change. Refuses when this process has lost the session's lock or is ending. A
    /// process that ends waits for a running `keep` before it releases the lock, so that the next PRIMARY sees the
    /// change.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it refuses; `keep` did not run, and a client of sessions sends the call to the next
    /// PRIMARY. Otherwise the errors of `keep`.
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// The state that a source keeps for its session, as rows. Only the next PRIMARY of the session reads the rows
/// ([`SourceHost::rows`]). A row survives the death of the process, but not of the machine.
pub trait SessionRows: Send + Sync {
    /// Stores changes in one transaction, inside the fence. Without changes, it only checks the rows.
    ///
    /// `all` gives every row of the source before the changes. It is called only when another program has removed or
    /// damaged the stored rows; the transaction then stores these rows too.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; the stored rows then stay as they were.
    fn write(&self, changes: &RowFeed<'_>, all: &RowFeed<'_>) -> Result<()>;

    /// Logs the number of rows that the source could not read.
    fn log_unreadable(&self, count: usize);
}

/// Gives changes of rows one by one, so that a large change never has all its rows in memory. Ends with the error of the
/// function that takes them. It may be called again.
pub type RowFeed<'a> = dyn Fn(&mut RowTaker<'_>) -> Result<()> + 'a;

/// Takes the next change of a [`RowFeed`].
pub type RowTaker<'a> = dyn FnMut(&RowChange) -> Result<()> + 'a;

/// A row that a source has stored for its session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The kind of row, as the source named it.
    pub kind: String,
    /// The name, unique within its kind.
    pub name: String,
    /// The content, in the source's own format.
    pub body: String,
}

/// A change of one row.
#[derive(Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The kind of row.
    pub kind: &'static str,
    /// The name, unique within its kind.
    pub name: String,
    /// The new content; `None` deletes the row.
    pub body: Option<String>,
}

impl RowChange {
    /// Makes the change that stores a row.
    pub fn put(kind: &'static str, name: impl Into<String>, body: String) -> Self {
        Self { kind, name: name.into(), body: Some(body) }
    }

    /// Makes the change that deletes a row. The row may be missing.
    pub fn delete(kind: &'static str, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), body: None }
    }
}

/// Receives changes, for `nudge watch` and for clients that subscribed.
pub trait ChangeSink: Send + Sync {
    /// Reports changes, in their order, after they are visible to every caller. Must be quick, and must not call a
    /// source.
    fn tell_changes(&self, changes: &[ChangeEvent]);

    /// Checks whether a value with a ttl outlives this session. Must be quick: a source calls it while it makes a
    /// change.
    ///
    /// # Errors
    /// The reason why the value ends with the session, for the caller: a clause without a full stop.
    fn check_keeping(&self) -> std::result::Result<(), String> {
        Err("it ends with this session at the latest".into())
    }
}

/// A change, as clients receive it.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeEvent {
    /// The source that changed.
    pub source: &'static str,
    /// A verb, such as `set` or `delete`.
    pub what: &'static str,
    /// The time of the change, RFC 3339.
    pub at: String,
    /// The client that made the change; absent when unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The resources of the source that the change touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<TouchedResource>,
    /// Further members: names and short values, without secrets. In a source with resources, `name` is the touched
    /// resource, because clients of a PROXY read from `name` which resource has changed.
    #[serde(flatten)]
    pub detail: Map<String, Value>,
}

/// A resource that a change touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedResource {
    /// The name, as in the list of the source's [`SourceResources`].
    pub resource: Arc<str>,
    /// Is true when the resource is new or gone, or has more or fewer parts than before.
    pub count_changed: bool,
}

/// The path of [`DataDir::unavailable`]. It lies below a file, so no program can make it.
const NOWHERE: &str = "/dev/null/nudge";

/// A folder for this user alone. The first use makes it.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// Names the folder, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Names a folder that cannot be made, for a user without a home folder. Nudge does not use a folder for temporary
    /// files instead, because the system clears it.
    pub fn unavailable() -> Self {
        Self::new(NOWHERE)
    }

    /// Returns the path, whether the folder exists or not.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder (mode 0700 on Unix) and returns its path without links. The folder may be a link to another
    /// folder of this user.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the folder cannot be made, has another owner, or is open to other users.
    pub fn create_folder(&self) -> Result<PathBuf> {
        if self.0.starts_with(NOWHERE) {
            return Err(Error::unavailable(
                "This user has no home folder; set HOME, or NUDGE_DATA_DIR and NUDGE_CACHE_DIR to folders of theirs.",
            ));
        }
        let unfit = |unfit: UnfitDir| {
            let because = unfit.with_remedy("set NUDGE_DATA_DIR to a folder of yours with mode 0700");
            Error::unavailable(format!("The folder {} {because}.", self.0.display()))
        };
        create_private(&self.0).map_err(|error| {
            let advice = advise_on_disk(&error).unwrap_or("make it writable");
            Error::unavailable(format!("The folder {} cannot be made ({error}); {advice}.", self.0.display()))
        })?;
        // On Windows `canonicalize` returns a form of path (`\\?\`) that some programs refuse.
        let real = if cfg!(unix) { self.0.canonicalize() } else { std::path::absolute(&self.0) };
        let real = real.map_err(|error| unfit(error.into()))?;
        PrivateDir::open(&real, false).map_err(unfit)?;
        Ok(real)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_data_folder_is_this_users_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (folder, link) = (place.join("a/b"), place.join("link"));
        assert_eq!(DataDir::new(&folder).create_folder().unwrap(), folder);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert_eq!(DataDir::new(&link).create_folder().unwrap(), folder, "moved to another disk by its user");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        let open = DataDir::new(&folder).create_folder().unwrap_err();
        assert_eq!(open.reason(), "E_UNAVAILABLE");
        let advice = "run `chmod 700` on it, or set NUDGE_DATA_DIR to a folder of yours with mode 0700.";
        assert!(open.message().ends_with(&format!("a/b is open to other users; {advice}")), "{open}");
        std::fs::write(place.join("file"), "").unwrap();
        assert!(DataDir::new(place.join("file")).create_folder().is_err());
        let nowhere = DataDir::new(DataDir::unavailable().path().join("brain")).create_folder().unwrap_err();
        assert!(nowhere.message().starts_with("This user has no home folder; set HOME, "), "{nowhere}");
    }
}
