//! What `nudge init` has changed, so that `--undo` can bring back every byte.
//!
//! Of a file it holds what was taken out and where, not the rest: that may be private. It is the user's alone all the
//! same (0600), and goes with the undo.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nudge::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::plan::{File, PriorEntries};

/// One change of one file.
#[derive(Serialize, Deserialize)]
pub struct Change {
    /// For whom, as `nudge init` calls it.
    pub client: String,
    pub path: PathBuf,
    /// The project that it belongs to, if it is not the user's.
    pub project: Option<PathBuf>,
    /// What of ours stood there before.
    pub stood: PriorEntries,
    /// Folders that were made for it, the outer first.
    made: Vec<PathBuf>,
    /// Whether there was a file.
    existed: bool,
    /// Bytes at the start and at the end that stayed, and what was between them.
    head: usize,
    tail: usize,
    between: String,
    /// SHA-256 of the file as it was left.
    left: String,
}

/// What a file was before a change.
pub enum FileBefore {
    /// Not there.
    Absent,
    /// This.
    Text(String),
}

impl Change {
    /// Notes what `file` is going to be.
    ///
    /// `made`: [`missing_folders`], as they were before it was written.
    pub fn new(client: &str, project: Option<&Path>, stood: PriorEntries, made: Vec<PathBuf>, file: &File) -> Self {
        let (before, after) = (file.before.as_deref().unwrap_or_default(), file.after.as_str());
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
        };
        let head = same(&mut before.chars().zip(after.chars()));
        let (rest, rest_after) = (&before[head..], &after[head..]);
        let tail = same(&mut rest.chars().rev().zip(rest_after.chars().rev()));
        Self {
            client: client.to_owned(),
            path: file.path.clone(),
            project: project.map(Path::to_owned),
            stood,
            made,
            existed: file.before.is_some(),
            head,
            tail,
            between: rest[..rest.len() - tail].to_owned(),
            left: digest(after),
        }
    }

    /// What the file was before this change, if `now` is what it was left as.
    pub fn before(&self, now: &str) -> Option<FileBefore> {
        if digest(now) != self.left {
            return None;
        }
        if !self.existed {
            return Some(FileBefore::Absent);
        }
        let tail = now.len().checked_sub(self.tail)?;
        Some(FileBefore::Text(format!("{}{}{}", now.get(..self.head)?, self.between, now.get(tail..)?)))
    }

    /// Removes the folders that were made for it, where nothing else is in them.
    pub fn remove_folders(&self) {
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The folders that a file would need and that are not there, the outer first.
pub fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut folders: Vec<_> = path.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
    folders.reverse();
    folders
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Every change that has not been undone, in the order in which they were made.
#[derive(Default, Serialize, Deserialize)]
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

    /// Notes a change.
    ///
    /// # Errors
    /// As [`Record::save`].
    pub fn add(&mut self, change: Change) -> Result<()> {
        self.changes.push(change);
        self.save()
    }

    /// Forgets the last change, which was not made.
    ///
    /// # Errors
    /// As [`Record::save`].
    pub fn drop_last(&mut self) -> Result<()> {
        self.changes.pop();
        self.save()
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
        let path = target(path);
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

/// Where a path leads to, also when nothing is there yet.
fn target(path: &Path) -> PathBuf {
    let linked = || path.parent().zip(fs::read_link(path).ok()).map(|(folder, target)| folder.join(target));
    fs::canonicalize(path).ok().or_else(linked).unwrap_or_else(|| path.to_owned())
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
