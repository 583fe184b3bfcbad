//! `nudge hints`: copies the database of the kept hints, and brings a copy back.

use std::path::Path;

use nudge::{Error, Result, Service as _};
use nudge_app::kept::folder::KeptFolder;
use nudge_app::unserved::count_kept;
use serde::Deserialize;
use serde_json::{Map, json};

use super::forget::connect_keeper;
use super::{CommandOutput, ask_consent, parsed_as, to_raw};
use crate::args::{GlobalFlags, HintsAction};
use crate::output;

/// The question before a recovery, as for records.
const QUESTION: &str = "Every hint that is kept now is replaced by those of the backup; a copy is kept. Go on?";

pub fn run(action: &HintsAction, global: &GlobalFlags) -> Result<CommandOutput> {
    let folder = KeptFolder::from_settings()?;
    match action {
        HintsAction::Backup { file } => back_up(&folder, file, global),
        HintsAction::Recover { file, yes } => {
            ask_consent(*yes, QUESTION)?;
            recover(&folder, file, global)
        }
    }
}

fn back_up(folder: &KeptFolder, file: &Path, global: &GlobalFlags) -> Result<CommandOutput> {
    // Opening would create a missing database.
    if !folder.has_database() {
        return Err(Error::not_found("Nothing is kept yet, so there is nothing to copy."));
    }
    let file = to_absolute(file)?;
    let bytes = folder.open_database()?.back_up(&file)?;
    let shown = file.display().to_string();
    Ok(if global.json {
        format!("{}\n", json!({"file": shown, "bytes": bytes})).into()
    } else {
        format!("✔ {} ({bytes} bytes)\n", output::make_visible(&shown)).into()
    })
}

/// Restores a copy: through the session that keeps hints now, which then reads them, or else in the files.
fn recover(folder: &KeptFolder, file: &Path, global: &GlobalFlags) -> Result<CommandOutput> {
    #[derive(Deserialize)]
    struct RecoveredAnswer {
        hints: usize,
        replaced: Option<String>,
    }
    let file = to_absolute(file)?;
    let shown = file.display().to_string();
    let lock = folder.lock(None)?;
    let done = if lock.is_some() {
        let replaced = folder.restore_copy(&file)?.map(|path| path.display().to_string());
        RecoveredAnswer { hints: count_kept()?.map_or(0, |(count, _)| count), replaced }
    } else {
        let mut params = Map::new();
        params.insert("file".into(), shown.as_str().into());
        parsed_as(&connect_keeper(folder, global)?.call("nudge.recover", &to_raw(&params)?)?)?
    };
    let RecoveredAnswer { hints, replaced } = done;
    if global.json {
        return Ok(format!("{}\n", json!({"file": shown, "hints": hints, "replaced": replaced})).into());
    }
    let count = if hints == 1 { "1 hint".to_owned() } else { format!("{hints} hints") };
    let before = replaced.map(|path| format!("  what was there before is {}\n", output::make_visible(&path)));
    Ok(format!("✔ {count} kept, with those of {}\n{}", output::make_visible(&shown), before.unwrap_or_default()).into())
}

fn to_absolute(file: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(file).map_err(|error| Error::invalid(format!("{} is no path ({error}).", file.display())))
}
