//! Defines the content of a vector file. `tests/README.md` describes the format.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::json::Json;

/// A case: a fresh store, and steps in order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name, unique within its file.
    pub name: String,
    /// The sections of the documents that require this behaviour.
    pub why: String,
    /// The configuration of the store.
    #[serde(default)]
    pub config: Config,
    /// The source that the case tests, if that is not the hints, or the word `session`. Such a case runs on a session,
    /// and the saved text `folder` is the path of a new empty folder.
    #[serde(default)]
    pub needs: Option<String>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// The configuration of a store. Each field is the environment variable `NUDGE_<NAME>`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `NUDGE_MAX_COMPONENTS`
    pub max_components: Option<u64>,
    /// `NUDGE_MAX_HINTS_PER_COMPONENT`
    pub max_hints_per_component: Option<u64>,
    /// `NUDGE_MAX_HINTS`
    pub max_hints: Option<u64>,
    /// `NUDGE_MAX_BYTES`
    pub max_bytes: Option<u64>,
    /// `NUDGE_SECRET_GUARD`: `1` or `0`
    pub secret_guard: Option<bool>,
    /// `NUDGE_DEFAULT_TTL`
    pub default_ttl: Option<String>,
    /// `NUDGE_SUGGEST_MAX`
    pub suggest_max: Option<u64>,
    /// `NUDGE_SIGNALS_ON`, for a session
    pub signals_on: Option<bool>,
    /// `NUDGE_RECORDS_ON`, for a session
    pub records_on: Option<bool>,
    /// `NUDGE_BRAIN_ROOT`, for a session
    pub brain_root: Option<String>,
}

impl Config {
    /// Returns the configuration as environment variables.
    #[must_use]
    pub fn env(&self) -> BTreeMap<&'static str, String> {
        let count = |n: Option<u64>| n.map(|n| n.to_string());
        [
            ("NUDGE_MAX_COMPONENTS", count(self.max_components)),
            ("NUDGE_MAX_HINTS_PER_COMPONENT", count(self.max_hints_per_component)),
            ("NUDGE_MAX_HINTS", count(self.max_hints)),
            ("NUDGE_MAX_BYTES", count(self.max_bytes)),
            ("NUDGE_SECRET_GUARD", self.secret_guard.map(|on| u8::from(on).to_string())),
            ("NUDGE_DEFAULT_TTL", self.default_ttl.clone()),
            ("NUDGE_SUGGEST_MAX", count(self.suggest_max)),
            ("NUDGE_SIGNALS_ON", self.signals_on.map(|on| u8::from(on).to_string())),
            ("NUDGE_RECORDS_ON", self.records_on.map(|on| u8::from(on).to_string())),
            ("NUDGE_BRAIN_ROOT", self.brain_root.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// A step of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Makes a call and compares its answer.
    Call(Box<Call>),
    /// Moves the clock forward.
    Advance(Advance),
    /// Writes or removes a file in the folder of the case.
    Write(Write),
    /// Starts a fresh store with the same configuration. The clock starts again at its first time.
    Restart(Restart),
}

/// Moves the clock forward.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advance {
    /// The number of milliseconds.
    pub advance_ms: u64,
}

/// Writes or removes a file in the folder of the case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The path relative to the folder.
    pub write: String,
    /// The whole text, which may contain builders. Without a text the file is removed.
    pub text: Option<Json>,
}

/// Starts a fresh store.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Always true.
    pub restart: bool,
}

/// A call. Without `expect` and `error` it must succeed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The method without its prefix `nudge.`.
    pub call: String,
    /// The params, which may contain builders.
    pub params: Option<Json>,
    /// The params as JSON text that is sent unchanged.
    pub params_raw: Option<String>,
    /// The members that the result must have. It may have more.
    pub expect: Option<Json>,
    /// The expected error: its `data.reason`, or `{code, data, message_contains}`.
    pub error: Option<Json>,
    /// The parts of the result to save: a name, and the JSON pointer of the part.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// The parts of the result whose JSON text must equal a saved text: the JSON pointer of the part, and the saved
    /// name.
    #[serde(default)]
    pub same_text: BTreeMap<String, String>,
    /// Texts that the JSON text of the answer must contain.
    #[serde(default)]
    pub text_has: Vec<Json>,
    /// Texts that the JSON text of the answer must not contain.
    #[serde(default)]
    pub text_lacks: Vec<Json>,
}

/// Returns the folder of the vectors.
#[must_use]
pub fn vectors_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// Loads the cases of all files in order. Each has the name of its file, without `.json`.
pub fn load(dir: &Path) -> Result<Vec<(String, Case)>, String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let cases: Vec<Case> = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.extend(cases.into_iter().map(|case| (file.clone(), case)));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_reads_and_names_are_unique() {
        let cases = load(&vectors_dir()).unwrap();
        assert!(cases.len() > 200, "{} cases", cases.len());
        let names: BTreeSet<_> = cases.iter().map(|(file, case)| (file, &case.name)).collect();
        assert_eq!(names.len(), cases.len(), "two cases share a name");
        for (file, case) in &cases {
            assert!(!case.why.is_empty(), "{file}: {}", case.name);
            assert!(!case.steps.is_empty(), "{file}: {}", case.name);
        }
    }

    #[test]
    fn a_misspelt_field_is_an_error() {
        for text in [
            r#"{"name":"n","why":"w","step":[]}"#,
            r#"{"name":"n","why":"w","steps":[{"call":"get_hint","expct":{}}]}"#,
            r#"{"name":"n","why":"w","config":{"max_hint":1},"steps":[]}"#,
        ] {
            assert!(serde_json::from_str::<Case>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn config_maps_to_environment_variables() {
        let config: Config =
            serde_json::from_str(r#"{"max_hints":3,"secret_guard":false,"default_ttl":"PT1H"}"#).unwrap();
        let env = config.env();
        assert_eq!(env.len(), 3);
        assert_eq!(env["NUDGE_MAX_HINTS"], "3");
        assert_eq!(env["NUDGE_SECRET_GUARD"], "0");
        assert_eq!(env["NUDGE_DEFAULT_TTL"], "PT1H");
    }

    /// A file must not contain a text that looks like a live credential. Builders make such texts at run time.
    #[test]
    fn no_file_holds_a_long_hex_run() {
        for (path, text) in fs::read_dir(vectors_dir())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        {
            let mut run = 0;
            for c in text.chars() {
                run = if c.is_ascii_hexdigit() { run + 1 } else { 0 };
                assert!(run < 32, "{}", path.display());
            }
        }
    }
}
