//! The output for users; scripts use `--json`.
//!
//! All texts contain terminal colours. The command removes the colours when stdout is no terminal. No information
//! depends on colour alone.

mod doctor;
mod plain;
mod server;
mod table;
mod tables;
pub mod time;
mod wrap;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use nudge_core::text::{escape_hidden, is_hidden};
use nudge_server::session::end_summary::EndSummary;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use doctor::render_doctor;
pub use nudge_core::text::{make_visible, visible_lines};
pub use plain::{render_plain, render_report};
pub use server::{files_put_back, render_members, render_stats, render_status, render_unserved};
pub use wrap::wrap_words;

pub use table::terminal_width;
use tables::DeletionRow;
pub use tables::{
    all_hints, describe_age, render_components, render_deletions, render_findings, render_hints, render_matches,
    render_seeds, render_why,
};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// Returns the exit code for an error: 1 for not found, 2 for invalid input, 3 for no server, 4 for other refusals.
pub fn exit_code(error: &nudge::Error) -> u8 {
    use nudge::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => 1,
        Kind::Invalid | Kind::ScopeInvalid | Kind::UnknownMethod | Kind::ParamsNotObject => 2,
        Kind::Unavailable => 3,
        _ => 4,
    }
}

/// Escapes hidden characters in JSON with `\u`; the meaning of the JSON stays the same. Line breaks stay, because they
/// occur only between strings.
pub fn visible_json(json: &str) -> String {
    escape_hidden(
        json,
        |c| c != '\n' && is_hidden(c),
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

/// Escapes hidden characters as [`make_visible`] does, but keeps line breaks. Indents all lines after the first by
/// `indent` spaces.
fn indent_block(text: &str, indent: usize) -> String {
    let lines: Vec<_> = text.trim_end_matches('\n').split('\n').map(make_visible).collect();
    lines.join(&format!("\n{:indent$}", ""))
}

fn with_style(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns the text of a hint's value exactly as stored. Returns `None` for a secret, unless `reveal` is true.
pub fn exact_value(hint: &Value, reveal: bool) -> Option<String> {
    if !reveal && hint["meta"]["sensitivity"] == "secret" {
        return None;
    }
    let value = &hint["value"];
    let text = [value, &value["cmd"], &value["abs"], &value["body"]].into_iter().find_map(Value::as_str);
    Some(text.map_or_else(|| value["data"].to_string(), str::to_owned))
}

/// Returns the text of [`exact_value`], or `[secret]` for a hidden secret.
pub fn value_text(hint: &Value, reveal: bool) -> String {
    exact_value(hint, reveal).unwrap_or_else(|| "[secret]".into())
}

fn to_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), make_visible)
}

/// Returns the name of a hint: component and key.
pub fn name(hint: &Value) -> String {
    format!("{}/{}", to_text(&hint["component"]), to_text(&hint["key"]))
}

fn join_list(value: &Value) -> Option<String> {
    value.as_array().map(|list| list.iter().map(to_text).collect::<Vec<_>>().join(","))
}

/// Quotes an argument for a shell, if that is necessary.
pub fn quote_argument(arg: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-,=:".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) { arg.to_owned() } else { format!("'{}'", arg.replace('\'', r"'\''")) }
}

