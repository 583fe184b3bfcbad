//! Keeps a root up to date: its index follows the files.
//!
//! Readers share the index. They wait for parsing only of files that their answer is about: a file that differs from
//! the index is read again if that is quick. A single thread does all other work (`work`). The files on disk are the
//! truth, and an answer that may be older says so.

mod progress;
pub mod state;
pub mod watch;
mod work;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use nudge_code_index::{FileFacts, Skip, extract, hash, is_manifest};
use nudge_core::clock::{Clock, Millis, rfc3339};
use nudge_core::source::DataDir;
use nudge_secrets::SecretGuard;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use serde::Serialize;

use crate::cache::{CachedFile, Change};
use crate::coverage::CoverageReader;
use crate::root::ProjectRoot;
use crate::stamp::{self, MarkedContent};
use crate::walk::FileFinder;
use state::{LastRead, ReadResult, RootState};
use watch::{NewsInbox, WatchMode};
pub use work::RootWorker;

/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 512 << 10;
/// The longest file that is parsed while a caller waits, and the longest time for all such parsing in one call.
const MAX_AT_ONCE_BYTES: u64 = 64 << 10;
/// The most files that wait for a later event (see [`LiveRoot::note_owed`]).
const MAX_OWED: usize = 100;
const AT_ONCE: Duration = Duration::from_millis(60);
/// The time for which an index counts as complete after a walk, if the system reports no changes.
const LOOK_HOLDS_NS: u64 = 5_000_000_000;
/// The most files that are read to find out whether a definition is gone.
const MAX_UNREAD: usize = 20;

/// The relation of the index to a file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFreshness {
    /// The index agrees.
    Yes,
    /// The index agrees; the file was just read for that.
    Reindexed,
    /// The file differs, and was not read yet.
    No,
}

impl Serialize for FileFreshness {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Yes => serializer.serialize_bool(true),
            Self::Reindexed => serializer.serialize_str("reindexed"),
            Self::No => serializer.serialize_bool(false),
        }
    }
}

/// Says how current an answer is.
#[derive(Debug, Clone, Serialize)]
pub struct AsOf {
    /// The time of the last read of a file; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_at: Option<String>,
    /// The commit of HEAD, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The number of changes that are not processed yet.
    pub pending: usize,
    /// Is true when every file has been read.
    pub complete: bool,
    /// The time of the last walk, if the system reports no changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// Is true when the project has more files than the index.
    pub truncated: bool,
}

/// The client session, and the edited file.
type Owed = (Option<Box<str>>, Box<str>);

/// A live root.
pub struct LiveRoot {
    root: ProjectRoot,
    clock: Arc<dyn Clock>,
    caches: DataDir,
    state: RwLock<RootState>,
    inbox: Arc<NewsInbox>,
    /// Numbers the reads, so that none replaces a later one.
    orders: AtomicU64,
    /// The rows that wait to be written to the cache.
    unkept: Mutex<Vec<Change>>,
    /// The state of the cache, for people.
    cached: Mutex<String>,
    used_at: AtomicI64,
    /// Files that a client session edited, for which a later event may have leftovers to report.
    owed: Mutex<Vec<Owed>>,
    /// The project's own coverage.
    pub coverage: CoverageReader,
}

/// The longest wait of a call for the status.
const SOON: Duration = Duration::from_millis(500);

impl LiveRoot {
    /// Makes a root with an empty state. Calls `wake` when there is work to do.
    pub fn new(root: ProjectRoot, clock: Arc<dyn Clock>, caches: DataDir, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let inbox = Arc::new(NewsInbox::new(root.clone(), wake));
        let used_at = AtomicI64::new(clock.now());
        Self {
            root,
            clock,
            caches,
            state: RwLock::default(),
            inbox,
            orders: AtomicU64::new(1),
            unkept: Mutex::default(),
            cached: Mutex::default(),
            used_at,
            owed: Mutex::default(),
            coverage: CoverageReader::default(),
        }
    }

    /// Returns the root.
    pub fn root(&self) -> &ProjectRoot {
        &self.root
    }

