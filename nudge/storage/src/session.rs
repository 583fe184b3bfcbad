//! Stores the rows of a session in a database that only the PRIMARY of the session has open.
//!
//! A commit survives the death of the process at once. Nudge never flushes the file to the disk, because a session does
//! not survive a restart of the machine. Each row has a checksum, so a damaged row is never restored.
//!
//! SQLite's locks belong to the process: when the process closes any descriptor of the file, it loses them. So only
//! SQLite opens the file while a connection exists, and this module looks at the file by its name.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_core::error::{Error, Result};
use nudge_core::source::{RowChange, RowFeed, SessionRow};
use nudge_os::dir::{FileKind, OpenedFile, PrivateDir};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, params};

use crate::app::APPLICATION_ID;
use crate::fault::{DatabasePlace, TransactionFailure};
use crate::open;

/// The endings of the files that SQLite makes beside the database.
const SIDE_FILES: [&str; 2] = ["-wal", "-journal"];
/// The version of the schema, as `user_version`. A PRIMARY of another version does not continue the session.
const VERSION: i64 = 1;
const SCHEMA: &str = "CREATE TABLE row(
  source TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL,
  PRIMARY KEY (source, kind, name)) STRICT, WITHOUT ROWID;";
const PUT: &str = "INSERT INTO row VALUES (?1, ?2, ?3, ?4, ?5)
  ON CONFLICT DO UPDATE SET body = excluded.body, sum = excluded.sum";
const DELETE: &str = "DELETE FROM row WHERE source = ?1 AND kind = ?2 AND name = ?3";
/// Size to which SQLite cuts the write-ahead log after it has copied the log into the file, in bytes.
const MAX_LOG_BYTES: i64 = 4 << 20;
/// Size of the page cache in KiB. It is small, because the store is in memory already.
const PAGES_KIB: i64 = 256;
/// SQLite's module for files without locks, where it has one.
const WITHOUT_LOCKS: Option<&str> = if cfg!(unix) { Some("unix-none") } else { None };
/// Time after which the opening checks whether the file system has locks.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Time for which the opening waits for the connection of a process that is about to end.
const WAIT: Duration = Duration::from_secs(5);

/// The database of a session, open for the session's PRIMARY. The file is made by the first change.
pub struct SessionDb {
    place: DatabasePlace,
    open: Option<OpenRows>,
    /// False after the file was lost: then only the sources in `stored` have their rows in the present file.
    is_whole: bool,
    stored: HashSet<&'static str>,
}

/// The rows that a session had when its database was opened.
#[derive(Default)]
pub struct RestoredRows {
    /// The source and the row.
    pub rows: Vec<(String, SessionRow)>,
    /// A sentence for the log. `Some` only when the file was not as the last PRIMARY had left it.
    pub notice: Option<String>,
}

impl RestoredRows {
    /// Adds those of the rows that the source does not have.
    pub fn add_rows(&mut self, source: &str, rows: Vec<SessionRow>) {
        let own = self.rows.iter().filter(|(owner, _)| owner == source);
        let names: HashSet<_> = own.map(|(_, row)| (row.kind.clone(), row.name.clone())).collect();
        let new = rows.into_iter().filter(|row| !names.contains(&(row.kind.clone(), row.name.clone())));
        self.rows.extend(new.map(|row| (source.to_owned(), row)));
    }
}

struct OpenRows {
    connection: Connection,
    database: OpenedFile,
    log: OpenedFile,
    /// The length of the database and of its log after the last commit.
    bytes: (u64, u64),
}

impl OpenRows {
    /// Returns the length of both files; `None` when another program has removed or replaced one of them.
    fn look_at_files(&self) -> Option<(u64, u64)> {
        Some((self.database.length_in_place()?, self.log.length_in_place()?))
    }

    /// Returns true when both files are in their places, and no other program has shortened them.
    fn is_as_left(&self) -> bool {
        self.look_at_files().is_some_and(|(database, log)| database >= self.bytes.0 && log >= self.bytes.1)
    }
}

