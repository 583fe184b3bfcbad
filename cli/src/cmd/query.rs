//! `nudge query`

use nudge::Result;
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, add};
use crate::args::{Global, Query};
use crate::output;

pub fn run(args: Query, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = Map::new();
    add(&mut params, "component", args.component);
    add(&mut params, "keys", args.keys);
    add(&mut params, "tags", args.tags);
    add(&mut params, "regex", args.regex);
    add(&mut params, "limit", args.limit);
    add(&mut params, "include_ineligible", args.all.then_some(Value::Bool(true)));
    let mut result = session.call_here("nudge.query", params, &args.here)?;
    if args.reveal {
        result = session.reveal(&result, "hints")?;
    }
    session.render(&result, |result| output::rows(result, args.reveal))
}
