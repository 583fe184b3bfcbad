//! `nudge delete`

use nudge::Result;
use serde_json::Value;

use super::{CommandOutput, RunningSession, add, address};
use crate::args::{Delete, Global};
use crate::output;

pub fn run(args: Delete, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = address(&args.name);
    add(&mut params, "variant", args.variant);
    add(&mut params, "all", args.all.then_some(Value::Bool(true)));
    session.render(&session.call("nudge.delete_hint", &params)?, output::deleted)
}
