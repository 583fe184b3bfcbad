//! `nudge status`

use nudge::{Error, Result};
use nudge_agents::running::is_unserved;
use nudge_app::unserved::count_kept;
use nudge_app::wire::to_raw;
use serde_json::{Map, json};

use super::{CommandOutput, RunningSession, render_answer, to_raw_output};
use crate::args::GlobalFlags;
use crate::output;

pub fn run(global: &GlobalFlags) -> Result<CommandOutput> {
    match RunningSession::open(global) {
        Ok(session) => render_answer(&session, &session.call("nudge.status", &Map::new())?, output::render_status),
        Err(error) if is_unserved(global, &error) => show_kept(error, global),
        Err(error) => Err(error),
    }
}

/// Shows the kept hints. The exit code still says that no server runs.
fn show_kept(refused: Error, global: &GlobalFlags) -> Result<CommandOutput> {
    let code = output::exit_code(&refused);
    let (hints, file) = count_kept()?.ok_or(refused)?;
    let shown = if global.json {
        to_raw_output(&to_raw(&json!({"running": false, "keeping": {"hints": hints, "file": file}}))?)
    } else {
        output::render_unserved(hints as u64, &file).into()
    };
    Ok(CommandOutput { code, ..shown })
}
