//! Tests the change log: who changed which field of which kept hint or record last, and when.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::keeping::{User, get, kill, set};
use crate::kit::Serve;

fn read_log(serve: &Serve, params: &Value) -> Vec<Value> {
    let answer = serve.call("nudge.change_log", params);
    answer["result"]["changes"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

/// Shortens an entry to what it says: `hints set gone [value]`.
fn describe(entry: &Value) -> String {
    let name = entry["key"].as_str().or(entry["name"].as_str()).unwrap();
    let fields: Vec<_> = entry["fields"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{} {} {name} {fields:?}", entry["source"].as_str().unwrap(), entry["what"].as_str().unwrap())
}

fn describe_all(serve: &Serve) -> Vec<String> {
    read_log(serve, &json!({})).iter().map(describe).collect()
}

/// Promise (kept hints): The change log has the last change of each kept hint and record, with its fields and its
/// author. It survives a kill.
#[test]
fn each_kept_thing_has_its_last_change() {
    let user = User::new();
    let serve = user.serve("run");
    assert_eq!(describe_all(&serve), [""; 0]);
    set(&serve, "gone", &json!({}));
    set(&serve, "stays", &json!({"reason": "first"}));
    set(&serve, "short", &json!({"ttl": "session"}));
    set(&serve, "secret", &json!({"ttl": "P30D", "sensitivity": "secret"}));
    let record = json!({"kind": "arch", "title": "Queues", "body": "One queue each.", "project": "shop",
        "create_project": true});
    let id = serve.call("nudge.records.upsert", &record)["result"]["record"]["id"].clone();
    let first = read_log(&serve, &json!({}));
    let mut said: Vec<_> = first.iter().map(describe).collect();
    said.sort();
    let hint = |key: &str, fields: &str| format!("hints set {key} [{fields}]");
    assert_eq!(
        said,
        [
            hint("gone", r#""ttl", "value""#),
            hint("stays", r#""reason", "ttl", "value""#),
            format!(r#"records set {id} ["body", "kind", "project", "status", "title"]"#),
        ],
        "what ends with the session and secrets are not logged"
    );
    let find = |log: &[Value], key: &str| log.iter().find(|entry| entry["key"] == key).cloned().unwrap();
    assert_eq!(find(&first, "stays")["object"].as_str().map(str::len), Some(26), "a ULID");

    // A use is no change. A changed field is.
    serve.call("nudge.bump", &json!({"component": "a", "key": "stays", "delta": 3}));
    assert_eq!(read_log(&serve, &json!({})), first);
    let time = first.last().unwrap()["at"].clone();
    set(&serve, "stays", &json!({"reason": "second"}));
    serve.call("nudge.delete_hint", &json!({"component": "a", "key": "gone"}));
    serve.call("nudge.records.upsert", &json!({"id": id, "title": "Queues of mail", "distinct": true}));
    serve.call("nudge.records.delete", &json!({"id": id}));
    let second = read_log(&serve, &json!({"since": time, "limit": 10}));
    let last = |name: &str| second.iter().map(describe).filter(|line| line.contains(name)).collect::<Vec<_>>();
    assert_eq!(last("stays"), [hint("stays", r#""reason""#)]);
    assert_eq!(
        (last("gone"), last("records")),
        (vec!["hints delete gone []".to_owned()], vec![format!("records delete {id} []")])
    );
    assert_eq!(find(&second, "stays")["object"], find(&first, "stays")["object"]);
    assert_eq!(read_log(&serve, &json!({"limit": 1})).len(), 1);

    // The kill comes before the change is kept. The next server logs it, and the object stays the same.
    set(&serve, "stays", &json!({"reason": "third"}));
    kill(serve);
    let serve = user.serve("run");
    assert_eq!(get(&serve, "stays")["meta"]["reason"], "third");
    let third = read_log(&serve, &json!({}));
    assert_eq!(third.len(), 3);
    assert_eq!(find(&third, "stays")["object"], find(&first, "stays")["object"]);
    assert!(third.last() == Some(&find(&third, "stays")), "the last change: {third:?}");

    for params in [json!({"since": "yesterday"}), json!({"limit": 0}), json!({"limit": 1001}), json!({"more": 1})] {
        assert_eq!(serve.call("nudge.change_log", &params)["error"]["data"]["reason"], "E_INVALID", "{params}");
    }
    serve.close();
}

#[test]
fn an_author_is_the_client_that_made_the_change_and_watch_shows_it() {
    let user = User::new();
    let serve = user.serve("run");
    let ran = |args: &[&str]| {
        let out = crate::kit::system::nudge(&serve.runtime, args).output().unwrap();
        assert!(out.status.success(), "{out:?}");
    };
    ran(&["set", "a", "k", "x"]);
    // A use by somebody else changes no author.
    serve.call("nudge.bump", &json!({"component": "a", "key": "k"}));
    let log = read_log(&serve, &json!({}));
    let by: Vec<_> = log.iter().map(|entry| (entry["key"].clone(), entry["by"].clone())).collect();
    assert_eq!(by, [(json!("k"), json!(concat!("nudge-cli/", env!("CARGO_PKG_VERSION"))))]);
    for (since, first) in [("1h", "a/k  source,ttl,value"), ("2100-01-01T00:00:00Z", "api/later v1")] {
        let mut watch = crate::kit::system::nudge(&serve.runtime, &["watch", "--since", since]);
        let mut watch = watch.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        // A later change is shown after those of the log. It is repeated, because the command may not watch yet.
        let (ended, runtime) = (Arc::new(AtomicBool::new(false)), serve.runtime.clone());
        let changing = {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    let set = ["set", "api", "later", "x", "--ttl", "session"];
                    assert!(crate::kit::system::nudge(&runtime, &set).output().unwrap().status.success());
                }
            })
        };
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(first) || first.ends_with("v1") && line.contains("api/later v"), "{since}: {line}");
        ended.store(true, Ordering::Relaxed);
        watch.kill().unwrap();
        watch.wait().unwrap();
        changing.join().unwrap();
    }
    serve.close();
}
