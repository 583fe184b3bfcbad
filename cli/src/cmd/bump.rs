//! `nudge bump`

use nudge::{ErrorKind, Result};
use nudge_client::process_cwd;

use super::{CommandOutput, RunningSession, add_field, render_answer, to_name_params};
use crate::args::{BumpArgs, GlobalFlags};
use crate::output;

/// Bumps a hint. Without a flag for the context, bumps the only variant, even if it does not apply here. If there are
/// several variants, bumps the variant that `get` returns here.
pub fn run(args: BumpArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = to_name_params(&args.name);
    add_field(&mut params, "delta", args.delta);
    add_field(&mut params, "variant", args.variant);
    let result = if args.here.to_context().is_empty() {
        session.call("nudge.bump", &params).or_else(|error| match error.kind() {
            // `E_INVALID` may mean that the key has several variants; the context then selects one. After another
            // cause, the second call returns the same error.
            ErrorKind::Invalid => {
                session.call_in("nudge.bump", nudge::ContextUse::Inferred, &params, process_cwd().as_deref(), None)
            }
            _ => Err(error),
        })
    } else {
        session.call_here("nudge.bump", params, args.here.to_context())
    }?;
    render_answer(&session, &result, output::render_bumped)
}
