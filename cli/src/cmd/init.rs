//! `nudge init`

use nudge::Result;
use nudge_agents::init;

use super::CommandOutput;
use crate::args::InitArgs;

pub fn run(args: &InitArgs) -> Result<CommandOutput> {
    init::run_init(args).map(CommandOutput::from)
}
