//! Keeps the index of one brain. Before a question is answered, the index reads the files that have changed: those that
//! the system has reported, or those whose stamp (size, time, inode) differs from the stored stamp. The index never
//! writes a file of the brain.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use foldhash::fast::RandomState;
use nudge_core::clock::Clock;
use nudge_core::error::{Error, Result};
use nudge_core::source::{DataDir, Fence, StopFlag};
use nudge_core::text::to_hex;
use nudge_storage::search::TextIndexCache;
use nudge_storage::{DatabaseOpening, Db, TransactionFailure, root_caches};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::chunk;
use crate::config::BrainConfig;
use crate::folder::{BrainFolder, FileContent, FileStamp, Hash};
use crate::follow::{FileChanges, FolderFollower};
use crate::meaning::IndexMeanings;
use crate::rows::{self, KnownFile};
use crate::schema::APP;

/// The number of files that one transaction indexes. Other writers can work between two transactions.
const BATCH: usize = 64;
/// How long a scan waits, beyond its deadline if it has one, for another thread's scan to end.
const OTHER_WAIT: Duration = Duration::from_millis(150);

/// The time for which a temporary index is used before the lasting index is tried again.
const RETRY: Duration = Duration::from_mins(1);

/// The open index of one brain.
pub struct BrainIndex {
    pub folder: BrainFolder,
    /// The key that distinguishes this index from those of other folders.
    pub key: String,
    pub db: Db,
    pub known: TextIndexCache,
    pub meanings: IndexMeanings,
    pub follow: FolderFollower,
    /// The folder in which `follow` makes files, to find out whether the system has reported all earlier changes.
    echo: DataDir,
    /// Is set for a temporary index, which is removed when this process ends.
    pub apart: Option<TemporaryIndex>,
    /// The lock of the thread that scans the files.
    scanning: Mutex<()>,
}

/// Describes a temporary index. It is used when the index in the cache folder cannot be opened.
#[derive(Debug)]
pub struct TemporaryIndex {
    /// The reason why the lasting index cannot be opened, for people.
    pub why: String,
    since: Instant,
    /// Holds the folder of the index; the folder is removed when the index is dropped.
    _folder: TempDir,
}

/// The result of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanResult {
    /// Is true when the index agrees with all files.
    pub is_whole: bool,
    /// The number of files that the scan has read.
    pub read: usize,
    /// The number of files that were renamed since the scan before.
    pub renamed: usize,
}

impl BrainIndex {
    /// Opens the index of a folder. Creates the index if it does not exist. `cache` is the folder that holds all
    /// indexes.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be opened.
    pub fn open(folder: BrainFolder, cache: &DataDir, clock: &Arc<dyn Clock>, fence: &Arc<dyn Fence>) -> Result<Self> {
        let key = Sha256::digest(folder.path().as_os_str().as_encoded_bytes());
        let key = to_hex(&key[..16]);
        let place = DataDir::new(cache.path().join("brain").join(&key));
        let (clock, fence) = (Arc::clone(clock), Arc::clone(fence));
        root_caches::remove_orphans(&cache.path().join("brain"), SystemTime::now());
        let db = Db::open(&DatabaseOpening { clock, fence, ..DatabaseOpening::new(&place, &APP) })?;
        root_caches::note_root(place.path(), folder.path());
        let index = Self {
            folder,
            key,
            db,
            known: TextIndexCache::default(),
            meanings: IndexMeanings::default(),
            follow: FolderFollower::default(),
            echo: DataDir::new(place.path().join("echo")),
            scanning: Mutex::new(()),
            apart: None,
        };
        index.check_version()?;
        Ok(index)
    }

    /// Opens a temporary index, because the lasting index cannot be opened for the reason `why`. A temporary index ends
    /// with its process, and the next process builds it anew. So the answers tell the user the reason.
    ///
    /// # Errors
    /// The reason `why`, if the temporary index cannot be opened either.
    pub fn open_apart(folder: BrainFolder, why: Error, clock: &Arc<dyn Clock>, fence: &Arc<dyn Fence>) -> Result<Self> {
        let Ok(place) = tempfile::tempdir() else { return Err(why) };
        let Ok(index) = Self::open(folder, &DataDir::new(place.path()), clock, fence) else { return Err(why) };
        let why = format!("the index lasts no longer than this process: {}", why.message());
        Ok(Self { apart: Some(TemporaryIndex { why, since: Instant::now(), _folder: place }), ..index })
    }

    /// Returns true when it is time to try to open the lasting index again.
    pub fn is_overdue(&self) -> bool {
        self.apart.as_ref().is_some_and(|apart| apart.since.elapsed() > RETRY)
    }

