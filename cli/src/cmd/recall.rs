//! `nudge recall`

use nudge::Result;
use serde_json::Map;

use super::{CommandOutput, RunningSession, add};
use crate::args::{Global, Recall};
use crate::output;

pub fn run(args: &Recall, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = Map::new();
    add(&mut params, "query", args.words.join(" "));
    add(&mut params, "limit", args.limit);
    add(&mut params, "max_bytes", args.max_bytes);
    add(&mut params, "sources", args.sources.clone());
    let result = session.call_here("nudge.recall", params, &args.here)?;
    session.render(&result, output::recalled)
}
