//! `nudge status`

use nudge::Result;
use serde_json::Map;

use super::{call, render};
use crate::args::Global;
use crate::output;

pub fn run(global: &Global) -> Result<String> {
    render(global, &call(global, "nudge.status", Map::new(), None)?, output::status)
}
