//! `nudge get`

use nudge::{Error, ErrorKind, Result};
use nudge_app::unserved::ReadSources;

use super::{CommandOutput, TextForm, add_field, open_to_read, parse_value, render_answer, to_name_params};
use crate::args::{GetArgs, GlobalFlags};
use crate::output;

pub fn run(args: GetArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = open_to_read(global, ReadSources::Hints)?;
    let mut params = to_name_params(&args.name);
    add_field(&mut params, "variant", args.variant);
    let result = session.call_here("nudge.get_hint", params, args.here.to_context())?;
    // With `--json`, the command prints the whole result, even with `--value`.
    if args.value && !global.json {
        let value = output::exact_value(&parse_value(&result)?["hint"], args.reveal);
        let hidden = || Error::new(ErrorKind::SecretRejected, "The value is marked secret; add --reveal to print it.");
        return Ok(CommandOutput { form: TextForm::Bare, ..format!("{}\n", value.ok_or_else(hidden)?).into() });
    }
    render_answer(&session, &result, |result| output::render_found(result, args.reveal))
}
