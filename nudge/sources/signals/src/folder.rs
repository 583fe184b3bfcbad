//! A folder of the state directory in which files are replaced whole: by renaming a new one over the old.
//!
//! The specification's sender writes a file of one fixed name first; two at a time publish each other's halves. So the
//! name is new each time, and whoever dies leaves one that goes after an hour.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The names of files that are not yet whole.
const TEMPORARY: (&str, &str) = (".nudge-", ".tmp");
/// When one of those is left over from a sender that died.
const LEFT_OVER: Duration = Duration::from_hours(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// What becomes of a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old {
    Replaced,
    /// Then nothing is written, which is no error.
    Kept,
}

/// Writes a file of a folder, flushed to the disk. Nobody ever reads half of it.
pub fn write(folder: &Path, name: &str, text: &str, old: Old) -> io::Result<()> {
    let path = folder.join(name);
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY.0).suffix(TEMPORARY.1);
    // As readable as what others write there: agents may be of several users.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    match old {
        Old::Replaced => drop(file.persist(path).map_err(|error| error.error)?),
        Old::Kept => match file.persist_noclobber(path) {
            Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => {}
            kept => drop(kept.map_err(|error| error.error)?),
        },
    }
    // The name lasts once its folder is on the disk; some file systems cannot be asked for it.
    #[cfg(unix)]
    let _ = open_folder(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Waits until no other process of ours is at the folder, at most so long. What cannot be locked is not.
pub fn lock(folder: &Path, patience: Duration) -> Option<File> {
    let file = lock_file(folder).ok()?;
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(fs::TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            Err(_) => return None,
        }
    }
}

/// The folder itself, so that it holds one file and nothing else.
#[cfg(unix)]
pub fn lock_file(folder: &Path) -> io::Result<File> {
    open_folder(folder)
}

/// Folders cannot be locked there; the file stands beside those of the agents.
#[cfg(not(unix))]
pub fn lock_file(folder: &Path) -> io::Result<File> {
    let beside = folder.parent().unwrap_or(folder).join(".lock");
    fs::OpenOptions::new().create(true).truncate(false).write(true).open(beside)
}

#[cfg(unix)]
pub fn open_folder(folder: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// Removes what senders left that died before their file was whole.
pub fn sweep(folder: &Path) {
    let left_over = |path: &PathBuf| {
        let is_ours = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1));
        let written = || path.symlink_metadata().and_then(|meta| meta.modified()).ok();
        is_ours && written().is_some_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > LEFT_OVER))
    };
    let Ok(entries) = fs::read_dir(folder) else { return };
    entries.flatten().map(|entry| entry.path()).filter(left_over).for_each(|path| drop(fs::remove_file(path)));
}
