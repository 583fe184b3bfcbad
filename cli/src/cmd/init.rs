//! `nudge init`

use nudge::Result;

use super::CommandOutput;
use crate::agents::init;
use crate::args::InitArgs;

pub fn run(args: &InitArgs) -> Result<CommandOutput> {
    init::run_init(args).map(CommandOutput::from)
}
