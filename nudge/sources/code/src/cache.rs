//! Keeps the index on disk: the facts of each file. So a start reads only the files that have changed since.
//!
//! The user may delete the cache at any time. If the cache does not fit (another version of the facts, another root, a
//! damaged row), it starts empty. Each root has its own folder in the folder of caches, named by a hash of the root's
//! path.

use std::sync::Arc;
use std::time::SystemTime;

use nudge_code_index::{CodeLanguage, EXTRACTOR, FileFacts, Hash, Skip, hash};
use nudge_core::error::Result;
use nudge_core::source::DataDir;
use nudge_core::text::to_hex;
use nudge_storage::rusqlite::{Connection, OptionalExtension as _, params};
use nudge_storage::{DataRetention, DatabaseKind, DatabaseOpening, Db, TransactionFailure, root_caches};
use serde::{Deserialize, Serialize};

use crate::root::ProjectRoot;
use crate::stamp::FileMarks;

/// The version of the format of a row.
const FORMAT: u32 = 1;
/// The number of rows that one query reads.
const PAGE: usize = 256;

static APP: DatabaseKind = DatabaseKind {
    name: "index",
    migrations: &["CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, sum BLOB NOT NULL, entry BLOB NOT NULL) STRICT;"],
    full_text: &[],
    kept: DataRetention::Cache,
};

/// The cached state of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedFile {
    /// The marks of the file when it was read.
    pub stamp: FileMarks,
    /// The time when the file was read, in nanoseconds since 1970.
    pub read_ns: i64,
    /// The hash of the file's bytes.
    pub hash: Hash,
    /// The facts of the file, or the reason why it has none.
    pub read: Result<Arc<FileFacts>, Skip>,
}

/// A change of a row: the path of the file, and the new entry, or `None` to remove the entry.
pub type Change = (Box<str>, Option<CachedFile>);

/// The cache of a root.
pub struct IndexCache {
    db: Db,
    /// The reason why the cache started empty; `None` if it did not.
    anew: Option<&'static str>,
}

impl IndexCache {
    /// Returns the folder that holds the cache of a root.
    pub fn locate_folder(caches: &DataDir, root: &ProjectRoot) -> DataDir {
        let name = to_hex(&hash(root.path().as_os_str().as_encoded_bytes()));
        DataDir::new(caches.path().join("code").join(name))
    }

    /// Removes the caches that no process has opened for a month and whose root no longer exists.
    pub fn remove_orphans(caches: &DataDir) {
        root_caches::remove_orphans(&caches.path().join("code"), SystemTime::now());
    }

    /// Returns true if a root has a cache.
    pub fn is_kept(caches: &DataDir, root: &ProjectRoot) -> bool {
        Self::locate_folder(caches, root).path().join(format!("{}.db", APP.name)).is_file()
    }

    /// Opens the cache of a root. Creates the cache if it does not exist.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`; then the index works without a cache.
    pub fn open(caches: &DataDir, root: &ProjectRoot) -> Result<Self> {
        let folder = Self::locate_folder(caches, root);
        let db = Db::open(&DatabaseOpening::new(&folder, &APP))?;
        root_caches::note_root(folder.path(), root.path());
        let mut cache = Self { db, anew: None };
        let meta = build_meta(root);
        match cache.db.read(|c| is_ours(c, &meta)) {
            Ok(Some(true)) => {}
            Ok(None) => cache.write_meta(&meta)?,
            Ok(Some(false)) => cache.begin_anew("it was another version's", &meta)?,
            Err(_) => cache.begin_anew("it was damaged", &meta)?,
        }
        Ok(cache)
    }

    fn begin_anew(&mut self, why: &'static str, meta: &[(&str, String)]) -> Result<()> {
        self.db.begin_anew()?;
        self.anew = Some(why);
        self.write_meta(meta)
    }

    fn write_meta(&self, meta: &[(&str, String)]) -> Result<()> {
        self.db.write(|tx| {
            for (name, value) in meta {
                tx.execute("INSERT OR REPLACE INTO meta VALUES(?1, ?2)", params![name, value])?;
            }
            Ok(())
        })
    }

