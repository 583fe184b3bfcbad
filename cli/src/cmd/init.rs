//! `nudge init`

use nudge::Result;

use super::Done;
use crate::agents::init;
use crate::args::Init;

pub fn run(args: &Init) -> Result<Done> {
    init::run(args).map(Done::from)
}
