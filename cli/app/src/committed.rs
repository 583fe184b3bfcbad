//! `.nudge.json`: hints that are committed with a repository (semantics section 20). A clone gets them only after its
//! user has reviewed them, because an agent must not be told a stranger's text.
//!
//! `trust.json` beside the kept hints contains the trusted text of each clone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use nudge::{Error, ErrorKind, Result};
use nudge_core::foreign::{self, LinkPolicy};
use nudge_core::text::{is_hidden, to_hex};
use nudge_core::wire::{object_members, pretty_json};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::alone::ProcessLock;
use crate::files;
use crate::reach::SET_HINT;
use crate::seed::Call;
use crate::settings;

/// The name of the file, at the top of a repository.
pub const FILE: &str = ".nudge.json";
/// The most bytes of the file that are read, and the most hints in it.
const MAX_BYTES: u64 = 256 << 10;
const MAX_HINTS: usize = 500;
const STATE: &str = "trust.json";
const LOCK: &str = "trust.lock";
const MAX_STATE_BYTES: u64 = 64 << 20;
/// The author name of the hints.
pub const ADDED_BY: &str = ".nudge.json";
/// The fields that a hint in the file may have besides its value. All other fields belong to a session.
const META: [&str; 6] = ["reason", "tags", "priority", "confidence", "ttl", "scope"];

/// A hint from the file.
#[derive(Debug, Clone, PartialEq)]
pub struct CommittedHint {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    value: Value,
    meta: Map<String, Value>,
}

/// The parsed file.
#[derive(Debug)]
pub struct CommittedFile {
    /// The text as it is in the file.
    pub text: String,
    /// The SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    /// The hints, sorted.
    pub entries: Vec<CommittedHint>,
}

impl CommittedFile {
    /// Reads the file of a clone; `None` when there is none.
    ///
    /// # Errors
    /// `E_INVALID` for a file that is not valid, with advice.
    pub fn read(top: &Path) -> Result<Option<Self>> {
        let wrong = |why: &dyn std::fmt::Display| Error::invalid(format!("{FILE} is not read: {why}; correct it."));
        let text = match foreign::read_text(&top.join(FILE), LinkPolicy::Refused, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error)),
        };
        if let Some(line) =
            text.lines().position(|line| line.chars().any(|c| c != '\t' && (c.is_control() || is_hidden(c))))
        {
            return Err(wrong(&format!("line {} has characters that cannot be shown", line + 1)));
        }
        let document: Value =
            serde_json::from_str(&text).map_err(|error| wrong(&format!("line {} is not JSON", error.line())))?;
        let entries = read_entries(&document).map_err(|why| wrong(&why))?;
        Ok(Some(Self { sha256: hash_text(&text), text, entries }))
    }
}

/// Returns the hints of a document. Checks each one as far as that needs no session.
fn read_entries(document: &Value) -> Result<Vec<CommittedHint>, String> {
    let components = document["components"].as_object().ok_or("it has no `components`")?;
    let mut all = Vec::new();
    for (component, content) in components {
        let hints = content["hints"].as_object().into_iter().flatten();
        let variants = content["variants"].as_object().into_iter().flatten();
        let variants =
            variants.flat_map(|(key, list)| list.as_array().into_iter().flatten().map(move |hint| (key, hint)));
        for (key, hint) in hints.chain(variants) {
            let (value, meta) = match hint.get("value") {
                Some(value) => (value.clone(), read_meta(hint).map_err(|why| format!("{component} {key} has {why}"))?),
                None => (hint.clone(), Map::new()),
            };
            if let Some(other) = meta.keys().find(|name| !META.contains(&name.as_str())) {
                return Err(format!(
                    "{component} {key} has `{}`, which is not taken from a file",
                    nudge_core::text::make_visible(other)
                ));
            }
            all.push(CommittedHint { component: component.clone(), key: key.clone(), value, meta });
            if all.len() > MAX_HINTS {
                return Err(format!("it has more than {MAX_HINTS} hints"));
            }
        }
    }
    Ok(all)
}

/// Returns the `meta` of a hint. A scope in it is an object.
fn read_meta(hint: &Value) -> Result<Map<String, Value>, &'static str> {
    let meta = match hint.get("meta") {
        None => Map::new(),
        Some(Value::Object(meta)) => meta.clone(),
        Some(_) => return Err("a `meta` that is no object"),
    };
    if meta.get("scope").is_some_and(|scope| !scope.is_object()) {
        return Err("a `scope` that is no object");
    }
    Ok(meta)
}

impl CommittedHint {
    /// Returns the params of `nudge.set_hint`, which refuses a variant that already exists. The scope is always
    /// limited to this repository.
    fn to_params(&self, repo: &str) -> Map<String, Value> {
        let mut meta = self.meta.clone();
        let scope = meta.entry("scope").or_insert_with(|| json!({}));
        scope["repo"] = repo.into();
        meta.insert("source".into(), "file-import".into());
        meta.insert("added_by".into(), ADDED_BY.into());
        object_members(
            json!({"component": self.component, "key": self.key, "value": self.value, "meta": meta, "if_match_version": 0}),
        )
    }
}

