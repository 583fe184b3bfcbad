//! MCP over streamable HTTP, and what it shares with stdio: resources and change notifications. Both
//! eras of the protocol, from outside.

mod kit;

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use kit::{Incoming, PATIENCE, Serve, home, wait_for};
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
const META: &str = "io.modelcontextprotocol";

/// A request of either era.
fn request(modern: bool, id: u64, method: &str, mut params: Value) -> Value {
    if modern {
        params["_meta"] = json!({
            format!("{META}/protocolVersion"): MODERN,
            format!("{META}/clientCapabilities"): {},
        });
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A client over HTTP.
struct Http<'a> {
    serve: &'a Serve,
    modern: bool,
    session: Option<String>,
}

impl<'a> Http<'a> {
    fn modern(serve: &'a Serve) -> Self {
        Self { serve, modern: true, session: None }
    }

    /// Greets, and gets a session.
    fn legacy(serve: &'a Serve) -> Self {
        let mut client = Self { serve, modern: false, session: None };
        let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let mut answer = client.post(&request(false, 0, "initialize", hello));
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert_eq!(answer.message().unwrap()["result"]["protocolVersion"], LEGACY);
        client.session = Some(answer.header("mcp-session-id").unwrap().to_owned());
        let initialized = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(initialized.status, 202);
        client
    }

    fn headers(&self, message: &Value) -> Vec<String> {
        let mut headers = vec![
            format!("Host: 127.0.0.1:{}", self.serve.file.port),
            format!("Authorization: Bearer {}", self.serve.token()),
            "Content-Type: application/json".into(),
            "Accept: application/json, text/event-stream".into(),
        ];
        headers.extend(self.session.iter().map(|session| format!("Mcp-Session-Id: {session}")));
        if self.modern {
            headers.push(format!("Mcp-Protocol-Version: {MODERN}"));
            headers.push(format!("Mcp-Method: {}", message["method"].as_str().unwrap_or_default()));
            let name = message["params"]["name"].as_str().or(message["params"]["uri"].as_str());
            headers.extend(name.map(|name| format!("Mcp-Name: {name}")));
        }
        headers
    }

    fn post(&self, message: &Value) -> Incoming {
        Incoming::request(self.serve, "POST /mcp", &self.headers(message), &message.to_string())
    }

    /// Opens the stream of a session.
    fn get(&self) -> Incoming {
        Incoming::request(self.serve, "GET /mcp", &self.headers(&Value::Null), "")
    }

    fn delete(&self) -> u16 {
        Incoming::request(self.serve, "DELETE /mcp", &self.headers(&Value::Null), "").status
    }
}

/// A client over stdio.
struct Stdio<'a> {
    serve: &'a mut Serve,
    modern: bool,
    id: u64,
    /// What came unasked.
    heard: VecDeque<Value>,
}

impl<'a> Stdio<'a> {
    fn new(serve: &'a mut Serve, modern: bool) -> Self {
        if !modern {
            serve.initialize(LEGACY);
        }
        Self { serve, modern, id: 0, heard: VecDeque::new() }
    }

    /// Goes on where another of the same era stopped, with ids of its own.
    fn again(serve: &'a mut Serve, modern: bool) -> Self {
        Self { serve, modern, id: 1_000, heard: VecDeque::new() }
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let message = request(self.modern, self.id, method, params);
        self.serve.send(&message.to_string());
        self.id
    }

    fn hear(&mut self) -> Value {
        self.heard.pop_front().unwrap_or_else(|| self.serve.receive())
    }
}

trait Client {
    /// The whole answer.
    fn ask(&mut self, method: &str, params: Value) -> Value;

    fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }
}

impl Client for Http<'_> {
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.post(&request(self.modern, 5, method, params)).message().unwrap()
    }
}

impl Client for Stdio<'_> {
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        loop {
            let message = self.serve.receive();
            if message["id"] == id {
                return message;
            }
            self.heard.push_back(message);
        }
    }
}

/// Runs a check through both transports in both eras, each with a server of its own.
fn everywhere(runtime: &Path, prepare: impl Fn(&Serve), check: impl Fn(&mut dyn Client, bool)) {
    for modern in [false, true] {
        let mut serve = Serve::start(runtime);
        prepare(&serve);
        check(&mut if modern { Http::modern(&serve) } else { Http::legacy(&serve) }, modern);
        check(&mut Stdio::new(&mut serve, modern), modern);
        serve.close();
    }
}

