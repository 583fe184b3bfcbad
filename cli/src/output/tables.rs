//! Renders results with many rows as tables.

use std::fmt::Write as _;

use nudge_core::text::before_mark;
use serde::Deserialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::table::{TableColumn, cut_column, render_fitting, terminal_width, whole_column};
use super::wrap::wrap_words;
use super::{
    BAD, ExplainedMatch, FAINT, GOOD, STRONG, count_noun, indent_block, join_list, make_visible, name, time, to_text,
    value_text, with_style,
};
use crate::usage::name_commands;

/// The most characters of a value in a line; `get` prints the whole value.
const VALUE_CHARS: usize = 60;

/// Returns the first line of a text, cut to [`VALUE_CHARS`].
pub(super) fn one_line(text: &str) -> String {
    let line = before_mark(text.trim_end_matches('\n'), &['\n']);
    let cut = line.chars().count() > VALUE_CHARS || line.len() < text.trim_end_matches('\n').len();
    let line = make_visible(&line.chars().take(VALUE_CHARS).collect::<String>());
    if cut { format!("{line}…") } else { line }
}

/// Writes the output of `ls`.
pub fn render_components(result: &Value) -> String {
    let row = |row: &Value| (vec![to_text(&row["name"]), to_text(&row["hint_count"])], false);
    let mut rows: Vec<_> = result["components"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return "nothing is stored; `nudge set COMPONENT KEY VALUE` stores a hint\n".into();
    }
    rows.sort_by(|(a, _), (b, _)| compare_natural(&a[0], &b[0]));
    render_fitting(&[cut_column("COMPONENT", 12, 0), whole_column("HINTS", 0)], rows)
}

/// Writes the output of `ls` when there are only a few hints: all of them.
pub fn all_hints(result: &Value) -> String {
    render_hint_rows(result, true, false)
}

/// Writes the output of `ls COMPONENT`: every variant with its scope, age and use.
pub fn render_hints(result: &Value, reveal: bool) -> String {
    render_hint_rows(result, false, reveal)
}

/// Writes the output of `seed`: component, key, command, and the reason from the file.
pub fn render_seeds<'a>(wanted: impl Iterator<Item = [&'a str; 4]>) -> String {
    let rows: Vec<_> = wanted.map(|row| (row.map(make_visible).to_vec(), false)).collect();
    if rows.is_empty() {
        return String::new();
    }
    render_fitting(
        &[
            cut_column("COMPONENT", 12, 0),
            cut_column("KEY", 16, 0),
            cut_column("COMMAND", 24, 0),
            cut_column("FROM", 20, 1),
        ],
        rows,
    )
}

/// Writes the output of `doctor --hints`: component, key, fault, advice.
pub fn render_findings<'a>(found: impl Iterator<Item = [&'a str; 4]>) -> String {
    let rows = found.map(|row| (row.map(make_visible).to_vec(), false)).collect();
    render_fitting(
        &[
            cut_column("COMPONENT", 12, 0),
            cut_column("KEY", 12, 0),
            cut_column("WHAT", 24, 0),
            cut_column("TO DO", 24, 0),
        ],
        rows,
    )
}

/// The columns of a list of hints. In a narrow terminal, the use is left out first, then the age, then the variant.
const COLUMNS: [TableColumn<'_>; 9] = [
    cut_column("COMPONENT", 16, 0),
    cut_column("KEY", 24, 0),
    cut_column("VALUE", 28, 0),
    whole_column("HERE", 1),
    cut_column("SCOPE", 14, 3),
    whole_column("EXPIRES", 2),
    whole_column("AGE", 5),
    whole_column("USED", 6),
    whole_column("VARIANT", 4),
];

