//! `nudge why`

use nudge::Result;
use nudge_app::unserved::ReadSources;

use super::{CommandOutput, open_to_read, parse_value, render_answer, reveal_secrets, to_name_params};
use crate::args::{GlobalFlags, WhyArgs};
use crate::output;

/// Prints the explanation, even if no variant applies. The exit code is the same as that of `get`.
pub fn run(args: &WhyArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = open_to_read(global, ReadSources::Hints)?;
    let mut result = session.call_here("nudge.why", to_name_params(&args.name), args.here.to_context())?;
    if args.reveal {
        result = reveal_secrets(&session, &result, "variants")?;
    }
    let chosen = parse_value(&result)?["variants"][0]["match_explain"]["matched"] == true;
    let done = render_answer(&session, &result, |result| output::render_why(result, args.reveal))?;
    Ok(CommandOutput { code: u8::from(!chosen), ..done })
}
