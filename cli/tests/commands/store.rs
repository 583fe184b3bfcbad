//! Tests [`nudge_client::Store`], through which the bindings call a running session.
#![cfg(unix)]

use crate::kit;

use kit::session::Session;
use nudge::{Context, ErrorKind, Service};
use nudge_client::Store;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

fn call(store: &Store, method: &str, params: &Value) -> nudge::Result<Value> {
    let result = store.call(&format!("nudge.{method}"), &to_raw_value(params).unwrap())?;
    Ok(serde_json::from_str(result.get()).unwrap())
}

fn connect(session: &Session) -> Store {
    Store::connect(Some(&session.runtime), "store-test/1").unwrap()
}

/// Gets a hint; returns its text, its version, whether it is the hint without a scope, and the reasons. `None` if there
/// is no hint.
fn got(store: &Store, context: &Context) -> Option<(String, u64, bool, Vec<String>)> {
    let found = store.get("svc", "k", context).unwrap()?;
    let hint: Value = serde_json::from_str(found.hint().unwrap().get()).unwrap();
    assert_eq!((hint["version"].as_u64(), hint["component"].as_str()), (Some(found.version()), Some("svc")));
    let parts = serde_json::to_value(found.parts()).unwrap();
    let sum: f64 = parts.as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
    assert!((sum - found.score()).abs() < 1e-3, "{parts} sum to {}", found.score());
    Some((found.text().to_owned(), found.version(), found.variant().is_empty(), found.reasons()))
}

#[test]
fn a_session_answers_as_a_store_of_ones_own() {
    let session = Session::start(0);
    let scoped = json!({"component": "svc", "key": "k", "value": {"type": "command", "cmd": "make ci"},
        "meta": {"scope": {"env_match": {"STAGE": "test"}, "env_required": ["CI"]}}});
    let context = |vars: &[(&str, &str)]| {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Context::builder().cwd("/work/svc").file_open("/work/svc/a").build().unwrap().with_env(vars)
    };
    let here = context(&[("STAGE", "test"), ("CI", "yes"), ("OTHER", "x")]);
    let elsewhere = context(&[("STAGE", "prod"), ("CI", "yes")]);
    for store in [Store::new(nudge::Config::default()), connect(&session)] {
        assert_eq!(got(&store, &here), None);
        call(&store, "set_hint", &json!({"component": "svc", "key": "k", "value": "make"})).unwrap();
        call(&store, "set_hint", &scoped).unwrap();
        let open = "open file /work/svc/a is in svc".to_owned();
        let reasons = vec!["env CI present".to_owned(), "env STAGE=test matched".to_owned(), open.clone()];
        assert_eq!(got(&store, &here), Some(("make ci".into(), 1, false, reasons)));
        let reasons = vec!["no scope: applies everywhere".to_owned(), open];
        assert_eq!(got(&store, &elsewhere), Some(("make".into(), 1, true, reasons)), "a name known by now");
        let variant = |context: &Context, variant: &str| {
            let found = store.get_variant("svc", "k", variant, context).unwrap();
            found.map(|found| (found.text().to_owned(), found.variant().to_owned()))
        };
        let scoped = store.get("svc", "k", &here).unwrap().unwrap().variant().to_owned();
        assert_eq!(variant(&here, ""), Some(("make".into(), String::new())));
        assert_eq!(variant(&here, &scoped), Some(("make ci".into(), scoped.clone())));
        assert_eq!((variant(&elsewhere, &scoped), variant(&here, "000000000000")), (None, None));
        let query = |context| store.call_in(context, "nudge.query", &serde_json::Map::default()).unwrap().get().len();
        assert!(query(&here) > query(&elsewhere), "both variants, or one");
        let only_env = |stage: &str| {
            Context::default().with_env([("STAGE".to_owned(), stage.to_owned()), ("CI".into(), "1".into())])
        };
        for (stage, counted) in [("test", "make ci"), ("prod", "make")] {
            let params = serde_json::Map::from_iter([("component".into(), "svc".into()), ("key".into(), "k".into())]);
            let bumped = store.call_in(&only_env(stage), "nudge.bump", &params).unwrap();
            assert!(bumped.get().contains(counted), "the one that get returns there: {bumped}");
        }
        // A context without an environment makes the server report `env` as missing. A call without any field has no
        // context at all.
        let branch = Context::builder().branch("dev").build().unwrap();
        let only =
            |key: &str| serde_json::Map::from_iter([("component".into(), "ci".into()), ("key".into(), key.into())]);
        let needs_ci = json!({"component": "ci", "key": "k", "value": "x", "meta": {"scope": {"env_required": "CI"}}});
        call(&store, "set_hint", &needs_ci).unwrap();
        let error = store.call_in(&branch, "nudge.get_hint", &only("k")).unwrap_err();
        assert_eq!(error.data()["missing_context"], json!(["env"]), "{error}");
        store.call_in(&Context::default(), "nudge.bump", &only("k")).unwrap();
        let mut other = needs_ci.clone();
        other["meta"]["scope"] = json!({"os": "linux"});
        call(&store, "set_hint", &other).unwrap();
        let error = store.call_in(&Context::default(), "nudge.bump", &only("k")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        for params in ["null", "[]", "1"] {
            let params = serde_json::value::RawValue::from_string(params.into()).unwrap();
            for answer in [store.call("nudge.status", &params), store.call_raw_in(&branch, "nudge.query", &params)] {
                assert_eq!(answer.unwrap_err().kind(), ErrorKind::ParamsNotObject, "{params}");
            }
        }
        let twice = serde_json::value::RawValue::from_string(r#"{"limit": 1, "limit": 2}"#.into()).unwrap();
        assert_eq!(store.call_raw_in(&branch, "nudge.query", &twice).unwrap_err().kind(), ErrorKind::Invalid);
        for name in ["", "a\nb", &"x".repeat(257)] {
            assert_eq!(store.get(name, "k", &here).unwrap_err().kind(), ErrorKind::Invalid);
            assert_eq!(store.get("svc", name, &here).unwrap_err().kind(), ErrorKind::Invalid);
        }
        let error = call(&store, "get_hint", &json!({"component": "svc"})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    session.end();
}

#[test]
fn it_goes_on_with_the_next_primary_and_ends_with_the_session() {
    let session = Session::start(1);
    let store = connect(&session);
    call(&store, "set_hint", &json!({"component": "svc", "key": "k", "value": "make"})).unwrap();
    session.kill_primary();
    let text = |store: &Store| got(store, &Context::default()).map(|(text, ..)| text);
    assert_eq!(text(&store).as_deref(), Some("make"));
    call(&store, "delete_hint", &json!({"component": "svc", "key": "k"})).unwrap();
    let who = call(&store, "deletions", &json!({})).unwrap();
    assert_eq!(who["deletions"][0]["by"], "store-test/1");
    session.end();
    assert_eq!(store.get("svc", "k", &Context::default()).unwrap_err().kind(), ErrorKind::Unavailable);
    let error = Store::connect(Some(&session.runtime), "store-test/1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("nudge serve"), "{error}");
}
