//! Opens databases that other programs or users may have made: a coverage file of a checkout, a file to import, a
//! backup.
//!
//! The schema of such a file can attack the reader: a view may never end, a generated column may fill the memory, and a
//! virtual table runs rarely tested code of SQLite. So callers write no SQL. They name an ordinary table and its
//! columns ([`ForeignDatabase::for_each_row`]). [`ForeignLimits`] limits the time, the steps and the bytes for each
//! file. SQLite neither sorts nor joins, so it needs no temporary storage.
//!
//! SQLite opens files by their names, waits for pipes, and makes `-shm` and `-journal` files beside them. So Nudge's
//! only reader of foreign files reads the file, and SQLite gets the bytes. If another program may be using the file,
//! Nudge also reads the log (`-wal`) and copies both into a temporary folder. SQLite opens only a backup directly,
//! because it may be large; a backup must be this user's own file.

use std::cell::Cell;
use std::fs;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use nudge_os::foreign::{self, LinkPolicy};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Row, ToSql};
use tempfile::TempDir;

use crate::app::APPLICATION_ID;
use crate::open;

/// Number of SQLite's steps after which the connection checks the deadline.
const STEPS_EVERY: u32 = 1_000;
/// Size of a connection's page cache, in KiB.
const PAGES_KIB: i64 = 1_000;
/// Pause between two checks whether another program still writes the file.
const PAUSE: Duration = Duration::from_millis(20);
/// Size of a database's header, and the position of the journal mode in it.
const HEADER_BYTES: usize = 100;
const JOURNAL_MODES: [usize; 2] = [18, 19];
const HAS_LOG: u8 = 2;
const NO_LOG: u8 = 1;
/// The bytes with which a file of SQLite begins.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Limits that SQLite applies when it reads a schema. They are far above the values of the databases that Nudge reads.
const LIMITS: [(Limit, i32); 13] = [
    (Limit::SQLITE_LIMIT_SCHEMA, 1_000),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 200),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 20),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 10),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    (Limit::SQLITE_LIMIT_PARSER_DEPTH, 100),
];

/// The limits for reading a database.
#[derive(Debug, Clone, Copy)]
pub struct ForeignLimits {
    /// The largest size of the file, and of its log, in bytes.
    pub file_bytes: u64,
    /// The largest size of one value, in bytes.
    pub value_bytes: i32,
    /// The largest size of all values together, in bytes. A damaged file may make SQLite read the same page without
    /// end.
    pub all_bytes: u64,
    /// The largest number of SQLite's steps.
    pub steps: u64,
    /// The time at which reading must end.
    pub until: Instant,
}

/// The reason why a database is not read, or not read to its end.
#[derive(Debug)]
pub enum UnfitDatabase {
    /// The file cannot be read.
    File(io::Error),
    /// The file does not belong to this user.
    NotOwn,
    /// Another program is writing the file.
    InUse,
    /// The file is no database, or its schema does not have the form that SQLite writes.
    NotADatabase,
    /// The database has no ordinary table with this name and these columns. A view, a virtual table or a table with
    /// generated columns is not ordinary.
    NoTable,
    /// Reading exceeds one of the [`ForeignLimits`].
    TooMuch,
    /// The file is damaged: only a part of it can be read.
    Damaged,
}

/// A foreign database that is opened only for reading.
pub struct ForeignDatabase {
    connection: Connection,
    left_bytes: Cell<u64>,
    /// Holds the lock that allows only one foreign database in memory at a time. It limits the memory of many callers.
    _place: Option<MutexGuard<'static, ()>>,
    _copy: Option<TempDir>,
}

/// Says whether the log beside the database is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignLog {
    /// The log is not read, because no process writes the file meanwhile or the caller accepts slightly older data.
    Ignored,
    /// The log is read with the file.
    Read,
}

impl ForeignDatabase {
    /// Opens a database from its bytes. Creates no file beside it, and blocks no other process.
    ///
    /// # Errors
    /// [`UnfitDatabase`]. `TooMuch` may also mean that another call kept a foreign database in memory until the
    /// deadline.
    pub fn open(
        path: &Path,
        links: LinkPolicy,
        log: ForeignLog,
        limits: &ForeignLimits,
    ) -> Result<Self, UnfitDatabase> {
        static PLACE: Mutex<()> = Mutex::new(());
        let place = PLACE.try_lock_until(limits.until).ok_or(UnfitDatabase::TooMuch)?;
        let opened = match log {
            ForeignLog::Ignored => (open_bytes(path, links, limits)?, None),
            ForeignLog::Read => open_with_log(path, links, limits)?,
        };
        Self::new(opened, Some(place), limits)
    }

