//! `nudge undo`

use nudge::Result;
use serde_json::Map;

use super::{Done, Session, add};
use crate::args::{Global, Undo};
use crate::output;

pub fn run(args: &Undo, global: &Global) -> Result<Done> {
    let session = Session::open(global)?;
    if args.list {
        return session.render(&session.call("nudge.deletions", &Map::new())?, output::deletions);
    }
    let mut params = Map::new();
    add(&mut params, "id", args.id);
    session.render(&session.call("nudge.undo", &params)?, output::undone)
}
