//! This user's trust in the `.nudge.json` of clones, and the hints that each clone has loaded from it. The state is in
//! `trust.json`, in the folder of the kept hints.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use nudge::{Error, Result};
use nudge_core::wire::pretty_json;
use nudge_os::foreign::{self, LinkPolicy};
use serde::{Deserialize, Serialize};

use super::form::SharedName;
use crate::alone::ProcessLock;
use crate::files;
use crate::settings;

const STATE: &str = "trust.json";
const LOCK: &str = "trust.lock";
const MAX_STATE_BYTES: u64 = 64 << 20;

/// This user's trust in the `.nudge.json` of every clone.
#[derive(Default, Serialize, Deserialize)]
pub struct TrustFile {
    #[serde(rename = "clones", default)]
    by_top: BTreeMap<String, CloneTrust>,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    _alone: Option<ProcessLock>,
}

/// The trust in the `.nudge.json` of one clone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloneTrust {
    /// The text that the user trusts; `None` if the user trusts none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<String>,
    /// The SHA-256 of the text for which the user last got the notice that it is not loaded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) mentioned: String,
    /// The text that was last loaded or saved. A hint that differs from this text was changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<String>,
    /// The session that has loaded the base.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) session: String,
    /// The hints of the base that the session had after the load. If one of them is missing now, the session has
    /// deleted it.
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

    /// Reads the trust, and holds its lock until the value is dropped.
    ///
    /// # Errors
    /// The errors of [`read_unlocked`](Self::read_unlocked), and an error when another process holds the lock for long.
    pub fn open() -> Result<Self> {
        let alone = ProcessLock::acquire(&Self::find_folder()?.join(LOCK))?;
        Ok(Self { _alone: Some(alone), ..Self::read_unlocked()? })
    }

    /// Returns the trust in a clone's file. A clone that is not listed has no trusted text.
    pub fn get(&self, top: &Path) -> CloneTrust {
        top.to_str().and_then(|name| self.by_top.get(name)).cloned().unwrap_or_default()
    }

    /// Returns true when the clone has a trusted text.
    pub fn is_trusted(&self, top: &Path) -> bool {
        top.to_str().and_then(|name| self.by_top.get(name)).is_some_and(|known| known.trusted.is_some())
    }

    /// Sets the trusted text of a clone; `None` removes the trust.
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

    /// Lists the names of all hints that clones have or had from their files.
    pub fn list_names(&self) -> impl Iterator<Item = &SharedName> {
        self.by_top.values().flat_map(|known| known.held.iter().chain(&known.deleted))
    }

    /// Returns true when a session has loaded the file of at least one clone.
    pub fn is_in_session(&self, session: &str) -> bool {
        self.by_top.values().any(|known| known.session == session)
    }

    /// Returns true when the session has lost a hint from the file, or has a hint that counts as deleted.
    pub fn has_news(&self, session: &str, is_seen: &dyn Fn(&SharedName) -> bool) -> bool {
        let has_news = |known: &CloneTrust| !known.held.iter().all(is_seen) || known.deleted.iter().any(is_seen);
        self.by_top.values().filter(|known| known.session == session).any(has_news)
    }

    /// Notes which of the `known` hints were deleted in the session, and which exist again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn note_deleted(
        &mut self,
        session: &str,
        is_known: &dyn Fn(&SharedName) -> bool,
        is_seen: &dyn Fn(&SharedName) -> bool,
    ) -> Result<()> {
        for known in self.by_top.values_mut().filter(|known| known.session == session) {
            let all: Vec<_> = known.held.iter().chain(&known.deleted).filter(|name| is_known(name)).cloned().collect();
            for name in all {
                let (from, into) = if is_seen(&name) {
                    (&mut known.deleted, &mut known.held)
                } else {
                    (&mut known.held, &mut known.deleted)
                };
                from.remove(&name);
                into.insert(name);
            }
        }
        self.save()
    }

    /// Makes the session load the files again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn forget_session(&mut self, session: &str) -> Result<()> {
        for known in self.by_top.values_mut().filter(|known| known.session == session) {
            known.session.clear();
        }
        self.save()
    }

    pub(super) fn put_known(&mut self, top: &Path, known: CloneTrust) -> Result<()> {
        let name = top.to_str().ok_or_else(|| Error::invalid("The name of this folder is not UTF-8; rename it."))?;
        if known == CloneTrust::default() {
            self.by_top.remove(name);
        } else {
            self.by_top.insert(name.to_owned(), known);
        }
        self.save()
    }

    fn save(&self) -> Result<()> {
        if self.by_top.is_empty() {
            return files::remove_file(&self.path);
        }
        files::write_private(&self.path, &pretty_json(self))
    }
}
