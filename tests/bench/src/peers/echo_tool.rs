//! An MCP server of rmcp with one tool that gives back what it got, as many times as it is told to.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};

/// What makes this binary serve instead of measure.
pub const ECHO_TOOL: &str = "--echo-tool";

struct Echo;

/// Serves on one thread until stdin ends.
pub fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = rmcp::serve_server(Echo, rmcp::transport::stdio_pipes()).await.map_err(io::Error::other)?;
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
        let properties = json!({"say": {"type": "string"}, "times": {"type": "integer"}});
        let Value::Object(schema) = json!({"type": "object", "properties": properties}) else {
            return Err(ErrorData::internal_error("no schema", None));
        };
        Ok(ListToolsResult::with_all_items(vec![Tool::new("echo", "Gives back what it got.", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let said = arguments.get("say").and_then(Value::as_str).unwrap_or_default();
        let times = arguments.get("times").and_then(Value::as_u64).and_then(|times| times.try_into().ok()).unwrap_or(1);
        Ok(CallToolResult::success(vec![ContentBlock::text(said.repeat(times))]).into())
    }
}
