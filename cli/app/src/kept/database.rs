//! The database of the kept hints. A session writes only the rows that differ from its last write. Each write leaves a
//! random name in the database, so that the session notices when other contents have taken the place of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use nudge::{Error, Millis, Result, parse_time};
use nudge_os::foreign::LinkPolicy;
use nudge_storage::foreign::{ForeignDatabase, ForeignLimits, ForeignLog, UnfitDatabase};
use nudge_storage::rusqlite::{self, Connection, OptionalExtension as _, Transaction, params};
use nudge_storage::{CHANGE_LOG, DataRetention, DatabaseKind, DatabaseOpening, Db, TransactionFailure};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::log::{self, HintChange, WriteAuthors};
use super::{KeptDocument, VariantName};

/// Describes the database: the hints as an export has them, the content hashes of forgotten hints, the deletions that
/// can be undone, and three texts: the session that wrote last, the name of the last write, and the digest of the last
/// kept file of an earlier version. `waits` marks a hint that no session has read: the limits had no room for it, or
/// this version cannot read it. `until` is the time, in milliseconds, at which a deletion is dropped; it is missing
/// while the session of the deletion runs.
pub static HINTS_DATABASE: DatabaseKind = DatabaseKind {
    name: "hints",
    migrations: &[
        "CREATE TABLE hint(
  component TEXT NOT NULL, key TEXT NOT NULL, variant TEXT NOT NULL, body TEXT NOT NULL,
  waits INTEGER NOT NULL CHECK(waits IN (0, 1)), PRIMARY KEY(component, key, variant)) STRICT;
CREATE TABLE deletion(id INTEGER PRIMARY KEY, body TEXT NOT NULL, until INTEGER) STRICT;
CREATE TABLE forgotten(mark TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE note(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;",
        CHANGE_LOG,
    ],
    full_text: &[],
    kept: DataRetention::Data,
};

/// The names of the texts in the table `note`.
const SESSION: &str = "session";
const WRITE: &str = "write";
const IMPORTED: &str = "imported";

/// The limits for reading the database while no session runs.
const MAX_BYTES: u64 = 1 << 30;
const MAX_VALUE_BYTES: i32 = 64 << 20;
const MAX_STEPS: u64 = 1_000_000_000;
const READ_PATIENCE: Duration = Duration::from_secs(5);

/// The time for which deletions outlive their session, in milliseconds: a week.
const DELETION_MS: Millis = 7 * 24 * 60 * 60 * 1000;

/// The deletions that a session has made or undone since its last write, by id. The value is the body of the row; `None`
/// removes the row.
pub type DeletionChanges = BTreeMap<i64, Option<String>>;

/// A row of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHint {
    /// The names.
    pub name: VariantName,
    /// The hint as JSON, as an export has it.
    pub body: String,
    /// True when the limits had no room for the hint, or no version so far could read it.
    pub waits: bool,
}

impl StoredHint {
    /// Returns the hint with its component and key. Returns `None` when the body is no JSON.
    pub fn to_hint(&self) -> Option<(&str, &str, &RawValue)> {
        let body = serde_json::from_str(&self.body).ok()?;
        Some((&self.name.component, &self.name.key, body))
    }
}

/// The contents of the database.
#[derive(Debug, Default)]
pub struct KeptContents {
    /// The hints.
    pub hints: Vec<StoredHint>,
    /// The number of rows that are no text. They stay as they are.
    pub broken: usize,
    /// The session that wrote last.
    pub session: Option<String>,
    /// The name of the last write.
    pub write: Option<String>,
    /// The content hashes (marks) of hints that the session still has but must not write again.
    pub forgotten: BTreeSet<String>,
}

/// The changes of a write.
#[derive(Debug, Default)]
pub struct HintChanges<'a> {
    /// Hints that are new or have another body.
    pub puts: Vec<(&'a VariantName, &'a str)>,
    /// Hints that stay in the database for a later session.
    pub waits: Vec<&'a VariantName>,
    /// Hints that the session does not have any more.
    pub deletes: Vec<&'a VariantName>,
}

impl HintChanges<'_> {
    /// Returns true when there is no change.
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.waits.is_empty() && self.deletes.is_empty()
    }
}