fn count_noun(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Writes the output of `set` and `edit`.
pub fn render_stored(result: &Value) -> String {
    let hint = &result["hint"];
    let same = if result["unchanged"] == true { ", unchanged" } else { "" };
    let mut out = format!(
        "{} upserted hint {} (v{}){same}\n",
        with_style(GOOD, "✔"),
        with_style(STRONG, name(hint)),
        hint["version"]
    );
    let meta = &hint["meta"];
    let mut facts = Vec::new();
    facts.extend(meta["priority"].as_u64().map(|priority| format!("priority={priority}")));
    facts.extend(meta["confidence"].as_f64().map(|confidence| format!("confidence={confidence}")));
    facts.extend(join_list(&meta["tags"]).map(|tags| format!("tags={tags}")));
    facts.push(format!("ttl={}", to_text(&meta["ttl"])));
    let fields = meta["scope"].as_object().map(|scope| scope.keys().cloned().collect::<Vec<_>>().join(","));
    facts.push(format!("scope={}", fields.unwrap_or_else(|| "everywhere".into())));
    let _ = writeln!(out, "  score base: {}", facts.join(" "));
    if let Some(path) = hint["value"]["abs"].as_str() {
        let _ = writeln!(out, "  path: {}", make_visible(path));
    }
    let end = match time::describe_end(hint) {
        Some(end) => end,
        None if meta["sensitivity"] == "secret" => "the session ends at the latest: secrets are not kept".into(),
        None => "the session ends".into(),
    };
    // The note about the repository already says where the hint applies.
    let _ = match result["reach"].as_str() {
        Some(told) => writeln!(out, "  {}\n  until {end}", make_visible(told)),
        None => writeln!(out, "  applies {}, until {end}", tables::describe_place(hint)),
    };
    for told in ["telling", "keeping"].iter().filter_map(|name| result[*name].as_str()) {
        let _ = writeln!(out, "  {}", make_visible(told));
    }
    if result["previous"].is_object() {
        let value = match tables::one_line(&value_text(&result["previous"], false)) {
            empty if empty.is_empty() => "an empty value".into(),
            value => value,
        };
        let _ = writeln!(out, "  replaced: {value}; `nudge undo` brings it back");
    }
    if let Some(variants @ 2..) = result["variants"].as_u64() {
        let _ = writeln!(out, "  the key has {variants} variants now; `nudge why` tells them apart");
    }
    out
}

/// The fields of a `match_explain` that the output shows.
#[derive(Deserialize)]
struct ExplainedMatch {
    score: f64,
    reasons: Vec<String>,
    /// The terms of the score, by name.
    parts: Map<String, Value>,
}

/// A result of `nudge.get_hint`.
#[derive(Deserialize)]
pub struct FoundAnswer {
    hint: Value,
    match_explain: ExplainedMatch,
}

/// Writes the output of `get`.
pub fn render_found(result: &FoundAnswer, reveal: bool) -> String {
    let FoundAnswer { hint, match_explain: explain } = result;
    let mut out = format!("value: {}\n", with_style(STRONG, indent_block(&value_text(hint, reveal), 7)));
    if let Some(reason) = hint["meta"]["reason"].as_str() {
        let _ = writeln!(out, "reason: {}", indent_block(reason, 8));
    }
    let _ = writeln!(out, "scope: {}", tables::describe_scope(hint));
    let _ = writeln!(out, "stored: {}", describe_age(&hint["updated_at"]));
    let _ = writeln!(out, "expires: {}", time::describe_end(hint).unwrap_or_else(|| "with the session".into()));
    let _ = writeln!(out, "match:\n  score: {:.2}\n  reasons:", explain.score);
    for reason in &explain.reasons {
        let _ = writeln!(out, "    - {}", make_visible(reason));
    }
    out
}

/// Writes the output of `bump`.
pub fn render_bumped(result: &Value) -> String {
    let hint = &result["hint"];
    let mut out =
        format!("{} bumped frecency: use_count={} last_used_at=now\n", with_style(GOOD, "↑"), hint["use_count"]);
    let value = tables::one_line(&value_text(hint, false));
    let _ = writeln!(out, "  {}: {value} (applies {})", with_style(STRONG, name(hint)), tables::describe_place(hint));
    out
}

/// Writes the output of `delete`.
pub fn render_deleted(result: &Value) -> String {
    let hint = &result["previous"];
    let count = match result["deleted_count"].as_u64() {
        Some(count @ 2..) => format!("{count} variants"),
        _ => format!("v{}", hint["version"]),
    };
    let mark = with_style(GOOD, "✔");
    format!("{mark} deleted hint {} ({count}); `nudge undo` brings it back\n", with_style(STRONG, name(hint)))
}

/// A result of `nudge.undo`.
#[derive(Deserialize)]
pub struct UndoneAnswer {
    #[serde(flatten)]
    deletion: DeletionRow,
    restored: u64,
    skipped: u64,
}

/// Writes the output of `undo`.
pub fn render_undone(result: &UndoneAnswer) -> String {
    let UndoneAnswer { deletion, restored, skipped } = result;
    let mut out = format!("{} brought back {}\n", with_style(GOOD, "✔"), count_noun(*restored, "hint"));
    for hint in &deletion.hints {
        let _ = writeln!(out, "  {}", name(hint));
    }
    let _ = writeln!(out, "  {}", with_style(FAINT, deletion.how_and_who()));
    if *skipped > 0 {
        let _ = writeln!(out, "  {} not: expired or stored anew since", count_noun(*skipped, "hint"));
    }
    out
}

/// A result of `nudge.shutdown`. It has no counts when there were no hints.
#[derive(Deserialize)]
pub struct StoppedAnswer {
    hints: Option<usize>,
    kept: Option<usize>,
    file: Option<String>,
    why: Option<String>,
    left: Option<String>,
}

/// Writes the output of `stop`: how many hints are kept or lost.
pub fn render_stopped(result: &StoppedAnswer) -> String {
    let place = match (&result.file, &result.why) {
        (Some(file), _) => Some(Ok(make_visible(file))),
        (None, Some(why)) => Some(Err(make_visible(why))),
        (None, None) => None,
    };
    let (Some(hints), Some(kept), Some(place)) = (result.hints, result.kept, place) else {
        return "stopped\n".into();
    };
    let left = result.left.as_deref().map(make_visible);
    match (EndSummary { hints, kept, place, left }).to_text() {
        told if told.is_empty() => "stopped\n".into(),
        told => format!("stopped; {told}\n"),
    }
}

/// A result of `nudge.import`.
#[derive(Deserialize)]
pub struct ImportedAnswer {
    imported: u64,
    skipped: u64,
    errors: Vec<Value>,
    removed: Option<u64>,
}

/// Writes the output of `import`.
pub fn render_imported(result: &ImportedAnswer) -> String {
    let ImportedAnswer { imported, skipped, errors, removed } = result;
    let is_empty = *imported == 0 && *skipped == 0 && errors.is_empty();
    let mark = if is_empty { with_style(BAD, "!") } else { with_style(GOOD, "✔") };
    let mut out = format!("{mark} imported {}, skipped {skipped}\n", count_noun(*imported, "hint"));
    if is_empty {
        let form = r#"{"components": {"api": {"hints": {"build": "make"}}}}"#;
        let _ = writeln!(out, "  there are no hints in it; the form is {form}");
    }
    if let Some(removed) = *removed {
        let _ = writeln!(
            out,
            "  removed {} that {} stored before",
            count_noun(removed, "hint"),
            if removed == 1 { "was" } else { "were" }
        );
    }
    for error in errors {
        let _ = writeln!(out, "  {} {} {}", with_style(BAD, "✘"), name(error), to_text(&error["reason"]));
    }
    out
}

/// Writes a line of `watch`.
pub fn render_change(change: &Value) -> String {
    let changed_at = change["at"].as_str().and_then(nudge::parse_time);
    let time = changed_at.map_or_else(|| to_text(&change["at"]), time::recent_time);
    let what = to_text(&change["what"]);
    let client =
        change["by"].as_str().map(|name| format!("  {}", with_style(FAINT, format!("({})", make_visible(name)))));
    let source = to_text(&change["source"]);
    let about = if source != nudge::HINTS {
        // If the change is of another source, its `name` is the changed part.
        match change["name"].as_str() {
            Some(part) => format!("{source} {}", with_style(STRONG, make_visible(part))),
            None => source,
        }
    } else if let Some(count) = change["count"].as_u64() {
        count_noun(count, "hint")
    } else {
        let version = change["version"].as_u64().map_or_else(String::new, |version| format!(" v{version}  "));
        let mut about = with_style(STRONG, name(change)) + &version;
        about.extend(change["value"].as_str().map(tables::one_line));
        about
    };
    let about = match join_list(&change["fields"]) {
        Some(fields) => format!("{about}  {}", make_visible(&fields)),
        None => about,
    };
    let mut line = format!("{time}  {what:<7}  {about}");
    line.extend(client);
    line + "\n"
}

/// A result of `nudge.recall`.
#[derive(Deserialize)]
pub struct RecalledAnswer {
    items: Vec<RecalledItem>,
    omitted: u64,
    /// The sources that did not answer in time; `None` when all did.
    late: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RecalledItem {
    source: String,
    line: String,
    why: String,
    more: RecalledCall,
}

/// The call that returns the whole item.
#[derive(Deserialize)]
struct RecalledCall {
    method: String,
    params: Value,
}

impl RecalledCall {
    /// Returns the command that makes the call: `nudge get` for a hint, `nudge call` for an item of another source.
    fn to_command(&self) -> String {
        let param = |name: &str| self.params[name].as_str().map(quote_argument);
        // No variant is needed, because `get` returns the same variant here.
        if let ("nudge.get_hint", Some(component), Some(key)) = (&*self.method, param("component"), param("key")) {
            return format!("nudge get {component} {key}");
        }
        let params = quote_argument(&self.params.to_string());
        format!("nudge call {} {params}", self.method.strip_prefix("nudge.").unwrap_or(&self.method))
    }
}

/// Writes the output of `recall`. Each item has a line, its source, the reason, and the call that returns the whole
/// item.
pub fn render_recalled(result: &RecalledAnswer) -> String {
    let mut out = String::new();
    for RecalledItem { source, line, why, more } in &result.items {
        let [source, line, why, call] = [source, line, why, &more.to_command()].map(|text| make_visible(text));
        let _ = writeln!(out, "{line}\n  {}", with_style(FAINT, format!("{source}: {why}; {call}")));
    }
    if let omitted @ 1.. = result.omitted {
        let _ = writeln!(out, "{}", with_style(FAINT, format!("{omitted} more; --limit and --max-bytes make room")));
    }
    if let Some(late) = &result.late {
        let told = format!("no answer in time: {}", make_visible(&late.join(",")));
        let _ = writeln!(out, "{}", with_style(FAINT, told));
    }
    out
}

/// Writes the output of `config`: each setting with its value and origin. Values that are not defaults are bold.
pub fn render_settings(result: &Value) -> String {
    let rows: Vec<_> = result["settings"].as_array().into_iter().flatten().collect();
    let width = |name: &str| rows.iter().map(|row| to_text(&row[name]).chars().count()).fold(0, usize::max);
    let (names, values) = (width("name"), width("value").min(24));
    let mut out = format!("file  {}\n", to_text(&result["file"]));
    out.extend(rows.into_iter().map(|row| setting_line(row, names, values)));
    out
}

/// Writes one setting: its value and origin, and below them its purpose.
pub fn render_setting(row: &Value) -> String {
    format!("{}  {}\n", setting_line(row, 0, 0), to_text(&row["about"]))
}

fn setting_line(row: &Value, names: usize, values: usize) -> String {
    let (name, value) = (to_text(&row["name"]), to_text(&row["value"]));
    let line = format!("{name:names$}  {value:values$}  {}", to_text(&row["from"]));
    let style = if row["default"] == true { FAINT } else { STRONG };
    format!("{}\n", with_style(style, line))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(answer: Value) -> T {
        serde_json::from_value(answer).unwrap()
    }

    /// Promise (command line): Printed text from the store cannot control the terminal.
    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(make_visible("a\u{1b}[31m\u{202e}b\u{200b}é"), "a\\u{1b}[31m\\u{202e}b\\u{200b}é");
        let hint = json!({"component": "a\u{7}", "key": "k", "value": "x\n\u{1b}]52;y", "meta": {}});
        let row = json!({"hints": [{"hint": hint, "score": 0.5, "match_explain": {"matched": true, "reasons": []}}]});
        let plain = anstream::adapter::strip_str(&render_matches(&read(row), false)).to_string();
        assert_eq!(plain, "a\\u{7}/k  0.50  x\n                \\u{1b}]52;y\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let row = |key: &str| json!({"hint": {"component": "a", "key": key, "value": "x"}, "score": 0.5, "match_explain": {"matched": true, "reasons": []}});
        let result = read(json!({"hints": [row("日本"), row("k")]}));
        assert_eq!(
            anstream::adapter::strip_str(&render_matches(&result, false)).to_string(),
            "a/日本  0.50  x\na/k     0.50  x\n"
        );
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = json!({"a": "\u{9b}31m\u{7f}\u{202e}\u{e0041}\n\té"});
        let text = format!("{value:#}\n");
        let shown = visible_json(&text);
        assert!(shown.contains(r"\u009b31m\u007f\u202e\udb40\udc41\n\té"), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        assert_eq!(visible_lines("a\tb\n\u{1b}c\r\n"), "a\tb\n\\u{1b}c\\u{d}\n");
    }

    #[test]
    fn an_import_of_nothing_says_what_the_form_is() {
        let plain = |result: Value| anstream::adapter::strip_str(&render_imported(&read(result))).to_string();
        let nothing = plain(json!({"imported": 0, "skipped": 0, "errors": []}));
        assert!(
            nothing.starts_with("! imported 0 hints, skipped 0\n  there are no hints in it; the form is {"),
            "{nothing}"
        );
        for some in
            [json!({"imported": 1, "skipped": 0, "errors": []}), json!({"imported": 0, "skipped": 1, "errors": []})]
        {
            assert!(plain(some.clone()).starts_with("✔ imported") && !plain(some).contains("form"));
        }
    }

    #[test]
    fn secrets_are_hidden_unless_asked_for() {
        let now = chrono::Utc::now().to_rfc3339();
        let hint = json!({"value": "open", "meta": {"sensitivity": "secret"}, "updated_at": now});
        let result = read(json!({"hint": hint, "match_explain": {"score": 0.5, "reasons": ["x"], "parts": {}}}));
        let plain = |reveal| anstream::adapter::strip_str(&render_found(&result, reveal)).to_string();
        assert_eq!(
            plain(false),
            "value: [secret]\nscope: everywhere\nstored: just now\nexpires: with the session\nmatch:\n  score: 0.50\n  reasons:\n    - x\n"
        );
        assert!(plain(true).starts_with("value: open\n"));
    }
}
