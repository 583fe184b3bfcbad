//! A source beside the hints is a `Service` with rows of its own, and nothing else: HTTP and MCP serve
//! it without a line that knows it.

use std::sync::Arc;

use nudge::{Caller, EnvNames, Method, Nudge, Result, Service, Services, unknown_method};
use nudge_cli::server::backend::Backend;
use nudge_cli::server::fill_in::FillIn;
use nudge_cli::server::mcp::Tools;
use nudge_cli::server::{rpc, stdio::StdioTransport};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

static ECHO: Method = Method::new(
    "demo.echo",
    "Echo",
    "Gives back what it got.",
    || json!({"type": "object", "properties": {"say": {"type": "string"}}}),
)
.frequent()
.reads()
.inferred()
.quick();

struct Demo;

impl Service for Demo {
    fn methods(&self) -> Vec<&'static Method> {
        vec![&ECHO]
    }

    fn call_by(&self, _: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        if method == ECHO.name { Ok(params.to_owned()) } else { Err(unknown_method()) }
    }
}

fn both() -> Arc<dyn Service> {
    Arc::new(Services::new(vec![Arc::new(Nudge::default()), Arc::new(Demo)]))
}

#[test]
fn over_http() {
    let service = both();
    let ask = |method: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"say":"hello"}}}}"#);
        let answer = rpc::answer(&*service, Caller::default(), body.as_bytes()).unwrap();
        serde_json::from_slice::<Value>(&answer).unwrap()
    };
    assert_eq!(ask("demo.echo")["result"], json!({"say": "hello"}));
    assert_eq!(ask("demo.other")["error"]["code"], -32601);
    assert_eq!(ask("nudge.list_components")["error"]["code"], 40001, "the hints are still there");
}

type JsonMap = Map<String, Value>;

/// Shows what it gets: the row, the params and the client's `_meta`.
struct Filling;

impl FillIn for Filling {
    fn fill_in(&self, method: &Method, params: &mut JsonMap, meta: &JsonMap, _: bool) -> bool {
        assert_eq!(method.name, "demo.echo");
        params.insert("session".into(), meta["x-test"].clone());
        true
    }

    fn learn(&self, _: EnvNames) {}
}

#[test]
fn over_mcp() {
    let backend = Arc::new(Backend::here(both()));
    let answers = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(server);
        let transport = StdioTransport::new(read, write);
        let serving = tokio::spawn(rmcp::serve_server(Tools::new(backend, Some(Arc::new(Filling))), transport));
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let call = json!({"name": "demo_echo", "arguments": {"say": "hello"}, "_meta": {"x-test": 5}});
        for (id, method, params) in [(0, "initialize", hello), (1, "tools/list", json!({})), (2, "tools/call", call)] {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            client.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        let mut lines = BufReader::new(client).lines();
        let mut answers = Vec::new();
        while answers.len() < 3 {
            let line = lines.next_line().await.unwrap().unwrap();
            answers.push(serde_json::from_str::<Value>(&line).unwrap());
        }
        drop(serving.await.unwrap().unwrap());
        answers
    });
    let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let tools = of(1)["result"]["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "demo_echo").unwrap();
    assert_eq!(echo["_meta"]["anthropic/alwaysLoad"], true);
    assert_eq!(tools.len(), 9);
    assert_eq!(of(2)["result"]["structuredContent"], json!({"say": "hello", "session": 5}));
}
