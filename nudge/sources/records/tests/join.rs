//! Tests the join of two projects.

mod kit;

use kit::{Desk, SHOP};
use nudge_core::error::ErrorKind;
use serde_json::{Value, json};

const STORE: &str = "github.com/acme/store";

fn list(desk: &Desk, params: &Value) -> Value {
    desk.call("list", params)["total"].clone()
}

#[test]
fn a_project_that_was_renamed_is_one_again() {
    let mut desk = Desk::new();
    let old = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    desk.call("upsert", &json!({"id": old, "title": "Uploads fail again"}));
    desk.save(SHOP, "issue", "Logins loop", "");
    // Nudge joins no projects by itself: a caller must ask for it. The project with the new name may have no record
    // yet.
    assert_eq!(list(&desk, &json!({"context": {"repo": STORE}})), 0);
    let params = json!({"from": "acme/shop", "into": "acme/store", "context": {"repo": STORE}});
    assert_eq!(desk.call("join_projects", &params), json!({"project": "acme/store", "moved": 2}));
    desk.again();
    for params in [
        json!({"context": {"repo": STORE}}),
        json!({"context": {"repo": SHOP}}),
        json!({"project": "acme/shop"}),
        json!({"project": "acme/store"}),
    ] {
        assert_eq!(list(&desk, &params), 2, "{params}");
    }
    assert_eq!(desk.call("projects", &json!({}))["projects"].as_array().unwrap().len(), 1);
    // A clone with the old name writes to the joined project. A restored version of a record stays in the joined
    // project too.
    let new = desk.save(SHOP, "spec", "Export", "");
    assert_eq!(desk.call("get", &json!({"id": new}))["project"], "acme/store");
    assert_eq!(desk.call("restore", &json!({"id": old, "version": 1}))["project"], "acme/store");
    // After several joins, the last project has all records.
    desk.save("github.com/acme/mall", "spec", "Import", "");
    desk.call("join_projects", &json!({"from": "acme/store", "into": "acme/mall"}));
    assert_eq!(list(&desk, &json!({"project": "acme/shop"})), 4);
}

#[test]
fn only_two_projects_that_there_are_can_be_joined() {
    let desk = Desk::new();
    let join = |from: &str, into: &str| desk.refused("join_projects", &json!({"from": from, "into": into})).kind();
    assert_eq!(join("acme/shop", "acme/store"), ErrorKind::NotFound);
    assert!(!desk.folder.path().join("data").exists());
    desk.save(SHOP, "issue", "Uploads fail", "nginx");
    assert_eq!(join("acme/shpo", "acme/shop"), ErrorKind::NotFound);
    assert_eq!(join("acme/shop", "acme/store"), ErrorKind::Invalid);
    assert_eq!(join("acme/shop", "acme/shop"), ErrorKind::Invalid);
}

/// An import creates a project by its name, without a repository. After a join, a caller in the repository with that
/// name gets the joined project. This holds whether the imported project was `from` or `into`.
#[test]
fn a_repository_that_was_never_met_goes_where_its_name_went() {
    for (from, into) in [("acme/shop", "acme/store"), ("acme/store", "acme/shop")] {
        let desk = Desk::new();
        desk.save(STORE, "issue", "Logins loop", "");
        let record = json!({
            "project": "acme/shop", "kind": "issue", "title": "Uploads fail", "status": "open", "created_at": "",
            "updated_at": "",
        });
        let file = desk.folder.path().join("export.json");
        std::fs::write(&file, json!({"format": "nudge-records/1", "records": [record]}).to_string()).unwrap();
        desk.call("import", &json!({"file": file}));
        assert_eq!(list(&desk, &json!({"context": {"repo": SHOP}})), 1, "of who stands there already");
        desk.call("join_projects", &json!({"from": from, "into": into}));
        assert_eq!(list(&desk, &json!({"context": {"repo": SHOP}})), 2);
        assert_eq!(list(&desk, &json!({"context": {"repo": "gitlab.com/acme/shop"}})), 2, "who is first");
        let new = desk.save(SHOP, "spec", "Export", "");
        assert_eq!(desk.call("get", &json!({"id": new}))["project"], into);
        assert_eq!(list(&desk, &json!({"context": {"repo": "gitlab.com/acme/shop"}})), 0);
        for repo in [SHOP, STORE] {
            assert_eq!(list(&desk, &json!({"context": {"repo": repo}})), 3, "{repo}");
        }
        // The write from `SHOP` gave the name to its repository. Another repository with the same name gets a project
        // of its own.
        let other = desk.save("gitlab.com/acme/shop", "spec", "Export", "");
        assert_eq!(desk.call("get", &json!({"id": other}))["project"], "gitlab.com/acme/shop");
    }
}
