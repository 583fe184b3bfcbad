//! Tests a store in this process, as bindings use it, and its tools.

use nudge::{Config, Context, Service};
use nudge_client::{Store, Tools};
use serde_json::json;
use serde_json::value::to_raw_value;

#[test]
fn what_is_not_found_says_why() {
    let store = Store::new(Config::default());
    let set = json!({"component": "api", "key": "build", "value": "make", "meta": {"scope": {"branch": "dev"}}});
    store.call("nudge.set_hint", &to_raw_value(&set).unwrap()).unwrap();
    let dev = Context::builder().branch("dev").build().unwrap();
    assert_eq!(store.find("api", "build", &dev).unwrap().text(), "make");

    let main = Context::builder().branch("main").build().unwrap();
    let refused = store.find("api", "build", &main).unwrap_err();
    assert_eq!((refused.reason(), &refused.data()["missing_context"]), ("E_NOT_FOUND", &json!([])));
    assert_eq!(refused.data()["near_misses"][0]["failed"], "branch");
    assert!(store.get("api", "build", &main).unwrap().is_none());
    // The error equals the one of `nudge.get_hint`.
    let asked = store.call("nudge.get_hint", &to_raw_value(&json!({"component": "api", "key": "build"})).unwrap());
    assert_eq!(store.find("api", "build", &Context::default()).unwrap_err(), asked.unwrap_err());
    assert_eq!(store.find("", "build", &main).unwrap_err().reason(), "E_INVALID");
}

fn call(store: &Store, method: &str, params: &serde_json::Value) -> serde_json::Value {
    let answer = store.call(method, &to_raw_value(params).unwrap()).unwrap();
    serde_json::from_str(answer.get()).unwrap()
}

#[test]
fn every_hint_is_listed_whatever_fits_and_however_many_there_are() {
    let store = Store::new(Config { max_hints_per_component: 4000, ..Config::default() });
    assert!(store.list_hints().unwrap().is_empty());
    let many: serde_json::Map<_, _> = (0..1500).map(|n| (format!("k{n:04}"), json!("v"))).collect();
    call(&store, "nudge.import", &json!({"payload": {"components": {"many": {"hints": many}}}}));
    for params in [
        json!({"component": "api", "key": "token", "value": "hush", "meta": {"sensitivity": "secret"}}),
        json!({"component": "api", "key": "build", "value": "make dev", "meta": {"scope": {"branch": "dev"}}}),
        json!({"component": "api", "key": "build", "value": "make"}),
        json!({"component": "many", "key": "k0001", "value": "here", "meta": {"scope": {"branch": "dev"}}}),
        json!({"component": "many", "key": "secret", "value": "hush", "meta": {"sensitivity": "secret"}}),
    ] {
        call(&store, "nudge.set_hint", &params);
    }
    let all = store.list_hints().unwrap();
    assert_eq!(json!(all.len()), call(&store, "nudge.status", &json!({}))["hints"]);
    let all: Vec<serde_json::Value> = all.iter().map(|hint| serde_json::from_str(hint.get()).unwrap()).collect();
    let shown: Vec<_> = all[..3].iter().map(|hint| (hint["key"].as_str(), hint["value"].as_str())).collect();
    assert_eq!(
        shown,
        [(Some("build"), Some("make")), (Some("build"), Some("make dev")), (Some("token"), Some("[secret]"))]
    );
    let keys: Vec<_> = all[3..].iter().map(|hint| hint["key"].as_str().unwrap()).collect();
    assert!(keys.is_sorted() && keys.len() == 1502 && keys[1500..] == ["k1499", "secret"], "{:?}", keys.last());
}

