//! The common form in which hints of the file and hints of a session are compared.

use std::collections::{BTreeMap, BTreeSet};

use nudge::{Config, Error, ErrorKind, Nudge, Result, Service as _};
use nudge_core::scope::{Scope, ScopeSpec};
use nudge_core::wire::object_members;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{CommittedFile, CommittedHint};
use crate::kept::KEPT_TTL;
use crate::reach::SET_HINT;
use crate::seed::{self, Call};
use crate::wire::{parsed_as, to_raw};

/// The fields of `meta` that the file may have. All other fields belong to the session.
pub(super) const META: [&str; 6] = ["reason", "tags", "priority", "confidence", "ttl", "scope"];

/// The name of a hint that is equal in every clone. It leaves out the repository of the scope, because clones may name
/// the repository differently.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SharedName {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    /// The variant of the scope, computed without the repository.
    pub variant: String,
}

/// A hint as the file contains it: its value, or an object with `value` and `meta`.
pub type WrittenForm = Value;

/// The hints of a file by name, each with the form that a session would give it.
pub type FileHints = BTreeMap<SharedName, (CommittedHint, WrittenForm)>;

/// A hint of this repository that the session holds.
#[derive(Debug, Clone)]
pub struct SessionHint {
    /// The hint in the form of the file.
    pub form: WrittenForm,
    /// The version.
    pub version: u64,
    /// The variant of the hint's whole scope, with the repository.
    pub variant: String,
    /// True for a hint that `nudge seed` made.
    pub is_seed: bool,
    /// True for a hint whose scope has no repository.
    pub is_everywhere: bool,
}

/// The session's hints in some components.
#[derive(Debug, Default)]
pub struct SessionHints {
    /// The hints that are limited to this repository.
    pub of_repository: BTreeMap<SharedName, SessionHint>,
    /// The hints that are not limited to a repository.
    pub everywhere: BTreeMap<SharedName, SessionHint>,
    /// The components that have secret hints. Secrets are not read, so a hint that seems to be missing in such a
    /// component may be a secret.
    hiding: BTreeSet<String>,
}

