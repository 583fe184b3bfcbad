//! Loads the trusted text of a clone into the running session: stores the hints that are new or changed since the last
//! load, and deletes the hints that the file no longer has.

use std::collections::BTreeSet;
use std::path::Path;

use nudge::{Error, ErrorKind, Result};
use nudge_core::wire::object_members;
use serde_json::{Map, json};

use super::form::{FileHints, SessionHint, SessionHints, SharedName, read_forms};
use super::trust::{CloneTrust, TrustFile};
use super::{CommittedFile, CommittedHint};
use crate::reach::SET_HINT;
use crate::seed::Call;

/// The outcome of loading the file.
#[derive(Debug, Default)]
pub struct LoadedHints {
    /// The number of hints that are new in the session or changed by the file.
    pub set: usize,
    /// The number of hints that were already in the session and stay.
    pub there: usize,
    /// The number of hints that were deleted because the file no longer has them.
    pub deleted: usize,
    /// The names of hints that both the file and the session have changed. The session's hints stay.
    pub other: Vec<String>,
    /// Hints that the server refused, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// Loads the trusted text into the running session. Returns `None` if no text is trusted, or if the session has loaded
/// it.
///
/// # Errors
/// The errors of the calls and of [`TrustFile`].
pub fn load_trusted(top: &Path, repo: &str, call: Call<'_>) -> Result<Option<LoadedHints>> {
    let known = TrustFile::read_unlocked()?.get(top);
    if known.trusted.is_none() || !super::is_there(top) {
        return Ok(None);
    }
    let session = find_session(call)?;
    if known.is_loaded(&session) {
        return Ok(None);
    }
    let mut trust = TrustFile::open()?;
    // Reads the trust again, because another process may have loaded the text before this one got the lock.
    let known = trust.get(top);
    let Some(trusted) = known.trusted.clone().filter(|_| !known.is_loaded(&session)) else { return Ok(None) };
    let theirs = read_forms(&CommittedFile::from_text(trusted.clone())?);
    let base = known.read_base()?;
    let components = theirs.keys().chain(base.keys()).map(|name| name.component.clone()).collect();
    let here = SessionHints::read(&components, repo, call)?;
    let mut merge = FileMerge { here, base, known, is_same_session: false, loaded: LoadedHints::default(), repo, call };
    merge.is_same_session = merge.known.session == session;
    let mut held = BTreeSet::new();
    for (name, (entry, form)) in &theirs {
        if merge.take_hint(name, entry, form)? && !entry.is_timed() {
            held.insert(name.clone());
        }
    }
    merge.delete_missing(&theirs)?;
    let FileMerge { known, loaded, .. } = merge;
    trust.put_known(top, CloneTrust { base: Some(trusted), session, held, ..known })?;
    Ok(Some(loaded))
}

/// Returns the id of the running session.
///
/// # Errors
/// The errors of the call; `E_UNAVAILABLE` when the answer has no id.
pub fn find_session(call: Call<'_>) -> Result<String> {
    let status = call("nudge.status", &Map::new())?;
    let unnamed = || Error::unavailable("The server does not name its session; update it.");
    Ok(status["session_id"].as_str().ok_or_else(unnamed)?.to_owned())
}

impl CloneTrust {
    /// Reads the hints of the text that was last loaded or saved.
    pub(super) fn read_base(&self) -> Result<FileHints> {
        let base = self.base.clone().map(CommittedFile::from_text).transpose()?;
        Ok(base.as_ref().map_or_else(FileHints::new, read_forms))
    }
}

/// A merge of a trusted text into the session.
struct FileMerge<'a> {
    here: SessionHints,
    base: FileHints,
    known: CloneTrust,
    /// True when this session has loaded the base. A hint of the base that is missing was then deleted in the session.
    is_same_session: bool,
    loaded: LoadedHints,
    repo: &'a str,
    call: Call<'a>,
}

impl FileMerge<'_> {
    /// Stores a hint of the file in the session. Returns true when the session has the hint afterwards.
    fn take_hint(&mut self, name: &SharedName, entry: &CommittedHint, form: &super::form::WrittenForm) -> Result<bool> {
        let base = self.base.get(name).map(|(_, form)| form);
        let Some(SessionHint { form: ours, version, .. }) = self.here.of_repository.get(name) else {
            if self.here.may_hide(name) {
                self.loaded.there += 1;
                return Ok(true);
            }
            let is_deleted =
                self.known.deleted.contains(name) || (self.is_same_session && self.known.held.contains(name));
            // If the session deleted a hint and the file has changed it, the hint comes back: otherwise the new value
            // would be lost.
            if is_deleted && base == Some(form) {
                self.known.deleted.insert(name.clone());
                return Ok(false);
            }
            self.known.deleted.remove(name);
            return self.set_hint(entry, 0);
        };
        if ours == form {
            self.loaded.there += 1;
        } else if base == Some(ours) {
            return self.set_hint(entry, *version);
        } else {
            self.loaded.there += 1;
            if base != Some(form) {
                self.loaded.other.push(format!("{} {}", name.component, name.key));
            }
        }
        Ok(true)
    }

    fn set_hint(&mut self, entry: &CommittedHint, version: u64) -> Result<bool> {
        match (self.call)(SET_HINT, &entry.to_params(Some(self.repo), version)) {
            Ok(_) => self.loaded.set += 1,
            Err(error) if error.kind() == ErrorKind::Conflict => self.loaded.there += 1,
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => {
                self.loaded.refused.push((format!("{} {}", entry.component, entry.key), error.to_string()));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes the hints that the file no longer has, except the hints that the session changed.
    fn delete_missing(&mut self, theirs: &FileHints) -> Result<()> {
        for (name, (_, form)) in self.base.iter().filter(|(name, _)| !theirs.contains_key(name)) {
            self.known.deleted.remove(name);
            let Some(ours) = self.here.of_repository.get(name).filter(|ours| ours.form == *form) else { continue };
            let params = json!({"component": name.component, "key": name.key, "variant": ours.variant});
            match (self.call)("nudge.delete_hint", &object_members(params)) {
                Ok(_) => self.loaded.deleted += 1,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