fn render_hint_rows(result: &Value, with_component: bool, reveal: bool) -> String {
    let row = |row: &Value| {
        let hint = &row["hint"];
        let applies = row["match_explain"]["matched"] == true;
        let value = value_text(hint, reveal);
        let cells = vec![
            to_text(&hint["component"]),
            to_text(&hint["key"]),
            nudge_core::text::one_line(value.trim_end_matches('\n'), usize::MAX),
            if applies { "✔".into() } else { "-".into() },
            describe_scope(hint),
            time::expires_at(hint).map_or_else(|| "session".into(), time::show_time_left),
            show_age(&hint["updated_at"]),
            describe_usage(hint),
            hint["variant"].as_str().map(make_visible).unwrap_or_default(),
        ];
        (cells, !applies)
    };
    let mut rows: Vec<_> = result["hints"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return "no hints\n".into();
    }
    // The sort is stable, so the variants of a key keep their order.
    rows.sort_by(|(a, _), (b, _)| compare_natural(&a[0], &b[0]).then_with(|| compare_natural(&a[1], &b[1])));
    let from = usize::from(!with_component);
    for (cells, _) in &mut rows {
        cells.drain(..from);
    }
    render_fitting(&COLUMNS[from..], rows)
}

/// Compares names by the numbers in them: `k2` comes before `k10`.
fn compare_natural(a: &str, b: &str) -> std::cmp::Ordering {
    natord::compare(a, b).then_with(|| a.cmp(b))
}

/// Describes where a hint applies, for the end of a sentence.
pub(super) fn describe_place(hint: &Value) -> String {
    match hint["meta"]["scope"].as_object() {
        Some(_) => format!("where {}", describe_scope(hint)),
        None => "everywhere".into(),
    }
}

/// Describes a scope in a few words.
pub(super) fn describe_scope(hint: &Value) -> String {
    let Some(scope) = hint["meta"]["scope"].as_object() else { return "everywhere".into() };
    let field = |(name, value): (&String, &Value)| match value.as_object() {
        Some(vars) => vars
            .iter()
            .map(|(name, value)| {
                format!("{}={}", make_visible(name), join_list(value).unwrap_or_else(|| to_text(value)))
            })
            .collect::<Vec<_>>()
            .join(" "),
        None => format!("{name}={}", join_list(value).unwrap_or_else(|| to_text(value))),
    };
    scope.iter().map(field).collect::<Vec<_>>().join(" ")
}

/// Returns the age of a time according to this machine's clock.
fn show_age(time: &Value) -> String {
    let Some(then) = time.as_str().and_then(nudge::parse_time) else { return String::new() };
    match time::now().saturating_sub(then) {
        ..60_000 => "now".into(),
        age => time::show_span(age),
    }
}

fn describe_usage(hint: &Value) -> String {
    let mut out = match hint["use_count"].as_u64() {
        None | Some(0) => "never".into(),
        Some(count) => format!("{} ({})", count_noun(count, "time"), describe_age(&hint["last_used_at"])),
    };
    if let Some(count @ 1..) = hint["failure_count"].as_u64() {
        let _ = write!(out, ", failed {} since", count_noun(count, "time"));
    }
    out
}

/// Returns the age of a time in words.
pub fn describe_age(time: &Value) -> String {
    match show_age(time).as_str() {
        "now" => "just now".into(),
        age => format!("{age} ago"),
    }
}

/// A result of `nudge.query`.
#[derive(Deserialize)]
pub struct MatchesAnswer {
    hints: Vec<MatchRow>,
}

#[derive(Deserialize)]
struct MatchRow {
    hint: Value,
    score: f64,
    match_explain: MatchVerdict,
}

/// The verdict about a hint: whether it applies here, and the reasons.
#[derive(Deserialize)]
struct MatchVerdict {
    matched: bool,
    reasons: Vec<String>,
}

/// Writes the output of `query`: name, score and value, aligned.
pub fn render_matches(result: &MatchesAnswer, reveal: bool) -> String {
    let rows = &result.hints;
    let names: Vec<_> = rows.iter().map(|row| name(&row.hint)).collect();
    let width = names.iter().map(|name| name.width()).fold(0, usize::max);
    let mut out = String::new();
    for (MatchRow { hint, score, match_explain }, name) in rows.iter().zip(&names) {
        let pad = width - name.width();
        let value = indent_block(&value_text(hint, reveal), width + 8);
        let _ = writeln!(out, "{}{:pad$}  {score:.2}  {value}", with_style(STRONG, name), "");
        if let (false, Some(reason)) = (match_explain.matched, match_explain.reasons.first()) {
            let reason = format!("not here: {}", make_visible(reason));
            let _ = writeln!(out, "{:width$}        {}", "", with_style(FAINT, reason));
        }
    }
    if out.is_empty() { "no hints\n".into() } else { out }
}

