//! A lock file that lets one process at a time change a shared file. Without the lock, two processes would each write
//! the file and lose the changes of the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_core::patience;
use nudge_os::dir;
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};

use crate::kept;

/// The longest wait for another process, which may be a `nudge init` that waits for its user's answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of tries to create the lock file. Another process may remove the lock's folder between two steps of a
/// try.
const MAX_TRIES: u32 = 100;

/// A held lock. A drop releases the lock and removes its file.
pub struct ProcessLock {
    // The lock must be released before its folder is removed.
    _lock: FileLock,
    _folder: Option<EmptyFolder>,
}

/// A folder. A drop removes the folder if it is empty.
struct EmptyFolder(PathBuf);

impl ProcessLock {
    /// Waits until no other process holds the lock, and creates the lock's folder. Also stops waiting when the caller's
    /// own time limit is over.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another process holds the lock until the wait ends, or the lock file cannot be created.
    pub fn acquire(path: &Path) -> Result<Self> {
        let begun = Instant::now();
        let is_over = || begun.elapsed() > PATIENCE || patience::is_over();
        let mut tries = 0;
        let refusal = loop {
            tries += 1;
            let made = path.parent().map_or(Ok(()), dir::create_private);
            let taken = made
                .map_err(LockRefusal::from)
                .and_then(|()| FileLock::take(path, LockKind::Exclusive, LockPatience::Until(&is_over)));
            match taken {
                Ok(lock) => {
                    let folder = path.parent().map(|folder| EmptyFolder(folder.to_owned()));
                    return Ok(Self { _lock: lock.with_removal(path), _folder: folder });
                }
                // Another process has just removed the folder.
                Err(LockRefusal::Failed(error))
                    if error.kind() == std::io::ErrorKind::NotFound && tries < MAX_TRIES => {}
                Err(refusal) => break refusal,
            }
        };
        let (error, advice) = match refusal {
            LockRefusal::Held => {
                return Err(Error::unavailable("Another `nudge` command has it; try again when that has ended."));
            }
            LockRefusal::NoLocks(error) => (error, kept::NO_LOCKS),
            LockRefusal::Failed(error) => (error, "make it writable"),
        };
        Err(Error::unavailable(format!("Cannot lock {}: {error}; {advice}.", path.display())))
    }
}

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
