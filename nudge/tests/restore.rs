//! Tests that a store is restored from its rows without secrets, and that calls with a key are carried out once.

mod kit;

use kit::RecordedStore;
use nudge::{Caller, ImportHints, ImportMode, Nudge, SessionRow};
use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

#[test]
fn everything_but_secrets_comes_back() {
    for limit in [0, 3] {
        let session = RecordedStore::new(limit);
        let scope = json!({"cwd_glob": ["/w/**"], "env_match": {"STAGE": ["a", "b"]}});
        session.call("set_hint", &json!({"component": "a", "key": "k", "value": "x", "meta": {"scope": scope, "tags": ["t"], "ttl": "PT2H"}})).unwrap();
        session
            .call(
                "set_hint",
                &json!({"component": "a", "key": "j", "value": {"type": "json", "data": {"z": 1, "a": [2]}}}),
            )
            .unwrap();
        session.call("bump", &json!({"component": "a", "key": "k", "delta": 4})).unwrap();
        session.call("set_hint", &json!({"component": "a", "key": "k", "value": "y", "variant": ""})).unwrap_err();
        session
            .call("outcome", &json!({"command": "x", "ok": false, "context": {"cwd": "/w", "env": {"STAGE": "a"}}}))
            .unwrap();
        session.call("set_hint", &json!({"component": "b", "key": "gone", "value": "z"})).unwrap();
        session.call("delete_hint", &json!({"component": "b", "key": "gone"})).unwrap();
        session.call("set_hint", &json!({"component": "b", "key": "back", "value": "z"})).unwrap();
        session.call("delete_hint", &json!({"component": "b", "key": "back"})).unwrap();
        session.call("undo", &json!({})).unwrap();
        session.call("set_hint", &json!({"component": "c", "key": "r", "value": "one"})).unwrap();
        session.call("set_hint", &json!({"component": "c", "key": "r", "value": "two"})).unwrap();
        session.call("set_hint", &json!({"component": "c", "key": "r", "value": "three"})).unwrap();
        session.call("undo", &json!({})).unwrap();
        let payload = to_raw_value(&json!({"components": {"c": {"hints": {"i": "v"}}}, "x-more": {"b": 1}})).unwrap();
        session.store.import(&ImportHints { payload, mode: ImportMode::Merge, allow_secret: false }).unwrap();
        let before = session.seen();
        let what: Vec<_> = before.1["deletions"].as_array().unwrap().iter().map(|gone| &gone["what"]).collect();
        assert_eq!(what, ["replaced", "deleted"]);
        let session = session.promoted();
        assert_eq!(session.seen(), before, "limit {limit}");
        session.call("undo", &json!({})).unwrap();
        assert_eq!(session.call("get_hint", &json!({"component": "c", "key": "r"})).unwrap()["hint"]["value"], "one");
        session.clock.advance_by(2 * 3_600_000);
        let after = session.promoted();
        assert_eq!(after.call("get_hint", &json!({"component": "a", "key": "k"})).unwrap_err().reason(), "E_NOT_FOUND");
    }
}

#[test]
fn a_session_that_goes_on_is_the_one_that_began() {
    let store = Nudge::default().with_identity("a".into(), 5);
    assert_eq!((store.session_id(), store.created_at()), ("a", 5));
}

#[test]
fn what_names_a_deletion_names_no_other_after_a_restart() {
    let session = RecordedStore::new(1);
    let id = |session: &RecordedStore| session.call("deletions", &json!({})).unwrap()["deletions"][0]["id"].clone();
    let hint = json!({"component": "a", "key": "k", "value": "x"});
    session.call("set_hint", &hint).unwrap();
    session.call("delete_hint", &json!({"component": "a", "key": "k"})).unwrap();
    let first = id(&session).as_u64().unwrap();
    session.call("undo", &json!({})).unwrap();
    // From now on, no row of a deletion exists.
    for number in 0..3 {
        session.call("set_hint", &json!({"component": "a", "key": format!("k{number}"), "value": "x"})).unwrap();
    }
    let session = session.promoted();
    session.call("delete_hint", &json!({"component": "a", "key": "k"})).unwrap();
    assert!(id(&session).as_u64().unwrap() > first);
}

/// Promise: see `any_history_comes_back`.
#[test]
fn a_secret_is_never_recorded_and_leaves_nothing_behind() {
    for limit in [0, 1] {
        let session = RecordedStore::new(limit);
        let secret =
            |value: &str| json!({"component": "a", "key": "k", "value": value, "meta": {"sensitivity": "secret"}});
        session.call("set_hint", &json!({"component": "a", "key": "k", "value": "open"})).unwrap();
        session.keyed(Some("one"), "set_hint", &secret("sesame")).unwrap();
        session.call("bump", &json!({"component": "a", "key": "k"})).unwrap();
        session
            .call(
                "set_hint",
                &json!({"component": "a", "key": "d", "value": "sesame", "meta": {"sensitivity": "secret"}}),
            )
            .unwrap();
        session.call("delete_hint", &json!({"component": "a", "key": "d"})).unwrap();
        assert!(!session.recorded().contains("sesame"));
        let session = session.promoted();
        // The value that the hint had before it became a secret does not come back either.
        assert_eq!(
            session.call("get_hint", &json!({"component": "a", "key": "k"})).unwrap_err().reason(),
            "E_NOT_FOUND"
        );
        // The repeated call stores the secret again, with a version that is not lower than before.
        let again = session.keyed(Some("one"), "set_hint", &secret("sesame")).unwrap();
        assert_eq!(again["hint"]["version"], 2);
        assert_eq!(
            session.call("get_hint", &json!({"component": "a", "key": "k"})).unwrap()["hint"]["value"],
            "sesame"
        );
    }
}

