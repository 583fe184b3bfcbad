//! Tests that secrets do not appear in errors, in `Debug` output, or in results that people read.

use nudge::{
    BumpHint, Context, DeleteHint, ExportHints, HintValue, ImportHints, Nudge, OutcomeParams, QueryHints, Sensitivity,
    Service as _, SetHint, SuggestParams,
};
use serde_json::value::to_raw_value;

/// Builds a text that looks like a credential. It is joined at run time, so that this file contains no such text.
fn canary() -> String {
    ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat()
}

fn secret() -> SetHint {
    let mut hint = SetHint::new("a", "k", canary());
    hint.meta.sensitivity = Some(Sensitivity::Secret);
    hint
}

#[test]
fn debug_output_holds_no_secret() {
    let canary = canary();
    let store = Nudge::default();
    let context = Context::builder().env("TOKEN", &canary);
    let import =
        ImportHints { payload: to_raw_value(&canary).unwrap(), mode: nudge::ImportMode::Merge, allow_secret: false };
    let raw = |json: serde_json::Value| json.to_string();
    let suggest: SuggestParams =
        serde_json::from_str(&raw(serde_json::json!({"event": "prompt", "prompt": canary, "error": canary}))).unwrap();
    let outcome: OutcomeParams =
        serde_json::from_str(&raw(serde_json::json!({"command": canary, "ok": true}))).unwrap();
    let printed = [
        format!("{:?}", secret()),
        format!("{:?}", HintValue::command(&canary)),
        format!("{:?}", store.set(secret()).unwrap()),
        format!("{:?}", store.get("a", "k", &Context::default())),
        format!("{:?}", store.query(QueryHints::default()).unwrap()),
        format!("{:?}", store.export(&ExportHints { include_secrets: true, ..ExportHints::default() }).unwrap()),
        format!("{import:?} {suggest:?} {outcome:?} {context:?} {:?}", context.clone().build().unwrap()),
    ];
    for text in printed {
        assert!(!text.contains(&canary), "{text}");
    }
}

/// Promise: see `values_stay_out_of_messages`.
#[test]
fn refusals_hold_no_secret() {
    let canary = canary();
    let store = Nudge::default();
    let calls = [
        ("nudge.set_hint", serde_json::json!({"component": "a", "key": "k", "value": canary})),
        ("nudge.set_hint", serde_json::json!({"component": "a", "key": "k", "value": {"type": canary}})),
        (
            "nudge.set_hint",
            serde_json::json!({"component": "a", "key": "k", "value": "x", "meta": {"priority": canary}}),
        ),
        ("nudge.set_hint", serde_json::json!({"component": "a", "key": "k", "value": "x", "meta": {"source": canary}})),
        (
            "nudge.set_hint",
            serde_json::json!({"component": "a", "key": "k", "value": "x", "meta": {canary.clone(): 1}}),
        ),
        ("nudge.set_hint", serde_json::json!({"component": "a", "key": "k", "value": "x", "meta": {"ttl": canary}})),
        ("nudge.set_hint", serde_json::json!({"component": canary, "key": "k", "value": "x"})),
        (
            "nudge.set_hint",
            serde_json::json!({"component": "a", "key": "k", "value": {"type": "json", "data": {canary.clone(): 1}}}),
        ),
        (
            "nudge.set_hint",
            serde_json::json!({"component": "a", "key": "k", "value": "x", "meta": {"scope": {"cwd_glob": [format!("~{canary}")]}}}),
        ),
        ("nudge.get_hint", serde_json::json!({"component": "a", "key": "k", "context": {"os": canary}})),
        ("nudge.get_hint", serde_json::json!({"component": "b", "key": "k", "context": {"branch": canary}})),
        ("nudge.query", serde_json::json!({"regex": format!("({canary}")})),
        ("nudge.import", serde_json::json!({"payload": {"components": {}, "x": canary}})),
        ("nudge.import", serde_json::json!({"payload": canary})),
    ];
    let mut scoped = SetHint::new("b", "k", "x");
    scoped.meta.scope.branch = vec!["dev".into()];
    store.set(scoped).unwrap();
    for (method, params) in calls {
        let error = store.call(method, &to_raw_value(&params).unwrap()).unwrap_err();
        assert!(!error.to_json().to_string().contains(&canary), "{method} {error:?}");
    }
}

#[test]
fn only_get_and_an_asked_for_export_show_a_secret() {
    let canary = canary();
    let store = Nudge::default();
    let json = |value: &dyn erased::Json| value.json();
    let set = store.set(secret()).unwrap();
    let bumped = store.bump(BumpHint { component: "a".into(), key: "k".into(), ..BumpHint::default() }).unwrap();
    let rows = store.query(QueryHints::default()).unwrap();
    let plain = store.export(&ExportHints::default()).unwrap();
    let full = store.export(&ExportHints { include_secrets: true, ..ExportHints::default() }).unwrap();
    let got =
        store.get_hint(nudge::GetHint { component: "a".into(), key: "k".into(), ..nudge::GetHint::default() }).unwrap();
    let deleted =
        store.delete(&DeleteHint { component: "a".into(), key: "k".into(), ..DeleteHint::default() }).unwrap();
    for hidden in [json(&set), json(&bumped), json(&rows), json(&deleted)] {
        assert!(hidden.contains("\"[secret]\"") && !hidden.contains(&canary), "{hidden}");
    }
    assert!(!json(&plain).contains(&canary) && json(&plain).contains("\"omitted_secrets\":1"));
    assert!(json(&full).contains(&canary));
    assert!(json(&got).contains(&canary));
}

mod erased {
    /// A type that can be serialised, so that one list can hold results of several types.
    pub trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap()
        }
    }
}
