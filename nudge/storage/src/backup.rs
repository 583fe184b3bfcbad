//! Copies of a database, each whole and in one file: made by `VACUUM INTO`, which also shows whether every page can be
//! read, so that a damaged file never takes the place of a good copy.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::dir::{Dir, FileKind};
use nudge_core::error::{Error, Result};
use rusqlite::Connection;

use crate::fault::{Failure, Place};
use crate::open;

/// The folder of the copies, beside the database.
pub(crate) const FOLDER: &str = "backups";
/// The end of the name of a copy that is not whole yet.
pub(crate) const PART: &str = ".part";
/// How many are kept.
const KEPT: usize = 3;
/// Bytes of a date such as `2026-11-23`.
const DATE_BYTES: usize = 10;
/// Bytes of a time such as `2026-11-23T12:00:00`.
const SECOND_BYTES: usize = 19;

/// The date of a copy, in UTC.
pub(crate) fn date(now: Millis) -> String {
    rfc3339::text(now)[..DATE_BYTES].to_owned()
}

/// Whether there is a copy of that day.
pub(crate) fn is_there(place: &Place, date: &str) -> bool {
    place.folder.join(FOLDER).join(name(place, date, None)).is_file()
}

/// The newest copy, if there is any.
pub(crate) fn newest(place: &Place) -> Option<PathBuf> {
    let name = list(place).pop()?;
    Some(place.folder.join(FOLDER).join(name))
}

/// Makes the copy of a day, or the one before the schema changes from `version`, and removes the oldest ones.
pub(crate) fn keep(c: &Connection, place: &Place, date: &str, version: Option<i64>) -> Result<(), Failure> {
    let name = name(place, date, version);
    put(place, &name, |part| vacuum_into(c, part))?;
    let path = place.folder.join(FOLDER);
    let Ok(folder) = Dir::open(&path, false) else { return Ok(()) };
    let copies = list(place);
    let old = copies.iter().take(copies.len().saturating_sub(KEPT)).cloned();
    // Left by a process that died; another may be writing that of today.
    let parts = names(&path).filter(|part| {
        let whole = part.strip_prefix('.').and_then(|part| part.strip_suffix(PART)).unwrap_or_default();
        whole.starts_with(&format!("{}-", place.name)) && !whole.starts_with(&format!("{}-{date}", place.name))
    });
    for name in old.chain(parts) {
        // One too many is no reason to refuse a change.
        let _ = folder.remove(&name);
    }
    Ok(())
}

/// Keeps what is about to be replaced, which `write` fills, under a name that no other copy has: it may be all there is
/// of it. Its path.
fn keep_apart(
    place: &Place,
    now: Millis,
    what: &str,
    write: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<PathBuf, Failure> {
    let path = place.folder.join(FOLDER);
    let folder = Dir::open(&path, true).map_err(|unfit| refusal(&path, unfit))?;
    // No colon: not every file system takes it in a name.
    let time = rfc3339::text(now)[..SECOND_BYTES].replace(':', "-");
    let mut names = (1..).map(|at: u32| {
        let again = if at == 1 { String::new() } else { format!(".{at}") };
        format!("{}-{time}-{what}{again}.db", place.name)
    });
    // The empty file holds the name until what belongs there is whole.
    let name = loop {
        let Some(name) = names.next() else { return Err(refusal(&path, "has no name left").into()) };
        match folder.create_new(&name) {
            Ok(_) => break name,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refusal(&path, error).into()),
        }
    };
    let kept = put(place, &name, write);
    if kept.is_err() {
        let _ = folder.remove(&name);
    }
    kept.map(|()| path.join(name))
}

/// Puts a copy of this name, which `write` fills, in the place of one that has it.
fn put(place: &Place, name: &str, write: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let path = place.folder.join(FOLDER);
    let folder = Dir::open(&path, true).map_err(|unfit| refusal(&path, unfit))?;
    // Others may be at the same copy: each writes a file of its own, and the last one stays.
    let part = format!(".{name}.{}{PART}", unique());
    let made = make(&folder, &path, &part, write).and_then(|()| {
        let renamed = folder.rename(&part, name);
        renamed.map_err(|error| refusal(&path, error).into())
    });
    if made.is_err() {
        // The rest of a copy that failed is of no use.
        let _ = folder.remove(&part);
    }
    made
}