/// Promise (hints): A call with a key runs once, also after the store was restored or its process was killed.
#[test]
fn a_call_with_a_key_is_made_once() {
    for limit in [0, 1] {
        let mut session = RecordedStore::new(limit);
        let set = json!({"component": "a", "key": "k", "value": "x"});
        let first = session.keyed(Some("s"), "set_hint", &set).unwrap();
        let bumped = session.keyed(Some("b"), "bump", &json!({"component": "a", "key": "k"})).unwrap();
        for _ in 0..2 {
            assert_eq!(session.keyed(Some("s"), "set_hint", &set).unwrap(), first);
            assert_eq!(session.keyed(Some("b"), "bump", &json!({"component": "a", "key": "k"})).unwrap(), bumped);
            let got = session.call("get_hint", &json!({"component": "a", "key": "k"})).unwrap();
            assert_eq!((&got["hint"]["version"], &got["hint"]["use_count"]), (&json!(1), &json!(1)));
            session = session.promoted();
        }
        // The store does not remember a refused call, and carries out every read.
        session.keyed(Some("r"), "delete_hint", &json!({"component": "a", "key": "x"})).unwrap_err();
        session.call("set_hint", &json!({"component": "a", "key": "x", "value": "v"})).unwrap();
        session.keyed(Some("r"), "delete_hint", &json!({"component": "a", "key": "x"})).unwrap();
        session.keyed(Some("s"), "get_hint", &json!({"component": "a", "key": "k"})).unwrap();
        // The store remembers only the last 1,024 calls.
        for n in 0..1_024 {
            session.keyed(Some(&format!("n{n}")), "bump", &json!({"component": "a", "key": "k"})).unwrap();
        }
        assert_eq!(session.keyed(Some("s"), "set_hint", &set).unwrap()["hint"]["version"], 2);
    }
}

#[test]
fn a_row_that_cannot_be_read_is_passed_over() {
    let session = RecordedStore::new(0);
    session.keyed(Some("one"), "set_hint", &json!({"component": "a", "key": "k", "value": "x"})).unwrap();
    let good = session.rows.list();
    let bad = [
        ("hint", "a", ""),
        ("hint", "a", "{}"),
        ("hint", "a", r#"["a","b",7]"#),
        ("deletion", "one", r#"{"at":1,"what":"deleted","hints":[]}"#),
        ("deletion", "1", r#"{"at":1,"what":"moved","hints":[]}"#),
        ("call", "-1", r#"{"key":"x"}"#),
        ("call", "7", "[]"),
        ("last_deletion", "", "many"),
        ("extra", "", "{"),
        ("later", "", "1"),
    ];
    let row =
        |(kind, name, body): (&str, &str, &str)| SessionRow { kind: kind.into(), name: name.into(), body: body.into() };
    let store = Nudge::default();
    assert_eq!(store.restore(bad.into_iter().map(row).chain(good)), bad.len());
    assert_eq!(store.status().hints, 1);
}

fn step() -> impl Strategy<Value = (&'static str, Value)> {
    let key = prop_oneof![Just("k"), Just("l"), Just("m")];
    (0..10_u8, key, 0..3_u8).prop_map(|(what, key, n)| match what {
        0 | 1 => ("set_hint", json!({"component": "a", "key": key, "value": format!("v{n}")})),
        2 => ("set_hint", json!({"component": "a", "key": key, "value": "s", "meta": {"scope": {"os": ["linux"]}, "priority": n + 1}})),
        3 => ("bump", json!({"component": "a", "key": key, "variant": ""})),
        4 => ("delete_hint", json!({"component": "a", "key": key, "all": true})),
        5 => ("undo", json!({})),
        6 => ("outcome", json!({"command": format!("v{n}"), "ok": n == 0, "context": {}})),
        7 => ("set_hint", json!({"component": "a", "key": key, "value": format!("v{n}"), "meta": {"source": "user"}})),
        8 => ("import", json!({"payload": {"components": {"a": {"hints": {key: "imported"}}}}, "mode": "replace"})),
        _ => ("set_hint", json!({"component": "a", "key": key, "value": "t", "meta": {"ttl": "PT1S"}})),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Promise (hints): A store comes back from its rows as it was, at any point of its history. Hints marked
    /// secret do not come back.
    #[test]
    fn any_history_comes_back(
        steps in prop::collection::vec((step(), any::<bool>()), 1..60),
        limit in 0..6_usize,
        every in 1..20_usize,
    ) {
        let mut session = RecordedStore::new(limit);
        for (n, ((method, params), by_agent)) in steps.iter().enumerate() {
            let key = n.to_string();
            let caller = Caller::with_name("tester/1").with_key(Some(&*key).filter(|_| n % 2 == 0));
            let _ = session.by(if *by_agent { caller.by_agent() } else { caller }, method, params);
            session.clock.advance_by(300);
            if n % every == 0 {
                let before = session.seen();
                session = session.promoted();
                prop_assert_eq!(session.seen(), before);
            }
        }
    }
}
