//! `keep = true` in the user's settings: hints are kept for next time (semantics section 12).

use std::path::Path;

use nudge::Result;
use nudge_core::settings::Origin;

use super::config::{Config, Form};
use super::plan::File;
use crate::settings;

const NAME: &str = "keep";

/// Plans the change; `None` when somebody has said already whether hints are kept.
///
/// # Errors
/// `E_INVALID` for settings that make no sense; `E_UNAVAILABLE` for a file that cannot be read.
pub fn plan() -> Result<Option<File>> {
    if settings::read()?.origin(NAME) != Origin::Default {
        return Ok(None);
    }
    let Some(path) = settings::file() else { return Ok(None) };
    let mut config = Config::read(&path, Form::Toml)?;
    config.set(&[NAME], &true.into())?;
    Ok(Some(file(&config)))
}

/// Returns true where hints are kept as things stand.
pub fn is_on() -> bool {
    settings::read().is_ok_and(|values| values.is_on(NAME))
}

/// Returns true for the file that [`plan`] changes.
pub fn is_settings(path: &Path) -> bool {
    settings::file().is_some_and(|file| file == path)
}

/// Plans to take the change out of settings that somebody has changed since.
///
/// # Errors
/// As [`Config::read`].
pub fn removal(path: &Path) -> Result<Option<File>> {
    let mut config = Config::read(path, Form::Toml)?;
    if config.get(&[NAME]) != Some(true.into()) {
        return Ok(None);
    }
    config.remove(&[NAME]);
    Ok(Some(file(&config)))
}

fn file(config: &Config) -> File {
    File { path: config.path().to_owned(), before: config.before().map(str::to_owned), after: config.after() }
}
