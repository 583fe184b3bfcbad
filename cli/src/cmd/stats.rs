//! `nudge stats`

use nudge::Result;
use serde_json::Map;

use super::{CommandOutput, RunningSession};
use crate::args::Global;
use crate::output;

pub fn run(global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    session.render(&session.call("nudge.stats", &Map::new())?, output::stats)
}
