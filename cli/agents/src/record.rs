//! The record of the changes of `nudge init`. From the record, `--undo` can restore every byte.
//!
//! For each file, the record has only the removed text and its position, because the rest may be private. Only the user
//! can read the record (0600). When all changes are undone, the file of the record is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nudge::{Error, Result};
use nudge_app::alone::ProcessLock;
use nudge_app::config::MAX_BYTES;
use nudge_app::files::{remove_file, resolve_target, write_private};
use nudge_core::text::to_hex;
use nudge_core::wire::pretty_json;
use nudge_os::foreign::{self, LinkPolicy};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::plan::{FileChange, PriorEntries};

/// A recorded change of a file.
#[derive(Serialize, Deserialize)]
pub struct RecordedChange {
    /// The client's name for `nudge init`.
    pub client: String,
    /// The file.
    pub path: PathBuf,
    /// The real path of the file, after all links are followed.
    real: PathBuf,
    /// The project's folder; `None` for the user's settings.
    pub project: Option<PathBuf>,
    /// Nudge's entries before the change.
    pub stood: PriorEntries,
    /// The folders that were created for the file, outermost first.
    made: Vec<PathBuf>,
    /// True when the file existed before the change.
    existed: bool,
    /// The number of unchanged bytes at the start of the file.
    head: usize,
    /// The number of unchanged bytes at the end of the file.
    tail: usize,
    /// The old text between these two parts.
    between: String,
    /// The SHA-256 of the file after the change.
    left: String,
}

/// The state of a file before its change.
pub enum FileBefore {
    /// The file did not exist.
    Absent,
    /// The file had this text.
    Text(String),
}

impl RecordedChange {
    /// Makes the record of the change `file`.
    ///
    /// `made` are the [`missing_folders`] from before the write.
    pub fn new(
        client: &str,
        project: Option<&Path>,
        stood: PriorEntries,
        made: Vec<PathBuf>,
        file: &FileChange,
    ) -> Self {
        let (before, after) = (file.text_before(), file.after.as_str());
        let same = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
            pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
        };
        let head = same(&mut before.chars().zip(after.chars()));
        let (rest, rest_after) = (&before[head..], &after[head..]);
        let tail = same(&mut rest.chars().rev().zip(rest_after.chars().rev()));
        Self {
            client: client.to_owned(),
            path: file.path.clone(),
            real: resolve_target(&file.path),
            project: project.map(Path::to_owned),
            stood,
            made,
            existed: file.before.is_some(),
            head,
            tail,
            between: rest[..rest.len() - tail].to_owned(),
            left: hash_text(after),
        }
    }

    /// Returns the state before this change. Returns `None` when the file has changed since: its text `now` differs
    /// from the text after the change, or the path leads to another file.
    pub fn find_before(&self, now: &str) -> Option<FileBefore> {
        if hash_text(now) != self.left || self.real != resolve_target(&self.path) {
            return None;
        }
        if !self.existed {
            return Some(FileBefore::Absent);
        }
        let tail = now.len().checked_sub(self.tail)?;
        Some(FileBefore::Text(format!("{}{}{}", now.get(..self.head)?, self.between, now.get(tail..)?)))
    }

    /// Removes the folders that were created for the file, if they are empty.
    pub fn remove_folders(&self) {
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Returns the parent folders of a file that do not exist, outermost first.
pub fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut folders: Vec<_> = path.ancestors().skip(1).take_while(missing).map(Path::to_owned).collect();
    folders.reverse();
    folders
}

fn hash_text(text: &str) -> String {
    to_hex(&Sha256::digest(text.as_bytes()))
}

/// All changes that have not been undone.
#[derive(Default, Serialize, Deserialize)]
pub struct ChangeRecord {
    /// The changes in the order in which they were made.
    pub changes: Vec<RecordedChange>,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    alone: Option<ProcessLock>,
}

impl ChangeRecord {
    /// Reads a user's record, and locks out other processes until the value is dropped.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the record cannot be read, or another process has locked it.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |why: &dyn std::fmt::Display| {
            Error::unavailable(format!("Cannot read {}: {why}; move it away.", path.display()))
        };
        let alone = ProcessLock::acquire(&path.with_extension("lock"))?;
        let mut record = match foreign::read(path, LinkPolicy::Refused, MAX_BYTES) {
            Ok(text) => serde_json::from_slice::<Self>(&text).map_err(|error| failed(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(failed(&error)),
        };
        path.clone_into(&mut record.path);
        record.alone = Some(alone);
        Ok(record)
    }

    /// Adds a change and saves the record.
    ///
    /// # Errors
    /// The errors of [`ChangeRecord::save`].
    pub fn add_change(&mut self, change: RecordedChange) -> Result<()> {
        self.changes.push(change);
        self.save()
    }

    /// Removes the last change, which failed, and saves the record.
    ///
    /// # Errors
    /// The errors of [`ChangeRecord::save`].
    pub fn drop_last(&mut self) -> Result<()> {
        self.changes.pop();
        self.save()
    }

    /// Writes the record. If the record is empty, removes the file.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn save(&self) -> Result<()> {
        if self.changes.is_empty() {
            return remove_file(&self.path);
        }
        let text = pretty_json(self);
        write_private(&self.path, &text)
    }
}