impl SessionDb {
    /// Opens the database `NAME.db` in the runtime directory `folder`. The caller is PRIMARY of the session.
    ///
    /// With `keep`, the session continues, and the function returns its rows. Without `keep`, a new session begins, and
    /// the function removes the old files.
    ///
    /// Damage causes no error: the function returns the rows that it can read, and [`RestoredRows::notice`] says so.
    /// The next call of [`Self::write`] begins a new file.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`, only with `keep`, when the file cannot be read now or is of another version. A PRIMARY without
    /// the rows would lose acknowledged changes, so the file stays unchanged.
    pub fn open(folder: &Path, name: &'static str, keep: bool) -> Result<(Self, RestoredRows)> {
        let place = DatabasePlace { folder: folder.to_owned(), name };
        let mut db = Self { place, open: None, is_whole: true, stored: HashSet::new() };
        if keep {
            let restored = db.restore_rows()?;
            db.is_whole = restored.notice.is_none();
            return Ok((db, restored));
        }
        // A file that cannot be removed now is an error of the first change.
        let _ = db.remove_files();
        Ok((db, RestoredRows::default()))
    }

    /// Removes the files. A directory with such a name stays.
    fn remove_files(&self) -> io::Result<()> {
        let Ok(dir) = PrivateDir::open(&self.place.folder, false) else { return Ok(()) };
        // The log goes first: without its database, it has no meaning.
        for ending in SIDE_FILES.iter().chain(&[""]) {
            let name = format!("{}{ending}", self.place.file_name());
            match dir.remove(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound && !dir.is_dir(&name) => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the length of the database and its log in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.bytes.0 + open.bytes.1)
    }

    /// Returns true when no other PRIMARY has made a database at this place: the file is missing or this process's own.
    pub fn is_ours(&self) -> bool {
        match &self.open {
            Some(open) => open.database.is_in_place() || !open.database.is_named() || self.place.path().is_dir(),
            None => !self.place.path().is_file(),
        }
    }

    /// Stores changes of a source in one transaction ([`nudge_core::source::SessionRows::write`]). If another program
    /// has removed or shortened the file, begins a new file with `all` rows of the source.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; the stored rows then stay as they were.
    pub fn write(&mut self, source: &'static str, changes: &RowFeed<'_>, all: &RowFeed<'_>) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| !open.is_as_left()) {
            self.lose_file();
        }
        let mut written = self.try_write(source, changes, all);
        if matches!(&written, Ok(false)) || written.as_ref().is_err_and(TransactionFailure::is_damage) {
            self.lose_file();
            written = self.try_write(source, changes, all);
        }
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.place.moving_error()),
            Err(failure) if failure.is_damage() => {
                self.lose_file();
                Err(self.place.refusal_error("is damaged, so no change can be kept; remove it"))
            }
            Err(failure) => Err(self.place.to_error(failure)),
        }
    }

    /// Makes one attempt to write. Returns false when the file lost its name before the commit ended.
    fn try_write(
        &mut self,
        source: &'static str,
        changes: &RowFeed<'_>,
        all: &RowFeed<'_>,
    ) -> Result<bool, TransactionFailure> {
        let lacks_rows = !self.is_whole && !self.stored.contains(source);
        if !lacks_rows && is_empty(changes) {
            return Ok(true);
        }
        if self.open.is_none() {
            self.open = Some(self.begin_file()?);
        }
        let open = self.open.as_mut().expect("it was just opened");
        let tx = open.connection.transaction()?;
        if lacks_rows {
            tx.execute("DELETE FROM row WHERE source = ?1", [source])?;
            change_rows(&tx, source, all)?;
        }
        change_rows(&tx, source, changes)?;
        tx.commit()?;
        let Some(bytes) = open.look_at_files() else { return Ok(false) };
        open.bytes = bytes;
        self.stored.insert(source);
        Ok(true)
    }

    /// Empties the database of a session that is over, and closes it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the rows can be neither deleted nor removed.
    pub fn clear(mut self) -> Result<()> {
        let emptied = self.open.as_ref().map_or(Ok(0), |open| open.connection.execute("DELETE FROM row", []));
        self.lose_file();
        let removed = self.remove_files();
        match (emptied, removed) {
            (Err(failure), Err(_)) => Err(self.place.to_error(failure.into())),
            _ => Ok(()),
        }
    }

    /// Closes the connection to a file that this process no longer uses. The next change begins a new file.
    pub fn lose_file(&mut self) {
        self.open = None;
        self.is_whole = false;
        self.stored.clear();
    }

    /// Makes a new file. Whatever had its name before is removed.
    fn begin_file(&self) -> Result<OpenRows, TransactionFailure> {
        if self.place.path().is_dir() {
            return Err(self.place.refusal_error("is a directory, so no change can be kept; remove it").into());
        }
        let removed = self.remove_files();
        removed.map_err(|error| self.place.refusal_error(&format!("cannot be made anew ({error}); remove it")))?;
        open::create_file(&self.place)?;
        let connection = self.connect()?;
        connection.execute_batch(SCHEMA)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        self.remember_files(connection)
    }

    /// Opens a connection. If another process has the file locked, waits until that process has closed it.
    fn connect(&self) -> Result<Connection, TransactionFailure> {
        match self.try_connect(FIRST_WAIT, None) {
            Err(failure) if failure.is_busy() => {
                // A file system whose locks have stopped working looks like a locked file. The lock of the session is
                // enough then: its owner is the only one that opens the file.
                let has_locks = open::check_locks(&self.place).is_ok();
                self.try_connect(WAIT, WITHOUT_LOCKS.filter(|_| !has_locks))
            }
            connected => connected,
        }
    }

    /// Makes one attempt to connect, through SQLite's module `vfs` for the system's files, or through the usual one.
    fn try_connect(&self, wait: Duration, vfs: Option<&str>) -> Result<Connection, TransactionFailure> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let path = self.place.path();
        let connection = match vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
            None => Connection::open_with_flags(path, flags)?,
        };
        connection.busy_timeout(wait)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // This is set before the first read: SQLite then keeps the index of its log in memory, and makes no file for it.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "cache_size", -PAGES_KIB)?;
        let _: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update_and_check(None, "journal_size_limit", MAX_LOG_BYTES, |_| Ok(()))?;
        Ok(connection)
    }

    fn remember_files(&self, connection: Connection) -> Result<OpenRows, TransactionFailure> {
        let look = |path: PathBuf| {
            let found = OpenedFile::look_up(&path).ok().flatten();
            found.ok_or_else(|| TransactionFailure::from(self.place.moving_error()))
        };
        let log = self.place.folder.join(format!("{}{}", self.place.file_name(), SIDE_FILES[0]));
        let (database, log) = (look(self.place.path())?, look(log)?);
        let mut open = OpenRows { connection, database, log, bytes: (0, 0) };
        open.bytes = open.look_at_files().ok_or_else(|| self.place.moving_error())?;
        Ok(open)
    }

    /// Reads the rows of the session that continues.
    fn restore_rows(&mut self) -> Result<RestoredRows> {
        let unreadable = |rest: String| Err(self.place.refusal_error(&rest));
        let with_notice = |rest: &str| {
            let notice = Some(self.place.refusal_error(rest).message().to_owned());
            Ok(RestoredRows { notice, ..RestoredRows::default() })
        };
        let dir = PrivateDir::open(&self.place.folder, false)
            .map_err(|unfit| self.place.refusal_error(&format!("cannot be read: its folder {unfit}")))?;
        match dir.look_up(&self.place.file_name()) {
            Ok(FileKind::Missing) => return Ok(RestoredRows::default()),
            Ok(FileKind::Ours { .. }) => {}
            Ok(FileKind::Directory | FileKind::Other) => {
                return with_notice("is not a regular file of this user's alone; nothing was restored");
            }
            Err(error) => return unreadable(format!("cannot be read now ({error}); nothing of it is lost, try again")),
        }
        // Repairs the modes of the files. No connection exists yet, so closing the descriptors loses no lock.
        for ending in ["", SIDE_FILES[0]] {
            drop(dir.open_write(&format!("{}{ending}", self.place.file_name())));
        }
        let mut rows = Vec::new();
        match self.read_rows(&mut rows) {
            Ok((open, 0)) => {
                self.open = Some(open);
                Ok(RestoredRows { rows, notice: None })
            }
            Ok((_, damaged)) => {
                let rest = format!("has {damaged} damaged rows; the other {} were restored", rows.len());
                Ok(RestoredRows { notice: Some(self.place.refusal_error(&rest).message().to_owned()), rows })
            }
            Err(failure) if failure.is_damage() => {
                let rest = format!("is damaged; {} rows of it were restored", rows.len());
                Ok(RestoredRows { notice: Some(self.place.refusal_error(&rest).message().to_owned()), rows })
            }
            Err(failure) => Err(self.place.to_error(failure)),
        }
    }

    /// Reads all rows into `rows`, and returns the open file with the number of damaged rows.
    fn read_rows(&self, rows: &mut Vec<(String, SessionRow)>) -> Result<(OpenRows, usize), TransactionFailure> {
        let connection = self.connect()?;
        let seen = open::read_header(&connection)?;
        if seen.is_empty && seen.version == 0 {
            // The process that made the file died before its first commit.
            connection.execute_batch(SCHEMA)?;
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            connection.pragma_update(None, "user_version", VERSION)?;
        } else if seen.application != APPLICATION_ID || seen.version != VERSION {
            let rest = "is of another version of Nudge; end the session with `nudge stop` or update this Nudge";
            return Err(self.place.refusal_error(rest).into());
        }
        let mut damaged = 0;
        {
            let mut read = connection.prepare("SELECT source, kind, name, body, sum FROM row")?;
            let mut found = read.query([])?;
            while let Some(row) = found.next()? {
                let text = |index| row.get::<_, String>(index);
                match (text(0), text(1), text(2), text(3), row.get::<_, u32>(4)) {
                    (Ok(source), Ok(kind), Ok(name), Ok(body), Ok(sum))
                        if sum == compute_sum(&source, &kind, &name, &body) =>
                    {
                        rows.push((source, SessionRow { kind, name, body }));
                    }
                    _ => damaged += 1,
                }
            }
        }
        Ok((self.remember_files(connection)?, damaged))
    }
}

/// Returns true when there are no changes. Stops at the first change.
fn is_empty(changes: &RowFeed<'_>) -> bool {
    changes(&mut |_| Err(Error::unavailable("There is a change."))).is_ok()
}

fn change_rows(tx: &Transaction<'_>, source: &str, changes: &RowFeed<'_>) -> Result<(), TransactionFailure> {
    let (mut put, mut delete) = (tx.prepare_cached(PUT)?, tx.prepare_cached(DELETE)?);
    let mut failure = None;
    let taken = changes(&mut |RowChange { kind, name, body }| {
        let stored = match body {
            Some(body) => put.execute(params![source, kind, name, body, compute_sum(source, kind, name, body)]),
            None => delete.execute([source, kind, name]),
        };
        stored.map(drop).map_err(|error| {
            failure = Some(error);
            Error::unavailable("The row cannot be stored.")
        })
    });
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(taken?),
    }
}

/// Returns the checksum of a row. The names are part of it, so that a row never counts as another one.
fn compute_sum(source: &str, kind: &str, name: &str, body: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [source, "\0", kind, "\0", name, "\0", body] {
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}
