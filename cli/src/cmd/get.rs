//! `nudge get`

use nudge::{Error, ErrorKind, Result};

use super::{CommandOutput, Form, RunningSession, add, address, parsed};
use crate::args::{Get, Global};
use crate::output;

pub fn run(args: Get, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = address(&args.name);
    add(&mut params, "variant", args.variant);
    let result = session.call_here("nudge.get_hint", params, &args.here)?;
    // With `--json` the whole result is printed, not only the value.
    if args.value && !global.json {
        let value = output::exact_value(&parsed(&result)?["hint"], args.reveal);
        let hidden = || Error::new(ErrorKind::SecretRejected, "The value is marked secret; add --reveal to print it.");
        return Ok(CommandOutput { form: Form::Bare, ..format!("{}\n", value.ok_or_else(hidden)?).into() });
    }
    session.render(&result, |result| output::found(result, args.reveal))
}
