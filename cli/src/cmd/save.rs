//! `nudge save`

use nudge::{Error, Result, SecretGuard};
use nudge_agents::running::RunningSession;
use nudge_app::committed::{self, FILE, TrustFile};
use nudge_app::files;
use nudge_app::seed;
use serde_json::{Map, Value, json};

use super::{CommandOutput, add_field, parse_value};
use crate::args::{GlobalFlags, SaveArgs};

pub fn run(args: &SaveArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let (top, repo) = seed::find_repository()?;
    let session = RunningSession::open(global)?;
    let mut params = Map::new();
    add_field(&mut params, "component", args.component.clone());
    let export: Value = parse_value(&session.call("nudge.export", &params)?)?;
    let nothing = || {
        Error::not_found(
            "No hint is stored for this repository alone; `nudge set` stores one, and `nudge save COMPONENT` takes those for everywhere, too.",
        )
    };
    let (text, count) = committed::to_file_text(&export, &repo, args.component.as_deref()).ok_or_else(nothing)?;
    let guard = SecretGuard::new();
    if let Some(line) = text.lines().find(|line| guard.check(None, line).is_some()) {
        let key = line.trim_start().split('"').nth(1).unwrap_or_default();
        let message = format!(
            "The value beside `{key}` looks like a credential, and {FILE} is for everybody; delete that hint or store it as secret."
        );
        return Err(Error::new(nudge::ErrorKind::SecretRejected, message));
    }
    let path = top.join(FILE);
    if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
        return Err(Error::invalid(format!("{FILE} is no regular file here; remove it first.")));
    }
    files::write(&path, &text)?;
    // The writer need not look at it again.
    TrustFile::open()?.set(&top, Some(text))?;
    if global.json {
        return Ok(format!("{}\n", json!({"file": path, "hints": count})).into());
    }
    let hints = if count == 1 { "1 hint".to_owned() } else { format!("{count} hints") };
    Ok(format!("{hints} written to {FILE}; commit it, and `nudge trust` loads it in another clone\n").into())
}
