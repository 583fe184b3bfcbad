//! Opens one database file for a process, with one connection that writes and up to two that read.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_core::clock::Clock;
use nudge_core::error::{Error, Result};
use nudge_core::patience;
use nudge_core::source::{DataDir, Fence};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::app::{DataRetention, DatabaseKind, DatabaseOpening};
use crate::day::DailyCopies;
use crate::fault::{DatabasePlace, TransactionFailure};
use crate::files::{DatabaseFiles, FileStanding};
use crate::pool::{PooledReader, ReaderPool};
use crate::{backup, check, log_owner, open, recover};

/// Largest number of times that a call switches to another file because that file has replaced the open one.
const MAX_MOVES: usize = 3;
/// Number of bits by which the file's number is shifted to make room for SQLite's change number.
const EPOCH_SHIFT: u32 = 32;

/// An open database. Any thread may call it. A call takes milliseconds, so it must not run on an event loop.
///
/// ```
/// use nudge_core::source::DataDir;
/// use nudge_storage::{DatabaseKind, Db, DataRetention, DatabaseOpening};
///
/// static NOTES: DatabaseKind = DatabaseKind {
///     name: "notes",
///     migrations: &["CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT;"],
///     full_text: &[],
///     kept: DataRetention::Data,
/// };
///
/// # let place = tempfile::tempdir().unwrap();
/// let folder = DataDir::new(place.path().join("nudge"));
/// let db = Db::open(&DatabaseOpening::new(&folder, &NOTES))?;
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
    pub(crate) place: DatabasePlace,
    pub(crate) app: &'static DatabaseKind,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fence: Arc<dyn Fence>,
    pub(crate) wait: Duration,
    journal: Mutex<String>,
    /// The open files; `None` after closing, or when the file that replaced them could not be opened.
    files: Mutex<Option<DatabaseFiles>>,
    // Fields drop in this order. The writing connection must close last, because only the last connection copies the
    // log back.
    looker: Mutex<Option<Connection>>,
    readers: ReaderPool,
    /// The connection that writes; `None` after closing.
    writer: Mutex<Option<Connection>>,
    pub(crate) copies: DailyCopies,
}

impl Db {
    /// Opens a database, or creates it when it is missing. Runs the missing migrations, after a copy of the file.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` in these cases: other users can access the folder or the file; the file belongs to another
    /// program, is damaged, or was written by a later version; other processes use the file until the wait is over. The
    /// call has changed nothing then.
    pub fn open(opening: &DatabaseOpening<'_>) -> Result<Self> {
        let DatabaseOpening { folder, app, clock, fence, wait } = opening;
        let place = DatabasePlace { folder: folder.create_folder()?, name: app.name };
        let date = backup::format_date(clock.plausible_time());
        let opened = place.map_failure(open::open_database(&place, app, &date, Instant::now() + *wait))?;
        // A database that was empty before this opening needs no copy today.
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
            readers: ReaderPool::new(),
            writer: Mutex::new(Some(opened.connection)),
            copies,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.place.path()
    }

    /// Calls `read` with a connection that only reads, within one transaction. If a full-text index is damaged, the
    /// function rebuilds it and calls `read` again.
    ///
    /// # Errors
    /// The error that `read` returns; `E_UNAVAILABLE` for an error of SQLite, or when the wait is over.
    pub fn read<T>(&self, mut read: impl FnMut(&Connection) -> Result<T, TransactionFailure>) -> Result<T> {
        self.run_mending(|| {
            let reader = self.take_reader()?;
            let c = reader.connection.as_ref().ok_or_else(|| self.closed_error())?;
            let tx = c.unchecked_transaction()?;
            self.check_version(&tx)?;
            read(&tx)
        })
    }

