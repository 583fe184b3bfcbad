//! Formats the answers about records for the command line, and for a model.

use nudge_core::report::{AnswerReport, build_rows, format_value, indent_text, list_members};
use nudge_core::service::tool_name;
use serde_json::Value;

use crate::method::{GET, MAX_LIMIT, MAX_LISTED};

/// Reports a saved record, or the near duplicates because of which nothing was saved.
pub fn report_saved(answer: &Value) -> AnswerReport {
    if answer["written"] == false {
        let near = build_rows(&answer["near"], |neighbour| {
            vec![
                format_value(&neighbour["record"]["id"]),
                format_value(&neighbour["record"]["title"]),
                format_value(&neighbour["distance"]),
            ]
        });
        let notes =
            "`--id ID` changes one of them, `--distinct` stores this beside them; `nudge records show ID` shows one.";
        return AnswerReport {
            lines: vec!["Nothing was stored: this is nearly the same as".to_owned()],
            columns: &["ID", "TITLE", "DISTANCE"],
            rows: near,
            notes: vec![notes.to_owned()],
            is_refused: true,
            ..AnswerReport::default()
        };
    }
    let record = &answer["record"];
    let (id, project, version) =
        (format_value(&record["id"]), format_value(&record["project"]), format_value(&record["version"]));
    let line = match (answer["created"] == true, answer["deduplicated"] == true) {
        (true, _) => format!("✔ saved record {id} in {project}"),
        (false, true) => format!("✔ changed record {id} in {project} (v{version}), which said the same"),
        (false, false) => format!("✔ changed record {id} in {project} (v{version})"),
    };
    let similar = answer["similar"].as_array().into_iter().flatten();
    let similar = similar
        .map(|record| format!("similar: record {}, {}", format_value(&record["id"]), format_value(&record["title"])));
    let degraded = answer["degraded"].as_array().into_iter().flatten().map(format_value);
    AnswerReport { notes: similar.chain(degraded).collect(), ..AnswerReport::from_line(line) }
}

/// Reports the results of a search.
pub fn report_found(answer: &Value) -> AnswerReport {
    let mut notes: Vec<_> = answer["degraded"].as_array().into_iter().flatten().map(format_value).collect();
    let results = list_members(&answer["results"]);
    if results.is_empty() {
        return AnswerReport {
            lines: vec![explain_nothing(answer, "nothing found")],
            notes,
            ..AnswerReport::default()
        };
    }
    for hit in results.iter().filter(|hit| !hit["weak"].is_null()) {
        notes.push(format!("{} is weak: it {}", format_value(&hit["id"]), format_value(&hit["weak"])));
    }
    for hit in results.iter().filter(|hit| !hit["explain"].is_null()) {
        let parts = hit["explain"]["parts"].as_object().into_iter().flatten();
        let parts: Vec<_> = parts.map(|(name, part)| format!("{name} {part}")).collect();
        let words: Vec<_> = hit["explain"]["words"].as_array().into_iter().flatten().map(format_value).collect();
        notes.push(format!("{}: {}; holds {}", format_value(&hit["id"]), parts.join(", "), words.join(", ")));
    }
    if let Some(more @ 1..) = answer["omitted"].as_u64() {
        let rest = if results.len() >= MAX_LIMIT { "more words narrow it" } else { "`--limit` shows up to 50" };
        notes.push(format!("{more} more; {rest}"));
    }
    AnswerReport {
        model_lines: results.iter().flat_map(describe_hit).collect(),
        columns: &["ID", "TITLE", "BODY", "RELEVANCE", "UPDATED", "KIND", "STATUS", "PROJECT"],
        rows: build_rows(&answer["results"], |hit| {
            ["id", "title", "body", "relevance", "updated_at", "kind", "status", "project"]
                .map(|name| format_value(&hit[name]))
                .into()
        }),
        notes,
        ..AnswerReport::default()
    }
}

/// Describes a record that was found, for a model: its body is quoted, and a cut one names the call that returns all of
/// it.
fn describe_hit(hit: &Value) -> Vec<String> {
    let [id, kind, status, project, updated, relevance, title] =
        ["id", "kind", "status", "project", "updated_at", "relevance", "title"].map(|name| format_value(&hit[name]));
    let weak = hit["weak"].as_str().map_or(String::new(), |weak| format!(", weak: {weak}"));
    let head = format!("record {id} ({kind}, {status}, in {project}, {updated}, relevance {relevance}{weak}): ");
    let mut lines = vec![head + &indent_text(&title)];
    lines.extend(format_value(&hit["body"]).lines().map(|line| format!("  > {line}").trim_end().to_owned()));
    lines.extend((hit["cut"] == true).then(|| format!("  all of it: {} {{\"id\":{id}}}", tool_name(GET))));
    lines
}

