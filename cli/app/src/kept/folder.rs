//! The folder of `hints.db`, and the lock by which only one session at a time keeps hints.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge::{Error, Millis, Result};
use nudge_core::clock::{Clock, SystemClock};
use nudge_core::source::DataDir;
use nudge_os::dir::FileId;
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
use nudge_storage::DatabaseOpening;

use super::database::{HINTS_DATABASE, KeptDatabase};
use crate::settings;

/// The name of the lock file, which contains the runtime directory of the lock's holder. A database's own locks are too
/// short for this rule: they last for a transaction, and this lock for a session.
const LOCK: &str = "hints.lock";
/// The most bytes of the path in the lock file; a longer path is ignored.
const MAX_OWNER_BYTES: u64 = 4096;
/// The longest wait for the lock. `LOOKING` is enough if the holder only reads, because it then holds the lock for a
/// moment. `DYING` is for a holder that is about to end: a dying process releases its locks one after the other.
const LOOKING: Duration = Duration::from_millis(60);
const DYING: Duration = Duration::from_secs(2);

/// The folder of the database of kept hints.
#[derive(Clone)]
pub struct KeptFolder {
    data: DataDir,
    clock: Arc<dyn Clock>,
}

/// The lock of the kept hints, released on drop.
#[derive(Debug)]
pub struct KeptLock(FileLock);

impl KeptFolder {
    /// Names the folder, which need not exist.
    pub fn new(data: DataDir, clock: Arc<dyn Clock>) -> Self {
        Self { data, clock }
    }

    /// Returns the folder that this process's settings name.
    ///
    /// # Errors
    /// The errors of the settings.
    pub fn from_settings() -> Result<Self> {
        Ok(Self::new(settings::data_dir(&settings::read()?), Arc::new(SystemClock)))
    }

