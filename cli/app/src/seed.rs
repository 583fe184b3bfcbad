//! Seeds: hints made from the commands that a clone's own files name (semantics section 20). `seeds.json`, in the
//! folder of the kept hints, lists the seeded clones. The session stores seeds like any other hints.

mod follow;
mod plan;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge::{Error, ErrorKind, Result};
use nudge_core::wire::{object_members, pretty_json};
use nudge_os::foreign::{self, LinkPolicy};
use nudge_seed::{SeedLimits, SeedManifest, SeedReport};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::alone::ProcessLock;
use crate::context::ContextInference;
use crate::files;
use crate::settings;

use follow::ClonesLook;
pub use plan::hash_seed;
pub use plan::{ADDED_BY, Made, SeedPlan, SeedSource, StoredSeed, WantedSeed};

const FILE: &str = "seeds.json";
const LOCK: &str = "seeds.lock";
const MAX_BYTES: u64 = 16 << 20;
/// The most hints of a component that a refresh reads.
const MAX_HINTS: u64 = 1000;
/// The most folders from a cwd up to the top of its repository.
const MAX_DEPTH: usize = 64;

/// Calls a method by its name, with its params.
pub type Call<'a> = &'a dyn Fn(&str, &Map<String, Value>) -> Result<Value>;

/// A clone with seeds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SeededClone {
    /// The name of the clone's repository.
    pub repo: String,
    /// The files with commands that were read, each with the SHA-256 of its bytes.
    pub manifests: BTreeMap<String, String>,
    /// The hints that were made from these files.
    pub made: Made,
    /// The session that has stored these hints; empty if no session has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    session: String,
    /// True when `nudge init` added the clone; `nudge init --undo` then removes the clone from the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_init: bool,
}

impl SeededClone {
    /// Lists the seeds that a user or an agent changed and whose file now names another command. Each item has
    /// `component/key` and the file. Such a hint no longer follows its file.
    pub fn list_changed(&self) -> impl Iterator<Item = (String, String)> {
        let list_others = |(component, keys): (&String, &BTreeMap<String, SeedSource>)| {
            let others = keys.iter().filter(|(_, source)| source.is_other);
            others.map(|(key, source)| (format!("{component}/{key}"), source.file.clone())).collect::<Vec<_>>()
        };
        self.made.iter().flat_map(list_others)
    }
}

/// This user's clones with seeds, by the absolute path of each clone's top folder.
#[derive(Default, Serialize, Deserialize)]
pub struct SeededClones {
    #[serde(rename = "clones", default)]
    by_top: BTreeMap<String, SeededClone>,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    _alone: Option<ProcessLock>,
}

/// The outcome of [`refresh_clone`].
#[derive(Debug, Default)]
pub struct SeedOutcome {
    /// The report of the library that read the files.
    pub report: SeedReport,
    /// The hints that were made or refreshed.
    pub set: Vec<WantedSeed>,
    /// The number of hints that were removed because their source is gone.
    pub deleted: usize,
    /// All seeds that the files name.
    pub wanted: Vec<WantedSeed>,
    /// Hints that a user or an agent changed or deleted; the refresh left them as they were.
    pub left: Vec<(String, String)>,
    /// Hints that the server refused, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// Returns the top of a folder's repository: the nearest folder, at or above `cwd`, that has a `.git`.
pub fn top_of(cwd: &Path) -> Option<PathBuf> {
    let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    cwd.ancestors().take(MAX_DEPTH).find(has_git).map(Path::to_owned)
}

/// Returns the last part of a repository's name, without `.git`.
pub fn short_name(repo: &str) -> &str {
    let name = repo.trim_end_matches('/').rsplit('/').next().unwrap_or(repo);
    name.strip_suffix(".git").unwrap_or(name)
}

/// Returns the top and the name of the repository of this process's folder.
///
/// # Errors
/// `E_INVALID` outside a repository, and in a repository without a name.
pub fn find_repository() -> Result<(PathBuf, String)> {
    let outside = || Error::invalid("This folder is in no git repository; go into one.");
    let top = nudge_client::process_cwd().and_then(|cwd| top_of(&cwd)).ok_or_else(outside)?;
    let nameless = || Error::invalid("This repository has no name; make a commit, or add a remote.");
    let repo = ContextInference::default().find_repository(&top).ok_or_else(nameless)?;
    Ok((top, repo))
}

fn find_folder() -> Result<PathBuf> {
    settings::state_dir().ok_or_else(|| Error::invalid("Set HOME to your folder."))
}

impl SeededClones {
    /// Reads the list of seeded clones without a lock, for callers that do not change it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` for a file that cannot be read.
    pub fn read_unlocked() -> Result<Self> {
        Self::read(find_folder()?.join(FILE))
    }

    /// Reads the list, and holds its lock until the value is dropped.
    ///
    /// # Errors
    /// The errors of [`read_unlocked`](Self::read_unlocked), and an error when another process holds the lock for long.
    pub fn open() -> Result<Self> {
        let folder = find_folder()?;
        let alone = ProcessLock::acquire(&folder.join(LOCK))?;
        Ok(Self { _alone: Some(alone), ..Self::read(folder.join(FILE))? })
    }

