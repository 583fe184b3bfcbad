//! Formats answers for a person at the command line.

use nudge_core::report::{AnswerReport, build_rows, format_value, list_members};
use nudge_core::text::first_line;
use serde_json::Value;

/// Reports the result of a search.
pub fn report_search(answer: &Value) -> AnswerReport {
    let rows = build_rows(&answer["nodes"], |node| {
        let (path, name) = split_id(&node["id"]);
        vec![
            name,
            format_value(&node["kind"]),
            format!("{path}:{}", format_value(&node["line"])),
            format_value(&node["signature"]),
            format_value(&node["score"]),
            format_value(&node["reason"]),
        ]
    });
    let more =
        answer["omitted"].as_u64().filter(|more| *more > 0).map(|more| format!("{more} more; `--limit` shows them"));
    if rows.is_empty() {
        return AnswerReport { notes: as_of(answer), ..AnswerReport::from_line("nothing found") };
    }
    AnswerReport {
        columns: &["NAME", "KIND", "PLACE", "SIGNATURE", "SCORE", "REASON"],
        rows,
        notes: more.into_iter().chain(as_of(answer)).collect(),
        ..AnswerReport::default()
    }
}

/// Reports a node.
pub fn report_node(answer: &Value) -> AnswerReport {
    let node = &answer["node"];
    let (path, name) = split_id(&node["id"]);
    let mut lines = vec![
        format!("{path}:{} {} {name}", format_value(&node["line"]), format_value(&node["kind"])),
        format_value(&node["signature"]),
    ];
    lines.extend(node["doc"].as_str().map(|doc| first_line(doc).to_owned()));
    for drift in list_members(&node["drift"]) {
        lines.push(format!("doc: {} ({})", format_value(&drift["detail"]), format_value(&drift["rule"])));
    }
    let edge = |how: &'static str| move |edge: &Value| edge_row(how, edge);
    let mut rows = build_rows(&answer["callers"], edge("called by"));
    rows.extend(list_members(&answer["callees"]).iter().map(edge("calls")));
    let test = |link: &Value| {
        let (path, name) = split_id(&link["id"]);
        vec!["tested by".to_owned(), name, path, format_value(&link["how"])]
    };
    rows.extend(list_members(&answer["tests"]["links"]).iter().map(test));
    let notes = list_doubts(answer).into_iter().chain(tests_notes(&answer["tests"])).chain(as_of(answer)).collect();
    AnswerReport { lines, columns: &["HOW", "NODE", "PLACE", "KNOWN"], rows, notes, ..AnswerReport::default() }
}

/// Reports a file.
pub fn report_file(answer: &Value) -> AnswerReport {
    if !answer["folders"].is_null() {
        return report_folder(answer);
    }
    let rows = build_rows(&answer["nodes"], |node| {
        vec![
            format_value(&node["line"]),
            format_value(&node["kind"]),
            split_id(&node["id"]).1,
            format_value(&node["signature"]),
            format_value(&node["complexity"]),
        ]
    });
    let mut lines = vec![format!("{} ({})", format_value(&answer["path"]), format_value(&answer["language"]))];
    let imports: Vec<_> =
        list_members(&answer["imports"]).iter().map(|import| format_value(&import["module"])).collect();
    if !imports.is_empty() {
        lines.push(format!("imports {}", imports.join(", ")));
    }
    let importers: Vec<_> = list_members(&answer["imported_by"]).iter().map(format_value).collect();
    if !importers.is_empty() {
        lines.push(format!("imported by {}", importers.join(", ")));
    }
    let broken = (answer["parse_errors"] == true)
        .then(|| "parts of it are not valid: what they define is missing here; the rest stands".to_owned());
    AnswerReport {
        lines,
        columns: &["LINE", "KIND", "NAME", "SIGNATURE", "COMPLEXITY"],
        rows,
        notes: broken.into_iter().chain(as_of(answer)).collect(),
        ..AnswerReport::default()
    }
}

