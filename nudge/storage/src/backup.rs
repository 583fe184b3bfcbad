//! Makes copies of a database: each copy is one complete file. `VACUUM INTO` writes a copy and fails if it cannot read
//! a page, so a damaged database never replaces a good copy.
//!
//! A copy is `NAME-DATE.SEQ.db`, or `NAME-DATE.SEQ.vVERSION.db` before a migration. `SEQ` counts the copies in the
//! order in which they were made, because the date may come from a wrong clock. Copies from earlier versions of Nudge
//! have no `SEQ` and count as older than all other copies.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::{Error, Result};
use nudge_os::dir::{FileKind, PrivateDir};
use rusqlite::Connection;

use crate::app::DatabaseOpening;
use crate::fault::{DatabasePlace, TransactionFailure};
use crate::{log_owner, open};

/// The name of the folder with the copies; the folder is beside the database.
pub(crate) const FOLDER: &str = "backups";
/// The suffix of the name of an incomplete copy.
pub(crate) const PART: &str = ".part";
/// The suffix that `SQLite` adds to a file's name for the journal of that file.
const JOURNAL: &str = "-journal";
/// Number of copies that are kept from the series with the newest copy ([`find_superfluous`]).
const KEPT: usize = 3;
/// Number of older series of which the newest copy is kept.
const KEPT_JUMPS: usize = 2;
/// Longest time between the dates of two neighbouring copies of a series, in ms. A longer time begins another series,
/// even if the machine was only switched off.
const MAX_PAUSE_MS: Millis = 7 * 24 * 3_600_000;
/// Length of a date such as `2026-11-23`, in bytes.
const DATE_BYTES: usize = 10;
/// Length of a time such as `2026-11-23T12:00:00`, in bytes.
const SECOND_BYTES: usize = 19;

/// Returns the date of a copy, in UTC.
pub(crate) fn format_date(now: Millis) -> String {
    rfc3339::format_time(now)[..DATE_BYTES].to_owned()
}

/// Returns a time for the name of a file. Some file systems allow no colon in a name.
fn format_file_time(now: Millis) -> String {
    rfc3339::format_time(now)[..SECOND_BYTES].replace(':', "-")
}

/// Returns true when a copy with this date exists.
pub(crate) fn is_there(place: &DatabasePlace, date: &str) -> bool {
    let date = parse_day(date);
    list_copies(place).iter().any(|copy| copy.version.is_none() && Some(copy.date) == date)
}

/// Returns the path of the newest copy; `None` when there is no copy.
pub(crate) fn find_newest(place: &DatabasePlace) -> Option<PathBuf> {
    let copy = list_copies(place).pop()?;
    Some(place.folder.join(FOLDER).join(copy.name))
}

/// Returns the path of the newest automatic copy of a database; `None` when there is no copy.
pub fn find_newest_copy(opening: &DatabaseOpening<'_>) -> Option<PathBuf> {
    find_newest(&DatabasePlace::from_opening(opening))
}

/// Lists the files beside the copies that hold the contents of a replaced or damaged database.
pub fn list_set_aside(opening: &DatabaseOpening<'_>) -> Vec<PathBuf> {
    let place = DatabasePlace::from_opening(opening);
    let path = place.folder.join(FOLDER);
    let is_apart = |name: &String| {
        let rest = name.strip_prefix(place.name).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| rest.strip_suffix(".db").is_some()) && BackupFile::parse(&place, name.clone()).is_none()
    };
    let mut apart: Vec<_> = list_names(&path).filter(is_apart).map(|name| path.join(name)).collect();
    apart.sort();
    apart
}