    fn read(path: PathBuf) -> Result<Self> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Error::unavailable(format!("Cannot read {}: {why}; move it away and seed again.", path.display()))
        };
        match foreign::read(&path, LinkPolicy::Refused, MAX_BYTES) {
            Ok(text) => {
                let clones: Self = serde_json::from_slice(&text).map_err(|error| unreadable(&error))?;
                Ok(Self { path, ..clones })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { path, ..Self::default() }),
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// Returns true when `nudge init` added any of the clones.
    pub fn is_by_init(&self) -> bool {
        self.by_top.values().any(|clone| clone.by_init)
    }

    /// Returns the clone with this top folder, if it is seeded.
    pub fn get(&self, top: &Path) -> Option<&SeededClone> {
        self.by_top.get(top.to_str()?)
    }

    /// Adds a clone to the list. The next [`refresh_clone`] reads the clone's files.
    ///
    /// # Errors
    /// `E_INVALID` for a folder whose name is not UTF-8; `E_UNAVAILABLE` when the file cannot be written.
    pub fn add_clone(&mut self, top: &Path, repo: &str, by_init: bool) -> Result<()> {
        let name = top.to_str().ok_or_else(|| Error::invalid("The name of this folder is not UTF-8; rename it."))?;
        let clone = self.by_top.entry(name.to_owned()).or_default();
        repo.clone_into(&mut clone.repo);
        clone.by_init = by_init;
        self.save()
    }

    /// Removes a clone from the list. Returns the removed item, if there was one.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn remove_clone(&mut self, top: &Path) -> Result<Option<SeededClone>> {
        let gone = top.to_str().and_then(|name| self.by_top.remove(name));
        self.save()?;
        Ok(gone)
    }

    /// Removes the clones that `nudge init` added. Returns their number.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn undo_init(&mut self) -> Result<usize> {
        let before = self.by_top.len();
        self.by_top.retain(|_, clone| !clone.by_init);
        let gone = before - self.by_top.len();
        if gone > 0 {
            self.save()?;
        }
        Ok(gone)
    }

    /// Lists the seeds of all clones: component, key and content hash (mark).
    pub fn list_marks(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let components = self.by_top.values().flat_map(|clone| &clone.made);
        components.flat_map(|(component, keys)| {
            keys.iter().map(move |(key, source)| (component.as_str(), key.as_str(), source.mark.as_str()))
        })
    }

    /// Returns true when a session has the seeds of at least one clone.
    pub fn is_in_session(&self, session: &str) -> bool {
        self.by_top.values().any(|clone| clone.session == session)
    }

    /// Returns true when the session has lost a seed, or has a seed that counts as deleted.
    pub fn has_news(&self, session: &str, is_seen: &dyn Fn(&str, &str) -> bool) -> bool {
        let has_news = |(component, keys): (&String, &BTreeMap<String, SeedSource>)| {
            keys.iter().any(|(key, source)| source.is_deleted == is_seen(component, key))
        };
        self.by_top.values().filter(|clone| clone.session == session).flat_map(|clone| &clone.made).any(has_news)
    }

    /// Notes which of the `known` seeds were deleted in the session, and which exist again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn note_deleted(
        &mut self,
        session: &str,
        is_known: &dyn Fn(&str, &str) -> bool,
        is_seen: &dyn Fn(&str, &str) -> bool,
    ) -> Result<()> {
        for clone in self.by_top.values_mut().filter(|clone| clone.session == session) {
            for (component, keys) in &mut clone.made {
                for (key, source) in keys.iter_mut().filter(|(key, _)| is_known(component, key)) {
                    source.is_deleted = !is_seen(component, key);
                }
            }
        }
        self.save()
    }

    /// Makes the session read the files of its clones again.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn forget_session(&mut self, session: &str) -> Result<()> {
        for clone in self.by_top.values_mut().filter(|clone| clone.session == session) {
            clone.session.clear();
        }
        self.save()
    }

    fn save(&self) -> Result<()> {
        if self.by_top.is_empty() {
            return files::remove_file(&self.path);
        }
        let text = pretty_json(self);
        files::write_private(&self.path, &text)
    }
}

/// Finds a clone that is not seeded and could be. Returns its top, the name of its repository and its commands.
pub fn find_offer(cwd: &Path) -> Option<(PathBuf, String, Vec<WantedSeed>)> {
    let top = top_of(cwd)?;
    if SeededClones::read_unlocked().ok()?.get(&top).is_some() {
        return None;
    }
    let repo = ContextInference::default().find_repository(&top)?;
    let report = nudge_seed::read(&top, &SeedLimits::default());
    let seeds = WantedSeed::from_seeds(short_name(&repo), &report.seeds);
    (!seeds.is_empty()).then_some((top, repo, seeds))
}

