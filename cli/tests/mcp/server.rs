//! Tests the start and end of a server, JSON-RPC and MCP with real processes.

use crate::kit;

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kit::{PATIENCE, Serve, command, home, run_to_end};
use nudge::{ErrorKind, Service};
use nudge_client::{RemoteServer, RuntimeDir};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

const META: &str = "io.modelcontextprotocol";

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        format!("{META}/protocolVersion"): "2026-07-28",
        format!("{META}/clientCapabilities"): {},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Runs a second server that must refuse to start; returns its error output.
fn refused_start(runtime: &Path) -> String {
    let output = run_to_end(command(runtime));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty());
    stderr
}

#[test]
fn a_killed_server_is_replaced_at_once() {
    let home = home();
    let runtime = home.path().join("run");
    let mut first = Serve::start(&runtime);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(runtime.join("server.pid").exists(), "nobody tidied up");
    let begun = Instant::now();
    let second = Serve::start(&runtime);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_ne!(second.token(), first.token());
}

#[test]
fn a_stopped_holder_of_the_lock_is_told_of() {
    let home = home();
    let runtime = home.path().join("run");
    let dir = RuntimeDir::create(Some(&runtime)).unwrap();
    let lock = dir.try_lock().unwrap().unwrap();
    let begun = Instant::now();
    let said = refused_start(&runtime);
    assert!(said.contains("does not answer"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(lock);
    Serve::start(&runtime).close();
}

#[cfg(unix)]
#[test]
fn a_runtime_directory_that_is_not_ours_alone_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let home = home();
    let real = home.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refused_start(&real).contains("chmod 700"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).unwrap();

    let link = home.path().join("link");
    symlink(&real, &link).unwrap();
    assert!(refused_start(&link).contains("not a real directory"));
    assert!(refused_start(&link.join("")).contains("not a real directory"));
    let file = home.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(refused_start(&file).contains("not a real directory"));
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0, "nothing was written through the link");
    fs::remove_dir(&real).unwrap();
    assert!(refused_start(&link).contains("not a real directory"), "a dangling link is a link");

    // The server follows no link in the place of its lock file.
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&file, real.join("primary.lock")).unwrap();
    assert!(refused_start(&real).contains("primary.lock"));
}

#[test]
fn a_taken_port_gives_way_to_the_next() {
    let home = home();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let runtime = home.path().join("run");
    let mut command = command(&runtime);
    command.args(["--port", &port.to_string()]);
    let serve = Serve::spawn(command, &runtime);
    assert!((port + 1..=port + 20).contains(&serve.file.port), "{} after {port}", serve.file.port);
    serve.close();
}

#[cfg(unix)]
#[test]
fn signals_end_it_cleanly() {
    let home = home();
    for signal in ["-TERM", "-INT"] {
        let mut serve = Serve::start(&home.path().join("run"));
        assert!(Command::new("kill").args([signal, &serve.file.pid.to_string()]).status().unwrap().success());
        assert!(serve.end(Duration::from_secs(1)).success(), "{signal}");
        assert!(!serve.runtime.join("server.pid").exists());
    }
}

#[test]
fn shutdown_replies_and_ends_within_half_a_second() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    // An idle open connection must not delay the end of the server.
    let _idle = serve.connect();
    let begun = Instant::now();
    assert_eq!(serve.call("nudge.shutdown", &json!({}))["result"], json!({"stopping": true}));
    assert!(serve.end(PATIENCE).success());
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}

