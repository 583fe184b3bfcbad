//! A database: one file, one connection that writes, two that read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nudge_core::clock::Clock;
use nudge_core::error::{Error, Result};
use nudge_core::patience;
use nudge_core::source::{DataDir, Fence};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::app::{App, Kept, Opening};
use crate::day::DailyCopies;
use crate::fault::{Failure, Place};
use crate::files::{Files, Standing};
use crate::pool::{Pool, Reader};
use crate::{backup, check, log_owner, open, recover};

/// How often a call goes on in another file that took the place of the one that was open.
const MAX_MOVES: usize = 3;
/// Number of bits below the file's number in the number of a change.
const EPOCH_SHIFT: u32 = 32;

/// An open database. Calls may come from any thread; they take milliseconds, so none belongs on an event loop.
///
/// ```
/// use nudge_core::source::DataDir;
/// use nudge_storage::{App, Db, Kept, Opening};
///
/// static NOTES: App = App {
///     name: "notes",
///     migrations: &["CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"],
///     full_text: &[],
///     kept: Kept::Data,
/// };
///
/// # let place = tempfile::tempdir().unwrap();
/// let folder = DataDir::new(place.path().join("nudge"));
/// let db = Db::open(&Opening::new(&folder, &NOTES))?;
/// let id = db.write(|tx| {
///     tx.execute("INSERT INTO note(text) VALUES(?1)", ["The port is 4321."])?;
///     Ok(tx.last_insert_rowid())
/// })?;
/// let text: String = db.read(|c| Ok(c.query_row("SELECT text FROM note WHERE id = ?1", [id], |row| row.get(0))?))?;
/// assert_eq!(text, "The port is 4321.");
/// db.close()?;
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
pub struct Db {
    pub(crate) place: Place,
    pub(crate) app: &'static App,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fence: Arc<dyn Fence>,
    pub(crate) wait: Duration,
    journal: Mutex<String>,
    /// The files that are open; `None` once closed, or after one that took their place could not be opened.
    files: Mutex<Option<Files>>,
    // The connection that writes is the last to go: only such a one copies the log back.
    looker: Mutex<Option<Connection>>,
    readers: Pool,
    /// `None` once closed.
    writer: Mutex<Option<Connection>>,
    pub(crate) copies: DailyCopies,
    /// The number of transactions that this process has committed.
    commits: Arc<AtomicU64>,
}

impl Db {
    /// Opens a database, which is made when it is not there. The schema is brought up to date; a copy is made before.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`, and nothing is changed, when the folder or the file is not this user's alone, the file is
    /// another program's, damaged, or written by a later version, or others use it until the wait is over.
    pub fn open(opening: &Opening<'_>) -> Result<Self> {
        let Opening { folder, app, clock, fence, wait } = opening;
        let place = Place { folder: folder.create()?, name: app.name };
        let date = backup::date(clock.plausible());
        let opened = place.told(open::open(&place, app, &date, Instant::now() + *wait))?;
        // A file that was empty this morning needs no copy today.
        let copies = DailyCopies::new(if opened.is_new { date } else { String::new() });
        Ok(Self {
            place,
            app,
            clock: Arc::clone(clock),
            fence: Arc::clone(fence),
            wait: *wait,
            journal: Mutex::new(opened.journal),
            files: Mutex::new(Some(opened.files)),
            looker: Mutex::new(None),
            readers: Pool::new(),
            writer: Mutex::new(Some(opened.connection)),
            copies,
            commits: Arc::default(),
        })
    }

    /// The file.
    pub fn path(&self) -> PathBuf {
        self.place.path()
    }

    /// Calls `read` with a connection that only reads; all that it asks is answered of one moment. When a full-text
    /// index turns out to be damaged, it is made anew, and `read` is called again.
    ///
    /// # Errors
    /// The refusal of `read`; `E_UNAVAILABLE` for that of SQLite, and when the wait is over.
    pub fn read<T>(&self, mut read: impl FnMut(&Connection) -> Result<T, Failure>) -> Result<T> {
        self.mending(|| {
            let reader = self.reader()?;
            let c = reader.connection.as_ref().ok_or_else(|| self.closed())?;
            let tx = c.unchecked_transaction()?;
            self.check_version(&tx)?;
            read(&tx)
        })
    }

