//! `nudge stop`

use nudge::Result;

use super::connect;
use crate::args::Global;

pub fn run(global: &Global) -> Result<String> {
    connect(global)?.shutdown()?;
    Ok(if global.json { "{\"stopped\":true}\n".into() } else { "stopped\n".into() })
}
