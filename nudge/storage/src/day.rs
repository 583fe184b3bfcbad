//! Makes the copy of a day: a copy of the database before the day's first change.
//!
//! In a session, a thread makes the copy. A change of a large database then waits only until the thread has begun its
//! transaction. A process without a session may end at any time, so its change waits for the whole copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nudge_core::error::Error;
use nudge_core::source::give_way;
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, InterruptHandle};

use crate::fault::{DatabasePlace, TransactionFailure};
use crate::{backup, open};

/// Pause between two attempts to interrupt a copy.
const PAUSE: Duration = Duration::from_millis(10);

/// Makes the daily copies of a database.
pub(crate) struct DailyCopies {
    in_background: AtomicBool,
    day: Arc<Mutex<DayState>>,
    /// The newest copy that a thread has begun, running or ended.
    copying: Mutex<Option<RunningCopy>>,
    /// In a test, the next copy pauses after it has begun its transaction, until the test drops the sender.
    #[cfg(test)]
    held: Mutex<Option<Receiver<()>>>,
}

/// The state of a day's copy.
struct DayState {
    /// The last day for which a copy was begun or found, such as `2026-11-23`.
    date: String,
    /// The reason why that day has no copy.
    failed: Option<Error>,
}

/// A copy that is made by a thread.
struct RunningCopy {
    thread: JoinHandle<()>,
    interrupt: InterruptHandle,
    /// Disconnects when the copy has ended.
    ended: Receiver<()>,
}

impl DailyCopies {
    /// Makes the value for a day that needs no copy. With an empty `date`, the next change counts as the first one of a
    /// day.
    pub(crate) fn new(date: String) -> Self {
        Self {
            in_background: AtomicBool::new(false),
            day: Arc::new(Mutex::new(DayState { date, failed: None })),
            copying: Mutex::new(None),
            #[cfg(test)]
            held: Mutex::new(None),
        }
    }

    /// Sets who makes the copies: a thread, or the caller of a day's first change.
    pub(crate) fn set_background(&self, in_background: bool) {
        self.in_background.store(in_background, Ordering::Relaxed);
    }

    /// Returns true for the first call with a new date, and false for later calls with the same date.
    pub(crate) fn begin_day(&self, date: &str) -> bool {
        let mut day = self.day.lock();
        let is_new = day.date != date;
        if is_new {
            *day = DayState { date: date.to_owned(), failed: None };
        }
        is_new
    }

    /// Makes the copy, or begins it on a thread. `c` is the connection of a caller that is about to change the
    /// database. If the thread has not begun its transaction before the deadline, the copy may contain that change.
    pub(crate) fn make_copy(&self, c: &Connection, place: &DatabasePlace, date: &str, deadline: Instant) {
        // Without a write-ahead log, a reader blocks writers.
        let is_logged = c.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
        let in_background = self.in_background.load(Ordering::Relaxed) && is_logged.is_ok_and(|mode| mode == "wal");
        let made = if in_background {
            self.begin_copy(place, date, deadline)
        } else {
            backup::keep_copy(c, place, date, None)
        };
        if let Err(failure) = made {
            self.note_failure(place.to_error(failure));
        }
    }

    fn begin_copy(&self, place: &DatabasePlace, date: &str, deadline: Instant) -> Result<(), TransactionFailure> {
        let mut copying = self.copying.lock();
        // Ends a copy of an earlier day that still runs, for instance after the machine slept.
        end_copy(copying.take());
        let mut c = open::connect_to_read(place, deadline.saturating_duration_since(Instant::now()))?;
        c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let (begun, seen) = channel();
        #[cfg(test)]
        let held = self.held.lock().take();
        let when_begun = move || {
            let _ = begun.send(());
            // Lowers the thread's priority only after the transaction has begun, because the caller's change waits
            // until then.
            give_way();
            #[cfg(test)]
            if let Some(held) = &held {
                let _ = held.recv();
            }
        };
        tell_begun(&mut c, when_begun)?;
        let (interrupt, (ends, ended)) = (c.get_interrupt_handle(), channel());
        let folder = place.folder.join(backup::FOLDER);
        let (day, place, date) = (Arc::clone(&self.day), place.clone(), date.to_owned());
        let copy = move || {
            let _ends: Sender<()> = ends;
            let made = backup::keep_copy(&c, &place, &date, None);
            drop(c);
            let mut day = day.lock();
            if day.date == date {
                day.failed = made.err().map(|failure| place.to_error(failure));
            }
        };
        let thread = std::thread::Builder::new().name("nudge-backup".into()).spawn(copy);
        let thread = thread.map_err(|error| backup::refusal_error(&folder, error))?;
        *copying = Some(RunningCopy { thread, interrupt, ended });
        // If the copy ends without this message, it has failed.
        let _ = seen.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        Ok(())
    }

    /// Returns the reason why the copy of the day failed; `None` if it succeeded or was not tried.
    pub(crate) fn last_failure(&self) -> Option<Error> {
        self.day.lock().failed.clone()
    }

    /// Stores the reason why the copy of the day failed.
    pub(crate) fn note_failure(&self, error: Error) {
        self.day.lock().failed = Some(error);
    }

    /// Waits until no thread makes a copy. Returns false if a thread still makes one at the deadline.
    pub(crate) fn wait_for_copy(&self, deadline: Instant) -> bool {
        let Some(copying) = self.copying.try_lock_until(deadline) else { return false };
        let Some(copying) = copying.as_ref() else { return true };
        let left = deadline.saturating_duration_since(Instant::now());
        copying.ended.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
    }

