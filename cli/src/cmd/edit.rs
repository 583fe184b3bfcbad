//! `nudge edit`: opens a hint in the user's editor. Stores the text if the hint has not changed in the meantime.

mod text;

use nudge::{Error, Result, Service as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, editor, parse_value, render_answer, to_name_params};
use crate::args::{EditArgs, GlobalFlags};
use crate::output;
use text::EditedHint;

pub fn run(args: &EditArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let hint = pick_variant(&session, args)?;
    if hint.fields["meta"]["sensitivity"] == "secret" {
        return Err(invalid_error("A secret is not written to a file; store it anew with `nudge set ... --secret`."));
    }
    let says_secret = |text: &[u8]| text::says_secret(&String::from_utf8_lossy(text));
    editor::edit_text("hint.jsonc", &text::build_document(&hint), says_secret, |after| {
        let params = text::to_set_params(after, &hint, args.allow_secret)?;
        still_there(&session, args, &hint)?;
        render_answer(&session, &session.remote.call("nudge.set_hint", &params)?, output::render_stored)
    })
}

/// A row of `nudge.why`, with the hint as raw JSON text.
#[derive(Deserialize)]
struct WhyRow {
    hint: Box<RawValue>,
    #[serde(default)]
    match_explain: Value,
}

/// Picks the variant to edit: the named variant, or the only one, or the one that `get` would return here.
fn pick_variant(session: &RunningSession, args: &EditArgs) -> Result<EditedHint> {
    #[derive(Deserialize)]
    struct WhyRows {
        variants: Vec<WhyRow>,
        verdict: String,
    }
    let rows: WhyRows = text::read(ask_why(session, args)?.get())?;
    let mut hints = rows.variants.iter().map(|row| text::read(row.hint.get())).collect::<Result<Vec<EditedHint>>>()?;
    let index = match &args.variant {
        // The verdict may suggest a similar hint.
        _ if hints.is_empty() => return Err(Error::not_found(rows.verdict)),
        Some(variant) => hints
            .iter()
            .position(|hint| hint.variant() == variant)
            .ok_or_else(|| Error::not_found("There is no such variant; `nudge why` lists the variants of a key."))?,
        None if hints.len() == 1 || rows.variants[0].match_explain["matched"] == true => 0,
        None => {
            let message = "The key has several variants and none fits here; name one with `variant`.";
            return Err(invalid_error(message).about("variant"));
        }
    };
    Ok(hints.swap_remove(index))
}

fn ask_why(session: &RunningSession, args: &EditArgs) -> Result<Box<RawValue>> {
    let params = to_name_params(&args.name);
    session.call_here("nudge.why", params, Map::new())
}

/// Refuses when the hint was deleted in the meantime. An equal version proves nothing, because a hint that is deleted
/// and set again starts with version 1.
fn still_there(session: &RunningSession, args: &EditArgs, hint: &EditedHint) -> Result<()> {
    let now = parse_value(&ask_why(session, args)?)?;
    let same =
        |row: &Value| ["variant", "created_at"].iter().all(|field| row["hint"].get(field) == hint.fields.get(*field));
    if now["variants"].as_array().is_some_and(|rows| rows.iter().any(same)) {
        return Ok(());
    }
    Err(Error::conflict("The hint was deleted meanwhile, so nothing was changed; look with `nudge why`."))
}

fn invalid_error(message: impl Into<String>) -> Error {
    Error::invalid(message)
}
