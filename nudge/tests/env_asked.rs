//! Tests that a client sends only the variables that the server asked for last, and that the server tells the client
//! which other variables matter (semantics section 9).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nudge::{Caller, ChangeLog, Config, EnvNames, Error, LogEntry, Nudge, Result, Service, SystemClock};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

fn call(store: &Nudge, caller: Caller<'_>, method: &str, params: &Value) -> Result<Value> {
    let answer = store.call_by(caller, &format!("nudge.{method}"), &to_raw_value(params).unwrap())?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}

fn ask(store: &Nudge, method: &str, params: &Value) -> Result<Value> {
    call(store, Caller::with_name("tester").asking_env(), method, params)
}

fn set(store: &Nudge, component: &str, key: &str, scope: &Value) {
    let params = json!({"component": component, "key": key, "value": "make", "meta": {"scope": scope}});
    call(store, Caller::default(), "set_hint", &params).unwrap();
}

fn names(names: &[&str], values: &[&str]) -> EnvNames {
    let set = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    EnvNames { names: set(names), values: set(values) }
}

fn store() -> Nudge {
    let store = Nudge::default();
    set(&store, "a", "k", &json!({"env_required": "CI", "env_match": {"STAGE": ["dev", "qa"]}}));
    set(&store, "a", "plain", &json!({}));
    set(&store, "b", "k", &json!({"env_required": "HOST"}));
    store
}

fn get(context: &Value) -> Value {
    json!({"component": "a", "key": "k", "context": context})
}

#[test]
fn what_is_lacking_is_asked_for() {
    let store = store();
    let all = Some(names(&["CI", "STAGE"], &["STAGE"]));
    for lacking in [
        json!({}),
        json!(null),
        json!({"os": "linux"}),
        json!({"env": {}}),
        json!({"env": []}),
        json!({"env": {"CI": "1"}}),
        json!({"env": {"STAGE": "dev"}}),
        json!({"env": {"CI": "", "STAGE": ""}}),
        json!({"env": {"HOST": "x"}}),
    ] {
        let error = ask(&store, "get_hint", &get(&lacking)).unwrap_err();
        assert_eq!((error.reason(), error.env_names()), ("E_INVALID", all.clone()), "{lacking}");
        // A client reads the names from the error object.
        assert_eq!(Error::from_json(&error.to_json()).env_names(), all);
    }
    assert_eq!(ask(&store, "get_hint", &json!({"component": "a", "key": "k"})).unwrap_err().env_names(), all);
    assert!(ask(&store, "get_hint", &get(&json!({"env": {"CI": "", "STAGE": "dev", "MORE": "x"}}))).is_ok());
    for stage in [json!(null), json!("none")] {
        let told = ask(&store, "get_hint", &get(&json!({"env": {"CI": null, "STAGE": stage}}))).unwrap_err();
        assert_eq!((told.reason(), told.env_names()), ("E_NOT_FOUND", None));
    }
}

#[test]
fn what_is_known_or_of_no_concern_is_not_asked_for() {
    let store = store();
    let asked = |method: &str, params: Value| ask(&store, method, &params).err().and_then(|error| error.env_names());
    assert_eq!(asked("get_hint", get(&json!({"env": null}))), None, "unknown, and to stay so");
    assert_eq!(asked("get_hint", json!({"component": "a", "key": "plain"})), None);
    assert_eq!(asked("get_hint", json!({"component": "a", "key": "k", "variant": ""})), None);
    assert_eq!(asked("bump", json!({"component": "b", "key": "k"})), None);
    assert_eq!(asked("bump", json!({"component": "b", "key": "k", "context": {}})), None);
    assert_eq!(
        asked("bump", json!({"component": "b", "key": "k", "context": {"os": "linux"}})),
        Some(names(&["HOST"], &[]))
    );
    assert_eq!(asked("query", json!({"component": "b"})), Some(names(&["HOST"], &[])));
    assert_eq!(asked("query", json!({"keys": ["plain"]})), None);
    assert_eq!(asked("query", json!({"tags": ["none"]})), None);
    let everything = Some(names(&["CI", "HOST", "STAGE"], &["STAGE"]));
    assert_eq!(asked("query", json!({})), everything);
    assert_eq!(asked("suggest", json!({"event": "start"})), everything);
    assert_eq!(asked("outcome", json!({"command": "make", "ok": true})), everything);
    assert_eq!(asked("why", json!({"component": "a", "key": "k"})), Some(names(&["CI", "STAGE"], &["STAGE"])));
    for (method, malformed) in [
        ("get_hint", json!({"component": 7, "key": "k"})),
        ("get_hint", json!({"component": "a", "key": "k", "context": 7})),
        ("get_hint", json!({"component": "a", "key": "k", "context": {"env": "CI"}})),
        ("get_hint", json!(["a", "k"])),
        ("query", json!({"keys": vec!["k"; 257]})),
        ("list_components", json!({})),
        ("export", json!({})),
    ] {
        assert_eq!(asked(method, malformed.clone()), None, "{method} {malformed}");
    }
    // A caller that does not ask for names gets the ordinary answer.
    let plain = call(&store, Caller::default(), "get_hint", &get(&json!({}))).unwrap_err();
    assert_eq!((plain.reason(), plain.env_names()), ("E_NOT_FOUND", None));
    // From here on, no stored hint mentions the environment.
    for component in ["a", "b"] {
        call(&store, Caller::default(), "delete_hint", &json!({"component": component, "key": "k"})).unwrap();
    }
    assert_eq!(asked("query", json!({})), None);
    call(&store, Caller::default(), "undo", &json!({})).unwrap();
    assert_eq!(asked("query", json!({})), Some(names(&["HOST"], &[])));
}

struct Counting(Arc<AtomicUsize>);

impl ChangeLog for Counting {
    fn append(&self, _: &LogEntry<'_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn a_refusal_does_nothing_and_is_not_remembered_for_the_key() {
    let writes = Arc::new(AtomicUsize::new(0));
    let store = Nudge::with_log(Config::default(), Arc::new(SystemClock), Box::new(Counting(Arc::clone(&writes))));
    set(&store, "b", "k", &json!({"env_required": "HOST"}));
    let caller = Caller::with_name("tester").with_key(Some("one"));
    let bump = |env: &Value| json!({"component": "b", "key": "k", "context": {"os": "linux", "env": env}});
    for _ in 0..2 {
        let refused = call(&store, caller.asking_env(), "bump", &bump(&json!({}))).unwrap_err();
        assert_eq!(refused.env_names(), Some(names(&["HOST"], &[])));
    }
    assert_eq!(writes.load(Ordering::SeqCst), 1, "the set");
    let done = call(&store, caller.asking_env(), "bump", &bump(&json!({"HOST": ""}))).unwrap();
    // The call is repeated after scopes have begun to mention further names.
    set(&store, "b", "k", &json!({"env_required": "MORE"}));
    assert_eq!(call(&store, caller.asking_env(), "bump", &bump(&json!({"HOST": ""}))).unwrap(), done);
    assert_eq!(writes.load(Ordering::SeqCst), 3);
}

#[test]
fn a_store_takes_over_the_identity_of_a_session() {
    let store = Nudge::default().with_identity("of before".into(), 1_767_225_600_000);
    assert_eq!((store.session_id(), store.created_at()), ("of before", 1_767_225_600_000));
    let status = store.status();
    assert_eq!((&*status.session_id, &*status.started), ("of before", "2026-01-01T00:00:00.000Z"));
}
