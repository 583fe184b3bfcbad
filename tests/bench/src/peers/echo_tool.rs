//! Runs an MCP server of the library rmcp with two tools. One returns its input, and the other calls the library for
//! one hint.

use std::io;
use std::sync::Arc;

use nudge::context::detect::{GitAnswer, GitDetector};
use nudge::{Nudge, Service as _, SetHint};
use parking_lot::Mutex;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use crate::process::{KEY, VALUE};

/// The argument that makes this binary serve and not measure.
pub const ECHO_TOOL: &str = "--echo-tool";

struct Echo {
    store: Nudge,
    detector: Mutex<GitDetector>,
}

impl Echo {
    fn new() -> Self {
        let store = Nudge::default();
        store.set(SetHint::new(KEY.0, KEY.1, VALUE)).expect("it is a hint");
        Self { store, detector: Mutex::new(GitDetector::new()) }
    }

    /// Returns the hint for the given context. Without a context, uses the context of this process's folder.
    fn get(&self, mut arguments: Map<String, Value>) -> Value {
        if !arguments.contains_key("context") {
            let cwd = std::env::current_dir().expect("it is in a folder");
            let GitAnswer::Inside(info) = self.detector.lock().detect(&cwd) else {
                panic!("the folder is in a repository")
            };
            arguments.insert("context".into(), json!({"cwd": cwd, "repo": info.remote, "branch": info.branch}));
        }
        let params = to_raw_value(&arguments).expect("it is JSON");
        let got = self.store.call("nudge.get_hint", &params).expect("it is stored");
        serde_json::from_str(got.get()).expect("it is JSON")
    }
}

/// Serves on one thread until stdin ends.
pub fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running =
            rmcp::serve_server(Echo::new(), rmcp::transport::stdio_pipes()).await.map_err(io::Error::other)?;
        running.waiting().await.map(|_| ()).map_err(io::Error::other)
    })
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ["echo", "get_hint"].map(|name| Tool::new(name, "See its name.", Arc::new(Map::new())));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if request.name == "get_hint" {
            return Ok(CallToolResult::structured(self.get(arguments)).into());
        }
        let said = arguments.get("say").and_then(Value::as_str).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
    }
}