    /// Waits at most `wait` for the copy of the thread, then cancels it.
    pub(crate) fn close(&self, wait: Duration) {
        self.wait_for_copy(Instant::now() + wait);
        end_copy(self.copying.lock().take());
    }
}

fn end_copy(copying: Option<RunningCopy>) {
    let Some(copying) = copying else { return };
    // An interrupt between two statements has no effect, so the loop repeats it.
    while copying.ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        copying.interrupt.interrupt();
    }
    let _ = copying.thread.join();
}

/// Calls `begun` when `VACUUM INTO` has begun its transaction on this connection. `VACUUM INTO` then reads the schema,
/// and SQLite calls the authorizer for the first time.
fn tell_begun(c: &mut Connection, begun: impl FnOnce() + Send + 'static) -> Result<(), TransactionFailure> {
    let mut begun = Some(begun);
    Ok(c.authorizer(Some(move |context: AuthContext<'_>| {
        if context.action == AuthAction::Select
            && let Some(begun) = begun.take()
        {
            begun();
        }
        Authorization::Allow
    }))?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use nudge_core::clock::ManualClock;
    use nudge_core::error::Result;
    use nudge_core::source::DataDir;

    use super::*;
    use crate::{COMPACTION, DataRetention, DatabaseKind, DatabaseOpening, Db, mark_compaction};

    const DAY_MS: i64 = 24 * 3_600_000;
    static NOTES: DatabaseKind = DatabaseKind {
        name: "notes",
        migrations: &["CREATE TABLE note(title TEXT NOT NULL) STRICT;", COMPACTION],
        full_text: &[],
        kept: DataRetention::Data,
    };

    struct Desk {
        folder: DataDir,
        clock: Arc<ManualClock>,
        _place: tempfile::TempDir,
    }

    impl Desk {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let folder = DataDir::new(place.path().canonicalize().unwrap().join("nudge"));
            Self { folder, clock: Arc::new(ManualClock::new(1_795_435_200_000)), _place: place }
        }

        fn open(&self) -> Db {
            Db::open(&DatabaseOpening { clock: self.clock.clone(), ..DatabaseOpening::new(&self.folder, &NOTES) })
                .unwrap()
        }

        /// Opens a database whose last change was yesterday. The next copy pauses after it has begun, until the test
        /// drops the sender.
        fn open_held(&self) -> (Db, Sender<()>) {
            let db = self.open();
            add(&db, "yesterday").unwrap();
            self.clock.advance_by(DAY_MS);
            db.copy_in_background(true);
            let (release, held) = channel();
            *db.copies.held.lock() = Some(held);
            (db, release)
        }
    }

    fn add(db: &Db, title: &str) -> Result<()> {
        db.write(|tx| Ok(tx.execute("INSERT INTO note VALUES (?1)", [title])?)).map(drop)
    }

    fn titles(path: &Path) -> Vec<String> {
        let c = Connection::open(path).unwrap();
        let mut statement = c.prepare("SELECT title FROM note").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(rusqlite::Result::unwrap).collect()
    }

    /// Promise (storage): The copy of a day does not block writers, and it contains the records as they were before the
    /// day's first change.
    #[test]
    fn a_copy_under_way_is_in_no_writers_way_and_of_before_the_first_change() {
        let desk = Desk::new();
        let (db, release) = desk.open_held();
        add(&db, "the first change").unwrap();
        // Writers in this process and in another one can write during the copy.
        add(&db, "the second").unwrap();
        let other = Connection::open(db.path()).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        other.execute("INSERT INTO note VALUES ('of another')", []).unwrap();
        assert!(!db.copies.wait_for_copy(Instant::now()), "it is under way");
        assert_eq!((db.newest_backup(), db.backup_failed().is_none()), (None, true));
        drop(release);
        assert!(db.copies.wait_for_copy(Instant::now() + crate::WAIT));
        assert_eq!(titles(&db.newest_backup().unwrap()), ["yesterday"]);
        assert_eq!(titles(&db.path()).len(), 4);
    }

    #[test]
    fn a_database_that_ends_waits_for_its_copy() {
        let desk = Desk::new();
        let (db, release) = desk.open_held();
        add(&db, "the first change").unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| db.close());
            drop(release);
            closing.join().unwrap().unwrap();
        });
        assert_eq!(titles(&db.newest_backup().unwrap()), ["yesterday"]);
        assert!(!desk.folder.path().join("notes.db-wal").exists(), "the log was copied back");
    }

    #[test]
    fn a_copy_that_is_given_up_leaves_nothing_and_is_made_again() {
        let desk = Desk::new();
        let (db, release) = desk.open_held();
        add(&db, "the first change").unwrap();
        let copying = db.copies.copying.lock().take().unwrap();
        copying.interrupt.interrupt();
        drop(release);
        end_copy(Some(copying));
        assert!(db.backup_failed().is_some());
        assert_eq!(std::fs::read_dir(desk.folder.path().join("backups")).unwrap().count(), 0);
        drop(db);
        add(&desk.open(), "in the next session").unwrap();
        assert_eq!(titles(&desk.open().newest_backup().unwrap()), ["yesterday", "the first change"]);
    }

    #[test]
    fn a_compaction_comes_after_the_copy() {
        let desk = Desk::new();
        let (db, release) = desk.open_held();
        db.write(mark_compaction).unwrap();
        std::thread::scope(|scope| {
            let compacting = scope.spawn(|| db.compact());
            add(&db, "meanwhile").unwrap();
            drop(release);
            compacting.join().unwrap().unwrap();
        });
        assert!(!db.is_compaction_due().unwrap());
        assert_eq!(titles(&db.newest_backup().unwrap()), ["yesterday"]);
    }
}
