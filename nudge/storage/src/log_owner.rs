//! A small file beside a database, the note, that says to which database the log belongs.
//!
//! SQLite replays a log onto any file with the right name. Suppose that all processes have died, and that a user moves
//! a copy over the database before the next process starts: the log would then damage the copy. So the note holds the
//! identities of the database and of its log. A log with the same identity beside another database does not belong to
//! that database. When both identities are new, for instance after a whole folder was restored, the files belong
//! together.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use nudge_os::dir::PrivateDir;
use nudge_os::lock::{FileLock, LockKind, LockPatience};

use crate::app::DataRetention;
use crate::backup;
use crate::fault::DatabasePlace;
use crate::files::{DatabaseFiles, FileStanding};

/// Largest number of bytes of a note that are read; it has fewer than two hundred.
const MAX_BYTES: u64 = 1024;

/// The identities of a database and its log.
#[derive(PartialEq)]
struct LogOwner {
    database: String,
    log: String,
}

impl LogOwner {
    /// Identifies the files; `None` when a file is missing, or has no identity that outlasts a process.
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

/// Moves or removes the log if the note says that it belongs to another file. Then it returns the locked note for
/// [`write`], so that no other process mistakes the log of the next file for this one.
///
/// # Errors
/// The system's error, when the log cannot be moved or removed.
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
    // Another process may have moved the log meanwhile.
    if !is_foreign(lock.as_file()) {
        return Ok(None);
    }
    let beside = |end: &str| format!("{}{end}", place.file_name());
    // SQLite makes the index again from the log.
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

/// Moves the log to the backups: if its database still exists under another name, both together are complete.
fn keep_log(place: &DatabasePlace, log: &str, date: &str) -> io::Result<()> {
    let backups = place.folder.join(backup::FOLDER);
    PrivateDir::open(&backups, true).map_err(|unfit| io::Error::other(unfit.to_string()))?;
    let mut names = (1..).map(|number: u32| backups.join(format!("{}-{date}.{number}-replaced.wal", place.name)));
    let free = names.find(|path| path.symlink_metadata().is_err()).expect("a folder has fewer files than numbers");
    std::fs::rename(place.folder.join(log), free)
}

/// Notes that the log belongs to the database after both were opened. `note` is the file that [`set_foreign_log_aside`]
/// has locked.
pub(crate) fn write(place: &DatabasePlace, opened: &DatabaseFiles, note: Option<FileLock>) {
    let (Ok(folder), Some(owner)) = (PrivateDir::open(&place.folder, false), LogOwner::identify_files(place)) else {
        return;
    };
    // The log does not belong to another file that got the name meanwhile.
    if opened.check_standing() != FileStanding::InPlace {
        return;
    }
    let is_noted = |file: &File| LogOwner::read(file).is_some_and(|noted| noted == owner);
    // A correct note is not locked, so that no process waits for another.
    if note.is_none() && folder.open_lock(&name(place), false).is_ok_and(|file| is_noted(&file)) {
        return;
    }
    let Some(lock) = note.or_else(|| lock_note(&folder, place).ok()) else { return };
    let mut file = lock.as_file();
    // Without a note, or with a partial one, SQLite replays the log as usual.
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

/// Returns device, inode and time of birth: another file may get the inode of a removed one.
#[cfg(unix)]
fn read_identity(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = path.symlink_metadata().ok()?;
    let born = meta.created().ok().and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{}:{}:{}", meta.dev(), meta.ino(), born.unwrap_or_default().as_nanos()))
}

/// On this system an open file cannot be replaced, and the standard library has no identity of files.
#[cfg(not(unix))]
fn read_identity(_: &Path) -> Option<String> {
    None
}
