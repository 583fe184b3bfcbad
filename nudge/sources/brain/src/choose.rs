//! `nudge brain use` writes the folder of the brain into the user's own settings. No method does this, because a caller
//! over MCP or HTTP must not choose the brain.

use std::path::{Path, PathBuf};

use nudge_core::context::Context;
use nudge_core::error::{Error, Result};
use nudge_core::source::CommandHost;
use nudge_core::wire;
use serde_json::json;
use serde_json::value::RawValue;

use crate::config::BrainConfig;
use crate::folder::BrainFolder;
use crate::method::BrainUseParams;

/// Runs `nudge brain use`.
///
/// # Errors
/// `E_NOT_FOUND` when the folder does not exist; else the reason why the setting cannot be written.
pub fn set_brain(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let BrainUseParams { dir, context } = wire::parse_params(params)?;
    let folder = BrainFolder::open(&resolve_folder(dir.as_deref(), &context.build()?)?)?;
    let unwritable = || Error::invalid("The path of the folder is no UTF-8 text; rename it.");
    let root = folder.path().to_str().ok_or_else(unwritable)?;
    let units = folder.list_files(&BrainConfig::load(folder.path()), None).map_or(0, |walked| walked.files.len());
    (host.keep)("brain.root", root)?;
    let (unit, next) = match units {
        1 => ("unit", "`nudge ask WORDS` asks it"),
        0 => ("units", "`nudge brain add TITLE BODY` writes the first"),
        _ => ("units", "`nudge ask WORDS` asks it"),
    };
    let line = format!("✔ {root} is your brain now, of {units} {unit}; {next}");
    (host.say)(&line, &json!({"root": root, "units": units}));
    Ok(())
}

/// Returns the folder that a caller names by `dir`, relative to the caller's folder. Without `dir`, returns the
/// caller's folder.
///
/// # Errors
/// `E_INVALID` when the result would not be an absolute path.
pub fn resolve_folder(dir: Option<&str>, context: &Context) -> Result<PathBuf> {
    let place = match (dir, context.cwd()) {
        (Some(dir), Some(cwd)) => Path::new(cwd).join(dir),
        (Some(dir), None) => dir.into(),
        (None, Some(cwd)) => cwd.into(),
        (None, None) => PathBuf::new(),
    };
    let refused = || Error::invalid("`dir` must be a folder, as a whole path or from where you are.").about("dir");
    Some(place).filter(|place| place.is_absolute()).ok_or_else(refused)
}
