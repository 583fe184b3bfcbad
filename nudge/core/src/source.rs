//! Defines a source: it answers one question, given an agent's context and the last event: which lines should the agent
//! be told, and why?
//!
//! A source is a crate with one [`SourceSpec`], named in one list of the binary. The spec is static, so that a PROXY,
//! which opens nothing, can list the sources of the PRIMARY. The PRIMARY opens each with a [`SourceHost`]; the opened source
//! lives until [`Source::close`]:
//!
//! 1. `open`, within 20 ms: callers wait for it. It reads the data that it kept, and starts nothing.
//! 2. [`work`](Source::work) on a thread of its own, where the spec says that there is any: watch, compute, send.
//! 3. [`tick`](Source::tick) every few seconds, calls and [offers](Source::find_offers) at any time, from any thread.
//! 4. `close`: nothing is acknowledged afterwards.
//!
//! **The duties of a source.** It acknowledges a change only after it is kept, behind the [`Fence`], which knows that
//! the session's lock is still ours; it makes a call with a key once ([`crate::once`]); it tells of each change
//! ([`ChangeSink`]); it never lets a secret into a line, an event, a log or a file.

mod alone;
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
pub use work::{SourceWorker, StopFlag, give_way, gives_way};

/// The description of a source, known without opening it.
#[derive(Debug)]
pub struct SourceSpec {
    /// A lower-case word, such as `records`: its methods are `nudge.records.*`, its tools `nudge_records_*`, its
    /// settings `records.*`, its commands `nudge records ...`. The hints alone, which were there first, have no such
    /// prefix.
    pub name: &'static str,
    /// The methods that it answers.
    pub methods: fn() -> Vec<&'static MethodSpec>,
    /// The line of the instructions that every agent reads over MCP; 160 bytes at most.
    pub guide: &'static str,
    /// The settings.
    pub settings: &'static [Setting],
    /// The resources, read and watched by URI, if it has any.
    pub resources: Option<&'static SourceResources>,
    /// The method that lists its contents; hooks name it to the model when there was no room for all of them.
    pub list: &'static str,
    /// Environment variables of a caller that its answers depend on. Front ends send the ones that are set with every
    /// context; variables that depend on stored data are asked for instead ([`Source::env_names`]).
    pub env: &'static [&'static str],
    /// Is true when the command line may open it in its own process if no server runs: its data is in files that any
    /// process can read and write.
    pub alone: bool,
    /// The commands that are not one call; they run in the process of the command line, with a server or without.
    pub commands: &'static [LongCommand],
    /// Is true when [`Source::work`] has anything to do.
    pub works: bool,
    /// Opens it, within 20 ms.
    pub open: fn(SourceHost<'_>) -> Result<Arc<dyn Source>>,
}

/// A command of a source that is not one call. It may keep running and print events until it is stopped: `nudge signals
/// watch`.
#[derive(Debug)]
pub struct LongCommand {
    /// The name, params and words, as for a method; only the command line calls it.
    pub row: MethodSpec,
    /// Runs it, with the params as JSON.
    pub run: fn(&RawValue, &CommandHost<'_>) -> Result<()>,
}

/// The part that the command line adds to a method's answer, in its own process: work that a server may not do for a
/// caller, such as sending its user's texts elsewhere.
#[derive(Debug)]
pub struct AnswerFinish {
    /// The switch among the settings of the source that says so.
    pub setting: &'static str,
    /// Adds it, from the params and the answer. A failure is noted in the answer.
    pub run: fn(&Map<String, Value>, &mut Value, &CommandHost<'_>),
}

/// The things that the command line lends a [`LongCommand`].
pub struct CommandHost<'a> {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Set when it is to end: by Ctrl-C, or when its reader has gone.
    pub stop: StopFlag,
    /// Prints an event: a line for people, which may hold anything, and an object for programs.
    pub say: &'a (dyn Fn(&str, &Value) + Sync),
    /// Writes the value of one of the source's settings into the user's own file of settings, and tells the user if
    /// something keeps it from counting at once.
    pub keep: &'a dyn Fn(&str, &str) -> Result<()>,
    /// Says a text of several lines, each for itself.
    pub show: &'a dyn Fn(&str, &Value),
    /// The things that the source would be lent in this process, alone.
    pub open: &'a dyn Fn() -> Result<SourceHost<'static>>,
    /// Reads a list among all of the user's settings, those of other parts too; empty for none.
    pub list: &'a dyn Fn(&str) -> Result<Vec<String>>,
    /// Finds a program by its name, wherever its user has it.
    pub program: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Starts another command of the source in a process that outlives this one and its caller.
    pub behind: &'a dyn Fn(&[&str]) -> Result<()>,
}

/// The resources of a source, read by calls to its methods so that a PROXY can offer them too: one that lists names,
/// and one for each name.
#[derive(Debug)]
pub struct SourceResources {
    /// URI of the list, such as `nudge://components`.
    pub list_uri: &'static str,
    /// Title of the list.
    pub list_title: &'static str,
    /// Description of the list.
    pub list_about: &'static str,
    /// The method without params that answers it.
    pub list: &'static str,
    /// The names in its result, in any order.
    pub names: fn(&RawValue) -> Vec<String>,
    /// The beginning of the URI of each, such as `nudge://component/`; the name follows, percent-encoded.
    pub item_uri: &'static str,
    /// The word for one, such as `component`.
    pub item_name: &'static str,
    /// Title of one.
    pub item_title: &'static str,
    /// Description of one.
    pub item_about: &'static str,
    /// The method that answers one, and its params for a name.
    pub item: fn(&str) -> (&'static str, Value),
    /// The part of its result that is shown.
    pub shown: fn(&RawValue) -> Option<Box<RawValue>>,
    /// A page that an agent may read when it wants to know how to use the source well; a prompt need not carry it.
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
    /// Returns the offers that it would make now, best first. Every source is asked at once, and somebody's prompt
    /// waits: it may not be slow or ask a model. An offer that comes after [`SuggestRequest::deadline`] is not told; only
    /// the first of those that are asked is waited for. The asker holds no lock. At most [`SuggestRequest::limit`] offers
    /// of [`SuggestRequest::max_bytes`] in all are of use; [`SourceOffers::omitted`] counts those that these hold back.
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        let _ = request;
        SourceOffers::default()
    }