impl SessionHints {
    /// Reads the session's hints in these components.
    ///
    /// # Errors
    /// The errors of the calls.
    pub fn read(components: &BTreeSet<String>, repo: &str, call: Call<'_>) -> Result<Self> {
        let mut found = Self::default();
        for component in components {
            let answer = match call("nudge.export", &object_members(json!({"component": component}))) {
                Ok(answer) => answer,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if answer["omitted_secrets"] != 0 {
                found.hiding.insert(component.clone());
            }
            for (key, hint) in list_hints(&answer["payload"]["components"][component]) {
                found.add_hint(component, key, hint, repo)?;
            }
        }
        Ok(found)
    }

    fn add_hint(&mut self, component: &str, key: &str, hint: &Value, repo: &str) -> Result<()> {
        let scope = &hint["meta"]["scope"];
        let is_everywhere = scope.get("repo").is_none();
        let is_here = scope["repo"] == repo || scope["repo"].as_array().is_some_and(|all| *all == [repo]);
        if !is_here && !is_everywhere {
            return Ok(());
        }
        let (Some(name), Some(variant)) = (name_hint(component, key, scope), find_variant(scope)) else {
            return Ok(());
        };
        // A hint without a version is an error: if it were skipped, it would count as deleted.
        let unversioned = || Error::unavailable("The server does not say the versions of its hints; update it.");
        let version = hint["version"].as_u64().ok_or_else(unversioned)?;
        let read = SessionHint {
            form: to_written_form(hint),
            version,
            variant,
            is_seed: hint["meta"]["added_by"] == seed::ADDED_BY,
            is_everywhere,
        };
        let group = if is_everywhere { &mut self.everywhere } else { &mut self.of_repository };
        group.insert(name, read);
        Ok(())
    }

    /// Returns true when a hint that was not found may exist as a secret.
    pub fn may_hide(&self, name: &SharedName) -> bool {
        self.hiding.contains(&name.component)
    }
}

/// Lists the hints of a component in an export or a file.
pub(super) fn list_hints(content: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let hints = content["hints"].as_object().into_iter().flatten();
    let variants = content["variants"].as_object().into_iter().flatten();
    hints.chain(variants.flat_map(|(key, list)| list.as_array().into_iter().flatten().map(move |hint| (key, hint))))
}

/// Names the hints of a file as a session would: every spelling of a scope gets the same variant.
pub fn read_forms(file: &CommittedFile) -> FileHints {
    let limit = file.entries.len() + 1;
    let store = Nudge::new(Config {
        secret_guard: false,
        max_components: limit,
        max_hints: limit,
        max_hints_per_component: limit,
        ..Config::default()
    });
    let store_hint = |entry: &CommittedHint| -> Result<(SharedName, WrittenForm)> {
        let mut params = entry.to_params(None, 0);
        params.remove("if_match_version");
        let stored: Value = parsed_as(&store.call(SET_HINT, &to_raw(&params)?)?)?;
        let hint = &stored["hint"];
        let name = name_hint(&entry.component, &entry.key, &hint["meta"]["scope"]);
        Ok((name.expect("the scope was just stored"), to_written_form(hint)))
    };
    let mut all = FileHints::new();
    for entry in &file.entries {
        // A session also refuses this hint, so its name here is one that no stored hint has.
        let (name, form) = store_hint(entry).unwrap_or_else(|_| {
            let variant = format!("?{}", entry.meta.get("scope").unwrap_or(&Value::Null));
            let (component, key) = (entry.component.clone(), entry.key.clone());
            (SharedName { component, key, variant }, entry.written.clone())
        });
        all.insert(name, (entry.clone(), form));
    }
    all
}

fn find_variant(scope: &Value) -> Option<String> {
    let spec: ScopeSpec =
        if scope.is_null() { ScopeSpec::default() } else { serde_json::from_value(scope.clone()).ok()? };
    Some(Scope::new(&spec).ok()?.variant().to_owned())
}

/// Returns the name of a session's hint. Returns `None` for an invalid scope.
pub fn name_hint(component: &str, key: &str, scope: &Value) -> Option<SharedName> {
    let mut scope = scope.clone();
    if let Some(fields) = scope.as_object_mut() {
        fields.remove("repo");
    }
    Some(SharedName { component: component.to_owned(), key: key.to_owned(), variant: find_variant(&scope)? })
}

/// Returns a session's hint in the form of the file: without the fields that belong to the session, and without a
/// default ttl.
fn to_written_form(hint: &Value) -> WrittenForm {
    let mut meta: Map<String, Value> =
        META.iter().filter_map(|name| Some(((*name).to_owned(), hint["meta"].get(*name)?.clone()))).collect();
    if let Some(scope) = meta.get_mut("scope").and_then(Value::as_object_mut) {
        scope.remove("repo");
    }
    let is_said = |value: &Value| {
        !(value.is_null()
            || value == "session"
            || value == KEPT_TTL
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty))
    };
    meta.retain(|_, value| is_said(value));
    if meta.is_empty() { hint["value"].clone() } else { json!({"value": hint["value"], "meta": meta}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_of_a_session_and_of_a_file_have_one_name_and_form() {
        let text = json!({"components": {"shop": {"hints": {
            "a": {"value": "make", "meta": {"scope": {"os": "linux", "repo": "h/o/other"}, "tags": ["x"]}},
            "b": "plain",
        }}}});
        let file = CommittedFile::from_text(text.to_string()).unwrap();
        let forms = read_forms(&file);
        let scope = json!({"repo": ["h/o/r"], "os": ["linux"]});
        let hint = json!({"value": "make", "version": 3, "use_count": 9,
            "meta": {"scope": scope, "ttl": KEPT_TTL, "tags": ["x"], "source": "user", "added_by": "ada"}});
        let name = name_hint("shop", "a", &scope).unwrap();
        assert_eq!(forms[&name].1, to_written_form(&hint), "{forms:?}");
        let plain = name_hint("shop", "b", &json!({"repo": ["h/o/r"]})).unwrap();
        assert_eq!(forms[&plain].1, json!("plain"));

        let mut session = SessionHints::default();
        let mut add = |key: &str, hint: &Value| session.add_hint("shop", key, hint, "h/o/r");
        add("a", &hint).unwrap();
        add("c", &json!({"value": "x", "version": 1, "meta": {"scope": {"repo": ["h/o/x"]}}})).unwrap();
        add("d", &json!({"value": "x", "version": 1, "meta": {}})).unwrap();
        let refused = add("e", &json!({"value": "x", "meta": {}})).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "else it would count as deleted");
        assert_eq!(session.of_repository.keys().collect::<Vec<_>>(), [&name], "another repository's is not here");
        assert_eq!(session.everywhere.len(), 1);
    }
}
