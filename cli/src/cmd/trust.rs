//! `nudge trust`

use std::fmt::Write as _;

use nudge::{Error, Result};
use nudge_agents::running::{RunningSession, is_unserved};
use nudge_app::committed::{self, CommittedFile, FILE, LoadedHints, TrustFile};
use nudge_app::seed;
use serde_json::{Value, json};
use similar::TextDiff;

use super::{CommandOutput, ask_consent, parse_value, print_note};
use crate::args::{GlobalFlags, TrustArgs};
use crate::output::{make_visible, visible_lines};

pub fn run(args: &TrustArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let (top, repo) = seed::find_repository()?;
    if args.forget {
        let mut trust = TrustFile::open()?;
        let was = trust.get(&top).trusted.is_some();
        trust.set(&top, None)?;
        let said = if was {
            "not trusted any more; what is stored already stays until the session ends"
        } else {
            "was not trusted"
        };
        return Ok(
            if global.json { format!("{}\n", json!({"forgotten": was})) } else { format!("{FILE} {said}\n") }.into()
        );
    }
    let none = || Error::not_found(format!("This repository has no {FILE}; `nudge save` writes one."));
    let document = CommittedFile::read(&top)?.ok_or_else(none)?;
    let known = TrustFile::read_unlocked()?.get(&top);
    let session = match RunningSession::open(global) {
        Ok(session) => Some(session),
        Err(error) if is_unserved(global, &error) => None,
        Err(error) => return Err(error),
    };
    let is_trusted = known.trusted.as_deref() == Some(document.text.as_str());
    if !is_trusted {
        let shown = visible_lines(diff_texts(known.trusted.as_deref(), &document.text).trim_end());
        print_note(&format!("{shown}\n\nWhat agents would be told:\n{}", show_texts(&document.text).trim_end()));
        let count = document.entries.len();
        let hints = if count == 1 { "this hint".to_owned() } else { format!("these {count} hints") };
        ask_consent(args.yes, &format!("Tell agents in this clone {hints}?"))?;
        TrustFile::open()?.set(&top, Some(document.text.clone()))?;
    }
    let loaded = session.as_ref().map_or(Ok(None), |session| {
        committed::load_trusted(&top, &repo, &|method, params| parse_value(&session.call(method, params)?))
    })?;
    let is_loaded = loaded.is_some();
    let LoadedHints { set, there, deleted, other, refused } = loaded.unwrap_or_default();
    if global.json {
        let refused: Vec<_> = refused.iter().map(|(name, why)| json!({"name": name, "why": why})).collect();
        let all = json!({"hints": document.entries.len(), "sha256": document.sha256, "set": set, "there": there, "deleted": deleted, "other": other, "refused": refused});
        return Ok(format!("{all}\n").into());
    }
    let mut text =
        if is_trusted { format!("{FILE} was trusted already") } else { format!("{FILE} is trusted as it stands") };
    if is_loaded {
        let gone = if deleted == 0 { String::new() } else { format!(", {deleted} deleted") };
        let _ = write!(text, "; {set} stored now, {there} were there{gone}");
    }
    let _ = writeln!(text, "; each session loads it once, and any change of it asks again");
    for name in other {
        let name = crate::output::make_visible(&name);
        let _ = writeln!(
            text,
            "  {name} was changed here, too, and stays as it is here; `nudge save` writes it into the file"
        );
    }
    for (name, why) in refused {
        let _ = writeln!(
            text,
            "  {} is refused: {}",
            crate::output::make_visible(&name),
            crate::output::make_visible(&why)
        );
    }
    Ok(text.into())
}

/// Returns the texts in the file as agents would read them: decoded, one after the other, with visible forms of hidden
/// characters.
fn show_texts(text: &str) -> String {
    let mut out = String::new();
    // If the file cannot be parsed, shows it unchanged: the user must see everything before the user trusts the file.
    let Ok(document) = serde_json::from_str::<Value>(text) else { return visible_lines(text) };
    tell_texts(&document, &mut Vec::new(), &mut out);
    out
}

fn tell_texts(value: &Value, path: &mut Vec<String>, out: &mut String) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            path.push(make_visible(name));
            tell_texts(value, path, out);
            path.pop();
        }),
        Value::Array(items) => items.iter().for_each(|value| tell_texts(value, path, out)),
        Value::String(text) => {
            // A write to a string cannot fail.
            let _ = writeln!(out, "  {}: {}", path.join("/"), make_visible(text));
        }
        _ => {}
    }
}

/// Returns the changes since the user trusted the file, or the whole file if the user never did.
fn diff_texts(before: Option<&str>, now: &str) -> String {
    let Some(before) = before else { return now.to_owned() };
    TextDiff::from_lines(before, now).unified_diff().context_radius(2).header("trusted", FILE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_agents_are_shown_decoded() {
        let text = r#"{"hints": {"api": {"build": {"value": "\u0072\u0075\u006e it\u200b\u001b[2J"}}}}"#;
        assert_eq!(show_texts(text), "  hints/api/build/value: run it\\u{200b}\\u{1b}[2J\n");
    }
}
