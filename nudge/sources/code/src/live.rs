//! Keeps a live root: a root whose index follows the changes of its files.
//!
//! Readers share the index. A reader waits only until the files of its own answer are parsed: if such a file differs
//! from the index and can be read quickly, it is read at once. A single thread does all other work (`work`). The files
//! on disk are the truth, and an answer that may be older than the files says so.

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
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard};
use serde::Serialize;

use crate::cache::{CachedFile, Change};
use crate::coverage::CoverageReader;
use crate::root::ProjectRoot;
use crate::search::NodeTextIndex;
use crate::stamp::{self, MarkedContent};
use crate::walk::FileFinder;
use state::{LastRead, ReadResult, RootState};
use watch::{NewsInbox, WatchMode};
pub use work::RootWorker;

/// The most bytes of a file; a larger file has no facts.
const MAX_FILE_BYTES: u64 = 512 << 10;
/// The most bytes of a file that a server parses while a caller waits. `AT_ONCE` limits the time of all such parsing in
/// one call. A process that answers a single call has neither limit, because nobody reads the file later.
const MAX_AT_ONCE_BYTES: u64 = 64 << 10;
/// The most edited files that wait for a later event (see [`LiveRoot::note_owed`]).
const MAX_OWED: usize = 100;
const AT_ONCE: Duration = Duration::from_millis(60);
/// The time in nanoseconds for which an index counts as complete after a walk, when the system does not report changes.
const LOOK_HOLDS_NS: u64 = 5_000_000_000;
/// The most unread files that are read to find out whether a definition is gone.
const MAX_UNREAD: usize = 20;

/// Says whether the index agrees with a file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFreshness {
    /// The index agrees with the file.
    Yes,
    /// The index agrees, because the file was read just now.
    Reindexed,
    /// The file differs from the index, and was not read yet.
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
    /// The time when a file was last read; absent before the first read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub indexed_at: Option<String>,
    /// The commit of HEAD; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The number of changes that are not processed yet.
    pub pending: usize,
    /// Is true when every file has been read.
    pub complete: bool,
    /// The time of the last walk over all files; absent when the system reports changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// Is true when the project has more files than the index holds.
    pub truncated: bool,
}

/// An edited file, with the client session that edited it.
type Owed = (Option<Box<str>>, Box<str>);

/// A root whose index follows the changes of its files.
pub struct LiveRoot {
    root: ProjectRoot,
    clock: Arc<dyn Clock>,
    caches: DataDir,
    state: RwLock<RootState>,
    inbox: Arc<NewsInbox>,
    /// Gives each read a number, so that the result of an earlier read never replaces that of a later one.
    orders: AtomicU64,
    /// The changes that wait to be written to the cache.
    unkept: Mutex<Vec<Change>>,
    /// Describes the state of the cache, for people.
    cached: Mutex<String>,
    used_at: AtomicI64,
    /// The files that client sessions edited and whose leftovers are not completely reported yet.
    owed: Mutex<Vec<Owed>>,
    /// Reads the coverage files of the project.
    pub coverage: CoverageReader,
}

/// The longest time that `state_soon` waits for the lock.
const SOON: Duration = Duration::from_millis(500);

impl LiveRoot {
    /// Makes a live root without facts. The root calls `wake` when there is work to do.
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

    /// Records that a caller uses the root now.
    pub fn touch(&self) {
        self.used_at.store(self.clock.now(), Ordering::Relaxed);
    }

    /// Returns the time of the last use.
    pub fn used_at(&self) -> Millis {
        self.used_at.load(Ordering::Relaxed)
    }

    /// Keeps an edited file whose leftovers could not be found yet. A later event of the same client session takes the
    /// file with [`take_owed`](Self::take_owed) and reports the leftovers.
    pub fn note_owed(&self, client_session: Option<&str>, path: &str) {
        let mut all = self.owed.lock();
        let owed = (client_session.map(Box::from), Box::from(path));
        if !all.contains(&owed) {
            // The oldest entry is dropped, because its client session may have ended.
            if all.len() >= MAX_OWED {
                all.remove(0);
            }
            all.push(owed);
        }
    }

    /// Removes and returns the edited files of a client session whose leftovers are not completely reported yet.
    pub fn take_owed(&self, client_session: Option<&str>) -> Vec<Box<str>> {
        let mut all = self.owed.lock();
        all.extract_if(.., |(owed_to, _)| owed_to.as_deref() == client_session).map(|(_, path)| path).collect()
    }

    /// Prepares the index for a search in the texts of nodes. The first search of a root takes the time for it: 0.1 s
    /// for 40,000 nodes. Others can read the state meanwhile.
    pub fn index_texts(&self) {
        if self.state().words.has_texts() {
            return;
        }
        let state = self.state.upgradable_read();
        if !state.words.has_texts() {
            let words = NodeTextIndex::with_texts(&state.index);
            RwLockUpgradableReadGuard::upgrade(state).words = words;
        }
    }

