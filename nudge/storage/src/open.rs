//! Opens a database: checks owner, access and version, sets the options of SQLite, and brings the schema up to date.
//!
//! **Invariant:** in this crate only SQLite opens a database file. The only exception is `create_file`, which creates
//! the file before SQLite opens it. SQLite's locks belong to the process: when the process closes any descriptor of the
//! file, it loses all of them. Another process could then write in the middle of a transaction.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nudge_core::patience;
use nudge_os::dir::{FileKind, PrivateDir, UnfitDir, advise_on_disk};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::app::{APPLICATION_ID, DataRetention, DatabaseKind};
use crate::backup;
use crate::fault::{DatabasePlace, TransactionFailure};
use crate::files::DatabaseFiles;
use crate::log_owner;

/// Size to which SQLite cuts the write-ahead log after it has copied the log into the file, in bytes.
const MAX_LOG_BYTES: i64 = 16 << 20;
/// Number of prepared statements that a connection caches.
const STATEMENTS: usize = 64;
/// Size of a connection's page cache, in KiB: half of SQLite's default. The operating system caches the file too, and a
/// session has three connections for each source.
const PAGES_KIB: i64 = 1_000;
/// Number of SQLite's steps between two checks of the deadline: about 100 microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;
/// Pause between two attempts to open.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest wait of the first attempt for other processes. On a file system without locks, SQLite behaves as if another
/// process held the lock.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// An open connection that writes.
pub(crate) struct OpenedDatabase {
    pub connection: Connection,
    pub files: DatabaseFiles,
    /// The journal mode that the file system allows: `wal`, or another mode on a network file system.
    pub journal: String,
    /// True when the database was empty before this opening.
    pub is_new: bool,
}

/// The fields of a file's header that Nudge checks.
pub(crate) struct DatabaseHeader {
    pub application: i32,
    pub version: i64,
    pub is_empty: bool,
}

/// Opens the database for writing, and repeats a failed attempt until the deadline, because some steps of SQLite do not
/// wait for locks of other processes.
pub(crate) fn open_database(
    place: &DatabasePlace,
    app: &DatabaseKind,
    date: &str,
    deadline: Instant,
) -> Result<OpenedDatabase, TransactionFailure> {
    let mut wait = FIRST_WAIT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match try_open(place, app, date, wait.min(left)) {
            Err(failure) if failure.is_busy() && !left.is_zero() => {
                if wait == FIRST_WAIT {
                    check_locks(place)?;
                    wait = Duration::MAX;
                }
                std::thread::sleep(PAUSE.min(left));
            }
            Ok(None) if !left.is_zero() => std::thread::sleep(PAUSE.min(left)),
            Ok(None) => return Err(place.moving_error().into()),
            Ok(Some(opened)) => return Ok(opened),
            Err(failure) => return Err(failure),
        }
    }
}

