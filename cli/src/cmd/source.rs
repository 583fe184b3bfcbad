//! `nudge SOURCE VERB`

use nudge::Result;

use super::{CommandOutput, RunningSession};
use crate::args::{Global, SourceVerb};
use crate::output;

pub fn run(call: SourceVerb, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let SourceVerb { method, params, here } = call;
    let result = match &here {
        Some(here) => session.call_here(method.name, params, here)?,
        None => session.call(method.name, &params)?,
    };
    session.render(&result, output::plain)
}