/// Moves a damaged database that has no copy to the files of [`list_set_aside`], so that the next opening begins anew.
/// Other programs may still be able to read some of it. The caller has closed the database, and knows that no other
/// process writes it. Returns the new path.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be moved; it then keeps its name.
pub fn move_damaged_aside(opening: &DatabaseOpening<'_>) -> Result<PathBuf> {
    let place = DatabasePlace::from_opening(opening);
    let path = place.folder.join(FOLDER);
    PrivateDir::open(&path, true).map_err(|unfit| refusal_error(&path, unfit))?;
    let time = format_file_time(opening.clock.now());
    let mut names = (1_u32..).map(|number| path.join(format!("{}-{time}.{number}-damaged.db", place.name)));
    let free = names.find(|path| path.symlink_metadata().is_err());
    let free = free.ok_or_else(|| refusal_error(&path, "has no name left"))?;
    std::fs::rename(place.path(), &free).map_err(|error| refusal_error(&path, error))?;
    let log = format!("{}-wal", place.file_name());
    if place.folder.join(&log).symlink_metadata().is_ok() {
        let kept = log_owner::keep_log(&place, &log, &format_date(opening.clock.plausible_time()));
        kept.map_err(|error| refusal_error(&path, error))?;
    }
    Ok(free)
}

/// Removes a database with its log and its automatic copies, and leaves the files of [`list_set_aside`]. The caller has
/// closed the database, and knows that no other process writes it.
///
/// # Errors
/// `E_UNAVAILABLE` when a file exists and cannot be removed.
pub fn remove_database(opening: &DatabaseOpening<'_>) -> Result<()> {
    let place = DatabasePlace::from_opening(opening);
    let copies = list_copies(&place).into_iter().map(|copy| place.folder.join(FOLDER).join(copy.name));
    // Removes the log first: a database without its log is older, and a log without its database is another's.
    let beside = ["-wal", "-shm", ""].map(|end| place.folder.join(format!("{}{end}", place.file_name())));
    for path in copies.chain(beside) {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("Cannot remove {}: {error}; make its folder writable.", path.display());
                return Err(Error::unavailable(message));
            }
            _ => {}
        }
    }
    log_owner::forget_owner(&place);
    Ok(())
}

/// Makes the copy of a day, or the copy before a migration from `version`. Then removes copies that are no longer
/// needed.
pub(crate) fn keep_copy(
    c: &Connection,
    place: &DatabasePlace,
    date: &str,
    version: Option<i64>,
) -> Result<(), TransactionFailure> {
    let number = list_copies(place).last().map_or(0, |copy| copy.number) + 1;
    let name = match version {
        Some(version) => format!("{}-{date}.{number}.v{version}.db", place.name),
        None => format!("{}-{date}.{number}.db", place.name),
    };
    put_copy(place, &name, |part| vacuum_into(c, part))?;
    let path = place.folder.join(FOLDER);
    let Ok(folder) = PrivateDir::open(&path, false) else { return Ok(()) };
    // Removes incomplete copies of processes that died. Files of today stay: another process may be writing one.
    let parts = list_names(&path).filter(|part| {
        let whole = part.strip_prefix('.').and_then(|part| part.split_once(PART));
        let is_end = |end: &str| end.is_empty() || end == JOURNAL;
        let whole = whole.filter(|(_, end)| is_end(end)).map_or("", |(whole, _)| whole);
        whole.starts_with(&format!("{}-", place.name)) && !whole.starts_with(&format!("{}-{date}", place.name))
    });
    for name in find_superfluous(list_copies(place)).into_iter().map(|copy| copy.name).chain(parts) {
        // A failed removal is ignored, so that it does not refuse the caller's change.
        let _ = folder.remove(&name);
    }
    Ok(())
}

