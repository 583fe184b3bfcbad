//! `nudge bump`

use nudge::{ErrorKind, Result};

use super::{CommandOutput, RunningSession, add, address, given};
use crate::args::{Bump, Global};
use crate::output;
use nudge_client::process_cwd;

/// Bumps a hint. Without a context flag a sole variant is bumped wherever it applies; of several variants, the
/// one that `get` returns here.
pub fn run(args: Bump, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = address(&args.name);
    add(&mut params, "delta", args.delta);
    add(&mut params, "variant", args.variant);
    let result = if given(&args.here).is_empty() {
        session.call("nudge.bump", &params).or_else(|error| match error.kind() {
            // `E_INVALID` also says that the key has several variants, where a context helps; other causes repeat.
            ErrorKind::Invalid => {
                session.call_in("nudge.bump", nudge::ContextUse::Inferred, &params, process_cwd().as_deref(), None)
            }
            _ => Err(error),
        })
    } else {
        session.call_here("nudge.bump", params, &args.here)
    }?;
    session.render(&result, output::bumped)
}
