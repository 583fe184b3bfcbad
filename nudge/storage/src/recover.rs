//! Restores a backup: copies its rows into a new database, and replaces the contents of the present database by the new
//! one.
//!
//! The backup may come from another program. Copying its pages would also copy its triggers, views and indexes, so
//! Nudge copies only the values of its rows.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge_core::error::{Error, Result};
use nudge_os::dir::PrivateDir;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use crate::app::{APPLICATION_ID, DatabaseKind, DatabaseOpening};
use crate::backup::{FOLDER, PART, keep_replaced, refusal_error, unique_suffix};
use crate::fault::{DatabasePlace, TransactionFailure};
use crate::foreign::{ForeignDatabase, ForeignLimits, UnfitDatabase};
use crate::{check, open};

/// The table in which SQLite stores the last row number of each table with `AUTOINCREMENT`.
const NUMBERS: &str = "sqlite_sequence";
/// Pause between two attempts to replace the contents.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time for reading a backup.
const MAX_TIME: Duration = Duration::from_mins(10);
/// Largest size of one value, in bytes.
const MAX_VALUE_BYTES: i32 = 64 << 20;
/// Limit for the bytes of all values, as a multiple of the file's size. The limit is large, because a small number
/// takes one byte in the file and counts as eight bytes.
const MAX_GROWTH: u64 = 16;

/// Replaces the contents of a database, which may be damaged, by the rows of a copy. Other processes that have the
/// database open see the new contents; no file is moved or removed.
///
/// The old contents go into `backups/NAME-TIME-replaced.db`, and the bytes of a damaged database into
/// `backups/NAME-TIME-damaged.db`. The function never overwrites such a file. It returns the path of the file, or
/// `None` when there were no old contents.
///
/// # Errors
/// `E_INVALID` when the copy is of another kind of database or belongs to another user. `E_UNAVAILABLE` when the copy
/// is newer than this program, or when the database is in use. After an error nothing has changed.
pub fn restore_copy(opening: &DatabaseOpening<'_>, copy: &Path) -> Result<Option<PathBuf>> {
    let place = DatabasePlace { folder: opening.folder.create_folder()?, name: opening.app.name };
    let bad = |why: &str| Error::invalid(format!("The file {} {why}.", copy.display()));
    let real = real_path(copy).map_err(|error| bad(&format!("cannot be opened ({error})")))?;
    if real_path(&place.path()).is_ok_and(|path| path == real) {
        return Err(bad("is the database itself; give one of its backups"));
    }
    let unfit = |unfit: UnfitDatabase| match unfit {
        UnfitDatabase::File(error) => bad(&format!("cannot be opened ({error})")),
        UnfitDatabase::NotOwn => bad("is another user's; copy it, and give the copy"),
        UnfitDatabase::InUse => bad("is in use; give a copy of it"),
        UnfitDatabase::TooMuch => bad("takes too long to read; give another backup"),
        UnfitDatabase::NotADatabase | UnfitDatabase::NoTable | UnfitDatabase::Damaged => {
            bad("is not a database, or is damaged; give another backup")
        }
    };
    let limits = ForeignLimits {
        file_bytes: u64::MAX,
        value_bytes: MAX_VALUE_BYTES,
        all_bytes: real.metadata().map_or(0, |meta| meta.len()).saturating_mul(MAX_GROWTH),
        steps: u64::MAX,
        until: Instant::now() + MAX_TIME,
    };
    let from = ForeignDatabase::open_own(&real, &limits).map_err(unfit)?;
    let seen = open::read_header(from.connection()).map_err(|_| unfit(UnfitDatabase::Damaged))?;
    if seen.application != APPLICATION_ID || seen.version < 1 {
        return Err(bad("is not a database of Nudge's; give one of its backups"));
    }
    if seen.version > opening.app.version() {
        return Err(Error::unavailable(format!(
            "The file {} was written by a newer nudge; update this one.",
            copy.display()
        )));
    }
    let mut made = place.map_failure(RecoveredDatabase::new(&place, opening.app, seen.version))?;
    place.map_failure(made.fill_tables(&from).map_err(|failure| match failure {
        NotFilled::From(why) => unfit(why).into(),
        NotFilled::Own(failure) => failure,
    }))?;
    drop(from);
    place.map_failure(open::create_file(&place).and_then(|()| {
        let mut into = open::connect_writer(&place, opening.wait)?;
        let kept = keep_replaced(&mut into, &place, opening.clock.now())?;
        // Reads no row numbers from a damaged file.
        let given = read_sequences(&into).unwrap_or_default();
        open::empty_database(&into)?;
        let deadline = Instant::now() + opening.wait;
        let backup = Backup::new(&made.connection, &mut into)?;
        while backup.step(-1)? != StepResult::Done {
            if Instant::now() >= deadline {
                return Err(place.busy_error().into());
            }
            std::thread::sleep(PAUSE);
        }
        drop(backup);
        continue_sequences(&mut into, &given)?;
        Ok(kept)
    }))
}

/// A new database, in a temporary file beside the backups. Dropping the value removes the file.
struct RecoveredDatabase {
    connection: Connection,
    app: &'static DatabaseKind,
    _file: MadeFile,
}

struct MadeFile {
    folder: PrivateDir,
    name: String,
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        let _ = self.folder.remove(&self.name);
    }
}

/// The reason why copying the rows failed: the backup failed, or the new database failed.
enum NotFilled {
    From(UnfitDatabase),
    Own(TransactionFailure),
}