fn set(serve: &Serve, component: &str, key: &str) {
    let params = json!({"component": component, "key": key, "value": "x"});
    assert!(serve.call("nudge.set_hint", &params)["result"].is_object());
}

fn delete(serve: &Serve, component: &str, key: &str) {
    let params = json!({"component": component, "key": key});
    assert!(serve.call("nudge.delete_hint", &params)["result"].is_object());
}

#[test]
fn both_eras() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for mut client in [Http::legacy(&serve), Http::modern(&serve)] {
        assert_eq!(client.result("tools/list", json!({}))["tools"].as_array().unwrap().len(), 8);
        let arguments = json!({"component": "a", "key": "b", "value": "c"});
        let set = client.result("tools/call", json!({"name": "nudge_set_hint", "arguments": arguments}));
        assert_eq!(set["structuredContent"]["hint"]["value"], "c", "{set}");
        assert_eq!(set["isError"], false);
        assert_eq!(client.ask("prompts/list", json!({}))["error"]["code"], -32601);
        let unknown = client.ask("tools/call", json!({"name": "nudge_shutdown", "arguments": {}}));
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    }
    let found = Http::modern(&serve).result("server/discover", json!({}));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)));
    let resources = json!({"subscribe": true, "listChanged": true});
    assert_eq!(found["capabilities"], json!({"tools": {}, "resources": resources, "completions": {}}));
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
    assert_eq!(client.get().status, 404);
    client.session = None;
    let mut none = client.post(&request(false, 1, "tools/list", json!({})));
    assert_eq!((none.status, none.message().unwrap()["error"]["code"].clone()), (400, json!(40000)));

    // One more than there may be: the one that was used least recently ends.
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
        let with = |at: usize, header: &str| {
            let mut headers = good.clone();
            headers[at] = header.to_owned();
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
    refused("POST /mcp/", &good, 404);
    refused("POST /mcp?x", &[], 403);
    // rmcp's own refusals look the same.
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
    // The arguments of a call may be large; nothing else may.
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
        assert!(text.contains(r#"{"z":1,"a":2}"#), "{text}");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), set["structuredContent"]);
        let refused = call(&client, r#"{"x":1,"x":2}"#);
        assert_eq!(refused["isError"], true);
        assert!(refused.get("structuredContent").is_none());
        assert!(refused["content"][0]["text"].as_str().unwrap().contains("40001"), "{refused}");
    }
}

/// Names that need percent-encoding, in byte order, and as a URI carries them.
const NAMES: [(&str, &str); 4] = [
    ("a b/c?d#e%", "a%20b%2Fc%3Fd%23e%25"),
    ("plain-1.0_~", "plain-1.0_~"),
    ("ä", "%C3%A4"),
    ("日本", "%E6%97%A5%E6%9C%AC"),
];

#[test]
fn resources() {
    let home = home();
    let prepare = |serve: &Serve| {
        for (name, _) in NAMES {
            set(serve, name, "k");
        }
        let secret = json!({"component": "ä", "key": "s", "value": "hush", "meta": {"sensitivity": "secret"}});
        assert!(serve.call("nudge.set_hint", &secret)["result"].is_object());
    };
    everywhere(&home.path().join("run"), prepare, |client, modern| {
        let listed = client.result("resources/list", json!({}));
        let uris: Vec<_> = listed["resources"].as_array().unwrap().iter().map(|one| one["uri"].clone()).collect();
        let expected = NAMES.map(|(_, encoded)| format!("nudge://component/{encoded}"));
        assert_eq!(uris[0], "nudge://components");
        assert_eq!(uris[1..], expected);
        assert!(listed.get("nextCursor").is_none() && listed["resources"][1]["mimeType"] == "application/json");

        let mut read = |uri: &str| client.ask("resources/read", json!({"uri": uri}));
        let text = |answer: &Value| {
            let contents = &answer["result"]["contents"][0];
            assert_eq!(contents["mimeType"], "application/json", "{answer}");
            serde_json::from_str::<Value>(contents["text"].as_str().unwrap()).unwrap()
        };
        let components = read("nudge://components");
        assert_eq!(text(&components)["components"][2], json!({"name": "ä", "hint_count": 2}));
        if modern {
            let cached = &components["result"];
            assert_eq!((&cached["ttlMs"], &cached["cacheScope"]), (&json!(0), &json!("private")), "{cached}");
        }
        for ((name, _), uri) in NAMES.iter().zip(&expected) {
            let component = read(uri);
            assert_eq!(component["result"]["contents"][0]["uri"], *uri);
            let hints = &text(&component)["components"][name]["hints"];
            assert!(hints["k"].is_object() || hints["k"].is_string(), "{hints}");
            assert!(hints.get("s").is_none(), "secrets are left out");
        }
        let long = format!("nudge://component/{}", "x".repeat(300));
        for uri in
            ["nudge://component/none", "nudge://component/", "nudge://component/%ff", "file:///etc/passwd", &long]
        {
            let unknown = &read(uri)["error"];
            assert_eq!(
                (&unknown["code"], &unknown["data"]["uri"]),
                (&json!(if modern { -32602 } else { -32002 }), &json!(uri))
            );
        }

        let templates = client.result("resources/templates/list", json!({}));
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "nudge://component/{name}");
        let mut complete = |uri: &str, value: &str| {
            let params =
                json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "name", "value": value}});
            client.result("completion/complete", params)["completion"]["values"].clone()
        };
        assert_eq!(complete("nudge://component/{name}", "pl"), json!(["plain-1.0_~"]));
        assert_eq!(complete("nudge://component/{name}", ""), json!(NAMES.map(|(name, _)| name)));
        assert_eq!(complete("nudge://other/{name}", ""), json!([]));
    });
}

