//! Plans the changes of `nudge init` in the user's own settings. They concern hints that outlive a session (semantics
//! section 12), records (section 17), the capture of sessions (section 19), and learning (section 20).

use std::path::Path;

use nudge::{Error, Result};
use nudge_app::config::{ConfigFile, ConfigFormat};
use nudge_app::{settings, sources};
use nudge_core::settings::ValueOrigin;
use serde_json::Value;

use super::plan::FileChange;

/// The setting that keeps hints for later sessions.
const KEEP: &str = "keep";
/// The setting that offers the tools of records.
const RECORDS: &str = "records.on";
/// The setting that decides when an agent is reminded that it has saved no record.
const CAPTURE: &str = "records.capture";
/// The setting that captures notes from ended sessions.
const SESSIONS: &str = "capture";
/// The setting that makes hints from commands that worked after similar commands had failed.
const LEARN: &str = "learn";

/// A change of the settings that the user may agree to.
#[derive(Debug, Clone, PartialEq)]
pub struct KeepChoice {
    /// The question to ask the user.
    pub question: &'static str,
    /// True when a flag makes the choice, so the user is not asked.
    pub said: bool,
    values: Vec<(&'static str, Value)>,
}

/// Lists the choices that the user has not made yet. `capture` is the flag's choice for records. `sessions` is true for
/// a flag that captures ended sessions, `learn` for a flag that learns commands. These two stay off without their
/// flags, and the user is not asked about them.
///
/// # Errors
/// `E_INVALID` for settings that are not valid; `E_UNAVAILABLE` when sessions are to be captured but no brain is set.
pub fn list_open_choices(capture: Option<&str>, sessions: bool, learn: bool) -> Result<Vec<KeepChoice>> {
    let values = settings::read()?;
    if sessions && sources::capture::find_brain_root(&values).is_none() {
        return Err(Error::unavailable("Sessions go into a brain; `nudge brain use DIR` names yours first."));
    }
    let is_open = |name: &str| values.get_origin(name) == ValueOrigin::Default;
    let mut choices = Vec::new();
    if is_open(KEEP) {
        let question = "Keep hints for next time?";
        choices.push(KeepChoice { question, said: false, values: vec![(KEEP, true.into())] });
    }
    if capture.is_some() || is_open(RECORDS) {
        let question = "Keep records of what was fixed, decided and planned, for all projects?";
        let mut wanted = vec![(RECORDS, true.into())];
        wanted.extend(capture.map(|when| (CAPTURE, when.into())));
        let differs = |(name, value): &(&str, Value)| match value {
            Value::Bool(on) => is_open(name) || values.is_on(name) != *on,
            value => values.get_text(name) != value,
        };
        wanted.retain(differs);
        if !wanted.is_empty() {
            choices.push(KeepChoice { question, said: capture.is_some(), values: wanted });
        }
    }
    if sessions && !values.is_on(SESSIONS) {
        let question = "Have a model read sessions that end, for what is worth knowing?";
        choices.push(KeepChoice { question, said: true, values: vec![(SESSIONS, true.into())] });
    }
    if learn && !values.is_on(LEARN) {
        let question = "Learn which commands work where near ones failed?";
        choices.push(KeepChoice { question, said: true, values: vec![(LEARN, true.into())] });
    }
    Ok(choices)
}

/// Plans the change of the settings file. Returns `None` when there are no choices.
///
/// # Errors
/// `E_INVALID` for a file that cannot be changed; `E_UNAVAILABLE` for a file that cannot be read.
pub fn plan_settings(choices: &[KeepChoice]) -> Result<Option<FileChange>> {
    let Some(path) = settings::file_path().filter(|_| !choices.is_empty()) else { return Ok(None) };
    let mut config = ConfigFile::read(&path, ConfigFormat::Toml)?;
    for (name, value) in choices.iter().flat_map(|choice| &choice.values) {
        config.set(&to_path(name), value)?;
    }
    Ok(Some(to_file_change(&config)))
}

/// Returns true when hints are kept once these choices are applied.
pub fn is_on(made: &[KeepChoice]) -> bool {
    made.iter().flat_map(|choice| &choice.values).any(|(name, _)| *name == KEEP)
        || settings::read().is_ok_and(|values| values.is_on(KEEP))
}

/// Returns true for the file that [`plan_settings`] changes.
pub fn is_settings(path: &Path) -> bool {
    settings::file_path().is_some_and(|file| file == path)
}

/// Plans the removal of the settings from a file that has changed since Nudge wrote it.
///
/// # Errors
/// The errors of [`ConfigFile::read`].
pub fn plan_removal(path: &Path) -> Result<Option<FileChange>> {
    let mut config = ConfigFile::read(path, ConfigFormat::Toml)?;
    let made: Vec<_> = [KEEP, RECORDS, SESSIONS, LEARN]
        .into_iter()
        .filter(|name| config.get(&to_path(name)) == Some(true.into()))
        .collect();
    if made.is_empty() {
        return Ok(None);
    }
    for name in made.into_iter().chain([CAPTURE]) {
        config.remove(&to_path(name));
    }
    Ok(Some(to_file_change(&config)))
}

/// Returns the path of a setting in the file, one name for each level.
fn to_path(name: &str) -> Vec<&str> {
    name.split('.').collect()
}

fn to_file_change(config: &ConfigFile) -> FileChange {
    FileChange { path: config.path().to_owned(), before: config.before().map(str::to_owned), after: config.to_text() }
}
