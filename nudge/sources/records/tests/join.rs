//! Two projects that become one.

mod kit;

use kit::{Desk, SHOP};
use nudge_core::error::ErrorKind;
use serde_json::{Value, json};

const STORE: &str = "github.com/acme/store";

fn list(desk: &Desk, of: &Value) -> Value {
    desk.call("list", of)["total"].clone()
}

#[test]
fn a_project_that_was_renamed_is_one_again() {
    let mut desk = Desk::new();
    let old = desk.save(SHOP, "issue", "Uploads fail", "nginx");
    desk.call("upsert", &json!({"id": old, "title": "Uploads fail again"}));
    desk.save(SHOP, "issue", "Logins loop", "");
    // Nothing is joined unasked, and the new name need not have a record yet.
    assert_eq!(list(&desk, &json!({"context": {"repo": STORE}})), 0);
    let params = json!({"from": "acme/shop", "into": "acme/store", "context": {"repo": STORE}});
    assert_eq!(desk.call("join_projects", &params), json!({"project": "acme/store", "moved": 2}));
    desk.again();
    for of in [
        json!({"context": {"repo": STORE}}),
        json!({"context": {"repo": SHOP}}),
        json!({"project": "acme/shop"}),
        json!({"project": "acme/store"}),
    ] {
        assert_eq!(list(&desk, &of), 2, "{of}");
    }
    assert_eq!(desk.call("projects", &json!({}))["projects"].as_array().unwrap().len(), 1);
    // An old clone goes on in it, and so does what a record was before.
    let new = desk.save(SHOP, "spec", "Export", "");
    assert_eq!(desk.call("get", &json!({"id": new}))["project"], "acme/store");
    assert_eq!(desk.call("restore", &json!({"id": old, "version": 1}))["project"], "acme/store");
    // Of a chain of renames the last counts.
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
