//! `/mcp`: MCP over streamable HTTP. [`super::door`] has let the request in and its body has been read within
//! the limits; rmcp implements both versions of the protocol.
//!
//! Clients of the 2025 protocol have sessions, whose number and idle time are limited here. Those of 2026 have none.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_core::Stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::{SessionManager, StreamableHttpServerConfig, StreamableHttpService};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::accept;
use super::reply::json;
use super::rpc::{self, Fault, FaultData};
use crate::server::mcp::Tools;
use crate::server::mcp::stdio::{RawArguments, id, taken_apart};
use crate::server::session::calls::MAX_INLINE_BYTES;

/// Largest number of sessions; a further one ends the least recently used.
const MAX_SESSIONS: usize = 128;
/// Idle time after which a session ends; its client has to send `initialize` again.
const SESSION_IDLE: Duration = Duration::from_hours(4);
/// Largest message without the arguments of a tool call, which may fill a whole body.
const MAX_ENVELOPE_BYTES: usize = 1 << 20;
/// Time to answer `subscriptions/listen` requests once the server is told to stop; then streams end.
const FAREWELL: Duration = Duration::from_millis(50);

type McpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The handler of `/mcp`.
pub struct McpHttp {
    service: StreamableHttpService<Tools, Sessions>,
    free_streams: Arc<Semaphore>,
}

impl McpHttp {
    /// Serves every client with `tools`. Streams and sessions end when `stopped` becomes true.
    pub fn new(tools: Tools, stopped: watch::Receiver<bool>) -> Self {
        Self::with_idle(tools, stopped, SESSION_IDLE)
    }

    fn with_idle(tools: Tools, mut stopped: watch::Receiver<bool>, idle: Duration) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_ENVELOPE_BYTES)
            // `super::door` has stricter checks of its own.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let token = config.cancellation_token.clone();
        tokio::spawn(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
            sleep(FAREWELL).await;
            token.cancel();
        });
        let tools = move || Ok(tools.for_another_client());
        let service = StreamableHttpService::new(tools, Arc::new(Sessions::new(idle)), config);
        // Half of all connections, so that there is always room for calls.
        Self { service, free_streams: Arc::new(Semaphore::new(accept::places() / 2)) }
    }

    /// Answers a request that was let in; `body` is empty for other methods than POST.
    pub async fn answer(&self, head: Parts, body: Bytes) -> McpResponse {
        if !stays_open(&head) {
            return self.handle(head, body).await;
        }
        let Ok(stream) = Arc::clone(&self.free_streams).try_acquire_owned() else {
            let message = "Too many streams are open; close some and try again.";
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "E_UNAVAILABLE", message);
        };
        let hold = move |frame| {
            let _until_the_end = &stream;
            frame
        };
        self.handle(head, body).await.map(|body| body.map_frame(hold).boxed())
    }

    async fn handle(&self, mut head: Parts, body: Bytes) -> McpResponse {
        let (rest, arguments) = without_arguments(body).await;
        if let Some(arguments) = arguments {
            head.extensions.insert(RawArguments(arguments));
        }
        let mut response = self.service.handle(Request::from_parts(head, Full::new(rest.clone()))).await;
        if response.status().is_client_error() || response.status().is_server_error() {
            response = explained(response, &rest);
        }
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// Returns true when the answer is a stream without an end of its own. The header can be relied on: rmcp refuses
/// a request whose header names another method than its body.
fn stays_open(head: &Parts) -> bool {
    head.method == Method::GET || head.headers.get("mcp-method").is_some_and(|method| method == "subscriptions/listen")
}

async fn without_arguments(body: Bytes) -> (Bytes, Option<Box<RawValue>>) {
    let split = |body: Bytes| match taken_apart(&body) {
        Some((rest, arguments)) => (rest.into(), Some(arguments)),
        None => (body, None),
    };
    if body.len() <= MAX_INLINE_BYTES {
        return split(body);
    }
    spawn_blocking(move || split(body)).await.unwrap_or_default()
}

/// Replaces a plain-text refusal of rmcp by a JSON-RPC error that says what to do.
fn explained(response: McpResponse, message: &[u8]) -> McpResponse {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    if response.headers().get(header::CONTENT_TYPE).is_some_and(is_json) {
        return response;
    }
    // `super::door` has checked the content type, so rmcp answers 415 only when the body cannot be parsed.
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return unreadable(message);
    }
    let (head, _) = response.into_parts();
    let (reason, message) = match head.status {
        StatusCode::NOT_FOUND => ("E_NO_SUCH_SESSION", "There is no such MCP session any more; send initialize again."),
        StatusCode::METHOD_NOT_ALLOWED => {
            ("E_METHOD_NOT_ALLOWED", "This needs an MCP session; send initialize first, or POST the message alone.")
        }
        StatusCode::NOT_ACCEPTABLE => {
            ("E_NOT_ACCEPTABLE", "Answers are JSON or events; send Accept: application/json, text/event-stream.")
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            ("E_TOO_LARGE", "The message is larger than 1 MiB without its arguments; shorten the rest of it.")
        }
        status if status.is_server_error() => {
            ("E_UNAVAILABLE", "The server cannot answer this now; send initialize again or start the server anew.")
        }
        _ => (
            "E_BAD_REQUEST",
            "Send initialize first, then its Mcp-Session-Id, and an MCP-Protocol-Version that it names, with every request.",
        ),
    };
    let mut refusal = refusal(head.status, reason, message);
    if let Some(allow) = head.headers.get(header::ALLOW) {
        refusal.headers_mut().insert(header::ALLOW, allow.clone());
    }
    refusal
}

