//! Does the work for a root: reads every file once, and then each file that changes. A single thread does the work of
//! all roots.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use nudge_code_index::is_manifest;
use nudge_core::source::StopFlag;

use crate::cache::{CachedFile, IndexCache};
use crate::live::LiveRoot;
use crate::live::progress::ProgressLine;
use crate::live::state::{LastRead, ReadResult, RootState};
use crate::live::watch::{RootWatch, WatchMode};
use crate::stamp;
use crate::walk::{self, FileFinder, WalkResult};

/// The time after which a worker lets other roots work. The worker then also checks whether it must stop.
const SLICE: Duration = Duration::from_millis(20);
/// The least time between two walks when the system does not report changes. If a walk is slow, the time is `POLL_COST`
/// times the time of one walk.
const POLL: Duration = Duration::from_secs(2);
const POLL_COST: u32 = 100;
/// The time between two walks after changes of folders: this many times the time of one walk.
const WALK_COST: u32 = 10;
/// The longest time that a process for a single call spends on reading files.
pub const MAX_TIME_OF_ONE_CALL: Duration = Duration::from_secs(10);
/// The pause between two checks whether git still changes files. A lock of git that is older than `GIT_LOCK_OLD` was
/// left by a git that no longer runs.
const GIT_WAIT: Duration = Duration::from_millis(50);
const GIT_LOCK_OLD: Duration = Duration::from_mins(1);
/// The wait of a worker that has nothing to do.
const IDLE: Duration = Duration::from_hours(1);
/// The most changes that wait to be written to the cache.
const MAX_UNKEPT: usize = 200;

/// Works for one root.
pub struct RootWorker {
    live: Arc<LiveRoot>,
    cache: Option<IndexCache>,
    watch: Option<RootWatch>,
    is_begun: bool,
    /// The earliest time of the next walk. `cost` is the time that the last walk took.
    next_walk: Instant,
    cost: Duration,
}

impl RootWorker {
    /// Makes the worker of a root.
    pub fn new(live: Arc<LiveRoot>) -> Self {
        Self { live, cache: None, watch: None, is_begun: false, next_walk: Instant::now(), cost: Duration::ZERO }
    }

    /// Returns the live root.
    pub fn live(&self) -> &Arc<LiveRoot> {
        &self.live
    }

    /// Works for a moment. Returns the time in which there is nothing to do.
    pub fn step(&mut self, stop: &StopFlag) -> Duration {
        let is_over = || stop.is_set();
        if !self.is_begun {
            self.is_begun = true;
            self.load_cache(&is_over);
            self.look_at_everything(&is_over, true);
        }
        if self.is_git_at_work() {
            return GIT_WAIT;
        }
        self.take_news(&is_over);
        let is_done = self.read_some(Instant::now() + SLICE, &is_over);
        if is_done {
            self.live.state.write().is_caught_up = true;
        }
        if is_done || self.live.unkept.lock().len() >= MAX_UNKEPT {
            self.write_cache();
        }
        if is_done { self.idle_time() } else { Duration::ZERO }
    }

    /// Does all the work that fits into `MAX_TIME_OF_ONE_CALL`, in a process that answers one call. A later call does the
    /// rest.
    pub fn finish_all(&mut self) {
        let until = Instant::now() + MAX_TIME_OF_ONE_CALL;
        let is_over = || Instant::now() >= until;
        self.is_begun = true;
        self.load_cache(&is_over);
        self.look_at_everything(&is_over, false);
        self.live.state.write().mode = WatchMode::Once;
        let all = self.live.state().to_read.len();
        let mut progress = ProgressLine::new();
        while !self.read_some(Instant::now() + SLICE, &is_over) && !is_over() {
            progress.show_count(all.saturating_sub(self.live.state().to_read.len()), all);
        }
        drop(progress);
        self.live.state.write().is_caught_up = true;
        self.write_cache();
    }

    /// Writes the remaining changes to the cache, and closes the cache.
    pub fn close(&mut self) {
        self.write_cache();
        self.watch = None;
        if let Some(cache) = self.cache.take() {
            cache.close();
        }
    }

