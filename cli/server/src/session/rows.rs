//! The session's rows and the fence. All sources whose state belongs to the session share one database. The fence
//! refuses every change after this process has lost the lock or has begun to leave.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_client::{LockWatch, PrimarySeat, RuntimeDir};
use nudge_core::source::{self, RowFeed, SessionRow};
use nudge_core::sync::{Mutex, RwLock};
use nudge_storage::SessionDb;
use tokio::sync::Notify;

/// The rows of a PRIMARY, and its fence.
pub struct PrimaryRows {
    lock: LockWatch,
    /// The files that this process restores when another program removes them. Set when this process is about to serve.
    seat: OnceLock<PrimarySeat>,
    /// Notified each time the files were restored.
    retaken: Notify,
    /// The time when the files were last restored.
    retaken_at: Mutex<Option<Instant>>,
    state: Mutex<RowKeeping>,
    /// Held for reading while a source commits a change to its own file.
    commits: RwLock<()>,
}

enum RowKeeping {
    /// The journal is off (`NUDGE_JOURNAL=0`): the session's state is lost when this process ends.
    Nothing,
    In(Box<SessionDb>),
    /// Another process may soon be PRIMARY, so every change is refused.
    NoMore,
}

impl PrimaryRows {
    /// Stores rows in `database`, if there is one, as long as this process holds the lock.
    pub fn new(lock: LockWatch, database: Option<SessionDb>) -> Self {
        Self {
            lock,
            seat: OnceLock::new(),
            retaken: Notify::new(),
            retaken_at: Mutex::new(None),
            state: Mutex::new(database.map_or(RowKeeping::Nothing, |database| RowKeeping::In(Box::new(database)))),
            commits: RwLock::new(()),
        }
    }

    /// Returns the length of the database in bytes, if there is one.
    pub fn bytes(&self) -> Option<u64> {
        match &*self.state.lock() {
            RowKeeping::In(database) => Some(database.file_bytes()),
            RowKeeping::Nothing | RowKeeping::NoMore => None,
        }
    }

    /// Ends the session on purpose. From now on every change is refused, and every PROXY ends when it gets the lock.
    /// Deletes all rows and empties the session file first, so no process can continue from them (semantics section 8).
    ///
    /// Returns `None` if changes were refused already: another session may own the files.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be emptied.
    pub fn end_session(&self, dir: &RuntimeDir) -> Option<Result<()>> {
        // Holds the mutex until the end: a PRIMARY that leaves then waits before it releases the session's lock.
        let mut state = self.state.lock();
        let database = match std::mem::replace(&mut *state, RowKeeping::NoMore) {
            RowKeeping::In(database) => Some(database),
            RowKeeping::Nothing => None,
            RowKeeping::NoMore => return None,
        };
        let marked = dir.stop_session();
        let emptied = database.map_or(Ok(()), |database| database.clear());
        Some(marked.and(emptied))
    }

    /// Refuses every change from now on, waits for running commits, and closes the database.
    pub fn close(&self) {
        let keeping = std::mem::replace(&mut *self.state.lock(), RowKeeping::NoMore);
        drop(self.commits.write());
        drop(keeping);
    }

    /// Sets the files of this PRIMARY. From now on, this process restores them when another program removes them.
    pub fn set_seat(&self, seat: PrimarySeat) {
        // An error is impossible, because the caller sets the seat only once.
        let _ = self.seat.set(seat);
    }

    /// Checks that this process is PRIMARY of the directory at this path. Restores its files if another program has
    /// removed them. Returns true after it has restored files; the sources must then store their rows again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another server is, or was, PRIMARY there.
    pub fn keep_seat(&self, dir: &RuntimeDir) -> Result<bool> {
        let mut state = self.state.lock();
        match &*state {
            RowKeeping::NoMore => return Ok(false),
            _ if self.lock.check_lock().is_ok() && dir.is_in_place() => return Ok(false),
            _ => {}
        }
        // After an error this process ends. It closes the database at once, because the other PRIMARY waits for it.
        let retaken = self.retake_seat(&state).map(|()| true);
        if let (Err(_), RowKeeping::In(database)) = (&retaken, &mut *state) {
            database.lose_file();
        }
        retaken
    }

    /// Returns the time since the files were last restored. Returns `None` when they never were.
    pub fn put_back_since(&self) -> Option<Duration> {
        self.retaken_at.lock().map(|moment| moment.elapsed())
    }

