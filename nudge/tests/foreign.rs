//! Tests calls with any text as `params`: each call answers or refuses, and a refused call changes nothing.

use std::sync::Arc;

use nudge::{Config, ExportHints, ManualClock, Nudge, Service as _};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Returns valid params for each method. The mutations change these params.
fn templates() -> Vec<(&'static str, Value)> {
    let scope = json!({"cwd_glob": ["**/a*", "/x/{b,c}/**"], "branch": "dev", "os": ["linux"], "repo": ["git@h.example:o/r.git"],
        "env_required": ["CI"], "env_match": {"STAGE": ["prod", "dev"]}});
    let context = json!({"cwd": "/x/b/y", "repo": "o/r", "branch": "dev", "os": "linux", "env": {"CI": "1", "STAGE": "prod"}, "files_open": ["a/b"]});
    let meta = json!({"reason": "r", "tags": ["t", "u"], "priority": 7, "confidence": 0.8, "ttl": "PT2H", "sensitivity": "normal",
        "scope": scope, "source": "agent", "added_by": "x"});
    let hint = json!({"value": "v", "meta": meta, "version": 3, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T01:00:00+01:00",
        "use_count": 4, "last_used_at": "2026-01-01T00:00:00Z", "failure_count": 1, "last_failed_at": null});
    vec![
        (
            "nudge.set_hint",
            json!({"component": "a", "key": "k", "value": {"type": "command", "cmd": "make", "shell": "sh"}, "meta": meta, "if_match_version": 0}),
        ),
        (
            "nudge.set_hint",
            json!({"component": "a", "key": "k", "value": {"type": "json", "data": {"b": [1, 2.5, null], "a": "x"}}, "variant": ""}),
        ),
        (
            "nudge.set_hint",
            json!({"component": "a", "key": "p", "value": {"type": "path", "abs": "/srv//x/", "os": ["linux"]}, "meta": {"ttl": "session"}}),
        ),
        ("nudge.get_hint", json!({"component": "a", "key": "k", "context": context, "variant": ""})),
        (
            "nudge.query",
            json!({"component": "a", "keys": ["k"], "tags": ["t"], "regex": "m.k", "context": context, "limit": 3, "include_ineligible": true}),
        ),
        ("nudge.bump", json!({"component": "a", "key": "k", "delta": 2, "context": context})),
        ("nudge.delete_hint", json!({"component": "a", "key": "k", "all": true})),
        ("nudge.list_components", json!({})),
        ("nudge.export", json!({"format": "json", "component": "a", "include_secrets": true})),
        (
            "nudge.import",
            json!({"payload": {"schema_version": "1.0", "components": {"a": {"hints": {"k": hint, "b": "bare"}, "variants": {"k": [hint]}}}, "x": 1}, "mode": "merge"}),
        ),
        ("nudge.import", json!({"payload": {"components": {"a": {"hints": {"k": hint}}}}, "mode": "replace"})),
        (
            "nudge.suggest",
            json!({"event": "failure", "context": context, "command": "make x", "error": "a failed", "client_session": "s", "max_bytes": 10}),
        ),
        ("nudge.outcome", json!({"command": "make", "ok": false, "exit_code": 127, "context": context})),
        ("nudge.env_names", json!({"component": "a", "key": "k"})),
        ("nudge.status", json!({})),
    ]
}

