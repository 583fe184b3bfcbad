//! `.nudge.json`: hints that are committed with a repository (semantics section 20). A clone loads these hints only
//! after its user has reviewed them, because an agent must not see a stranger's text without review.
//!
//! A merge compares three states: the text that was last loaded or saved, the present text of the file, and the present
//! hints of the session. `load` brings changes of the file into the session. `save` brings changes of the session into
//! the file.

mod form;
mod load;
mod save;
mod trust;

use std::io;
use std::path::Path;

use nudge::{Error, Result};
use nudge_core::text::{is_hidden, to_hex};
use nudge_core::wire::object_members;
use nudge_os::foreign::{self, LinkPolicy};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use form::{META, WrittenForm, list_hints};

pub use form::{SharedName, name_hint};
pub use load::{LoadedHints, find_session, load_trusted};
pub use save::{PendingSave, SaveRequest};
pub use trust::{CloneTrust, TrustFile};

/// The name of the file, at the top of a repository.
pub const FILE: &str = ".nudge.json";
/// The most bytes of the file that are read.
const MAX_BYTES: u64 = 256 << 10;
/// The most hints in the file.
const MAX_HINTS: usize = 500;
/// The beginning of a line with which git marks a conflict in a file.
const CONFLICT_MARK: &str = "<<<<<<< ";
/// The author (`added_by`) of hints from the file.
pub const ADDED_BY: &str = ".nudge.json";

/// A hint from the file.
#[derive(Debug, Clone, PartialEq)]
pub struct CommittedHint {
    /// The component.
    pub component: String,
    /// The key.
    pub key: String,
    value: Value,
    meta: Map<String, Value>,
    /// The hint's JSON exactly as the file has it.
    written: WrittenForm,
}

/// The parsed file.
#[derive(Debug)]
pub struct CommittedFile {
    /// The whole text of the file.
    pub text: String,
    /// The SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    document: Value,
    /// The hints, sorted by name.
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
        Self::from_text(text).map(Some)
    }

    /// Parses a text of the file.
    ///
    /// # Errors
    /// The errors of [`read`](Self::read).
    fn from_text(text: String) -> Result<Self> {
        let wrong = |why: &dyn std::fmt::Display| Error::invalid(format!("{FILE} is not read: {why}; correct it."));
        if let Some(line) =
            text.lines().position(|line| line.chars().any(|c| c != '\t' && (c.is_control() || is_hidden(c))))
        {
            return Err(wrong(&format!("line {} has characters that cannot be shown", line + 1)));
        }
        if let Some(line) = text.lines().position(|line| line.starts_with(CONFLICT_MARK)) {
            let message = format!(
                "{FILE} has marks of a merge conflict in line {}; resolve the conflict, then `nudge trust`.",
                line + 1
            );
            return Err(Error::invalid(message));
        }
        let document: Value =
            serde_json::from_str(&text).map_err(|error| wrong(&format!("line {} is not JSON", error.line())))?;
        let entries = read_entries(&document).map_err(|why| wrong(&why))?;
        Ok(Self { sha256: hash_text(&text), text, document, entries })
    }
}

/// Returns the hints of a document, or the first mistake as text. Makes only the checks that need no session.
fn read_entries(document: &Value) -> Result<Vec<CommittedHint>, String> {
    let components = document["components"].as_object().ok_or("it has no `components`")?;
    let mut all = Vec::new();
    for (component, content) in components {
        for (key, hint) in list_hints(content) {
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
            all.push(CommittedHint {
                component: component.clone(),
                key: key.clone(),
                value,
                meta,
                written: hint.clone(),
            });
            if all.len() > MAX_HINTS {
                return Err(format!("it has more than {MAX_HINTS} hints"));
            }
        }
    }
    Ok(all)
}

/// Returns the `meta` of a hint. Refuses a `meta` or a scope that is no object.
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
    /// Returns the params of `nudge.set_hint`. The method refuses the call when the stored variant has another version
    /// than `version`; 0 stands for a variant that does not exist yet. The scope is always limited to `repo`. The
    /// default ttl is the session, because the next session reads the file again.
    fn to_params(&self, repo: Option<&str>, version: u64) -> Map<String, Value> {
        let mut meta = self.meta.clone();
        if let Some(scope) = meta.entry("scope").or_insert_with(|| json!({})).as_object_mut() {
            scope.remove("repo");
            scope.extend(repo.map(|repo| ("repo".to_owned(), repo.into())));
        }
        meta.entry("ttl").or_insert_with(|| "session".into());
        meta.insert("source".into(), "file-import".into());
        meta.insert("added_by".into(), ADDED_BY.into());
        object_members(
            json!({"component": self.component, "key": self.key, "value": self.value, "meta": meta, "if_match_version": version}),
        )
    }

    /// Returns true for a hint with a duration. If such a hint is missing, it may have expired, so it does not count as
    /// deleted.
    fn is_timed(&self) -> bool {
        self.meta.get("ttl").is_some_and(|ttl| ttl != "session")
    }
}

/// Lists the hints of the trusted text as `component/key` if the file now differs from that text; otherwise returns an
/// empty list.
pub fn list_changed(top: &Path) -> Vec<String> {
    let trusted = TrustFile::read_unlocked().ok().and_then(|trust| trust.get(top).trusted);
    let Some(trusted) = trusted else { return Vec::new() };
    if CommittedFile::read(top).is_ok_and(|now| now.is_some_and(|now| now.text == trusted)) {
        return Vec::new();
    }
    let entries = serde_json::from_str(&trusted).ok().and_then(|document| read_entries(&document).ok());
    entries.into_iter().flatten().map(|entry| format!("{}/{}", entry.component, entry.key)).collect()
}

/// Returns true when the clone has the file. Does not read the file, so callers do not wait.
pub fn is_there(top: &Path) -> bool {
    top.join(FILE).symlink_metadata().is_ok()
}

/// Returns the notice that the clone's file is not loaded, once for each text of the file. Returns `None` when the file
/// is missing or trusted, or when the user already got the notice.
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
    fn a_hint_of_a_file_is_of_this_repository_and_lasts_as_long_as_it_says() {
        let hints = json!({"a": "make", "b": {"value": "x", "meta": {"ttl": "P1D", "scope": {"repo": "h/o/other", "os": ["linux"]}}}});
        let entries = read_entries(&json!({"components": {"shop": {"hints": hints}}})).unwrap();
        let params = |index: usize| entries[index].to_params(Some("h/o/mine"), 0);
        assert_eq!(params(0)["meta"]["scope"], json!({"repo": "h/o/mine"}));
        assert_eq!(params(1)["meta"]["scope"], json!({"os": ["linux"], "repo": "h/o/mine"}));
        assert_eq!((&params(0)["meta"]["ttl"], &params(1)["meta"]["ttl"]), (&json!("session"), &json!("P1D")));
        assert_eq!((&params(0)["if_match_version"], &params(0)["meta"]["source"]), (&json!(0), &json!("file-import")));
        assert_eq!(entries.iter().map(CommittedHint::is_timed).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let many: Map<String, Value> = (0..501).map(|number| (number.to_string(), json!("x"))).collect();
        for (text, why) in [
            ("{", "line 1 is not JSON".to_owned()),
            ("{\n<<<<<<< HEAD\n", "marks of a merge conflict in line 2".into()),
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
            assert!(said.message().contains(&why), "{said:?}");
            assert!(["correct it.", "then `nudge trust`."].iter().any(|end| said.message().ends_with(end)), "{said:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(CommittedFile::read(folder.path()).unwrap().is_none());
    }
}
