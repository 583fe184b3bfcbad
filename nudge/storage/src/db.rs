//! A database: one file, with one connection that writes and up to two that read.

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

/// Largest number of times that a call follows the name to another file which has replaced the open one.
const MAX_MOVES: usize = 3;
/// Number of bits of a change number below the file's number.
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
    // The writing connection must close last, because only the last connection copies the log back.
    looker: Mutex<Option<Connection>>,
    readers: ReaderPool,
    /// `None` after closing.
    writer: Mutex<Option<Connection>>,
    pub(crate) copies: DailyCopies,
}

impl Db {
    /// Opens a database, and makes it when it is missing. Brings the schema up to date; before a migration it makes a
    /// copy.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the folder or the file is not only this user's, when the file is another program's,
    /// damaged, or written by a later version, or when other processes use it until the wait is over. Nothing has
    /// changed then.
    pub fn open(opening: &DatabaseOpening<'_>) -> Result<Self> {
        let DatabaseOpening { folder, app, clock, fence, wait } = opening;
        let place = DatabasePlace { folder: folder.create_folder()?, name: app.name };
        let date = backup::format_date(clock.plausible_time());
        let opened = place.map_failure(open::open_database(&place, app, &date, Instant::now() + *wait))?;
        // A file that was empty before today needs no copy today.
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

    /// Calls `read` with a connection that only reads, within one transaction. When a full-text index is damaged, it is
    /// rebuilt, and `read` is called again.
    ///
    /// # Errors
    /// The refusal of `read`; `E_UNAVAILABLE` for an error of SQLite, and when the wait is over.
    pub fn read<T>(&self, mut read: impl FnMut(&Connection) -> Result<T, TransactionFailure>) -> Result<T> {
        self.run_mending(|| {
            let reader = self.take_reader()?;
            let c = reader.connection.as_ref().ok_or_else(|| self.closed_error())?;
            let tx = c.unchecked_transaction()?;
            self.check_version(&tx)?;
            read(&tx)
        })
    }

    /// Calls `write` with a transaction that excludes other writers, and commits it behind the fence. When `write` or
    /// the commit fails, nothing changes. Do slow work before the call, because all other writers wait.
    ///
    /// When a full-text index is damaged, it is rebuilt, and `write` is called again.
    ///
    /// # Errors
    /// The refusal of `write` or of the fence; `E_UNAVAILABLE` for an error of SQLite, and when the wait is over.
    pub fn write<T>(&self, mut write: impl FnMut(&Transaction<'_>) -> Result<T, TransactionFailure>) -> Result<T> {
        self.run_mending(|| self.try_transaction(&mut write))
    }

    /// Writes as [`write`](Self::write) does, without repairing indexes. If the file lost its name before the end of
    /// the commit, this function repeats the change in the file that now has the name, and only then returns.
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

    /// Makes a change; `None` when the file lost its name before the end.
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
            // Dropping a transaction without a commit rolls it back.
            let Some(tx) = tx.take() else { return Ok(()) };
            is_moved = !self.is_in_place();
            if !is_moved {
                failed = tx.commit().err();
                is_moved = failed.is_none() && !self.is_in_place();
            }
            // The fence only needs an error here; `failed` and `is_moved` hold the reason.
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

    /// Takes a connection that reads the file that has the name.
    fn take_reader(&self) -> Result<PooledReader<'_>, TransactionFailure> {
        let deadline = patience::end_within(self.wait);
        for _ in 0..MAX_MOVES {
            self.find_place(deadline)?;
            let reader = self.readers.take_reader(&self.place, deadline)?;
            // A new connection may have opened another file, with the log of this one.
            if self.readers.is_closed() || self.is_in_place() {
                return Ok(reader);
            }
        }
        Err(self.place.moving_error().into())
    }

    /// Checks the file as [`stay_in_place`](Self::stay_in_place) does, for a reader: a missing file is not made again.
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

    /// Ensures that the open file is the one that has the name. Otherwise it closes all connections and opens the file
    /// that now has the name, or makes it if it is missing.
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

    /// Closes all connections to a file that has lost its name, and removes its log so that the next file does not get
    /// it. The contents of a replaced file are saved in the backups.
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
        // The file's own log is complete, under whatever name the file is, unless another log has the log's name.
        if standing != FileStanding::Replaced || !files.has_database() {
            copy_log_back(&c);
        }
        let _ = c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        drop(c);
        if !files.has_database() {
            files.remove_log(&self.place);
        }
    }

