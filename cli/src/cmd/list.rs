//! `nudge ls`

use nudge::Result;
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, add, parsed, tell};
use crate::args::{ContextFlags, Global, List};
use crate::output;

/// Largest number of hints that a query returns; a component holds fewer unless its limit was raised.
const LIMIT: u64 = 1000;
const TOO_MANY: u64 = LIMIT + 1;

pub fn run(args: List, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let Some(component) = args.component else {
        return session.render(&session.call("nudge.list_components", &Map::new())?, output::components);
    };
    let mut params = Map::new();
    add(&mut params, "component", component.clone());
    add(&mut params, "include_ineligible", true);
    add(&mut params, "limit", LIMIT);
    let mut result = session.call_here("nudge.query", params, &ContextFlags::default())?;
    let rows = |result: &Value| result["hints"].as_array().map_or(0, Vec::len);
    if rows(&parsed(&result)?) as u64 == LIMIT {
        let all = parsed(&session.call("nudge.list_components", &Map::new())?)?;
        let row = all["components"].as_array().into_iter().flatten().find(|row| row["name"] == *component);
        if let Some(count @ TOO_MANY..) = row.and_then(|row| row["hint_count"].as_u64()) {
            tell(&format!("only {LIMIT} of {count} hints are shown; `nudge query --component` finds the others"));
        }
    }
    if args.reveal {
        result = session.reveal(&result, "hints")?;
    }
    session.render(&result, |result| output::hints(result, args.reveal))
}
