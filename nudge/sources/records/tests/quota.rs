//! What a project may have.

mod kit;

use kit::{Desk, SHOP};
use nudge_core::error::ErrorKind;
use nudge_storage::rusqlite::Connection;
use serde_json::json;

/// Fills the project of a record until it has 10,000.
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
    // One that is in it already may be changed.
    let inside = desk.call("list", &json!({"project": "acme/shop", "limit": 1}))["records"][0]["id"].clone();
    desk.call("upsert", &json!({"id": inside, "title": "y", "project": "acme/shop"}));
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
