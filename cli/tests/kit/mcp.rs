//! MCP clients over HTTP and stdio, for the protocols of 2025 and 2026.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::{Value, json};

use super::{Incoming, Serve};

pub const LEGACY: &str = "2025-11-25";
pub const MODERN: &str = "2026-07-28";
pub const META: &str = "io.modelcontextprotocol";

/// Makes a request. With `modern` it follows the protocol of 2026, otherwise the protocol of 2025.
pub fn request(modern: bool, id: u64, method: &str, mut params: Value) -> Value {
    if modern {
        params["_meta"] = json!({
            format!("{META}/protocolVersion"): MODERN,
            format!("{META}/clientCapabilities"): {},
            format!("{META}/clientInfo"): {"name": "t", "version": "0"},
        });
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A client over HTTP.
pub struct Http<'a> {
    pub serve: &'a Serve,
    pub modern: bool,
    pub session: Option<String>,
}

impl<'a> Http<'a> {
    pub fn modern(serve: &'a Serve) -> Self {
        Self { serve, modern: true, session: None }
    }

    /// Connects as a client of 2025: its greeting opens an MCP session.
    pub fn legacy(serve: &'a Serve) -> Self {
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

    pub fn headers(&self, message: &Value) -> Vec<String> {
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

    pub fn post(&self, message: &Value) -> Incoming {
        Incoming::request(self.serve, "POST /mcp", &self.headers(message), &message.to_string())
    }

    /// Opens the stream of events of the MCP session.
    pub fn get(&self) -> Incoming {
        Incoming::request(self.serve, "GET /mcp", &self.headers(&Value::Null), "")
    }

    pub fn delete(&self) -> u16 {
        Incoming::request(self.serve, "DELETE /mcp", &self.headers(&Value::Null), "").status
    }
}

/// A client over stdio.
pub struct Stdio<'a> {
    pub serve: &'a mut Serve,
    pub modern: bool,
    pub id: u64,
    /// The received messages that do not answer the awaited request.
    pub heard: VecDeque<Value>,
}

impl<'a> Stdio<'a> {
    pub fn new(serve: &'a mut Serve, modern: bool) -> Self {
        if !modern {
            serve.initialize(LEGACY);
        }
        Self { serve, modern, id: 0, heard: VecDeque::new() }
    }

    /// Continues on a connection on which an earlier client of the same protocol has sent its greeting. The ids begin
    /// with 1,001, so that they are new.
    pub fn again(serve: &'a mut Serve, modern: bool) -> Self {
        Self { serve, modern, id: 1_000, heard: VecDeque::new() }
    }

    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.id += 1;
        let message = request(self.modern, self.id, method, params);
        self.serve.send(&message.to_string());
        self.id
    }

    pub fn hear(&mut self) -> Value {
        self.heard.pop_front().unwrap_or_else(|| self.serve.receive())
    }
}

pub trait Client {
    /// Sends a request; returns its whole answer, a result or an error.
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

/// Runs a check four times: over HTTP and over stdio, with each protocol. Each protocol has a new server.
pub fn everywhere(runtime: &Path, prepare: impl Fn(&Serve), check: impl Fn(&mut dyn Client, bool)) {
    for modern in [false, true] {
        let mut serve = Serve::start(runtime);
        prepare(&serve);
        check(&mut if modern { Http::modern(&serve) } else { Http::legacy(&serve) }, modern);
        check(&mut Stdio::new(&mut serve, modern), modern);
        serve.close();
    }
}

pub fn set(serve: &Serve, component: &str, key: &str) {
    let params = json!({"component": component, "key": key, "value": "x"});
    assert!(serve.call("nudge.set_hint", &params)["result"].is_object());
}

pub fn delete(serve: &Serve, component: &str, key: &str) {
    let params = json!({"component": component, "key": key});
    assert!(serve.call("nudge.delete_hint", &params)["result"].is_object());
}
