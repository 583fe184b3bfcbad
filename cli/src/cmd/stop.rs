//! `nudge stop`

use nudge::{ErrorKind, Result, Service as _};
use nudge_client::RuntimeDir;
use serde_json::Map;

use super::{CommandOutput, connect, json, parsed, raw};
use crate::args::Global;
use crate::output;

/// Ends the session by a call to the server, never by a signal to a pid that a file names.
pub fn run(global: &Global) -> Result<CommandOutput> {
    let none = raw(&Map::new())?;
    match connect(global).and_then(|remote| remote.call("nudge.shutdown", &none)) {
        Ok(stopping) if global.json => Ok(json(&stopping)),
        Ok(stopping) => Ok(output::stopped(&parsed(&stopping)?).into()),
        Err(error) => {
            let dir = RuntimeDir::open(global.runtime_dir.as_deref())?;
            // Without a PRIMARY nobody answers the call, and the session is ended through its files.
            if error.kind() != ErrorKind::Unavailable || !dir.end_forsaken()? {
                return Err(error);
            }
            Ok(if global.json { "{\"stopping\":true}\n" } else { "stopped\n" }.to_owned().into())
        }
    }
}
