//! Tests records that come from other databases and files.

mod kit;

use std::path::PathBuf;

use kit::{Desk, SHOP};
use nudge_storage::rusqlite::Connection;
use serde_json::{Value, json};

/// Makes a database of the upstream plugin with these records. Project 1 is `acme/shop`.
fn upstream(desk: &Desk, rows: &str) -> PathBuf {
    let file = desk.folder.path().join("dude.db");
    let script = format!(
        "CREATE TABLE project(id INTEGER PRIMARY KEY, name TEXT UNIQUE, created_at TEXT, updated_at TEXT);
         CREATE TABLE record(id INTEGER PRIMARY KEY, project_id INTEGER, kind TEXT, title TEXT, body TEXT, status TEXT,
           created_at TEXT, updated_at TEXT);
         INSERT INTO project VALUES(1, 'acme/shop', '', '');
         INSERT INTO record VALUES {rows};"
    );
    Connection::open(&file).unwrap().execute_batch(&script).unwrap();
    file
}

fn import(desk: &Desk, file: &PathBuf) -> Value {
    desk.call("import", &json!({"file": file}))
}

#[test]
fn a_bad_row_of_the_upstreams_keeps_no_other_out() {
    let desk = Desk::new();
    let file = upstream(
        &desk,
        "(1, 1, 'issue', NULL, '', 'open', '', ''),
         (2, 1, 'issue', CAST(x'ff41' AS TEXT), '', 'open', '', ''),
         (3, 1, 'issue', 'Uploads fail', x'ff', 'open', '', ''),
         (4, 9, 'issue', 'Of no project', '', 'open', '', ''),
         (5, 1, NULL, 'Of no kind', '', 'open', '', ''),
         (6, 1, 'issue', 'Logins loop', '', 'open', '2026-01-02 03:04:05', NULL)",
    );
    let done = import(&desk, &file);
    assert_eq!((&done["imported"], &done["refused"]), (&json!(1), &json!(5)), "{done}");
    let reasons: Vec<_> = done["errors"].as_array().unwrap().iter().map(|refusal| refusal["reason"].clone()).collect();
    let title = json!("its title is no text");
    assert_eq!(
        reasons,
        [
            title.clone(),
            title,
            json!("its body is no text"),
            json!("its project is no text"),
            json!("its kind is no text")
        ]
    );
    assert_eq!(desk.call("get", &json!({"id": 1}))["updated_at"], "2026-01-02T03:04:05.000Z");
}

#[test]
fn all_that_were_refused_are_counted_and_the_first_are_named() {
    let desk = Desk::new();
    let rows: Vec<_> = (1..=500).map(|id| format!("({id}, 1, 'idea', 'x', '', 'open', '', '')")).collect();
    let done = import(&desk, &upstream(&desk, &rows.join(",")));
    assert_eq!((&done["refused"], done["errors"].as_array().unwrap().len()), (&json!(500), 100));
}

#[test]
fn what_comes_in_beside_one_of_the_same_title_is_told() {
    let desk = Desk::new();
    let there = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    desk.save(SHOP, "arch", "Logins loop", "");
    let rows: Vec<_> =
        (1..=120).map(|id| format!("({id}, 1, 'issue', 'uploads FAIL.', 'case {id}', 'open', '', '')")).collect();
    let other = "(200, 1, 'issue', 'Logins loop', '', 'open', '', '')";
    let done = import(&desk, &upstream(&desk, &format!("{},{other}", rows.join(","))));
    let similar = done["similar"].as_array().unwrap();
    assert_eq!((&done["imported"], similar.len(), &done["omitted"]), (&json!(121), 100, &json!(20)));
    assert_eq!(
        similar[0],
        json!({"id": there + 2, "title": "uploads FAIL.", "like": {"id": there, "title": "Uploads fail"}})
    );
}

/// A user may have noted the number of a record, so the number must never lead to another record.
#[test]
fn a_number_stays_its_records_when_a_backup_takes_the_place_of_the_database() {
    let desk = Desk::new();
    desk.save(SHOP, "issue", "Uploads fail", "");
    let copy = desk.folder.path().join("copy.db");
    desk.call("backup", &json!({"file": copy}));
    let lost = desk.save(SHOP, "issue", "Logins loop", "");
    let replaced = desk.call("recover", &json!({"file": copy}))["replaced"].clone();
    let new = desk.save(SHOP, "issue", "Exports hang", "");
    assert!(new > lost, "{new}");
    assert_eq!(desk.refused("get", &json!({"id": lost})).reason(), "E_NOT_FOUND");
    // The numbers stay different even after the first database is put back.
    desk.call("recover", &json!({"file": replaced}));
    assert_eq!(desk.call("get", &json!({"id": lost}))["title"], "Logins loop");
    assert!(desk.save(SHOP, "issue", "Searches hang", "") > new);
}

/// This file comes from a stranger. The table of records is a view that never ends.
#[test]
fn a_database_with_a_view_in_place_of_records_is_refused_at_once() {
    let desk = Desk::new();
    let file = upstream(&desk, "(1, 1, 'issue', 'Uploads fail', '', 'open', '', '')");
    let view = "ALTER TABLE record RENAME TO theirs;
        CREATE VIEW record AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
          SELECT theirs.* FROM theirs, n ORDER BY x DESC;";
    Connection::open(&file).unwrap().execute_batch(view).unwrap();
    let refused = desk.refused("import", &json!({"file": file}));
    assert!(refused.message().contains("but not one of records"), "{refused}");
}