    /// Returns true when the value behind an offer with this id is a secret now. Then its line, which was told earlier,
    /// is never shown again.
    fn is_secret(&self, id: &str) -> bool {
        let _ = id;
        false
    }

    /// Counts how a command ended.
    ///
    /// # Errors
    /// Whatever keeps the count from being kept.
    fn note_outcome(&self, caller: Caller<'_>, ran: &CommandOutcome<'_>) -> Result<OutcomeEffect> {
        let _ = (caller, ran);
        Ok(OutcomeEffect::default())
    }

    /// The environment variables that any answer can depend on.
    fn env_names(&self) -> EnvNames {
        EnvNames::default()
    }

    /// Returns true when it holds anything, or its user has switched it on: the tools of a source that is not in use are
    /// not listed.
    /// Called on the event loop, so it may not wait.
    fn in_use(&self) -> bool {
        true
    }

    /// Returns its members of `nudge.status`, named after the things that they count. It is called on every status
    /// request, so it should be quick.
    fn report_status(&self) -> Map<String, Value>;

    /// Returns its members of `nudge.stats`.
    fn report_stats(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Does overdue work, such as dropping expired data. Called every few seconds, on a thread where it may wait.
    fn tick(&self, now: Millis) {
        let _ = now;
    }

    /// Works until `stop` is set. Called once, on a thread of its own, when the server answers calls.
    fn work(&self, stop: &StopFlag) {
        let _ = stop;
    }

    /// Ends the source: it acknowledges nothing any more. [`work`](Self::work) was told to stop just before, and may
    /// not have returned yet.
    fn close(&self) {}
}

/// The things that the server lends a source.
pub struct SourceHost<'a> {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The session that it is opened for.
    pub session: SessionIdentity,
    /// The folder for its files.
    pub data: DataDir,
    /// The folder for files that any program may remove at any time, as they can be made again.
    pub cache: DataDir,
    /// Keeps this process from acknowledging a change that the next PRIMARY would not see.
    pub fence: Arc<dyn Fence>,
    /// The journal, for a source with state that lives as long as the session.
    pub journal: Arc<dyn RecordJournal>,
    /// The records that the source has left in the journal, in order. They end early when the process gives the session
    /// up.
    pub records: Box<dyn Iterator<Item = Vec<u8>> + 'a>,
    /// Takes its changes, to tell of them.
    pub changes: Arc<dyn ChangeSink>,
    /// The model, if there is one.
    pub models: Arc<dyn ModelProvider>,
    /// The values of its own settings.
    pub settings: Arc<SettingValues>,
}

/// The identity of a session, the same for every PRIMARY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionIdentity {
    /// Random, one per session.
    pub id: String,
    /// When it began.
    pub created_at: Millis,
}

