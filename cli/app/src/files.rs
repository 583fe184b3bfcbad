//! Writes the user's files and Nudge's own files: atomically, through links, and with their earlier permissions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nudge::{Error, Result};
use nudge_os::beneath::{DiskSync, FileRights, write_atomic};
use nudge_os::dir::{advise_on_disk, create_private};

/// Replaces a file atomically. Follows links and keeps the permissions.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be written; the old file then stays.
pub fn write(path: &Path, text: &str) -> Result<()> {
    replace(path, text, FileAccess::Usual)
}

/// Replaces one of Nudge's own files atomically. Follows links. An existing file keeps its permissions; a new file and
/// its folder are readable only for the user.
///
/// # Errors
/// The errors of [`write()`].
pub fn write_own(path: &Path, text: &str) -> Result<()> {
    replace(path, text, FileAccess::Own)
}

/// Replaces a file atomically. Afterwards only the user can read the file.
///
/// # Errors
/// The errors of [`write()`].
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    replace(path, text, FileAccess::Private)
}

/// Removes a file if it exists. Links to the file stay.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be removed.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(resolve_target(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable_error(path, &error)),
        _ => Ok(()),
    }
}

/// The permissions of a file after it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    /// Keeps the earlier permissions; a new file gets the permissions that the umask allows.
    Usual,
    /// Keeps the earlier permissions; a new file is readable only for the user.
    Own,
    /// Makes the file readable only for the user.
    Private,
}

fn replace(path: &Path, text: &str, access: FileAccess) -> Result<()> {
    let written = || -> io::Result<()> {
        let path = resolve_target(path);
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        if access == FileAccess::Usual { fs::create_dir_all(folder) } else { create_private(folder) }?;
        let old = fs::metadata(&path).ok().filter(|_| access != FileAccess::Private);
        let rights = match (old, access) {
            (Some(old), _) => FileRights::Same(old.permissions()),
            (None, FileAccess::Usual) => FileRights::Usual,
            (None, FileAccess::Own | FileAccess::Private) => FileRights::Private,
        };
        write_atomic(&path, text.as_bytes(), rights, DiskSync::Flushed)
    };
    written().map_err(|error| unwritable_error(path, &error))
}

/// Follows the links of a path, even if the target does not exist yet. A write to the result replaces the target and
/// not the link.
pub fn resolve_target(path: &Path) -> PathBuf {
    /// The longest chain of links, as in the kernel.
    const MAX_LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    // Resolves the folder alone, because the file itself may not exist yet.
    let (folder, name) = (target.parent().and_then(|folder| fs::canonicalize(folder).ok()), target.file_name());
    folder.zip(name).map_or(target.clone(), |(folder, name)| folder.join(name))
}

fn unwritable_error(path: &Path, error: &io::Error) -> Error {
    let advice = advise_on_disk(error).unwrap_or("make it writable");
    let message = format!("Cannot write {}: {error}; {advice} and try again.", path.display());
    Error::unavailable(message)
}