/// A result of `nudge.why`.
#[derive(Deserialize)]
pub struct WhyAnswer {
    variants: Vec<VariantRow>,
    verdict: String,
}

#[derive(Deserialize)]
struct VariantRow {
    hint: Value,
    conditions: Vec<ConditionRow>,
    match_explain: ExplainedMatch,
}

#[derive(Deserialize)]
struct ConditionRow {
    met: bool,
    reason: String,
}

/// Writes the output of `why`.
pub fn render_why(result: &WhyAnswer, reveal: bool) -> String {
    let width = terminal_width();
    let mut out = format!("{}\n", wrap_words(&make_visible(&name_commands(&result.verdict)), 0, width));
    for (index, VariantRow { hint, conditions, match_explain: explain }) in result.variants.iter().enumerate() {
        let variant = hint["variant"].as_str().map_or_else(String::new, |variant| format!("  (variant {variant})"));
        let value = with_style(STRONG, indent_block(&value_text(hint, reveal), 3));
        let _ = writeln!(out, "\n{}. {value}{}", index + 1, with_style(FAINT, variant));
        for ConditionRow { met, reason } in conditions {
            let mark = if *met { with_style(GOOD, "✔") } else { with_style(BAD, "✘") };
            let _ = writeln!(out, "   {mark} {}", wrap_words(&make_visible(reason), 5, width));
        }
        let is_new = |reason: &&String| !conditions.iter().any(|condition| condition.reason == **reason);
        for reason in explain.reasons.iter().filter(is_new) {
            let _ = writeln!(out, "   - {}", wrap_words(&make_visible(reason), 5, width));
        }
        let part = |(name, part): (&String, &Value)| Some(format!("{name} {:.4}", part.as_f64()?));
        let parts: Vec<_> = explain.parts.iter().filter_map(part).collect();
        let sum = format!("score {:.4} = {}", explain.score, parts.join(" + "));
        let _ = writeln!(out, "   {}", wrap_words(&sum, 3, width));
    }
    out
}

/// A result of `nudge.deletions`.
#[derive(Deserialize)]
pub struct DeletionsAnswer {
    deletions: Vec<DeletionRow>,
}

/// A call that deleted hints or replaced a hint.
#[derive(Deserialize)]
pub struct DeletionRow {
    id: u64,
    at: Value,
    what: Option<String>,
    by: Option<String>,
    count: u64,
    pub hints: Vec<Value>,
}

/// Writes the output of `undo --list`.
pub fn render_deletions(result: &DeletionsAnswer) -> String {
    let mut out = String::new();
    for deletion in &result.deletions {
        let hints = &deletion.hints;
        let _ = writeln!(out, "{}  {}", with_style(STRONG, format!("#{}", deletion.id)), deletion.how_and_who());
        for hint in hints {
            let _ = writeln!(out, "    {}  {}", name(hint), one_line(&value_text(hint, false)));
        }
        let more = deletion.count.saturating_sub(hints.len() as u64);
        if more > 0 {
            let _ = writeln!(out, "    and {} more", count_noun(more, "hint"));
        }
    }
    if out.is_empty() { "nothing was deleted in this session\n".into() } else { out }
}

impl DeletionRow {
    /// Returns the kind of the change, its time and the client.
    pub fn how_and_who(&self) -> String {
        let client = self.by.as_deref().map_or_else(|| "an unnamed client".into(), make_visible);
        let what = self.what.as_deref().map_or_else(|| "deleted".into(), make_visible);
        format!("{what} {} by {client}", describe_age(&self.at))
    }
}
