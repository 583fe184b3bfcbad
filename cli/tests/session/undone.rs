//! Tests that kept hints which a session deleted or replaced can be restored in the next sessions.
#![cfg(unix)]

use serde_json::{Value, json};

use crate::keeping::{User, get, kill, set, until_kept};
use crate::kit::kept::find_hint;
use crate::kit::{PATIENCE, Serve, wait_for};

/// Lists the deletions that the session can undo: of each, the keys of its hints.
fn list_deletions(serve: &Serve) -> Vec<Vec<String>> {
    let answer = serve.call("nudge.deletions", &json!({}));
    let keys = |deletion: &Value| {
        let hints = deletion["hints"].as_array().unwrap().iter();
        hints.map(|hint| hint["key"].as_str().unwrap().to_owned()).collect()
    };
    answer["result"]["deletions"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(keys).collect()
}

/// Promise (kept hints): A deleted or replaced hint that was kept can be restored for a week after its session, also
/// after a kill.
#[test]
fn a_deletion_can_be_undone_in_the_next_session() {
    let user = User::new();
    let delete = |serve: &Serve, key: &str| {
        let deleted = serve.call("nudge.delete_hint", &json!({"component": "a", "key": key}));
        assert!(deleted["result"].is_object(), "{deleted}");
    };
    let serve = user.serve("run");
    set(&serve, "gone", &json!({}));
    set(&serve, "late", &json!({}));
    set(&serve, "short", &json!({"ttl": "session"}));
    set(&serve, "secret", &json!({"ttl": "P30D", "sensitivity": "secret"}));
    serve.call("nudge.bump", &json!({"component": "a", "key": "gone", "delta": 3}));
    let gone = get(&serve, "gone");
    serve.call("nudge.set_hint", &json!({"component": "a", "key": "replaced", "value": "first"}));
    let first = get(&serve, "replaced");
    set(&serve, "replaced", &json!({}));
    for key in ["gone", "short", "secret"] {
        delete(&serve, key);
    }
    serve.close();

    let serve = user.serve("run");
    assert_eq!(list_deletions(&serve), [["gone"], ["replaced"]], "what ends with its session does not come back");
    let undone = serve.call("nudge.undo", &json!({}));
    assert_eq!((&undone["result"]["restored"], get(&serve, "gone")), (&json!(1), gone), "{undone}");
    // The next deletion gets a new number.
    delete(&serve, "late");
    until_kept(&user, &["gone", "replaced"]);
    kill(serve);

    let serve = user.serve("run");
    assert_eq!(list_deletions(&serve), [["late"], ["replaced"]], "what was undone is not there again");
    // The kill comes before the deletion can be kept, so the rows of the killed session have it.
    delete(&serve, "gone");
    kill(serve);
    let serve = user.serve("else");
    assert_eq!(list_deletions(&serve), [["late"], ["replaced"]], "the other folder has not been looked at yet");
    serve.close();

    // A second process of the session goes on with the deletions of earlier sessions.
    let serve = user.serve("run");
    assert_eq!(list_deletions(&serve), [["gone"], ["late"], ["replaced"]]);
    let mut second = user.stand_by("run", &serve);
    kill(serve);
    wait_for("the second process to serve", PATIENCE, || {
        let said = user.run("run", &["undo", "--list", "--json"]);
        let listed: Value = serde_json::from_slice(&said.stdout).ok()?;
        (listed["deletions"].as_array()?.len() == 3).then_some(())
    });
    user.said("run", &["undo", "1"]);
    drop(second.stdin.take());
    second.end(PATIENCE);
    assert_eq!(find_hint(&user.file(), "replaced")["value"], first["value"]);
}
