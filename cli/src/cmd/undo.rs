//! `nudge undo`

use nudge::{ErrorKind, Result};
use serde_json::Map;

use super::{CommandOutput, RunningSession, add, reworded};
use crate::args::{Global, Undo};
use crate::output;

pub fn run(args: &Undo, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    if args.list {
        return session.render(&session.call("nudge.deletions", &Map::new())?, output::deletions);
    }
    let mut params = Map::new();
    add(&mut params, "id", args.id);
    let undone = session.call("nudge.undo", &params).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            reworded(&error, "Nothing like that was deleted in this session; `nudge undo --list` shows what was.")
        }
        _ => error,
    })?;
    session.render(&undone, output::undone)
}
