//! `nudge stats`

use nudge::Result;
use nudge_app::unserved::ReadSources;
use serde_json::Map;

use super::{CommandOutput, open_to_read, render_answer};
use crate::args::GlobalFlags;
use crate::output;

pub fn run(global: &GlobalFlags) -> Result<CommandOutput> {
    let session = open_to_read(global, ReadSources::Hints)?;
    let answer = session.call("nudge.stats", &Map::new())?;
    render_answer(&session, &answer, |stats| output::render_stats(stats, session.is_unserved))
}