/// Builds a refusal in the format of [`super::door`].
fn refusal(status: StatusCode, reason: &str, message: &str) -> McpResponse {
    let code = i32::from(status.as_u16()) * 100;
    json(status, rpc::failure(&Fault { code, message, data: FaultData { reason } })).map(BodyExt::boxed)
}

/// Builds the answer to a body that is no MCP message.
fn unreadable(message: &[u8]) -> McpResponse {
    let not_json = serde_json::from_slice::<&RawValue>(message).is_err();
    let error = match serde_json::from_slice::<ClientJsonRpcMessage>(message) {
        _ if not_json => ErrorData::parse_error("The body is not JSON; correct it.", None),
        Err(error) => ErrorData::invalid_request(format!("This is not an MCP request: {error}."), None),
        Ok(_) => ErrorData::invalid_request("This is not an MCP request.", None),
    };
    let error: ServerJsonRpcMessage = JsonRpcMessage::error(error, id(message));
    json(StatusCode::BAD_REQUEST, serde_json::to_vec(&error).unwrap_or_default().into()).map(BodyExt::boxed)
}

/// rmcp's in-memory sessions, with a limit to their number.
struct Sessions {
    local: Arc<LocalSessionManager>,
    last_used: Mutex<HashMap<SessionId, Instant>>,
}

impl Sessions {
    fn new(idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        Self { local: Arc::new(local), last_used: Mutex::default() }
    }

    fn last_used(&self) -> MutexGuard<'_, HashMap<SessionId, Instant>> {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the least recently used session when there is no room for another.
    fn surplus(&self) -> Option<SessionId> {
        let mut last_used = self.last_used();
        if last_used.len() < MAX_SESSIONS {
            return None;
        }
        let id = last_used.iter().min_by_key(|(_, at)| **at).map(|(id, _)| Arc::clone(id))?;
        last_used.remove(&id);
        Some(id)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        if let Some(surplus) = self.surplus() {
            let local = Arc::clone(&self.local);
            // Closing may wait for the session's client to read, so it runs in a task of its own.
            tokio::spawn(async move { local.close_session(&surplus).await });
        }
        let (id, transport) = self.local.create_session().await?;
        self.last_used().insert(Arc::clone(&id), Instant::now());
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    /// Also notes the time of use: rmcp asks this first for every request of a session.
    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        if let Some(at) = self.last_used().get_mut(id) {
            *at = Instant::now();
        }
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.last_used().remove(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}

#[cfg(test)]
mod tests {
    use crate::server::session::backend::Backend;
    use nudge::Nudge;

    use super::*;

    const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#;

    fn head(method: Method, session: &str) -> Parts {
        let request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        let request = if session.is_empty() { request } else { request.header("mcp-session-id", session) };
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn idle_sessions_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_stop, stopped) = watch::channel(false);
            let tools = Tools::new(Arc::new(Backend::here(Arc::new(Nudge::default()))), None).await;
            let mcp = McpHttp::with_idle(tools, stopped, Duration::from_millis(50));
            let hello = mcp.answer(head(Method::POST, ""), HELLO.into()).await;
            let session = hello.headers()["mcp-session-id"].to_str().unwrap().to_owned();
            let stream = mcp.answer(head(Method::GET, &session), Bytes::new()).await;
            assert_eq!(stream.status(), StatusCode::OK);
            // The stream ends with the session.
            stream.into_body().collect().await.unwrap();
            let gone = || async { mcp.answer(head(Method::GET, &session), Bytes::new()).await.status() };
            while gone().await != StatusCode::NOT_FOUND {
                tokio::task::yield_now().await;
            }
        });
    }
}
