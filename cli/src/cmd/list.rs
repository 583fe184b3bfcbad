//! `nudge ls`

use nudge::Result;
use serde_json::Map;

use super::{Done, Session, add};
use crate::args::{Global, Here, List};
use crate::output;

/// The most that a query answers with, and more than a component holds unless its limit was raised.
const LIMIT: u64 = 1000;

pub fn run(args: List, global: &Global) -> Result<Done> {
    let session = Session::open(global)?;
    let Some(component) = args.component else {
        return session.render(&session.call("nudge.list_components", &Map::new())?, output::components);
    };
    let mut params = Map::new();
    add(&mut params, "component", component);
    add(&mut params, "include_ineligible", true);
    add(&mut params, "limit", LIMIT);
    let mut result = session.call_here("nudge.query", params, &Here::default())?;
    if args.reveal {
        result = session.reveal(&result, "hints")?;
    }
    session.render(&result, |result| output::hints(result, args.reveal))
}
