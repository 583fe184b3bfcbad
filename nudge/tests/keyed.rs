//! Tests that a call with a key is carried out once, for every kind of change and with any calls before its repetition.

// Not every test file uses all of `kit`.
#[allow(dead_code)]
mod kit;

use kit::RecordedStore;
use nudge::ErrorKind;
use serde_json::{Value, json};

/// Makes a secret hint whose value, reason and tags all contain the word `sesame`.
fn secret(key: &str) -> Value {
    let meta = json!({"sensitivity": "secret", "reason": "why sesame", "tags": ["sesame"], "added_by": "sesame",
        "scope": {"branch": ["sesame"]}});
    json!({"component": "a", "key": key, "value": "run sesame", "meta": meta})
}

fn open(key: &str, value: &str) -> Value {
    json!({"component": "a", "key": key, "value": value})
}

fn name(key: &str) -> Value {
    json!({"component": "a", "key": key, "variant": ""})
}

/// Returns the stored unscoped variant of a key.
fn stored(session: &RecordedStore, key: &str) -> Value {
    session.call("get_hint", &json!({"component": "a", "key": key})).unwrap()["hint"].clone()
}

#[test]
fn a_repeated_call_that_changed_secrets_and_other_hints_is_not_carried_out_again() {
    for limit in [0, 1] {
        let session = RecordedStore::new(limit);
        session.call("set_hint", &secret("k")).unwrap();
        session.call("set_hint", &open("k", "run sesame now")).unwrap();
        session.call("set_hint", &open("o", "x")).unwrap();
        let all = json!({"component": "a", "key": "k", "all": true});
        session.keyed(Some("delete"), "delete_hint", &all).unwrap();
        session.keyed(Some("undo"), "undo", &json!({})).unwrap();
        session.call("delete_hint", &json!({"component": "a", "key": "k", "variant": ""})).unwrap();
        let mut failing = secret("f");
        failing["meta"]["scope"] = Value::Null;
        session.call("set_hint", &failing).unwrap();
        let ran = json!({"command": "run sesame", "ok": true, "context": {"branch": "sesame"}});
        session.keyed(Some("outcome"), "outcome", &ran).unwrap();
        let hint = json!({"value": "run sesame", "meta": {"sensitivity": "secret", "reason": "sesame"}});
        let payload = json!({"components": {"a": {"hints": {"s": hint, "i": "imported"}}}});
        let import = json!({"payload": payload, "mode": "replace"});
        session.keyed(Some("import"), "import", &import).unwrap();
        session.call("set_hint", &open("i", "later")).unwrap();
        session.call("set_hint", &open("n", "in between")).unwrap();
        // A hint that is not secret has the value `run sesame now`. The value must be recorded, so the check ignores
        // it.
        let recorded = session.recorded().replace("run sesame now", "");
        assert!(!recorded.contains("sesame"), "{recorded}");

        let session = session.promoted();
        let before = session.seen();
        let again = |key, params: &Value| {
            let method = if key == "delete" { "delete_hint" } else { key };
            session.keyed(Some(key), method, params).unwrap()
        };
        let deleted = again("delete", &all);
        assert_eq!((&deleted["deleted_count"], &deleted["deleted"]), (&json!(2), &json!(true)));
        let undone = again("undo", &json!({}));
        assert_eq!((&undone["restored"], undone["hints"].as_array().unwrap().len()), (&json!(2), 1));
        assert_eq!(again("outcome", &ran), json!({"matched": []}));
        assert_eq!(again("import", &import)["imported"], 2);
        assert_eq!(session.seen(), before);
        assert_eq!(
            (stored(&session, "i")["version"].clone(), stored(&session, "n")["version"].clone()),
            (2.into(), 1.into())
        );
    }
}