    /// Returns the time in which there is nothing to do.
    fn idle_time(&self) -> Duration {
        let until_walk = self.next_walk.saturating_duration_since(Instant::now());
        let poll = if self.watch.is_none() { until_walk } else { IDLE };
        let only_walks = self.live.inbox.inspect_news(|news| news.paths.is_empty() && !news.now);
        let news = self
            .live
            .inbox
            .settles_in()
            .map_or(IDLE, |settles| if only_walks { settles.max(until_walk) } else { settles });
        poll.min(news)
    }

    /// Loads the facts of files from the cache.
    fn load_cache(&mut self, is_over: &dyn Fn() -> bool) {
        let live = &self.live;
        IndexCache::remove_orphans(&live.caches);
        let opened = IndexCache::open(&live.caches, &live.root).and_then(|mut cache| {
            cache.load_rows(&live.root, |rows| {
                // Locks the state for each row anew, so that a query does not wait until all rows are loaded.
                for (path, entry) in rows {
                    take_row(&mut live.state.write(), &path, entry);
                }
                !is_over()
            })?;
            Ok(cache)
        });
        match opened {
            Ok(cache) => {
                *live.cached.lock() = match cache.restart_reason() {
                    None => cache.path(),
                    Some(why) => format!("{}, begun anew as {why}", cache.path()),
                };
                if cache.restart_reason().is_some() {
                    // The state starts empty too: then each file is read again, and goes into the new cache.
                    *live.state.write() = RootState::default();
                }
                self.cache = Some(cache);
            }
            Err(error) => *live.cached.lock() = format!("none: {}", error.message()),
        }
    }

    /// Walks over the root, and finds the files that must be read and the files that are gone. With `watches`, the
    /// system reports changes from then on.
    fn look_at_everything(&mut self, is_over: &dyn Fn() -> bool, watches: bool) {
        if watches && self.watch.is_none() && !matches!(self.live.state().mode, WatchMode::Poll(_)) {
            match RootWatch::begin(&self.live.inbox) {
                Ok(watch) => self.watch = Some(watch),
                Err(why) => self.poll(why),
            }
        }
        let mut began = 0;
        // A new folder is watched only after the walk. So another walk finds the files that were made in between.
        for _ in 0..3 {
            // The walk takes its number before it begins, so a file that is read during the walk counts as newer than
            // the walk.
            let order = self.live.orders.fetch_add(1, Ordering::Relaxed);
            began = stamp::now_ns();
            let Some(mut walked) = walk::walk_root(&self.live.root, is_over) else { return };
            self.cost = walked.took;
            let folders = std::mem::take(&mut walked.folders);
            self.take_walk(&walked, order);
            if !self.watch_folders(&folders) {
                break;
            }
        }
        let wait = if self.watch.is_some() { self.cost * WALK_COST } else { POLL.max(self.cost * POLL_COST) };
        self.next_walk = Instant::now() + wait;
        let head = self.live.root.read_head();
        let mut state = self.live.state.write();
        state.is_walked = true;
        state.looked_ns = began;
        if state.head != head {
            // HEAD moved. A difference from the old commit is no edit any more, so the state forgets the earlier facts.
            state.before.clear();
            state.lost.clear();
            state.head = head;
        }
    }

