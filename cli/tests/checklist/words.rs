//! Tests rows 15 to 17 of the security checklist: which texts Nudge shows, and to whom. `main.rs` lists all rows.

use crate::kit;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;

use kit::system::{Relay, files, nudge};
use kit::{PATIENCE, Serve, command, home, wait_for};
use nudge_client::{RuntimeDir, ServerFile};
use serde_json::{Value, json};

/// Returns true for a character that must not reach a terminal: a control character other than a line feed, or a
/// character that reorders or hides text.
fn steers(c: char) -> bool {
    let hidden = ['\u{ad}', '\u{61c}', '\u{180e}', '\u{feff}'].contains(&c)
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}');
    c != '\n' && (c.is_control() || hidden)
}

/// Runs a command; returns its output and the text of both streams. Asserts that the text has no such character.
fn shown(mut command: Command) -> (Output, String) {
    let output = command.output().unwrap();
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    let bad: String = text.chars().filter(|&c| steers(c)).collect();
    assert!(bad.is_empty(), "{command:?} prints {bad:?} in {text:?}");
    (output, text)
}

/// A hostile text. It writes to the clipboard, sets colours (C0 and C1), rings, deletes a character, changes the
/// direction, and has invisible characters.
const HOSTILE: &str = "\u{1b}]52;c;Y3VybA==\u{7}\u{1b}[31m\u{9b}2J\u{9d}0;t\u{9c}\u{8}\r\t\u{7f}\u{85}\
    \u{202e}\u{2066}\u{200b}\u{200f}\u{feff}\u{ad}\u{2028}\u{2060}\u{e0041}";
/// A hostile text for names: it has only characters that names may contain.
const UNSEEN: &str = "x\u{202e}y\u{200b}\u{2066}\u{feff}\u{e0041}";
/// [`UNSEEN`] as Nudge must show it to people.
const SEEN: &str = r"x\u{202e}y\u{200b}\u{2066}\u{feff}\u{e0041}";

fn set(serve: &Serve, key: &str, value: &Value, meta: &Value) {
    let params = json!({"component": UNSEEN, "key": key, "value": value, "meta": meta});
    let answer = serve.call("nudge.set_hint", &params);
    assert!(answer["result"].is_object(), "{answer}");
}

fn hostile_meta() -> Value {
    json!({"reason": HOSTILE, "tags": [UNSEEN, "plain"], "added_by": HOSTILE, "priority": 9})
}

#[test]
fn row_15_nothing_stored_steers_a_terminal() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let run = |args: &[&str]| shown(nudge(&serve.runtime, args)).1;
    let values = [
        json!(HOSTILE),
        json!(format!("one\n{HOSTILE}\n{HOSTILE}\0")),
        json!({"type": "command", "cmd": HOSTILE}),
        json!({"type": "template", "body": HOSTILE, "format": "mustache", "defaults": {"a": HOSTILE}}),
        json!({"type": "json", "data": {"k": [HOSTILE, {"z": HOSTILE}]}}),
        json!({"type": "path", "abs": format!("/a/{UNSEEN}")}),
    ];
    let keys: Vec<_> = (0..values.len()).map(|index| format!("{UNSEEN}{index}")).collect();
    for (key, value) in keys.iter().zip(&values) {
        set(&serve, key, value, &hostile_meta());
    }
    for key in &keys {
        let text = run(&["get", UNSEEN, key]);
        assert!(text.starts_with("value: ") && text.contains(r"\u{202e}"), "{text}");
        let text = run(&["set", UNSEEN, key, HOSTILE, "--tags", UNSEEN]);
        // Ignores the line about the replaced hint, which shows only a part of the value.
        let (stored, _) = text.split_once("  replaced: ").unwrap_or((&text, ""));
        // The rest of the text has the component, the key and the tag. The line about the start of a session has the
        // component once more.
        assert_eq!(stored.matches(SEEN).count(), 4, "{text}");
    }
    assert_eq!(run(&["query"]).matches(&format!("{SEEN}/")).count(), keys.len());
    assert!(run(&["ls"]).contains(SEEN));
    assert!(run(&["why", UNSEEN, &keys[0]]).contains(r"\u{202e}"));
    for args in [&["query", "--component", UNSEEN, "--all"][..], &["ls", UNSEEN], &["status"]] {
        run(args);
    }
    assert!(run(&["delete", UNSEEN, &keys[0]]).contains(SEEN));
    assert!(run(&["undo"]).contains(SEEN));
}