    /// Makes a call. When it fails because of a damaged full-text index, rebuilds the indexes and makes the call again.
    fn run_mending<T>(&self, mut call: impl FnMut() -> Result<T, TransactionFailure>) -> Result<T> {
        let mut result = call();
        if result.as_ref().is_err_and(TransactionFailure::is_of_an_index) && !self.app.full_text.is_empty() {
            let mended = self.try_transaction(&mut |tx| Ok(check::rebuild_indexes(tx, self.app)?));
            result = mended.and_then(|()| call());
        }
        self.place.map_failure(result)
    }

    /// Returns a number that changes when any process changes the database, this one included. The first call only
    /// gives a number to compare with.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_change_number(&self) -> Result<i64> {
        let look = || -> Result<i64, TransactionFailure> {
            let deadline = patience::end_within(self.wait);
            self.find_place(deadline)?;
            let mut looker = self.looker.try_lock_until(deadline).ok_or_else(|| self.place.busy_error())?;
            // The number belongs to a connection, so this connection is used for nothing else.
            if looker.is_none() {
                if self.readers.is_closed() {
                    return Err(self.closed_error().into());
                }
                *looker = Some(open::connect_to_read(&self.place, self.wait)?);
            }
            let c = looker.as_ref().ok_or_else(|| self.closed_error())?;
            let version: i64 = c.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
            // SQLite counts from the beginning for each file, so the file's number is added.
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

    /// Returns the newest automatic copy, if there is one.
    pub fn newest_backup(&self) -> Option<PathBuf> {
        backup::find_newest(&self.place)
    }

    /// Sets whether the copy of a day is made in the background, or by the caller of the day's first change. A process
    /// that may end at any time must leave the copy to the caller.
    pub fn copy_in_background(&self, in_background: bool) {
        self.copies.set_background(in_background);
    }

    /// Returns the reason why there is no copy of today, if a copy was tried.
    pub fn backup_failed(&self) -> Option<Error> {
        self.copies.last_failure()
    }

    /// Returns the journal mode that the file system allows: `wal`, or another mode on a network file system.
    pub fn journal_mode(&self) -> String {
        self.journal.lock().clone()
    }

    /// Returns how many times another file has replaced the open one. A caller that caches contents of the file must
    /// drop them when this number changes.
    pub fn epoch(&self) -> u64 {
        self.readers.epoch()
    }

    /// Empties a [`DataRetention::Cache`] and makes its schema again, even when the file is damaged.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when other processes use the database until the wait is over, when a later version wrote it, and
    /// when it is not a cache.
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

    /// Closes the database: copies the log back, and refuses every later call. A second close does nothing. A running
    /// copy of the day may go on for as long as the wait, and is then cancelled: the next process that changes the
    /// database that day makes it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a change takes longer than the wait; the database stays open then.
    pub fn close(&self) -> Result<()> {
        let Some(mut writer) = self.writer.try_lock_for(self.wait) else { return Err(self.place.busy_error()) };
        self.readers.close();
        *self.looker.lock() = None;
        // SQLite copies the log back only when no connection reads.
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

    /// Another version may have changed the schema since the file was opened, or a user may have restored an old copy.
    fn check_version(&self, c: &Connection) -> Result<(), TransactionFailure> {
        match open::read_version(c)? {
            now if now == self.app.version() => Ok(()),
            now if now > self.app.version() => Err(self.place.newer_error().into()),
            _ => Err(self.place.refusal_error("was replaced by one of an earlier version; start nudge again").into()),
        }
    }

    /// Before the first change of a day, cuts the log and makes the copy of the day. The status reports a failed copy;
    /// the change goes on.
    fn see_to_the_day(&self, c: &Connection, deadline: Instant) {
        let date = backup::format_date(self.clock.plausible_time());
        if !self.copies.begin_day(&date) {
            return;
        }
        // A copy in the background would prevent this.
        copy_log_back(c);
        // The caller has locked the connection, so no other thread changes this timeout.
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

/// Copies the log into the file and cuts it. While another connection reads the log, this does nothing, and a later
/// call does it.
fn copy_log_back(c: &Connection) {
    let _ = c.busy_timeout(Duration::ZERO);
    let _ = c.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
}
