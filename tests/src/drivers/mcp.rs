//! Tests MCP over stdio. Methods that are tools go through `tools/call`, all others go over HTTP to the same process.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::child::{Request, RpcAnswer, Server};
use super::{Driver, no_answer};
use crate::format::{Case, Config, Step};
use crate::json::Json;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const PROTOCOL_VERSION: &str = "2025-11-25";

/// The methods that are MCP tools.
const TOOLS: [&str; 16] = [
    "set_hint",
    "get_hint",
    "query",
    "delete_hint",
    "list_components",
    "bump",
    "export",
    "import",
    "recall",
    "signals.send",
    "signals.check",
    "signals.respond",
    "records.search",
    "records.upsert",
    "records.get",
    "brain.context",
];

/// The fields of a context that a server infers for its stdio client.
const CONTEXT_FIELDS: [&str; 5] = ["cwd", "repo", "branch", "os", "env"];

/// The server over stdio.
#[derive(Default)]
pub struct Mcp {
    session: Option<McpSession>,
}

struct McpSession {
    server: Server,
    lines: Receiver<String>,
    last_id: u64,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    name: String,
    arguments: &'a RawValue,
}

/// The result of `tools/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult {
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
}

impl Driver for Mcp {
    fn name(&self) -> &'static str {
        "mcp"
    }

    fn start(&mut self, config: &Config) -> Result<(), String> {
        self.session = None;
        self.session = Some(McpSession::start(config)?);
        Ok(())
    }

    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
        let session = self.session.as_mut().ok_or_else(|| no_answer("not started"))?;
        match method.strip_prefix("nudge.").filter(|verb| TOOLS.contains(verb)) {
            Some(verb) => session.call_tool(verb, params),
            None => session.server.call(method, params),
        }
    }

    fn advance(&mut self, ms: u64) -> Result<(), String> {
        self.session.as_ref().ok_or("not started")?.server.advance(ms)
    }

    fn skip(&self, case: &Case) -> Option<String> {
        let no_object = case.steps.iter().any(|step| match step {
            Step::Call(call) => {
                let raw = call.params_raw.as_deref();
                TOOLS.contains(&call.call.as_str()) && raw.is_some_and(|raw| !raw.trim_start().starts_with('{'))
            }
            _ => false,
        });
        no_object.then(|| "MCP itself demands that arguments are an object".to_owned())
    }
}

impl McpSession {
    fn start(config: &Config) -> Result<Self, String> {
        let mut server = Server::start(config, Stdio::piped())?;
        let stdout = server.take_stdout().ok_or("no stdout")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut session = Self { server, lines, last_id: 0 };
        // With a client name of plain characters, the server would write that name into hints as their author. The
        // answers would then differ from those of other surfaces.
        let hello = serde_json::json!({
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "vectors: unsigned", "version": "0"},
        });
        session.request("initialize", &hello).map_err(|e| format!("initialize: {e}"))?;
        session.send(&serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(session)
    }

    fn send(&mut self, message: &impl Serialize) -> Result<(), String> {
        let mut line = serde_json::to_vec(message).map_err(|e| e.to_string())?;
        line.push(b'\n');
        let stdin = self.server.stdin().ok_or("no stdin")?;
        stdin.write_all(&line).and_then(|()| stdin.flush()).map_err(|e| e.to_string())
    }

    fn request(&mut self, method: &str, params: &impl Serialize) -> Result<Box<RawValue>, serde_json::Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&Request { jsonrpc: "2.0", id, method, params }).map_err(|e| no_answer(&e))?;
        loop {
            let line = self.lines.recv_timeout(ANSWER_TIMEOUT).map_err(|e| no_answer(&e.to_string()))?;
            let answer: RpcAnswer =
                serde_json::from_str(&line).map_err(|e| no_answer(&format!("not protocol on stdout: {e}: {line}")))?;
            // A message without the id of this call is a notification. Skips it.
            if answer.id == Some(id) {
                return answer.into_result();
            }
        }
    }

    fn call_tool(&mut self, verb: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
        let arguments = nothing_inferred(verb, params).map_err(|e| no_answer(&e))?;
        let call = ToolCall { name: format!("nudge_{}", verb.replace('.', "_")), arguments: &arguments };
        let result = self.request("tools/call", &call)?;
        let result: ToolResult =
            serde_json::from_str(result.get()).map_err(|e| no_answer(&format!("{e}: {result}")))?;
        if result.is_error {
            let text = result.content.iter().find_map(|c| c.text.as_deref()).unwrap_or_default();
            return Err(serde_json::from_str(text)
                .unwrap_or_else(|_| no_answer(&format!("an error that is not an error object: {text}"))));
        }
        result.structured_content.ok_or_else(|| no_answer("no structuredContent"))
    }
}

/// Adds a null for every context field that is not given, so that the server infers none (semantics section 9). A
/// `bump` without a context stays as it is, because a context would change its meaning.
fn nothing_inferred(verb: &str, params: &RawValue) -> Result<Box<RawValue>, String> {
    if !matches!(verb, "get_hint" | "query" | "bump" | "recall") {
        return Ok(params.to_owned());
    }
    let Json::Object(mut pairs) = Json::parse(params.get())? else {
        return Ok(params.to_owned());
    };
    let index = pairs.iter().position(|(key, _)| key == "context");
    let mut context = match index.map(|index| &pairs[index].1) {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Object(context)) => context.clone(),
        Some(_) => return Ok(params.to_owned()),
    };
    if verb == "bump" && context.is_empty() {
        return Ok(params.to_owned());
    }
    for field in CONTEXT_FIELDS {
        if !context.iter().any(|(key, _)| key == field) {
            context.push((field.to_owned(), Json::Null));
        }
    }
    match index {
        Some(index) => pairs[index].1 = Json::Object(context),
        None => pairs.push(("context".to_owned(), Json::Object(context))),
    }
    Json::Object(pairs).raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_filled_with_nulls() {
        let filled = |verb, text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            nothing_inferred(verb, &raw).unwrap().get().to_owned()
        };
        let nulls = r#"{"context":{"cwd":null,"repo":null,"branch":null,"os":null,"env":null}}"#;
        assert_eq!(filled("query", "{}"), nulls);
        assert_eq!(filled("get_hint", r#"{"context":null}"#), nulls);
        assert_eq!(
            filled("bump", r#"{"context":{"os":"linux"}}"#),
            r#"{"context":{"os":"linux","cwd":null,"repo":null,"branch":null,"env":null}}"#
        );
        for same in [r#"{"context":{}}"#, r#"{"context":null}"#, "{}"] {
            assert_eq!(filled("bump", same), same);
        }
        assert_eq!(filled("get_hint", r#"{"context":"x"}"#), r#"{"context":"x"}"#);
        assert_eq!(filled("export", "{}"), "{}");
    }
}