    /// Waits until the files are restored the next time.
    pub async fn wait_for_retake(&self) {
        self.retaken.notified().await;
    }

    fn check_lock(&self, keeping: &RowKeeping) -> Result<()> {
        match keeping {
            RowKeeping::NoMore => Err(leaving_error()),
            keeping => self.lock.check_lock().or_else(|_| self.retake_seat(keeping)),
        }
    }

    fn retake_seat(&self, keeping: &RowKeeping) -> Result<()> {
        let Some(seat) = self.seat.get() else { return self.lock.check_lock() };
        let is_ours = || match keeping {
            RowKeeping::In(database) => database.is_ours(),
            RowKeeping::Nothing | RowKeeping::NoMore => true,
        };
        self.lock.retake_lock(seat, is_ours)?;
        tracing::warn!("files of the runtime directory were removed; they are there again");
        *self.retaken_at.lock() = Some(Instant::now());
        self.retaken.notify_one();
        Ok(())
    }
}

/// Returns the error of a process that is about to leave. A client that knows sessions then calls the next PRIMARY.
pub fn leaving_error() -> Error {
    Error::unavailable("The server is ending and changes nothing any more; try again.").with_data("ending", true)
}

impl source::Fence for PrimaryRows {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // Takes the lock before the check. A process that leaves first refuses changes, then waits for this lock.
        let _commit = self.commits.read();
        self.check_lock(&self.state.lock())?;
        keep()
    }
}

/// The rows of a session by source.
pub struct RowsBySource(HashMap<String, Vec<SessionRow>>);

impl RowsBySource {
    /// Sorts the rows of a session by source.
    pub fn new(rows: Vec<(String, SessionRow)>) -> Self {
        let mut by_source = HashMap::<_, Vec<_>>::new();
        for (source, row) in rows {
            by_source.entry(source).or_default().push(row);
        }
        Self(by_source)
    }

    /// Removes and returns the rows of one source.
    pub fn take_source(&mut self, source: &str) -> Vec<SessionRow> {
        self.0.remove(source).unwrap_or_default()
    }
}

/// The rows of one source.
pub struct SourceRows {
    shared: Arc<PrimaryRows>,
    source: &'static str,
}

impl SourceRows {
    /// Makes the part of `source`.
    pub fn new(shared: &Arc<PrimaryRows>, source: &'static str) -> Self {
        Self { shared: Arc::clone(shared), source }
    }
}

impl SourceRows {
    fn try_write(&self, keeping: &mut RowKeeping, changes: &RowFeed<'_>, all: &RowFeed<'_>) -> Result<()> {
        let RowKeeping::In(database) = keeping else { return Ok(()) };
        database.write(self.source, changes, all)?;
        // Checks the lock again, because a new PRIMARY may have begun meanwhile.
        self.shared.lock.check_lock()
    }
}

impl source::SessionRows for SourceRows {
    fn write(&self, changes: &RowFeed<'_>, all: &RowFeed<'_>) -> Result<()> {
        let PrimaryRows { state, lock, .. } = &*self.shared;
        let keeping = &mut *state.lock();
        self.shared.check_lock(keeping)?;
        let Err(refusal) = self.try_write(keeping, changes, all) else { return Ok(()) };
        if lock.check_lock().is_ok() && lock.is_in_place() {
            return Err(refusal);
        }
        // The lock or the whole directory was removed or moved: its files are restored first.
        if let RowKeeping::In(database) = keeping {
            database.lose_file();
        }
        self.shared.retake_seat(keeping)?;
        self.try_write(keeping, changes, all)
    }

    fn log_unreadable(&self, count: usize) {
        tracing::warn!(source = self.source, count, "rows of the session could not be read");
    }
}

#[cfg(test)]
mod tests {
    use nudge_client::ROWS;
    use nudge_core::source::{Fence as _, RowChange, RowTaker, SessionRows as _};

    use super::*;

    fn place() -> (tempfile::TempDir, RuntimeDir) {
        let folder = tempfile::tempdir().unwrap();
        let dir = RuntimeDir::create(Some(&folder.path().join("run"))).unwrap();
        (folder, dir)
    }