    /// Calls `write` with a transaction that excludes other writers, and commits it if the fence allows it. If `write`
    /// or the commit fails, nothing changes. Do slow work before the call, because all other writers wait.
    ///
    /// If a full-text index is damaged, the function rebuilds it and calls `write` again.
    ///
    /// # Errors
    /// The error that `write` or the fence returns; `E_UNAVAILABLE` for an error of SQLite, or when the wait is over.
    pub fn write<T>(&self, mut write: impl FnMut(&Transaction<'_>) -> Result<T, TransactionFailure>) -> Result<T> {
        self.run_mending(|| self.try_transaction(&mut write))
    }

    /// Writes as [`write`](Self::write) does, without repairing indexes. If another file took the database's name
    /// before the commit ended, the function repeats the change in that file.
    fn try_transaction<T>(
        &self,
        write: &mut impl FnMut(&Transaction<'_>) -> Result<T, TransactionFailure>,
    ) -> Result<T, TransactionFailure> {
        let deadline = patience::end_within(self.wait);
        let mut writer = self.lock_writer(deadline)?;
        for _ in 0..MAX_MOVES {
            self.stay_in_place(&mut writer, deadline)?;
            let c = writer.as_mut().ok_or_else(|| self.closed_error())?;
            self.see_to_the_day(c, deadline);
            c.busy_timeout(deadline.saturating_duration_since(Instant::now()))?;
            if let Some(value) = self.transact_once(c, write)? {
                return Ok(value);
            }
        }
        Err(self.place.moving_error().into())
    }

    /// Makes a change. Returns `None` when the file lost its name before the commit ended.
    fn transact_once<T>(
        &self,
        c: &mut Connection,
        write: &mut impl FnMut(&Transaction<'_>) -> Result<T, TransactionFailure>,
    ) -> Result<Option<T>, TransactionFailure> {
        let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
        self.check_version(&tx)?;
        let value = write(&tx)?;
        let (mut tx, mut failed, mut is_moved) = (Some(tx), None, false);
        let kept = self.fence.commit(&mut || {
            // An early return drops the transaction, which rolls it back.
            let Some(tx) = tx.take() else { return Ok(()) };
            is_moved = !self.is_in_place();
            if !is_moved {
                failed = tx.commit().err();
                is_moved = failed.is_none() && !self.is_in_place();
            }
            // This error only makes the fence stop the commit. The variables `failed` and `is_moved` hold the reason.
            if is_moved || failed.is_some() { Err(self.place.busy_error()) } else { Ok(()) }
        });
        match (kept, failed) {
            (_, Some(error)) => Err(error.into()),
            (Err(_), None) if is_moved => Ok(None),
            (kept, None) => Ok(kept.map(|()| Some(value))?),
        }
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.files.lock().as_ref().is_some_and(|files| files.check_standing() == FileStanding::InPlace)
    }

    /// Takes a connection that reads the file that now has the database's name.
    fn take_reader(&self) -> Result<PooledReader<'_>, TransactionFailure> {
        let deadline = patience::end_within(self.wait);
        for _ in 0..MAX_MOVES {
            self.find_place(deadline)?;
            let reader = self.readers.take_reader(&self.place, deadline)?;
            // A new connection may have opened a file that replaced this one meanwhile; then the loop tries again.
            if self.readers.is_closed() || self.is_in_place() {
                return Ok(reader);
            }
        }
        Err(self.place.moving_error().into())
    }

    /// Switches to the present file as [`stay_in_place`](Self::stay_in_place) does, for a reader: it does not create a
    /// missing file.
    fn find_place(&self, deadline: Instant) -> Result<(), TransactionFailure> {
        let standing = self.files.lock().as_ref().map(DatabaseFiles::check_standing);
        match standing {
            Some(FileStanding::InPlace) => Ok(()),
            Some(FileStanding::Removed) => Err(self
                .place
                .refusal_error("is not there any more; put it back, or save something to begin a new one")
                .into()),
            _ => self.stay_in_place(&mut *self.lock_writer(deadline)?, deadline),
        }
    }

    /// Ensures that the open file is the one that now has the database's name. If it is not, closes all connections and
    /// opens the file with that name, or creates a missing one.
    pub(crate) fn stay_in_place(
        &self,
        writer: &mut Option<Connection>,
        deadline: Instant,
    ) -> Result<(), TransactionFailure> {
        if self.readers.is_closed() || self.is_in_place() {
            return Ok(());
        }
        let numbers = writer.as_ref().and_then(|c| recover::read_sequences(c).ok()).unwrap_or_default();
        self.leave_file(writer);
        DataDir::new(&self.place.folder).create_folder()?;
        let date = backup::format_date(self.clock.plausible_time());
        let mut opened = open::open_database(&self.place, self.app, &date, deadline)?;
        if self.app.kept == DataRetention::Data {
            recover::continue_sequences(&mut opened.connection, &numbers)?;
        }
        *self.journal.lock() = opened.journal;
        *self.files.lock() = Some(opened.files);
        *writer = Some(opened.connection);
        Ok(())
    }

    /// Closes all connections to a file that has lost its name. Removes the log of that file, so that SQLite does not
    /// replay the log onto the next file. Saves the contents of a replaced file in the backups.
    fn leave_file(&self, writer: &mut Option<Connection>) {
        let files = self.files.lock().take();
        self.readers.begin_anew();
        *self.looker.lock() = None;
        let (Some(mut c), Some(files)) = (writer.take(), files) else { return };
        let _ = c.busy_timeout(Duration::ZERO);
        let standing = files.check_standing();
        if standing == FileStanding::Replaced && !files.has_database() && self.app.kept == DataRetention::Data {
            let kept = backup::keep_replaced(&mut c, &self.place, self.clock.now());
            if let Err(failure) = kept {
                self.copies.note_failure(self.place.to_error(failure));
            }
        }
        // The log still belongs to the open file unless another log has taken the log's name. Then the log can be
        // copied back.
        if standing != FileStanding::Replaced || !files.has_database() {
            copy_log_back(&c);
        }
        let _ = c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        drop(c);
        if !files.has_database() {
            files.remove_log(&self.place);
        }
    }

    /// Makes a call. If it fails because a full-text index is damaged, rebuilds all indexes and makes the call again.
    fn run_mending<T>(&self, mut call: impl FnMut() -> Result<T, TransactionFailure>) -> Result<T> {
        let mut result = call();
        if result.as_ref().is_err_and(TransactionFailure::is_of_an_index) && !self.app.full_text.is_empty() {
            let mended = self.try_transaction(&mut |tx| Ok(check::rebuild_indexes(tx, self.app)?));
            result = mended.and_then(|()| call());
        }
        self.place.map_failure(result)
    }

    /// Returns a number that changes when any process, including this one, changes the database. A caller compares the
    /// numbers of two calls; a single number means nothing.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_change_number(&self) -> Result<i64> {
        let look = || -> Result<i64, TransactionFailure> {
            let deadline = patience::end_within(self.wait);
            self.find_place(deadline)?;
            let mut looker = self.looker.try_lock_until(deadline).ok_or_else(|| self.place.busy_error())?;
            // SQLite's number has a meaning only within one connection, so this connection is used for nothing else.
            if looker.is_none() {
                if self.readers.is_closed() {
                    return Err(self.closed_error().into());
                }
                *looker = Some(open::connect_to_read(&self.place, self.wait)?);
            }
            let c = looker.as_ref().ok_or_else(|| self.closed_error())?;
            let version: i64 = c.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
            // SQLite's number begins again with each file, so the number of the file is added.
            Ok(version + (self.epoch().cast_signed() << EPOCH_SHIFT))
        };
        self.place.map_failure(look())
    }

    /// Copies the database into a new file, with mode 0600 on systems with modes, and returns its size in bytes.
    ///
    /// # Errors
    /// `E_INVALID` when the file exists; `E_UNAVAILABLE` when it cannot be written, or the database is damaged.
    pub fn backup(&self, to: &Path) -> Result<u64> {
        let reader = self.place.map_failure(self.take_reader())?;
        let c = reader.connection.as_ref().ok_or_else(|| self.closed_error())?;
        self.place.map_failure(backup::copy_database(c, &self.place, to))
    }

    /// Returns the path of the newest automatic copy; `None` when there is no copy.
    pub fn newest_backup(&self) -> Option<PathBuf> {
        backup::find_newest(&self.place)
    }

    /// Sets whether a thread makes the copy of a day, or the caller of the day's first change. A process that may end
    /// at any time must pass false.
    pub fn copy_in_background(&self, in_background: bool) {
        self.copies.set_background(in_background);
    }

    /// Returns the reason why today's copy failed; `None` if it succeeded or was not tried.
    pub fn backup_failed(&self) -> Option<Error> {
        self.copies.last_failure()
    }

    /// Returns the journal mode that the file system allows: `wal` on a local file system, another mode on a network
    /// file system.
    pub fn journal_mode(&self) -> String {
        self.journal.lock().clone()
    }

    /// Returns how many times another file has replaced the open one. A caller that caches contents of the file must
    /// drop them when this number changes.
    pub fn epoch(&self) -> u64 {
        self.readers.epoch()
    }

    /// Empties a [`DataRetention::Cache`] and makes its schema again, even in a damaged file.
    ///
    /// `E_UNAVAILABLE` in these cases: other processes use the database until the wait is over; a later version wrote
    /// it; it is not a cache.
    pub fn begin_anew(&self) -> Result<()> {
        if self.app.kept != DataRetention::Cache {
            return Err(self.place.refusal_error("is not a cache and is never emptied; report this"));
        }
        let deadline = patience::end_within(self.wait);
        let anew = || -> Result<(), TransactionFailure> {
            let mut writer = self.lock_writer(deadline)?;
            let c = writer.as_ref().ok_or_else(|| self.closed_error())?;
            c.busy_timeout(deadline.saturating_duration_since(Instant::now()))?;
            if open::read_version(c).is_ok_and(|version| version > self.app.version()) {
                return Err(self.place.newer_error().into());
            }
            open::empty_database(c)?;
            let date = backup::format_date(self.clock.plausible_time());
            let opened = open::open_database(&self.place, self.app, &date, deadline)?;
            *self.files.lock() = Some(opened.files);
            *writer = Some(opened.connection);
            Ok(())
        };
        self.place.map_failure(anew())
    }

    /// Closes the database: copies the log back, and refuses every later call. A second close does nothing. The close
    /// waits for a running copy of the day, and cancels it when the wait is over. The next process that changes the
    /// database on that day makes the copy again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a change takes longer than the wait; the database stays open then.
    pub fn close(&self) -> Result<()> {
        let Some(mut writer) = self.writer.try_lock_for(self.wait) else { return Err(self.place.busy_error()) };
        self.readers.close();
        *self.looker.lock() = None;
        // Waits for the copy of the day first: SQLite copies the log back only when no connection reads.
        self.copies.close(self.wait);
        if !self.is_in_place() {
            self.leave_file(&mut writer);
        }
        if let Some(c) = writer.take() {
            copy_log_back(&c);
            drop(c);
            log_owner::forget_owner(&self.place);
        }
        self.files.lock().take();
        Ok(())
    }

    /// Locks the connection that writes.
    pub(crate) fn lock_writer(
        &self,
        deadline: Instant,
    ) -> Result<MutexGuard<'_, Option<Connection>>, TransactionFailure> {
        self.writer.try_lock_until(deadline).ok_or_else(|| self.place.busy_error().into())
    }

