//! `nudge stop`

use nudge::Result;

use super::{Done, connect};
use crate::args::Global;

/// By a call to the server, never by a signal to a pid that a file names.
pub fn run(global: &Global) -> Result<Done> {
    connect(global)?.shutdown()?;
    Ok(if global.json { "{\"stopping\":true}\n" } else { "stopped\n" }.to_owned().into())
}
