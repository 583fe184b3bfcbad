//! The output of `status` and `stats`.

use std::fmt::Write as _;

use nudge_app::evidence::DayStats;
use nudge_core::suggest::SuggestCounts;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::table::{Cells, TableColumn, cut_column, render_fitting, terminal_width, whole_column};
use super::tables::{self, describe_age};
use super::time;
use super::wrap::wrap_words;
use super::{FAINT, GOOD, STRONG, count_noun, join_list, make_visible, to_text, with_style};

/// The width of the longest bar, in terminal columns.
const BAR: u64 = 20;

/// The columns before the text of a row of `status`.
const ROW_INDENT: usize = 11;

/// The columns with the counts of `stats`. In a narrow terminal, the bytes are left out first.
const COUNTS: [TableColumn<'static>; 4] =
    [whole_column("TOLD", 0), whole_column("FOLLOWED", 1), whole_column("FAILED", 1), whole_column("BYTES", 3)];

/// The members of `nudge.status` that belong to no source and are not printed.
const NOT_SHOWN: [&str; 3] = ["role", "uptime_s", "members"];

/// A result of `nudge.status`.
#[derive(Deserialize)]
pub struct StatusAnswer {
    version: String,
    session_id: String,
    started: Value,
    pid: u64,
    port: u64,
    proxies: Vec<u64>,
    /// The size of the journal in bytes; `None` when the journal is off.
    journal_bytes: Option<u64>,
    keeping: Option<KeepingPart>,
    hooks: Option<HooksPart>,
    files_put_back: Option<Value>,
    hints: Option<u64>,
    /// The number of hints that have a vector; `None` without a model.
    hints_understood: Option<u64>,
    components: Option<u64>,
    limits: Option<Value>,
    /// The members of the other sources, by name.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The number of the last hooks, and the note about late hooks among them.
#[derive(Deserialize)]
struct HooksPart {
    count: u64,
    /// `None` when no hook was late.
    note: Option<String>,
}

impl HooksPart {
    fn describe_hooks(&self) -> String {
        match &self.note {
            Some(note) => make_visible(note),
            None if self.count == 1 => "the last hook was in time".into(),
            None => format!("the last {} hooks were in time", self.count),
        }
    }
}

#[derive(Deserialize)]
struct KeepingPart {
    on: bool,
    hints: Option<u64>,
    /// The number of hints that the next session will read from the files of repositories.
    of_files: Option<u64>,
    file: Option<String>,
    why: Option<String>,
    failed: Option<String>,
    aside: Option<String>,
    backup_failed: Option<String>,
}

impl KeepingPart {
    /// Describes which hints the next session gets, and from which file.
    fn describe_kept(&self) -> Option<String> {
        match self {
            Self { on: true, hints: Some(hints), file: Some(file), of_files, .. } => {
                let of_files = of_files.map(|count| format!("; {count} more follow the files of repositories"));
                let kept = format!("{} for next time, in {}", count_noun(*hints, "hint"), make_visible(file));
                Some(kept + &of_files.unwrap_or_default())
            }
            Self { why, .. } => why.as_deref().map(|why| format!("nothing: {}", make_visible(why))),
        }
    }
}

/// Writes the output of `status`.
pub fn render_status(result: &StatusAnswer) -> String {
    let head = format!("Nudge {} runs on 127.0.0.1:{}", make_visible(&result.version), result.port);
    let since = match describe_age(&result.started).strip_suffix(" ago") {
        Some(age) => format!(", for {age}"),
        None => ", since a moment ago".into(),
    };
    let width = terminal_width();
    let head = format!("{}{since} (pid {})", with_style(STRONG, head), result.pid);
    let mut out = format!("{} {}\n", with_style(GOOD, "✔"), wrap_words(&head, 2, width));
    let mut row = |name: &str, told: &str| {
        let _ = writeln!(out, "  {name:<8} {}", wrap_words(told, ROW_INDENT, width));
    };
    if let (Some(hints), Some(components), Some(limits)) = (result.hints, result.components, &result.limits) {
        let (hints, components) = (count_noun(hints, "hint"), count_noun(components, "component"));
        let understood = match result.hints_understood {
            Some(count) => format!("; {count} found by meaning, too"),
            None => String::new(),
        };
        let most = to_text(&limits["hints"]);
        row("hints", &format!("{hints} in {components}, of {most} at most{understood}"));
    }
    let proxies: Vec<_> = result.proxies.iter().map(u64::to_string).collect();
    match &proxies[..] {
        [] => row("agents", "no other process stands by"),
        [pid] => row("agents", &format!("1 more process stands by (pid {pid})")),
        more => row("agents", &format!("{} more processes stand by (pids {})", more.len(), more.join(", "))),
    }
    if let Some(keeping) = &result.keeping {
        if let Some(kept) = keeping.describe_kept() {
            row("kept", &kept);
        }
        for (why, what) in [
            (&keeping.failed, "not up to date"),
            (&keeping.aside, "note"),
            (&keeping.backup_failed, "no copy of today"),
        ] {
            if let Some(why) = why.as_ref().filter(|_| keeping.on) {
                row("", &format!("{what}: {}", make_visible(why)));
            }
        }
    }
    let journal = match result.journal_bytes {
        Some(bytes) => format!("a journal of {}", show_size(bytes)),
        None => "no journal".into(),
    };
    if let Some(hooks) = &result.hooks {
        row("hooks", &hooks.describe_hooks());
    }
    row("session", &format!("{}, {journal}", make_visible(&result.session_id)));
    if let Some(told) = result.files_put_back.as_ref().and_then(files_put_back) {
        row("", &told);
    }
    for (name, value) in result.others.iter().filter(|(name, _)| !NOT_SHOWN.contains(&name.as_str())) {
        row(&make_visible(name), &render_members(value));
    }
    out
}

/// Writes the output of `status` while no server runs.
pub fn render_unserved(hints: u64, file: &str) -> String {
    let kept = format!("{} for next time, in {}", count_noun(hints, "hint"), make_visible(file));
    format!(
        "{}; `nudge serve --detach` starts one\n  {:<8} {kept}\n",
        with_style(STRONG, "No Nudge server runs"),
        "kept"
    )
}

/// Says when files of the session were restored, from the time in `files_put_back`. Returns `None` without a time.
pub fn files_put_back(put_back_at: &Value) -> Option<String> {
    put_back_at
        .is_string()
        .then(|| format!("somebody removed its files; they were put back {}", describe_age(put_back_at)))
}

/// Prints the members of a source on one line.
pub fn render_members(value: &Value) -> String {
    let member =
        |(name, value): (&String, &Value)| format!("{} {}", make_visible(name).replace('_', " "), to_text(value));
    match value.as_object() {
        Some(inner) => inner.iter().map(member).collect::<Vec<_>>().join(", "),
        None => join_list(value).unwrap_or_else(|| to_text(value)),
    }
}

/// Formats a number of bytes in the largest unit that fits.
fn show_size(bytes: u64) -> String {
    match bytes {
        0..1024 => count_noun(bytes, "byte"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

/// A result of `nudge.stats`.
#[derive(Deserialize)]
pub struct StatsAnswer {
    hints: u64,
    hits: u64,
    #[serde(flatten)]
    counts: SuggestCounts,
    sessions: Vec<SessionSummary>,
    hours: Vec<HourRow>,
    hooks: Option<HooksPart>,
    /// The days of all sessions, oldest first.
    #[serde(default)]
    days: Vec<DayStats>,
    /// The reason why some days are missing.
    days_note: Option<String>,
}

#[derive(Deserialize)]
struct SessionSummary {
    client_session: String,
    last_active: Value,
    #[serde(flatten)]
    counts: SuggestCounts,
}

#[derive(Deserialize)]
struct HourRow {
    since: String,
    #[serde(flatten)]
    counts: SuggestCounts,
}

/// Writes the output of `stats`.
pub fn render_stats(result: &StatsAnswer, is_unserved: bool) -> String {
    let cells = |counts: &SuggestCounts| [counts.followed, counts.failed, counts.bytes].map(|count| count.to_string());
    let mut out = format!("{}, {}\n", count_noun(result.hints, "hint"), count_noun(result.hits, "hit"));
    if let Some(note) = result.hooks.as_ref().and_then(|hooks| hooks.note.as_ref()) {
        let _ = writeln!(out, "{}", make_visible(note));
    }
    out += &render_days(result, is_unserved);
    let told = result.counts.suggestions;
    if told == 0 && result.sessions.is_empty() {
        let nothing = "This server has told no agent anything yet; `nudge doctor` says whether the hooks are in.";
        return if is_unserved { out } else { out + &with_style(FAINT, nothing) + "\n" };
    }
    let most = result.hours.iter().map(|hour| hour.counts.suggestions).fold(0, u64::max);
    let hour = |HourRow { since, counts }: &HourRow| -> Cells {
        let told = counts.suggestions;
        let since = nudge::parse_time(since).map_or_else(|| make_visible(since), time::to_local);
        // The number comes before the bar, because a narrow terminal cuts the bar.
        ([since, format!("{told:<4} {}", draw_bar(told, most))].into_iter().chain(cells(counts)).collect(), false)
    };
    let hours: Vec<_> = result.hours.iter().map(hour).collect();
    if !hours.is_empty() {
        out.push('\n');
        let [_, followed, failed, bytes] = COUNTS;
        out +=
            &render_fitting(&[whole_column("HOUR FROM", 0), cut_column("TOLD", 5, 0), followed, failed, bytes], hours);
    }
    let session = |SessionSummary { client_session, last_active, counts }: &SessionSummary| -> Cells {
        let head = [tables::one_line(client_session), describe_age(last_active), counts.suggestions.to_string()];
        (head.into_iter().chain(cells(counts)).collect(), false)
    };
    let mut rows: Vec<_> = result.sessions.iter().map(session).collect();
    let sum = ["all".into(), String::new(), told.to_string()];
    rows.push((sum.into_iter().chain(cells(&result.counts)).collect(), false));
    out.push('\n');
    let [told, followed, failed, bytes] = COUNTS;
    out +=
        &render_fitting(&[cut_column("SESSION", 8, 0), whole_column("ACTIVE", 2), told, followed, failed, bytes], rows);
    out
}

/// Returns a table of the days that have counts, the latest day last, and their sum. Returns an empty text without such
/// days.
fn render_days(result: &StatsAnswer, is_unserved: bool) -> String {
    let row = |head: String, counts: &SuggestCounts, late: u64| -> Cells {
        let counts = [counts.suggestions, counts.followed, counts.failed, late, counts.bytes];
        (std::iter::once(head).chain(counts.map(|count| count.to_string())).collect(), false)
    };
    let mut rows: Vec<_> =
        result.days.iter().map(|DayStats { day, counts, late }| row(make_visible(day), counts, *late)).collect();
    let mut out = String::new();
    if !rows.is_empty() {
        let (mut counts, late) = (SuggestCounts::default(), result.days.iter().map(|day| day.late).sum());
        result.days.iter().for_each(|day| counts.add_counts(day.counts));
        rows.push(row("all".into(), &counts, late));
        let [told, followed, failed, bytes] = COUNTS;
        let columns = [whole_column("DAY", 0), told, followed, failed, whole_column("LATE", 1), bytes];
        out = format!("\n{}", render_fitting(&columns, rows));
    }
    if let Some(note) = result.days_note.as_ref().filter(|_| is_unserved || !out.is_empty()) {
        let _ = writeln!(out, "{}", with_style(FAINT, make_visible(note)));
    }
    out
}

/// Returns a bar. A count above zero has at least one column.
fn draw_bar(count: u64, most: u64) -> String {
    let columns = count.saturating_mul(BAR).div_ceil(most.max(1)).min(BAR);
    (0..columns).map(|_| '█').collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(answer: Value) -> T {
        serde_json::from_value(answer).unwrap()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_server_in_sentences() {
        let result = json!({
            "version": "0.1.0", "session_id": "s1", "role": "PRIMARY", "started": "2020-01-01T00:00:00Z", "hints": 1,
            "components": 2, "limits": {"hints": 5000}, "uptime_s": 5, "pid": 7, "port": 8765, "members": 3,
            "proxies": [8, 9], "journal_bytes": 4096, "keeping": {"on": true, "hints": 1, "of_files": 4, "file": "/k\u{7}", "aside": "x"},
            "notes": {"count": 2, "last": "y"},
        });
        let said = plain(&render_status(&read(result.clone())));
        let (head, rest) = said.split_once('\n').unwrap();
        assert!(
            head.starts_with("✔ Nudge 0.1.0 runs on 127.0.0.1:8765, for ") && head.ends_with("d (pid 7)"),
            "{head}"
        );
        assert_eq!(
            rest,
            "  hints    1 hint in 2 components, of 5000 at most\n\
             \x20 agents   2 more processes stand by (pids 8, 9)\n\
             \x20 kept     1 hint for next time, in /k\\u{7}; 4 more follow the files of repositories\n\
             \x20          note: x\n\
             \x20 session  s1, a journal of 4 KiB\n\
             \x20 notes    count 2, last y\n"
        );
        let mut alone = result;
        alone.as_object_mut().unwrap().extend([
            ("proxies".to_owned(), json!([])),
            ("keeping".to_owned(), json!({"on": false, "why": "keep is off"})),
        ]);
        let alone = plain(&render_status(&read(alone)));
        assert!(alone.contains("  kept     nothing: keep is off\n") && alone.contains("no other process"), "{alone}");
    }

    #[test]
    fn bars_are_as_long_as_the_counts_are_large() {
        for (count, most, columns) in [(0, 0, 0), (0, 9, 0), (1, 900, 1), (5, 10, 10), (10, 10, 20)] {
            assert_eq!(draw_bar(count, most).chars().count(), columns, "{count} of {most}");
        }
        let row = json!({"suggestions": 2, "bytes": 80, "followed": 1, "failed": 0});
        let with = |more: Value| {
            let mut row = row.clone();
            row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            row
        };
        let result = with(json!({
            "hints": 1, "hits": 0,
            "sessions": [with(json!({"client_session": "s", "last_active": "2020-01-01T00:00:00Z"}))],
            "hours": [with(json!({"since": "2020-01-01T00:00:00Z"}))],
        }));
        let said = plain(&render_stats(&read(result), false));
        assert!(said.contains("2    ████████████████████  1         0       80\n"), "{said}");
        let nothing = json!({"hints": 1, "hits": 2, "suggestions": 0, "bytes": 0, "followed": 0, "failed": 0});
        let mut none = nothing;
        none.as_object_mut().unwrap().extend(["sessions", "hours"].map(|name| (name.to_owned(), json!([]))));
        let none = plain(&render_stats(&read(none), false));
        assert_eq!(
            none,
            "1 hint, 2 hits\nThis server has told no agent anything yet; `nudge doctor` says whether the hooks are in.\n"
        );
    }
}