/// The texts of scopes also appear in reasons, in errors, and in the rows of hints that do not match.
#[test]
fn row_15_nor_do_reasons_and_errors() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let globs = [format!("/{UNSEEN}/**"), "/**".into()];
    let scope = json!({"cwd_glob": globs, "branch": [UNSEEN], "env_match": {"STAGE": [HOSTILE, "x"]}});
    set(&serve, "scoped", &json!("v"), &json!({"scope": scope}));
    for args in [
        &["get", UNSEEN, "scoped"][..],
        &["get", UNSEEN, "scoped", "--branch", UNSEEN],
        &["get", "z\u{202e}\u{200b}", UNSEEN],
    ] {
        let (output, text) = shown(nudge(&serve.runtime, args));
        assert_eq!(output.status.code(), Some(1), "{text}");
    }
    let run = |args: &[&str]| shown(nudge(&serve.runtime, args)).1;
    let all = run(&["query", "--all", "--component", UNSEEN, "--branch", UNSEEN]);
    assert!(all.contains("not here: "), "{all}");
    run(&["why", UNSEEN, "scoped", "--branch", UNSEEN]);
    run(&["--nonsense", HOSTILE]);
    run(&[HOSTILE]);
    let there = ["get", UNSEEN, "scoped", "--branch", UNSEEN, "--cwd", &format!("/{UNSEEN}")];
    let mut fitting = nudge(&serve.runtime, &there);
    fitting.env("STAGE", "x");
    let text = shown(fitting).1;
    assert!(text.contains(&format!("branch={SEEN} allowed")), "{text}");
}

#[test]
fn row_15_nor_do_events_that_are_told_as_they_happen() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let mut watch = nudge(&serve.runtime, &["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let stdout = watch.stdout.take().unwrap();
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });
    let name = "x\u{202e}y\u{200b}";
    let params =
        json!({"component": name, "key": name, "value": "\u{1b}]52;c;\u{7}", "meta": {"added_by": "\u{9b}2J"}});
    // Repeats the change: `nudge watch` does not say when it begins to listen, and reports no earlier change.
    let line = wait_for("a change to be told", PATIENCE, || {
        serve.call("nudge.set_hint", &params);
        lines.try_recv().ok()
    });
    watch.kill().unwrap();
    watch.wait().unwrap();
    assert!(line.contains(r"x\u{202e}y\u{200b}") && !line.contains(steers), "{line:?}");
}

#[test]
fn row_15_programs_get_it_as_it_is() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    set(&serve, "raw", &json!(HOSTILE), &hostile_meta());
    let out = nudge(&serve.runtime, &["--json", "get", UNSEEN, "raw"]).output().unwrap();
    let hint = serde_json::from_slice::<Value>(&out.stdout).unwrap()["hint"].clone();
    assert_eq!((&hint["value"], &hint["component"]), (&json!(HOSTILE), &json!(UNSEEN)));
    assert_eq!((&hint["meta"]["reason"], &hint["meta"]["added_by"]), (&json!(HOSTILE), &json!(HOSTILE)));
    assert!(hint["meta"]["tags"].as_array().unwrap().contains(&json!(UNSEEN)));
    let over_http = serve.call("nudge.get_hint", &json!({"component": UNSEEN, "key": "raw"}));
    assert_eq!(over_http["result"]["hint"], hint);
}

/// Asserts that no output, no answer and no file in the folder contains a text.
fn assert_unknown(text: &str, folder: &Path, said: &[String]) {
    for said in said {
        assert!(!said.contains(text), "{said}");
    }
    for (path, content) in files(folder) {
        assert!(!String::from_utf8_lossy(&content).contains(text), "{}", path.display());
    }
}

/// Asserts that the server's log has its most detailed level.
fn assert_talkative(runtime: &Path) {
    let log = std::fs::read_to_string(runtime.join("server.log")).unwrap();
    assert!(log.contains("DEBUG") && log.contains("nudge.set_hint"), "{log}");
}

