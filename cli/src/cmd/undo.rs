//! `nudge undo`

use nudge::{ErrorKind, Result};
use serde_json::Map;

use super::{CommandOutput, RunningSession, add_field, render_answer};
use crate::args::{GlobalFlags, UndoArgs};
use crate::output;

pub fn run(args: &UndoArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
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
