//! A note beside a database that says which file its log belongs to.
//!
//! SQLite replays a log onto any file that has the name. When all processes have died and a copy is moved over the
//! database before the next one starts, that would damage the copy. The note holds the identities of the database and
//! of its log. A log that is still the same beside another database is not that database's. When both are others, as
//! after a whole folder was restored, they belong together.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use nudge_os::dir::PrivateDir;
use nudge_os::lock::{FileLock, LockKind, LockPatience};

use crate::app::DataRetention;
use crate::backup;
use crate::fault::DatabasePlace;
use crate::files::{DatabaseFiles, FileStanding};

/// Most bytes of a note; it has less than two hundred.
const MAX_BYTES: u64 = 1024;

/// The identities of a database and its log.
#[derive(PartialEq)]
struct LogOwner {
    database: String,
    log: String,
}

impl LogOwner {
    /// Looks at the files; `None` where one of them is not there, or has no identity that outlasts a process.
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

/// Takes the log out of the way if the note says that it is another file's. The result is the locked note then; it is
/// for [`write`], so that no other process takes the log of the next file for this one.
///
/// # Errors
/// The system's error, when the log cannot be taken away.
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
    // Another process may have done it meanwhile.
    if !is_foreign(lock.as_file()) {
        return Ok(None);
    }
    let beside = |end: &str| format!("{}{end}", place.file_name());
    // The index can be made again of the log.
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

/// Moves the log to the backups: where its database is still there under another name, the two are whole together.
fn keep_log(place: &DatabasePlace, log: &str, date: &str) -> io::Result<()> {
    let backups = place.folder.join(backup::FOLDER);
    PrivateDir::open(&backups, true).map_err(|unfit| io::Error::other(unfit.to_string()))?;
    let mut names = (1..).map(|number: u32| backups.join(format!("{}-{date}.{number}-replaced.wal", place.name)));
    let free = names.find(|path| path.symlink_metadata().is_err()).expect("a folder has fewer files than numbers");
    std::fs::rename(place.folder.join(log), free)
}

/// Notes that the log belongs to the database, both of which were opened. `note` is the file that
/// [`set_foreign_log_aside`] has locked.
pub(crate) fn write(place: &DatabasePlace, opened: &DatabaseFiles, note: Option<FileLock>) {
    let (Ok(folder), Some(owner)) = (PrivateDir::open(&place.folder, false), LogOwner::identify_files(place)) else {
        return;
    };
    // Another file that got the name meanwhile does not go with this log.
    if opened.check_standing() != FileStanding::InPlace {
        return;
    }
    let is_noted = |file: &File| LogOwner::read(file).is_some_and(|noted| noted == owner);
    // A note that says so already is not locked, and no process waits for another.
    if note.is_none() && folder.open_lock(&name(place), false).is_ok_and(|file| is_noted(&file)) {
        return;
    }
    let Some(lock) = note.or_else(|| lock_note(&folder, place).ok()) else { return };
    let mut file = lock.as_file();
    // Without the note, and with half of it, SQLite replays the log as it always does.
    let text = format!("{}\n{}\n", owner.database, owner.log);
    let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(text.as_bytes()));
}

/// Removes the note where there is no log any more.
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

/// Device, inode and time of birth: the inode of a file that is gone may become another's.
#[cfg(unix)]
fn read_identity(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = path.symlink_metadata().ok()?;
    let born = meta.created().ok().and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{}:{}:{}", meta.dev(), meta.ino(), born.unwrap_or_default().as_nanos()))
}

/// A file that is open cannot be replaced here, and the standard library has no identity of files.
#[cfg(not(unix))]
fn read_identity(_: &Path) -> Option<String> {
    None
}