#[test]
fn batches_notifications_and_ids() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let answer = |body: &str| {
        let response = serve.post(body);
        (response.status, serde_json::from_str::<Value>(&response.body).ok(), response.body)
    };
    for id in ["1", "1.50", "\"a\\u0062\"", "null", "-0", "12345678901234567890123"] {
        let (status, _, text) = answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"nudge.status"}}"#));
        assert!(status == 200 && text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)), "{text}");
    }
    for id in ["[]", "{}", "true"] {
        let (_, value, _) = answer(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"nudge.status"}}"#));
        let value = value.unwrap();
        assert_eq!((&value["error"]["code"], &value["id"]), (&json!(-32600), &Value::Null));
    }
    let notification =
        r#"{"jsonrpc":"2.0","method":"nudge.set_hint","params":{"component":"a","key":"b","value":"c"}}"#;
    assert_eq!(answer(notification), (202, None, String::new()));
    assert_eq!(answer(&format!("[{notification},{notification}]")), (202, None, String::new()));
    assert_eq!(serve.call("nudge.get_hint", &json!({"component": "a", "key": "b"}))["result"]["hint"]["version"], 3);

    let (_, value, _) = answer("[]");
    assert_eq!(value.unwrap()["error"]["code"], -32600);
    let (_, value, _) = answer(&format!(
        r#"[1,{notification},{{"jsonrpc":"2.0","id":"x","method":"nudge.nope"}},{{"jsonrpc":"1.0","id":4,"method":"nudge.status"}},{{"jsonrpc":"2.0","id":5,"method":"nudge.status","params":[]}},{{"id":6}}]"#
    ));
    let value = value.unwrap();
    let codes: Vec<_> = value
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| (answer["id"].clone(), answer["error"]["code"].clone()))
        .collect();
    let expected =
        [(Value::Null, -32600), (json!("x"), -32601), (json!(4), -32600), (json!(5), -32602), (json!(6), -32600)];
    assert_eq!(codes, expected.map(|(id, code)| (id, json!(code))));
    let waits = r#"[{"jsonrpc":"2.0","id":8,"method":"nudge.changes","params":{"since":0,"wait_s":5}}]"#;
    assert_eq!(answer(waits).1.unwrap()[0]["error"]["code"], -32600);
    let many = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"nudge.status"}"#; 1001].join(","));
    assert_eq!(answer(&many).1.unwrap()["error"]["code"], -32600);
}

/// The tools of the source `code`, which is in use from the start.
const CODE_TOOLS: [&str; 3] = ["nudge_code_node", "nudge_code_search", "nudge_code_tests"];

/// Returns the number of tools that a new server lists.
fn tools_of_ours() -> usize {
    nudge::methods().into_iter().filter(|method| method.tool).count() + CODE_TOOLS.len()
}

#[test]
fn both_eras_of_mcp() {
    let home = home();
    let runtime = home.path().join("run");
    for version in ["2025-06-18", "2025-11-25"] {
        let mut serve = Serve::start(&runtime);
        let hello = serve.initialize(version);
        assert_eq!(hello["result"]["protocolVersion"], version);
        assert_eq!(hello["result"]["serverInfo"]["name"], "nudge");
        let tools = serve.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), tools_of_ours());
        serve.close();
    }
    let mut serve = Serve::start(&runtime);
    let found = serve.ask(&modern(1, "server/discover", json!({})));
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    assert!(found["result"]["instructions"].as_str().unwrap().len() < 2048);
    let tools = serve.ask(&modern(2, "tools/list", json!({})));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), tools_of_ours());
    let set = json!({"name": "nudge_set_hint", "arguments": {"component": "a", "key": "b", "value": "c"}});
    let set = serve.ask(&modern(3, "tools/call", set));
    assert_eq!(set["result"]["structuredContent"]["hint"]["value"], "c", "{set}");
    assert_eq!(set["result"]["resultType"], "complete");
    serve.close();

    // Connects a client that only discovers, a client that sends nothing, and a client whose first message is a
    // notification.
    let mut serve = Serve::start(&runtime);
    serve.ask(&modern(1, "server/discover", json!({})));
    serve.close();
    Serve::start(&runtime).close();
    let mut serve = Serve::start(&runtime);
    serve.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    serve.initialize("2025-11-25");
    serve.close();
}

