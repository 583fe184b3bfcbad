//! Tests people's hints and the tools of agents. An agent cannot store a hint as a person. If an agent overwrites a
//! person's hint, an undo restores that hint.
#![cfg(unix)]

use crate::kit;

use std::path::Path;

use kit::agent::{Failure, LONG};
use kit::mcp::{Client, Http, META, everywhere, request};
use kit::raw::Raw;
use kit::session::Session;
use kit::{Serve, home};
use serde_json::{Value, json};

fn hint(value: &str, more: &Value) -> Value {
    let mut params = json!({"component": "api", "key": "build", "value": value});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn of_a_person(value: &str) -> Value {
    hint(value, &json!({"meta": {"source": "user"}}))
}

/// Calls a tool; returns its result or the error object.
type Tool<'a> = &'a mut dyn FnMut(&str, Value) -> Result<Value, Value>;

/// Calls a method as the command line of a person does; returns its result or the error object.
type Person<'a> = &'a mut dyn FnMut(&str, Value) -> Result<Value, Value>;

fn refused(answer: Result<Value, Value>) {
    let error = answer.expect_err("it is carried out");
    assert_eq!(error["data"]["reason"], "E_INVALID", "{error}");
    let told = "`meta.source` may not be `user`, which is for what a person stores; leave it out, or say `agent`.";
    assert_eq!(error["message"], told);
}

fn check(tool: Tool<'_>, person: Person<'_>) {
    let stands = |person: Person<'_>| {
        let got = person("nudge.get_hint", json!({"component": "api", "key": "build"})).unwrap();
        (got["hint"]["value"].clone(), got["hint"]["meta"]["source"].clone(), got["hint"]["version"].clone())
    };
    let kept = |person: Person<'_>| person("nudge.deletions", json!({})).unwrap()["deletions"].clone();
    person("nudge.set_hint", of_a_person("make api")).unwrap();

    refused(tool("nudge_set_hint", of_a_person("rm -rf /")));
    assert_eq!(stands(person), (json!("make api"), json!("user"), json!(1)), "a refused call changes nothing");

    let set = tool("nudge_set_hint", hint("make -j8 api", &json!({"meta": {"source": "agent"}}))).unwrap();
    assert_eq!(set["previous"]["value"], "make api", "{set}");
    assert_eq!(set["hint"]["meta"]["added_by"], "agent:t", "who does not sign is signed by the client's name");
    let signed =
        tool("nudge_set_hint", json!({"component": "b", "key": "k", "value": "v", "meta": {"added_by": "me"}}));
    assert_eq!(signed.unwrap()["hint"]["meta"]["added_by"], "me");
    let id = kept(person)[0]["id"].clone();
    assert_eq!(
        set["note"],
        format!(
            "This replaced what a person had stored, see `previous`; the command `nudge undo {id}` brings it back."
        ),
    );
    let listed = kept(person)[0].clone();
    assert_eq!((&listed["what"], &listed["count"]), (&json!("replaced"), &json!(1)), "{listed}");
    assert_eq!(listed["hints"][0]["value"], "make api");

    // The agent replaces its own hint, so no further hint of a person is remembered. One undo restores the person's
    // hint, whatever the agent has changed since.
    let again = tool("nudge_set_hint", hint("make -j9 api", &json!({}))).unwrap();
    assert_eq!((&again["previous"]["value"], &again["note"]), (&json!("make -j8 api"), &Value::Null), "{again}");
    let undone = person("nudge.undo", json!({"id": id})).unwrap();
    assert_eq!((&undone["what"], &undone["restored"]), (&json!("replaced"), &json!(1)), "{undone}");
    assert_eq!(stands(person), (json!("make api"), json!("user"), json!(4)), "no version comes twice");
    assert_eq!(person("nudge.undo", json!({"id": id})).unwrap_err()["data"]["reason"], "E_NOT_FOUND");

    // An undo does not overwrite a hint that the person has stored since.
    tool("nudge_set_hint", hint("make other", &json!({}))).unwrap();
    let id = kept(person)[0]["id"].clone();
    std::thread::sleep(std::time::Duration::from_millis(5));
    person("nudge.set_hint", of_a_person("make anew")).unwrap();
    assert_eq!(person("nudge.undo", json!({"id": id})).unwrap_err()["data"]["reason"], "E_CONFLICT");

    // An import follows the same rule: the hints that it replaces can be restored.
    let payload = |hint: Value| json!({"payload": {"components": {"api": {"hints": {"build": hint}}}}});
    let later = "2999-01-01T00:00:00Z";
    let claimed = json!({"value": "rm -rf /", "updated_at": later, "meta": {"source": "user"}});
    let imported = tool("nudge_import", payload(claimed)).unwrap();
    assert_eq!(imported["errors"], json!([{"component": "api", "key": "build", "reason": "E_INVALID"}]));
    assert_eq!(stands(person).0, "make anew");
    tool("nudge_import", payload(json!({"value": "imported", "updated_at": later}))).unwrap();
    let listed = kept(person)[0].clone();
    assert_eq!((&listed["what"], &listed["hints"][0]["value"]), (&json!("replaced"), &json!("make anew")), "{listed}");
    person("nudge.undo", json!({})).unwrap();
    assert_eq!(stands(person).0, "make anew");

    // A person replaces a person's hint. That hint can be restored too, but the answer has no note.
    let set = person("nudge.set_hint", of_a_person("make last")).unwrap();
    assert_eq!((&set["previous"]["value"], &set["note"]), (&json!("make anew"), &Value::Null), "{set}");
    person("nudge.undo", json!({})).unwrap();
    assert_eq!(stands(person).0, "make anew");
    person("nudge.delete_hint", json!({"component": "api", "key": "build"})).unwrap();
    assert_eq!(kept(person)[0]["what"], "deleted");
}