#[derive(Debug, Clone)]
enum Edit {
    Replace(usize, Value),
    Remove(usize),
    Add(usize, String, Value),
    /// Cuts the text or inserts bytes into it. In most cases the result is not JSON.
    Text(usize, String),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z/*{}\\[\\]!.\\\\%:@~-]{0,12}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "..", "/../x", "P1D", "PT0S", "C:\\x", "\u{0}", "**", "{a,b", "[", "session", "1.0", "2.0"
        ])
        .prop_map(Value::from),
        (0..70_000_usize).prop_map(|len| "x".repeat(len).into()),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        5 => (any::<usize>(), value()).prop_map(|(index, value)| Edit::Replace(index, value)),
        2 => any::<usize>().prop_map(Edit::Remove),
        2 => (any::<usize>(), "[a-z_]{0,8}", value()).prop_map(|(index, name, value)| Edit::Add(index, name, value)),
        1 => (any::<usize>(), "[\\[\\]{}\",:0-9a-z\\\\ ]{0,4}").prop_map(|(index, text)| Edit::Text(index, text)),
    ]
}

/// Lists all positions in a value, as JSON pointers.
fn pointers(value: &Value, pointer: &str, out: &mut Vec<String>) {
    out.push(pointer.to_owned());
    match value {
        Value::Object(map) => map.iter().for_each(|(name, inner)| {
            pointers(inner, &format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")), out);
        }),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(index, inner)| pointers(inner, &format!("{pointer}/{index}"), out));
        }
        _ => {}
    }
}

fn apply(params: &mut Value, edits: &[Edit]) -> String {
    let mut text = None;
    for edit in edits {
        let mut places = Vec::new();
        pointers(params, "", &mut places);
        match edit {
            Edit::Replace(index, new) => {
                if let Some(place) = params.pointer_mut(&places[index % places.len()]) {
                    *place = new.clone();
                }
            }
            Edit::Remove(index) => {
                if let Some(Value::Object(map)) = params.pointer_mut(&places[index % places.len()]) {
                    let name = map.keys().nth(index % map.len().max(1)).cloned();
                    name.and_then(|name| map.remove(&name));
                }
            }
            Edit::Add(index, name, new) => {
                if let Some(Value::Object(map)) = params.pointer_mut(&places[index % places.len()]) {
                    map.insert(name.clone(), new.clone());
                }
            }
            Edit::Text(index, with) => {
                let mut cut = params.to_string();
                let mut offset = index % (cut.len() + 1);
                while !cut.is_char_boundary(offset) {
                    offset -= 1;
                }
                cut.insert_str(offset, with);
                text = Some(cut);
            }
        }
    }
    text.unwrap_or_else(|| params.to_string())
}

fn export(store: &Nudge) -> String {
    serde_json::to_string(&store.export(&ExportHints { include_secrets: true, ..ExportHints::default() }).unwrap())
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_call_answers_and_a_refusal_changes_nothing(
        calls in prop::collection::vec((0..15_usize, prop::collection::vec(edit(), 0..3)), 1..6),
    ) {
        let store = Nudge::with_clock(Config::default(), Arc::new(ManualClock::new(1_767_225_600_000)));
        let templates = templates();
        for (at, edits) in calls {
            let (method, params) = &templates[at];
            let text = apply(&mut params.clone(), &edits);
            let Ok(raw) = RawValue::from_string(text) else { continue };
            let before = export(&store);
            let row = store.methods().into_iter().find(|row| row.name == *method).unwrap();
            match store.call(method, &raw) {
                Ok(result) => {
                    prop_assert!(serde_json::from_str::<Value>(result.get()).is_ok());
                    if row.read_only {
                        prop_assert_eq!(export(&store), before);
                    }
                }
                Err(error) => {
                    prop_assert!(error.message().len() < 700 && !error.message().contains('\n'), "{}", error.message());
                    prop_assert_eq!(export(&store), before);
                }
            }
        }
    }
}

/// A payload may have a million errors. The answer lists the first hundred.
#[test]
fn an_import_names_the_first_hundred_errors() {
    let nudge = Nudge::new(Config::default());
    let hints: serde_json::Map<_, _> = (0..250).map(|n| (format!("k{n:03}"), json!({"value": 7, "odd": n}))).collect();
    let payload = json!({"payload": {"schema_version": "1.0", "components": {"svc": {"hints": hints}}}});
    let params = RawValue::from_string(payload.to_string()).unwrap();
    let done: Value = serde_json::from_str(nudge.call("nudge.import", &params).unwrap().get()).unwrap();
    assert_eq!((&done["imported"], &done["skipped"]), (&json!(0), &json!(250)));
    let errors = done["errors"].as_array().unwrap();
    assert_eq!((errors.len(), &errors[0]["key"], &errors[99]["key"]), (100, &json!("k000"), &json!("k099")));
}
