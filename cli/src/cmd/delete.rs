//! `nudge delete`

use nudge::Result;
use serde_json::Value;

use super::{CommandOutput, RunningSession, add_field, render_answer, to_name_params};
use crate::args::{DeleteArgs, GlobalFlags};
use crate::output;

pub fn run(args: DeleteArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = to_name_params(&args.name);
    add_field(&mut params, "variant", args.variant);
    add_field(&mut params, "all", args.all.then_some(Value::Bool(true)));
    render_answer(&session, &session.call("nudge.delete_hint", &params)?, output::render_deleted)
}
