//! Hints that follow files: the seeds of clones, and the hints of their `.nudge.json`. Each session reads the files
//! again, so `hints.db` does not contain these hints, with two exceptions: hints with counts, and hints that a user
//! changed. The names of hints that a user deleted are also noted.

use std::collections::{BTreeMap, HashSet};

use nudge::Result;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::committed::{self, SharedName, TrustFile};
use crate::seed::{self, SeededClones};

/// How a stored hint relates to the files of a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowedState {
    /// No file of a clone names the hint.
    Independent,
    /// The hint has the content that its file gives.
    Followed {
        /// True when the hint has counts. They would be lost if only the file were read again.
        used: bool,
    },
    /// The hint came from a file, and a user changed it.
    Changed,
}

/// The hints of a session that follow files.
pub struct FollowedHints<'a> {
    session: &'a str,
    seeds: SeededClones,
    trust: TrustFile,
    known: BTreeMap<String, BTreeMap<String, KnownName>>,
    seen_seeds: HashSet<(String, String)>,
    seen_shared: HashSet<SharedName>,
}

/// A component and key that files name.
#[derive(Default)]
struct KnownName {
    /// The content hashes (marks) of the seeds of this name, one for each clone.
    marks: Vec<String>,
    /// True when a `.nudge.json` has or had the name.
    is_shared: bool,
}

/// The fields of an exported hint on which its relation to a file depends.
#[derive(Deserialize)]
struct JudgedHint {
    value: Value,
    #[serde(default)]
    meta: Value,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    use_count: u64,
    #[serde(default)]
    failure_count: u64,
}

impl<'a> FollowedHints<'a> {
    /// Reads the names of the hints that follow files. Call this before you read the session's hints: if a name from
    /// the files then has no hint, the hint was deleted. A file that cannot be read counts as empty.
    pub fn read(session: &'a str) -> Self {
        let seeds = SeededClones::read_unlocked().unwrap_or_default();
        let trust = TrustFile::read_unlocked().unwrap_or_default();
        let mut known = BTreeMap::<String, BTreeMap<String, KnownName>>::new();
        for (component, key, mark) in seeds.list_marks() {
            let keys = known.entry(component.to_owned()).or_default();
            keys.entry(key.to_owned()).or_default().marks.push(mark.to_owned());
        }
        for SharedName { component, key, .. } in trust.list_names() {
            known.entry(component.clone()).or_default().entry(key.clone()).or_default().is_shared = true;
        }
        Self { session, seeds, trust, known, seen_seeds: HashSet::new(), seen_shared: HashSet::new() }
    }

    /// Judges an exported hint of the session, and notes that the hint exists.
    pub fn see_hint(&mut self, component: &str, key: &str, hint: &RawValue) -> FollowedState {
        let Some(KnownName { marks, is_shared }) = self.known.get(component).and_then(|keys| keys.get(key)) else {
            return FollowedState::Independent;
        };
        let Ok(JudgedHint { value, meta, version, use_count, failure_count }) = serde_json::from_str(hint.get()) else {
            return FollowedState::Independent;
        };
        if !marks.is_empty() {
            self.seen_seeds.insert((component.to_owned(), key.to_owned()));
        }
        if *is_shared && let Some(name) = committed::name_hint(component, key, &meta["scope"]) {
            self.seen_shared.insert(name);
        }
        let used = use_count > 0 || failure_count > 0;
        let added_by = meta["added_by"].as_str().unwrap_or_default();
        if added_by == seed::ADDED_BY && !marks.is_empty() {
            let mark = seed::hash_seed(&value, &meta);
            let is_unchanged = mark.is_some_and(|mark| marks.contains(&mark));
            return if is_unchanged { FollowedState::Followed { used } } else { FollowedState::Changed };
        }
        if added_by == committed::ADDED_BY && *is_shared {
            return FollowedState::Followed { used: used || version > 1 };
        }
        FollowedState::Independent
    }

    fn find_name(&self, component: &str, key: &str) -> Option<&KnownName> {
        self.known.get(component)?.get(key)
    }

    /// Notes which hints were deleted in the session, and which exist again. Call this after
    /// [`see_hint`](Self::see_hint) has seen all hints.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when a file cannot be written.
    pub fn note_deleted(&self) -> Result<()> {
        let seen_seed = |component: &str, key: &str| self.seen_seeds.contains(&(component.into(), key.into()));
        let seen_shared = |name: &SharedName| self.seen_shared.contains(name);
        if self.seeds.has_news(self.session, &seen_seed) {
            // Only names that were read at the start count: a hint that came later may not have been seen.
            let known =
                |component: &str, key: &str| self.find_name(component, key).is_some_and(|name| !name.marks.is_empty());
            SeededClones::open()?.note_deleted(self.session, &known, &seen_seed)?;
        }
        if self.trust.has_news(self.session, &seen_shared) {
            let known =
                |name: &SharedName| self.find_name(&name.component, &name.key).is_some_and(|name| name.is_shared);
            TrustFile::open()?.note_deleted(self.session, &known, &seen_shared)?;
        }
        Ok(())
    }
}

/// Makes the session read the files again, because it may have lost hints with its journal. Without this, the lost
/// hints would count as deleted.
///
/// # Errors
/// `E_UNAVAILABLE` when a file cannot be written.
pub fn forget_session(session: &str) -> Result<()> {
    if SeededClones::read_unlocked()?.is_in_session(session) {
        SeededClones::open()?.forget_session(session)?;
    }
    if TrustFile::read_unlocked()?.is_in_session(session) {
        TrustFile::open()?.forget_session(session)?;
    }
    Ok(())
}
