//! What is answered while something is missing.

use std::fs;

use nudge_core::source::Host;
use serde_json::json;

use super::*;

fn context(brains: &Brains, task: &str) -> Value {
    let params = serde_json::from_value(json!({"task_description": task})).unwrap();
    serde_json::to_value(brains.context(params).unwrap()).unwrap()
}

/// A source with a brain of one unit, in a folder with its cache.
fn brains(folder: &Path) -> Brains {
    fs::create_dir(folder.join("brain")).unwrap();
    fs::write(folder.join("brain/a.md"), "# Retry\n\nClients wait a random time.\n").unwrap();
    let root = folder.join("brain");
    Brains::open(Host::alone(folder, &SOURCE, &[("brain.root", root.to_str().unwrap())]).unwrap())
}

#[test]
fn an_index_that_cannot_grow_answers_what_it_has_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let brains = brains(folder.path());
    assert_eq!(context(&brains, "clients wait")["units"][0]["id"], "a");
    let index = brains.index(&folder.path().join("brain")).unwrap();
    let limit = |pages: u32| {
        let limit = |tx: &nudge_storage::rusqlite::Transaction<'_>| {
            Ok(tx.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))?)
        };
        index.db.write(limit).unwrap();
    };
    limit(1);
    for at in 0..200 {
        fs::write(folder.path().join(format!("brain/b{at}.md")), format!("# B{at}\n\n{}\n", "more words ".repeat(300)))
            .unwrap();
    }
    let answer = context(&brains, "clients wait");
    let degraded = answer["degraded"][0].as_str().unwrap();
    assert_eq!(answer["units"][0]["id"], "a");
    assert!(degraded.starts_with("stale: ") && degraded.ends_with("free some space."), "{degraded}");
    limit(1_000_000);
    index.scan(None).unwrap();
    let answer = context(&brains, "clients wait");
    assert_eq!((&answer["searched"]["units"], answer["degraded"].as_array().unwrap().len()), (&json!(201), 1));
}

#[test]
fn where_the_folder_for_caches_takes_no_index_there_is_one_for_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cache"), "no folder").unwrap();
    let brains = brains(folder.path());
    let answer = context(&brains, "clients wait");
    assert_eq!(answer["units"][0]["id"], "a");
    let degraded = answer["degraded"][0].as_str().unwrap();
    assert!(degraded.starts_with("the index lasts no longer than this process: The "), "{degraded}");
    let index = brains.index(&folder.path().join("brain")).unwrap();
    let place = index.db.path();
    assert!(place.exists());
    drop((index, brains));
    assert!(!place.exists(), "nothing is left of it");
}