    fn new_opening(&self) -> DatabaseOpening<'_> {
        // A session's fence is closed at its last write. The lock of the kept hints keeps other sessions out.
        let clock = Arc::clone(&self.clock);
        DatabaseOpening { clock, ..DatabaseOpening::new(&self.data, &HINTS_DATABASE) }
    }

    /// Opens the database, or creates it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database is damaged, of a later version or of another program, or cannot be written.
    pub fn open_database(&self) -> Result<KeptDatabase> {
        KeptDatabase::open(&self.new_opening())
    }

    /// Returns the time that decides what is too old. It does not jump when the clock is set wrong.
    pub fn plausible_time(&self) -> Millis {
        self.clock.plausible_time()
    }

    /// Returns the path of the newest automatic copy; `None` when there is no copy.
    pub fn find_copy(&self) -> Option<PathBuf> {
        nudge_storage::find_newest_copy(&self.new_opening())
    }

    /// Puts a copy in the place of the database. Returns the path of the earlier contents, if there were any.
    ///
    /// # Errors
    /// The errors of [`nudge_storage::restore_copy`].
    pub fn restore_copy(&self, copy: &Path) -> Result<Option<PathBuf>> {
        nudge_storage::restore_copy(&self.new_opening(), copy)
    }

    /// Moves a damaged database beside the copies, and returns its new path. The caller has closed it and has the lock.
    ///
    /// # Errors
    /// The errors of [`nudge_storage::move_damaged_aside`].
    pub fn move_damaged_aside(&self) -> Result<PathBuf> {
        nudge_storage::move_damaged_aside(&self.new_opening())
    }

    /// Lists the files with the contents of replaced or damaged databases.
    pub fn list_set_aside(&self) -> Vec<PathBuf> {
        nudge_storage::list_set_aside(&self.new_opening())
    }

    /// Removes the database and its copies. The caller has closed the database and has the lock.
    ///
    /// # Errors
    /// The errors of [`nudge_storage::remove_database`].
    pub fn remove_database(&self) -> Result<()> {
        nudge_storage::remove_database(&self.new_opening())
    }

    /// Returns the path of the database.
    pub fn database_path(&self) -> PathBuf {
        self.new_opening().path()
    }

    /// Returns true when there is a database; it is missing until a session has kept a hint. A link or a folder with
    /// its name counts too.
    pub fn has_database(&self) -> bool {
        self.database_path().symlink_metadata().is_ok()
    }

    /// Returns true when a session has kept hints in the folder.
    pub fn is_used(&self) -> bool {
        self.has_database() || self.find_copy().is_some() || self.data.path().join(LOCK).exists()
    }

    /// Returns true when a database is missing or has no byte.
    pub fn is_without_data(&self) -> bool {
        self.database_path().symlink_metadata().map_or(true, |meta| meta.len() == 0)
    }

    /// Takes the lock for the session of a runtime directory; `None` stands for a process that is no session. Creates
    /// the folder. Returns `None` when another session holds the lock.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the folder or the lock cannot be used.
    pub fn lock(&self, runtime: Option<&Path>) -> Result<Option<KeptLock>> {
        let folder = self.data.create_folder()?;
        let begun = Instant::now();
        let is_over = || {
            // A runtime directory has only one PRIMARY, so another holder from the same directory is about to end.
            let is_dying = runtime.is_some() && self.read_owner().as_deref() == runtime;
            begun.elapsed() > if is_dying { DYING } else { LOOKING }
        };
        match FileLock::take(&folder.join(LOCK), LockKind::Exclusive, LockPatience::Until(&is_over)) {
            Ok(file) => {
                let lock = KeptLock(file);
                runtime
                    .map_or(Ok(()), |runtime| lock.note_owner(runtime))
                    .map_err(|error| self.explain(error.into()))?;
                Ok(Some(lock))
            }
            Err(LockRefusal::Held) => Ok(None),
            Err(refusal) => Err(self.explain(refusal)),
        }
    }

    fn explain(&self, refusal: LockRefusal) -> Error {
        let advice = if matches!(refusal, LockRefusal::NoLocks(_)) {
            "its file system has no locks, so set NUDGE_DATA_DIR to a folder on a disk of this machine"
        } else {
            "make it yours alone"
        };
        let error = io::Error::from(refusal);
        Error::unavailable(format!("Cannot keep hints in {}: {error}; {advice}.", self.data.path().display()))
    }

    /// Returns the runtime directory of the session that holds the lock or held it last, if the lock file names one.
    pub fn read_owner(&self) -> Option<PathBuf> {
        let text = foreign::read_text(&self.data.path().join(LOCK), LinkPolicy::Refused, MAX_OWNER_BYTES).ok()?;
        Some(PathBuf::from(text)).filter(|path| path.is_absolute())
    }

    /// Creates the folder and the lock file again if another program has removed them.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the files cannot be created, or when another session holds the new lock.
    pub fn stay_locked(&self, lock: &mut KeptLock, runtime: &Path) -> Result<()> {
        let path = self.data.path().join(LOCK);
        let is_held = || Ok(FileId::at_path(&path)?.as_ref() == Some(&FileId::from_file(lock.0.as_file())?));
        if is_held().map_err(|error: io::Error| self.explain(error.into()))? {
            return Ok(());
        }
        self.data.create_folder()?;
        let taken = FileLock::take(&path, LockKind::Exclusive, LockPatience::AtOnce);
        lock.0 = taken.map_err(|refusal| match refusal {
            LockRefusal::Held => {
                let message = format!("Another session keeps hints in {} now.", self.data.path().display());
                Error::unavailable(message)
            }
            refusal => self.explain(refusal),
        })?;
        lock.note_owner(runtime).map_err(|error| self.explain(error.into()))
    }
}

impl KeptLock {
    fn note_owner(&self, runtime: &Path) -> io::Result<()> {
        let mut file = self.0.as_file();
        file.set_len(0)?;
        io::Seek::rewind(&mut file)?;
        file.write_all(runtime.as_os_str().as_encoded_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_lock_and_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptFolder::new(DataDir::new(folder.path().join("data/nudge")), Arc::new(SystemClock));
        let mut lock = kept.lock(Some(Path::new("/run/a"))).unwrap().unwrap();
        assert!(kept.lock(Some(Path::new("/run/b"))).unwrap().is_none());
        assert_eq!(kept.read_owner().as_deref(), Some(Path::new("/run/a")));
        // Another session gets the lock after the folder was removed, and the first one then says so.
        kept.stay_locked(&mut lock, Path::new("/run/a")).unwrap();
        std::fs::remove_dir_all(folder.path().join("data")).unwrap();
        let other = kept.lock(Some(Path::new("/run/b"))).unwrap().unwrap();
        let refused = kept.stay_locked(&mut lock, Path::new("/run/a")).unwrap_err();
        assert!(refused.message().starts_with("Another session keeps hints in "), "{refused:?}");
        drop(other);
        kept.stay_locked(&mut lock, Path::new("/run/a")).unwrap();
        assert_eq!(kept.read_owner().as_deref(), Some(Path::new("/run/a")));
    }
}