    /// Calls `write` with a transaction that excludes other writers, and commits it behind the fence. When `write` or
    /// the commit fails, nothing is changed. Do slow work before the call: all other writers wait.
    ///
    /// When a full-text index turns out to be damaged, it is made anew, and `write` is called again.
    ///
    /// # Errors
    /// The refusal of `write` or the fence; `E_UNAVAILABLE` for that of SQLite, and when the wait is over.
    pub fn write<T>(&self, mut write: impl FnMut(&Transaction<'_>) -> Result<T, Failure>) -> Result<T> {
        self.mending(|| self.transact(&mut write))
    }

    /// As [`write`](Self::write), without mending. A change that was committed to a file that had lost its name by then
    /// is made again in the file that has it, before it is told of.
    fn transact<T>(&self, write: &mut impl FnMut(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let deadline = patience::end_within(self.wait);
        let mut writer = self.writer(deadline)?;
        for _ in 0..MAX_MOVES {
            self.stay_in_place(&mut writer, deadline)?;
            let c = writer.as_mut().ok_or_else(|| self.closed())?;
            self.see_to_the_day(c, deadline);
            c.busy_timeout(deadline.saturating_duration_since(Instant::now()))?;
            if let Some(value) = self.transact_once(c, write)? {
                return Ok(value);
            }
        }
        Err(self.place.moving().into())
    }

    /// Makes a change; `None` when the database lost its name before all was done.
    fn transact_once<T>(
        &self,
        c: &mut Connection,
        write: &mut impl FnMut(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.check_version(&tx)?;
        let value = write(&tx)?;
        let (mut tx, mut failed, mut is_moved) = (Some(tx), None, false);
        let kept = self.fence.commit(&mut || {
            // A change that is not committed is rolled back when it is dropped.
            let Some(tx) = tx.take() else { return Ok(()) };
            is_moved = !self.is_in_place();
            if !is_moved {
                failed = tx.commit().err();
                is_moved = failed.is_none() && !self.is_in_place();
            }
            // The fence passes on refusals alone.
            if is_moved || failed.is_some() { Err(self.place.busy()) } else { Ok(()) }
        });
        match (kept, failed) {
            (_, Some(error)) => Err(error.into()),
            (Err(_), None) if is_moved => Ok(None),
            (kept, None) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                Ok(kept.map(|()| Some(value))?)
            }
        }
    }

    /// The number of transactions that this process has committed.
    pub(crate) fn commits(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.commits)
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.files.lock().as_ref().is_some_and(|files| files.standing() == Standing::InPlace)
    }

    /// A connection that reads the file that has the name.
    fn reader(&self) -> Result<Reader<'_>, Failure> {
        let deadline = patience::end_within(self.wait);
        for _ in 0..MAX_MOVES {
            self.find_place(deadline)?;
            let reader = self.readers.take(&self.place, deadline)?;
            // A connection that was opened just now may be of another file, with the log of this one.
            if self.readers.is_closed() || self.is_in_place() {
                return Ok(reader);
            }
        }
        Err(self.place.moving().into())
    }

    /// As [`stay_in_place`](Self::stay_in_place), for a reader: when there is no file any more, none is made.
    fn find_place(&self, deadline: Instant) -> Result<(), Failure> {
        let standing = self.files.lock().as_ref().map(Files::standing);
        match standing {
            Some(Standing::InPlace) => Ok(()),
            Some(Standing::Removed) => Err(self
                .place
                .refusal("is not there any more; put it back, or save something to begin a new one")
                .into()),
            _ => self.stay_in_place(&mut *self.writer(deadline)?, deadline),
        }
    }

