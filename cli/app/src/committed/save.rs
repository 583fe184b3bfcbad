//! Plans the next text of the file. The plan takes over the session's changes to the hints of the file, and adds the
//! hints that the caller names. The rest of the file stays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use nudge::{Error, Result};
use serde_json::{Map, Value, json};

use super::form::{FileHints, SessionHints, SharedName, WrittenForm, read_forms};
use super::load::find_session;
use super::trust::{CloneTrust, TrustFile};
use super::{CommittedFile, FILE};
use crate::files;
use crate::reach::SET_HINT;
use crate::seed::Call;

/// The hints that the caller wants to add to the file.
#[derive(Debug, Clone, Default)]
pub struct SaveRequest {
    /// A component to add; also adds its hints without a repository.
    pub component: Option<String>,
    /// The keys to add from this component; empty for all keys.
    pub keys: Vec<String>,
    /// True to add all hints of this repository.
    pub all: bool,
}

impl SaveRequest {
    fn names(&self, name: &SharedName, is_everywhere: bool) -> bool {
        let is_component = self.component.as_ref().is_some_and(|component| {
            name.component == *component && (self.keys.is_empty() || self.keys.contains(&name.key))
        });
        is_component || (self.all && !is_everywhere)
    }

    /// Reads `COMPONENT/KEY` in one word as both, unless a component has that whole name.
    fn with_key_apart<'a>(&self, mut known: impl Iterator<Item = &'a SharedName> + Clone) -> Self {
        let joined = self.component.as_deref().filter(|word| word.contains('/') && self.keys.is_empty());
        let is_component = |word: &str| known.clone().any(|name| name.component == word);
        let Some(word) = joined.filter(|word| !is_component(word)) else { return self.clone() };
        match known.find(|name| format!("{}/{}", name.component, name.key) == word) {
            Some(name) => Self { component: Some(name.component.clone()), keys: vec![name.key.clone()], all: self.all },
            None => self.clone(),
        }
    }

    fn is_open(&self) -> bool {
        self.component.is_none() && !self.all
    }
}

/// A planned change of the file.
#[derive(Debug, Default)]
pub struct SavePlan {
    /// The new text; `None` when nothing changes.
    pub text: Option<String>,
    /// The number of hints in the new text.
    pub count: usize,
    /// The names of the hints that the plan adds, changes and removes.
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    /// The names of this repository's hints that the new text does not have.
    pub private: Vec<String>,
    entries: BTreeMap<SharedName, WrittenForm>,
}

/// A planned save that is not yet written. Holds the lock of the trust file, so no other process changes the trust
/// before the write.
pub struct PendingSave {
    /// The planned change.
    pub plan: SavePlan,
    trust: TrustFile,
    known: CloneTrust,
    session: String,
    here: SessionHints,
    /// The text of the file when the save was planned.
    file_text: Option<String>,
}