    /// Opens a backup directly. The backup must be a file of this user.
    pub(crate) fn open_own(path: &Path, limits: &ForeignLimits) -> Result<Self, UnfitDatabase> {
        // Closes the descriptor before SQLite opens the file: closing it later would drop SQLite's locks.
        let (_, meta) = foreign::open_file(path, LinkPolicy::Refused).map_err(UnfitDatabase::File)?;
        if !foreign::is_own(&meta) {
            return Err(UnfitDatabase::NotOwn);
        }
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(path, flags).map_err(UnfitDatabase::from)?;
        Self::new((connection, None), None, limits)
    }

    fn new(
        (mut connection, copy): (Connection, Option<TempDir>),
        place: Option<MutexGuard<'static, ()>>,
        limits: &ForeignLimits,
    ) -> Result<Self, UnfitDatabase> {
        restrict_connection(&mut connection, limits).map_err(UnfitDatabase::from)?;
        check_schema(&connection)?;
        Ok(Self { connection, left_bytes: Cell::new(limits.all_bytes), _place: place, _copy: copy })
    }

    /// Returns the version of a database of Nudge's: the number of scripts that made its schema, and 0 for an empty one
    /// that Nudge has only begun to create. Returns `None` for a database of another program.
    ///
    /// # Errors
    /// [`UnfitDatabase`] when the header cannot be read.
    pub fn read_version(&self) -> Result<Option<i64>, UnfitDatabase> {
        let header = open::read_header(&self.connection).map_err(|_| UnfitDatabase::Damaged)?;
        let is_unused = header.application == 0 && header.version == 0 && header.is_empty;
        Ok(Some(header.version).filter(|_| is_unused || header.application == APPLICATION_ID))
    }

    /// Returns the connection, so that a caller can read the header.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Calls `each` with the rows of a table, in the order of the file. It passes all rows, or only rows with a given
    /// value in a column. `each` can stop the reading.
    ///
    /// # Errors
    /// [`UnfitDatabase`]. The caller must then discard the rows that `each` received.
    pub fn for_each_row(
        &self,
        table: &str,
        columns: &[&str],
        only: Option<(&str, &dyn ToSql)>,
        each: &mut dyn FnMut(&Row<'_>) -> ControlFlow<()>,
    ) -> Result<(), UnfitDatabase> {
        self.check_table(table)?;
        let names: Vec<_> = columns.iter().map(|name| quote_name(name)).collect();
        let condition = only.map_or_else(String::new, |(column, _)| format!(" WHERE {} = ?1", quote_name(column)));
        let sql = format!("SELECT {} FROM {}{condition}", names.join(", "), quote_name(table));
        let mut statement = self.connection.prepare_cached(&sql).map_err(UnfitDatabase::from)?;
        let values: Vec<_> = only.iter().map(|(_, value)| *value).collect();
        let mut rows = statement.query(values.as_slice()).map_err(UnfitDatabase::from)?;
        while let Some(row) = rows.next().map_err(UnfitDatabase::from)? {
            for index in 0..columns.len() {
                let value = row.get_ref(index).map_err(UnfitDatabase::from)?;
                let bytes = value.as_bytes_or_null().ok().flatten().map_or(8, |bytes| bytes.len() as u64);
                let left = self.left_bytes.get().checked_sub(bytes).ok_or(UnfitDatabase::TooMuch)?;
                self.left_bytes.set(left);
            }
            if each(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Fails unless the database has an ordinary table with this name.
    fn check_table(&self, table: &str) -> Result<(), UnfitDatabase> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE \
                   AND sql LIKE 'create table %'";
        let mut statement = self.connection.prepare_cached(sql).map_err(UnfitDatabase::from)?;
        if statement.query_row([table], |row| row.get::<_, i64>(0)).map_err(UnfitDatabase::from)? != 1 {
            return Err(UnfitDatabase::NoTable);
        }
        let mut is_plain = true;
        let looked = self.connection.pragma(None, "table_xinfo", table, |row| {
            is_plain &= row.get::<_, i64>("hidden")? == 0;
            Ok(())
        });
        looked.map_err(UnfitDatabase::from)?;
        if is_plain { Ok(()) } else { Err(UnfitDatabase::NoTable) }
    }
}

impl From<rusqlite::Error> for UnfitDatabase {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted | ErrorCode::TooBig | ErrorCode::OutOfMemory) => Self::TooMuch,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::SystemIoFailure) => Self::Damaged,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::File(io::Error::other("cannot be opened"))
            }
            _ => Self::NoTable,
        }
    }
}

