//! What `nudge init` has changed, so that `--undo` can bring back every byte.
//!
//! The files hold what they held before, and that may be private: the record is the user's alone (0600) and goes
//! with the undo.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nudge::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// One change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// For whom, as `nudge init` calls it.
    pub client: String,
    pub path: PathBuf,
    /// `None`: there was none.
    pub before: Option<String>,
    pub after: String,
}

/// Every change that has not been undone, in the order in which they were made.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    pub changes: Vec<Change>,
    #[serde(skip)]
    path: PathBuf,
}

impl Record {
    /// Reads the record of a user.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Unavailable, format!("Cannot read {}: {why}; move it away.", path.display()))
        };
        let mut record = match fs::read(path) {
            Ok(text) => serde_json::from_slice::<Self>(&text).map_err(|error| failed(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(failed(&error)),
        };
        path.clone_into(&mut record.path);
        Ok(record)
    }

    /// Writes it; an empty one is removed.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it cannot be written.
    pub fn save(&self) -> Result<()> {
        if self.changes.is_empty() {
            remove(&self.path)?;
            // Its folder was made for it; where something else is in it, it stays.
            let _ = self.path.parent().map(fs::remove_dir);
            return Ok(());
        }
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        replace(&self.path, &text, true)
    }
}

/// Writes a file in one step, through a link to where it really is; its permissions stay.
///
/// # Errors
/// `E_UNAVAILABLE`; the file is as it was.
pub fn write(path: &Path, text: &str) -> Result<()> {
    replace(path, text, false)
}

/// Removes a file, if it is there.
///
/// # Errors
/// `E_UNAVAILABLE`.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

fn replace(path: &Path, text: &str, private: bool) -> Result<()> {
    let written = || -> io::Result<()> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        // A new one is the user's alone, until it takes over the permissions of the old one.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        match fs::metadata(&path) {
            _ if private => {}
            Ok(old) => file.as_file().set_permissions(old.permissions())?,
            Err(_) => readable(file.as_file())?,
        }
        file.persist(&path).map(drop).map_err(|error| error.error)
    };
    written().map_err(|error| unwritable(path, &error))
}

/// As other programs make their settings.
#[cfg(unix)]
fn readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)]
fn readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let message = format!("Cannot write {}: {error}; make it writable and try again.", path.display());
    Error::new(ErrorKind::Unavailable, message)
}
