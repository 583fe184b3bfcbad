//! `nudge status`

use nudge::Result;
use serde_json::Map;

use super::{CommandOutput, RunningSession, render_answer};
use crate::args::GlobalFlags;
use crate::output;

pub fn run(global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    render_answer(&session, &session.call("nudge.status", &Map::new())?, output::render_status)
}