/// The fence around the changes that a source keeps in files of its own. [`RecordJournal::append`] has it built in.
pub trait Fence: Send + Sync {
    /// Runs `keep`, which keeps one change, unless this process has lost the session's lock or is leaving. A process
    /// that leaves waits for its end before it gives the lock back, so that the next PRIMARY sees the change.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` without running `keep`; a client that knows of sessions asks the next PRIMARY then. Else the
    /// errors of `keep`.
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// The session's journal as one source sees it. Only the next PRIMARY of the session gets the records back
/// ([`SourceHost::records`]). An append survives the death of the process, not of the machine.
pub trait RecordJournal: Send + Sync {
    /// Notes for the log that so many of the records could not be read.
    fn passed_over(&self, unreadable: usize);

    /// Appends a record, behind the fence.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; then nothing of it stays.
    fn append(&self, record: &[u8]) -> Result<()>;

    /// Returns true when the source should [begin anew](Self::begin_anew): its share has grown long, or the file was
    /// shortened.
    fn is_long(&self) -> bool;

    /// Replaces all that this source has recorded, and nothing of any other. When that fails, the old records stay.
    fn begin_anew(&self, records: &[Vec<u8>]);
}

/// Receives changes, for `nudge watch` and for clients that subscribed.
pub trait ChangeSink: Send + Sync {
    /// Tells of changes that everybody can see now, in their order. Quick; calls no source.
    fn tell_changes(&self, changes: &[ChangeEvent]);

    /// Answers whether what has a duration is kept for next time. Quick; it is asked while a change is made.
    ///
    /// # Errors
    /// The reason for its caller when it is not, as a clause without a full stop.
    fn check_keeping(&self) -> std::result::Result<(), String> {
        Err("it ends with this session at the latest".into())
    }
}

/// A change, as it is told.
#[derive(Debug, Clone, Serialize)]
pub struct ChangeEvent {
    /// The source that changed.
    pub source: &'static str,
    /// A verb, such as `set` or `delete`.
    pub what: &'static str,
    /// When, RFC 3339.
    pub at: String,
    /// The client that made it; absent when unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The resources of the source that it touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<TouchedResource>,
    /// Further members: names and short values, without secrets. In a source with resources `name` is the resource
    /// that was touched: by it clients of a PROXY hear which.
    #[serde(flatten)]
    pub detail: Map<String, Value>,
}

/// A resource that a change touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchedResource {
    /// The name, as in the list of the source's [`SourceResources`].
    pub resource: Arc<str>,
    /// Is true when it has more or fewer parts than before, or is new or gone.
    pub count_changed: bool,
}

/// The path of [`DataDir::unavailable`]: below a file, so that no program can make it.
const NOWHERE: &str = "/dev/null/nudge";

/// A folder that is made when it is first needed, for this user alone.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// The folder; it need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// A folder that cannot be made, for a user without a home: nothing is kept in a place that the system clears.
    pub fn unavailable() -> Self {
        Self::new(NOWHERE)
    }

    /// The path, whether the folder is there or not.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it, with mode 0700 where there are modes, and returns its path without links. A link to a folder of
    /// the user's own is followed.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it cannot be made, belongs to another user, or is open to others.
    pub fn create_folder(&self) -> Result<PathBuf> {
        if self.0.starts_with(NOWHERE) {
            return Err(Error::unavailable(
                "This user has no home folder; set HOME, or NUDGE_DATA_DIR and NUDGE_CACHE_DIR to folders of theirs.",
            ));
        }
        let unfit = |unfit: UnfitDir| {
            let advice = "set NUDGE_DATA_DIR to a folder of yours with mode 0700";
            Error::unavailable(format!("The folder {} {unfit}; {advice}.", self.0.display()))
        };
        create_private(&self.0).map_err(|error| {
            let advice = advise_on_disk(&error).unwrap_or("make it writable");
            Error::unavailable(format!("The folder {} cannot be made ({error}); {advice}.", self.0.display()))
        })?;
        // Elsewhere a path without links has a form that not every program takes.
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
        let advice = "run `chmod 700` on it; set NUDGE_DATA_DIR to a folder of yours with mode 0700.";
        assert!(open.message().ends_with(&format!("a/b is open to other users; {advice}")), "{open}");
        std::fs::write(place.join("file"), "").unwrap();
        assert!(DataDir::new(place.join("file")).create_folder().is_err());
        let nowhere = DataDir::new(DataDir::unavailable().path().join("brain")).create_folder().unwrap_err();
        assert!(nowhere.message().starts_with("This user has no home folder; set HOME, "), "{nowhere}");
    }
}