    /// Makes sure that the open file is the one that has the name: if it is not, all connections end, and the file that
    /// is there now is opened, or made if there is none.
    pub(crate) fn stay_in_place(&self, writer: &mut Option<Connection>, deadline: Instant) -> Result<(), Failure> {
        if self.readers.is_closed() || self.is_in_place() {
            return Ok(());
        }
        let numbers = writer.as_ref().and_then(|c| recover::numbers(c).ok()).unwrap_or_default();
        self.leave(writer);
        DataDir::new(&self.place.folder).create()?;
        let date = backup::date(self.clock.plausible());
        let mut opened = open::open(&self.place, self.app, &date, deadline)?;
        if self.app.kept == Kept::Data {
            recover::follow(&mut opened.connection, &numbers)?;
        }
        *self.journal.lock() = opened.journal;
        *self.files.lock() = Some(opened.files);
        *writer = Some(opened.connection);
        Ok(())
    }

    /// Ends all connections to a file that has lost its name, and takes its log out of the way of the next one. A file
    /// that was replaced is kept beside the backups.
    fn leave(&self, writer: &mut Option<Connection>) {
        let files = self.files.lock().take();
        self.readers.begin_anew();
        *self.looker.lock() = None;
        let (Some(mut c), Some(files)) = (writer.take(), files) else { return };
        let _ = c.busy_timeout(Duration::ZERO);
        let standing = files.standing();
        if standing == Standing::Replaced && !files.has_database() && self.app.kept == Kept::Data {
            let kept = backup::keep_replaced(&mut c, &self.place, self.clock.now());
            if let Err(failure) = kept {
                self.copies.fail(self.place.refuse(failure));
            }
        }
        // The file has its own log whole, whatever its name is now, unless another log has the name.
        if standing != Standing::Replaced || !files.has_database() {
            copy_log_back(&c);
        }
        let _ = c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        drop(c);
        if !files.has_database() {
            files.remove_log(&self.place);
        }
    }

    /// Runs a call, and again when it fails of a full-text index that can be made anew.
    fn mending<T>(&self, mut call: impl FnMut() -> Result<T, Failure>) -> Result<T> {
        let mut result = call();
        if result.as_ref().is_err_and(Failure::is_of_an_index) && !self.app.full_text.is_empty() {
            let mended = self.transact(&mut |tx| Ok(check::rebuild(tx, self.app)?));
            result = mended.and_then(|()| call());
        }
        self.place.told(result)
    }

