//! `nudge init`

use nudge::Result;

use super::CommandOutput;
use crate::agents::init;
use crate::args::Init;

pub fn run(args: &Init) -> Result<CommandOutput> {
    init::run(args).map(CommandOutput::from)
}
