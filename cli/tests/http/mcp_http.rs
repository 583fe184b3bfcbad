//! Tests MCP over streamable HTTP with the protocols of 2025 and 2026.

use crate::kit;

use std::time::{Duration, Instant};

use kit::mcp::{Client, Http, MODERN, request, set};
use kit::{Incoming, PATIENCE, Serve, home, wait_for};
use serde_json::{Value, json};

#[test]
fn both_eras() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let hints = nudge::methods().into_iter().filter(|method| method.tool).count();
    for mut client in [Http::legacy(&serve), Http::modern(&serve)] {
        let tools = client.result("tools/list", json!({}))["tools"].clone();
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        // The list also has the tools of the sources that are in use from the start, which is only `code`.
        let code = ["nudge_code_search", "nudge_code_node", "nudge_code_tests"];
        assert_eq!((names.len() - code.len(), &names[hints..]), (hints, &code[..]), "{names:?}");
        let arguments = json!({"component": "a", "key": "b", "value": "c"});
        let set = client.result("tools/call", json!({"name": "nudge_set_hint", "arguments": arguments}));
        assert_eq!(set["structuredContent"]["hint"]["value"], "c", "{set}");
        assert_eq!(set["isError"], false);
        for (method, params) in [
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "x"})),
            ("logging/setLevel", json!({"level": "info"})),
        ] {
            let error = client.ask(method, params)["error"].clone();
            assert_eq!(error["code"], -32601, "{method}");
            assert!(
                error["message"].as_str().unwrap().starts_with("There is no such method here; "),
                "{method} {error}"
            );
        }
        let unknown = client.ask("tools/call", json!({"name": "nudge_shutdown", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    let found = Http::modern(&serve).result("server/discover", json!({}));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)));
    let resources = json!({"subscribe": true, "listChanged": true});
    assert_eq!(
        found["capabilities"],
        json!({"tools": {"listChanged": true}, "resources": resources, "completions": {}})
    );
}

#[test]
fn sessions_end() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let mut client = Http::legacy(&serve);
    let mut stream = client.get();
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(client.delete(), 202);
    assert_eq!(stream.message(), None, "the stream ends with its session");
    let mut gone = client.post(&request(false, 1, "tools/list", json!({})));
    assert_eq!(gone.status, 404);
    let error = gone.message().unwrap();
    assert_eq!(error["error"]["data"]["reason"], "E_NO_SUCH_SESSION", "{error}");
    assert_eq!(error["error"]["message"], "There is no such MCP session any more; send initialize again.");
    assert_eq!(client.get().status, 404);
    client.session = None;
    let mut none = client.post(&request(false, 1, "tools/list", json!({})));
    let error = none.message().unwrap()["error"].clone();
    assert_eq!((none.status, &error["code"]), (400, &json!(40000)));
    assert!(
        error["message"].as_str().unwrap().starts_with("Send initialize first, then its Mcp-Session-Id"),
        "{error}"
    );

    // With one session too many, the server ends the session that was unused for longest.
    let mut first = Http::legacy(&serve);
    let second = Http::legacy(&serve);
    first.result("tools/list", json!({}));
    let others: Vec<_> = (2..=128).map(|_| Http::legacy(&serve)).collect();
    assert_eq!(others.len(), 127);
    assert_eq!(second.get().status, 404);
    first.result("tools/list", json!({}));
}

#[test]
fn the_door_stands_before_it() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let list = request(true, 1, "tools/list", json!({}));
    let client = Http::modern(&serve);
    let good = client.headers(&list);
    assert_eq!(client.post(&list).status, 200);
    let refused = |line: &str, headers: &[String], status: u16| {
        let body = if line.starts_with("POST") { list.to_string() } else { String::new() };
        let mut answer = Incoming::request(&serve, line, headers, &body);
        assert_eq!(answer.status, status, "{line} {headers:?}");
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
        assert!(answer.message().unwrap()["error"]["data"]["reason"].is_string());
        answer.head
    };
    for line in ["POST /mcp", "GET /mcp", "DELETE /mcp"] {
        let with = |index: usize, header: &str| {
            let mut headers = good.clone();
            headers[index] = header.to_owned();
            headers
        };
        refused(line, &with(0, "Host: evil.example"), 403);
        refused(line, &with(1, "Authorization: Bearer nonsense"), 401);
        for page in ["Origin: http://localhost:3000", "Origin: null", "Sec-Fetch-Site: cross-site"] {
            refused(line, &[&good[..], &[page.to_owned()]].concat(), 403);
        }
    }
    let mut text = good.clone();
    text[2] = "Content-Type: text/plain".into();
    refused("POST /mcp", &text, 415);
    for method in ["PUT", "HEAD", "OPTIONS", "PATCH"] {
        let answer = Incoming::request(&serve, &format!("{method} /mcp"), &good, "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("get, post, delete")), "{method}");
    }
    let slash = Incoming::request(&serve, "POST /mcp/", &good, &list.to_string());
    assert_eq!(slash.status, 200, "a slash at the end is none");
    refused("POST /mcp/x", &good, 404);
    refused("POST /mcp?x", &[], 403);
    // The refusals of the library rmcp have the same form.
    refused("GET /mcp", &good, 405);
    let mut picky = good;
    picky[3] = "Accept: text/html".into();
    refused("POST /mcp", &picky, 406);
}

