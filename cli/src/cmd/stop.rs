//! `nudge stop`

use nudge::{ErrorKind, Result};
use nudge_client::RuntimeDir;

use super::{CommandOutput, connect};
use crate::args::Global;

/// Ends the session by a call to the server, never by a signal to a pid that a file names.
pub fn run(global: &Global) -> Result<CommandOutput> {
    if let Err(error) = connect(global).and_then(|remote| remote.shutdown()) {
        let dir = RuntimeDir::open(global.runtime_dir.as_deref())?;
        // Without a PRIMARY nobody answers the call, and the session is ended through its files.
        if error.kind() != ErrorKind::Unavailable || !dir.end_forsaken()? {
            return Err(error);
        }
    }
    Ok(if global.json { "{\"stopping\":true}\n" } else { "stopped\n" }.to_owned().into())
}