/// Refuses a folder on a file system without locks, such as a network file system without its lock server. To find out,
/// creates a database under a new name, which no other process uses, and locks it.
pub(crate) fn check_locks(place: &DatabasePlace) -> Result<(), TransactionFailure> {
    let name = format!(".{}", place.scratch_name());
    let Ok(folder) = PrivateDir::open(&place.folder, false) else { return Ok(()) };
    if folder.create_new(&name).is_err() {
        return Ok(());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let locked = Connection::open_with_flags(place.folder.join(&name), flags).and_then(|c| {
        c.busy_timeout(Duration::ZERO)?;
        c.execute_batch("BEGIN EXCLUSIVE; ROLLBACK")
    });
    let _ = folder.remove(&name);
    match locked.map_err(TransactionFailure::from) {
        Err(failure) if failure.is_busy() => Err(place
            .refusal_error(
                "is on a file system without locks, which it needs; set NUDGE_DATA_DIR to a folder on another disk",
            )
            .into()),
        _ => Ok(()),
    }
}

/// Makes one attempt to open the database. Returns `None` when another file got its name meanwhile.
fn try_open(
    place: &DatabasePlace,
    app: &DatabaseKind,
    date: &str,
    left: Duration,
) -> Result<Option<OpenedDatabase>, TransactionFailure> {
    create_file(place)?;
    let remember = || {
        DatabaseFiles::remember_files(place)
            .map_err(|error| place.refusal_error(&format!("cannot be looked at ({error})")))
    };
    // Reads the file's identity before SQLite uses the log, because SQLite replays any log with the right name.
    let Some(before) = remember()? else { return Ok(None) };
    let note = log_owner::set_foreign_log_aside(place, app.kept, date).map_err(|error| {
        place.refusal_error(&format!("has the log of another file, which cannot be moved away ({error})"))
    })?;
    let connected = connect_checked(place, app, date, left);
    let Some(files) = remember()?.filter(|files| before.is_same_database(files)) else { return Ok(None) };
    let (connection, journal, is_new) = connected?;
    // From here on, closing the last connection may copy the log back: the file is Nudge's and the log belongs to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    log_owner::write(place, &files, note);
    Ok(Some(OpenedDatabase { connection, files, journal, is_new }))
}

/// Connects to the database, checks that it is a database of Nudge in a known version, and brings its schema up to
/// date.
fn connect_checked(
    place: &DatabasePlace,
    app: &DatabaseKind,
    date: &str,
    left: Duration,
) -> Result<(Connection, String, bool), TransactionFailure> {
    let mut c = connect_writer(place, left)?;
    // Looks for a backup before it reads the header, because another process may create the database and its first copy
    // in between.
    let backup = backup::find_newest(place);
    let seen = match read_header(&c) {
        Err(failure) if failure.is_damage() && app.kept == DataRetention::Cache => {
            empty_database(&c)?;
            read_header(&c)?
        }
        seen => seen?,
    };
    check_header(place, app, &seen, backup)?;
    let journal = c.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    let is_data = app.kept == DataRetention::Data;
    c.pragma_update(None, "synchronous", if is_data { "FULL" } else { "NORMAL" })?;
    // Without this setting, a flush on macOS reaches only the cache of the disk.
    c.pragma_update(None, "fullfsync", is_data)?;
    c.pragma_update(None, "foreign_keys", true)?;
    c.pragma_update_and_check(None, "journal_size_limit", MAX_LOG_BYTES, |_| Ok(()))?;
    run_migrations(&mut c, place, app, date, seen.version)?;
    // Reads the version, because any read makes SQLite open its log.
    read_version(&c)?;
    Ok((c, journal, seen.is_empty))
}

/// Creates an empty file with mode 0600 if the file is missing. Refuses an existing file that is not a regular file of
/// this user.
pub(crate) fn create_file(place: &DatabasePlace) -> Result<(), TransactionFailure> {
    // Closing a descriptor drops all locks of the file. So this lock keeps the threads of this process from locking the
    // file while one of them has it open here.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock();
    let unfit = |unfit: UnfitDir| {
        place.refusal_error(&format!(
            "cannot be made: its folder {}",
            unfit.with_remedy("set NUDGE_DATA_DIR to another folder")
        ))
    };
    let broken = |error: std::io::Error| {
        let advice = advise_on_disk(&error).unwrap_or("make its folder writable");
        place.refusal_error(&format!("cannot be made ({error}); {advice}"))
    };
    let dir = PrivateDir::open(&place.folder, false).map_err(unfit)?;
    let mut kind = dir.look_up(&place.file_name()).map_err(broken)?;
    if let FileKind::Missing = kind {
        match dir.create_new(&place.file_name()) {
            Ok(file) => drop(file),
            // Another process has made the file meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(broken(error).into()),
        }
        kind = dir.look_up(&place.file_name()).map_err(broken)?;
    }
    match kind {
        FileKind::Ours { .. } => Ok(()),
        FileKind::Missing | FileKind::Directory | FileKind::Other => {
            Err(place.refusal_error("is not a regular file of this user's alone; move it away").into())
        }
    }
}

/// Opens a connection that writes. When it closes, it does not copy the log back until the caller allows that, because
/// the file may belong to another program.
pub(crate) fn connect_writer(place: &DatabasePlace, wait: Duration) -> Result<Connection, TransactionFailure> {
    let c = connect_with(place, OpenFlags::SQLITE_OPEN_READ_WRITE, wait)?;
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(c)
}

/// Opens a connection that only reads. SQLite stops a statement when the call's deadline is over
/// ([`patience::is_over`]).
pub(crate) fn connect_to_read(place: &DatabasePlace, wait: Duration) -> Result<Connection, TransactionFailure> {
    let mut c = connect_with(place, OpenFlags::SQLITE_OPEN_READ_ONLY, wait)?;
    c.progress_handler(STEPS_BETWEEN_LOOKS, Some(patience::is_over))?;
    Ok(c)
}

fn connect_with(place: &DatabasePlace, flags: OpenFlags, wait: Duration) -> Result<Connection, TransactionFailure> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let c = Connection::open_with_flags(place.path(), flags)?;
    c.busy_timeout(wait)?;
    c.set_prepared_statement_cache_capacity(STATEMENTS);
    // Makes SQLite plan each statement only once. A new plan for each value would take longer than most statements.
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Keeps temporary data in memory, because other users can read the system's temporary folder.
    c.pragma_update(None, "temp_store", "MEMORY")?;
    // This statement reads the schema. The error is ignored: if the schema is damaged, the next read returns the error,
    // and the caller may restore a backup.
    let _ = c.pragma_update(None, "cache_size", -PAGES_KIB);
    Ok(c)
}

