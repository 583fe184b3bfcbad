//! `nudge ls`

use nudge::{Error, Result};
use nudge_app::unserved::ReadSources;
use nudge_core::near::find_nearest;
use nudge_server::session::learn::LEARNED;
use serde_json::{Map, Value};

use super::{
    CommandOutput, RunningSession, add_field, open_to_read, parse_value, print_note, render_answer, reveal_secrets,
};
use crate::args::{GlobalFlags, ListArgs};
use crate::output;

/// The most hints that a query returns. A component has fewer hints, unless the user has raised its limit.
const LIMIT: u64 = 1000;
const TOO_MANY: u64 = LIMIT + 1;
/// Without a component, the command lists at most this many hints. If there are more, it lists the components.
const FEW: u64 = 20;

pub fn run(args: ListArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = open_to_read(global, ReadSources::Hints)?;
    if args.learned {
        let mut params = query_params(None);
        add_field(&mut params, "tags", vec![LEARNED.to_owned()]);
        let learned = session.call_here("nudge.query", params, Map::new())?;
        if parse_value(&learned)?["hints"].as_array().is_some_and(Vec::is_empty) && !session.json {
            print_note("nothing was learned; `nudge init --learn` switches it on, for agents that have hooks");
        }
        return render_answer(&session, &learned, output::all_hints);
    }
    let Some(component) = args.component else {
        let all = session.call("nudge.list_components", &Map::new())?;
        let hints = read_counts(&parse_value(&all)?).map(|(_, count)| count).sum::<u64>();
        if session.json || !(1..=FEW).contains(&hints) {
            return render_answer(&session, &all, output::render_components);
        }
        let all = session.call_here("nudge.query", query_params(None), Map::new())?;
        return render_answer(&session, &all, output::all_hints);
    };
    let mut result = session.call_here("nudge.query", query_params(Some(&component)), Map::new())?;
    let rows = parse_value(&result)?["hints"].as_array().map_or(0, Vec::len) as u64;
    if rows == LIMIT || rows == 0 {
        match stored_in(&session, &component)? {
            Ok(stored @ TOO_MANY..) => {
                print_note(&format!(
                    "only {LIMIT} of {stored} hints are shown; `nudge query --component` finds the others"
                ));
            }
            Err(error) if !session.json => return Err(error),
            _ => {}
        }
    }
    if args.reveal {
        result = reveal_secrets(&session, &result, "hints")?;
    }
    render_answer(&session, &result, |result| output::render_hints(result, args.reveal))
}

/// Returns params for all hints of a component, or of every component.
fn query_params(component: Option<&str>) -> Map<String, Value> {
    let mut params = Map::new();
    add_field(&mut params, "component", component);
    add_field(&mut params, "include_ineligible", true);
    add_field(&mut params, "limit", LIMIT);
    params
}

/// Lists the components of a result, each with its number of hints.
fn read_counts(all: &Value) -> impl Iterator<Item = (&str, u64)> {
    let rows = all["components"].as_array().into_iter().flatten();
    rows.filter_map(|row| Some((row["name"].as_str()?, row["hint_count"].as_u64()?)))
}

/// Returns the number of hints of a component. If the component is not stored, returns an error that names a similar
/// component.
///
/// # Errors
/// The server's error when the call fails.
pub(super) fn stored_in(session: &RunningSession, component: &str) -> Result<Result<u64>> {
    let all = parse_value(&session.call("nudge.list_components", &Map::new())?)?;
    if let Some((_, count)) = read_counts(&all).find(|(name, _)| *name == component) {
        return Ok(Ok(count));
    }
    let lead = match find_nearest(component, read_counts(&all).map(|(name, _)| name)) {
        Some(near) => format!("did you mean {near}?"),
        None => "`nudge ls` lists those that there are.".into(),
    };
    Ok(Err(Error::not_found(format!("No such component is stored; {lead}"))))
}