/// A write of a session.
#[derive(Debug)]
pub struct SessionWrite<'a> {
    /// The name of the session's last write. The write is refused if the database has another name.
    pub last: Option<&'a str>,
    /// The session's id.
    pub session: &'a str,
    /// The new content hashes of forgotten hints, if they have changed.
    pub forgotten: Option<&'a BTreeSet<String>>,
    /// The changes of the hints.
    pub changes: &'a HintChanges<'a>,
    /// The changes of the deletions.
    pub deletions: &'a DeletionChanges,
    /// The authors of the changes.
    pub by: WriteAuthors<'a>,
}

/// The opened database of a session that keeps hints.
pub struct KeptDatabase(Db);

impl KeptDatabase {
    pub(super) fn open(opening: &DatabaseOpening<'_>) -> Result<Self> {
        Db::open(opening).map(Self)
    }

    /// Returns the reason why today's copy failed, if it did.
    pub fn backup_failed(&self) -> Option<Error> {
        self.0.backup_failed()
    }

    /// Copies the database into a new file, and returns its size in bytes.
    ///
    /// # Errors
    /// The errors of [`Db::backup`].
    pub fn back_up(&self, to: &Path) -> Result<u64> {
        self.0.backup(to)
    }

    /// Reads everything.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_all(&self) -> Result<KeptContents> {
        self.0.read(|c| {
            let mut contents = KeptContents::default();
            let mut statement = c.prepare("SELECT component, key, variant, body, waits FROM hint")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                match read_row(row) {
                    Some(hint) => contents.hints.push(hint),
                    None => contents.broken += 1,
                }
            }
            let mut statement = c.prepare("SELECT mark FROM forgotten")?;
            contents.forgotten = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            (contents.session, contents.write) = (read_note(c, SESSION)?, read_note(c, WRITE)?);
            Ok(contents)
        })
    }

    /// Returns the name of the last write.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_write_name(&self) -> Result<Option<String>> {
        self.0.read(|c| Ok(read_note(c, WRITE)?))
    }

    /// Makes the changes of a session in one transaction, and returns the name of this write. Changes nothing and
    /// returns `None` if the contents are not those of the session's last write.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be written.
    pub fn write(&self, write: &SessionWrite<'_>) -> Result<Option<String>> {
        self.0.write(|tx| {
            if read_note(tx, WRITE)?.as_deref() != write.last {
                return Ok(None);
            }
            overwrite_deleted(tx)?;
            let HintChanges { puts, waits, deletes } = write.changes;
            // The log has the changes in the order of their times.
            let now = write.by.now;
            let to_dated = |&(name, body)| (read_update_time(body).map_or(now, |time| time.min(now)), name, body);
            let mut puts: Vec<(Millis, &VariantName, &str)> = puts.iter().map(to_dated).collect();
            puts.sort_by_key(|(time, ..)| *time);
            for (time, name, body) in puts {
                let author = WriteAuthors { now: time, ..write.by };
                log::log_put(tx, name, find_body(tx, name)?.as_deref(), body, author)?;
                put_hint(tx, name, body, false)?;
            }
            for name in waits {
                let sql = "UPDATE hint SET waits = 1 WHERE component = ?1 AND key = ?2 AND variant = ?3";
                tx.prepare_cached(sql)?.execute([&name.component, &name.key, &name.variant])?;
            }
            for name in deletes {
                let sql = "DELETE FROM hint WHERE component = ?1 AND key = ?2 AND variant = ?3";
                tx.prepare_cached(sql)?.execute([&name.component, &name.key, &name.variant])?;
                log::log_delete(tx, name, write.by)?;
            }
            for (id, body) in write.deletions {
                match body {
                    Some(body) => tx
                        .prepare_cached(
                            "INSERT INTO deletion(id, body) VALUES(?1, ?2)
                             ON CONFLICT(id) DO UPDATE SET body = excluded.body",
                        )?
                        .execute(params![id, body])?,
                    None => tx.prepare_cached("DELETE FROM deletion WHERE id = ?1")?.execute([id])?,
                };
            }
            if let Some(forgotten) = write.forgotten {
                tx.execute("DELETE FROM forgotten", [])?;
                for mark in forgotten {
                    tx.prepare_cached("INSERT INTO forgotten(mark) VALUES(?1)")?.execute([mark])?;
                }
            }
            put_note(tx, SESSION, write.session)?;
            name_write(tx).map(Some)
        })
    }

    /// Returns the id and the body of each deletion that can be undone. At the beginning of a session (`begins`), dates
    /// the deletions of the last session, and drops those that are older than a week.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read or written.
    pub fn read_deletions(&self, begins: bool, now: Millis) -> Result<Vec<(i64, String)>> {
        let read = |c: &Connection| -> rusqlite::Result<Vec<(i64, String, Option<Millis>)>> {
            let mut statement = c.prepare("SELECT id, body, until FROM deletion ORDER BY id")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        };
        let mut stored = self.0.read(|c| Ok(read(c)?))?;
        if begins && stored.iter().any(|(.., until)| until.is_none_or(|until| until < now)) {
            stored = self.0.write(|tx| {
                overwrite_deleted(tx)?;
                tx.execute("UPDATE deletion SET until = ?1 WHERE until IS NULL", [now.saturating_add(DELETION_MS)])?;
                tx.execute("DELETE FROM deletion WHERE until < ?1", [now])?;
                Ok(read(tx)?)
            })?;
        }
        Ok(stored.into_iter().map(|(id, body, _)| (id, body)).collect())
    }

    /// Returns the last changes of hints since a time, oldest first; when there are more than `limit`, the latest ones.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_changes(&self, since: Millis, limit: usize) -> Result<Vec<HintChange>> {
        let logged = self.0.read(|c| nudge_storage::read_changes(c, since, limit))?;
        Ok(logged.into_iter().filter_map(HintChange::from_logged).collect())
    }

    /// Adds the hints of an earlier version's kept file, whose digest is `digest`. A hint that is there already stays
    /// if it is as new. Does nothing for a file that was added before: a session that was killed before it renamed the
    /// file must not bring back what was deleted since.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be written.
    pub fn add_earlier(&self, earlier: &EarlierHints<'_>) -> Result<()> {
        let EarlierHints { kept, over, session, digest } = earlier;
        self.0.write(|tx| {
            if read_note(tx, IMPORTED)?.as_deref() == Some(digest) {
                return Ok(());
            }
            for (document, waits) in std::iter::once((*kept, false)).chain(over.map(|over| (over, true))) {
                for (component, key, hint) in document.iter_hints() {
                    let name = VariantName::from_export(component, key, hint);
                    let there = find_body(tx, &name)?;
                    let is_newer = |there: &String| !waits && read_update_time(hint.get()) > read_update_time(there);
                    if there.as_ref().is_none_or(is_newer) {
                        put_hint(tx, &name, hint.get(), waits)?;
                    }
                }
            }
            if kept.is_of(session) {
                put_note(tx, SESSION, session)?;
                for mark in &kept.forgotten {
                    tx.prepare_cached("INSERT OR IGNORE INTO forgotten(mark) VALUES(?1)")?.execute([mark])?;
                }
            }
            put_note(tx, IMPORTED, digest)?;
            name_write(tx).map(drop)
        })
    }
}

