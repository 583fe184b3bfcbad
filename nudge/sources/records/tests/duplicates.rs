//! Tests the list of pairs of records that may say the same. The tests use a model of their own.

mod kit;

use std::sync::Arc;

use kit::{Desk, SHOP};
use nudge_core::embed::NoModels;
use nudge_core::embed::{LetterEmbedder, LoadedModel};
use nudge_core::error::ErrorKind;
use serde_json::json;

#[test]
fn duplicates_are_told_nearest_first_of_one_project_and_kind() {
    let mut desk = Desk::with(Arc::new(LoadedModel(Arc::new(LetterEmbedder("letters")))));
    let save = |desk: &Desk, repo: &str, kind: &str, title: &str| {
        let params = json!({"kind": kind, "title": title, "distinct": true, "context": {"repo": repo}});
        desk.call("upsert", &params)["record"]["id"].as_i64().unwrap()
    };
    let [base, two, three] =
        ["listen here", "silent here", "listen there"].map(|title| save(&desk, SHOP, "issue", title));
    for (repo, kind, title) in
        [(SHOP, "spec", "enlist here"), ("github.com/acme/docs", "issue", "tinsel here"), (SHOP, "issue", "zzz")]
    {
        save(&desk, repo, kind, title);
    }
    let found = desk.call("duplicates", &json!({"context": {"repo": SHOP}}));
    let pairs: Vec<_> = found["duplicates"].as_array().unwrap().iter().map(|pair| &pair["ids"]).collect();
    assert_eq!(pairs, [&json!([base, two]), &json!([two, three]), &json!([base, three])], "{found}");
    assert_eq!(
        (&found["duplicates"][0]["distance"], &found["omitted"], &found["uncompared"]),
        (&json!(0.0), &json!(0), &json!(0))
    );
    assert_eq!(found["duplicates"][0]["other_title"], "silent here");
    let first = desk.call("duplicates", &json!({"project": "acme/shop", "limit": 1}));
    assert_eq!((first["duplicates"].as_array().unwrap().len(), &first["omitted"]), (1, &json!(2)));
    let near = desk.call("duplicates", &json!({"project": "*", "max_distance": 0.001}));
    assert_eq!(near["duplicates"].as_array().unwrap().len(), 1);
    assert_eq!(desk.call("duplicates", &json!({"project": "acme/shp"}))["projects_like"], json!(["acme/shop"]));
    for bad in [json!({"max_distance": 2}), json!({"max_distance": -0.1}), json!({"limit": 0}), json!({"limit": 101})] {
        assert_eq!(desk.refused("duplicates", &bad).kind(), ErrorKind::Invalid, "{bad}");
    }
    // A merged pair is no longer in the list. Without a model, the answer says that there is no model.
    desk.call("merge", &json!({"into": base, "ids": [two]}));
    assert!(
        desk.call("duplicates", &json!({"project": "*", "max_distance": 0.001}))["duplicates"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    desk.models = Arc::new(NoModels);
    desk.again();
    let refused = desk.refused("duplicates", &json!({"project": "*"}));
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    assert!(refused.message().contains("`nudge model add`"), "{}", refused.message());
}
