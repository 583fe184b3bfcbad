//! The folder for state, in which earlier versions kept hints as files (`kept.json`, `kept-over.json`,
//! `kept-before.json`). A session reads these files once and renames them. It also leaves its hints there as an export
//! if it cannot put them anywhere else (`left-SESSION.json`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_core::clock::{Clock as _, SystemClock};
use nudge_os::beneath::{DiskSync, FileRights, write_atomic};
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};

use crate::settings;

/// The kept file of earlier versions.
const FILE: &str = "kept.json";
/// The hints for which the limits of an earlier version's session left no room.
const OVER: &str = "kept-over.json";
/// An earlier version's copy of the kept file from before its last session.
const BEFORE: &str = "kept-before.json";
/// The lock by which a session of an earlier version keeps others from the kept file.
const LOCK: &str = "kept.lock";
/// The suffix of the name of a file whose hints are in the database.
const IMPORTED: &str = ".imported";
/// The prefix of the name of a file that could not be read.
const ASIDE: &str = "kept-aside-";
/// The most bytes of a kept file that are read.
const MAX_BYTES: u64 = 1 << 30;
/// The longest wait for a session of an earlier version that is about to end.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The folder for state of this user, which may not exist.
#[derive(Debug, Clone)]
pub struct StateDirectory(PathBuf);

/// The lock of an earlier version's kept file, released on drop.
#[derive(Debug)]
pub struct EarlierLock(#[allow(dead_code, reason = "it is held, not used")] FileLock);

impl StateDirectory {
    /// Returns the user's folder.
    ///
    /// # Errors
    /// `E_INVALID` when the system names no state folder.
    pub fn from_user() -> Result<Self> {
        let folder = settings::state_dir().ok_or_else(|| Error::invalid("Set HOME to your folder."))?;
        Ok(Self(folder))
    }

    /// Returns the path of the earlier version's kept file.
    pub fn kept_path(&self) -> PathBuf {
        self.0.join(FILE)
    }

    /// Returns true when an earlier version has left a kept file that is not in the database yet.
    pub fn has_kept(&self) -> bool {
        [FILE, OVER].iter().any(|name| self.0.join(name).symlink_metadata().is_ok())
    }

    /// Takes the lock of the kept file. Returns `None` while a session of an earlier version has the lock.
    ///
    /// # Errors
    /// Fails when the lock file cannot be used.
    pub fn lock_kept(&self) -> io::Result<Option<EarlierLock>> {
        let begun = Instant::now();
        let is_over = || begun.elapsed() > LOCK_PATIENCE;
        match FileLock::take(&self.0.join(LOCK), LockKind::Exclusive, LockPatience::Until(&is_over)) {
            Ok(lock) => Ok(Some(EarlierLock(lock))),
            Err(LockRefusal::Held) => Ok(None),
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Returns the text of the kept file; `None` when there is no file.
    ///
    /// # Errors
    /// Fails when the file cannot be read or is not text.
    pub fn read_kept(&self) -> io::Result<Option<String>> {
        self.read_file(FILE)
    }

    /// Returns the text of the file with the hints that did not fit; `None` when there is no file.
    ///
    /// # Errors
    /// Fails when the file cannot be read or is not text.
    pub fn read_over(&self) -> io::Result<Option<String>> {
        self.read_file(OVER)
    }

    fn read_file(&self, name: &str) -> io::Result<Option<String>> {
        match foreign::read_text(&self.0.join(name), LinkPolicy::Refused, MAX_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renames the files whose hints are in the database now. Replaces no file.
    ///
    /// # Errors
    /// Fails when a file cannot be renamed; it then keeps its name.
    pub fn mark_imported(&self, _lock: &EarlierLock) -> io::Result<()> {
        for name in [FILE, OVER] {
            let imported = format!("{name}{IMPORTED}");
            let mut names =
                (1..).map(|number: u32| if number == 1 { imported.clone() } else { format!("{imported}.{number}") });
            let is_free = |name: &String| self.0.join(name).symlink_metadata().is_err();
            let free = names.find(is_free).ok_or_else(|| io::Error::other("no name is free"))?;
            match fs::rename(self.0.join(name), self.0.join(free)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Renames the kept file, which cannot be read, and returns its new path. Nudge never changes a file with the new
    /// name.
    ///
    /// # Errors
    /// Fails when the file cannot be renamed; it then keeps its name.
    pub fn set_aside(&self, _lock: &EarlierLock) -> io::Result<PathBuf> {
        let aside = self.0.join(format!("{ASIDE}{}.json", SystemClock.now()));
        fs::rename(self.kept_path(), &aside)?;
        Ok(aside)
    }

    /// Lists the files that were set aside, by this version or an earlier one.
    pub fn list_aside(&self) -> Vec<PathBuf> {
        let mut aside: Vec<_> = self.list_files(|name| name.starts_with(ASIDE)).collect();
        aside.sort();
        aside
    }

    fn list_files(&self, is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = PathBuf> {
        let paths = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(move |path| path.file_name().and_then(|name| name.to_str()).is_some_and(&is_wanted))
    }

    fn list_earlier(&self) -> impl Iterator<Item = PathBuf> {
        self.list_files(|name| {
            let is_imported = [FILE, OVER].iter().any(|file| name.starts_with(&format!("{file}{IMPORTED}")));
            is_imported || [FILE, OVER, BEFORE].contains(&name)
        })
    }

    /// Returns true when the folder has a file with kept hints of an earlier version, read or not.
    pub fn has_earlier(&self) -> bool {
        self.list_earlier().next().is_some()
    }

    /// Removes the files with kept hints of earlier versions, except the files that were set aside.
    ///
    /// # Errors
    /// Fails when a file cannot be removed.
    pub fn remove_earlier(&self) -> io::Result<()> {
        self.list_earlier().try_for_each(fs::remove_file)
    }

    /// Writes the hints of a session that cannot keep them anywhere else. Returns the path of the new file.
    ///
    /// # Errors
    /// Fails when the folder cannot be written.
    pub fn write_left(&self, session: &str, text: &str) -> io::Result<PathBuf> {
        self.make_private()?;
        let path = self.0.join(format!("left-{session}.json"));
        write_atomic(&path, text.as_bytes(), FileRights::Private, DiskSync::Flushed)?;
        Ok(path)
    }

    /// Creates the folder and denies other users access to it.
    ///
    /// # Errors
    /// Fails when the folder cannot be created or belongs to another user.
    #[cfg(unix)]
    pub fn make_private(&self) -> io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
        if let Some(parent) = self.0.parent() {
            nudge_os::dir::create_private(parent)?;
        }
        match fs::DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let meta = self.0.symlink_metadata()?;
        if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it is not a folder of yours"));
        }
        if meta.mode() & 0o077 != 0 {
            fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Creates the folder.
    ///
    /// # Errors
    /// Fails when the folder cannot be created.
    #[cfg(not(unix))]
    pub fn make_private(&self) -> io::Result<()> {
        fs::create_dir_all(&self.0)
    }
}

impl AsRef<Path> for StateDirectory {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}
