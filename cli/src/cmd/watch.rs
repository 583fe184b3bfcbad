//! `nudge watch`

use nudge::Result;
use serde_json::{Map, Value};

use super::{Done, Session, add, parsed, print, tell};
use crate::args::{Global, Watch};
use crate::output;

/// How long the server may keep a call waiting.
const WAIT_S: f64 = 5.0;

/// Prints changes until stdout closes or the server ends.
pub fn run(args: &Watch, global: &Global) -> Result<Done> {
    let session = Session::open(global)?;
    let mut next = parsed(&session.call("nudge.changes", &Map::new())?)?["next"].clone();
    loop {
        let mut params = Map::new();
        add(&mut params, "since", next);
        add(&mut params, "wait_s", WAIT_S);
        let answer = parsed(&session.call("nudge.changes", &params)?)?;
        if let Some(missed @ 1..) = answer["missed"].as_u64() {
            tell(&format!("{missed} changes came too fast and are not shown"));
        }
        for change in answer["changes"].as_array().into_iter().flatten().filter(|change| wanted(change, args)) {
            let line = if global.json { format!("{change}\n") } else { output::change(change) };
            if !print(&line, global.json).is_ok_and(|open| open) {
                return Ok(String::new().into());
            }
        }
        next = answer["next"].clone();
    }
}

/// A change of many hints at once names no component.
fn wanted(change: &Value, args: &Watch) -> bool {
    args.component.as_deref().is_none_or(|component| change.get("component").is_none_or(|name| name == component))
}