/// Returns the copies to remove. Copies form series: in a series, the dates of two neighbouring copies are at most
/// seven days apart. A clock that was wrong for a while makes a series of its own.
///
/// The function keeps the newest three copies of the series with the newest copy. It also keeps the newest copy of each
/// of the next two series. So copies with a false date do not push out older copies.
///
/// Two processes that start at the same time may make two copies for the same date and version. The function keeps the
/// later one.
fn find_superfluous(copies: Vec<BackupFile>) -> Vec<BackupFile> {
    let is_made_again = |index: usize| {
        copies[index + 1..].iter().any(|copy| (copy.date, copy.version) == (copies[index].date, copies[index].version))
    };
    let again: Vec<_> = (0..copies.len()).map(is_made_again).collect();
    let (again, copies): (Vec<_>, Vec<_>) = copies.into_iter().zip(again).partition(|(_, again)| *again);
    let files = |copies: Vec<(BackupFile, bool)>| copies.into_iter().map(|(copy, _)| copy).collect::<Vec<_>>();
    let (mut removed, mut copies) = (files(again), files(copies));
    let mut kept = KEPT;
    for _ in 0..=KEPT_JUMPS {
        let Some(mut first) = copies.last().map(|copy| copy.date) else { break };
        let (mut line, mut others) = (Vec::new(), Vec::new());
        for copy in copies.into_iter().rev() {
            if (0..=MAX_PAUSE_MS).contains(&(first - copy.date)) {
                first = copy.date;
                line.push(copy);
            } else {
                others.push(copy);
            }
        }
        removed.extend(line.into_iter().skip(kept));
        others.reverse();
        (copies, kept) = (others, 1);
    }
    removed.extend(copies);
    removed
}

/// Saves the contents of the database in a new file before they are replaced, because they may exist nowhere else.
/// `write` fills the file. Returns the path of the file.
fn keep_apart(
    place: &DatabasePlace,
    now: Millis,
    what: &str,
    write: impl FnOnce(&Path) -> Result<(), TransactionFailure>,
) -> Result<PathBuf, TransactionFailure> {
    let path = place.folder.join(FOLDER);
    let folder = PrivateDir::open(&path, true).map_err(|unfit| refusal_error(&path, unfit))?;
    let time = format_file_time(now);
    let mut names = (1..).map(|number: u32| {
        let again = if number == 1 { String::new() } else { format!(".{number}") };
        format!("{}-{time}-{what}{again}.db", place.name)
    });
    // Creates an empty file that reserves the name until the copy is complete.
    let name = loop {
        let Some(name) = names.next() else { return Err(refusal_error(&path, "has no name left").into()) };
        match folder.create_new(&name) {
            Ok(_) => break name,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refusal_error(&path, error).into()),
        }
    };
    let kept = put_copy(place, &name, write);
    if kept.is_err() {
        let _ = folder.remove(&name);
    }
    kept.map(|()| path.join(name))
}

/// Makes the copy `name`, whose contents `write` writes. Replaces an existing copy with that name.
fn put_copy(
    place: &DatabasePlace,
    name: &str,
    write: impl FnOnce(&Path) -> Result<(), TransactionFailure>,
) -> Result<(), TransactionFailure> {
    let path = place.folder.join(FOLDER);
    let folder = PrivateDir::open(&path, true).map_err(|unfit| refusal_error(&path, unfit))?;
    // Each process writes its own temporary file, because other processes may make the same copy. The last one stays.
    let part = format!(".{name}.{}{PART}", unique_suffix());
    let made = make_copy(&folder, &path, &part, write).and_then(|()| {
        let renamed = folder.rename(&part, name);
        renamed.map_err(|error| refusal_error(&path, error).into())
    });
    if made.is_err() {
        // Removes the incomplete file of a failed copy.
        let _ = folder.remove(&part);
    }
    made
}

/// Copies the database into a new file that only this user can read. Returns its size in bytes.
pub(crate) fn copy_database(c: &Connection, place: &DatabasePlace, to: &Path) -> Result<u64, TransactionFailure> {
    let to = std::path::absolute(to).map_err(|error| refusal_error(to, error))?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // The database exists and this call creates a new file, so `to` cannot be the database itself.
    match options.open(&to) {
        Ok(file) => drop(file),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let message = format!("The file {} is there already; give another name.", to.display());
            return Err(Error::invalid(message).into());
        }
        Err(error) => return Err(refusal_error(&to, error).into()),
    }
    if let Err(failure) = vacuum_into(c, &to) {
        let _ = std::fs::remove_file(&to);
        return Err(Error::unavailable(format!(
            "The backup {} cannot be written: {}",
            to.display(),
            place.to_error(failure).message()
        ))
        .into());
    }
    Ok(to.metadata().map_or(0, |meta| meta.len()))
}

