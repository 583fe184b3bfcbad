//! Tests the context that Nudge infers: a server infers it for its stdio client, a command and a hook for themselves.
//! Also tests how malformed params are refused.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kit::system::nudge;
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

/// A hook must end within milliseconds. A git that hangs would stay behind after it.
#[test]
fn a_hook_never_runs_git() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    serve.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "v", "meta": {"priority": 8}}));
    let mut hook = nudge(&serve.runtime, &["hook"]);
    with_git(&mut hook, home.path(), "exec sleep 60");
    hook.env("NUDGE_HOOK_MS", "5000").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = hook.spawn().unwrap();
    let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup", "cwd": home.path()});
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("a/k: v"), "{said}");
    assert!(!home.path().join("asked").exists());
    serve.close();
}

/// Puts a script named `git` first in PATH. `GIT_DIR` makes git's files unreliable, so that Nudge must run git.
fn with_git(command: &mut Command, home: &Path, script: &str) {
    let git = home.join("git");
    fs::write(&git, format!("#!/bin/sh\ntouch '{}'\n{script}\n", home.join("asked").display())).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.display(), std::env::var("PATH").unwrap());
    command.env("GIT_DIR", "/nowhere").env("PATH", path).current_dir(home);
}

/// Nudge ends a git that hangs. It does not wait for processes that git leaves behind.
#[test]
fn a_git_that_hangs_is_ended() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    serve.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "v"}));
    let pid = home.path().join("pid");
    for (script, given_up) in [
        ("echo $$ > PID; exec sleep 60", true),
        ("echo $$ > PID; exec >/dev/null; exec sleep 60", true),
        ("echo $$ > PID; sleep 5 & exit 0", false),
        ("echo $$ > PID; exit 1", false),
    ] {
        let mut get = nudge(&serve.runtime, &["get", "a", "k", "--value"]);
        with_git(&mut get, home.path(), &script.replace("PID", &pid.display().to_string()));
        let begun = Instant::now();
        let out = get.output().unwrap();
        let took = begun.elapsed();
        assert_eq!(String::from_utf8_lossy(&out.stdout), "v\n", "{script}: {out:?}");
        assert!(took < Duration::from_secs(5), "{script}: {took:?}");
        assert_eq!(took >= Duration::from_secs(2), given_up, "{script}: {took:?}");
        let git: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let alive = Command::new("sh").args(["-c", &format!("kill -0 {git} 2>/dev/null")]).status().unwrap();
        assert!(!alive.success(), "{script}: git still runs");
    }
    // Nudge uses the answers of a git that works.
    let mut get = nudge(&serve.runtime, &["get", "a", "k", "--json"]);
    with_git(&mut get, home.path(), "case $* in *toplevel) pwd;; *abbrev*) echo topic;; *) echo https://h/o/r;; esac");
    serve.call(
        "nudge.set_hint",
        &json!({"component": "a", "key": "k", "value": "w", "meta": {"scope": {"branch": "topic", "repo": "o/r"}}}),
    );
    assert!(String::from_utf8(get.output().unwrap().stdout).unwrap().contains(r#""value":"w""#));
}

/// Promise (server): The server answers other calls while git hangs or a source is slow.
#[test]
fn a_git_that_hangs_holds_up_no_other_caller() {
    let home = home();
    let asked = home.path().join("asked");
    let runtime = home.path().join("run");
    let mut command = command(&runtime);
    with_git(&mut command, home.path(), "exec sleep 60");
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
