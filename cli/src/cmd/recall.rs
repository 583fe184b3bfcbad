//! Runs `nudge recall`, which is also called `nudge search`.

use nudge::Result;
use nudge_app::unserved::ReadSources;
use serde_json::{Map, Value, json};

use super::{CommandOutput, RunningSession, add_field, open_to_read, parse_value, render_answer};
use crate::args::{GlobalFlags, RecallArgs};
use crate::output;

/// The least letters of a word to search for. If all words are shorter, all of them count.
const TELLING: usize = 4;

pub fn run(args: &RecallArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = open_to_read(global, ReadSources::All)?;
    let mut params = Map::new();
    add_field(&mut params, "query", args.words.join(" "));
    add_field(&mut params, "limit", args.limit);
    add_field(&mut params, "max_bytes", args.max_bytes);
    add_field(&mut params, "sources", args.sources.clone());
    let result = session.call_here("nudge.recall", params, args.here.to_context())?;
    let done = render_answer(&session, &result, output::render_recalled)?;
    if session.json || !(args.sources.is_empty() || args.sources.iter().any(|name| name == nudge::HINTS)) {
        return Ok(done);
    }
    let found = parse_value(&result)?["items"].as_array().is_some_and(|items| !items.is_empty());
    Ok(CommandOutput { notes: describe_elsewhere(&session, args, found).into_iter().collect(), ..done })
}

/// Returns a note about hints with these words that do not apply here. If `found` is false and no such hint exists, the
/// note says how to continue.
fn describe_elsewhere(session: &RunningSession, args: &RecallArgs, found: bool) -> Option<String> {
    let words = args.words.join(" ");
    let words: Vec<_> = words.split_whitespace().collect();
    let telling: Vec<_> = words.iter().copied().filter(|word| word.chars().count() >= TELLING).collect();
    let text = if telling.is_empty() { words.join(" ") } else { telling.join(" ") };
    let Value::Object(params) = json!({"text": text, "include_ineligible": true, "limit": 1000}) else { return None };
    // The server may refuse the search if the question is too long.
    let rows =
        session.call_here("nudge.query", params, args.here.to_context()).and_then(|rows| parse_value(&rows)).ok();
    let elsewhere = rows.iter().filter_map(|rows| rows["hints"].as_array()).flatten();
    let elsewhere = elsewhere.filter(|row| row["match_explain"]["matched"] == false).count();
    let words = text.split(' ').map(output::quote_argument).collect::<Vec<_>>().join(" ");
    let (hints, do_not) = match elsewhere {
        0 if !found => {
            return Some(
                "nothing here says that; `nudge ls` lists what there is, `nudge set` stores what is missing".into(),
            );
        }
        0 => return None,
        1 => ("1 hint".into(), "does not"),
        many => (format!("{many} hints"), "do not"),
    };
    Some(format!("{hints} with these words {do_not} apply here; `nudge query {words} --all` shows why"))
}