/// Promise (server): The server lists the tools of all sources in at most 16,000 bytes: 7,500 for the hints, 600 for
/// `nudge_recall`.
#[test]
fn tools_are_small_complete_and_stable() {
    let home = home();
    let runtime = home.path().join("run");
    let list = || {
        let mut serve = Serve::start(&runtime);
        serve.initialize("2025-11-25");
        serve.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let line = serve.lines.recv_timeout(PATIENCE).unwrap();
        serve.close();
        line
    };
    let line = list();
    assert!(line.len() <= 16_000, "{} bytes", line.len());
    assert_eq!(line, list());
    let answer: Value = serde_json::from_str(&line).unwrap();
    let mut names = BTreeSet::new();
    let (mut hint_bytes, mut recall_bytes, mut code_bytes) = (0, 0, 0);
    for tool in answer["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(name.starts_with("nudge_") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        assert!(tool["title"].is_string() && tool["description"].is_string(), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint"];
        assert!(hints.iter().all(|hint| tool["annotations"][hint].is_boolean()), "{name}");
        assert_eq!(tool["annotations"]["openWorldHint"], false, "{name}");
        let always = ["nudge_get_hint", "nudge_query", "nudge_set_hint", "nudge_bump"].contains(&name);
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"] == true, always, "{name}");
        let bytes = tool.to_string().len();
        *(match name {
            "nudge_recall" => &mut recall_bytes,
            name if name.starts_with("nudge_code_") => &mut code_bytes,
            _ => &mut hint_bytes,
        }) += bytes;
        names.insert(name.to_owned());
    }
    let all = (hint_bytes, recall_bytes, code_bytes);
    assert!(hint_bytes <= 7_500 && recall_bytes <= 600 && code_bytes <= 2_600, "{all:?} bytes");
    let tools = nudge::methods().into_iter().filter(|method| method.tool).map(nudge::MethodSpec::tool_name);
    assert_eq!(names, tools.chain(CODE_TOOLS.map(str::to_owned)).collect());
}

/// Promise: see `tools_are_small_complete_and_stable`.
#[test]
fn the_tools_of_all_sources_together_are_small() {
    let home = home();
    let runtime = home.path().join("run");
    let mut all = command(&runtime);
    all.env("NUDGE_BRAIN_ROOT", home.path()).env("NUDGE_SIGNALS", "1").env("NUDGE_RECORDS", "1");
    let mut serve = Serve::spawn(all, &runtime);
    serve.initialize("2025-11-25");
    serve.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let line = serve.lines.recv_timeout(PATIENCE).unwrap();
    for source in ["get_hint", "signals_send", "records_search", "code_node", "brain_context"] {
        assert!(line.contains(&format!("nudge_{source}")), "{source}");
    }
    assert!(line.len() <= 16_000, "{} bytes", line.len());
    // A model does not see the param `hops`, but the server accepts it.
    assert!(!line.contains("x-not-for-models") && !line.contains("\"hops\""));
    let asked = json!({"task_description": "deploy the router", "hops": 1});
    assert_eq!(serve.tool("nudge_brain_context", &asked)["result"]["isError"], false);
}

/// Promise (agents): A coding agent reads the answer of a tool as lines, and never as JSON beside them; a program has
/// the JSON.
#[test]
fn an_agent_reads_lines_and_a_program_has_the_json() {
    let home = home();
    let runtime = home.path().join("run");
    for (client, is_agent) in [("claude-code", true), ("codex-mcp-client", true), ("opencode", true), ("t", false)] {
        let mut serve = Serve::start(&runtime);
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}});
        serve.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        serve.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        let stored = serve.tool("nudge_set_hint", &json!({"component": "a", "key": "b", "value": "c"}));
        let told = serve.tool("nudge_get_hint", &json!({"component": "a", "key": "b"}));
        let exported = serve.tool("nudge_export", &json!({}));
        for (answer, first) in [
            (&stored, "stored a/b, v1, ttl session\napplies everywhere"),
            (&told, "a/b: c\n"),
            (&exported, "{\"payload\":{"),
        ] {
            let result = &answer["result"];
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.starts_with(first), "{client}: {result}");
            assert_eq!(result["structuredContent"].is_object(), !is_agent, "{client}: {result}");
        }
        let refused = serve.tool("nudge_get_hint", &json!({"component": "a", "key": "B"}));
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.starts_with('{'), !is_agent, "{client}: {refused}");
        assert!(text.contains("No such hint is stored") && refused["result"]["isError"] == true, "{client}: {refused}");
        if !is_agent {
            assert_eq!(told["result"]["structuredContent"]["hint"]["value"], "c");
            let text = exported["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), exported["result"]["structuredContent"]);
        }
        serve.close();
    }
}

