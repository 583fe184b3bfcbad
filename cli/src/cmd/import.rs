//! `nudge import`

use std::fs::File;
use std::io::{IsTerminal as _, Read as _, stderr, stdin};

use nudge::{Error, Result, Service as _};
use serde::Serialize;
use serde_json::Map;
use serde_json::value::RawValue;

use super::{CommandOutput, RunningSession, ask, parsed, raw, text_or_stdin};
use crate::args::{Global, Import, Mode};
use crate::output;
use crate::server::MAX_BODY_BYTES;

/// Most that is read of a file; a server takes no larger body.
const MAX_PAYLOAD_BYTES: u64 = MAX_BODY_BYTES as u64;

/// Params of `nudge.import`. The payload is raw JSON text, which keeps key order, duplicate keys and numbers.
#[derive(Serialize)]
struct Params<'a> {
    payload: &'a RawValue,
    mode: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_secret: bool,
}

pub fn run(args: &Import, global: &Global) -> Result<CommandOutput> {
    let (text, name) = match &*args.file {
        "-" => (text_or_stdin("-".into())?, "Standard input"),
        file => {
            let mut text = String::new();
            // The caller names it, so it may be a pipe.
            let read = File::open(file).and_then(|file| file.take(MAX_PAYLOAD_BYTES).read_to_string(&mut text));
            let wrong =
                |error| invalid(format!("{file} cannot be read: {error}; name a file that `nudge export` wrote."));
            read.map_err(wrong)?;
            (text, file)
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        invalid(format!("{name} is not JSON: {error}; correct it or write it anew with `nudge export`."))
    })?;
    let mode = if args.mode == Mode::Merge { "merge" } else { "replace" };
    let params = Params { payload: inner(whole).unwrap_or(whole), mode, allow_secret: args.allow_secret };
    let session = RunningSession::open(global)?;
    if args.mode == Mode::Replace && !args.yes {
        agree_to_replace(&session, args)?;
    }
    session.render(&session.remote.call("nudge.import", &raw(&params)?)?, output::imported)
}

/// Asks whoever sits at a terminal before what is stored is removed. Scripts are not asked: they have said it.
fn agree_to_replace(session: &RunningSession, args: &Import) -> Result<()> {
    if args.file == "-" || !stdin().is_terminal() || !stderr().is_terminal() {
        return Ok(());
    }
    let hints = parsed(&session.call("nudge.status", &Map::new())?)?["hints"].as_u64().unwrap_or_default();
    let is = if hints == 1 { "1 hint is" } else { &format!("{hints} hints are") };
    let is_fine = hints == 0 || ask(&format!("{is} stored, and --mode replace removes all. Go on?"));
    if is_fine { Ok(()) } else { Err(invalid("Nothing was changed.".into())) }
}

/// Returns the payload of a whole `export --json` result.
fn inner(whole: &RawValue) -> Option<&RawValue> {
    let members: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(whole.get()).ok()?;
    if members.contains_key("components") { None } else { members.get("payload").copied() }
}

fn invalid(message: String) -> Error {
    Error::invalid(message)
}