#[test]
fn a_tool_stands_where_the_program_says_but_for_what_the_model_says() {
    let store = Store::new(Config::default());
    let tools = Tools::of(&store).unwrap();
    let set = json!({"component": "api", "key": "build", "value": "make dev", "meta": {"scope": {"branch": "dev", "env_required": "CI"}}});
    call(&store, "nudge.set_hint", &set);
    let dev = Context::builder().branch("dev").env("CI", "1").build().unwrap();
    let get = |arguments: &str| tools.call(&store, &dev, "nudge_get_hint", arguments);
    let found = get(r#"{"component": "api", "key": "build"}"#);
    assert!(!found.is_error && found.text.contains("make dev"), "{}", found.text);
    for (context, is_found) in [
        ("null", true),
        ("{}", true),
        (r#"{"cwd": "/w"}"#, true),
        (r#"{"branch": null}"#, false),
        (r#"{"branch": "main"}"#, false),
        (r#"{"env": {}}"#, false),
    ] {
        let found = get(&format!(r#"{{"component": "api", "key": "build", "context": {context}}}"#));
        assert_eq!(!found.is_error, is_found, "{context}: {}", found.text);
    }
    // A method that takes no context gets none. The method `bump` gets one only if the model gave one.
    assert!(!tools.call(&store, &dev, "nudge_list_components", "").is_error);
    assert!(
        !tools
            .call(&store, &dev, "nudge_bump", r#"{"component": "api", "key": "build", "context": {"cwd": "/w"}}"#)
            .is_error
    );
}

/// Promise: see `tools_are_the_rows_of_the_table_in_three_forms`.
#[test]
fn a_refusal_of_a_tool_says_so_and_is_no_person_s() {
    let store = Store::new(Config::default());
    let tools = Tools::of(&store).unwrap();
    let here = Context::default();
    let refused = |name: &str, arguments: &str| {
        let answer = tools.call(&store, &here, name, arguments);
        assert!(answer.is_error, "{name} {arguments}: {}", answer.text);
        let error: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        error["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(refused("nudge_get_hnit", "{}"), "There is no tool `nudge_get_hnit`; did you mean `nudge_get_hint`?");
    // A name that is not in the list is refused, even if it looks like a method.
    assert!(refused("nudge_status", "{}").starts_with("There is no tool"));
    assert!(refused("nudge.get_hint", "{}").starts_with("There is no tool"));
    for arguments in ["[]", "5", "{", "\"{}\"", "{} {}"] {
        assert!(refused("nudge_query", arguments).contains("JSON object"), "{arguments}");
    }
    assert!(refused("nudge_query", r#"{"context": 5}"#).contains("context"));
    assert!(refused("nudge_query", r#"{"context": {"cwd": "/a", "cwd": "/b"}}"#).contains("cwd"));
    let person = r#"{"component": "a", "key": "k", "value": "v", "meta": {"source": "user"}}"#;
    assert!(refused("nudge_set_hint", person).contains("user"));
    assert_eq!(call(&store, "nudge.status", &json!({}))["hints"], 0);
}

#[test]
fn a_tool_is_answered_in_the_form_in_which_it_was_used() {
    let store = Store::new(Config::default());
    call(&store, "nudge.set_hint", &json!({"component": "api", "key": "build", "value": "make"}));
    let tools = Tools::of(&store).unwrap();
    let answer = |said: &serde_json::Value| tools.answer(&store, &Context::default(), &said.to_string());
    let (name, input) = ("nudge_list_components", json!({}));
    let text = r#"{"components":[{"name":"api","hint_count":1}]}"#;
    assert_eq!(
        answer(&json!({"type": "tool_use", "id": "1", "name": name, "input": input})),
        Some(json!({"type": "tool_result", "tool_use_id": "1", "content": text, "is_error": false}))
    );
    assert_eq!(
        answer(&json!({"type": "function", "id": "2", "function": {"name": name, "arguments": "{}"}})),
        Some(json!({"role": "tool", "tool_call_id": "2", "content": text}))
    );
    assert_eq!(
        answer(&json!({"type": "function_call", "call_id": "3", "name": name, "arguments": ""})),
        Some(json!({"type": "function_call_output", "call_id": "3", "output": text}))
    );
    // The value keeps the model's key order, and the digits of its numbers.
    let data = r#"{"b":1.50,"a":[1]}"#;
    let set = format!(
        r#"{{"type":"tool_use","id":"4","name":"nudge_set_hint","input":{{"component":"a","key":"k","value":{{"type":"json","data":{data}}}}}}}"#
    );
    assert_eq!(tools.answer(&store, &Context::default(), &set).unwrap()["is_error"], false);
    let found = store.get("a", "k", &Context::default()).unwrap().unwrap();
    assert_eq!(found.text(), r#"{"b":1.5,"a":[1]}"#);
    for other in [
        json!({"type": "text", "text": "hello"}),
        json!({"type": "tool_use", "id": "1", "name": "get_weather", "input": {}}),
        json!({"type": "tool_use", "name": name, "input": {}}),
        json!({"type": "function"}),
        json!(5),
    ] {
        assert_eq!(answer(&other), None, "{other}");
    }
}

/// Promise (bindings): A program's tools are the methods of the table, and a refusal is an answer for the model.
#[test]
fn tools_are_the_rows_of_the_table_in_three_forms() {
    let tools = Tools::of(&Store::new(Config::default())).unwrap();
    let rows: Vec<_> = nudge::methods().into_iter().filter(|row| row.tool).collect();
    assert_eq!(tools.names(), rows.iter().map(|row| row.tool_name()).collect::<Vec<_>>());
    for (index, row) in rows.into_iter().enumerate() {
        let (name, schema) = (row.tool_name(), (row.params)());
        assert_eq!(
            tools.anthropic()[index],
            json!({"name": name, "description": row.description, "input_schema": schema})
        );
        let function = json!({"name": name, "description": row.description, "parameters": schema});
        assert_eq!(tools.openai()[index], json!({"type": "function", "function": function}));
        assert_eq!(
            (&tools.responses()[index]["parameters"], &tools.responses()[index]["strict"]),
            (&schema, &json!(false))
        );
    }
}
