//! `nudge export`

use nudge::{Error, Result};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{CommandOutput, Form, RunningSession, add, json};
use crate::args::{Export, Global};

#[derive(Deserialize)]
struct Exported {
    payload: Box<RawValue>,
    omitted_secrets: u64,
}

/// Prints only the payload, indented, as people read and edit it.
pub fn run(args: Export, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = Map::new();
    add(&mut params, "format", args.format);
    add(&mut params, "component", args.component);
    add(&mut params, "include_secrets", args.include_secrets.then_some(Value::Bool(true)));
    let result = session.call("nudge.export", &params)?;
    if global.json {
        return Ok(json(&result));
    }
    let broken = |_| Error::unavailable("The server answered something else than an export; update it.");
    let result: Exported = serde_json::from_str(result.get()).map_err(broken)?;
    if result.omitted_secrets > 0 {
        let what = if result.omitted_secrets == 1 {
            "1 secret is".into()
        } else {
            format!("{} secrets are", result.omitted_secrets)
        };
        super::tell(&format!("{what} left out; add --include-secrets to export them too"));
    }
    let mut out = Vec::with_capacity(result.payload.get().len() * 2);
    // Transcoding token by token keeps duplicate keys and the spelling of numbers, which a parsed value would lose.
    let mut from = serde_json::Deserializer::from_str(result.payload.get());
    serde_transcode::transcode(&mut from, &mut serde_json::Serializer::pretty(&mut out)).map_err(broken)?;
    out.push(b'\n');
    Ok(CommandOutput { form: Form::Json, ..String::from_utf8_lossy(&out).into_owned().into() })
}
