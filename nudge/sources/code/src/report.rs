//! Formats answers as the command line prints them for a person, and as tools tell them to a model.

use nudge_core::report::{AnswerReport, build_rows, format_value, indent_text, list_members};
use nudge_core::text::{clip_text, first_line};
use serde_json::Value;

/// Longest signature and documentation of a definition among many, in characters, for a model.
const BRIEF_CHARS: usize = 100;
/// Bytes of a search with details, which the best definitions have: each has its place and name.
const MAX_SEARCH_BYTES: usize = 2_800;
/// Longest documentation of the one definition that is looked at, in characters, for a model.
const DOC_CHARS: usize = 600;
/// Bytes of the callers that a model reads, of what is called, and of its tests: with the rest of the answer they are
/// below 3,000. Those that do not fit are counted.
const CALLERS_BYTES: usize = 1_000;
const CALLEES_BYTES: usize = 400;
const TESTS_BYTES: usize = 300;

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
        model_lines: describe_found(list_members(&answer["nodes"])),
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
    AnswerReport {
        model_lines: describe_node(answer),
        lines,
        columns: &["HOW", "NODE", "PLACE", "KNOWN"],
        rows,
        notes,
        ..AnswerReport::default()
    }
}

/// Describes the definitions that were found, a line for each: place and name, and as far as there is room its
/// signature, its doc, and why it was found.
fn describe_found(nodes: &[Value]) -> Vec<String> {
    let brief = |node: &Value| {
        let (path, name) = split_id(&node["id"]);
        let [kind, line] = ["kind", "line"].map(|member| format_value(&node[member]));
        format!("{path}:{line} {kind} {name}{}", describe_staleness(node))
    };
    let mut lines: Vec<_> = nodes.iter().map(brief).collect();
    let told: usize = lines.iter().map(|line| line.len() + 1).sum();
    let mut room = MAX_SEARCH_BYTES.saturating_sub(told);
    for (line, node) in lines.iter_mut().zip(nodes) {
        let [score, reason] = ["score", "reason"].map(|member| format_value(&node[member]));
        let to_brief = |doc| format!(" - {}", clip_text(first_line(doc), BRIEF_CHARS));
        let doc = node["doc"].as_str().map_or_else(String::new, to_brief);
        let signature = clip_text(&indent_text(&format_value(&node["signature"])), BRIEF_CHARS);
        let details = format!(": {signature}{doc} [{score}, {reason}]");
        if let Some(left) = room.checked_sub(details.len()) {
            room = left;
            line.push_str(&details);
        }
    }
    lines
}

/// Describes one definition with all that is known of it.
fn describe_node(answer: &Value) -> Vec<String> {
    let node = &answer["node"];
    let (path, name) = split_id(&node["id"]);
    let [kind, line, end] = ["kind", "line", "end_line"].map(|member| format_value(&node[member]));
    let mut lines = vec![
        format!("{path}:{line}-{end} {kind} {name}{}", describe_staleness(node)),
        indent_text(&format_value(&node["signature"])),
    ];
    lines.extend(node["doc"].as_str().map(|doc| format!("  {}", clip_text(&indent_text(doc), DOC_CHARS))));
    for drift in list_members(&node["drift"]) {
        lines.push(format!("the doc is wrong: {} ({})", format_value(&drift["detail"]), format_value(&drift["rule"])));
    }
    for (member, word) in [("bases", "bases"), ("complexity", "complexity"), ("last_changed", "last changed")] {
        let text = format_value(&node[member]);
        lines.extend((!text.is_empty() && text != "1").then(|| format!("{word}: {text}")));
    }
    lines.extend(describe_edges("called by", &answer["callers"], &path, CALLERS_BYTES));
    lines.extend(describe_edges("calls", &answer["callees"], &path, CALLEES_BYTES));
    lines.extend(describe_test_links(&answer["tests"], TESTS_BYTES));
    lines.extend(answer["tests"]["command"].as_str().map(|command| format!("run its tests: {command}")));
    lines
}

/// Describes calls, a line for each file and each way in which they are known. `path` is the file of the node itself.
fn describe_edges(word: &str, edges: &Value, path: &str, max_bytes: usize) -> Vec<String> {
    /// The calls of one line: how they are known, their file, and for each node its lines.
    struct EdgeGroup<'a> {
        how: String,
        path: &'a str,
        nodes: Vec<(String, String)>,
    }
    let mut groups: Vec<EdgeGroup<'_>> = Vec::new();
    for edge in list_members(edges) {
        let how = format!("{}{}", format_value(&edge["how"]), if edge["certain"] == false { ", perhaps" } else { "" });
        let file = edge["path"].as_str().unwrap_or("");
        let name = if edge["id"].is_null() { "(top of the file)".to_owned() } else { split_id(&edge["id"]).1 };
        let line = format_value(&edge["line"]);
        let found = groups.iter().position(|group| group.how == how && group.path == file);
        let found = found.unwrap_or_else(|| {
            groups.push(EdgeGroup { how, path: file, nodes: Vec::new() });
            groups.len() - 1
        });
        let nodes = &mut groups[found].nodes;
        match nodes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, lines)) => *lines = format!("{lines},{line}"),
            None => nodes.push((name, line)),
        }
    }
    let (mut out, mut room, mut left_out) = (Vec::new(), max_bytes, 0);
    for group in groups {
        let file = if group.path == path { "this file" } else { group.path };
        let mut line = format!("{word} ({}) {file}", group.how);
        let head = line.len();
        for (name, lines) in group.nodes {
            let part = format!("{}{name}:{lines}", if line.len() == head { ": " } else { ", " });
            let bytes = part.len() + if line.len() == head { head + 1 } else { 0 };
            match room.checked_sub(bytes) {
                Some(left) => {
                    room = left;
                    line.push_str(&part);
                }
                None => left_out += 1,
            }
        }
        out.extend((line.len() > head).then_some(line));
    }
    out.extend((left_out > 0).then(|| format!("{word} {left_out} more")));
    out
}

