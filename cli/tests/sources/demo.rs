//! Tests the promises of `nudge_core::source` with a source besides the hints, `tests/demo`, through every surface.
#![cfg(unix)]

use crate::kit;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kit::{PATIENCE, Serve, command, home, wait_for, with_demo};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A session. Its servers may have the demo source.
struct Desk {
    _home: TempDir,
    runtime: PathBuf,
    data: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let home = home();
        let (runtime, data) = (home.path().join("run"), home.path().join("data"));
        Self { _home: home, runtime, data }
    }

    /// Starts a server, which becomes PRIMARY.
    fn primary(&self) -> Serve {
        Serve::spawn(with_demo(&self.runtime, &self.data, &["serve", "--port", "0"]), &self.runtime)
    }

    /// Starts a PROXY for another agent, with or without the demo source.
    fn proxy(&self, has_demo: bool) -> Serve {
        let command = if has_demo { with_demo(&self.runtime, &self.data, &["serve"]) } else { command(&self.runtime) };
        Serve::stand_by(command, &self.runtime)
    }

    /// Returns the first line of `nudge watch` with these flags. Repeats `command` until that line appears, because
    /// `nudge watch` reports no change from before it listens.
    fn first_watched(&self, flags: &[&str], command: &[&str]) -> String {
        let args = [&["watch"], flags].concat();
        let mut watch = with_demo(&self.runtime, &self.data, &args).stdin(Stdio::null()).spawn().unwrap();
        let stdout = BufReader::new(watch.stdout.take().unwrap());
        let (tell, told) = mpsc::channel();
        let reader = thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let first = wait_for("a change", PATIENCE, || {
            self.run(command);
            told.recv_timeout(Duration::from_millis(50)).ok()
        });
        watch.kill().unwrap();
        watch.wait().unwrap();
        drop(told);
        let _ = reader.join().unwrap();
        first
    }

    /// Runs a command; returns its stdout. Asserts that it succeeds.
    fn run(&self, args: &[&str]) -> String {
        let output = with_demo(&self.runtime, &self.data, args).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn tools(serve: &mut Serve) -> Vec<String> {
    let listed = serve.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn has_demo(tools: &[String]) -> bool {
    tools.iter().any(|tool| tool == "nudge_demo_add")
}

/// Promise (server): A proxy lists and forwards all methods of its primary, even unknown ones. It lists the tools of
/// a source once the source is in use.
#[test]
fn it_is_served_at_a_primary_and_at_a_proxy_and_listed_once_in_use() {
    let desk = Desk::new();
    let mut primary = desk.primary();
    let hello = primary.initialize("2025-11-25");
    assert!(!hello["result"]["instructions"].as_str().unwrap().contains("demo"), "{hello}");
    assert!(!has_demo(&tools(&mut primary)), "it has nothing yet");
    // A client cannot call a tool that is not listed, but it can call the method.
    assert_eq!(primary.tool("nudge_demo_add", &json!({"name": "a", "text": "x"}))["error"]["code"], -32602);
    let added = primary.call("nudge.demo.add", &json!({"name": "a", "text": "one"}));
    assert_eq!(added["result"]["count"], 1, "{added}");
    assert!(has_demo(&tools(&mut primary)));
    let told = primary.tool("nudge_demo_get", &json!({"name": "a"}));
    assert_eq!(told["result"]["structuredContent"]["text"], "one", "{told}");

    // Starts a PROXY whose binary has the source, and then a PROXY whose binary lacks it.
    for knows in [true, false] {
        let mut proxy = desk.proxy(knows);
        let listed = tools(&mut proxy);
        assert!(has_demo(&listed), "{listed:?}");
        let name = format!("by {knows}");
        let added = proxy.tool("nudge_demo_add", &json!({"name": name, "text": "two"}));
        assert_eq!(added["result"]["structuredContent"]["note"]["name"], name, "{added}");
        let told = proxy.tool("nudge.demo.get", &json!({"name": name}));
        assert_eq!(told["result"]["structuredContent"]["text"], "two", "{told}");
        let refused = proxy.tool("nudge_demo_get", &json!({"name": "b"}));
        let error: Value = serde_json::from_str(refused["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!((&refused["result"]["isError"], &error["code"]), (&json!(true), &json!(40401)));
    }
    let refused = primary.call("nudge.demo.add", &json!({"name": "a", "text": 5}));
    assert_eq!(refused["error"]["data"]["reason"], "E_INVALID", "{refused}");
    assert_eq!(primary.call("nudge.demo.other", &json!({}))["error"]["code"], -32601);
}

#[test]
fn agents_are_told_when_a_source_comes_into_use() {
    let desk = Desk::new();
    let mut primary = desk.primary();
    primary.initialize("2025-11-25");
    let mut proxy = desk.proxy(true);
    assert!(!has_demo(&tools(&mut primary)) && !has_demo(&tools(&mut proxy)));
    // Waits for the first tick, which notes the sources that are in use.
    wait_for("a tick", PATIENCE, || {
        let status = primary.call("nudge.status", &json!({}));
        (status["result"]["demo"]["ticks"].as_u64()? > 0).then_some(())
    });
    desk.run(&["demo", "add", "a", "one"]);
    for agent in [&mut primary, &mut proxy] {
        wait_for("the news", PATIENCE, || {
            (agent.receive()["method"] == "notifications/tools/list_changed").then_some(())
        });
        assert!(has_demo(&tools(agent)));
    }
}

#[test]
fn a_source_that_cannot_be_opened_takes_no_other_down() {
    let desk = Desk::new();
    std::fs::write(&desk.data, "a file where the folder should be").unwrap();
    let primary = desk.primary();
    let set = primary.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "v"}));
    assert_eq!(set["result"]["hint"]["version"], 1, "{set}");
    let refused = primary.call("nudge.demo.list", &json!({}));
    assert_eq!(refused["error"]["data"]["reason"], "E_UNAVAILABLE", "{refused}");
    let status = primary.call("nudge.status", &json!({}))["result"].clone();
    assert_eq!(status["demo"]["error"], refused["error"]["message"], "{status}");
    assert_eq!(status["hints"], 1);
}

/// Promise (server): Clients are told after a promotion that the tools are those of the new primary.
#[test]
fn after_a_promotion_the_tools_are_those_of_the_new_primary() {
    let desk = Desk::new();
    let mut plain = Serve::start(&desk.runtime);
    let mut proxy = desk.proxy(true);
    assert!(!has_demo(&tools(&mut proxy)), "the PRIMARY does not have it");
    assert_eq!(plain.call("nudge.demo.list", &json!({}))["error"]["code"], -32601);
    // Writes a note as an earlier session would. The source is then in use as soon as it opens.
    nudge_core::source::DataDir::new(&desk.data).create_folder().unwrap();
    std::fs::write(desk.data.join("demo.jsonl"), "{\"note\":{\"name\":\"old\",\"text\":\"kept\"}}\n").unwrap();
    plain.child.kill().unwrap();
    // The client of the PROXY is notified of a new list of tools.
    wait_for("the news", PATIENCE, || {
        let heard = proxy.receive();
        (heard["method"] == "notifications/tools/list_changed").then_some(())
    });
    assert!(has_demo(&tools(&mut proxy)));
    let told = proxy.tool("nudge_demo_get", &json!({"name": "old"}));
    assert_eq!(told["result"]["structuredContent"]["text"], "kept", "{told}");
}

/// Promise: see `a_call_with_a_key_is_made_once`.
#[test]
fn a_call_with_a_key_is_made_once_across_the_death_of_the_primary() {
    let desk = Desk::new();
    let mut primary = desk.primary();
    let proxy = desk.proxy(true);
    let add = |serve: &Serve, text: &str| {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "nudge.demo.add", "params": {"name": "a", "text": text}});
        let body = body.to_string();
        let head = format!("{}Idempotency-Key: k1\r\nContent-Length: {}\r\n\r\n", serve.head(), body.len());
        serde_json::from_str::<Value>(&serve.raw(format!("{head}{body}")).body).unwrap()
    };
    let first = add(&primary, "one");
    assert_eq!(first["result"]["note"]["text"], "one", "{first}");
    // Another caller changes the note before the repeated call.
    primary.call("nudge.demo.add", &json!({"name": "a", "text": "newer"}));
    primary.child.kill().unwrap();
    primary.child.wait().unwrap();
    let dir = nudge_client::RuntimeDir::open(Some(&desk.runtime)).unwrap();
    let pid = proxy.child.id();
    let file = wait_for("the new PRIMARY", PATIENCE, || dir.read_server_file().filter(|file| file.pid == pid));
    let mut proxy = proxy;
    proxy.file = file;
    assert_eq!(add(&proxy, "one"), first, "the result of the call that was made");
    assert_eq!(add(&proxy, "other")["error"]["data"]["reason"], "E_INVALID", "the key was another call's");
    assert_eq!(proxy.call("nudge.demo.get", &json!({"name": "a"}))["result"]["text"], "newer", "it was not made again");
}