/// Reports the content of a folder.
fn report_folder(answer: &Value) -> AnswerReport {
    let inner = |folder: &Value| {
        vec![
            format!("{}/", format_value(&folder["path"])),
            String::new(),
            format!("{} files", format_value(&folder["files"])),
        ]
    };
    let own = |file: &Value| {
        let nodes = if file["skipped"].is_null() {
            format_value(&file["nodes"])
        } else {
            format!("left out: {}", format_value(&file["skipped"]))
        };
        vec![format_value(&file["path"]), format_value(&file["language"]), nodes]
    };
    let rows: Vec<_> =
        build_rows(&answer["folders"], inner).into_iter().chain(build_rows(&answer["files"], own)).collect();
    if rows.is_empty() {
        return AnswerReport { notes: as_of(answer), ..AnswerReport::from_line("no code that is read is in it") };
    }
    AnswerReport {
        columns: &["PATH", "LANGUAGE", "DEFINITIONS"],
        rows,
        notes: as_of(answer),
        ..AnswerReport::default()
    }
}

/// Reports callers.
pub fn report_callers(answer: &Value) -> AnswerReport {
    let rows = build_rows(&answer["callers"], |edge| {
        let mut row = edge_row("", edge);
        row.remove(0);
        row.push(format_value(&edge["depth"]));
        row
    });
    let notes = list_doubts(answer).into_iter().chain(as_of(answer)).collect();
    if rows.is_empty() {
        return AnswerReport { notes, ..AnswerReport::from_line("no caller found") };
    }
    AnswerReport { columns: &["CALLER", "PLACE", "KNOWN", "DEPTH"], rows, notes, ..AnswerReport::default() }
}

/// Reports tests.
pub fn report_tests(answer: &Value) -> AnswerReport {
    let rows = build_rows(&answer["links"], |link| {
        let (path, name) = split_id(&link["id"]);
        vec![name, path, format_value(&link["how"]), format_value(&link["depth"])]
    });
    let lines = answer["command"].as_str().map(str::to_owned).into_iter().collect();
    let notes = tests_notes(answer).into_iter().chain(as_of(answer)).collect();
    let columns: &[&str] = if rows.is_empty() { &[] } else { &["TEST", "FILE", "HOW", "DEPTH"] };
    AnswerReport { lines, columns, rows, notes, ..AnswerReport::default() }
}

/// Reports the nodes that a prompt mentions.
pub fn report_context(answer: &Value) -> AnswerReport {
    let lines: Vec<_> = list_members(&answer["lines"]).iter().map(format_value).collect();
    let lines = if lines.is_empty() { vec!["nothing comes to mind".to_owned()] } else { lines };
    AnswerReport { lines, notes: as_of(answer), ..AnswerReport::default() }
}

/// Reports the status of the index.
pub fn report_status(answer: &Value) -> AnswerReport {
    let counts = |tally: &Value| {
        let counts: Vec<_> =
            tally.as_object().into_iter().flatten().map(|(name, count)| format!("{name} {count}")).collect();
        counts.join(", ")
    };
    let megabytes = answer["memory"].as_u64().unwrap_or_default() / 1_000_000;
    let lines = [
        ("root", format_value(&answer["root"])),
        ("files", format_value(&answer["files"])),
        ("nodes", format_value(&answer["nodes"])),
        ("languages", counts(&answer["languages"])),
        ("left out", counts(&answer["skipped"])),
        ("watch", format_value(&answer["watch"])),
        ("cache", format_value(&answer["cache"])),
        ("memory", format!("{megabytes} MB")),
        ("last error", format_value(&answer["last_error"])),
    ];
    let lines = lines.iter().filter(|(_, said)| !said.is_empty()).map(|(name, said)| format!("{name:<10} {said}"));
    AnswerReport { lines: lines.collect(), notes: as_of(answer), ..AnswerReport::default() }
}

/// Reports the result of a refresh.
pub fn report_refresh(answer: &Value) -> AnswerReport {
    let line = format!("✔ {} files, {} nodes", format_value(&answer["files"]), format_value(&answer["nodes"]));
    AnswerReport { notes: as_of(answer), ..AnswerReport::from_line(line) }
}

