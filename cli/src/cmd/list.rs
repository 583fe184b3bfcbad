//! `nudge ls`

use nudge::{Error, Result};
use nudge_core::near::nearest;
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, add, parsed, tell};
use crate::args::{ContextFlags, Global, List};
use crate::output;
use crate::server::session::learn::LEARNED;

/// Largest number of hints that a query returns; a component holds fewer unless its limit was raised.
const LIMIT: u64 = 1000;
const TOO_MANY: u64 = LIMIT + 1;
/// Most hints that are listed without a component; of more, the components say more.
const FEW: u64 = 20;

pub fn run(args: List, global: &Global) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    if args.learned {
        let mut params = everything(None);
        add(&mut params, "tags", vec![LEARNED.to_owned()]);
        let learned = session.call_here("nudge.query", params, &ContextFlags::default())?;
        if parsed(&learned)?["hints"].as_array().is_some_and(Vec::is_empty) && !session.json {
            tell("nothing was learned; `nudge init --learn` switches it on, for agents that have hooks");
        }
        return session.render(&learned, output::all_hints);
    }
    let Some(component) = args.component else {
        let all = session.call("nudge.list_components", &Map::new())?;
        let hints = counts(&parsed(&all)?).map(|(_, count)| count).sum::<u64>();
        if session.json || !(1..=FEW).contains(&hints) {
            return session.render(&all, output::components);
        }
        let all = session.call_here("nudge.query", everything(None), &ContextFlags::default())?;
        return session.render(&all, output::all_hints);
    };
    let mut result = session.call_here("nudge.query", everything(Some(&component)), &ContextFlags::default())?;
    let rows = parsed(&result)?["hints"].as_array().map_or(0, Vec::len) as u64;
    if rows == LIMIT || rows == 0 {
        match stored_in(&session, &component)? {
            Ok(stored @ TOO_MANY..) => {
                tell(&format!("only {LIMIT} of {stored} hints are shown; `nudge query --component` finds the others"));
            }
            Err(error) if !session.json => return Err(error),
            _ => {}
        }
    }
    if args.reveal {
        result = session.reveal(&result, "hints")?;
    }
    session.render(&result, |result| output::hints(result, args.reveal))
}

/// Params for every hint, or every one of a component.
fn everything(component: Option<&str>) -> Map<String, Value> {
    let mut params = Map::new();
    add(&mut params, "component", component);
    add(&mut params, "include_ineligible", true);
    add(&mut params, "limit", LIMIT);
    params
}

/// The components of a result, each with its number of hints.
fn counts(all: &Value) -> impl Iterator<Item = (&str, u64)> {
    let rows = all["components"].as_array().into_iter().flatten();
    rows.filter_map(|row| Some((row["name"].as_str()?, row["hint_count"].as_u64()?)))
}

/// The number of hints of a component; where it is not stored, a refusal that leads on to one that is.
///
/// # Errors
/// The server's, when it cannot be asked.
pub(super) fn stored_in(session: &RunningSession, component: &str) -> Result<Result<u64>> {
    let all = parsed(&session.call("nudge.list_components", &Map::new())?)?;
    if let Some((_, count)) = counts(&all).find(|(name, _)| *name == component) {
        return Ok(Ok(count));
    }
    let lead = match nearest(component, counts(&all).map(|(name, _)| name)) {
        Some(near) => format!("did you mean {near}?"),
        None => "`nudge ls` lists those that there are.".into(),
    };
    Ok(Err(Error::not_found(format!("No such component is stored; {lead}"))))
}
