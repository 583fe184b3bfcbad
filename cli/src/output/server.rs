//! The running server as people see it: `status` and `stats`.

use std::fmt::Write as _;

use serde_json::Value;

use super::table::{Cells, TableColumn, cut_column, render_fitting, whole_column};
use super::tables::{self, describe_age};
use super::time;
use super::{FAINT, GOOD, STRONG, count_noun, join_list, make_visible, to_text, with_style};

/// Columns of the longest bar.
const BAR: u64 = 20;

/// The counts of `stats`. Bytes matter least.
const COUNTS: [TableColumn<'static>; 4] =
    [whole_column("TOLD", 0), whole_column("FOLLOWED", 1), whole_column("FAILED", 1), whole_column("BYTES", 3)];

/// Members of a `nudge.status` that are told in sentences.
const TOLD: [&str; 16] = [
    "version",
    "session_id",
    "role",
    "started",
    "uptime_s",
    "pid",
    "port",
    "members",
    "proxies",
    "journal_bytes",
    "keeping",
    "files_put_back",
    "hints",
    "hints_understood",
    "components",
    "limits",
];

/// The output of `status`.
pub fn render_status(result: &Value) -> String {
    let number = |name: &str| result[name].as_u64().unwrap_or_default();
    let head = format!("Nudge {} runs on 127.0.0.1:{}", to_text(&result["version"]), number("port"));
    let since = match describe_age(&result["started"]).strip_suffix(" ago") {
        Some(age) => format!(", for {age}"),
        None => ", since a moment ago".into(),
    };
    let mut out = format!("{} {}{since} (pid {})\n", with_style(GOOD, "✔"), with_style(STRONG, head), number("pid"));
    let mut row = |name: &str, told: &str| {
        let _ = writeln!(out, "  {name:<8} {told}");
    };
    if !result["hints"].is_null() {
        let (hints, components) = (count_noun(number("hints"), "hint"), count_noun(number("components"), "component"));
        let understood = match result["hints_understood"].as_u64() {
            Some(count) => format!("; {count} found by meaning, too"),
            None => String::new(),
        };
        let most = to_text(&result["limits"]["hints"]);
        row("hints", &format!("{hints} in {components}, of {most} at most{understood}"));
    }
    let proxies: Vec<_> = result["proxies"].as_array().into_iter().flatten().map(to_text).collect();
    match &proxies[..] {
        [] => row("agents", "no other process stands by"),
        [pid] => row("agents", &format!("1 more process stands by (pid {pid})")),
        more => row("agents", &format!("{} more processes stand by (pids {})", more.len(), more.join(", "))),
    }
    let keeping = &result["keeping"];
    let kept = match keeping["file"].as_str() {
        Some(file) if keeping["on"] == true => {
            format!(
                "{} for next time, in {}",
                count_noun(keeping["hints"].as_u64().unwrap_or_default(), "hint"),
                make_visible(file)
            )
        }
        _ => format!("nothing: {}", to_text(&keeping["why"])),
    };
    row("kept", &kept);
    for (name, what) in [("failed", "not up to date"), ("aside", "put aside")] {
        if let Some(why) = keeping[name].as_str().filter(|_| keeping["on"] == true) {
            row("", &format!("{what}: {}", make_visible(why)));
        }
    }
    let journal = match result["journal_bytes"].as_u64() {
        Some(bytes) => format!("a journal of {}", show_size(bytes)),
        None => "no journal".into(),
    };
    row("session", &format!("{}, {journal}", to_text(&result["session_id"])));
    if let Some(told) = files_put_back(result) {
        row("", &told);
    }
    // The members of the other sources.
    for (name, value) in result.as_object().into_iter().flatten().filter(|(name, _)| !TOLD.contains(&name.as_str())) {
        row(&make_visible(name), &render_members(value));
    }
    out
}

/// Says when somebody has removed files of the session, which are there again.
pub fn files_put_back(status: &Value) -> Option<String> {
    let put_back_at = &status["files_put_back"];
    put_back_at
        .is_string()
        .then(|| format!("somebody removed its files; they were put back {}", describe_age(put_back_at)))
}

/// Renders the members of a source in a line.
pub fn render_members(value: &Value) -> String {
    let member =
        |(name, value): (&String, &Value)| format!("{} {}", make_visible(name).replace('_', " "), to_text(value));
    match value.as_object() {
        Some(inner) => inner.iter().map(member).collect::<Vec<_>>().join(", "),
        None => join_list(value).unwrap_or_else(|| to_text(value)),
    }
}

/// Returns bytes in a unit in which they are a small number.
fn show_size(bytes: u64) -> String {
    match bytes {
        0..1024 => count_noun(bytes, "byte"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}

/// The output of `stats`.
pub fn render_stats(result: &Value) -> String {
    let count = |row: &Value, name: &str| row[name].as_u64().unwrap_or_default();
    let counts = |row: &Value| ["followed", "failed", "bytes"].map(|field| to_text(&row[field]));
    let mut out =
        format!("{}, {}\n", count_noun(count(result, "hints"), "hint"), count_noun(count(result, "hits"), "hit"));
    let told = count(result, "suggestions");
    let list = |name: &str| result[name].as_array().map(Vec::as_slice).unwrap_or_default();
    if told == 0 && list("sessions").is_empty() {
        return out
            + &with_style(
                FAINT,
                "This server has told no agent anything yet; `nudge doctor` says whether the hooks are in.",
            )
            + "\n";
    }
    let most = list("hours").iter().map(|hour| count(hour, "suggestions")).max().unwrap_or_default();
    let hour = |row: &Value| -> Cells {
        let told = count(row, "suggestions");
        let since = row["since"].as_str().and_then(nudge::parse_time).map(time::to_local).unwrap_or_default();
        // The number comes first: the bar is cut when there is little room.
        ([since, format!("{told:<4} {}", draw_bar(told, most))].into_iter().chain(counts(row)).collect(), false)
    };
    let hours: Vec<_> = list("hours").iter().map(hour).collect();
    if !hours.is_empty() {
        out.push('\n');
        let [_, followed, failed, bytes] = COUNTS;
        out +=
            &render_fitting(&[whole_column("HOUR FROM", 0), cut_column("TOLD", 5, 0), followed, failed, bytes], hours);
    }
    let session = |row: &Value| -> Cells {
        let who = tables::one_line(row["client_session"].as_str().unwrap_or_default());
        (
            [who, describe_age(&row["last_active"]), to_text(&row["suggestions"])]
                .into_iter()
                .chain(counts(row))
                .collect(),
            false,
        )
    };
    let mut rows: Vec<_> = list("sessions").iter().map(session).collect();
    rows.push((["all".into(), String::new(), told.to_string()].into_iter().chain(counts(result)).collect(), false));
    out.push('\n');
    let [told, followed, failed, bytes] = COUNTS;
    out +=
        &render_fitting(&[cut_column("SESSION", 8, 0), whole_column("ACTIVE", 2), told, followed, failed, bytes], rows);
    out
}

/// Returns a bar; every count but zero has one.
fn draw_bar(count: u64, most: u64) -> String {
    let columns = (count * BAR).div_ceil(most.max(1));
    "█".repeat(usize::try_from(columns).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_server_in_sentences() {
        let result = json!({
            "version": "0.1.0", "session_id": "s1", "role": "PRIMARY", "started": "2020-01-01T00:00:00Z", "hints": 1,
            "components": 2, "limits": {"hints": 5000}, "uptime_s": 5, "pid": 7, "port": 8765, "members": 3,
            "proxies": [8, 9], "journal_bytes": 4096, "keeping": {"on": true, "hints": 1, "file": "/k\u{7}", "aside": "x"},
            "notes": {"count": 2, "last": "y"},
        });
        let said = plain(&render_status(&result));
        let (head, rest) = said.split_once('\n').unwrap();
        assert!(
            head.starts_with("✔ Nudge 0.1.0 runs on 127.0.0.1:8765, for ") && head.ends_with("d (pid 7)"),
            "{head}"
        );
        assert_eq!(
            rest,
            "  hints    1 hint in 2 components, of 5000 at most\n\
             \x20 agents   2 more processes stand by (pids 8, 9)\n\
             \x20 kept     1 hint for next time, in /k\\u{7}\n\
             \x20          put aside: x\n\
             \x20 session  s1, a journal of 4 KiB\n\
             \x20 notes    count 2, last y\n"
        );
        let alone = plain(&render_status(
            &json!({"started": "x", "proxies": [], "keeping": {"on": false, "why": "keep is off"}}),
        ));
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
        let said = plain(&render_stats(&result));
        assert!(said.contains("2    ████████████████████  1         0       80\n"), "{said}");
        let none = plain(&render_stats(&json!({"hints": 1, "hits": 2, "suggestions": 0, "sessions": [], "hours": []})));
        assert_eq!(
            none,
            "1 hint, 2 hits\nThis server has told no agent anything yet; `nudge doctor` says whether the hooks are in.\n"
        );
    }
}