    /// If the chunks are of an older version, marks all files to be read again. The vectors of unchanged texts stay.
    fn check_version(&self) -> Result<()> {
        let version = chunk::VERSION.to_string();
        if self.db.read(|c| rows::read_note(c, "chunks"))?.as_deref() == Some(&version) {
            return Ok(());
        }
        let root = self.folder.path().to_string_lossy();
        self.db.write(|tx| {
            tx.execute("UPDATE unit SET inode = -1, hash = zeroblob(32)", [])?;
            rows::set_note(tx, "root", &root)?;
            rows::set_note(tx, "chunks", &version)
        })
    }

    /// Begins to follow the files, if that has not begun yet. A change wakes the thread that waits on `stop`.
    pub fn begin_to_follow(&self, stop: &StopFlag) {
        self.follow.begin(self.folder.path(), &self.echo, stop);
    }

    /// Returns true when all files have been read at least once.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn is_made(&self) -> Result<bool> {
        Ok(self.db.read(|c| rows::read_note(c, "made"))?.is_some())
    }

    /// Returns true when the index has any unit, which is the knowledge in one file.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn has_units(&self) -> Result<bool> {
        self.db.read(|c| Ok(c.prepare_cached("SELECT 1 FROM unit")?.exists([])?))
    }

    /// Returns true while another call scans the files.
    pub fn is_scanned(&self) -> bool {
        self.scanning.is_locked()
    }

    /// Blocks all scans until the returned guard is dropped.
    #[cfg(test)]
    pub fn hold_scanning(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.scanning.lock()
    }

    /// Reads the changed files, if they are few and the index knows them all. Returns true when the index agrees with
    /// the files after that.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read or written.
    pub fn look_at(&self, changes: &FileChanges) -> Result<bool> {
        if changes.all || !self.db.read(rows::is_settled)? {
            return Ok(false);
        }
        if changes.files.is_empty() {
            return Ok(true);
        }
        let Some(_guard) = self.scanning.try_lock_for(OTHER_WAIT) else { return Ok(false) };
        let looked = changes.files.iter().map(|path| {
            let path = self.folder.name(path)?;
            self.folder.read_stamp(&path).map(|stamp| (path, stamp))
        });
        let Some(files) = looked.collect::<Option<Vec<_>>>() else { return Ok(false) };
        let known = self.db.read(|c| {
            let read_entry =
                |(path, _): &(String, FileStamp)| Ok(rows::read_file(c, path)?.map(|file| (path.clone(), file)));
            files.iter().map(read_entry).collect::<Result<Option<Files>, TransactionFailure>>()
        })?;
        // A file that the index does not know may be ignored by rules, or may be a renamed file. Only a full scan can
        // decide that.
        let Some(known) = known.filter(|known| known.values().all(|file| file.id.is_some())) else { return Ok(false) };
        let mut work = ScanWork::new(&[], &known);
        self.index_batch(&files.iter().collect::<Vec<_>>(), &known, &mut work)?;
        if work.has_changed {
            self.db.write(|tx| rows::settle_index(tx))?;
        }
        self.follow.mark_seen(changes);
        Ok(true)
    }

    /// Checks all files and reads those that differ, until the deadline. If another thread scans already, the call
    /// waits a little longer for that thread, because its scan usually reads the same files.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read or written.
    pub fn scan(&self, deadline: Option<Instant>) -> Result<ScanResult> {
        let cut = ScanResult { is_whole: false, read: 0, renamed: 0 };
        let guard = match deadline {
            Some(deadline) => self.scanning.try_lock_until(deadline + OTHER_WAIT),
            None => Some(self.scanning.lock()),
        };
        let Some(_guard) = guard else { return Ok(cut) };
        // The changes are taken before the walk begins. So a file that is written during the walk counts as unread.
        let told = self.follow.changes();
        let known = self.db.read(rows::read_files)?;
        let config = BrainConfig::load(self.folder.path());
        let Some(mut walked) = self.folder.list_files(&config, deadline) else { return Ok(cut) };
        self.follow.set_folders(std::mem::take(&mut walked.folders));
        let differs = |(path, stamp): &(String, FileStamp)| known.get(path).is_none_or(|file| file.stamp != *stamp);
        let there: HashSet<&str> = walked.files.iter().map(|(path, _)| path.as_str()).collect();
        let gone: Vec<String> = known.keys().filter(|path| !there.contains(path.as_str())).cloned().collect();
        let mut changed: Vec<_> = walked.files.iter().filter(|file| differs(file)).collect();
        changed.sort_unstable();
        let settled = self.db.read(rows::is_settled)?;
        let mut work = ScanWork::new(&gone, &known);
        let (mut read, mut is_whole) = (0, true);
        for batch in changed.chunks(BATCH) {
            if read > 0 && deadline.is_some_and(|deadline| Instant::now() > deadline) {
                is_whole = false;
                break;
            }
            self.index_batch(batch, &known, &mut work)?;
            read += batch.len();
        }
        if !settled || work.has_changed || !gone.is_empty() {
            let renamed: HashSet<&String> = work.renamed.iter().collect();
            self.db.write(|tx| {
                // After an incomplete scan, a file that seems to be missing may be a renamed file that was not read
                // yet.
                for path in gone.iter().filter(|path| is_whole && !renamed.contains(path)) {
                    rows::remove_file(tx, path)?;
                }
                rows::settle_index(tx)
            })?;
        }
        if is_whole && (walked.is_cut || !self.is_made()?) {
            let many = if walked.is_cut { "more files than are indexed" } else { "" };
            self.db.write(|tx| rows::set_note(tx, "made", many))?;
        }
        if is_whole {
            self.follow.mark_seen(&told);
        }
        Ok(ScanResult { is_whole, read, renamed: work.renamed.len() })
    }

    /// Reads a batch of files and writes them to the index.
    fn index_batch(&self, batch: &[&(String, FileStamp)], known: &Files, work: &mut ScanWork) -> Result<()> {
        let now = SystemTime::now();
        let files: Vec<_> =
            batch.iter().map(|(path, stamp)| (path, stamp.to_remembered(now), self.folder.read(path))).collect();
        let before = work.renamed.len();
        self.db.write(|tx| {
            work.renamed.truncate(before);
            for (path, stamp, read) in &files {
                match read {
                    Ok(FileContent { hash, .. }) if known.get(*path).is_some_and(|file| file.has_hash(hash)) => {
                        rows::touch_file(tx, path, *stamp)?;
                    }
                    Ok(FileContent { text, hash }) => {
                        if let Some(from) = work.take_rename(hash, known.contains_key(*path)) {
                            rows::rename_file(tx, &from, path)?;
                            work.has_changed = true;
                        }
                        work.has_changed |= rows::put_file(tx, path, text, *stamp, hash)?;
                    }
                    // The file was removed in the meantime. The next scan notices that.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        rows::skip_file(tx, path, *stamp, &error.to_string())?;
                        work.has_changed = true;
                    }
                }
            }
            if work.has_changed { rows::set_note(tx, "settled", "0") } else { Ok(()) }
        })
    }

    /// Deletes the index except for its vectors, and reads all files again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read or written.
    pub fn rebuild(&self) -> Result<ScanResult> {
        {
            let _guard = self.scanning.lock();
            self.db.write(|tx| {
                Ok(tx.execute_batch("DELETE FROM unit; DELETE FROM skipped; DELETE FROM brain WHERE name = 'made'")?)
            })?;
        }
        self.scan(None)
    }

    /// Indexes a file that a method has just written, in the transaction of the change.
    pub(crate) fn put_written(
        &self,
        tx: &nudge_storage::rusqlite::Connection,
        path: &str,
    ) -> Result<(), TransactionFailure> {
        let (Ok(FileContent { text, hash }), Some(stamp)) = (self.folder.read(path), self.folder.read_stamp(path))
        else {
            return Ok(());
        };
        if rows::put_file(tx, path, &text, stamp.to_remembered(SystemTime::now()), &hash)? {
            rows::settle_index(tx)
        } else {
            Ok(())
        }
    }
}

/// The files that the index knows, by path.
type Files = HashMap<String, KnownFile, RandomState>;

/// The progress of a scan while it indexes files.
struct ScanWork {
    /// The paths of units whose files are missing, by the hash of the file.
    gone: HashMap<Hash, String, RandomState>,
    /// The old paths of renamed units.
    renamed: Vec<String>,
    has_changed: bool,
}

impl ScanWork {
    fn new(gone: &[String], known: &Files) -> Self {
        let unit =
            |path: &String| known.get(path).filter(|file| file.id.is_some()).map(|file| (file.hash, path.clone()));
        Self { gone: gone.iter().filter_map(unit).collect(), renamed: Vec::new(), has_changed: false }
    }

    /// Returns the old path of a renamed file, once. A file counts as renamed when the index does not know its path and
    /// a file that is now missing had the same hash.
    fn take_rename(&mut self, hash: &Hash, is_known: bool) -> Option<String> {
        let from = self.gone.get(hash).filter(|from| !is_known && !self.renamed.contains(from))?.clone();
        self.renamed.push(from.clone());
        Some(from)
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