/// Copies the database into a new file, of this user alone.
pub(crate) fn copy(c: &Connection, place: &Place, to: &Path) -> Result<u64, Failure> {
    let to = std::path::absolute(to).map_err(|error| refusal(to, error))?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // It is another file than the database: that exists.
    match options.open(&to) {
        Ok(file) => drop(file),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let message = format!("The file {} is there already; give another name.", to.display());
            return Err(Error::invalid(message).into());
        }
        Err(error) => return Err(refusal(&to, error).into()),
    }
    if let Err(failure) = vacuum_into(c, &to) {
        let _ = std::fs::remove_file(&to);
        return Err(Error::unavailable(format!(
            "The backup {} cannot be written: {}",
            to.display(),
            place.refuse(failure).message()
        ))
        .into());
    }
    Ok(to.metadata().map_or(0, |meta| meta.len()))
}

fn make(
    folder: &Dir,
    path: &Path,
    part: &str,
    write: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    drop(folder.create_new(part).map_err(|error| refusal(path, error))?);
    write(&path.join(part))
}

/// SQLite takes an empty file for a new one, flushes it as it flushes the database, and leaves its mode.
fn vacuum_into(c: &Connection, path: &Path) -> Result<(), Failure> {
    let name = path.to_str().ok_or_else(|| refusal(path, "has a name that is not UTF-8"))?;
    c.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// Copies what is about to be replaced, unless there is nothing; its path.
pub(crate) fn keep_replaced(c: &mut Connection, place: &Place, now: Millis) -> Result<Option<PathBuf>, Failure> {
    let kept = open::look(c).and_then(|seen| {
        if seen.is_empty {
            return Ok(None);
        }
        keep_apart(place, now, "replaced", |part| vacuum_into(c, part)).map(Some)
    });
    kept.or_else(|failure| if failure.is_damage() { keep_damaged(c, place, now) } else { Err(failure) })
}

/// Copies the bytes of a damaged database, of which some may yet be read by other means.
///
/// SQLite is asked for them: another descriptor on the file would give up its locks when it is closed.
fn keep_damaged(c: &mut Connection, place: &Place, now: Millis) -> Result<Option<PathBuf>, Failure> {
    // Else a damaged schema is in the way of everything.
    let _ = c.pragma_update(None, "writable_schema", true);
    // What is no database at all has no pages that could be read.
    let Ok(bytes) = c.serialize("main") else { return Ok(None) };
    let path = place.folder.join(FOLDER);
    let write = |part: &Path| std::fs::write(part, &*bytes).map_err(|error| refusal(&path, error).into());
    keep_apart(place, now, "damaged", write).map(Some)
}

pub(crate) fn refusal(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::unavailable(format!("A backup in {} cannot be made ({why}); make it writable.", path.display()))
}

fn name(place: &Place, date: &str, version: Option<i64>) -> String {
    let version = version.map(|version| format!(".v{version}")).unwrap_or_default();
    format!("{}-{date}{version}.db", place.name)
}

/// The copies, oldest first. What else lies there is somebody's own.
fn list(place: &Place) -> Vec<String> {
    let path = place.folder.join(FOLDER);
    let Ok(folder) = Dir::open(&path, false) else { return Vec::new() };
    let is_copy = |name: &String| is_copy(place, name) && matches!(folder.look(name), Ok(FileKind::Ours { .. }));
    let mut copies: Vec<_> = names(&path).filter(is_copy).collect();
    copies.sort();
    copies
}

fn is_copy(place: &Place, name: &str) -> bool {
    let rest = name.strip_prefix(place.name).and_then(|rest| rest.strip_prefix('-'));
    let Some((date, ending)) = rest.and_then(|rest| rest.split_at_checked(DATE_BYTES)) else { return false };
    let of_a_version = |ending: &str| {
        let version = ending.strip_prefix(".v").and_then(|ending| ending.strip_suffix(".db"));
        version.is_some_and(|version| version.parse::<u32>().is_ok())
    };
    rfc3339::parse(&format!("{date}T00:00:00Z")).is_some() && (ending == ".db" || of_a_version(ending))
}

fn names(path: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
