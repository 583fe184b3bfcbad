//! Tests the limit of a project, and the limit of all records together.

mod kit;

use kit::{Desk, SHOP};
use nudge_core::error::ErrorKind;
use nudge_storage::rusqlite::Connection;
use serde_json::json;

/// Fills a project up to 10,000 records.
fn fill(desk: &Desk, project: &str) {
    let script = format!(
        "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 10000 -
           (SELECT count(*) FROM record WHERE project_id = (SELECT id FROM project WHERE name = '{project}')))
         INSERT INTO record(project_id, kind, title, same, origin, created_at, updated_at, seq)
           SELECT (SELECT id FROM project WHERE name = '{project}'), 'spec', 'x', 'x', 'cli', '', '', 1000000 + n FROM number;"
    );
    let file = desk.folder.path().join("data/records.db");
    Connection::open(file).unwrap().execute_batch(&script).unwrap();
}

#[test]
fn however_a_record_comes_to_a_project_there_must_be_room() {
    let desk = Desk::new();
    let [deleted, moved] = ["One", "Two"].map(|title| desk.save(SHOP, "issue", title, ""));
    let outside = desk.save("github.com/acme/other", "issue", "Three", "");
    desk.call("upsert", &json!({"id": moved, "project": "acme/other"}));
    desk.call("delete", &json!({"id": deleted}));
    fill(&desk, "acme/shop");
    for (verb, params) in [
        ("upsert", json!({"kind": "issue", "title": "Four", "context": {"repo": SHOP}})),
        ("upsert", json!({"id": outside, "project": "acme/shop"})),
        ("restore", json!({"id": deleted})),
        ("restore", json!({"id": moved, "version": 1})),
    ] {
        assert_eq!(desk.refused(verb, &params).kind(), ErrorKind::Quota, "{verb} {params}");
    }
    // A record in the full project can still be changed.
    let inside = desk.call("list", &json!({"project": "acme/shop", "limit": 1}))["records"][0]["id"].clone();
    desk.call("upsert", &json!({"id": inside, "title": "y", "project": "acme/shop"}));
}

/// Returns the size of the database's used pages, in bytes.
fn used(desk: &Desk) -> i64 {
    let c = Connection::open(desk.folder.path().join("data/records.db")).unwrap();
    let pragma = |name: &str| c.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")
}

#[test]
fn over_all_projects_records_have_a_quota_and_what_makes_room_always_works() {
    let mut desk = Desk::new();
    let body =
        |n: usize| (0..4_000).map(|word| format!("w{n}x{word}")).collect::<Vec<_>>().join(" ")[..30_000].to_owned();
    let ids: Vec<_> = (0..20)
        .map(|n| desk.save(&format!("github.com/acme/p{n}"), "issue", &format!("Number {n}"), &body(n)))
        .collect();
    assert!(desk.records.report_status()["records"].get("full").is_none());
    let deleted = ids[19];
    desk.call("delete", &json!({"id": deleted}));
    let most = used(&desk).to_string();
    desk.set(&[("records.max_bytes", &most)]);
    let full = desk.records.report_status()["records"]["full"].as_str().unwrap().to_owned();
    assert!(
        full.starts_with("100 % of ") && full.contains("--forever") && full.contains("records.max_bytes"),
        "{full}"
    );

    let one_more = json!({"kind": "issue", "title": "One more", "context": {"repo": SHOP}});
    let file = desk.folder.path().join("more.json");
    let record =
        json!({"project": "x", "kind": "issue", "title": "y", "status": "open", "created_at": "", "updated_at": ""});
    std::fs::write(&file, json!({"format": "nudge-records/1", "records": [record]}).to_string()).unwrap();
    for (verb, params) in [
        ("upsert", one_more.clone()),
        ("upsert", json!({"id": ids[0], "body": body(0) + " and more"})),
        ("upsert", json!({"id": ids[0], "project": "acme/another", "create_project": true})),
        ("restore", json!({"id": deleted})),
        ("import", json!({"file": file})),
    ] {
        let refused = desk.refused(verb, &params);
        assert_eq!((refused.kind(), &refused.data()["limit"]), (ErrorKind::Quota, &json!("records_bytes")), "{verb}");
        let message = refused.message();
        assert!(
            message.contains("nudge records rm ID --forever") && message.contains("records.max_bytes"),
            "{message}"
        );
    }
    let before = used(&desk);
    for n in 0..30 {
        desk.call("upsert", &json!({"id": ids[1], "status": if n % 2 == 0 { "archived" } else { "open" }}));
    }
    desk.call("upsert", &json!({"id": ids[2], "body": "Short now."}));
    desk.call("merge", &json!({"into": ids[2], "ids": [ids[3]]}));
    assert!(used(&desk) < before + 300_000, "a record that is changed over and over has a revision for all of them");
    for id in &ids[4..16] {
        desk.call("delete", &json!({"id": id, "forever": true}));
    }
    desk.call("upsert", &one_more);
    assert!(desk.records.report_status()["records"].get("full").is_none(), "{} of {most}", used(&desk));
}

#[test]
fn a_name_of_a_project_is_no_credential() {
    let desk = Desk::new();
    let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
    let params = json!({"kind": "issue", "title": "x", "project": token, "create_project": true});
    let refused = desk.refused("upsert", &params);
    assert_eq!((refused.kind(), &refused.data()["path"]), (ErrorKind::SecretRejected, &json!("project")));
    assert!(!refused.message().contains(&token));
    assert_eq!(desk.call("projects", &json!({}))["projects"], json!([]));
}