    fn open(dir: &RuntimeDir, keep: bool) -> (nudge_client::PrimaryLock, Arc<PrimaryRows>, RowsBySource) {
        let lock = dir.try_lock().unwrap().unwrap();
        let (database, restored) = SessionDb::open(dir.path(), ROWS, keep).unwrap();
        let rows = Arc::new(PrimaryRows::new(lock.new_watch(dir), Some(database)));
        (lock, rows, RowsBySource::new(restored.rows))
    }

    /// Feeds a row with this name.
    fn put(name: &str) -> impl Fn(&mut RowTaker<'_>) -> Result<()> {
        let row = RowChange::put("note", name, format!("about {name}"));
        move |take| take(&row)
    }

    #[allow(clippy::unnecessary_wraps, reason = "it is a feed of rows")]
    fn nothing(_: &mut RowTaker<'_>) -> Result<()> {
        Ok(())
    }

    fn names(rows: &mut RowsBySource, source: &str) -> Vec<String> {
        rows.take_source(source).into_iter().map(|row| row.name).collect()
    }

    /// Promise (session): Each source gets its own rows back, also after another program removed the file.
    #[test]
    fn each_source_gets_its_own_rows_back() {
        let (_folder, dir) = place();
        let (lock, rows, _) = open(&dir, false);
        let [hints, demo] = ["hints", "demo"].map(|source| SourceRows::new(&rows, source));
        let unasked = |_: &mut RowTaker<'_>| panic!("no row is missing");
        hints.write(&put("a"), &unasked).unwrap();
        demo.write(&put("b"), &unasked).unwrap();
        std::fs::remove_file(dir.path().join("session.db")).unwrap();
        hints.write(&put("c"), &put("a")).unwrap();
        demo.write(&nothing, &put("b")).unwrap();
        demo.write(&nothing, &unasked).unwrap();
        rows.close();
        assert_eq!(demo.write(&put("late"), &unasked).unwrap_err().data()["ending"], true);
        drop(lock);

        let (_lock, _, mut rows) = open(&dir, true);
        assert_eq!([names(&mut rows, "hints"), names(&mut rows, "demo")], [vec!["a", "c"], vec!["b"]]);
    }

    #[test]
    fn who_leaves_waits_for_what_is_being_kept() {
        let (_folder, dir) = place();
        let (_lock, rows, _) = open(&dir, false);
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let kept = Arc::new(std::sync::atomic::AtomicBool::new(false));
        std::thread::scope(|threads| {
            let (shared, is_kept) = (&rows, &kept);
            threads.spawn(move || {
                let mut keep = || {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    is_kept.store(true, std::sync::atomic::Ordering::SeqCst);
                    Ok(())
                };
                shared.commit(&mut keep).unwrap();
            });
            has_begun.recv().unwrap();
            let leaves = threads.spawn(|| {
                rows.close();
                assert!(kept.load(std::sync::atomic::Ordering::SeqCst));
            });
            // The fence now refuses new changes, while the running change continues.
            while rows.bytes().is_some() {
                std::thread::yield_now();
            }
            assert!(!leaves.is_finished());
            go_on.send(()).unwrap();
        });
        assert_eq!(rows.commit(&mut || Ok(())).unwrap_err().data()["ending"], true);
    }

    /// Takes the name away from the lock file, as a program that cleans `/tmp` does. Returns the lock of the next
    /// PRIMARY, if there is one.
    type Take = fn(&RuntimeDir) -> Option<nudge_client::PrimaryLock>;

    const WAYS: [(&str, Take); 4] = [
        ("removed", |dir| {
            std::fs::remove_file(dir.path().join("primary.lock")).unwrap();
            None
        }),
        ("renamed", |dir| {
            std::fs::rename(dir.path().join("primary.lock"), dir.path().join("elsewhere")).unwrap();
            None
        }),
        ("replaced", |dir| {
            std::fs::remove_file(dir.path().join("primary.lock")).unwrap();
            dir.try_lock().unwrap()
        }),
        ("a directory", |dir| {
            std::fs::remove_file(dir.path().join("primary.lock")).unwrap();
            std::fs::create_dir(dir.path().join("primary.lock")).unwrap();
            None
        }),
    ];

