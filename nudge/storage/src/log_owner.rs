//! Keeps a small file beside a database, the note. The note says to which database the log belongs.
//!
//! SQLite replays a log onto any file with the right name. Suppose that all processes have died, and that a user then
//! moves a copy over the database. The next process would replay the old log onto the copy and damage it.
//!
//! The note prevents this: it holds the identities of the database and of its log. If the log still has the noted
//! identity and the database has another one, the log does not belong to that database. If both identities are new, for
//! instance after a user restored the whole folder, the two files belong together.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use nudge_os::dir::PrivateDir;
use nudge_os::lock::{FileLock, LockKind, LockPatience};

use crate::app::DataRetention;
use crate::backup;
use crate::fault::DatabasePlace;
use crate::files::{DatabaseFiles, FileStanding};

/// Largest number of bytes that are read of a note. A note has fewer than two hundred bytes.
const MAX_BYTES: u64 = 1024;

/// The identities of a database file and of its log.
#[derive(PartialEq)]
struct LogOwner {
    database: String,
    log: String,
}

impl LogOwner {
    /// Returns the identities of the present files. Returns `None` when a file is missing, or on a system without
    /// lasting identities of files.
    fn identify_files(place: &DatabasePlace) -> Option<Self> {
        let log = place.folder.join(format!("{}-wal", place.file_name()));
        Some(Self { database: read_identity(&place.path())?, log: read_identity(&log)? })
    }

    fn read(mut file: &File) -> Option<Self> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let (database, log) = text.trim_end().split_once('\n')?;
        Some(Self { database: database.into(), log: log.into() })
    }
}

/// Moves the log of a database to the backups, or removes the log of a cache, if the note says that the log belongs to
/// another file. Then it returns the locked note, which the caller passes to [`write`]. The lock keeps other processes
/// from comparing the next log with the old note.
///
/// # Errors
/// The system's error when the log cannot be moved or removed.
pub(crate) fn set_foreign_log_aside(
    place: &DatabasePlace,
    kept: DataRetention,
    date: &str,
) -> io::Result<Option<FileLock>> {
    let Ok(folder) = PrivateDir::open(&place.folder, false) else { return Ok(None) };
    let Ok(note) = folder.open_lock(&name(place), false) else { return Ok(None) };
    let is_foreign = |note: &File| {
        let (noted, found) = (LogOwner::read(note), LogOwner::identify_files(place));
        noted.zip(found).is_some_and(|(noted, found)| noted.log == found.log && noted.database != found.database)
    };
    if !is_foreign(&note) {
        return Ok(None);
    }
    let lock = lock_note(&folder, place)?;
    // Checks again under the lock, because another process may have moved the log meanwhile.
    if !is_foreign(lock.as_file()) {
        return Ok(None);
    }
    let beside = |end: &str| format!("{}{end}", place.file_name());
    // The index can be removed, because SQLite makes it again from the log.
    match folder.remove(&beside("-shm")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match kept {
        DataRetention::Data => keep_log(place, &beside("-wal"), date)?,
        DataRetention::Cache => folder.remove(&beside("-wal"))?,
    }
    Ok(Some(lock))
}

fn lock_note(folder: &PrivateDir, place: &DatabasePlace) -> io::Result<FileLock> {
    Ok(folder.take_lock(&name(place), LockKind::Exclusive, LockPatience::Unlimited)?)
}

/// Moves the log to the backups. If its database still exists under another name, a user can put both together again.
pub(crate) fn keep_log(place: &DatabasePlace, log: &str, date: &str) -> io::Result<()> {
    let backups = place.folder.join(backup::FOLDER);
    PrivateDir::open(&backups, true).map_err(|unfit| io::Error::other(unfit.to_string()))?;
    let mut names = (1..).map(|number: u32| backups.join(format!("{}-{date}.{number}-replaced.wal", place.name)));
    let free = names.find(|path| path.symlink_metadata().is_err()).expect("a folder has fewer files than numbers");
    std::fs::rename(place.folder.join(log), free)
}

/// Writes into the note that the log belongs to the database. The caller calls this after SQLite has opened both files.
/// `note` is the note that [`set_foreign_log_aside`] has locked.
pub(crate) fn write(place: &DatabasePlace, opened: &DatabaseFiles, note: Option<FileLock>) {
    let (Ok(folder), Some(owner)) = (PrivateDir::open(&place.folder, false), LogOwner::identify_files(place)) else {
        return;
    };
    // Writes nothing if another file got the database's name meanwhile, because the log does not belong to that file.
    if opened.check_standing() != FileStanding::InPlace {
        return;
    }
    let is_noted = |file: &File| LogOwner::read(file).is_some_and(|noted| noted == owner);
    // Leaves a correct note without locking it, so that no process waits for another.
    if note.is_none() && folder.open_lock(&name(place), false).is_ok_and(|file| is_noted(&file)) {
        return;
    }
    let Some(lock) = note.or_else(|| lock_note(&folder, place).ok()) else { return };
    let mut file = lock.as_file();
    // Write errors are ignored: with a missing or partial note, SQLite replays the log as usual.
    let text = format!("{}\n{}\n", owner.database, owner.log);
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
}

/// Removes the note when there is no log.
pub(crate) fn forget_owner(place: &DatabasePlace) {
    if place.folder.join(format!("{}-wal", place.file_name())).symlink_metadata().is_err()
        && let Ok(folder) = PrivateDir::open(&place.folder, false)
    {
        let _ = folder.remove(&name(place));
    }
}

fn name(place: &DatabasePlace) -> String {
    format!(".{}.log-owner", place.file_name())
}

/// Returns device, inode and birth time of a file. The birth time is needed because a new file may get the inode of a
/// removed one.
#[cfg(unix)]
fn read_identity(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = path.symlink_metadata().ok()?;
    let born = meta.created().ok().and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{}:{}:{}", meta.dev(), meta.ino(), born.unwrap_or_default().as_nanos()))
}

/// Returns `None`: an open file cannot be replaced on this system, and the standard library gives files no identity.
#[cfg(not(unix))]
fn read_identity(_: &Path) -> Option<String> {
    None
}
