//! `nudge call`

use nudge::{Error, Result, Service as _};
use serde_json::value::RawValue;

use super::{CommandOutput, connect, json, text_or_stdin};
use crate::args::{Call, Global};

pub fn run(args: &Call, global: &Global) -> Result<CommandOutput> {
    let text = text_or_stdin(args.params.clone())?;
    let params: Box<RawValue> = serde_json::from_str(&text).map_err(|error| {
        let message = format!("The params are not JSON: {error}; write them as '{{\"component\": \"api\"}}'.");
        Error::invalid(message)
    })?;
    let method = match args.method.strip_prefix("nudge.") {
        Some(_) => args.method.clone(),
        None => format!("nudge.{}", args.method),
    };
    Ok(json(&connect(global)?.call(&method, &params)?))
}