    /// Returns the path of the database file.
    pub fn path(&self) -> String {
        self.db.path().display().to_string()
    }

    /// Returns the reason why the cache started empty; `None` if it did not.
    pub fn restart_reason(&self) -> Option<&'static str> {
        self.anew
    }

    /// Passes all rows to `take`, page by page, until `take` returns false. If a row is damaged, the whole cache starts
    /// empty. The caller may keep the rows that it got before, because it compares each file with the disk anyway.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be written.
    pub fn load_rows(
        &mut self,
        root: &ProjectRoot,
        mut take: impl FnMut(Vec<(Box<str>, CachedFile)>) -> bool,
    ) -> Result<()> {
        let mut after = 0;
        loop {
            let page = self.db.read(|c| read_page(c, after));
            let Ok(Some((rows, last))) = page else {
                return self.begin_anew("it was damaged", &build_meta(root));
            };
            let is_last = rows.len() < PAGE;
            after = last;
            if !take(rows) || is_last {
                return Ok(());
            }
        }
    }

    /// Writes all changes in one transaction.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be written.
    pub fn write_changes(&self, changes: &[Change]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = changes.iter().map(|(path, entry)| (path, entry.as_ref().and_then(encode_file))).collect();
        self.db.write(|tx| {
            for (path, entry) in &rows {
                match entry {
                    Some(bytes) => tx
                        .prepare_cached("INSERT OR REPLACE INTO file(path, sum, entry) VALUES(?1, ?2, ?3)")?
                        .execute(params![path, compute_checksum(path, bytes), bytes])?,
                    None => tx.prepare_cached("DELETE FROM file WHERE path = ?1")?.execute([path])?,
                };
            }
            Ok(())
        })
    }

    /// Closes the database.
    pub fn close(&self) {
        // The error is ignored, because the cache can be made again.
        let _ = self.db.close();
    }
}

/// Lists the properties on which the validity of all rows depends.
fn build_meta(root: &ProjectRoot) -> [(&'static str, String); 4] {
    // The build of Nudge decides which languages are read.
    let grammars = if CodeLanguage::from_path("a.rb").is_some() { "all" } else { "usual" };
    [
        ("format", FORMAT.to_string()),
        ("extractor", EXTRACTOR.to_string()),
        ("root", root.path().to_string_lossy().into_owned()),
        ("grammars", grammars.to_owned()),
    ]
}

/// Returns true if the rows belong to this version and root, and `None` when the cache is new.
fn is_ours(c: &Connection, meta: &[(&str, String)]) -> Result<Option<bool>, TransactionFailure> {
    if c.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    for (name, value) in meta {
        let kept: Option<String> =
            c.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0)).optional()?;
        if kept.as_ref() != Some(value) {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

type Page = (Vec<(Box<str>, CachedFile)>, i64);

/// Reads the rows after the row number `after`. Returns the rows and the number of the last row; `None` when a row is
/// damaged.
fn read_page(c: &Connection, after: i64) -> Result<Option<Page>, TransactionFailure> {
    let sql = format!("SELECT id, path, sum, entry FROM file WHERE id > ?1 ORDER BY id LIMIT {PAGE}");
    let mut statement = c.prepare_cached(&sql)?;
    let mut found = statement.query([after])?;
    let (mut rows, mut last) = (Vec::new(), after);
    while let Some(row) = found.next()? {
        last = row.get(0)?;
        let (path, kept): (Box<str>, Vec<u8>) = (row.get(1)?, row.get(2)?);
        let Ok(bytes) = row.get_ref(3)?.as_blob() else { return Ok(None) };
        let Some(entry) = (kept == compute_checksum(&path, bytes)).then(|| postcard::from_bytes(bytes).ok()).flatten()
        else {
            return Ok(None);
        };
        rows.push((path, entry));
    }
    Ok(Some((rows, last)))
}

fn encode_file(entry: &CachedFile) -> Option<Vec<u8>> {
    postcard::to_stdvec(entry).ok()
}

/// Computes the checksum of a row. A checksum is needed because `SQLite` does not notice every damaged page.
fn compute_checksum(path: &str, bytes: &[u8]) -> [u8; 16] {
    hash(&[path.as_bytes(), &[0], bytes].concat())
}