    /// Promise (session): A PRIMARY whose lock file was removed restores it, and acknowledges nothing more, from any
    /// source, after another process has the lock.
    #[test]
    fn a_primary_without_its_lock_acknowledges_nothing() {
        for (what, take) in WAYS {
            let (_folder, dir) = place();
            let (_lock, rows, _) = open(&dir, false);
            let hints = SourceRows::new(&rows, "hints");
            hints.write(&put("first"), &nothing).unwrap();
            let bytes = rows.bytes();
            let _next = take(&dir);
            for _ in 0..2 {
                let refused = hints.write(&put("lost"), &nothing).unwrap_err();
                assert!(refused.message().contains("primary.lock"), "{what}: {refused:?}");
            }
            assert_eq!(rows.bytes(), bytes, "{what}");
            assert_eq!(rows.commit(&mut || Ok(())).unwrap_err().reason(), "E_UNAVAILABLE", "{what}");
        }
    }

    /// Each round removes the lock file at another moment.
    #[test]
    fn what_was_acknowledged_the_next_restores() {
        for round in 0..100 {
            let (_folder, dir) = place();
            let (_lock, rows, _) = open(&dir, false);
            let (sender, begun) = std::sync::mpsc::channel();
            std::thread::scope(|threads| {
                let (rows, first) = (&rows, &dir);
                let writer = threads.spawn(move || {
                    let hints = SourceRows::new(rows, "hints");
                    let acknowledged = (0..).take_while(|number: &usize| {
                        let _ = sender.send(());
                        hints.write(&put(&number.to_string()), &nothing).is_ok()
                    });
                    let acknowledged = acknowledged.count();
                    rows.keep_seat(first).unwrap_err();
                    acknowledged
                });
                (0..=round % 20).for_each(|_| begun.recv().unwrap());
                std::fs::remove_file(dir.path().join("primary.lock")).unwrap();
                let (_second, _, mut restored) = open(&dir, true);
                let acknowledged = writer.join().unwrap();
                let kept = names(&mut restored, "hints").len();
                assert!(acknowledged <= kept, "round {round}: {acknowledged} acknowledged, {kept} restored");
            });
        }
    }

    /// Promise: see `a_primary_without_its_lock_acknowledges_nothing`.
    #[test]
    fn the_fence_falls_with_the_lock_and_with_the_end() {
        let (_folder, dir) = place();
        let (lock, _, _) = open(&dir, false);
        let rows = PrimaryRows::new(lock.new_watch(&dir), None);
        let kept = |rows: &PrimaryRows| rows.commit(&mut || Ok(()));
        kept(&rows).unwrap();
        std::fs::remove_file(dir.path().join("primary.lock")).unwrap();
        assert_eq!(kept(&rows).unwrap_err().reason(), "E_UNAVAILABLE");
        rows.close();
        assert_eq!(kept(&rows).unwrap_err().data()["ending"], true);
    }

    /// `tests/orders` runs this test in every order of a commit and an end.
    #[cfg(feature = "shuttle")]
    #[test]
    fn in_any_order_what_was_acknowledged_was_kept_before_the_end() {
        let (_folder, dir) = place();
        nudge_core::sync::in_any_order(move || {
            let (lock, rows, _) = open(&dir, false);
            let (hints, kept) = (Arc::new(SourceRows::new(&rows, "hints")), Arc::new(Mutex::new((0, false))));
            let keeps = [0, 1].map(|_| {
                let (rows, kept) = (Arc::clone(&rows), Arc::clone(&kept));
                shuttle::thread::spawn(move || {
                    let keep = &mut || {
                        let mut kept = kept.lock();
                        assert!(!kept.1, "nothing is kept after the end");
                        kept.0 += 1;
                        Ok(())
                    };
                    usize::from(rows.commit(keep).is_ok())
                })
            });
            let writes = {
                let hints = Arc::clone(&hints);
                shuttle::thread::spawn(move || usize::from(hints.write(&put("a"), &nothing).is_ok()))
            };
            let ends = {
                let (rows, kept) = (Arc::clone(&rows), Arc::clone(&kept));
                shuttle::thread::spawn(move || {
                    rows.close();
                    kept.lock().1 = true;
                })
            };
            let acknowledged: usize = keeps.into_iter().map(|keeps| keeps.join().unwrap()).sum();
            let written = writes.join().unwrap();
            ends.join().unwrap();
            assert_eq!(kept.lock().0, acknowledged);
            assert!(rows.commit(&mut || Ok(())).is_err() && hints.write(&nothing, &nothing).is_err());
            drop((rows, hints, lock));
            let (_lock, _, mut rows) = open(&dir, true);
            assert_eq!(names(&mut rows, "hints").len(), written);
        });
    }
}
