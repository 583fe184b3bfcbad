//! Describes a kind of database, and collects the inputs for opening one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nudge_core::clock::{Clock, SystemClock};
use nudge_core::number::to_column;
use nudge_core::source::{DataDir, Fence, NoSession, SourceHost};
use rusqlite::Connection;

/// The `application_id` that marks a SQLite file as a database of Nudge: the letters `NUDG`.
pub const APPLICATION_ID: i32 = 0x4E55_4447;
/// The migration that adds the generation: a random name that changes when a backup replaces the file's contents. Code
/// that caches row numbers compares the name ([`read_generation`]): a new name means that the numbers belong to other
/// rows.
pub const GENERATION: &str = "\
CREATE TABLE generation(name BLOB NOT NULL) STRICT;
INSERT INTO generation VALUES (randomblob(16));";

/// Reads the generation from a database whose schema contains [`GENERATION`].
///
/// # Errors
/// SQLite's error when the statement fails.
pub fn read_generation(c: &Connection) -> rusqlite::Result<Vec<u8>> {
    c.prepare_cached("SELECT name FROM generation")?.query_row([], |row| row.get(0))
}

/// The default limit for the wait of a call, both for other calls of this process and for other processes.
pub const WAIT: Duration = Duration::from_secs(5);

/// A kind of database: its name, its schema, and how long its data is kept.
///
/// ```
/// use nudge_storage::{DatabaseKind, KEYS, DataRetention};
///
/// static NOTES: DatabaseKind = DatabaseKind {
///     name: "notes",
///     migrations: &[
///         KEYS,
///         "CREATE TABLE note(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL) STRICT;
///          CREATE VIRTUAL TABLE note_fts USING fts5(text, content='note', content_rowid='id', tokenize='porter');",
///         // A later version added this script. The scripts before it have run already, and never change.
///         "ALTER TABLE note ADD COLUMN at TEXT NOT NULL DEFAULT '';",
///     ],
///     full_text: &["note_fts"],
///     kept: DataRetention::Data,
/// };
/// assert_eq!(NOTES.version(), 3);
/// ```
#[derive(Debug)]
pub struct DatabaseKind {
    /// A lower-case word, such as `records`: the file is then `records.db`, and its backups are
    /// `backups/records-DATE.NUMBER.db`.
    pub name: &'static str,
    /// The scripts that make the schema, oldest first. The `user_version` of a file is the number of scripts that have
    /// run. A script is never changed or removed.
    pub migrations: &'static [&'static str],
    /// The names of the FTS5 tables. SQLite can rebuild them from the rows that they index.
    pub full_text: &'static [&'static str],
    /// Says whether the database holds data or a cache.
    pub kept: DataRetention,
}

impl DatabaseKind {
    /// Returns the number of migrations, which is the `user_version` of a file with the whole schema.
    pub fn version(&self) -> i64 {
        to_column(self.migrations.len())
    }
}

/// Distinguishes data, which exists only in the database, from a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataRetention {
    /// The file is the only copy of its contents. SQLite flushes each commit (`synchronous=FULL`), Nudge makes backups,
    /// and a damaged file stays unchanged.
    Data,
    /// The source can make the contents again. A commit survives the death of the process, but may be lost when the
    /// machine loses power (`synchronous=NORMAL`). There are no backups, and opening a damaged file empties it.
    Cache,
}

/// The inputs for opening a database.
pub struct DatabaseOpening<'a> {
    /// The folder of the file. If the folder is missing, opening creates it, with mode 0700 on systems with modes.
    pub folder: &'a DataDir,
    /// The kind of database.
    pub app: &'static DatabaseKind,
    /// The clock. It decides when a new day begins and which stored keys are too old.
    pub clock: Arc<dyn Clock>,
    /// The fence, which checks at every commit that this process is still PRIMARY.
    pub fence: Arc<dyn Fence>,
    /// The longest wait of the opening and of each later call.
    pub wait: Duration,
}

impl<'a> DatabaseOpening<'a> {
    /// Makes the inputs for a database outside a session, for instance in a command while no server runs.
    pub fn new(folder: &'a DataDir, app: &'static DatabaseKind) -> Self {
        Self { folder, app, clock: Arc::new(SystemClock), fence: Arc::new(NoSession), wait: WAIT }
    }

    /// Makes the inputs for a source's database, with the server's clock and fence.
    pub fn from_host(host: &'a SourceHost<'_>, app: &'static DatabaseKind) -> Self {
        let (clock, fence) = (Arc::clone(&host.clock), Arc::clone(&host.fence));
        Self { clock, fence, ..Self::new(&host.data, app) }
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}.db", self.app.name))
    }
}