/// The condition on which [`refresh_clone`] reads the files of a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshRule<'a> {
    /// Reads them in any case.
    Always,
    /// Reads them if one of them has changed.
    IfChanged,
    /// Reads them if one of the files that may name a command for this folder has changed. In a large clone this check
    /// costs a small part of [`IfChanged`](Self::IfChanged).
    IfChangedFor(&'a Path),
}

/// Updates the hints of a clone in this session after the clone's files have changed. Returns `None` when the clone is
/// not seeded or nothing has changed.
///
/// # Errors
/// The errors of the list of clones and of calls. If the server refuses a seed, the outcome contains the refusal.
pub fn refresh_clone(top: &Path, rule: RefreshRule<'_>, session: &str, call: Call<'_>) -> Result<Option<SeedOutcome>> {
    let limits = SeedLimits::default();
    let clones = SeededClones::read_shared()?;
    let Some(known) = clones.get(top) else { return Ok(None) };
    // While the lock file exists, another process may have stored only a part of the hints.
    let are_stored = || Ok::<_, Error>(known.session == session && !find_folder()?.join(LOCK).exists());
    if rule != RefreshRule::Always {
        let cwd = if let RefreshRule::IfChangedFor(cwd) = rule { Some(cwd) } else { None };
        if follow::is_quiet(top, &clones, cwd) {
            if are_stored()? {
                return Ok(None);
            }
        } else {
            let look = ClonesLook::begin(top, known);
            if !is_changed(top, known, &limits) && are_stored()? {
                look.note_quiet(top, Arc::clone(&clones));
                return Ok(None);
            }
        }
    }
    let mut clones = SeededClones::open()?;
    // Reads the clone again: another process may have removed it before this one got the lock.
    let Some(known) = clones.get(top).cloned() else { return Ok(None) };
    let report = nudge_seed::read(top, &limits);
    let wanted = WantedSeed::from_seeds(short_name(&known.repo), &report.seeds);
    let mut looked_at = known.made.clone();
    for seed in &wanted {
        looked_at.entry(seed.component.clone()).or_default();
    }
    let SeedPlan { set, delete, left, mut made } =
        plan::plan_changes(wanted.clone(), &read_stored(&looked_at, call)?, &known.made, known.session != session);
    let mut done = SeedOutcome { wanted, left, ..SeedOutcome::default() };
    for seed in set {
        match call(crate::reach::SET_HINT, &seed.to_params(&known.repo)) {
            Ok(_) => done.set.push(seed),
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => {
                if let Some(keys) = made.get_mut(&seed.component) {
                    keys.remove(&seed.key);
                }
                done.refused.push((format!("{} {}", seed.component, seed.key), error.to_string()));
            }
        }
    }
    for seed in delete {
        done.deleted += usize::from(delete_one(call, &seed)?);
    }
    if let Some(clone) = top.to_str().and_then(|name| clones.by_top.get_mut(name)) {
        clone.made = made;
        session.clone_into(&mut clone.session);
        clone.manifests =
            report.manifests.iter().map(|manifest| (manifest.file.clone(), manifest.sha256.clone())).collect();
    }
    clones.save()?;
    done.report = report;
    Ok(Some(done))
}

/// Returns true when the manifests of a clone have changed since the last read, or were never read.
fn is_changed(top: &Path, known: &SeededClone, limits: &SeedLimits) -> bool {
    let to_manifest = |(file, sha256): (&String, &String)| SeedManifest { file: file.clone(), sha256: sha256.clone() };
    let manifests: Vec<_> = known.manifests.iter().map(to_manifest).collect();
    manifests.is_empty() || nudge_seed::has_changed(top, &manifests, limits)
}

/// Deletes the hints that were made from a clone, except the hints that were changed since. Returns the number of
/// deleted hints.
///
/// # Errors
/// The errors of the calls.
pub fn forget_clone(seeded: &SeededClone, call: Call<'_>) -> Result<usize> {
    let SeedPlan { delete, .. } =
        plan::plan_changes(Vec::new(), &read_stored(&seeded.made, call)?, &seeded.made, false);
    delete.iter().try_fold(0, |count, seed| Ok(count + usize::from(delete_one(call, seed)?)))
}

fn delete_one(call: Call<'_>, seed: &StoredSeed) -> Result<bool> {
    let params = json!({"component": seed.component, "key": seed.key, "variant": seed.variant});
    match call("nudge.delete_hint", &object_members(params)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        done => Ok(done.is_ok()),
    }
}

/// Reads the stored hints in the components of `made`.
fn read_stored(made: &Made, call: Call<'_>) -> Result<Vec<StoredSeed>> {
    let mut all = Vec::new();
    for component in made.keys() {
        let params = json!({"component": component, "include_ineligible": true, "limit": MAX_HINTS});
        let answer = call("nudge.query", &object_members(params))?;
        let hints = answer["hints"].as_array().into_iter().flatten();
        all.extend(hints.filter_map(|row| StoredSeed::from_hint(row.get("hint").unwrap_or(row))));
    }
    Ok(all)
}
