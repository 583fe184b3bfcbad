//! `nudge stop`

use nudge::{Error, ErrorKind, Result, Service as _};
use nudge_agents::running::is_unserved;
use nudge_client::RuntimeDir;
use serde_json::Map;

use super::{CommandOutput, connect_session, parsed_as, to_raw, to_raw_output};
use crate::args::GlobalFlags;
use crate::output;

/// Ends the session by a call to the server, never by a signal to a process id from a file.
pub fn run(global: &GlobalFlags) -> Result<CommandOutput> {
    let none = to_raw(&Map::new())?;
    let dir = RuntimeDir::open(global.runtime_dir.as_deref()).map_err(|error| without_server(error, global))?;
    let server = dir.read_server_file();
    match connect_session(global).and_then(|remote| remote.call("nudge.shutdown", &none)) {
        Ok(stopping) => {
            // If the server is slow to end, its session has ended all the same.
            let _ = server.is_none_or(|server| dir.wait_for_end(&server));
            Ok(if global.json {
                to_raw_output(&stopping)
            } else {
                output::render_stopped(&parsed_as(&stopping)?).into()
            })
        }
        Err(error) => {
            // Without a PRIMARY, no server answers. The command then ends the session through the session's files.
            if error.kind() != ErrorKind::Unavailable || !dir.end_forsaken()? {
                return Err(without_server(error, global));
            }
            Ok(if global.json { "{\"stopping\":true}\n" } else { "stopped\n" }.to_owned().into())
        }
    }
}

/// Says that there is nothing to stop where no server runs; advice to start one would be of no use.
fn without_server(error: Error, global: &GlobalFlags) -> Error {
    if !is_unserved(global, &error) {
        return error;
    }
    error.with_message("No Nudge server is running, so there is nothing to stop.")
}
