//! Measures how the cost of a database grows with its number of records. Each record has a vector.

use std::cell::Cell;
use std::path::Path;

use serde_json::{Value, json};

use super::of;
use crate::records::{Desk, QUESTIONS, Texts};

/// The number of records in an import.
const IMPORTED: usize = 20;

/// Stores the records and their vectors.
pub fn fill(folder: &Path, items: usize) {
    Desk::filled(folder, items).put_vectors();
}

/// Calls all verbs of the records.
pub fn ask(folder: &Path, items: usize) {
    let desk = Desk::at(folder);
    let questions = Texts::questions();
    let asked = |step: usize| json!({"query": questions[step % QUESTIONS], "project": "*"});
    let records = desk.open(true);
    of("search, meaning", 4, |step| {
        let found = records.call("search", &asked(step));
        assert_eq!(found["mode"], "semantic");
    });
    of("duplicates, a tenth", 1, |_| drop(records.call("duplicates", &json!({"project": "acme/p1"}))));
    drop(records);

    let records = desk.open(false);
    let listed = records.call("list", &json!({"project": "*", "limit": 1_000}));
    let ids: Vec<_> = listed["records"].as_array().into_iter().flatten().map(|record| record["id"].clone()).collect();
    let texts = Texts::new(7);
    let new = |step: usize| {
        let (title, body) = texts.record(step);
        json!({"kind": "issue", "title": title, "body": body, "context": {"repo": "github.com/acme/new"}})
    };

    of("search, words", 16, |step| drop(records.call("search", &asked(step))));
    of("list", 4, |_| drop(records.call("list", &json!({"project": "*"}))));
    of("get", 20, |step| drop(records.call("get", &json!({"id": ids[step]}))));
    of("projects", 4, |_| drop(records.call("projects", &json!({}))));
    // Ignores refusals: some random texts look like a credential.
    of("upsert, a new one", 20, |step| drop(records.save(&format!("key {step}"), &new(step))));
    of("upsert, a change", 20, |step| {
        let params = json!({"id": ids[step], "status": "resolved", "distinct": true});
        records.call("upsert", &params);
    });
    of("delete", 20, |step| drop(records.call("delete", &json!({"id": ids[step]}))));
    of("restore", 20, |step| drop(records.call("restore", &json!({"id": ids[step]}))));
    of("merge", 4, |step| {
        let index = 100 + 10 * step;
        // Only records of the same project can be merged.
        records.call("merge", &json!({"into": ids[index], "ids": [same_project(&listed, index)]}));
    });
    let files = Cell::new(0);
    let file = || {
        files.set(files.get() + 1);
        folder.join(format!("out-{}", files.get()))
    };
    of("export, a tenth", 1, |_| drop(records.call("export", &json!({"project": "acme/p2"}))));
    of("backup", 1, |_| drop(records.call("backup", &json!({"file": file()}))));
    of("import, 20 records", 2, |step| {
        let record = |index: usize| {
            let (title, body) = texts.record(1_000 * (1 + step) + index);
            let day = "2026-01-01T00:00:00.000Z";
            json!({"project": "acme/new", "kind": "issue", "title": title, "body": body, "status": "open",
                "created_at": day, "updated_at": day})
        };
        let all = json!({"format": "nudge-records/1", "records": (0..IMPORTED).map(record).collect::<Vec<_>>()});
        let from = file();
        std::fs::write(&from, all.to_string()).expect("there is room for files");
        records.call("import", &json!({"file": from}));
    });
    assert!(items >= 1_000, "the list names as many");
}

/// Returns the id of another record of the same project.
fn same_project(listed: &Value, index: usize) -> Value {
    let records = listed["records"].as_array().expect("a list");
    let other = records[index + 1..].iter().find(|record| record["project"] == records[index]["project"]);
    other.expect("ten projects share them")["id"].clone()
}