#[test]
fn long_lists_have_pages() {
    let home = home();
    let many = |serve: &Serve| {
        let components: serde_json::Map<_, _> =
            (0..250).map(|at| (format!("c{at:03}"), json!({"hints": {"k": "v"}}))).collect();
        let payload = json!({"schema_version": "1.0", "components": components});
        assert_eq!(serve.call("nudge.import", &json!({"payload": payload}))["result"]["imported"], 250);
    };
    everywhere(&home.path().join("run"), many, |client, _| {
        let (mut uris, mut sizes, mut params) = (Vec::new(), Vec::new(), json!({}));
        loop {
            let page = client.result("resources/list", params);
            let resources = page["resources"].as_array().unwrap();
            sizes.push(resources.len());
            uris.extend(resources.iter().map(|one| one["uri"].as_str().unwrap().to_owned()));
            let Some(cursor) = page.get("nextCursor") else { break };
            params = json!({"cursor": cursor});
        }
        assert_eq!(sizes, [100, 100, 51]);
        assert!(uris[1..].is_sorted() && uris[250] == "nudge://component/c249", "{uris:?}");
        assert_eq!(client.ask("resources/list", json!({"cursor": "x"}))["error"]["code"], -32602);
        let params = json!({"ref": {"type": "ref/resource", "uri": "nudge://component/{name}"}, "argument": {"name": "name", "value": "c"}});
        let completion = &client.result("completion/complete", params)["completion"];
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(250), &json!(true)));
    });
}

/// Makes changes and checks what a client hears that watches `nudge://components` and the component
/// `a b`, and the list of resources.
fn check_heard(serve: &Serve, mut hear: impl FnMut() -> Value) {
    let mut expect = |expected: &[&str]| {
        let mut heard: Vec<_> = expected
            .iter()
            .map(|_| hear())
            .map(|message| {
                let method = message["method"].as_str().unwrap_or_else(|| panic!("{message}"));
                message["params"]["uri"].as_str().unwrap_or(method).to_owned()
            })
            .collect();
        heard.sort_unstable();
        assert_eq!(heard, expected);
    };
    let (changed, component, components) =
        ("notifications/resources/list_changed", "nudge://component/a%20b", "nudge://components");
    set(serve, "a b", "k");
    expect(&[changed, component, components]);
    // The same components with as many hints as before: whatever is heard next is about this alone.
    assert!(serve.call("nudge.bump", &json!({"component": "a b", "key": "k"}))["result"].is_object());
    expect(&[component]);
    set(serve, "a b", "other");
    expect(&[component, components]);
    set(serve, "unwatched", "k");
    expect(&[changed, components]);
    delete(serve, "a b", "other");
    expect(&[component, components]);
    delete(serve, "a b", "k");
    expect(&[changed, component, components]);
}

