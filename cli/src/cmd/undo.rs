//! `nudge undo`

use nudge::{Error, ErrorKind, Result};
use nudge_agents::running::is_unserved;
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
        ErrorKind::NotFound => {
            error.with_message("Nothing like that was deleted in this session; `nudge undo --list` shows what was.")
        }
        _ => error,
    })?;
    render_answer(&session, &undone, output::render_undone)
}

/// If no server runs, returns the error with an explanation: the deletions of a session end with it, but a copy of the
/// kept hints may have the hint.
fn explain_unserved(error: Error, global: &GlobalFlags) -> Error {
    if !is_unserved(global, &error) {
        return error;
    }
    let gone = "No Nudge server is running, and what can be undone ended with the last session";
    match KeptFolder::from_settings().ok().and_then(|folder| folder.find_copy()) {
        Some(copy) => error.with_message(format!(
            "{gone}; `nudge hints recover {}` brings back all hints as they were kept when that copy was made.",
            copy.display()
        )),
        None => error.with_message(format!("{gone}; store the hint again.")),
    }
}