#[test]
fn a_repeated_outcome_counts_once_and_a_repeated_delete_of_a_secret_succeeds() {
    for limit in [0, 1] {
        let session = RecordedStore::new(limit);
        session.call("set_hint", &secret("k")).unwrap();
        session.call("set_hint", &open("o", "run sesame")).unwrap();
        let ran = json!({"command": "run sesame", "ok": true, "context": {"branch": "sesame"}});
        let first = session.keyed(Some("outcome"), "outcome", &ran).unwrap();
        assert_eq!(first["matched"].as_array().unwrap().len(), 2);
        assert_eq!(session.keyed(Some("outcome"), "outcome", &ran).unwrap(), first);
        let delete = json!({"component": "a", "key": "k"});
        let gone = session.keyed(Some("delete"), "delete_hint", &delete).unwrap();
        assert_eq!(gone["previous"]["value"], "[secret]");
        let session = session.promoted();
        let again = session.keyed(Some("outcome"), "outcome", &ran).unwrap();
        assert_eq!(again["matched"].as_array().unwrap().len(), 1);
        assert_eq!(stored(&session, "o")["use_count"], 1);
        let again = session.keyed(Some("delete"), "delete_hint", &delete).unwrap();
        assert_eq!(again, json!({"deleted": true, "previous": null, "deleted_count": 1}));
    }
}