    /// A number that differs from that of the last look when anybody has changed the database since, in this process
    /// or in another. The first look tells nothing.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn changes(&self) -> Result<i64> {
        let look = || -> Result<i64, Failure> {
            let deadline = patience::end_within(self.wait);
            self.find_place(deadline)?;
            let mut looker = self.looker.try_lock_until(deadline).ok_or_else(|| self.place.busy())?;
            // The number belongs to a connection, so it is one that is used for nothing else.
            if looker.is_none() {
                if self.readers.is_closed() {
                    return Err(self.closed().into());
                }
                *looker = Some(open::connect_to_read(&self.place, self.wait)?);
            }
            let c = looker.as_ref().ok_or_else(|| self.closed())?;
            let version: i64 = c.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
            // Each file begins to count anew.
            Ok(version + (self.epoch().cast_signed() << EPOCH_SHIFT))
        };
        self.place.told(look())
    }

    /// Copies the database into a new file, with mode 0600 where there are modes, and returns its bytes.
    ///
    /// # Errors
    /// `E_INVALID` when there is such a file; `E_UNAVAILABLE` when it cannot be written, or the database is damaged.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        let reader = self.place.told(self.reader())?;
        let c = reader.connection.as_ref().ok_or_else(|| self.closed())?;
        self.place.told(backup::copy(c, &self.place, to))
    }

    /// The newest copy that was made by itself, if there is any.
    pub fn newest_backup(&self) -> Option<PathBuf> {
        backup::newest(&self.place)
    }

    /// Has the copy of a day made in the background from now on, or by the caller of the day's first change. A process
    /// that may end at any time leaves it to the caller.
    pub fn copy_in_background(&self, in_background: bool) {
        self.copies.set_background(in_background);
    }

    /// Why there is no copy of today, if one was tried.
    pub fn backup_failed(&self) -> Option<Error> {
        self.copies.failed()
    }

    /// The journal mode that the file system allowed: `wal`, or another on one of a network.
    pub fn journal(&self) -> String {
        self.journal.lock().clone()
    }

    /// Returns how often another file took the place of the open one. A caller that remembers contents of the file
    /// forgets them when this number changes.
    pub fn epoch(&self) -> u64 {
        self.readers.epoch()
    }

    /// Empties a [`Kept::Cache`] and makes its schema again, also when it is damaged.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when others use it until the wait is over, when a later version wrote it, and for anything but a
    /// cache.
    pub fn begin_anew(&self) -> Result<()> {
        if self.app.kept != Kept::Cache {
            return Err(self.place.refusal("is not a cache and is never emptied; report this"));
        }
        let deadline = patience::end_within(self.wait);
        let anew = || -> Result<(), Failure> {
            let mut writer = self.writer(deadline)?;
            let c = writer.as_ref().ok_or_else(|| self.closed())?;
            c.busy_timeout(deadline.saturating_duration_since(Instant::now()))?;
            if open::version(c).is_ok_and(|version| version > self.app.version()) {
                return Err(self.place.newer().into());
            }
            open::empty(c)?;
            let date = backup::date(self.clock.plausible());
            let opened = open::open(&self.place, self.app, &date, deadline)?;
            *self.files.lock() = Some(opened.files);
            *writer = Some(opened.connection);
            Ok(())
        };
        self.place.told(anew())
    }

    /// Ends the use: the log is copied back, and every later call is refused. Twice is once. The copy of the day that a
    /// thread makes is waited for, and given up when that takes too long: the next first change of a process makes one.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a change takes longer than the wait; the database stays open then.
    pub fn close(&self) -> Result<()> {
        let Some(mut writer) = self.writer.try_lock_for(self.wait) else { return Err(self.place.busy()) };
        self.readers.close();
        *self.looker.lock() = None;
        // The log is copied back only when no connection reads any more.
        self.copies.close(self.wait);
        if !self.is_in_place() {
            self.leave(&mut writer);
        }
        if let Some(c) = writer.take() {
            copy_log_back(&c);
            drop(c);
            log_owner::forget(&self.place);
        }
        self.files.lock().take();
        Ok(())
    }

    /// The connection that writes.
    pub(crate) fn writer(&self, deadline: Instant) -> Result<MutexGuard<'_, Option<Connection>>, Failure> {
        self.writer.try_lock_until(deadline).ok_or_else(|| self.place.busy().into())
    }

    pub(crate) fn closed(&self) -> Error {
        self.place.refusal("is closed; start nudge again")
    }

    /// Another version may have changed the schema since it was opened, or somebody may have put back an old copy.
    fn check_version(&self, c: &Connection) -> Result<(), Failure> {
        match open::version(c)? {
            now if now == self.app.version() => Ok(()),
            now if now > self.app.version() => Err(self.place.newer().into()),
            _ => Err(self.place.refusal("was replaced by one of an earlier version; start nudge again").into()),
        }
    }

    /// Makes the copy of the day before its first change, and cuts the log. A copy that fails is told of in the status,
    /// and holds up no change.
    fn see_to_the_day(&self, c: &Connection, deadline: Instant) {
        let date = backup::date(self.clock.plausible());
        if !self.copies.begin_day(&date) {
            return;
        }
        // A copy in the background would be in its way.
        copy_log_back(c);
        // The caller has the connection, so no other thread is here.
        let _ = c.busy_timeout(self.wait);
        if self.app.kept == Kept::Data && !backup::is_there(&self.place, &date) {
            self.copies.make(c, &self.place, &date, deadline);
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // No other code has it any more, so there is nothing to wait for.
        let _ = self.close();
    }
}

/// Copies the log into the file and cuts it, unless somebody reads in it: then a later time will do.
fn copy_log_back(c: &Connection) {
    let _ = c.busy_timeout(Duration::ZERO);
    let _ = c.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}