    /// Watches these folders. Returns true if one of them was not watched before, so another walk may find more in it.
    fn watch_folders(&mut self, folders: &[PathBuf]) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        match watch.set_folders(&self.live.inbox, folders) {
            Ok(has_new) => {
                self.live.state.write().mode = WatchMode::Watch(folders.len());
                has_new
            }
            Err(why) => {
                self.poll(why);
                false
            }
        }
    }

    fn poll(&mut self, why: String) {
        self.watch = None;
        self.live.state.write().mode = WatchMode::Poll(why);
    }

    fn take_walk(&self, walked: &WalkResult, order: u64) {
        let mut state = self.live.state.write();
        state.left_out.clone_from(&walked.skipped);
        state.is_truncated = walked.is_truncated;
        let mut finder = FileFinder::new(&self.live.root);
        let gone: Vec<_> = state.files.keys().filter(|path| !walked.files.contains_key(&**path)).cloned().collect();
        for path in gone {
            // The file was read after the walk began, so the walk may not have seen it. It stays only if it still
            // exists.
            let is_later = state.files.get(&path).is_some_and(|known| known.order > order);
            if is_later && finder.finds_file(&path) {
                continue;
            }
            let order = self.live.orders.fetch_add(1, Ordering::Relaxed);
            if state.remove_file(&path, order) {
                self.live.unkept.lock().push((path, None));
            }
        }
        state.to_read.retain(|path| walked.files.contains_key(path));
        for (path, stamp) in &walked.files {
            if !state.files.get(&**path).is_some_and(|known| known.is_current(stamp)) {
                state.to_read.add(path, false, stamp.modified_ns);
            }
        }
    }

    /// Takes the news when no change has come for a while.
    fn take_news(&mut self, is_over: &dyn Fn() -> bool) {
        let live = Arc::clone(&self.live);
        let may_walk = Instant::now() >= self.next_walk || live.inbox.inspect_news(|news| news.now);
        let mut wants_walk = self.watch.is_none() && may_walk;
        if live.inbox.settles_in().is_some_and(|settles| settles.is_zero()) {
            // The state stays locked while news moves from the inbox to the queue. So a reader finds each change in the
            // inbox or in the queue.
            let mut state = live.state.write();
            let news = live.inbox.inspect_news(|news| news.drain_news(may_walk));
            for path in &news.paths {
                state.to_read.add(path, true, i64::MAX);
            }
            // Git often rewrites its index although HEAD has not moved. So news of git leads to a walk only if HEAD has
            // moved.
            wants_walk |= news.all || (news.git && state.head != live.root.read_head());
            state.is_walked &= !wants_walk;
        }
        if wants_walk {
            self.look_at_everything(is_over, true);
        }
    }

    /// Returns true if git is changing files now. An old lock of a git that no longer runs does not count.
    fn is_git_at_work(&self) -> bool {
        let Some(git_dir) = self.live.root.git_dir() else { return false };
        let Ok(lock) = git_dir.join("index.lock").symlink_metadata() else { return false };
        // The clock may have been set back after the lock was made, so the difference counts in both directions.
        let apart = |modified| SystemTime::now().duration_since(modified).unwrap_or_else(|ahead| ahead.duration());
        lock.modified().ok().map(apart).is_none_or(|apart| apart < GIT_LOCK_OLD)
    }

    /// Reads queued files until `until`. Returns true if the queue is empty.
    fn read_some(&self, until: Instant, is_over: &dyn Fn() -> bool) -> bool {
        let mut finder = FileFinder::new(&self.live.root);
        loop {
            let Some((path, is_news)) = self.live.state().to_read.next() else { return true };
            if is_over() || Instant::now() >= until {
                return false;
            }
            // A file that a walk has put into the queue needs no second check.
            if is_news && !self.is_to_be_read(&path, &mut finder) {
                self.live.state.write().to_read.remove(&path);
            } else if self.live.reread_file(&path).is_err() {
                // The file changes while it is read. It goes back into the news, and is read again when it has settled.
                self.live.state.write().to_read.remove(&path);
                self.live.inbox.add_news(|news| {
                    news.paths.insert(path);
                });
            }
        }
    }

    /// Returns true if a file must be read again, or must be removed from the index.
    fn is_to_be_read(&self, path: &str, finder: &mut FileFinder<'_>) -> bool {
        let known = self.live.state().files.get(path).copied();
        match (known, stamp::read_stamp(&self.live.root, path)) {
            (Some(known), Some(stamp)) => !known.is_current(&stamp),
            (Some(_), None) => true,
            (None, Some(_)) => finder.finds_file(path),
            (None, None) => false,
        }
    }

    fn write_cache(&mut self) {
        let unkept = std::mem::take(&mut *self.live.unkept.lock());
        let Some(cache) = &self.cache else { return };
        if let Err(error) = cache.write_changes(&unkept) {
            *self.live.cached.lock() = format!("not kept: {}", error.message());
        }
    }
}

/// Stores a file from the cache in the state. After that, the file counts as read.
fn take_row(state: &mut RootState, path: &str, entry: CachedFile) {
    // A file that was read already is newer than the cache, and a manifest is read at every start.
    if state.files.contains_key(path) || is_manifest(path) {
        return;
    }
    let CachedFile { stamp, read_ns, hash, read } = entry;
    let skip = read.as_ref().err().copied();
    let known = LastRead { stamp, read_ns, order: 0, is_again: false, hash, skip };
    state.put_file(path, known, read.map_or_else(ReadResult::Skipped, ReadResult::Facts));
}