#[test]
fn a_repeated_set_stores_a_lost_secret_again_only_if_no_other_hint_has_its_name() {
    for limit in [0, 1] {
        let session = RecordedStore::new(limit);
        let plain = |key: &str| {
            let mut hint = secret(key);
            hint["meta"]["scope"] = Value::Null;
            hint
        };
        session.call("set_hint", &open("k", "open")).unwrap();
        let mut compared = plain("k");
        compared["if_match_version"] = 1.into();
        session.keyed(Some("compared"), "set_hint", &compared).unwrap();
        session.call("set_hint", &open("v", "open")).unwrap();
        let mut named = plain("v");
        named["variant"] = "".into();
        session.keyed(Some("named"), "set_hint", &named).unwrap();
        session.keyed(Some("bump"), "bump", &name("k")).unwrap();
        session.keyed(Some("before"), "set_hint", &plain("later")).unwrap();
        session.call("set_hint", &open("later", "newer")).unwrap();
        session.call("set_hint", &plain("b")).unwrap();
        session.keyed(Some("other"), "bump", &json!({"component": "a", "key": "b"})).unwrap();
        let session = session.promoted();
        assert_eq!(session.keyed(Some("bump"), "bump", &name("k")).unwrap_err().kind(), ErrorKind::NotFound);
        for (key, params) in [("compared", &compared), ("named", &named)] {
            let again = session.keyed(Some(key), "set_hint", params).unwrap();
            assert_eq!((&again["hint"]["version"], &again["hint"]["value"]), (&json!(2), &json!("[secret]")));
        }
        // A hint that was stored after the call stays, and the repeated call returns it.
        let again = session.keyed(Some("before"), "set_hint", &plain("later")).unwrap();
        assert_eq!((&again["hint"]["version"], &again["hint"]["value"]), (&json!(2), &json!("newer")));
        assert_eq!(stored(&session, "later")["value"], "newer");
        // A repeated `bump` of a lost secret does not count for another hint that has the same key now.
        session.call("set_hint", &open("b", "another")).unwrap();
        let bump = json!({"component": "a", "key": "b"});
        assert_eq!(session.keyed(Some("other"), "bump", &bump).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(stored(&session, "b").get("use_count"), None);
    }
}

/// Promise (hints): Calls with different keys never wait for each other, and a key serves one call.
#[test]
fn a_key_is_good_for_one_call() {
    for limit in [0, 1] {
        let mut session = RecordedStore::new(limit);
        let set = open("k", "x");
        let env = |value: &str| json!({"component": "a", "key": "k", "context": {"env": {"TOKEN": value}}});
        let mut hidden = secret("s");
        hidden["meta"]["scope"] = Value::Null;
        session.keyed(Some("set"), "set_hint", &set).unwrap();
        session.keyed(Some("env"), "bump", &env("sesame")).unwrap();
        session.keyed(Some("secret"), "set_hint", &hidden).unwrap();
        for _ in 0..2 {
            let before = session.seen();
            for (key, method, params) in [
                ("set", "set_hint", open("k", "y")),
                ("set", "bump", name("k")),
                ("set", "delete_hint", name("k")),
                ("secret", "delete_hint", name("k")),
                ("env", "set_hint", open("k", "y")),
            ] {
                let refused = session.keyed(Some(key), method, &params).unwrap_err();
                assert_eq!(refused.reason(), "E_INVALID", "{key} {method}");
                assert!(refused.message().contains("use a new key"), "{refused:?}");
                assert_eq!(session.seen(), before);
            }
            session.keyed(Some("set"), "set_hint", &set).unwrap();
            // The record has nothing about the environment. A repeated call with another environment therefore looks
            // the same as the first call, and is accepted.
            session.keyed(Some("env"), "bump", &env("other")).unwrap();
            assert_eq!(session.seen(), before);
            session = session.promoted();
        }
        let recorded = session.recorded();
        assert!(recorded.contains(r#""call":"nudge.set_hint ca66f4e8df0736f0""#), "{recorded}");
        for plain in [r#""call":"nudge.bump""#, r#""call":"nudge.set_hint""#] {
            assert!(recorded.contains(plain), "{recorded}");
        }
    }
}

#[test]
fn a_record_without_the_member_call_can_still_be_read() {
    let session = RecordedStore::new(0);
    let set = open("k", "x");
    session.keyed(Some("set"), "set_hint", &set).unwrap();
    for body in session.rows.all.lock().unwrap().values_mut() {
        *body = body.replace(r#","call":"nudge.set_hint ca66f4e8df0736f0""#, "");
    }
    assert!(!session.recorded().contains(r#""call""#), "{}", session.recorded());
    let session = session.promoted();
    assert_eq!(session.keyed(Some("set"), "set_hint", &set).unwrap()["hint"]["version"], 1);
}

#[test]
fn large_results_do_not_make_keys_forgotten() {
    for limit in [0, 1] {
        let session = RecordedStore::new(limit);
        let big = |key: &str, n: usize| open(key, &format!("{n} {}", "x y ".repeat(16_000)));
        session.keyed(Some("kept"), "set_hint", &big("kept", 0)).unwrap();
        session.keyed(Some("bump"), "bump", &name("kept")).unwrap();
        session.keyed(Some("changed"), "set_hint", &big("changed", 0)).unwrap();
        session.keyed(Some("gone"), "set_hint", &big("gone", 0)).unwrap();
        session.keyed(Some("delete"), "delete_hint", &name("gone")).unwrap();
        session.call("set_hint", &open("changed", "later")).unwrap();
        for n in 0..80 {
            session.keyed(Some(&n.to_string()), "set_hint", &big("k", n)).unwrap();
        }
        session.call("set_hint", &open("gone", "anew")).unwrap();
        let session = session.promoted();
        let before = session.seen();
        let again = session.keyed(Some("kept"), "set_hint", &big("kept", 0)).unwrap();
        assert_eq!((&again["hint"]["version"], &again["hint"]["key"]), (&json!(1), &json!("kept")));
        let again = session.keyed(Some("bump"), "bump", &name("kept")).unwrap();
        assert_eq!(again["hint"]["use_count"], 1);
        let again = session.keyed(Some("changed"), "set_hint", &big("changed", 0)).unwrap();
        assert_eq!(again["hint"]["value"], "later");
        let refused = session.keyed(Some("delete"), "delete_hint", &name("gone")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused:?}");
        assert_eq!(session.keyed(Some("79"), "set_hint", &big("k", 79)).unwrap()["hint"]["version"], 80);
        assert_eq!(session.seen(), before);
        session.call("delete_hint", &name("kept")).unwrap();
        let refused = session.keyed(Some("kept"), "set_hint", &big("kept", 0)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused:?}");
        let rows = session.rows.list();
        let results: usize = rows.iter().filter(|row| row.kind == "call").map(|row| row.body.len()).sum();
        assert!(results < 5 << 20, "{results} bytes of results");
    }
}