/// Makes a JSON-RPC call, as the command line and the bindings do.
fn by_person(runtime: &Path, method: &str, params: &Value) -> Result<Value, Value> {
    match Raw::new(runtime).call(method, params, None) {
        Ok(result) => Ok(result),
        Err(Failure::Refused(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_cannot_pass_for_a_person_and_loses_nothing_of_theirs() {
    let home = home();
    let runtime = home.path().join("run");
    let check = |client: &mut dyn Client, _| {
        let mut tool = |name: &str, arguments: Value| {
            let answer = client.result("tools/call", json!({"name": name, "arguments": arguments}));
            let error = || serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
            if answer["isError"] == true { Err(error()) } else { Ok(answer["structuredContent"].clone()) }
        };
        check(&mut tool, &mut |method, params| by_person(&runtime, method, &params));
    };
    everywhere(&runtime, |_| {}, check);
}

#[test]
fn a_proxy_says_that_its_caller_is_an_agent() {
    let session = Session::start(1);
    let proxy = &session.agents[1];
    let mut tool = |name: &str, arguments: Value| match proxy.tool(name, &arguments, LONG) {
        Ok(result) => Ok(result),
        Err(Failure::Refused(error)) => Err(error),
        Err(other) => panic!("{other:?}"),
    };
    check(&mut tool, &mut |method, params| by_person(&session.runtime, method, &params));

    // The next PRIMARY can still restore the replaced hint.
    by_person(&session.runtime, "nudge.set_hint", &of_a_person("make api")).unwrap();
    tool("nudge_set_hint", hint("make other", &json!({}))).unwrap();
    session.kill_primary();
    let listed = session.raw().result("nudge.deletions", &json!({}))["deletions"][0].clone();
    assert_eq!((&listed["what"], &listed["hints"][0]["value"]), (&json!("replaced"), &json!("make api")), "{listed}");
    // `nudge undo --list` shows the change as a replacement.
    let said = |args: &[&str]| String::from_utf8_lossy(&session.nudge(args).stdout).into_owned();
    let list = said(&["undo", "--list"]);
    assert!(list.contains("replaced") && list.contains("deleted"), "{list}");
    let undone = said(&["undo"]);
    assert!(undone.contains("  replaced just now by "), "{undone}");
    let got = session.raw().result("nudge.get_hint", &json!({"component": "api", "key": "build"}));
    assert_eq!((&got["hint"]["value"], &got["hint"]["version"]), (&json!("make api"), &json!(3)));
    session.end();
}

#[test]
fn a_client_without_a_name_signs_nothing() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let client = Http::modern(&serve);
    let arguments = json!({"component": "a", "key": "k", "value": "v"});
    let mut call = request(true, 1, "tools/call", json!({"name": "nudge_set_hint", "arguments": arguments}));
    call["params"]["_meta"].as_object_mut().unwrap().remove(&format!("{META}/clientInfo")).unwrap();
    let stored = client.post(&call).message().unwrap()["result"]["structuredContent"].clone();
    assert_eq!((&stored["hint"]["key"], &stored["hint"]["meta"]["added_by"]), (&json!("k"), &Value::Null), "{stored}");
}
