//! Lets one process work at a time: two would each write their own findings, and lose those of the other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_core::{dir, patience};

use crate::kept;

/// Time to wait for another process: `nudge init` may be asking its user.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// A lock file, which is removed with the lock.
pub struct ProcessLock {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl ProcessLock {
    /// Waits until no other process has the lock, or the caller of this thread's call has gone; makes its folder.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another process keeps it, or the file cannot be made.
    pub fn acquire(path: &Path) -> Result<Self> {
        let unusable = |error: std::io::Error| {
            let advice = if dir::is_without_locks(&error) { kept::NO_LOCKS } else { "make it writable" };
            Error::unavailable(format!("Cannot lock {}: {error}; {advice}.", path.display()))
        };
        let begun = Instant::now();
        loop {
            path.parent().map_or(Ok(()), dir::create_private).map_err(unusable)?;
            // In the state folder of the user alone.
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(path) {
                Ok(file) => match file.try_lock() {
                    // The process that had it may have removed it in between.
                    Ok(()) if is_same_file(path, &file) => return Ok(Self { path: path.to_owned(), _file: file }),
                    Ok(()) | Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
                    Err(TryLockError::Error(error)) => return Err(unusable(error)),
                },
                // The folder has just been removed by another.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(unusable(error)),
            }
            if begun.elapsed() > PATIENCE || patience::is_over() {
                return Err(Error::unavailable("Another `nudge` command has it; try again when that has ended."));
            }
        }
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // The folder goes too, unless something else is in it.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

/// Returns true when the path still names the file.
#[cfg(unix)]
fn is_same_file(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |meta: fs::Metadata| (meta.dev(), meta.ino());
    path.symlink_metadata().ok().map(id) == file.metadata().ok().map(id)
}

/// An open file cannot be removed by another process without the name being gone.
#[cfg(not(unix))]
fn is_same_file(path: &Path, _: &File) -> bool {
    path.exists()
}