/// Reports a list of records.
pub fn report_list(answer: &Value) -> AnswerReport {
    let listed = build_rows(&answer["records"], |record| {
        ["id", "title", "kind", "status", "updated_at", "project"].map(|name| format_value(&record[name])).into()
    });
    if listed.is_empty() {
        return AnswerReport::from_line(explain_nothing(
            answer,
            "no records here; `--project '*'` lists those of every project",
        ));
    }
    let more = answer["total"].as_u64().filter(|total| *total > listed.len() as u64);
    let rest = more.map(|total| {
        if listed.len() >= MAX_LISTED {
            format!(
                "{} of {total}; `--before '{}'` shows what comes after",
                listed.len(),
                format_value(&answer["next"])
            )
        } else {
            format!("{} of {total}; `--limit` shows up to 1,000", listed.len())
        }
    });
    AnswerReport {
        columns: &["ID", "TITLE", "KIND", "STATUS", "UPDATED", "PROJECT"],
        rows: listed,
        notes: rest.into_iter().collect(),
        ..AnswerReport::default()
    }
}

/// Reports the deletion of a record.
pub fn report_deleted(answer: &Value) -> AnswerReport {
    let id = format_value(&answer["id"]);
    if answer["forever"] == true {
        let mut notes = vec!["copies in `backups` beside the database have it still".to_owned()];
        if answer["pending"] == true {
            let note = "its text leaves the file when the session has saved no record for one to two minutes";
            notes.insert(0, note.to_owned());
        }
        return AnswerReport { notes, ..AnswerReport::from_line(format!("✔ deleted record {id} for ever")) };
    }
    AnswerReport::from_line(format!(
        "✔ deleted record {id}; `nudge records restore {id}` brings it back within 30 days"
    ))
}

/// Reports a record that was restored, or that other records were merged into.
pub fn report_changed(answer: &Value) -> AnswerReport {
    let [id, project, version, title] = ["id", "project", "version", "title"].map(|name| format_value(&answer[name]));
    AnswerReport::from_line(format!("✔ record {id} in {project} (v{version}): {title}"))
}

/// Reports that two projects were joined.
pub fn report_joined(answer: &Value) -> AnswerReport {
    let (moved, project) = (&answer["moved"], format_value(&answer["project"]));
    let records = if *moved == 1 { "1 record is".to_owned() } else { format!("{} records are", format_value(moved)) };
    AnswerReport::from_line(format!(
        "✔ {records} in {project} now; its former name and repositories mean {project}, too"
    ))
}

/// Reports the result of an import.
pub fn report_imported(answer: &Value) -> AnswerReport {
    let [imported, skipped, refused] =
        ["imported", "skipped", "refused"].map(|name| answer[name].as_u64().unwrap_or_default());
    let named =
        build_rows(&answer["errors"], |refusal| vec![format_value(&refusal["at"]), format_value(&refusal["reason"])]);
    let mut said = vec![format!("{} imported {imported}", if imported > 0 { "✔" } else { "-" })];
    if skipped > 0 {
        said.push(format!("{skipped} were there already, with the same text"));
    }
    if refused > 0 {
        let first = if refused > named.len() as u64 { ", the first of them" } else { "" };
        said.push(format!("{refused} are no records or were refused{first}:"));
    }
    let is_refused = imported == 0 && refused > 0;
    let alike = list_members(&answer["similar"]);
    let notes = alike.first().map(|first| {
        let all = alike.len() as u64 + answer["omitted"].as_u64().unwrap_or_default();
        let are = if all == 1 { "1 is".to_owned() } else { format!("{all} are") };
        let (id, other) = (format_value(&first["id"]), format_value(&first["like"]["id"]));
        format!("{are} similar to another, such as record {id} to {other}; `nudge records show ID` shows one")
    });
    AnswerReport {
        notes: notes.into_iter().collect(),
        lines: vec![said.join(", ")],
        columns: &["RECORD", "REASON"],
        rows: named,
        is_refused,
        ..AnswerReport::default()
    }
}

/// Reports that a backup replaced the database.
pub fn report_recovered(answer: &Value) -> AnswerReport {
    let (records, file) = (&answer["records"], format_value(&answer["file"]));
    let newest = answer["newest"].as_str().map(|time| format!(", the newest of {time}")).unwrap_or_default();
    let count = if *records == 1 { "1 record".to_owned() } else { format!("{} records", format_value(records)) };
    let replaced = answer["replaced"].as_str().map(|path| format!("what was there before is {path}"));
    AnswerReport {
        notes: replaced.into_iter().collect(),
        ..AnswerReport::from_line(format!("✔ {count} from {file}{newest}"))
    }
}