impl From<rusqlite::Error> for NotFilled {
    fn from(error: rusqlite::Error) -> Self {
        Self::Own(error.into())
    }
}

impl RecoveredDatabase {
    /// Creates an empty database with the schema of the given version.
    fn new(place: &DatabasePlace, app: &'static DatabaseKind, version: i64) -> Result<Self, TransactionFailure> {
        let path = place.folder.join(FOLDER);
        let folder = PrivateDir::open(&path, true).map_err(|unfit| refusal_error(&path, unfit))?;
        let name = format!(".{}-recovered.{}{PART}", place.name, unique_suffix());
        drop(folder.create_new(&name).map_err(|error| refusal_error(&path, error))?);
        let file = MadeFile { folder, name };
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(path.join(&file.name), flags)?;
        // The new file needs no journal: the caller discards it when anything fails.
        connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "foreign_keys", false)?;
        for script in app.migrations.iter().take(usize::try_from(version).expect("a version of at least 1")) {
            connection.execute_batch(script)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", version)?;
        // Triggers stay off, because the copied rows already contain their changes.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        Ok(Self { connection, app, _file: file })
    }

    /// Copies the rows of all tables.
    fn fill_tables(&mut self, from: &ForeignDatabase) -> Result<(), NotFilled> {
        let app = self.app;
        let tx = self.connection.transaction()?;
        let tables = query_names(
            &tx,
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        )?;
        for table in &tables {
            copy_rows(&tx, from, table)?;
        }
        if tx.table_exists(None, NUMBERS)? {
            copy_rows(&tx, from, NUMBERS)?;
            // Removes row numbers of tables that do not exist here, and row numbers that are not integers.
            let own = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'";
            let sql = format!("DELETE FROM {NUMBERS} WHERE typeof(seq) != 'integer' OR name NOT IN ({own})");
            tx.execute(&sql, [])?;
        }
        for table in app.full_text {
            if tx.table_exists(None, *table)? {
                check::rebuild_one(&tx, table)?;
            }
        }
        Ok(tx.commit()?)
    }
}

fn copy_rows(tx: &Connection, from: &ForeignDatabase, table: &str) -> Result<(), NotFilled> {
    let columns = query_names(
        tx,
        &format!("SELECT name FROM pragma_table_xinfo('{}') WHERE hidden = 0", table.replace('\'', "''")),
    )?;
    let columns: Vec<_> = columns.iter().map(String::as_str).collect();
    tx.execute(&format!("DELETE FROM \"{table}\""), [])?;
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert =
        tx.prepare(&format!("INSERT INTO \"{table}\"(\"{}\") VALUES ({places})", columns.join("\", \"")))?;
    let mut failed = None;
    let read = from.for_each_row(table, &columns, None, &mut |row| {
        let mut put = || -> rusqlite::Result<()> {
            for index in 0..columns.len() {
                insert.raw_bind_parameter(index + 1, ToSqlOutput::Borrowed(row.get_ref(index)?))?;
            }
            insert.raw_execute().map(|_| ())
        };
        match put() {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match (read, failed) {
        (Err(unfit), _) => Err(NotFilled::From(unfit)),
        (Ok(()), None) => Ok(()),
        // A row of the backup violates a constraint of its own table, so the backup is damaged.
        (Ok(()), Some(error)) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {
            Err(NotFilled::From(UnfitDatabase::Damaged))
        }
        (Ok(()), Some(error)) => Err(error.into()),
    }
}

fn query_names(c: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    c.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Returns the last row number of each table with `AUTOINCREMENT`.
pub(crate) fn read_sequences(c: &Connection) -> Result<Vec<(String, i64)>, TransactionFailure> {
    if !c.table_exists(None, NUMBERS)? {
        return Ok(Vec::new());
    }
    let mut statement = c.prepare(&format!("SELECT name, seq FROM {NUMBERS}"))?;
    Ok(statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
}

/// Ensures that new rows get higher numbers than `given` says, and begins a new generation.
pub(crate) fn continue_sequences(c: &mut Connection, given: &[(String, i64)]) -> Result<(), TransactionFailure> {
    let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
    give_no_number_again(&tx, given)?;
    begin_generation(&tx)?;
    Ok(tx.commit()?)
}

/// Raises the last row number of each table to the given one. Code that has stored the number of a removed row must not
/// find another row under that number.
fn give_no_number_again(c: &Connection, given: &[(String, i64)]) -> Result<(), TransactionFailure> {
    for (table, last) in given {
        if !c.table_exists(None, NUMBERS)? || !c.table_exists(None, table.as_str())? {
            continue;
        }
        let sql = format!("UPDATE {NUMBERS} SET seq = max(seq, ?2) WHERE name = ?1");
        if c.execute(&sql, params![table, last])? == 0 {
            c.execute(&format!("INSERT INTO {NUMBERS}(name, seq) VALUES (?1, ?2)"), params![table, last])?;
        }
    }
    Ok(())
}

/// Begins a new generation, so that code that caches rows notices the change. In a file of an earlier version the table
/// is missing, and the migration adds it with a new generation.
fn begin_generation(c: &Connection) -> Result<(), TransactionFailure> {
    if c.table_exists(None, "generation")? {
        c.execute("UPDATE generation SET name = randomblob(16)", [])?;
    }
    Ok(())
}

/// Returns the absolute path of an existing file. On Unix it resolves links.
fn real_path(path: &Path) -> std::io::Result<PathBuf> {
    path.metadata()?;
    if cfg!(unix) { path.canonicalize() } else { std::path::absolute(path) }
}