/// Turns off every feature of a connection that reading rows of a table does not need.
fn restrict_connection(c: &mut Connection, limits: &ForeignLimits) -> rusqlite::Result<()> {
    let (until, mut left) = (limits.until, limits.steps / u64::from(STEPS_EVERY));
    let is_over = move || {
        left = left.saturating_sub(1);
        left == 0 || Instant::now() >= until
    };
    c.progress_handler(STEPS_EVERY.cast_signed(), Some(is_over))?;
    c.set_limit(Limit::SQLITE_LIMIT_LENGTH, limits.value_bytes)?;
    for (limit, most) in LIMITS {
        c.set_limit(limit, most)?;
    }
    for (config, is_on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        c.set_db_config(config, is_on)?;
    }
    c.busy_timeout(limits.until.saturating_duration_since(Instant::now()))?;
    c.pragma_update(None, "query_only", true)?;
    c.pragma_update(None, "temp_store", "MEMORY")?;
    c.pragma_update(None, "automatic_index", false)?;
    c.pragma_update(None, "cell_size_check", true)?;
    c.pragma_update(None, "cache_size", -PAGES_KIB)
}

/// Checks that the schema has the form that SQLite writes. SQLite uses only the SQL text of a schema row and ignores
/// the columns `type` and `name`. So a row with other SQL text could disguise a view as an ordinary table.
fn check_schema(c: &Connection) -> Result<(), UnfitDatabase> {
    let mut statement = c.prepare("SELECT type, name, sql FROM sqlite_schema").map_err(UnfitDatabase::from)?;
    let mut rows = statement.query([]).map_err(UnfitDatabase::from)?;
    while let Some(row) = rows.next().map_err(UnfitDatabase::from)? {
        let text = |index: usize| row.get_ref(index).ok().and_then(|value| value.as_str_or_null().ok());
        let (Some(Some(kind)), Some(Some(name)), Some(sql)) = (text(0), text(1), text(2)) else {
            return Err(UnfitDatabase::NotADatabase);
        };
        // SQLite stores no SQL text for the indexes that it makes with a table.
        if sql.is_some_and(|sql| !is_as_written(kind, name, sql)) {
            return Err(UnfitDatabase::NotADatabase);
        }
    }
    Ok(())
}

fn is_as_written(kind: &str, name: &str, sql: &str) -> bool {
    let makes = |what: &str| sql.strip_prefix("CREATE ").and_then(|rest| rest.strip_prefix(what));
    let is_named = |rest: &str| parse_declared(rest).is_some_and(|declared| declared.eq_ignore_ascii_case(name));
    match kind {
        "table" => makes("TABLE ").or_else(|| makes("VIRTUAL TABLE ")).is_some_and(is_named),
        "view" => makes("VIEW ").is_some_and(is_named),
        "index" => makes("INDEX ").or_else(|| makes("UNIQUE INDEX ")).is_some(),
        "trigger" => makes("TRIGGER ").is_some(),
        _ => false,
    }
}

/// Returns the name at the beginning of a text. Returns `None` unless white space or the column list follows the name.
fn parse_declared(text: &str) -> Option<&str> {
    let close = match text.as_bytes().first()? {
        b'[' => Some(']'),
        b'"' => Some('"'),
        b'`' => Some('`'),
        b'\'' => Some('\''),
        _ => None,
    };
    let (name, rest) = if let Some(close) = close {
        text.get(1..)?.split_once(close)?
    } else {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
        text.split_at(text.find(|c| !is_of_name(c)).unwrap_or(text.len()))
    };
    // SQLite leaves out `IF NOT EXISTS` when it stores a statement.
    let is_name = close.is_some() || !name.eq_ignore_ascii_case("if");
    (is_name && rest.starts_with(|c: char| c == '(' || c.is_ascii_whitespace())).then_some(name)
}

fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An opened file, and its header.
struct OpenedForeign {
    rest: fs::File,
    header: [u8; HEADER_BYTES],
    bytes: u64,
    modified: Option<SystemTime>,
}