impl PendingSave {
    /// Plans a save. If the clone has a file, the clone must have [loaded](super::load_trusted) its present text.
    ///
    /// # Errors
    /// `E_INVALID` for a file that is not valid; `E_CONFLICT` for a file with changes that were not loaded;
    /// `E_NOT_FOUND` when there is nothing to save; the errors of the calls.
    pub fn plan(top: &Path, repo: &str, request: &SaveRequest, call: Call<'_>) -> Result<Self> {
        let trust = TrustFile::open()?;
        let mut known = trust.get(top);
        let file = CommittedFile::read(top)?;
        let session = find_session(call)?;
        match &file {
            None => known = CloneTrust::default(),
            Some(file) if known.trusted.as_deref() != Some(file.text.as_str()) => {
                let how = if known.trusted.is_some() {
                    "has changed since it was loaded here"
                } else {
                    "was not loaded here"
                };
                let message = format!("{FILE} {how}; `nudge trust` shows it, then save again.");
                return Err(Error::conflict(message));
            }
            Some(_) if !known.is_loaded(&session) => {
                return Err(Error::unavailable("The session has changed meanwhile; save again."));
            }
            Some(_) => {}
        }
        let theirs = file.as_ref().map_or_else(FileHints::new, read_forms);
        let all = call("nudge.export", &Map::new())?;
        let stored = all["payload"]["components"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let components = theirs.keys().map(|name| name.component.clone()).chain(stored).collect();
        let here = SessionHints::read(&components, repo, call)?;
        let file_text = file.as_ref().map(|file| file.text.clone());
        let document = file.map_or_else(|| json!({"components": {}}), |file| file.document);
        let plan = plan_text(&document, &theirs, &here, &known, request)?;
        Ok(Self { plan, trust, known, session, here, file_text })
    }

    /// Writes the text, and trusts it, because the user who writes it need not review it. If a saved hint has no
    /// repository, stores it for this repository too: every other clone will do the same when it loads the file.
    ///
    /// # Errors
    /// `E_CONFLICT` for a file that has changed since the plan; `E_UNAVAILABLE` when a file cannot be written; the
    /// errors of the calls.
    pub fn write(mut self, top: &Path, repo: &str, call: Call<'_>) -> Result<SavePlan> {
        let Some(text) = self.plan.text.clone() else { return Ok(self.plan) };
        let file = CommittedFile::from_text(text.clone())?;
        refuse_changed_file(top, self.file_text.as_deref())?;
        files::write(&top.join(FILE), &text)?;
        let mut held = BTreeSet::new();
        for (name, (entry, _)) in read_forms(&file) {
            let is_held = self.here.of_repository.contains_key(&name)
                || (self.here.everywhere.contains_key(&name)
                    && call(SET_HINT, &entry.to_params(Some(repo), 0)).is_ok());
            if is_held && !entry.is_timed() {
                held.insert(name);
            }
        }
        let deleted = self.known.deleted.into_iter().filter(|name| self.plan.entries.contains_key(name)).collect();
        let known = CloneTrust {
            trusted: Some(text.clone()),
            base: Some(text),
            session: self.session,
            held,
            deleted,
            ..CloneTrust::default()
        };
        self.trust.put_known(top, known)?;
        Ok(self.plan)
    }
}

/// Refuses to save if another program, such as a `git pull`, has changed the file since the plan.
fn refuse_changed_file(top: &Path, planned: Option<&str>) -> Result<()> {
    if CommittedFile::read(top)?.as_ref().map(|file| file.text.as_str()) == planned {
        return Ok(());
    }
    Err(Error::conflict(format!("{FILE} has just changed; `nudge trust` shows it, then save again.")))
}

fn plan_text(
    document: &Value,
    theirs: &FileHints,
    here: &SessionHints,
    known: &CloneTrust,
    request: &SaveRequest,
) -> Result<SavePlan> {
    let mut plan = SavePlan::default();
    let stored = here.of_repository.keys().chain(here.everywhere.keys());
    let request = &request.with_key_apart(stored.chain(theirs.keys()));
    let say = |name: &SharedName| format!("{} {}", name.component, name.key);
    for (name, (entry, form)) in theirs {
        let written = match here.of_repository.get(name) {
            Some(ours) if ours.form != *form => {
                plan.changed.push(say(name));
                ours.form.clone()
            }
            None if (known.deleted.contains(name) || known.held.contains(name)) && !here.may_hide(name) => {
                plan.removed.push(say(name));
                continue;
            }
            _ => entry.written.clone(),
        };
        plan.entries.insert(name.clone(), written);
    }
    for (name, ours) in here.of_repository.iter().chain(&here.everywhere) {
        if ours.is_seed || plan.entries.contains_key(name) || theirs.contains_key(name) {
            continue;
        }
        if request.names(name, ours.is_everywhere) {
            plan.added.push(say(name));
            plan.entries.insert(name.clone(), ours.form.clone());
        } else if !ours.is_everywhere {
            plan.private.push(say(name));
        }
    }
    plan.check_request(request, !theirs.is_empty())?;
    plan.count = plan.entries.len();
    let is_changed = !(plan.added.is_empty() && plan.changed.is_empty() && plan.removed.is_empty());
    plan.text = is_changed.then(|| write_document(document, &plan.entries));
    Ok(plan)
}

impl SavePlan {
    /// Refuses a request that names hints that do not exist.
    fn check_request(&self, request: &SaveRequest, has_file: bool) -> Result<()> {
        let holds = |key: Option<&String>| {
            let component = request.component.as_ref();
            self.entries.keys().any(|name| Some(&name.component) == component && key.is_none_or(|key| name.key == *key))
        };
        if let Some(component) = &request.component {
            let missing = request.keys.iter().find(|key| !holds(Some(key)));
            if let Some(key) = missing {
                let message = format!(
                    "No hint {component} {key} is stored for this repository; `nudge ls {component}` lists them."
                );
                return Err(Error::not_found(message));
            }
            if request.keys.is_empty() && !holds(None) {
                return Err(Error::not_found(format!(
                    "No hint of {component} is stored for this repository or for everywhere; `nudge ls` lists all."
                )));
            }
        }
        if has_file || !self.entries.is_empty() {
            return Ok(());
        }
        match self.private.first().filter(|_| request.is_open()) {
            Some(first) => Err(Error::invalid(format!(
                "Say which hints are for the team: `nudge save {first}`, or `nudge save --all` for all {} of this repository.",
                self.private.len()
            ))),
            None => Err(Error::not_found(
                "No hint is stored for this repository alone; `nudge set` stores one, and `nudge save COMPONENT` takes those for everywhere, too.",
            )),
        }
    }
}

/// Writes the document with these hints, in the order of their names. All other members of the document stay.
fn write_document(document: &Value, entries: &BTreeMap<SharedName, WrittenForm>) -> String {
    let mut by_component: BTreeMap<&str, BTreeMap<&str, Vec<&WrittenForm>>> = BTreeMap::new();
    for (name, form) in entries {
        by_component.entry(&name.component).or_default().entry(&name.key).or_default().push(form);
    }
    let mut components = Map::new();
    for (component, keys) in by_component {
        let mut content = document["components"][component].as_object().cloned().unwrap_or_default();
        let (mut hints, mut variants) = (Map::new(), Map::new());
        for (key, mut list) in keys {
            list.sort_by_key(ToString::to_string);
            let mut list = list.into_iter().cloned();
            hints.extend(list.next().map(|form| (key.to_owned(), form)));
            let further: Vec<_> = list.collect();
            if !further.is_empty() {
                variants.insert(key.to_owned(), Value::Array(further));
            }
        }
        content.insert("hints".into(), Value::Object(hints));
        content.remove("variants");
        if !variants.is_empty() {
            content.insert("variants".into(), Value::Object(variants));
        }
        components.insert(component.to_owned(), Value::Object(content));
    }
    let mut document = document.clone();
    document["components"] = Value::Object(components);
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use nudge::ErrorKind;

    use super::*;

    #[test]
    fn a_file_that_changed_while_a_save_was_planned_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |planned: Option<&str>| refuse_changed_file(folder.path(), planned).map_err(|error| error.kind());
        let text = "{\"components\": {}}\n";
        assert_eq!((kind(None), kind(Some(text))), (Ok(()), Err(ErrorKind::Conflict)));
        std::fs::write(folder.path().join(FILE), text).unwrap();
        assert_eq!((kind(Some(text)), kind(None)), (Ok(()), Err(ErrorKind::Conflict)));
        std::fs::write(folder.path().join(FILE), "<<<<<<< HEAD\n").unwrap();
        assert_eq!(kind(Some(text)), Err(ErrorKind::Invalid));
    }
}
