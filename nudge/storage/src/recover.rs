//! Restores a backup: copies its rows into a new database that Nudge makes, which then replaces the contents of the
//! present one.
//!
//! The file may come from another program. A copy of its pages would contain its triggers, views and indexes, so only
//! the values of its rows are copied.

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

/// The table in which SQLite keeps the last row number of other tables.
const NUMBERS: &str = "sqlite_sequence";
/// Pause between two tries to replace the contents.
const PAUSE: Duration = Duration::from_millis(10);
/// Longest time for reading a backup.
const MAX_TIME: Duration = Duration::from_mins(10);
/// Size limit of one value, in bytes.
const MAX_VALUE_BYTES: i32 = 64 << 20;
/// Limit of the bytes of all values, as a multiple of the file's size: a small number takes one byte in the file, and
/// counts as eight.
const MAX_GROWTH: u64 = 16;

/// Replaces the contents of a database, which may be damaged, by those of a copy. Other processes that have the
/// database open see the new contents; no file is moved or removed. The old contents go into
/// `backups/NAME-TIME-replaced.db`, or, when they are damaged, unchanged into `backups/NAME-TIME-damaged.db`. The
/// function returns that path. Neither file is ever overwritten.
///
/// # Errors
/// `E_INVALID` when the copy is not of this kind of database, or belongs to another user; `E_UNAVAILABLE` when the copy
/// is newer than this program, or the database is in use. Then nothing has changed.
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
        // The row numbers of a damaged file are unknown.
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

/// A new database of Nudge, in a file beside the backups. The file is removed when this value is dropped.
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

/// The reason why a new database was not filled: a failure of the backup, or of the new database.
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
    /// Makes a database with the schema of a version, and without rows.
    fn new(place: &DatabasePlace, app: &'static DatabaseKind, version: i64) -> Result<Self, TransactionFailure> {
        let path = place.folder.join(FOLDER);
        let folder = PrivateDir::open(&path, true).map_err(|unfit| refusal_error(&path, unfit))?;
        let name = format!(".{}-recovered.{}{PART}", place.name, unique_suffix());
        drop(folder.create_new(&name).map_err(|error| refusal_error(&path, error))?);
        let file = MadeFile { folder, name };
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(path.join(&file.name), flags)?;
        // The file is discarded when anything fails, so it needs no journal.
        connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "foreign_keys", false)?;
        for script in app.migrations.iter().take(usize::try_from(version).expect("a version of at least 1")) {
            connection.execute_batch(script)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", version)?;
        // Triggers would repeat changes that the rows already contain.
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
            // Removes entries of foreign tables, and values that are not numbers.
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
        // The backup has a row that violates a constraint of its own table.
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

/// Continues the row numbers of another database, and begins a new generation.
pub(crate) fn continue_sequences(c: &mut Connection, given: &[(String, i64)]) -> Result<(), TransactionFailure> {
    let tx = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
    give_no_number_again(&tx, given)?;
    begin_generation(&tx)?;
    Ok(tx.commit()?)
}

/// Continues after these row numbers: code that has stored the number of a removed row must not find another row by it.
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

/// Begins a new generation, so that code with cached rows notices that they are different. A file of an earlier version
/// has no generation: the migration adds it.
fn begin_generation(c: &Connection) -> Result<(), TransactionFailure> {
    if c.table_exists(None, "generation")? {
        c.execute("UPDATE generation SET name = randomblob(16)", [])?;
    }
    Ok(())
}

/// Returns the path of an existing file, without links on systems where that form is usual.
fn real_path(path: &Path) -> std::io::Result<PathBuf> {
    path.metadata()?;
    if cfg!(unix) { path.canonicalize() } else { std::path::absolute(path) }
}