/// Returns the file's text for the hints of an export that belong to this repository, without the session's own
/// fields, and their number. `None` if there are no such hints.
pub fn to_file_text(export: &Value, repo: &str, component: Option<&str>) -> Option<(String, usize)> {
    let is_repo =
        |given: &Value| given == repo || given.as_array().is_some_and(|list| list.len() == 1 && list[0] == repo);
    let to_committed = |hint: &Value| {
        let scope = &hint["meta"]["scope"];
        let is_here = is_repo(&scope["repo"]) || (component.is_some() && scope["repo"].is_null());
        if !is_here || hint["meta"]["added_by"] == crate::seed::ADDED_BY {
            return None;
        }
        let mut meta: Map<String, Value> =
            META.iter().filter_map(|name| Some(((*name).to_owned(), hint["meta"].get(*name)?.clone()))).collect();
        if let Some(scope) = meta.get_mut("scope").and_then(Value::as_object_mut) {
            scope.remove("repo");
        }
        let is_said = |value: &Value| {
            !(value.is_null()
                || value == "session"
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(Map::is_empty))
        };
        meta.retain(|_, value| is_said(value));
        Some(if meta.is_empty() { hint["value"].clone() } else { json!({"value": hint["value"], "meta": meta}) })
    };
    let mut count = 0;
    let mut components = BTreeMap::new();
    for (name, content) in export["payload"]["components"].as_object()? {
        let mut by_key: BTreeMap<&String, Vec<Value>> = BTreeMap::new();
        let hints = content["hints"].as_object().into_iter().flatten();
        let variants = content["variants"].as_object().into_iter().flatten();
        let variants =
            variants.flat_map(|(key, list)| list.as_array().into_iter().flatten().map(move |hint| (key, hint)));
        for (key, hint) in hints.chain(variants).filter_map(|(key, hint)| Some((key, to_committed(hint)?))) {
            count += 1;
            by_key.entry(key).or_default().push(hint);
        }
        let mut out = BTreeMap::from([("hints", BTreeMap::new())]);
        for (key, mut list) in by_key {
            list.sort_by_key(ToString::to_string);
            out.entry("hints").or_default().insert(key.clone(), list.remove(0));
            if !list.is_empty() {
                out.entry("variants").or_default().insert(key.clone(), Value::Array(list));
            }
        }
        if !out["hints"].is_empty() {
            components.insert(name.clone(), out);
        }
    }
    let text = serde_json::to_string_pretty(&json!({"components": components})).ok()?;
    (count > 0).then_some((text + "\n", count))
}

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
    mentioned: String,
    /// The session that has loaded the trusted text.
    #[serde(skip_serializing_if = "String::is_empty")]
    loaded: String,
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

    fn put_known(&mut self, top: &Path, known: CloneTrust) -> Result<()> {
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

/// Lists the hints of the trusted text as `component/key`, if the file has changed since. A session may hold the
/// hints that it loaded, or keep them for the next session.
pub fn list_changed(top: &Path) -> Vec<String> {
    let trusted = TrustFile::read_unlocked().ok().and_then(|trust| trust.get(top).trusted);
    let Some(trusted) = trusted else { return Vec::new() };
    if CommittedFile::read(top).is_ok_and(|now| now.is_some_and(|now| now.text == trusted)) {
        return Vec::new();
    }
    let entries = serde_json::from_str(&trusted).ok().and_then(|document| read_entries(&document).ok());
    entries.into_iter().flatten().map(|entry| format!("{}/{}", entry.component, entry.key)).collect()
}

/// Returns true when the clone has the file. It only looks, for callers that must not wait.
pub fn is_there(top: &Path) -> bool {
    top.join(FILE).symlink_metadata().is_ok()
}

/// Returns a sentence for the user about a text that is not loaded, once for each text.
///
/// # Errors
/// The errors of [`TrustFile`].
pub fn mention_untrusted(top: &Path) -> Result<Option<String>> {
    let (sha256, what) = match CommittedFile::read(top) {
        Ok(None) => return Ok(None),
        Ok(Some(document)) => {
            let known = TrustFile::read_unlocked()?.get(top);
            if known.trusted.as_deref() == Some(document.text.as_str()) {
                return Ok(None);
            }
            let what =
                if known.trusted.is_some() { "has changed since it was trusted" } else { "comes with this repository" };
            (document.sha256, format!("{what} and is not loaded; `nudge trust` shows it"))
        }
        Err(error) => (hash_text(error.message()), format!("is not loaded. {}", error.message())),
    };
    if TrustFile::read_unlocked()?.get(top).mentioned == sha256 {
        return Ok(None);
    }
    let mut trust = TrustFile::open()?;
    let known = CloneTrust { mentioned: sha256, ..trust.get(top) };
    trust.put_known(top, known)?;
    Ok(Some(format!("Nudge: {FILE} {what}")))
}

/// The outcome of loading the file.
#[derive(Debug, Default)]
pub struct LoadedHints {
    /// The hints that are new in the session.
    pub set: usize,
    /// The number of hints that existed already and stay.
    pub there: usize,
    /// Hints that were refused, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// Loads the file into the running session, if its text is trusted and the session has not loaded it yet.
///
/// # Errors
/// The errors of the calls and of [`TrustFile`].
pub fn load_trusted(top: &Path, repo: &str, call: Call<'_>) -> Result<Option<LoadedHints>> {
    let known = TrustFile::read_unlocked()?.get(top);
    let Some(trusted) = known.trusted else { return Ok(None) };
    let Some(document) = CommittedFile::read(top)?.filter(|document| document.text == trusted) else { return Ok(None) };
    let status = call("nudge.status", &Map::new())?;
    let unnamed = || Error::unavailable("The server does not name its session; update it.");
    let session = format!("{} {}", status["session_id"].as_str().ok_or_else(unnamed)?, document.sha256);
    if known.loaded == session {
        return Ok(None);
    }
    let mut trust = TrustFile::open()?;
    let mut loaded = LoadedHints::default();
    for entry in &document.entries {
        match call(SET_HINT, &entry.to_params(repo)) {
            Ok(_) => loaded.set += 1,
            Err(error) if error.kind() == ErrorKind::Conflict => loaded.there += 1,
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => loaded.refused.push((format!("{} {}", entry.component, entry.key), error.to_string())),
        }
    }
    let known = CloneTrust { loaded: session, ..trust.get(top) };
    trust.put_known(top, known)?;
    Ok(Some(loaded))
}

fn hash_text(text: &str) -> String {
    to_hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_or_a_scope_that_is_no_object_is_refused() {
        let entries = |meta: Value| {
            read_entries(&json!({"components": {"shop": {"hints": {"build": {"value": "make", "meta": meta}}}}}))
        };
        for (meta, why) in [
            (json!("ttl"), "shop build has a `meta` that is no object"),
            (json!({"scope": "linux"}), "shop build has a `scope` that is no object"),
        ] {
            assert_eq!(entries(meta).unwrap_err(), why);
        }
        assert_eq!(entries(json!({"scope": {"os": ["linux"]}})).unwrap().len(), 1);
    }

    #[test]
    fn what_is_written_is_read_again_and_of_this_repository() {
        let hint = |value: &str, meta: Value| json!({"value": value, "meta": meta, "version": 3, "use_count": 9, "created_at": "x"});
        let export = json!({"payload": {"components": {
            "shop": {"hints": {
                "b": hint("make b", json!({"scope": {"repo": "h/o/r"}, "ttl": "session", "tags": ["x"], "source": "user"})),
                "a": hint("make a", json!({"scope": {"repo": ["h/o/r"], "os": ["linux"]}, "reason": "why"})),
                "seed": hint("make", json!({"scope": {"repo": "h/o/r"}, "added_by": "nudge seed"})),
            }, "variants": {"a": [hint("make w", json!({"scope": {"repo": "h/o/r", "os": ["windows"]}}))]}},
            "mine": {"hints": {"all": hint("x", json!({"scope": {}})), "other": hint("y", json!({"scope": {"repo": "h/o/x"}}))}},
        }}});
        let (text, count) = to_file_text(&export, "h/o/r", None).unwrap();
        assert_eq!(count, 3);
        assert!(!text.contains("use_count") && !text.contains("h/o/r") && !text.contains("mine"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), &text).unwrap();
        let document = CommittedFile::read(folder.path()).unwrap().unwrap();
        let keys: Vec<_> = document.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["a", "b", "a"]);
        let params = document.entries[0].to_params("h/o/mine");
        assert_eq!(params["meta"]["scope"]["repo"], "h/o/mine");
        assert_eq!((&params["if_match_version"], &params["meta"]["source"]), (&json!(0), &json!("file-import")));
        assert!(to_file_text(&export, "h/o/none", None).is_none());
        assert_eq!(to_file_text(&export, "h/o/r", Some("mine")).unwrap().1, 1 + 3, "a component is asked for by name");
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let many: Map<String, Value> = (0..501).map(|number| (number.to_string(), json!("x"))).collect();
        for (text, why) in [
            ("{", "line 1 is not JSON".to_owned()),
            ("[]", "it has no `components`".into()),
            ("{\n\"components\": {\"a\u{1b}[2J\": {}}}", "line 2 has characters that cannot be shown".into()),
            ("{\"components\": {\"\u{202e}\": {}}}", "line 1 has characters".into()),
            (
                r#"{"components": {"a": {"hints": {"k": {"value": "x", "meta": {"added_by": "user"}}}}}}"#,
                "a k has `added_by`".into(),
            ),
            (&json!({"components": {"a": {"hints": many}}}).to_string(), "more than 500 hints".into()),
            (&" ".repeat(300 << 10), "more than 262144 bytes".into()),
        ] {
            std::fs::write(&path, text).unwrap();
            let said = CommittedFile::read(folder.path()).unwrap_err();
            assert!(said.message().contains(&why) && said.message().ends_with("correct it."), "{said:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(CommittedFile::read(folder.path()).unwrap().is_none());
    }
}