#[test]
fn bodies_are_bounded() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let client = Http::modern(&serve);
    let post = |body: &str, announced: usize| {
        let call = json!({"method": "tools/call", "params": {"name": "nudge_import"}});
        let head = client.headers(&call).join("\r\n");
        serve.raw(format!("POST /mcp HTTP/1.1\r\n{head}\r\nContent-Length: {announced}\r\n\r\n{body}"))
    };
    assert_eq!(post("", 1 << 30).error()["data"]["reason"], "E_TOO_LARGE");
    for (body, code) in [("nonsense", -32700), ("[]", -32600), ("{}", -32600), ("{\"id\":7,\"method\":8}", -32600)] {
        let answer = post(body, body.len());
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap()["error"]["code"], code, "{body}");
    }
    // Only the arguments of a tool call may be large.
    let large = "x".repeat(2 << 20);
    let call = |params: Value| request(true, 1, "tools/call", params).to_string();
    let body = call(json!({"name": "nudge_import", "arguments": {"payload": large}}));
    let answer: Value = serde_json::from_str(&post(&body, body.len()).body).unwrap();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("40001"), "{answer}");
    let body = call(json!({"name": "nudge_import", "arguments": {}, "other": large}));
    assert_eq!(post(&body, body.len()).error()["data"]["reason"], "E_TOO_LARGE");
}

#[test]
fn tool_calls_carry_exact_json() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let call = |client: &Http<'_>, data: &str| {
        let params = json!({"name": "nudge_set_hint", "arguments": "HERE"});
        let message = request(client.modern, 3, "tools/call", params);
        let arguments = format!(r#"{{"component":"a","key":"b","value":{{"type":"json","data":{data}}}}}"#);
        let body = message.to_string().replace("\"HERE\"", &arguments);
        Incoming::request(&serve, "POST /mcp", &client.headers(&message), &body).message().unwrap()["result"].clone()
    };
    for client in [Http::legacy(&serve), Http::modern(&serve)] {
        let set = call(&client, r#"{"z":1,"a":2}"#);
        let text = set["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("stored "), "{text}");
        assert_eq!(set["structuredContent"]["hint"]["value"]["data"].to_string(), r#"{"z":1,"a":2}"#, "{set}");
        let refused = call(&client, r#"{"x":1,"x":2}"#);
        assert_eq!(refused["isError"], true);
        assert!(refused.get("structuredContent").is_none());
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("40001"), "{refused}");
    }
}

#[test]
fn streams_leave_room_for_calls() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let client = Http::modern(&serve);
    let listen = || {
        let filter = json!({"notifications": {"resourcesListChanged": true}});
        let mut stream = client.post(&request(true, 1, "subscriptions/listen", filter));
        (stream.status, stream.message().unwrap(), stream)
    };
    let mut open: Vec<_> = (0..256).map(|_| listen()).collect();
    assert!(open.iter().all(|(status, ..)| *status == 200));
    let (status, error, _) = listen();
    assert_eq!((status, &error["error"]["data"]["reason"]), (503, &json!("E_UNAVAILABLE")));
    set(&serve, "a", "b");
    for (_, _, stream) in &mut open {
        assert_eq!(stream.message().unwrap()["method"], "notifications/resources/list_changed");
    }
    open.pop();
    wait_for("a free stream", PATIENCE, || (listen().0 == 200).then_some(()));
}

#[test]
fn streams_end_when_the_server_stops() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let legacy = Http::legacy(&serve);
    let mut stream = legacy.get();
    let modern = Http::modern(&serve);
    let filter = json!({"notifications": {"resourcesListChanged": true}});
    let mut listening = modern.post(&request(true, 9, "subscriptions/listen", filter));
    assert_eq!(listening.message().unwrap()["method"], "notifications/subscriptions/acknowledged");
    let begun = Instant::now();
    assert_eq!(serve.call("nudge.shutdown", &json!({}))["result"], json!({"stopping": true}));
    assert_eq!(stream.message(), None);
    let last = listening.message().unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(9), &json!("complete")), "{last}");
    assert_eq!(listening.message(), None);
    assert!(serve.end(PATIENCE).success());
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
}