    /// Locks the state for reading.
    pub fn state(&self) -> RwLockReadGuard<'_, RootState> {
        self.state.read()
    }

    /// Locks the state for reading, for a call that must not wait for a long query. Returns `None` when the lock is not
    /// free within half a second.
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

    /// Lists the unread files that may have changed since `path` was read; `None` when any file may have changed.
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

    /// Makes the worker walk the whole root now.
    pub fn look_again(&self) {
        self.inbox.add_news(|news| (news.all, news.now) = (true, true));
    }

    /// Waits until every file has been read, at most `at_most`.
    pub fn wait_complete(&self, at_most: Duration) {
        self.wait_until(at_most, Self::is_complete);
    }

    /// Waits until a condition is true, at most `at_most`.
    pub fn wait_until(&self, at_most: Duration, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + at_most;
        while !is_so(self) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Updates the index for these files, as far as that is quick. Returns whether the index agrees with each file now.
    pub fn freshen_files<'a>(
        &self,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> HashMap<Box<str>, FileFreshness, FixedState> {
        let is_only_call = matches!(self.state().mode, WatchMode::Once);
        let (max_time, max_bytes) =
            if is_only_call { (work::MAX_TIME_OF_ONE_CALL, u64::MAX) } else { (AT_ONCE, MAX_AT_ONCE_BYTES) };
        let until = Instant::now() + max_time;
        let mut finder = FileFinder::new(&self.root);
        let mut found: HashMap<Box<str>, FileFreshness, FixedState> = HashMap::default();
        for path in paths {
            if !found.contains_key(path) {
                found.insert(path.into(), self.freshen_one(path, &mut finder, until, max_bytes));
            }
        }
        found
    }

    fn freshen_one(&self, path: &str, finder: &mut FileFinder<'_>, until: Instant, max_bytes: u64) -> FileFreshness {
        let known = self.state().files.get(path).copied();
        let now = stamp::read_stamp(&self.root, path);
        match (known, now) {
            (Some(known), Some(now)) if known.is_current(&now) => return FileFreshness::Yes,
            (None, None) => return FileFreshness::Yes,
            // A new file counts only if a walk would find it too.
            (None, Some(_)) if !finder.finds_file(path) => return FileFreshness::Yes,
            (_, Some(now)) if Instant::now() >= until || now.size > max_bytes && !self.has_read(path) => {
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

    /// Returns true if the index remembers facts for the bytes of this file. To hash the bytes is cheap, and to parse
    /// them is not.
    fn has_read(&self, path: &str) -> bool {
        let content = stamp::read(&self.root, path, MAX_FILE_BYTES).ok();
        let Some(hash) = content.and_then(|content| content.bytes).map(|bytes| hash(&bytes)) else { return false };
        let state = self.state();
        state.files.get(path).is_some_and(|known| known.hash == hash) || state.find_facts(path, &hash).is_some()
    }

    /// Reads a file now and stores its facts. Returns true if the index has changed.
    fn reread_file(&self, path: &str) -> io::Result<bool> {
        let is_again = self.state().files.contains_key(path);
        let order = self.orders.fetch_add(1, Ordering::Relaxed);
        let content = match stamp::read(&self.root, path, MAX_FILE_BYTES) {
            Ok(content) => content,
            // The file was removed, is not a regular file any more, or cannot be read.
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

    /// Returns the facts of a file whose bytes are the same as before.
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
        // After a panic of the parser, only this file has no facts, and the thread continues with the other files.
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

/// Extracts the facts of a file, without texts that look like secrets.
pub fn facts_of(path: &str, bytes: &[u8]) -> Result<FileFacts, Skip> {
    let mut facts = extract(path, bytes)?;
    let guard = SecretGuard::new();
    let is_secret = |text: &str| !text.is_empty() && guard.check(None, text).is_some();
    let has_one = facts.nodes().any(|view| {
        is_secret(view.signature())
            || view.doc().is_some_and(is_secret)
            || is_secret(view.prose())
            || view.list_drift().any(|drift| is_secret(&drift.detail))
    });
    if has_one {
        facts.withhold_secrets(is_secret);
    }
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nudge_core::clock::SystemClock;
    use nudge_core::context::detect::{GitDetector, GitEnv};

    use super::*;

    /// No worker reads a file after the only call of a process. A file that changes during the call is therefore read
    /// before the answer, whatever its size.
    #[test]
    fn the_only_call_of_a_process_reads_large_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir(&project).unwrap();
        fs::write(project.join("setup.py"), "").unwrap();
        fs::write(project.join("large.py"), "def first():\n    pass\n").unwrap();
        let root = ProjectRoot::find_root(&project, &mut GitDetector::with_env(GitEnv::empty())).unwrap();
        let caches = DataDir::new(folder.path().join("caches"));
        let live = Arc::new(LiveRoot::new(root, Arc::new(SystemClock), caches, Box::new(|| {})));
        RootWorker::new(Arc::clone(&live)).finish_all();
        let comment = "# a comment\n".repeat(usize::try_from(MAX_AT_ONCE_BYTES).unwrap() / 10);
        fs::write(project.join("large.py"), format!("{comment}def second():\n    pass\n")).unwrap();
        assert_eq!(live.freshen_files(["large.py"])["large.py"], FileFreshness::Reindexed);
    }
}