fn make_copy(
    folder: &PrivateDir,
    path: &Path,
    part: &str,
    write: impl FnOnce(&Path) -> Result<(), TransactionFailure>,
) -> Result<(), TransactionFailure> {
    drop(folder.create_new(part).map_err(|error| refusal_error(path, error))?);
    write(&path.join(part))
}

/// Copies the database into an empty file. SQLite treats the empty file as new, flushes it like the database, and keeps
/// its mode.
pub(crate) fn vacuum_into(c: &Connection, path: &Path) -> Result<(), TransactionFailure> {
    let name = path.to_str().ok_or_else(|| refusal_error(path, "has a name that is not UTF-8"))?;
    c.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// Copies the contents of the database before they are replaced, and returns the path of the copy. Returns `None` when
/// the database is empty, or damaged so that no page can be read.
pub(crate) fn keep_replaced(
    c: &mut Connection,
    place: &DatabasePlace,
    now: Millis,
) -> Result<Option<PathBuf>, TransactionFailure> {
    let kept = open::read_header(c).and_then(|seen| {
        if seen.is_empty {
            return Ok(None);
        }
        keep_apart(place, now, "replaced", |part| vacuum_into(c, part)).map(Some)
    });
    kept.or_else(|failure| if failure.is_damage() { keep_damaged(c, place, now) } else { Err(failure) })
}

/// Copies the bytes of a damaged database, because other programs may still be able to read some of them.
///
/// SQLite reads the bytes: closing another descriptor of the file would drop SQLite's locks.
fn keep_damaged(c: &mut Connection, place: &DatabasePlace, now: Millis) -> Result<Option<PathBuf>, TransactionFailure> {
    // Without this setting, every statement fails when the schema is damaged.
    let _ = c.pragma_update(None, "writable_schema", true);
    // SQLite finds no pages in a file that is not a database.
    let Ok(bytes) = c.serialize("main") else { return Ok(None) };
    let path = place.folder.join(FOLDER);
    let write = |part: &Path| std::fs::write(part, &*bytes).map_err(|error| refusal_error(&path, error).into());
    keep_apart(place, now, "damaged", write).map(Some)
}

pub(crate) fn refusal_error(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("A backup in {} cannot be made ({why}); make it writable.", path.display()))
}

/// A copy of a day, or a copy before a migration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct BackupFile {
    /// The number of the copy in the order in which copies were made; 0 for copies from earlier versions of Nudge.
    number: u64,
    /// The time at which the day of the copy begins.
    date: Millis,
    /// The version of the schema before the migration; `None` for a copy of a day.
    version: Option<u32>,
    name: String,
}

impl BackupFile {
    fn parse(place: &DatabasePlace, name: String) -> Option<Self> {
        let rest = name.strip_prefix(place.name)?.strip_prefix('-')?.strip_suffix(".db")?;
        let (date, rest) = rest.split_at_checked(DATE_BYTES)?;
        let (mut number, mut version) = (0, None);
        for part in rest.split('.').skip(1) {
            match part.strip_prefix('v') {
                Some(part) if version.is_none() => version = Some(part.parse().ok()?),
                None if number == 0 && version.is_none() => number = part.parse().ok().filter(|number| *number > 0)?,
                _ => return None,
            }
        }
        let is_date_alone = rest.is_empty() || rest.starts_with('.');
        Some(Self { number, date: parse_day(date).filter(|_| is_date_alone)?, version, name })
    }
}

/// Returns the time at which the day of a date begins; `None` when the text is no date.
fn parse_day(date: &str) -> Option<Millis> {
    rfc3339::parse(&format!("{date}T00:00:00Z"))
}

