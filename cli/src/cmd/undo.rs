//! `nudge undo`

use nudge::{Error, ErrorKind, Result};
use nudge_agents::running::is_unserved;
use nudge_app::kept::database::has_deletions;
use nudge_app::kept::folder::KeptFolder;
use serde_json::Map;

use super::{CommandOutput, RunningSession, add_field, render_answer};
use crate::args::{GlobalFlags, UndoArgs};
use crate::output;

pub fn run(args: &UndoArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global).map_err(|error| explain_unserved(error, global))?;
    if args.list {
        return render_answer(&session, &session.call("nudge.deletions", &Map::new())?, output::render_deletions);
    }
    let mut params = Map::new();
    add_field(&mut params, "id", args.id);
    let undone = session.call("nudge.undo", &params).map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.with_message("Nothing like that was deleted; `nudge undo --list` shows what was."),
        _ => error,
    })?;
    render_answer(&session, &undone, output::render_undone)
}

/// If no server runs, returns the error with an explanation: what a session can undo, or where a copy of the kept hints
/// is.
fn explain_unserved(error: Error, global: &GlobalFlags) -> Error {
    if !is_unserved(global, &error) {
        return error;
    }
    let folder = KeptFolder::from_settings().ok();
    let has_deletions = folder.as_ref().is_some_and(|folder| has_deletions(&folder.database_path()).unwrap_or(false));
    if has_deletions {
        return error.with_message(
            "No Nudge server is running, and only a server can undo; start one with `nudge serve --detach`, then undo again.",
        );
    }
    let gone = "No Nudge server is running, and what can be undone ended with the last session";
    match folder.and_then(|folder| folder.find_copy()) {
        Some(copy) => error.with_message(format!(
            "{gone}; `nudge hints recover {}` brings back all hints as they were kept when that copy was made.",
            copy.display()
        )),
        None => error.with_message(format!("{gone}; store the hint again.")),
    }
}
