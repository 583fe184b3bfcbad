//! Lets one process work at a time. Two would each write their own findings and lose those of the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_core::patience;
use nudge_os::dir;
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};

use crate::kept;

/// The time to wait for another process: `nudge init` may be asking its user.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of tries to make the lock's folder, which another process may remove together with its lock.
const MAX_TRIES: u32 = 100;

/// A lock file, removed when the lock is released.
pub struct ProcessLock {
    // The lock must be released before its folder is removed.
    _lock: FileLock,
    _folder: Option<EmptyFolder>,
}

/// A folder that is removed on drop, if it is empty.
struct EmptyFolder(PathBuf);

impl ProcessLock {
    /// Waits until no other process has the lock, or until the caller of this call has gone. Creates the folder.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another process keeps the lock, or the file cannot be created.
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