/// Describes the links to tests, a line for each file and each way in which they are known.
fn describe_test_links(tests: &Value, max_bytes: usize) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let (mut room, mut left_out) = (max_bytes, 0);
    for link in list_members(&tests["links"]) {
        let (path, name) = split_id(&link["id"]);
        let head = format!("tested by ({}) {path}", format_value(&link["how"]));
        let found = groups.iter_mut().find(|(known, _)| *known == head);
        let bytes = name.len() + 2 + if found.is_none() { head.len() } else { 0 };
        let Some(left) = room.checked_sub(bytes) else {
            left_out += 1;
            continue;
        };
        room = left;
        match found {
            Some((_, names)) => names.push(name),
            None => groups.push((head, vec![name])),
        }
    }
    let more = (left_out > 0).then(|| format!("tested by {left_out} more; nudge_code_tests lists them"));
    groups.into_iter().map(|(head, names)| format!("{head}: {}", names.join(", "))).chain(more).collect()
}

/// Says that the file of a node has changed since it was read.
fn describe_staleness(node: &Value) -> &'static str {
    if node["fresh"] == false { " (its file has changed since)" } else { "" }
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
    let lines: Vec<_> = answer["command"].as_str().map(str::to_owned).into_iter().collect();
    let notes = tests_notes(answer).into_iter().chain(as_of(answer)).collect();
    let columns: &[&str] = if rows.is_empty() { &[] } else { &["TEST", "FILE", "HOW", "DEPTH"] };
    let model_lines = lines.iter().cloned().chain(describe_test_links(answer, usize::MAX)).collect();
    AnswerReport { lines, columns, rows, notes, model_lines, ..AnswerReport::default() }
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
    let omitted =
        count("omitted").map(|more| format!("{more} more callers; `nudge code callers ID --limit N` lists them"));
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

    /// 50 callers in 30 files and 20 definitions fit into what a model is told of them.
    #[test]
    fn a_model_reads_few_bytes() {
        let edge = |number: usize| {
            let path = format!("packages/app/src/node/server/middlewares/file{}.ts", number % 30);
            json!({"id": format!("node:{path}:callingFunction{number}"), "path": path, "line": 1000 + number, "how": "imported", "certain": true, "fresh": true})
        };
        let edges: Vec<_> = (0..50).map(edge).collect();
        let links: Vec<_> = (0..20).map(|number| json!({"id": format!("node:test/a{number}.ts:a long name of a test"), "how": "call", "depth": 1})).collect();
        let node = json!({"id": "node:packages/app/src/node/utils.ts:normalizePath", "kind": "function", "line": 232, "end_line": 234,
            "signature": "s".repeat(300), "doc": "d".repeat(5_000), "complexity": 2, "fresh": true});
        let answer = json!({"node": node, "callers": edges, "omitted": 70, "callees": edges, "unresolved_same_name": 3,
            "tests": {"links": links, "command": "npx vitest run test/a1.ts"}, "as_of": {"pending": 0, "complete": true}});
        let told = report_node(&answer).to_model_text();
        assert!(told.len() <= 3_000, "{} bytes: {told}", told.len());
        assert!(
            told.contains(
                "called by (imported) packages/app/src/node/server/middlewares/file0.ts: callingFunction0:1000"
            ),
            "{told}"
        );
        assert!(
            told.contains("more; nudge_code_tests") && told.contains("70 more callers; `nudge code callers ID"),
            "{told}"
        );

        let found: Vec<_> = (0..20).map(|number| json!({"id": format!("node:packages/app/src/node/config.ts:resolveConfig.someInnerName{number}"), "kind": "function",
            "line": 1456, "signature": "s".repeat(300), "doc": "d".repeat(300), "score": 0.5429, "reason": "name holds resolve, config", "fresh": true})).collect();
        let told = report_search(&json!({"nodes": found, "omitted": 105, "as_of": {"pending": 0}})).to_model_text();
        assert!(told.len() <= 3_000 && told.lines().count() == 21, "{} bytes: {told}", told.len());
        assert!(told.contains("someInnerName0: sss") && told.contains("someInnerName19\n"), "{told}");
    }

    #[test]
    fn calls_of_one_file_are_one_line() {
        let edge = |name: &str, path: &str, line: u32| json!({"id": format!("node:{path}:{name}"), "path": path, "line": line, "how": "local", "certain": true});
        let edges = json!([edge("f", "a.py", 1), edge("g", "b.py", 2), edge("f", "a.py", 3), edge("h", "a.py", 4)]);
        let told = describe_edges("called by", &edges, "b.py", CALLERS_BYTES);
        assert_eq!(told, ["called by (local) a.py: f:1,3, h:4", "called by (local) this file: g:2"]);
        let unsure = json!([{"id": null, "path": "a.py", "line": 9, "how": "likely", "certain": false}]);
        assert_eq!(
            describe_edges("calls", &unsure, "b.py", 100),
            ["calls (likely, perhaps) a.py: (top of the file):9"]
        );
        assert_eq!(describe_edges("calls", &edges, "b.py", 30), ["calls (local) a.py: f:1,3", "calls 2 more"]);
    }
}