fn read_header(path: &Path, links: LinkPolicy, limits: &ForeignLimits) -> Result<OpenedForeign, UnfitDatabase> {
    let (mut rest, meta) = foreign::open_file(path, links).map_err(UnfitDatabase::File)?;
    let (bytes, mut header) = (meta.len(), [0; HEADER_BYTES]);
    if bytes > limits.file_bytes {
        return Err(UnfitDatabase::TooMuch);
    }
    rest.read_exact(&mut header).map_err(|_| UnfitDatabase::NotADatabase)?;
    if !header.starts_with(MAGIC) {
        return Err(UnfitDatabase::NotADatabase);
    }
    Ok(OpenedForeign { rest, header, bytes, modified: meta.modified().ok() })
}

/// Opens a database from the bytes of a file.
fn open_bytes(path: &Path, links: LinkPolicy, limits: &ForeignLimits) -> Result<Connection, UnfitDatabase> {
    let OpenedForeign { rest, mut header, bytes, .. } = read_header(path, links, limits)?;
    // Changes the journal mode in the header, because a database in memory has no log.
    for offset in JOURNAL_MODES {
        header.get_mut(offset).into_iter().for_each(|mode| *mode = NO_LOG);
    }
    let mut c = Connection::open_in_memory().map_err(UnfitDatabase::from)?;
    let size = usize::try_from(bytes).map_err(|_| UnfitDatabase::TooMuch)?;
    c.deserialize_read_exact(MAIN_DB, header.as_slice().chain(rest), size, true).map_err(UnfitDatabase::from)?;
    Ok(c)
}

/// Opens a file that another program may be writing. Reads the log too, and waits for the end of a change.
fn open_with_log(
    path: &Path,
    links: LinkPolicy,
    limits: &ForeignLimits,
) -> Result<(Connection, Option<TempDir>), UnfitDatabase> {
    // Resolves links, because SQLite puts its files beside the real file.
    let path = path.canonicalize().map_err(UnfitDatabase::File)?;
    let beside = |ending: &str| {
        let mut name = path.clone().into_os_string();
        name.push(ending);
        PathBuf::from(name)
    };
    loop {
        let before = read_header(&path, links, limits)?;
        let journal = foreign::open_file(&beside("-journal"), LinkPolicy::Refused);
        // After a finished change, the journal is empty or begins with a zero byte.
        let is_changing = journal.is_ok_and(|(mut file, _)| {
            let mut first = [0];
            file.read_exact(&mut first).is_ok() && first != [0]
        });
        if !is_changing {
            let has_log = JOURNAL_MODES.iter().any(|offset| before.header.get(*offset) == Some(&HAS_LOG));
            let log = beside("-wal");
            let log = Some(log).filter(|log| has_log && log.symlink_metadata().is_ok_and(|meta| meta.len() > 0));
            let opened = match log {
                Some(log) => copy_with_log(&path, &log, limits).map(|(c, copy)| (c, Some(copy))),
                None => open_bytes(&path, links, limits).map(|c| (c, None)),
            };
            let after = path.metadata().map_err(UnfitDatabase::File)?;
            match opened {
                // The last process that used the database has just put the log into the file, and removed the log.
                Err(UnfitDatabase::File(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(opened) if (before.bytes, before.modified) == (after.len(), after.modified().ok()) => {
                    return Ok(opened);
                }
                Ok(_) => {}
            }
        }
        if Instant::now() >= limits.until {
            return Err(UnfitDatabase::InUse);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Copies a database and its log into a temporary folder, and opens the copy, because SQLite reads a log only beside a
/// file.
fn copy_with_log(path: &Path, log: &Path, limits: &ForeignLimits) -> Result<(Connection, TempDir), UnfitDatabase> {
    let folder = tempfile::Builder::new().prefix("nudge-").tempdir().map_err(UnfitDatabase::File)?;
    let to = folder.path().join("copy.db");
    for (from, to) in [(path, to.clone()), (log, folder.path().join("copy.db-wal"))] {
        let (file, _) = foreign::open_file(from, LinkPolicy::Refused).map_err(UnfitDatabase::File)?;
        let mut copy = fs::File::create_new(to).map_err(UnfitDatabase::File)?;
        let copied = io::copy(&mut file.take(limits.file_bytes + 1), &mut copy).map_err(UnfitDatabase::File)?;
        if copied > limits.file_bytes {
            return Err(UnfitDatabase::TooMuch);
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok((Connection::open_with_flags(to, flags).map_err(UnfitDatabase::from)?, folder))
}