/// Lists the copies, oldest first. Ignores other files in the folder.
fn list_copies(place: &DatabasePlace) -> Vec<BackupFile> {
    let path = place.folder.join(FOLDER);
    let Ok(folder) = PrivateDir::open(&path, false) else { return Vec::new() };
    let is_ours = |copy: &BackupFile| matches!(folder.look_up(&copy.name), Ok(FileKind::Ours { .. }));
    let mut copies: Vec<_> =
        list_names(&path).filter_map(|name| BackupFile::parse(place, name)).filter(is_ours).collect();
    copies.sort();
    copies
}

fn list_names(path: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

pub(crate) fn unique_suffix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: fn() -> DatabasePlace = || DatabasePlace { folder: PathBuf::new(), name: "notes" };

    /// Makes a copy for each of these days, and returns the dates of the copies that are kept.
    fn kept_after(days: &[&str]) -> Vec<String> {
        let mut copies: Vec<BackupFile> = Vec::new();
        for date in days {
            let number = copies.last().map_or(0, |copy| copy.number) + 1;
            copies.extend(BackupFile::parse(&PLACE(), format!("notes-{date}.{number}.db")));
            let removed = find_superfluous(copies.clone());
            assert!(!removed.iter().any(|copy| copy.number == number), "the one just made");
            copies.retain(|copy| !removed.contains(copy));
        }
        copies.iter().map(|copy| copy.name["notes-".len()..][..DATE_BYTES].to_owned()).collect()
    }

    #[test]
    fn dates_that_jump_push_out_nothing_from_before() {
        let days = ["2026-11-20", "2026-11-21", "2026-11-22"];
        let ahead = ["2036-01-01", "2036-01-02", "2036-01-03"];
        let later = ["2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26"];
        let is = |days: &[&[&str]], kept: &[&str]| assert_eq!(kept_after(&days.concat()), kept, "{days:?}");
        is(&[&days, &later], &later[1..]);
        is(&[&days, &ahead[..1]], &[days[2], ahead[0]]);
        is(&[&days, &ahead], &[days[2], ahead[0], ahead[1], ahead[2]]);
        is(&[&days, &ahead, &later[..1]], &[days[2], ahead[2], later[0]]);
        is(&[&days, &ahead, &later], &[ahead[2], later[1], later[2], later[3]]);
        let behind = ["2000-01-01", "2000-01-02", "2000-01-03"];
        is(&[&days, &behind], &[days[2], behind[0], behind[1], behind[2]]);
        is(&[&days, &behind, &later], &[behind[2], later[1], later[2], later[3]]);
        is(&[&days, &ahead, &behind], &[days[2], ahead[2], behind[0], behind[1], behind[2]]);
        is(&[&days, &ahead, &behind, &later[..2]], &[days[2], ahead[2], behind[2], later[0], later[1]]);
    }

    #[test]
    fn names_say_what_a_copy_is() {
        let read = |name: &str| {
            let copy = BackupFile::parse(&PLACE(), name.to_owned())?;
            Some((copy.number, rfc3339::format_time(copy.date)[..DATE_BYTES].to_owned(), copy.version))
        };
        let on = |number: u64, version: Option<u32>| Some((number, "2026-11-20".to_owned(), version));
        assert_eq!(read("notes-2026-11-20.17.db"), on(17, None));
        assert_eq!(read("notes-2026-11-20.17.v4.db"), on(17, Some(4)));
        assert_eq!(read("notes-2026-11-20.db"), on(0, None), "of an earlier version");
        assert_eq!(read("notes-2026-11-20.v4.db"), on(0, Some(4)));
        for other in [
            "notes-2026-11-20T12-00-00-replaced.db",
            "notes-2026-11-20.0.db",
            "notes-2026-11-20.v4.17.db",
            "notes-2026-11-20.1.2.db",
            "notes-2026-11-20.vx.db",
            "notes-2026-13-20.db",
            "notes-2026-11-20.db.txt",
            "other-2026-11-20.db",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
