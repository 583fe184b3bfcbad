//! `nudge call`

use nudge::{Error, Result, Service as _};
use serde_json::value::RawValue;

use super::{CommandOutput, connect_session, text_or_stdin, to_raw_output};
use crate::args::{CallArgs, GlobalFlags};

pub fn run(args: &CallArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let text = text_or_stdin(args.params.clone())?;
    let params: Box<RawValue> = serde_json::from_str(&text).map_err(|error| {
        let message = format!("The params are not JSON: {error}; write them as '{{\"component\": \"api\"}}'.");
        Error::invalid(message)
    })?;
    let method = match args.method.strip_prefix("nudge.") {
        Some(_) => args.method.clone(),
        None => format!("nudge.{}", args.method),
    };
    Ok(to_raw_output(&connect_session(global)?.call(&method, &params)?))
}