    /// Notes the time of use.
    pub fn touch(&self) {
        self.used_at.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Returns the time of the last use.
    pub fn used_at(&self) -> Millis {
        self.used_at.load(Ordering::Relaxed)
    }

    /// Notes an edited file for which a later event of the client session may have leftovers to report.
    pub fn note_owed(&self, client_session: Option<&str>, path: &str) {
        let mut all = self.owed.lock();
        let owed = (client_session.map(Box::from), Box::from(path));
        if !all.contains(&owed) {
            // Drops the oldest entry: its client session may be over.
            if all.len() >= MAX_OWED {
                all.remove(0);
            }
            all.push(owed);
        }
    }

    /// Takes the edited files of a client session for which leftovers may still be reported.
    pub fn take_owed(&self, client_session: Option<&str>) -> Vec<Box<str>> {
        let mut all = self.owed.lock();
        all.extract_if(.., |(owed_to, _)| owed_to.as_deref() == client_session).map(|(_, path)| path).collect()
    }

    /// Locks the current state for reading.
    pub fn state(&self) -> RwLockReadGuard<'_, RootState> {
        self.state.read()
    }

    /// Locks the state for a call that does not wait for long queries; `None` when a long query runs.
    pub fn state_soon(&self) -> Option<RwLockReadGuard<'_, RootState>> {
        self.state.try_read_for(SOON)
    }

    /// Describes the state of the cache in words.
    pub fn cache_status(&self) -> String {
        self.cached.lock().clone()
    }

    /// Returns the number of changes that are not processed yet.
    fn count_pending(&self, state: &RootState) -> usize {
        state.to_read.len() + self.inbox.count() + usize::from(!state.is_walked)
    }

    /// Describes how current an answer from this state is.
    pub fn as_of(&self, state: &RootState) -> AsOf {
        let pending = self.count_pending(state);
        let polls = matches!(state.mode, WatchMode::Poll(_));
        let is_late = polls && stamp::now_ns().abs_diff(state.looked_ns) > LOOK_HOLDS_NS;
        AsOf {
            indexed_at: state.indexed_at.map(rfc3339::format_time),
            head: state.head.clone(),
            pending,
            complete: pending == 0 && !is_late,
            looked_at: polls.then(|| rfc3339::format_time(state.looked_ns / 1_000_000)),
            truncated: state.is_truncated,
        }
    }

    /// Lists the files that have changed since `path` was read and that are not read yet; `None` when any file may have
    /// changed.
    pub fn list_unread(&self, state: &RootState, path: &str) -> Option<Vec<Box<str>>> {
        let was_looked_at = match state.mode {
            WatchMode::Poll(_) => state.files.get(path).is_some_and(|known| known.read_ns < state.looked_ns),
            WatchMode::Watch(_) | WatchMode::Once => true,
            WatchMode::Starting => false,
        };
        let told = self.inbox.inspect_news(|news| (!news.all && !news.git).then(|| news.paths.clone()))?;
        let is_known = was_looked_at && state.is_walked && told.len() + state.to_read.len() <= MAX_UNREAD;
        is_known.then(|| told.into_iter().chain(state.to_read.paths().map(Box::from)).collect())
    }

    /// Returns true if every file has been read.
    pub fn is_complete(&self) -> bool {
        self.count_pending(&self.state()) == 0
    }

    /// Asks the worker to walk the whole root now.
    pub fn look_again(&self) {
        self.inbox.add_news(|news| (news.all, news.now) = (true, true));
    }

    /// Waits until every file has been read, at most for `at_most`.
    pub fn wait_complete(&self, at_most: Duration) {
        self.wait_until(at_most, Self::is_complete);
    }

    /// Waits until a condition holds, at most for `at_most`.
    pub fn wait_until(&self, at_most: Duration, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + at_most;
        while !is_so(self) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Makes the index agree with these files, if that is quick.
    pub fn freshen_files<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> HashMap<Box<str>, FileFreshness, FixedState> {
        let until = Instant::now() + AT_ONCE;
        let mut finder = FileFinder::new(&self.root);
        let mut found: HashMap<Box<str>, FileFreshness, FixedState> = HashMap::default();
        for path in paths {
            if !found.contains_key(path) {
                found.insert(path.into(), self.freshen_one(path, &mut finder, until));
            }
        }
        found
    }

    fn freshen_one(&self, path: &str, finder: &mut FileFinder<'_>, until: Instant) -> FileFreshness {
        let known = self.state().files.get(path).copied();
        let now = stamp::read_stamp(&self.root, path);
        match (known, now) {
            (Some(known), Some(now)) if known.is_current(&now) => return FileFreshness::Yes,
            (None, None) => return FileFreshness::Yes,
            // A new file counts only if a walk would find it.
            (None, Some(_)) if !finder.finds_file(path) => return FileFreshness::Yes,
            (_, Some(now)) if Instant::now() >= until || now.size > MAX_AT_ONCE_BYTES && !self.has_read(path) => {
                self.inbox.add_news(|news| {
                    news.paths.insert(path.into());
                });
                return FileFreshness::No;
            }
            _ => {}
        }
        match self.reread_file(path) {
            Ok(true) => FileFreshness::Reindexed,
            Ok(false) => FileFreshness::Yes,
            Err(_) => FileFreshness::No,
        }
    }

    /// Returns true if the facts of a file's bytes are remembered: hashing the bytes is cheap, and parsing them is not.
    fn has_read(&self, path: &str) -> bool {
        let content = stamp::read(&self.root, path, MAX_FILE_BYTES).ok();
        let Some(hash) = content.and_then(|content| content.bytes).map(|bytes| hash(&bytes)) else { return false };
        let state = self.state();
        state.files.get(path).is_some_and(|known| known.hash == hash) || state.find_facts(path, &hash).is_some()
    }

    /// Reads a file now and stores its facts; returns true if they have changed.
    fn reread_file(&self, path: &str) -> io::Result<bool> {
        let is_again = self.state().files.contains_key(path);
        let order = self.orders.fetch_add(1, Ordering::Relaxed);
        let content = match stamp::read(&self.root, path, MAX_FILE_BYTES) {
            Ok(content) => content,
            // The file is gone, is no regular file any more, or is unreadable.
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Ok(self.remove_file(path, order)),
            Err(error) => return Err(error),
        };
        let (hash, read) = self.read(path, &content);
        let skip = match &read {
            ReadResult::Skipped(skip) => Some(*skip),
            ReadResult::Same => self.state().files.get(path).and_then(|known| known.skip),
            ReadResult::Facts(_) | ReadResult::Manifest(_) => None,
        };
        let known = LastRead { stamp: content.stamp, read_ns: content.read_ns, order, is_again, hash, skip };
        let kept = match &read {
            ReadResult::Facts(facts) => Some(Ok(Arc::clone(facts))),
            ReadResult::Skipped(skip) => Some(Err(*skip)),
            ReadResult::Same => self.kept_facts(path, skip),
            ReadResult::Manifest(_) => None,
        };
        if let Some(read) = kept {
            let entry = CachedFile { stamp: content.stamp, read_ns: content.read_ns, hash, read };
            self.unkept.lock().push((path.into(), Some(entry)));
        }
        let now = self.clock.now();
        let mut state = self.state.write();
        state.indexed_at = Some(now);
        Ok(state.put_file(path, known, read))
    }

    /// Returns the facts of a file of which only the marks have changed.
    fn kept_facts(&self, path: &str, skip: Option<Skip>) -> Option<Result<Arc<FileFacts>, Skip>> {
        skip.map_or_else(|| self.state().index.file_facts(path).cloned().map(Ok), |skip| Some(Err(skip)))
    }

    fn read(&self, path: &str, content: &MarkedContent) -> (nudge_code_index::Hash, ReadResult) {
        let Some(bytes) = &content.bytes else { return (Default::default(), ReadResult::Skipped(Skip::TooLarge)) };
        let hash = hash(bytes);
        let known = {
            let state = self.state();
            if state.files.get(path).is_some_and(|known| known.hash == hash) {
                return (hash, ReadResult::Same);
            }
            state.find_facts(path, &hash)
        };
        if let Some(facts) = known {
            return (hash, ReadResult::Facts(facts));
        }
        if is_manifest(path) {
            return (hash, ReadResult::Manifest(bytes.clone()));
        }
        // A panic of the parser costs only this file, and the thread goes on with the others.
        match std::panic::catch_unwind(|| facts_of(path, bytes)) {
            Ok(Ok(facts)) => (hash, ReadResult::Facts(Arc::new(facts))),
            Ok(Err(skip)) => (hash, ReadResult::Skipped(skip)),
            Err(_) => {
                self.state.write().last_error = Some(format!("{path} cannot be read by this version; report it"));
                (hash, ReadResult::Skipped(Skip::TimedOut))
            }
        }
    }

    fn remove_file(&self, path: &str, order: u64) -> bool {
        let was_there = self.state.write().remove_file(path, order);
        if was_there {
            self.unkept.lock().push((path.into(), None));
        }
        was_there
    }
}

/// Extracts the facts of a file, without secrets.
pub fn facts_of(path: &str, bytes: &[u8]) -> Result<FileFacts, Skip> {
    let mut facts = extract(path, bytes)?;
    let guard = SecretGuard::new();
    let is_secret = |text: &str| !text.is_empty() && guard.check(None, text).is_some();
    let has_one = facts.nodes().any(|view| {
        is_secret(view.signature())
            || view.doc().is_some_and(is_secret)
            || view.list_drift().any(|drift| is_secret(&drift.detail))
    });
    if has_one {
        facts.withhold_secrets(is_secret);
    }
    Ok(facts)
}