/// Reads the header's fields in one transaction.
pub(crate) fn read_header(c: &Connection) -> Result<DatabaseHeader, TransactionFailure> {
    let tx = c.unchecked_transaction()?;
    Ok(DatabaseHeader {
        application: tx.pragma_query_value(None, "application_id", |row| row.get(0))?,
        version: read_version(&tx)?,
        is_empty: tx.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?,
    })
}

/// Returns the number of migrations that have run on the file.
pub(crate) fn read_version(c: &Connection) -> rusqlite::Result<i64> {
    c.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// Refuses a database of another program, a database that a later version wrote, and an empty database that has a
/// backup.
fn check_header(
    place: &DatabasePlace,
    app: &DatabaseKind,
    seen: &DatabaseHeader,
    backup: Option<PathBuf>,
) -> Result<(), TransactionFailure> {
    let is_unused = seen.application == 0 && seen.version == 0 && seen.is_empty;
    if seen.version < 0 || (seen.application != APPLICATION_ID && !is_unused) {
        return Err(place.foreign_error().into());
    }
    if seen.version > app.version() {
        return Err(place.newer_error().into());
    }
    if is_unused && let Some(backup) = backup {
        let rest = format!(
            "is empty, and its newest backup is not; `nudge {} recover {}` puts that in its place, or move the backups away to begin anew",
            place.name,
            backup.display()
        );
        return Err(place
            .refusal_error(&rest)
            .with_data("backup", backup.to_string_lossy())
            .with_data("damaged", true)
            .into());
    }
    Ok(())
}

fn run_migrations(
    c: &mut Connection,
    place: &DatabasePlace,
    app: &DatabaseKind,
    date: &str,
    found: i64,
) -> Result<(), TransactionFailure> {
    if found == app.version() {
        return Ok(());
    }
    if found > 0 && app.kept == DataRetention::Data {
        backup::keep_copy(c, place, date, Some(found))?;
    }
    let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Reads the version under the lock, because another process may have run migrations before.
    let now = read_version(&tx)?;
    if now > app.version() {
        return Err(place.newer_error().into());
    }
    let done = usize::try_from(now).map_err(|_| place.foreign_error())?;
    for script in app.migrations.iter().skip(done) {
        tx.execute_batch(script)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", app.version())?;
    tx.commit()?;
    Ok(())
}

/// Empties the database, even a damaged one, and respects the locks of other processes. It removes no file, because a
/// log that remains or that another process has open would damage the next database.
pub(crate) fn empty_database(c: &Connection) -> Result<(), TransactionFailure> {
    // Makes SQLite find the log. The error is ignored, because the file may be damaged.
    let _ = read_header(c);
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = c.execute_batch("VACUUM");
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    Ok(emptied?)
}
