//! What a server fills in for its stdio client, and what it leaves to the service.
#![cfg(unix)]

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use kit::{PATIENCE, Serve, command, home};
use serde_json::{Value, json};

#[test]
fn keys_that_stand_twice_are_refused_as_over_http() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    serve.initialize("2025-11-25");
    for arguments in [
        r#"{"component":"a","key":"k","context":{"cwd":"/a","cwd":"/b"}}"#,
        r#"{"component":"a","component":"b","key":"k"}"#,
    ] {
        serve.send(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"nudge_get_hint","arguments":{arguments}}}}}"#
        ));
        let text = serve.receive()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let over_stdio: Value = serde_json::from_str(&text).unwrap();
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"nudge.get_hint","params":{arguments}}}"#);
        let over_http: Value = serde_json::from_str(&serve.post(&body).body).unwrap();
        assert_eq!(over_stdio["code"], 40001, "{arguments}");
        assert_eq!(over_stdio, over_http["error"]);
    }
    serve.close();
}

#[test]
fn what_has_no_form_is_told_so() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    serve.initialize("2025-11-25");
    let refused = serve.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let refused = serve.ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/nothing"}));
    assert_eq!(refused["error"]["code"], -32601);
    assert!(refused["error"]["message"].as_str().unwrap().ends_with('.'), "{refused}");
    serve.close();
}

/// `GIT_DIR` makes git's files unsure, so git is asked; this one never answers.
#[test]
fn a_git_that_hangs_holds_up_nobody_else() {
    let home = home();
    let git = home.path().join("git");
    let asked = home.path().join("asked");
    fs::write(&git, format!("#!/bin/sh\ntouch {}\nexec sleep 60\n", asked.display())).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let runtime = home.path().join("run");
    let path = format!("{}:{}", home.path().display(), std::env::var("PATH").unwrap());
    let mut command = command(&runtime);
    command.env("GIT_DIR", "/nowhere").env("PATH", path).current_dir(home.path());
    let mut serve = Serve::spawn(command, &runtime);
    serve.initialize("2025-11-25");
    serve.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nudge_query","arguments":{}}}"#);
    kit::wait_for("git to be asked", PATIENCE, || asked.exists().then_some(()));
    let begun = Instant::now();
    serve.call("nudge.status", &json!({}));
    let listed = serve
        .ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "nudge_list_components"}}));
    assert_eq!(listed["id"], 2);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(serve.stdin.take());
    assert!(serve.end(Duration::from_secs(1)).success());
}
