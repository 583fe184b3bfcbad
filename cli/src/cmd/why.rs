//! `nudge why`

use nudge::Result;

use super::{CommandOutput, RunningSession, address, parsed};
use crate::args::{Global, Why};
use crate::output;

/// Prints the explanation, also when no variant fits; the exit code is that of `get`.
pub fn run(args: &Why, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut result = session.call_here("nudge.why", address(&args.name), &args.here)?;
    if args.reveal {
        result = session.reveal(&result, "variants")?;
    }
    let chosen = parsed(&result)?["variants"][0]["match_explain"]["matched"] == true;
    let done = session.render(&result, |result| output::why(result, args.reveal))?;
    Ok(CommandOutput { code: u8::from(!chosen), ..done })
}