    pub(crate) fn closed_error(&self) -> Error {
        self.place.refusal_error("is closed; start nudge again")
    }

    /// Checks the version before a change: another version may have changed the schema since the opening, or a user may
    /// have restored an old copy.
    fn check_version(&self, c: &Connection) -> Result<(), TransactionFailure> {
        match open::read_version(c)? {
            now if now == self.app.version() => Ok(()),
            now if now > self.app.version() => Err(self.place.newer_error().into()),
            _ => Err(self.place.refusal_error("was replaced by one of an earlier version; start nudge again").into()),
        }
    }

    /// Before the first change of a day, cuts the log and makes the copy of the day. If the copy fails, the change goes
    /// on and the status reports the failure.
    fn see_to_the_day(&self, c: &Connection, deadline: Instant) {
        let date = backup::format_date(self.clock.plausible_time());
        if !self.copies.begin_day(&date) {
            return;
        }
        // Cuts the log before the copy begins, because a copy in the background would prevent that.
        copy_log_back(c);
        // This timeout is safe to set: the caller has locked the connection, so no other thread uses it.
        let _ = c.busy_timeout(self.wait);
        if self.app.kept == DataRetention::Data && !backup::is_there(&self.place, &date) {
            self.copies.make_copy(c, &self.place, &date, deadline);
        }
    }
}

impl Drop for Db {
    fn drop(&mut self) {
        // No other code uses the database any more, so the close does not wait.
        let _ = self.close();
    }
}

/// Copies the log into the file and cuts the log. Does nothing while another connection reads the log; a later call
/// does it then.
fn copy_log_back(c: &Connection) {
    let _ = c.busy_timeout(Duration::ZERO);
    let _ = c.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}
