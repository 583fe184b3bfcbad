//! Tests what the files of a session contain: no file contains a secret hint, and with `NUDGE_JOURNAL=0` no file
//! contains any hint.

use serde_json::{Value, json};

use crate::kit::agent::{Agent, Failure, LONG};
use crate::kit::session::{Session, get, names, set, shown};
use crate::kit::system::files;

fn secret(key: &str, value: &str) -> Value {
    let mut params = set(key, value);
    params["meta"] = json!({"sensitivity": "secret"});
    params
}

fn assert_in_no_file(session: &Session, words: &[&str]) {
    for (path, content) in files(&session.runtime) {
        for word in words {
            let found = content.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!found, "{word} is in {}", path.display());
        }
    }
}

fn is_missing(agent: &Agent, key: &str) {
    let found = agent.tool("nudge_get_hint", &get(key), LONG);
    assert!(matches!(&found, Err(Failure::Refused(error)) if error["data"]["reason"] == "E_NOT_FOUND"), "{found:?}");
}

#[test]
fn secret_hints_are_in_no_file_and_end_with_their_primary() {
    let session = Session::start(2);
    let proxy = &session.agents[2];
    proxy.result("nudge_set_hint", &set("open", "in the open"));
    proxy.result("nudge_set_hint", &secret("one", "hush-hush-one"));
    // The server remembers the result of a call with a key, so this result could reach a file too.
    session.raw().call("nudge.set_hint", &secret("two", "hush-hush-two"), Some("a key")).unwrap();
    session.raw().call("nudge.set_hint", &secret("two", "hush-hush-two"), Some("a key")).unwrap();
    assert!(session.nudge(&["set", "c", "three", "hush-hush-three", "--secret"]).status.success());
    proxy.result("nudge_bump", &get("one"));
    proxy.result("nudge_set_hint", &secret("gone", "hush-hush-gone"));
    proxy.result("nudge_delete_hint", &get("gone"));
    let payload = json!({"components": {"c": {"hints": {"four": {"value": "hush-hush-four", "meta": {"sensitivity": "secret"}}}}}});
    session.raw().call("nudge.import", &json!({"payload": payload}), Some("another key")).unwrap();
    for (key, value) in
        [("one", "hush-hush-one"), ("two", "hush-hush-two"), ("three", "hush-hush-three"), ("four", "hush-hush-four")]
    {
        assert_eq!(proxy.result("nudge_get_hint", &get(key))["hint"]["value"], value);
    }
    assert_in_no_file(&session, &["hush-hush"]);

    for _ in 0..2 {
        let file = session.kill_primary();
        let agent = session.agent(file.pid);
        assert_eq!(shown(agent), [("open".to_owned(), "in the open".to_owned())]);
        for key in ["one", "two", "three", "four", "gone"] {
            is_missing(agent, key);
        }
        assert_in_no_file(&session, &["hush-hush"]);
    }
}

#[test]
fn a_hint_that_turns_secret_does_not_come_back_as_what_it_was() {
    let session = Session::start(1);
    let proxy = &session.agents[1];
    proxy.result("nudge_set_hint", &set("turns", "former-value"));
    proxy.result("nudge_set_hint", &secret("turns", "hush-hush"));
    proxy.result("nudge_set_hint", &secret("opens", "hush-too"));
    proxy.result("nudge_set_hint", &set("opens", "latter-value"));
    proxy.result("nudge_set_hint", &set("deleted", "former-value"));
    proxy.result("nudge_set_hint", &secret("deleted", "hush-again"));
    proxy.result("nudge_delete_hint", &get("deleted"));
    assert_in_no_file(&session, &["hush"]);
    session.kill_primary();
    is_missing(proxy, "turns");
    is_missing(proxy, "deleted");
    let opened = proxy.result("nudge_get_hint", &get("opens"));
    assert_eq!((&opened["hint"]["value"], &opened["hint"]["version"]), (&json!("latter-value"), &json!(2)));
    assert_eq!(shown(proxy).len(), 1);
    // No copy of the hint is left that an undo could restore.
    let _ = session.raw().call("nudge.undo", &json!({}), None);
    is_missing(proxy, "turns");
}

#[test]
fn without_a_journal_the_session_goes_on_empty() {
    let session = Session::with(&[("NUDGE_JOURNAL", "0")], 2);
    let before = session.status();
    assert!(before["journal_bytes"].is_null(), "{before}");
    let first = session.primary(|_| true);
    for round in 0..3 {
        let status = session.status();
        assert_eq!((&status["session_id"], &status["hints"]), (&before["session_id"], &json!(0)));
        for agent in session.agents.iter().filter(|agent| agent.is_running()) {
            agent.result("nudge_set_hint", &set(&format!("of {}", agent.pid), "some-value"));
        }
        assert_eq!(session.status()["hints"], 3 - round);
        assert!(!names(&session.runtime).iter().any(|name| name.starts_with("session.db")));
        assert_in_no_file(&session, &["some-value"]);
        if round < 2 {
            let next = session.kill_primary();
            assert_eq!((next.port, &next.token), (first.port, &first.token));
        }
    }
    session.end();
}