#[test]
fn row_16_the_environment_stays_where_it_is() {
    let home = home();
    let runtime = home.path().join("run");
    let canary = format!("canary-{}", "0123456789".repeat(3));
    let mut talkative = command(&runtime);
    talkative.args(["--allow-host", "127.0.0.1"]).env("CANARY_ASKED", &canary).env("CANARY_OTHER", &canary);
    for (name, level) in [
        ("RUST_LOG", "trace"),
        ("NUDGE_LOG", "trace"),
        ("RUST_BACKTRACE", "1"),
        ("DEBUG", "1"),
        ("NUDGE_LOG_LEVEL", "debug"),
    ] {
        talkative.env(name, level);
    }
    talkative.env("STAGE", format!("stage-{canary}"));
    let mut serve = Serve::spawn(talkative, &runtime);
    let mut said = Vec::new();

    // Makes three scopes: one needs a variable to be set, one needs a variable's value, one needs a variable that is
    // not set.
    for (key, scope) in [
        ("needs", json!({"env_required": ["CANARY_ASKED"]})),
        ("matches", json!({"env_match": {"STAGE": ["dev", "prod"]}})),
        ("lacks", json!({"env_required": ["CANARY_ASKED", "NO_SUCH_NAME"]})),
    ] {
        serve.call("nudge.set_hint", &json!({"component": "a", "key": key, "value": "v", "meta": {"scope": scope}}));
    }
    serve.initialize("2025-11-25");
    for key in ["needs", "matches", "lacks", "none"] {
        said.push(serve.tool("nudge_get_hint", &json!({"component": "a", "key": key})).to_string());
        let context = json!({"env": {"STAGE": canary, "CANARY_ASKED": canary, "CANARY_OTHER": canary}});
        let params = json!({"component": "a", "key": key, "context": context});
        said.push(serve.tool("nudge_get_hint", &params).to_string());
        said.push(serve.call("nudge.get_hint", &params).to_string());
    }
    assert!(said[0].contains("env CANARY_ASKED present"), "{}", said[0]);
    assert!(said[3].contains("STAGE"), "{}", said[3]);
    let all = json!({"include_ineligible": true, "context": {"env": {"STAGE": canary}}});
    for method in ["nudge.query", "nudge.env_names", "nudge.status", "nudge.export", "nudge.list_components"] {
        let params = if method == "nudge.query" { all.clone() } else { json!({}) };
        said.push(serve.call(method, &params).to_string());
    }
    said.push(serve.tool("nudge_query", &json!({"include_ineligible": true})).to_string());
    said.push(serve.tool("nudge_export", &json!({})).to_string());

    // A relay in front of the server records what a command with the same environment sends.
    let relay = Relay::to(serve.file.port);
    let between = RuntimeDir::create(Some(&home.path().join("between"))).unwrap();
    let lock = between.try_lock().unwrap().unwrap();
    between.write_server_file(&lock, &ServerFile { port: relay.port, ..serve.file.clone() }).unwrap();
    for args in [
        &["get", "a", "needs"][..],
        &["get", "a", "matches"],
        &["get", "a", "lacks"],
        &["query"],
        &["query", "--all"],
        &["status"],
        &["set", "b", "k", "v"],
        &["call", "nudge.query"],
        &["--json", "query", "--all"],
    ] {
        let mut command = nudge(between.path(), args);
        command.env("CANARY_ASKED", &canary).env("CANARY_OTHER", &canary).env("STAGE", "dev").env("RUST_LOG", "trace");
        let out = command.output().unwrap();
        said.push(String::from_utf8([out.stdout, out.stderr].concat()).unwrap());
    }
    let heard = relay.heard();
    assert!(heard.contains(r#""CANARY_ASKED":"""#) && heard.contains(r#""STAGE":"dev""#), "{heard}");
    assert!(!heard.contains("CANARY_OTHER") && !heard.contains(&canary), "{heard}");

    assert_unknown(&canary, home.path(), &said);
    assert_unknown("CANARY_OTHER", home.path(), &said);
    assert_talkative(&runtime);
    let stderr = serve.close();
    assert_unknown(&canary, home.path(), &[stderr]);
}

/// Makes a text with the form of a credential. The parts are joined at run time, so that this file contains no
/// credential.
fn made_up() -> String {
    ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0", "k1L2m3N4o5P6q7R8"].concat()
}

/// Lists params of `set_hint` that have the text in a wrong field, or in a field that refuses it.
fn wrong_sets(text: &str) -> Vec<Value> {
    let set = |component: &str, key: &str, value: Value, meta: Value| json!({"component": component, "key": key, "value": value, "meta": meta});
    let with = |meta: Value| set("a", "b", json!("x"), meta);
    vec![
        set("a", "b", json!(text), json!({})),
        set(
            "a",
            "b",
            json!({"type": "command", "cmd": format!("curl -H 'Authorization: Bearer {text}' x")}),
            json!({}),
        ),
        set("a", "b", json!({"type": "json", "data": {"token": text}}), json!({})),
        set("a", "b", json!({"type": "json", "data": {text: 1}}), json!({})),
        set("a", "b", json!({"type": "template", "body": "x", "defaults": {"t": text}}), json!({})),
        set("a", "b", json!({"type": text}), json!({})),
        set("a", "b", json!({"type": "command", "cmd": "x", text: 1}), json!({})),
        set("a", "b", json!({"type": "path", "abs": text}), json!({})),
        set(text, "b", json!("x"), json!({})),
        set("a", text, json!("x"), json!({})),
        with(json!({"reason": text})),
        with(json!({"tags": [text]})),
        with(json!({"added_by": text})),
        with(json!({"ttl": text})),
        with(json!({"source": text})),
        with(json!({"sensitivity": text})),
        with(json!({"priority": text})),
        with(json!({"confidence": text})),
        with(json!({text: 1})),
        with(json!(text)),
        with(json!({"scope": {"cwd_glob": [format!("/{text}/**")]}})),
        with(json!({"scope": {"cwd_glob": [format!("{text}/../[")]}})),
        with(json!({"scope": {"branch": [format!("{text}[")]}})),
        with(json!({"scope": {"repo": [format!("https://u:{text}@h/o/r\n")]}})),
        with(json!({"scope": {"os": [text]}})),
        with(json!({"scope": {"env_required": [text]}})),
        with(json!({"scope": {"env_match": {"T": [text]}}})),
        with(json!({"scope": {text: [text]}})),
        with(json!({"scope": text})),
        json!({"component": "a", "key": "b", "value": "x", text: 1}),
        json!({"component": "a", "key": "b", "value": "x", "if_match_version": text}),
        json!({"component": "a", "key": "b", "value": "x", "variant": text}),
    ]
}

/// Lists wrong params for the other methods that contain the text, and a call that has the text as its method.
fn wrong_calls(text: &str) -> Vec<(&str, Value)> {
    vec![
        ("nudge.get_hint", json!({"component": text, "key": text})),
        ("nudge.get_hint", json!({"component": "a", "key": "b", "variant": text})),
        ("nudge.get_hint", json!({"component": "a", "key": "b", "context": {"cwd": text}})),
        ("nudge.get_hint", json!({"component": "a", "key": "b", "context": {"os": text, "repo": text}})),
        ("nudge.get_hint", json!({"component": "a", "key": "b", "context": text})),
        ("nudge.query", json!({"regex": format!("{text}(")})),
        ("nudge.query", json!({"limit": text})),
        ("nudge.query", json!({"keys": {text: 1}})),
        ("nudge.bump", json!({"component": "a", "key": text, "delta": text})),
        ("nudge.delete_hint", json!({"component": text, "key": "b"})),
        ("nudge.export", json!({"format": text})),
        ("nudge.export", json!({"component": text})),
        ("nudge.import", json!({"payload": text})),
        ("nudge.import", json!({"payload": {"schema_version": text, "components": {}}})),
        ("nudge.import", json!({"payload": {"components": {}, text: text}})),
        ("nudge.import", json!({"payload": {"components": {"a": {"hints": {"b": {"value": text}}}}}, "mode": text})),
        (
            "nudge.import",
            json!({"payload": {"components": {"a": {"hints": {"b": {"value": text, "meta": {text: 1}}}}}}}),
        ),
        ("nudge.list_components", json!({text: text})),
        ("nudge.status", json!({text: text})),
        (text, json!({})),
    ]
}

#[test]
fn row_17_a_refused_secret_is_not_echoed() {
    let home = home();
    let runtime = home.path().join("run");
    let mut talkative = command(&runtime);
    talkative.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1").env("NUDGE_LOG_LEVEL", "debug");
    let mut serve = Serve::spawn(talkative, &runtime);
    serve.initialize("2025-11-25");
    let secret = made_up();
    let mut echoed = Vec::new();
    let mut check = |what: String, answer: String| {
        if answer.contains(&secret) {
            echoed.push(format!("{} -> {}", what.replace(&secret, "SECRET"), answer.replace(&secret, "SECRET")));
        }
    };
    let sets = wrong_sets(&secret).into_iter().map(|params| ("nudge.set_hint", params));
    for (method, params) in sets.chain(wrong_calls(&secret)) {
        let answer = serve.call(method, &params);
        check(format!("{method} {params}"), answer.to_string());
        let answer = serve.tool(method, &params);
        check(format!("tool {method} {params}"), answer.to_string());
    }
    for body in [
        secret.clone(),
        format!("{{\"{secret}"),
        format!(r#"{{"jsonrpc":"{secret}","id":1,"method":"x"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"nudge.query","params":"{secret}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":{{"{secret}":1}}}}"#),
        format!(r#"[{{"{secret}":1}}]"#),
    ] {
        check(body.clone(), serve.post(&body).body);
    }
    for head in ["Authorization: Bearer", "X:"] {
        let raw = format!("POST /{secret} HTTP/1.1\r\nHost: {secret}\r\n{head} {secret}\r\nOrigin: {secret}\r\n\r\n");
        check(raw.clone(), serve.raw(raw).body);
    }
    for args in [
        &["set", "a", "b", &secret][..],
        &["--json", "set", "a", "b", &secret],
        &["set", "a", &secret, "x"],
        &["set", &secret, "b", "x"],
        &["set", "a", "b", "x", "--priority", &secret],
        &["set", "a", "b", "x", "--scope-os", &secret],
        &[&secret],
        &["set", "a", "b", "x", "--reason", &secret],
        &["set", "a", "b", "x", "--tags", &secret],
        &["set", "a", "b", "x", "--ttl", &secret],
        &["set", "a", "b", "x", "--scope-branch", &secret],
        &["set", "a", "b", "x", "--variant", &secret],
        &["get", "a", &secret],
        &["query", "--regex", &format!("{secret}(")],
        &["call", "nudge.set_hint", &format!("{{\"{secret}")],
        &["call", &secret],
    ] {
        let out = nudge(&runtime, args).output().unwrap();
        let text = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
        check(args.join(" "), text);
    }
    assert!(echoed.is_empty(), "{} echo it:\n{}", echoed.len(), echoed.join("\n"));
    assert_talkative(&runtime);
    let stderr = serve.close();
    assert_unknown(&secret, home.path(), &[stderr]);
}

#[test]
fn row_17_a_hint_marked_secret_is_not_shown() {
    let home = home();
    let runtime = home.path().join("run");
    let mut talkative = command(&runtime);
    talkative.env("NUDGE_LOG_LEVEL", "debug");
    let mut serve = Serve::spawn(talkative, &runtime);
    serve.initialize("2025-11-25");
    let secret = made_up();
    let run = |args: &[&str]| {
        let (output, text) = shown(nudge(&runtime, args));
        assert!(output.status.success(), "{text}");
        text
    };
    let mut shown = vec![run(&["set", "a", "s", &secret, "--secret"])];
    shown.push(run(&["--json", "set", "a", "s", &secret, "--secret"]));
    let verbs: [&[&str]; 8] = [
        &["get", "a", "s"],
        &["query"],
        &["query", "--all"],
        &["status"],
        &["ls", "a"],
        &["why", "a", "s"],
        &["delete", "a", "s"],
        &["undo"],
    ];
    shown.extend(verbs.map(run));
    shown.push(run(&["--json", "query"]));
    let bump = json!({"component": "a", "key": "s"});
    shown.push(serve.call("nudge.bump", &bump).to_string());
    shown.push(serve.call("nudge.query", &json!({"regex": "gh"})).to_string());
    shown.push(serve.call("nudge.export", &json!({})).to_string());
    shown.push(serve.tool("nudge_query", &json!({})).to_string());
    shown.push(serve.tool("nudge_export", &json!({})).to_string());
    for text in &shown {
        assert!(!text.contains(&secret), "{}", text.replace(&secret, "SECRET"));
    }
    // The server shows the value in full if the caller asks for it.
    assert!(run(&["--json", "get", "a", "s"]).contains(&secret));
    assert!(serve.call("nudge.export", &json!({"include_secrets": true})).to_string().contains(&secret));
    let deleted = serve.call("nudge.delete_hint", &bump).to_string();
    assert!(deleted.contains("[secret]") && !deleted.contains(&secret));
    assert_talkative(&runtime);
    let stderr = serve.close();
    assert_unknown(&secret, &runtime, &[stderr]);
}