/// The hints of an earlier version's kept file.
#[derive(Debug)]
pub struct EarlierHints<'a> {
    /// The kept hints.
    pub kept: &'a KeptDocument<'a>,
    /// The hints that did not fit.
    pub over: Option<&'a KeptDocument<'a>>,
    /// The present session's id.
    pub session: &'a str,
    /// The digest of both files.
    pub digest: &'a str,
}

fn read_row(row: &rusqlite::Row<'_>) -> Option<StoredHint> {
    let text = |index: usize| row.get_ref(index).ok()?.as_str().ok().map(str::to_owned);
    let name = VariantName { component: text(0)?, key: text(1)?, variant: text(2)? };
    Some(StoredHint { name, body: text(3)?, waits: row.get::<_, i64>(4).ok()? != 0 })
}

/// Makes this transaction overwrite the text of the rows that it deletes or replaces, so that no free page has it.
fn overwrite_deleted(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))
}

fn read_note(c: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    c.prepare_cached("SELECT value FROM note WHERE name = ?1")?.query_row([name], |row| row.get(0)).optional()
}

fn put_note(tx: &Transaction<'_>, name: &str, value: &str) -> Result<(), TransactionFailure> {
    let sql = "INSERT INTO note(name, value) VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET value = excluded.value";
    tx.prepare_cached(sql)?.execute([name, value])?;
    Ok(())
}