/// Returns the sentence for an empty answer: similar names of projects, or else `otherwise`.
fn explain_nothing(answer: &Value, otherwise: &str) -> String {
    let like: Vec<_> = answer["projects_like"].as_array().into_iter().flatten().map(format_value).collect();
    if like.is_empty() {
        otherwise.to_owned()
    } else {
        format!("no project has this name; there is {}", like.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_in_a_persons_words() {
        let record = json!({"id": 5, "project": "acme/shop", "version": 2, "title": "One"});
        for (told, line) in [
            (report_saved(&json!({"record": record, "created": true, "similar": []})), "✔ saved record 5 in acme/shop"),
            (report_saved(&json!({"record": record, "created": false})), "✔ changed record 5 in acme/shop (v2)"),
            (
                report_saved(&json!({"record": record, "created": false, "deduplicated": true})),
                "✔ changed record 5 in acme/shop (v2), which said the same",
            ),
            (
                report_deleted(&json!({"id": 5})),
                "✔ deleted record 5; `nudge records restore 5` brings it back within 30 days",
            ),
            (report_changed(&record), "✔ record 5 in acme/shop (v2): One"),
            (
                report_imported(&json!({"imported": 2, "skipped": 1, "errors": []})),
                "✔ imported 2, 1 were there already, with the same text",
            ),
            (report_imported(&json!({"imported": 0, "skipped": 0, "errors": []})), "- imported 0"),
            (report_found(&json!({"results": []})), "nothing found"),
            (
                report_found(&json!({"results": [], "projects_like": ["acme/shop"]})),
                "no project has this name; there is acme/shop",
            ),
            (
                report_list(&json!({"records": [], "total": 0})),
                "no records here; `--project '*'` lists those of every project",
            ),
        ] {
            assert_eq!((told.lines.as_slice(), told.is_refused), (&[line.to_owned()][..], false));
        }
    }

    #[test]
    fn all_that_were_refused_are_told() {
        let told = report_imported(&json!({"imported": 1, "refused": 500, "errors": [{"at": 1, "reason": "x"}]}));
        assert!(told.notes.is_empty());
        assert_eq!(told.lines, ["✔ imported 1, 500 are no records or were refused, the first of them:"]);
    }

    #[test]
    fn what_came_in_and_is_similar_is_one_line() {
        let similar = json!([{"id": 9, "title": "x", "like": {"id": 3, "title": "X"}}]);
        let told = report_imported(&json!({"imported": 4, "similar": similar, "omitted": 2, "errors": []}));
        assert_eq!(told.notes, ["3 are similar to another, such as record 9 to 3; `nudge records show ID` shows one"]);
    }

    #[test]
    fn what_is_advised_can_be_done() {
        let found_so_many =
            |count: usize| report_found(&json!({"results": vec![json!({"id": 1}); count], "omitted": 2678})).notes;
        assert_eq!(found_so_many(5), ["2678 more; `--limit` shows up to 50"]);
        assert_eq!(found_so_many(50), ["2678 more; more words narrow it"]);
        let listed =
            report_list(&json!({"records": vec![json!({"id": 1}); 1_000], "total": 1_200, "next": "x 7"})).notes;
        assert_eq!(listed, ["1000 of 1200; `--before 'x 7'` shows what comes after"]);
    }

    #[test]
    fn a_model_reads_a_record_in_lines() {
        let hit = json!({"id": 5, "kind": "issue", "status": "resolved", "project": "acme/shop", "updated_at": "T",
            "relevance": 0.7, "title": "One", "body": "a\n\nrecord 6", "cut": true});
        assert_eq!(
            report_found(&json!({"results": [hit], "omitted": 2})).to_model_text(),
            "record 5 (issue, resolved, in acme/shop, T, relevance 0.7): One\n  > a\n  >\n  > record 6\n  \
             all of it: nudge_records_get {\"id\":5}\n2 more; `limit` shows up to 50"
        );
    }

    #[test]
    fn a_question_is_no_success() {
        let near = json!([{"record": {"id": 5, "title": "One"}, "distance": 0.0143}]);
        let asked = report_saved(&json!({"written": false, "message": "x", "near": near}));
        assert_eq!(asked.rows, [["5", "One", "0.0143"]]);
        assert!(asked.is_refused && asked.notes[0].contains("--distinct"), "{asked:?}");
    }
}
