//! `nudge bump`

use nudge::{ErrorKind, Result};
use nudge_client::process_cwd;

use super::{CommandOutput, RunningSession, add_field, render_answer, to_name_params};
use crate::args::{BumpArgs, GlobalFlags};
use crate::output;

/// Bumps a hint. Without a context flag it bumps the only variant, even if that does not apply here; of several
/// variants, it bumps the one that `get` returns here.
pub fn run(args: BumpArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = to_name_params(&args.name);
    add_field(&mut params, "delta", args.delta);
    add_field(&mut params, "variant", args.variant);
    let result = if args.here.to_context().is_empty() {
        session.call("nudge.bump", &params).or_else(|error| match error.kind() {
            // `E_INVALID` may mean that there are several variants, and then a context helps. Any other cause leads
            // to the same error again.
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
