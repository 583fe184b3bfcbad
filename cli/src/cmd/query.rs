//! `nudge query`

use nudge::Result;
use nudge_app::unserved::ReadSources;
use serde_json::{Map, Value, json};

use super::list::stored_in;
use super::{CommandOutput, add_field, open_to_read, parse_value, render_answer, reveal_secrets, to_raw};
use crate::args::{GlobalFlags, QueryArgs};
use crate::output;

/// The most rows of one call.
const MOST: u64 = 1000;
/// The rows that users see if they give no number.
const SHOWN: u64 = 10;

pub fn run(args: QueryArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = open_to_read(global, ReadSources::Hints)?;
    let mut params = Map::new();
    add_field(&mut params, "component", args.component.clone());
    add_field(&mut params, "keys", args.keys);
    add_field(&mut params, "tags", args.tags);
    add_field(&mut params, "regex", args.regex);
    add_field(&mut params, "text", Some(args.text.join(" ")).filter(|text| !text.is_empty()));
    // For users, the command reads all rows, so that it can say how many it does not show. An invalid limit goes to the
    // server, which refuses it.
    let counts = !session.json && args.limit.is_none_or(|limit| (1..=MOST).contains(&limit));
    let limit = if counts { Some(MOST) } else { args.limit };
    add_field(&mut params, "limit", limit);
    add_field(&mut params, "include_ineligible", (args.all || counts).then_some(Value::Bool(true)));
    let mut result = session.call_here("nudge.query", params, args.here.to_context())?;
    let mut notes = Vec::new();
    if counts {
        let limit = args.limit.unwrap_or(SHOWN);
        let found = HeldBackRows::from_rows(parse_value(&result)?["hints"].take(), limit, args.all);
        if let (Some(component), 0) = (&args.component, found.all) {
            notes.extend(stored_in(&session, component)?.err().map(|error| error.message().to_owned()));
        }
        notes.extend(found.to_note(limit));
        result = to_raw(&json!({"hints": found.shown}))?;
    }
    if args.reveal {
        result = reveal_secrets(&session, &result, "hints")?;
    }
    let done = render_answer(&session, &result, |result| output::render_matches(result, args.reveal))?;
    Ok(CommandOutput { notes, ..done })
}

/// The rows of a search that are shown, and the numbers of the other rows.
struct HeldBackRows {
    shown: Vec<Value>,
    all: u64,
    /// The number of rows beyond the limit.
    more: u64,
    /// The number of rows that do not apply here, if the user did not ask for them.
    elsewhere: u64,
}

impl HeldBackRows {
    fn from_rows(rows: Value, limit: u64, with_all: bool) -> Self {
        let rows = if let Value::Array(rows) = rows { rows } else { Vec::new() };
        let all = rows.len() as u64;
        let mut shown = rows;
        shown.retain(|row| with_all || row["match_explain"]["matched"] == true);
        let asked = shown.len() as u64;
        let shown: Vec<_> = (0..limit).zip(shown).map(|(_, row)| row).collect();
        Self { all, more: asked - shown.len() as u64, elsewhere: all - asked, shown }
    }

    /// Returns the note for users about the rows that are not shown.
    fn to_note(&self, limit: u64) -> Option<String> {
        let most = if self.all == MOST { "at least " } else { "" };
        let verb_for =
            |count: u64, singular: &str, many: &str| if count == 1 { singular.to_owned() } else { many.to_owned() };
        let more = (self.more > 0).then(|| {
            let is = verb_for(self.more, "is", "are");
            format!("{most}{} more {is} not shown (--limit {})", self.more, (limit + self.more).min(MOST))
        });
        let elsewhere = (self.elsewhere > 0).then(|| {
            let does = verb_for(self.elsewhere, "matches and does", "match and do");
            format!("{most}{} {does} not apply here (--all)", self.elsewhere)
        });
        let told: Vec<_> = more.into_iter().chain(elsewhere).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_counted() {
        let row = |matched: bool| json!({"match_explain": {"matched": matched}});
        let rows = |here: usize, elsewhere: usize| -> Value {
            (0..here + elsewhere).map(|index| row(index < here)).collect::<Vec<_>>().into()
        };
        for (here, elsewhere, limit, all, shown, told) in [
            (0, 0, 10, false, 0, None),
            (3, 0, 10, false, 3, None),
            (12, 0, 10, false, 10, Some("2 more are not shown (--limit 12)")),
            (11, 1, 10, false, 10, Some("1 more is not shown (--limit 11), 1 matches and does not apply here (--all)")),
            (0, 2, 10, false, 0, Some("2 match and do not apply here (--all)")),
            (1, 2, 2, true, 2, Some("1 more is not shown (--limit 3)")),
            (1000, 0, 10, false, 10, Some("at least 990 more are not shown (--limit 1000)")),
        ] {
            let held = HeldBackRows::from_rows(rows(here, elsewhere), limit, all);
            assert_eq!((held.shown.len(), held.to_note(limit).as_deref()), (shown, told), "{here} {elsewhere}");
        }
    }
}