/// Gives this write a name, and returns it.
fn name_write(tx: &Transaction<'_>) -> Result<String, TransactionFailure> {
    let name: String = tx.prepare_cached("SELECT lower(hex(randomblob(8)))")?.query_row([], |row| row.get(0))?;
    put_note(tx, WRITE, &name)?;
    Ok(name)
}

fn find_body(c: &Connection, name: &VariantName) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT body FROM hint WHERE component = ?1 AND key = ?2 AND variant = ?3";
    let mut statement = c.prepare_cached(sql)?;
    statement.query_row([&name.component, &name.key, &name.variant], |row| row.get(0)).optional()
}

fn put_hint(tx: &Transaction<'_>, name: &VariantName, body: &str, waits: bool) -> Result<(), TransactionFailure> {
    let sql = "INSERT INTO hint(component, key, variant, body, waits) VALUES(?1, ?2, ?3, ?4, ?5)
               ON CONFLICT(component, key, variant) DO UPDATE SET body = excluded.body, waits = excluded.waits";
    tx.prepare_cached(sql)?.execute(params![name.component, name.key, name.variant, body, waits])?;
    Ok(())
}

/// Returns the time of a hint's last change. A hint without a time is older than any other.
fn read_update_time(hint: &str) -> Option<i64> {
    #[derive(Deserialize)]
    struct DatedHint {
        updated_at: String,
    }
    parse_time(&serde_json::from_str::<DatedHint>(hint).ok()?.updated_at)
}

/// Reads the hints of the database without changing any file, also while a session writes it. Returns `None` when
/// there is no database.
///
/// # Errors
/// `E_UNAVAILABLE` when the database cannot be read.
pub fn read_alone(path: &Path) -> Result<Option<Vec<StoredHint>>> {
    read_table_alone(path, "hint", &["component", "key", "variant", "body", "waits"], read_row)
}

/// Returns true when a later session can undo a deletion. Changes no file.
///
/// # Errors
/// The errors of [`read_alone`].
pub fn has_deletions(path: &Path) -> Result<bool> {
    let ids = read_table_alone(path, "deletion", &["id"], |row| row.get::<_, i64>(0).ok())?;
    Ok(ids.is_some_and(|ids| !ids.is_empty()))
}

fn read_table_alone<T>(
    path: &Path,
    table: &str,
    columns: &[&str],
    read_row: impl Fn(&rusqlite::Row<'_>) -> Option<T>,
) -> Result<Option<Vec<T>>> {
    // An empty file has no hint yet: a session that creates the database was killed, or does it right now.
    if path.symlink_metadata().map_or(true, |meta| meta.is_file() && meta.len() == 0) {
        return Ok(None);
    }
    let limits = ForeignLimits {
        file_bytes: MAX_BYTES,
        value_bytes: MAX_VALUE_BYTES,
        all_bytes: MAX_BYTES,
        steps: MAX_STEPS,
        until: Instant::now() + READ_PATIENCE,
    };
    let refused = |why: &str| Error::unavailable(format!("The kept hints in {} {why}.", path.display()));
    let unfit = |unfit: UnfitDatabase| match unfit {
        UnfitDatabase::InUse | UnfitDatabase::TooMuch => refused("are in use; try again"),
        UnfitDatabase::File(error) => refused(&format!("cannot be read ({error})")),
        UnfitDatabase::NotOwn => refused("are another user's"),
        UnfitDatabase::NotADatabase | UnfitDatabase::NoTable | UnfitDatabase::Damaged => {
            refused("cannot be read (the file is damaged); `nudge hints recover FILE` puts a backup in its place")
        }
    };
    let database = ForeignDatabase::open(path, LinkPolicy::Refused, ForeignLog::Read, &limits).map_err(unfit)?;
    match database.read_version().map_err(unfit)? {
        Some(0) => return Ok(None),
        Some(version) if version <= HINTS_DATABASE.version() => {}
        Some(_) => return Err(refused("were written by a newer nudge; update this one")),
        None => return Err(refused("are another program's; move that file away")),
    }
    let mut found = Vec::new();
    let read = database.for_each_row(table, columns, None, &mut |row| {
        found.extend(read_row(row));
        ControlFlow::Continue(())
    });
    read.map_err(unfit).map(|()| Some(found))
}