fn edge_row(how: &str, edge: &Value) -> Vec<String> {
    let name = if edge["id"].is_null() { "(top of the file)".to_owned() } else { split_id(&edge["id"]).1 };
    vec![
        how.to_owned(),
        name,
        format!("{}:{}", format_value(&edge["path"]), format_value(&edge["line"])),
        format_value(&edge["how"]),
    ]
}

/// Lists the reasons why an answer about callers may be incomplete.
fn list_doubts(answer: &Value) -> Vec<String> {
    let count = |name: &str| answer[name].as_u64().filter(|count| *count > 0);
    let omitted = count("omitted").map(|more| format!("{more} more callers"));
    let same = count("unresolved_same_name").map(|calls| format!("{calls} more calls of this name may mean it, too"));
    omitted.into_iter().chain(same).collect()
}

fn tests_notes(tests: &Value) -> Vec<String> {
    let note = tests["note"].as_str().map(|note| format!("tests: {note}"));
    let named: Vec<_> = list_members(&tests["named"]).iter().map(format_value).collect();
    let named = (!named.is_empty()).then(|| format!("named after it: {}", named.join(", ")));
    note.into_iter().chain(named).collect()
}

/// Lists the reasons why the answer may be out of date.
fn as_of(answer: &Value) -> Vec<String> {
    let as_of = &answer["as_of"];
    let pending = as_of["pending"].as_u64().filter(|pending| *pending > 0);
    let pending = pending.map(|pending| format!("{pending} files are not read yet; ask again"));
    let is_late = as_of["pending"] == 0 && as_of["complete"] == false;
    let looked = as_of["looked_at"].as_str().filter(|_| is_late);
    let looked = looked.map(|time| format!("changes since {time} may not be seen yet; `nudge code refresh` looks now"));
    let truncated = (as_of["truncated"] == true).then(|| "the project is larger than what is indexed".to_owned());
    pending.into_iter().chain(looked).chain(truncated).collect()
}

/// Splits the id of a node into file and name.
fn split_id(id: &Value) -> (String, String) {
    let id = id.as_str().unwrap_or("");
    let bare = id.strip_prefix("node:").unwrap_or(id);
    let (path, name) = bare.rsplit_once(':').unwrap_or((bare, ""));
    (path.to_owned(), name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_in_a_persons_words() {
        let as_of = json!({"pending": 3, "truncated": false});
        let told = report_search(&json!({"nodes": [], "omitted": 0, "as_of": as_of}));
        assert_eq!((&*told.lines[0], &*told.notes[0]), ("nothing found", "3 files are not read yet; ask again"));
        let broken =
            json!({"path": "a.py", "language": "python", "nodes": [], "parse_errors": true, "as_of": {"pending": 0}});
        assert!(report_file(&broken).notes[0].starts_with("parts of it are not valid"));
        let late = json!({"nodes": [], "as_of": {"pending": 0, "complete": false, "looked_at": "T"}});
        assert!(report_search(&late).notes[0].starts_with("changes since T may not be seen yet"));
        let edge = json!({"id": "node:b.py:g", "path": "b.py", "line": 7, "how": "imported", "certain": true});
        let shown = json!({"id": "node:a.py:f", "kind": "function", "line": 1, "signature": "f(x)", "drift": [{"rule": "R1", "detail": "names `y`"}]});
        let told = report_node(
            &json!({"node": shown, "callers": [edge], "unresolved_same_name": 2, "tests": {"note": "none"}}),
        );
        assert_eq!(told.lines, ["a.py:1 function f", "f(x)", "doc: names `y` (R1)"]);
        assert_eq!(told.rows, [["called by", "g", "b.py:7", "imported"]]);
        assert_eq!(told.notes, ["2 more calls of this name may mean it, too", "tests: none"]);
        let told = report_tests(&json!({"links": [], "command": "pytest a.py", "named": ["a.py"]}));
        assert_eq!((told.lines, told.notes), (vec!["pytest a.py".to_owned()], vec!["named after it: a.py".to_owned()]));
    }
}