#[test]
fn tool_calls_carry_exact_json() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    serve.initialize("2025-11-25");
    // The server keeps the order of keys, and detects duplicate keys.
    serve.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nudge.set_hint","arguments":{"component":"a","key":"b","value":{"type":"json","data":{"z":1,"a":2}}}}}"#);
    let line = serve.lines.recv_timeout(PATIENCE).unwrap();
    let (text, structured) = line.split_once("structuredContent").unwrap();
    assert!(text.contains("stored a/b, v1"), "{line}");
    assert!(structured.contains(r#"{"z":1,"a":2}"#), "{line}");
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["result"]["isError"], false);
    let told = serve.tool("nudge_get_hint", &json!({"component": "a", "key": "b"}));
    let text = told["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("a/b: {\"z\":1,\"a\":2} (json)\n"), "{text}");

    serve.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"nudge_set_hint","arguments":{"component":"a","key":"b","value":{"type":"json","data":{"x":1,"x":2}}}}}"#);
    let refused = serve.receive();
    assert_eq!(refused["result"]["isError"], true);
    assert!(refused["result"].get("structuredContent").is_none());
    let error: Value = serde_json::from_str(refused["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(40001), &json!("E_INVALID")));

    assert_eq!(serve.tool("nudge_nope", &json!({}))["error"]["code"], -32602);
    assert_eq!(serve.tool("nudge_shutdown", &json!({}))["error"]["code"], -32602, "shutdown is HTTP's alone");
    assert_eq!(serve.tool("nudge_status", &json!({}))["error"]["code"], -32602);
    let listed = serve.tool("nudge.list_components", &json!({}));
    assert_eq!(listed["result"]["structuredContent"]["components"][0]["name"], "a");
    let prompts = serve.ask(&json!({"jsonrpc": "2.0", "id": 9, "method": "prompts/list"}));
    assert_eq!(prompts["error"]["code"], -32601);
    let odd = serve.ask(&json!({"jsonrpc": "2.0", "id": 10, "method": "tools/call", "params": 5}));
    assert_eq!(odd["error"]["code"], -32600);
    let large = json!({"component": "a", "key": "k", "value": "x".repeat(70_000)});
    assert_eq!(serve.tool("nudge_set_hint", &large)["result"]["isError"], true);
    serve.close();
}

#[test]
fn calls_before_the_end_of_stdin_are_answered() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    serve.initialize("2025-11-25");
    for id in 1..=50 {
        serve.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"nudge_list_components"}}}}"#
        ));
    }
    drop(serve.stdin.take());
    let answered: BTreeSet<_> = (1..=50).map(|_| serve.receive()["id"].as_u64().unwrap()).collect();
    assert_eq!(answered.len(), 50);
    assert!(serve.end(Duration::from_secs(1)).success());
}

#[test]
fn a_remote_is_a_service() {
    let home = home();
    let runtime = home.path().join("run");
    let dir = RuntimeDir::create(Some(&runtime)).unwrap();
    let none = RemoteServer::connect(&dir).unwrap_err();
    assert_eq!(none.message(), "No Nudge server is running; start one with `nudge serve --detach`.");
    let mut first = Serve::start(&runtime);
    let remote = RemoteServer::connect(&dir).unwrap();
    let call = |method: &str, params: Value| remote.call(method, &to_raw_value(&params).unwrap());
    assert!(call("nudge.set_hint", json!({"component": "a", "key": "b", "value": "c"})).is_ok());
    let missing = call("nudge.get_hint", json!({"component": "a", "key": "x"})).unwrap_err();
    assert_eq!((missing.kind(), missing.reason()), (ErrorKind::NotFound, "E_NOT_FOUND"));
    assert_eq!(call("nudge.nope", json!({})).unwrap_err().kind(), ErrorKind::UnknownMethod);
    // Many threads use one client and its connection.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| drop(call("nudge.status", json!({})).unwrap())));
        }
    });
    // The connection ends with the first server. The client then connects to the second server.
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(call("nudge.status", json!({})).unwrap_err().kind(), ErrorKind::Unavailable);
    let mut second = Serve::start(&runtime);
    assert!(call("nudge.status", json!({})).unwrap().get().contains(&format!("\"pid\":{}", second.file.pid)));
    remote.shutdown().unwrap();
    assert!(second.end(Duration::from_secs(1)).success());
    assert_eq!(call("nudge.status", json!({})).unwrap_err().message(), none.message());
}

#[test]
fn debug_hides_the_token() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let shown = format!("{:?}", serve.file);
    assert!(shown.contains("[secret]") && !shown.contains(serve.token()), "{shown}");
}