/// Promise: see `a_primary_without_its_lock_acknowledges_nothing`.
#[test]
fn a_primary_without_its_lock_acknowledges_nothing_of_any_source() {
    let desk = Desk::new();
    let primary = desk.primary();
    primary.call("nudge.demo.add", &json!({"name": "a", "text": "one"}));
    std::fs::remove_file(desk.runtime.join("primary.lock")).unwrap();
    // Takes the lock before this PRIMARY restores the lock's file.
    let _next = nudge_client::RuntimeDir::open(Some(&desk.runtime)).unwrap().try_lock().unwrap().unwrap();
    let refused = primary.call("nudge.demo.add", &json!({"name": "b", "text": "two"}));
    assert_eq!(refused["error"]["data"]["reason"], "E_UNAVAILABLE", "{refused}");
    let kept = std::fs::read_to_string(desk.data.join("demo.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1, "{kept}");
}

/// Promise: see `a_git_that_hangs_holds_up_no_other_caller`.
#[test]
fn a_slow_call_holds_up_no_other_call() {
    let desk = Desk::new();
    let mut primary = desk.primary();
    primary.initialize("2025-11-25");
    primary.call("nudge.demo.add", &json!({"name": "a", "text": "one"}));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.demo.wait","params":{}}"#;
    let request = format!("{}Content-Length: {}\r\n\r\n{body}", primary.head(), body.len());
    let slow = (0..4).map(|_| {
        let mut stream = primary.connect();
        stream.write_all(request.as_bytes()).unwrap();
        std::thread::spawn(move || kit::Response::read(&mut stream).body)
    });
    let slow: Vec<_> = slow.collect();
    let mut quick = 0;
    while slow.iter().any(|call| !call.is_finished()) {
        assert_eq!(primary.call("nudge.demo.get", &json!({"name": "a"}))["result"]["text"], "one");
        quick += 1;
    }
    for call in slow {
        assert!(call.join().unwrap().contains("\"waited_ms\":300"));
    }
    // If the slow calls ran on the event loop, they would run one after another, and no other caller would get an
    // answer meanwhile.
    assert!(quick > 20, "{quick} quick calls beside them");
}

/// Promise (sources): One hook and one recall return hints and items of another source together.
#[test]
fn its_offers_come_out_of_the_hook_beside_hints() {
    let desk = Desk::new();
    let _primary = desk.primary();
    desk.run(&["set", "api", "build", "make api", "--tags", "build"]);
    desk.run(&["demo", "add", "alpha", "the api needs node 20", "--tags", "build"]);
    let says = |event: &Value, bytes: &str| {
        let mut hook = with_demo(&desk.runtime, &desk.data, &["hook"]);
        let mut child = hook.env("NUDGE_HOOK_BYTES", bytes).env("NUDGE_HOOK_MS", "5000").spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
    };
    let event = |session: &str| json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": "/", "prompt": "how do I build the api?"});
    let said = says(&event("s1"), "2000");
    assert!(
        said.contains("- api/build: make api (now, ") && said.contains("- note alpha: the api needs node 20"),
        "{said}"
    );
    assert_eq!(says(&event("s1"), "2000"), "", "a session is told once");
    // An urgent note comes before everything else, also within a small limit of bytes.
    desk.run(&["demo", "add", "stop", "the build of the api is broken, stop", "--urgent"]);
    let said = says(&event("s2"), "400");
    assert!(said.len() <= 400, "{} bytes", said.len());
    let lines: Vec<_> = said.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(lines[0].starts_with("- note stop: the build of the api is broken"), "{said}");
    // The outcome of a suggested command is counted for the client session.
    desk.run(&["call", "outcome", r#"{"command":"make api","ok":true,"client_session":"s1"}"#]);
    let stats: Value = serde_json::from_str(&desk.run(&["call", "stats"])).unwrap();
    assert_eq!(stats["followed"], 1, "{stats}");
}

/// Promise: see `its_offers_come_out_of_the_hook_beside_hints`.
#[test]
fn it_is_recalled_beside_hints() {
    let desk = Desk::new();
    let _primary = desk.primary();
    desk.run(&["set", "api", "build", "make api"]);
    desk.run(&["demo", "add", "alpha", "the api needs node 20"]);
    // Repeats the recall: on a busy machine a source may be late, and the answer then says so.
    let recall = |words: &[&str]| {
        let said = || Some(desk.run(words)).filter(|said| !said.contains("in time") && !said.contains("\"late\""));
        wait_for("an answer in time", PATIENCE, said)
    };
    let said = recall(&["recall", "what", "does", "the", "api", "need"]);
    assert!(said.contains("note alpha: the api needs node 20") && said.contains("api/build: make api"), "{said}");
    let only = recall(&["recall", "api", "--sources", "demo", "--json"]);
    let only: Value = serde_json::from_str(&only).unwrap();
    assert_eq!(only["items"].as_array().unwrap().len(), 1, "{only}");
    let item = &only["items"][0];
    assert_eq!((&item["source"], &item["name"]), (&json!("demo"), &json!("alpha")));
    assert_eq!(item["more"], json!({"method": "nudge.demo.get", "params": {"name": "alpha"}}));
    assert_eq!(item["match_explain"]["parts"], json!({"note": 0.5, "word": 0.1}));
    let refused = with_demo(&desk.runtime, &desk.data, &["recall", "api", "--sources", "nothing"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn its_refusals_speak_of_its_verbs_and_arguments() {
    let desk = Desk::new();
    let _primary = desk.primary();
    for (args, told) in [
        (&["demo", "add", "", "x"][..], "nudge: `NAME` must have 1 character or more, and no control characters.\n"),
        (&["demo", "get", "nothing"], "nudge: There is no such note; `nudge demo list` tells what there is.\n"),
    ] {
        let refused = with_demo(&desk.runtime, &desk.data, args).output().unwrap();
        assert_eq!((&*String::from_utf8(refused.stderr).unwrap(), refused.stdout.len()), (told, 0));
    }
}

#[test]
fn its_changes_are_watched_and_its_resources_are_read() {
    let desk = Desk::new();
    let mut primary = desk.primary();
    primary.initialize("2025-11-25");
    let json = desk.first_watched(&["--json"], &["demo", "add", "a", "one"]);
    let heard: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&heard["source"], &heard["name"]), (&json!("demo"), &json!("a")), "{heard}");
    let line = desk.first_watched(&[], &["demo", "add", "b", "one"]);
    assert!(line.contains("  demo b  ("), "{line}");

    let mut ask = |method: &str, params: Value| {
        primary.send(&json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}).to_string());
        // Skips the notifications before the answer.
        let answer = wait_for("the answer", PATIENCE, || Some(primary.receive()).filter(|answer| answer["id"] == 5));
        answer["result"].clone()
    };
    let listed = ask("resources/list", json!({}));
    let uris: Vec<_> =
        listed["resources"].as_array().unwrap().iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["nudge://components", "nudge://examples", "nudge://demo", "nudge://demo/a", "nudge://demo/b"]);
    let read = ask("resources/read", json!({"uri": "nudge://demo/a"}));
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("\"text\":\"one\""), "{read}");
    ask("resources/subscribe", json!({"uri": "nudge://demo/a"}));
    desk.run(&["demo", "add", "a", "two"]);
    let updated = wait_for("the update", PATIENCE, || {
        Some(primary.receive()).filter(|heard| heard["method"] == "notifications/resources/updated")
    });
    assert_eq!(updated["params"]["uri"], "nudge://demo/a");
}

#[test]
fn it_works_ticks_and_ends_and_its_settings_are_listed() {
    let desk = Desk::new();
    let primary = desk.primary();
    let demo = |serve: &Serve| serve.call("nudge.status", &json!({}))["result"]["demo"].clone();
    wait_for("its work", PATIENCE, || (demo(&primary)["rounds"].as_u64()? > 1).then_some(()));
    wait_for("a tick", PATIENCE, || (demo(&primary)["ticks"].as_u64()? > 0).then_some(()));
    let config = desk.run(&["config"]);
    assert!(config.lines().any(|line| line.starts_with("demo.max ") && line.contains("1000")), "{config}");
    primary.close();

    let mut few = with_demo(&desk.runtime, &desk.data, &["serve", "--port", "0", "--demo-max", "1"]);
    few.env("NUDGE_DEMO_MAX", "7");
    let primary = Serve::spawn(few, &desk.runtime);
    primary.call("nudge.demo.add", &json!({"name": "a", "text": "one"}));
    let refused = primary.call("nudge.demo.add", &json!({"name": "b", "text": "two"}));
    assert_eq!(refused["error"]["data"]["max"], 1, "{refused}");
    let secret = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
    let refused = primary.call("nudge.demo.add", &json!({"name": "a", "text": secret}));
    let data = &refused["error"]["data"];
    assert_eq!([&data["reason"], &data["path"], &data["field"]], ["E_SECRET_REJECTED", "text", "text"], "{data}");
    assert!(!refused.to_string().contains(&secret), "{refused}");
}

#[test]
fn endless_calls_of_one_agent_leave_every_other_caller_as_it_was() {
    const CALLS: u64 = 560;
    /// The most unanswered calls of a PROXY: 8 that run and 64 that wait.
    const UNDER_WAY: u64 = 8 + 64;
    let desk = Desk::new();
    let primary = desk.primary();
    primary.call("nudge.demo.add", &json!({"name": "a", "text": "one"}));
    let mut greedy = desk.proxy(true);
    greedy.initialize("2025-11-25");
    for id in 100..100 + CALLS {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "nudge_demo_hang", "arguments": {}}});
        greedy.send(&call.to_string());
    }
    let mut refused = 0;
    while refused < CALLS - UNDER_WAY {
        let told = greedy.receive().to_string();
        refused += u64::from(told.contains("waiting already"));
    }
    // Calls still work for another agent, over TCP, by commands, and for the status.
    let mut other = desk.proxy(true);
    assert!(has_demo(&tools(&mut other)));
    assert_eq!(other.tool("nudge_demo_get", &json!({"name": "a"}))["result"]["structuredContent"]["text"], "one");
    assert_eq!(primary.call("nudge.demo.wait", &json!({}))["result"]["waited_ms"], 300);
    assert_eq!(primary.call("nudge.status", &json!({}))["result"]["demo"]["notes"], 1);
    desk.run(&["demo", "add", "b", "two"]);
    desk.run(&["status"]);
    desk.run(&["stop"]);
}
