//! This user's trust in the `.nudge.json` of clones, and the hints that each clone has loaded from it. The file is
//! `trust.json` beside the kept hints.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use nudge::{Error, Result};
use nudge_core::foreign::{self, LinkPolicy};
use nudge_core::wire::pretty_json;
use serde::{Deserialize, Serialize};

use super::form::SharedName;
use crate::alone::ProcessLock;
use crate::files;
use crate::settings;

const STATE: &str = "trust.json";
const LOCK: &str = "trust.lock";
const MAX_STATE_BYTES: u64 = 64 << 20;

/// This user's trust in the files of clones.
#[derive(Default, Serialize, Deserialize)]
pub struct TrustFile {
    #[serde(rename = "clones", default)]
    by_top: BTreeMap<String, CloneTrust>,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    _alone: Option<ProcessLock>,
}

/// The trust in the file of one clone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloneTrust {
    /// The trusted text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<String>,
    /// The SHA-256 of the last text about which the user got the notice that it is not loaded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) mentioned: String,
    /// The text that was last loaded or saved. A hint that differs from it was changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<String>,
    /// The session that has loaded the base.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) session: String,
    /// The hints of the base that the session had after the load. If one of them is missing now, it was deleted
    /// since.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) held: BTreeSet<SharedName>,
    /// The hints of the base that were deleted in this clone.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) deleted: BTreeSet<SharedName>,
}

impl CloneTrust {
    /// Returns true when a session has loaded the trusted text.
    pub(super) fn is_loaded(&self, session: &str) -> bool {
        self.session == session && self.base == self.trusted
    }
}

impl TrustFile {
    fn find_folder() -> Result<PathBuf> {
        settings::state_dir().ok_or_else(|| Error::invalid("Set HOME to your folder."))
    }

    /// Reads the trust without a lock, for callers that do not change it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` for a file that cannot be read.
    pub fn read_unlocked() -> Result<Self> {
        let path = Self::find_folder()?.join(STATE);
        let unreadable = |why: &dyn std::fmt::Display| {
            Error::unavailable(format!("Cannot read {}: {why}; move it away.", path.display()))
        };
        let trust: Self = match foreign::read(&path, LinkPolicy::Refused, MAX_STATE_BYTES) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| unreadable(&error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(unreadable(&error)),
        };
        Ok(Self { path, ..trust })
    }

    /// Reads the trust and holds its lock as long as the value lives.
    ///
    /// # Errors
    /// As [`read_unlocked`](Self::read_unlocked), and when another process holds the lock for long.
    pub fn open() -> Result<Self> {
        let alone = ProcessLock::acquire(&Self::find_folder()?.join(LOCK))?;
        Ok(Self { _alone: Some(alone), ..Self::read_unlocked()? })
    }

    /// Returns the trust in a clone's file.
    pub fn get(&self, top: &Path) -> CloneTrust {
        top.to_str().and_then(|name| self.by_top.get(name)).cloned().unwrap_or_default()
    }

    /// Returns true when the clone has a trusted text.
    pub fn is_trusted(&self, top: &Path) -> bool {
        top.to_str().and_then(|name| self.by_top.get(name)).is_some_and(|known| known.trusted.is_some())
    }

    /// Sets the trusted text of a clone, or removes it.
    ///
    /// # Errors
    /// `E_INVALID` for a folder whose name is not UTF-8; `E_UNAVAILABLE` when the file cannot be written.
    pub fn set(&mut self, top: &Path, text: Option<String>) -> Result<()> {
        let known = match text {
            Some(text) => CloneTrust { trusted: Some(text), ..self.get(top) },
            None => CloneTrust::default(),
        };
        self.put_known(top, known)
    }

    pub(super) fn put_known(&mut self, top: &Path, known: CloneTrust) -> Result<()> {
        let name = top.to_str().ok_or_else(|| Error::invalid("The name of this folder is not UTF-8; rename it."))?;
        if known == CloneTrust::default() {
            self.by_top.remove(name);
        } else {
            self.by_top.insert(name.to_owned(), known);
        }
        if self.by_top.is_empty() {
            return files::remove_file(&self.path);
        }
        files::write_private(&self.path, &pretty_json(self))
    }
}
