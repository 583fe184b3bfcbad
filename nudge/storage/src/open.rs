//! Opens a database: checks owner, privacy and version, sets its options, and brings its schema up to date.
//!
//! SQLite keeps its locks with the process: closing any descriptor of the file in that process drops them all, and
//! another process then writes into the middle of a transaction. So no file of a database is ever opened here but by
//! SQLite, and by the one call that makes it, before SQLite has it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// Bytes to which the copied write-ahead log is cut.
const MAX_LOG_BYTES: i64 = 16 << 20;
/// Statements that a connection remembers.
const STATEMENTS: usize = 64;
/// Cache of a connection for pages of the file, in KiB: half of SQLite's default. The system has the file in memory
/// anyway, and a session has three connections for each source.
const PAGES_KIB: i64 = 1_000;
/// SQLite's steps between two looks at whether the call of a statement is over; some 100 microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;
/// Between two tries to open.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest wait of the first try for others. Without locks, SQLite waits as if they were held.
const FIRST_WAIT: Duration = Duration::from_millis(50);

/// An open connection that writes.
pub(crate) struct OpenedDatabase {
    pub connection: Connection,
    pub files: DatabaseFiles,
    /// The journal mode that the file system allows, such as `wal`.
    pub journal: String,
    /// Nothing was there before.
    pub is_new: bool,
}

/// The facts in a file's header.
pub(crate) struct DatabaseHeader {
    pub application: i32,
    pub version: i64,
    pub is_empty: bool,
}

/// Opens the database to write, as often as it takes until the deadline: not every step of SQLite's waits for others.
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

/// Refuses a folder whose file system has no locks, such as one of a network without its lock server. It locks a
/// database there that no other process can know, if any can be locked.
fn check_locks(place: &DatabasePlace) -> Result<(), TransactionFailure> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".{}.{}-{number}.locks", place.file_name(), std::process::id());
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

/// Opens it once; `None` when another file got its name meanwhile.
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
    // Before the log is looked at: SQLite replays the one that has the name.
    let Some(before) = remember()? else { return Ok(None) };
    let note = log_owner::set_foreign_log_aside(place, app.kept, date).map_err(|error| {
        place.refusal_error(&format!("has the log of another file, which cannot be moved away ({error})"))
    })?;
    let connected = connect_checked(place, app, date, left);
    let Some(files) = remember()?.filter(|files| before.is_same_database(files)) else { return Ok(None) };
    let (connection, journal, is_new) = connected?;
    // The file is Nudge's and the log is its own: it may be copied back when the last connection ends.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    log_owner::write(place, &files, note);
    Ok(Some(OpenedDatabase { connection, files, journal, is_new }))
}

/// Connects to it, and makes sure that it is Nudge's and of this version.
fn connect_checked(
    place: &DatabasePlace,
    app: &DatabaseKind,
    date: &str,
    left: Duration,
) -> Result<(Connection, String, bool), TransactionFailure> {
    let mut c = connect_writer(place, left)?;
    // Before the database is looked at: another process may make it and its first copy between two looks.
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
    // On macOS a flush ends in the disk's own memory else.
    c.pragma_update(None, "fullfsync", is_data)?;
    c.pragma_update(None, "foreign_keys", true)?;
    c.pragma_update_and_check(None, "journal_size_limit", MAX_LOG_BYTES, |_| Ok(()))?;
    run_migrations(&mut c, place, app, date, seen.version)?;
    // Whatever it found, SQLite has its log by now.
    read_version(&c)?;
    Ok((c, journal, seen.is_empty))
}

/// Makes an empty file of mode 0600 if none is there. An existing file must be a regular file of this user's.
pub(crate) fn create_file(place: &DatabasePlace) -> Result<(), TransactionFailure> {
    // While one thread has the descriptor, no other may have begun to lock the file.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock();
    let unfit = |unfit: UnfitDir| place.refusal_error(&format!("cannot be made: its folder {unfit}"));
    let broken = |error: std::io::Error| {
        let advice = advise_on_disk(&error).unwrap_or("make its folder writable");
        place.refusal_error(&format!("cannot be made ({error}); {advice}"))
    };
    let dir = PrivateDir::open(&place.folder, false).map_err(unfit)?;
    let mut kind = dir.look_up(&place.file_name()).map_err(broken)?;
    if let FileKind::Missing = kind {
        match dir.create_new(&place.file_name()) {
            Ok(file) => drop(file),
            // Another process was faster.
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

/// A connection that writes. Nothing is copied back from the log at its end until that is allowed: the file may turn
/// out to be somebody else's.
pub(crate) fn connect_writer(place: &DatabasePlace, wait: Duration) -> Result<Connection, TransactionFailure> {
    let c = connect_with(place, OpenFlags::SQLITE_OPEN_READ_WRITE, wait)?;
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(c)
}

/// Opens a connection that only reads. A statement ends once its call is over ([`patience::is_over`]).
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
    // A statement is planned once: planning it again for each new value takes longer than most statements.
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Nothing of it is written to a folder of everybody's.
    c.pragma_update(None, "temp_store", "MEMORY")?;
    // This reads the schema. If that is damaged, the next reader gets the error, and may put a backup in its place.
    let _ = c.pragma_update(None, "cache_size", -PAGES_KIB);
    Ok(c)
}

/// Reads the facts in the file's header, all at one moment.
pub(crate) fn read_header(c: &Connection) -> Result<DatabaseHeader, TransactionFailure> {
    let tx = c.unchecked_transaction()?;
    Ok(DatabaseHeader {
        application: tx.pragma_query_value(None, "application_id", |row| row.get(0))?,
        version: read_version(&tx)?,
        is_empty: tx.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?,
    })
}

/// The number of migrations that have run.
pub(crate) fn read_version(c: &Connection) -> rusqlite::Result<i64> {
    c.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

/// Refuses a database of another program, one that a later version wrote, and one that is empty though it had a copy
/// before.
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
    // Another process may have done it, or more, before the lock was ours.
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

/// Makes the database empty, whatever its file holds, with the locks that others heed. No file is removed: a log that
/// stays behind, or another's that is open, would damage the next one.
pub(crate) fn empty_database(c: &Connection) -> Result<(), TransactionFailure> {
    // Reading finds out if there is a log; the error does not matter, as the file may be damaged.
    let _ = read_header(c);
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
    let emptied = c.execute_batch("VACUUM");
    c.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    Ok(emptied?)
}
