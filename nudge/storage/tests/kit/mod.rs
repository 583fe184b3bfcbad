//! Provides a database of notes in two versions, and helper functions for the tests.
#![allow(dead_code, reason = "no test uses all of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge_core::clock::ManualClock;
use nudge_core::error::Result;
use nudge_core::source::DataDir;
use nudge_storage::{COMPACTION, DataRetention, DatabaseKind, DatabaseOpening, Db, KEYS};

pub const FIRST: &str = "
CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
CREATE TABLE vector(note INTEGER PRIMARY KEY REFERENCES note(id) ON DELETE CASCADE, bytes BLOB NOT NULL) STRICT;
CREATE VIRTUAL TABLE note_fts USING fts5(title, body, content='note', content_rowid='id', tokenize='porter unicode61');
CREATE VIRTUAL TABLE note_words USING fts5vocab(note_fts, 'row');
CREATE TRIGGER note_ai AFTER INSERT ON note BEGIN
  INSERT INTO note_fts(rowid, title, body) VALUES(new.id, new.title, new.body); END;
CREATE TRIGGER note_ad AFTER DELETE ON note BEGIN
  INSERT INTO note_fts(note_fts, rowid, title, body) VALUES('delete', old.id, old.title, old.body); END;";

/// The first version of the schema.
pub static OLD: DatabaseKind = app(&[KEYS, FIRST], DataRetention::Data);
/// The second version of the schema.
pub static NEW: DatabaseKind =
    app(&[KEYS, FIRST, "ALTER TABLE note ADD COLUMN kind TEXT NOT NULL DEFAULT 'issue';"], DataRetention::Data);
/// The first version with the migration for compaction.
pub static FORGETTING: DatabaseKind = app(&[KEYS, FIRST, COMPACTION], DataRetention::Data);
/// The first version as a cache.
pub static CACHE: DatabaseKind = app(&[KEYS, FIRST], DataRetention::Cache);

pub const fn app(migrations: &'static [&'static str], kept: DataRetention) -> DatabaseKind {
    DatabaseKind { name: "notes", migrations, full_text: &["note_fts"], kept }
}

/// 23 November 2026, noon.
pub const NOON: i64 = 1_795_435_200_000;
pub const HOUR: i64 = 60 * 60 * 1000;

/// A folder for a database, and a clock that only the test moves.
pub struct Desk {
    pub folder: DataDir,
    pub clock: Arc<ManualClock>,
    place: tempfile::TempDir,
}

impl Desk {
    pub fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        // Uses the path without links, because the database reports that path.
        let real = if cfg!(unix) { place.path().canonicalize().unwrap() } else { place.path().to_owned() };
        let folder = DataDir::new(real.join("nudge"));
        Self { folder, clock: Arc::new(ManualClock::new(NOON)), place }
    }

    pub fn opening(&self, app: &'static DatabaseKind) -> DatabaseOpening<'_> {
        DatabaseOpening { clock: self.clock.clone(), ..DatabaseOpening::new(&self.folder, app) }
    }

    pub fn try_open(&self, app: &'static DatabaseKind) -> Result<Db> {
        Db::open(&self.opening(app))
    }

    pub fn open(&self, app: &'static DatabaseKind) -> Db {
        self.try_open(app).unwrap()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("notes.db")
    }

    /// Returns the names of the backups.
    pub fn backups(&self) -> Vec<String> {
        names(&self.folder.path().join("backups"))
    }
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Sets a flag when it is dropped, so that threads that wait for the flag end even when the test fails.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Adds a note and its vector.
pub fn add(db: &Db, title: &str) -> Result<i64> {
    db.write(|tx| {
        tx.prepare_cached("INSERT INTO note(title, body) VALUES(?1, ?2)")?.execute([title, BODY])?;
        let id = tx.last_insert_rowid();
        tx.prepare_cached("INSERT INTO vector VALUES(?1, zeroblob(1536))")?.execute([id])?;
        Ok(id)
    })
}

pub const BODY: &str = "The retry counter was reset when a worker crashed; it moved into the payload of the job, \
which is written before the worker answers and read again by the one that takes its place.";

pub fn count(db: &Db) -> i64 {
    db.read(|c| Ok(c.query_row("SELECT count(*) FROM note", [], |row| row.get(0))?)).unwrap()
}

pub fn titles(db: &Db) -> Vec<String> {
    db.read(|c| {
        let mut statement = c.prepare("SELECT title FROM note ORDER BY title")?;
        let titles = statement.query_map([], |row| row.get(0))?;
        Ok(titles.collect::<Result<_, _>>()?)
    })
    .unwrap()
}

/// Opens a connection without Nudge's settings.
pub fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

use nudge_storage::rusqlite;