#[test]
fn clients_of_2025_are_told_of_changes() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let mut http = Http::legacy(&serve);
    let mut stream = http.get();
    for uri in ["nudge://components", "nudge://component/a%20b", "nudge://component/unwatched"] {
        http.result("resources/subscribe", json!({"uri": uri}));
    }
    http.result("resources/unsubscribe", json!({"uri": "nudge://component/unwatched"}));
    check_heard(&serve, || stream.message().unwrap());

    let mut stdio = Stdio::new(&mut serve, false);
    stdio.result("resources/list", json!({}));
    for uri in ["nudge://components", "nudge://component/a%20b"] {
        stdio.result("resources/subscribe", json!({"uri": uri}));
    }
    assert!(stdio.heard.is_empty(), "{:?}", stdio.heard);
    delete(&serve, "unwatched", "k");
    let cleared = [serve.receive(), serve.receive()].map(|message| message["method"].clone());
    assert_eq!(cleared, ["notifications/resources/list_changed", "notifications/resources/updated"]);
    check_heard(&serve, || serve.receive());

    let mut stdio = Stdio::again(&mut serve, false);
    let refused = (0..1_000).filter(|at| {
        let uri = format!("nudge://component/{at}");
        stdio.ask("resources/subscribe", json!({"uri": uri}))["error"].is_object()
    });
    assert_eq!(refused.count(), 2, "there were two already");
    let long = format!("nudge://component/{}", "x".repeat(1_024));
    assert_eq!(stdio.ask("resources/subscribe", json!({"uri": long}))["error"]["code"], -32602);
    assert_eq!(stdio.ask("subscriptions/listen", json!({"notifications": {}}))["error"]["code"], -32601);
}

#[test]
fn who_does_not_ask_for_resources_hears_nothing_of_them() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let mut stdio = Stdio::new(&mut serve, false);
    for key in ["a", "b", "c"] {
        let arguments = json!({"component": key, "key": key, "value": "x"});
        stdio.result("tools/call", json!({"name": "nudge_set_hint", "arguments": arguments}));
    }
    stdio.result("resources/read", json!({"uri": "nudge://components"}));
    assert!(stdio.heard.is_empty());
}

/// Checks that a message belongs to the listening request.
fn of(subscription: u64, message: Value) -> Value {
    assert_eq!(message["params"]["_meta"][format!("{META}/subscriptionId")], subscription, "{message}");
    message
}

#[test]
fn clients_of_2026_listen() {
    let home = home();
    let mut serve = Serve::start(&home.path().join("run"));
    let uris = json!(["nudge://components", "nudge://component/a%20b"]);
    let filter = json!({"resourcesListChanged": true, "resourceSubscriptions": uris, "toolsListChanged": true});
    let accepted = json!({"resourcesListChanged": true, "resourceSubscriptions": uris});
    let client = Http::modern(&serve);
    let listen = |id: u64, filter: &Value| {
        let message = request(true, id, "subscriptions/listen", json!({"notifications": filter}));
        let mut stream = client.post(&message);
        assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
        let heard = of(id, stream.message().unwrap());
        assert_eq!(heard["method"], "notifications/subscriptions/acknowledged");
        (stream, heard["params"]["notifications"].clone())
    };
    let (mut stream, heard) = listen(9, &filter);
    assert_eq!(heard, accepted);
    check_heard(&serve, || of(9, stream.message().unwrap()));
    // Too many are none.
    let many: Vec<_> = (0..1_001).map(|at| format!("nudge://component/{at}")).collect();
    assert_eq!(listen(10, &json!({"resourceSubscriptions": many})).1, json!({}));
    assert_eq!(listen(11, &json!({"resourceSubscriptions": many[1..]})).1["resourceSubscriptions"], json!(many[1..]));
    assert_eq!(Http::modern(&serve).ask("resources/subscribe", json!({"uri": "x"}))["error"]["code"], -32601);

    delete(&serve, "unwatched", "k");
    let cleared = [stream.message().unwrap(), stream.message().unwrap()].map(|message| message["method"].clone());
    assert_eq!(cleared, ["notifications/resources/list_changed", "notifications/resources/updated"]);
    let mut stdio = Stdio::new(&mut serve, true);
    let id = stdio.send("subscriptions/listen", json!({"notifications": filter}));
    let heard = of(id, stdio.hear());
    assert_eq!(heard["params"]["notifications"], accepted, "{heard}");
    check_heard(&serve, || of(id, serve.receive()));
    // Others are answered all the while, and nothing comes once it is cancelled.
    let mut stdio = Stdio::again(&mut serve, true);
    stdio.result("tools/list", json!({}));
    let params = json!({"requestId": id});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    stdio.serve.send(&cancel.to_string());
    stdio.result("tools/list", json!({}));
    for key in ["k", "l"] {
        set(stdio.serve, "a b", key);
        stdio.result("resources/read", json!({"uri": "nudge://component/a%20b"}));
    }
    assert!(stdio.heard.is_empty(), "{:?}", stdio.heard);
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
