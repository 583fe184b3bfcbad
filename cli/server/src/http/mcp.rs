//! `/mcp`: MCP over streamable HTTP. Before this module sees a request, [`super::door`] has accepted it, and its body
//! was read within the limits. The library rmcp implements both versions of the protocol.
//!
//! Clients of the 2025 protocol have sessions; this module limits their number and idle time. Clients of the 2026
//! protocol have no sessions.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_core::Stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use nudge_core::service::CallLane;
use nudge_core::wire::json_text;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::{SessionManager, StreamableHttpServerConfig, StreamableHttpService};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::accept;
use super::reply::json_response;
use super::rpc::{self, FaultData, RpcFault};
use crate::mcp::stdio::{RawArguments, find_request_id, taken_apart};
use crate::mcp::{CallerLeft, ClientTools};
use crate::session::calls::MAX_INLINE_BYTES;
use crate::work::{CallerId, WorkDesk};

/// The request header that names the session of a 2025 client.
const SESSION_HEADER: &str = "mcp-session-id";
/// The most sessions. A further session ends another one: the least recently used session of the client with the most
/// sessions.
const MAX_SESSIONS: usize = 128;
/// The idle time after which a session ends. The client must then send `initialize` again.
const SESSION_IDLE: Duration = Duration::from_hours(4);
/// The most bytes of a message without a tool call's arguments. The arguments may fill a whole body.
const MAX_ENVELOPE_BYTES: usize = 1 << 20;
/// The time for answers to `subscriptions/listen` after the server is told to stop; all streams then end.
const FAREWELL: Duration = Duration::from_millis(50);

type McpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The handler of `/mcp`.
pub struct McpHttp {
    service: StreamableHttpService<ClientTools, LimitedSessions>,
    free_streams: Arc<Semaphore>,
}

impl McpHttp {
    /// Gives every client `tools`. Streams and sessions end when `stopped` becomes true.
    pub fn new(tools: ClientTools, stopped: watch::Receiver<bool>) -> Self {
        Self::with_idle(tools, stopped, SESSION_IDLE)
    }

    fn with_idle(tools: ClientTools, mut stopped: watch::Receiver<bool>, idle: Duration) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_ENVELOPE_BYTES)
            // rmcp's own checks are off, because `super::door` has stricter checks.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let token = config.cancellation_token.clone();
        tokio::spawn(async move {
            let _ = stopped.wait_for(|stop| *stop).await;
            sleep(FAREWELL).await;
            token.cancel();
        });
        let tools = move || Ok(tools.for_another_client());
        let service = StreamableHttpService::new(tools, Arc::new(LimitedSessions::new(idle)), config);
        // Streams may use half of all connections, so other calls always find room.
        Self { service, free_streams: Arc::new(Semaphore::new(accept::count_places() / 2)) }
    }

    /// Answers an accepted request. `body` is empty for all methods except POST.
    pub async fn answer_request(&self, head: Parts, body: Bytes, desk: &WorkDesk) -> McpResponse {
        if !stays_open(&head) {
            return self.pass_to_rmcp(head, body, desk).await;
        }
        let Ok(stream) = Arc::clone(&self.free_streams).try_acquire_owned() else {
            let message = "Too many streams are open; close some and try again.";
            return make_refusal(StatusCode::SERVICE_UNAVAILABLE, "E_UNAVAILABLE", message);
        };
        let hold = move |frame| {
            let _until_the_end = &stream;
            frame
        };
        self.pass_to_rmcp(head, body, desk).await.map(|body| body.map_frame(hold).boxed())
    }

    async fn pass_to_rmcp(&self, mut head: Parts, body: Bytes, desk: &WorkDesk) -> McpResponse {
        let (rest, arguments) = without_arguments(body, desk).await;
        // A client with a session may read the answer over another connection, so its disconnection does not end the
        // call.
        let left = (!head.headers.contains_key(SESSION_HEADER)).then(CancellationToken::new);
        if let Some(left) = &left {
            head.extensions.insert(CallerLeft(left.clone()));
        }
        let _left = left.map(CancellationToken::drop_guard);
        if let Some(arguments) = arguments {
            head.extensions.insert(RawArguments(arguments));
        }
        let client = client_name(&head, desk.caller());
        let handled = self.service.handle(Request::from_parts(head, Full::new(rest.clone())));
        let mut response = CLIENT.scope(client, handled).await;
        if response.status().is_client_error() || response.status().is_server_error() {
            response = explain_refusal(response, &rest);
        }
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

tokio::task_local! {
    /// The client whose request this task answers.
    static CLIENT: Box<str>;
}

/// Returns the identity of a client: its process id over the local channel, its own name over TCP.
fn client_name(head: &Parts, caller: CallerId) -> Box<str> {
    let name = || head.headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or_default().into();
    match caller {
        CallerId::Proxy(pid) | CallerId::Process(pid) => pid.to_string().into(),
        _ => name(),
    }
}

/// Returns true when the response is a stream that does not end by itself. The header is reliable, because rmcp refuses
/// a request whose header and body name different methods.
fn stays_open(head: &Parts) -> bool {
    head.method == Method::GET || head.headers.get("mcp-method").is_some_and(|method| method == "subscriptions/listen")
}

async fn without_arguments(body: Bytes, desk: &WorkDesk) -> (Bytes, Option<Box<RawValue>>) {
    let split = |body: Bytes| match taken_apart(&body) {
        Some((rest, arguments)) => (rest.into(), Some(arguments)),
        None => (body, None),
    };
    if body.len() <= MAX_INLINE_BYTES {
        return split(body);
    }
    // Without a free place, passes the whole message on: the call then gets a refusal, and not the error for an empty
    // message.
    let whole = body.clone();
    desk.run(CallLane::Vital, move || split(body)).await.unwrap_or((whole, None))
}

/// Replaces a plain-text refusal of rmcp with a JSON-RPC error that contains advice.
fn explain_refusal(response: McpResponse, message: &[u8]) -> McpResponse {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    if response.headers().get(header::CONTENT_TYPE).is_some_and(is_json) {
        return response;
    }
    // `super::door` has checked the content type, so a 415 of rmcp means that the body could not be parsed.
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return refuse_unreadable(message);
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
    let mut refusal = make_refusal(head.status, reason, message);
    if let Some(allow) = head.headers.get(header::ALLOW) {
        refusal.headers_mut().insert(header::ALLOW, allow.clone());
    }
    refusal
}

/// Builds a refusal in the same format as [`super::door`].
fn make_refusal(status: StatusCode, reason: &str, message: &str) -> McpResponse {
    let code = i32::from(status.as_u16()) * 100;
    json_response(status, rpc::to_failure_body(&RpcFault { code, message, data: FaultData { reason } }))
        .map(BodyExt::boxed)
}

/// Builds the answer to a body that is no MCP message.
fn refuse_unreadable(message: &[u8]) -> McpResponse {
    let not_json = serde_json::from_slice::<&RawValue>(message).is_err();
    let error = match serde_json::from_slice::<ClientJsonRpcMessage>(message) {
        _ if not_json => ErrorData::parse_error("The body is not JSON; correct it.", None),
        Err(error) => ErrorData::invalid_request(format!("This is not an MCP request: {error}."), None),
        Ok(_) => ErrorData::invalid_request("This is not an MCP request.", None),
    };
    let error: ServerJsonRpcMessage = JsonRpcMessage::error(error, find_request_id(message));
    json_response(StatusCode::BAD_REQUEST, json_text(&error).into_bytes().into()).map(BodyExt::boxed)
}

/// The sessions that rmcp has in memory, with a limit on their number.
struct LimitedSessions {
    local: Arc<LocalSessionManager>,
    known: Mutex<HashMap<SessionId, KnownSession>>,
}

struct KnownSession {
    client: Box<str>,
    last_used: Instant,
}

impl LimitedSessions {
    fn new(idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        Self { local: Arc::new(local), known: Mutex::default() }
    }

    /// Removes a session when `client` needs one and there is no room. Selects the least recently used session of the
    /// client that would then have the most sessions.
    fn take_surplus(&self, client: &str) -> Option<SessionId> {
        let mut known = self.known.lock();
        if known.len() < MAX_SESSIONS {
            return None;
        }
        let mut counts = HashMap::from([(client, 1)]);
        for session in known.values() {
            *counts.entry(&*session.client).or_default() += 1;
        }
        let id = known.iter().min_by_key(|(_, session)| {
            let count: i32 = counts[&*session.client];
            (-count, session.last_used)
        });
        let id = id.map(|(id, _)| Arc::clone(id))?;
        known.remove(&id);
        Some(id)
    }
}

impl SessionManager for LimitedSessions {
    type Error = LocalSessionManagerError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let client = CLIENT.try_with(Clone::clone).unwrap_or_default();
        if let Some(surplus) = self.take_surplus(&client) {
            let local = Arc::clone(&self.local);
            // A close may wait until the session's client reads, so it runs in its own task.
            tokio::spawn(async move { local.close_session(&surplus).await });
        }
        let (id, transport) = self.local.create_session().await?;
        self.known.lock().insert(Arc::clone(&id), KnownSession { client, last_used: Instant::now() });
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    /// Also notes the time of use, because rmcp calls this function first for every request of a session.
    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        if let Some(session) = self.known.lock().get_mut(id) {
            session.last_used = Instant::now();
        }
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.known.lock().remove(id);
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
    use crate::session::backend::CallBackend;
    use crate::work::WorkPool;
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
    fn a_client_with_many_sessions_ends_its_own() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sessions = LimitedSessions::new(SESSION_IDLE);
            let begin = async |client: &str| {
                let (id, _transport) = CLIENT.scope(client.into(), sessions.create_session()).await.unwrap();
                id
            };
            let (first, second) = (begin("one").await, begin("other").await);
            for _ in 0..2 * MAX_SESSIONS {
                begin("greedy").await;
            }
            let known = sessions.known.lock();
            assert!(known.len() == MAX_SESSIONS && known.contains_key(&first) && known.contains_key(&second));
        });
    }

    #[test]
    fn idle_sessions_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (_stop, stopped) = watch::channel(false);
            let desk = Arc::new(WorkPool::default()).desk_for(CallerId::Connection(1));
            let tools =
                ClientTools::new(Arc::new(CallBackend::from_service(Arc::new(Nudge::default()), desk.clone())), None)
                    .await;
            let mcp = McpHttp::with_idle(tools, stopped, Duration::from_millis(50));
            let hello = mcp.answer_request(head(Method::POST, ""), HELLO.into(), &desk).await;
            let session = hello.headers()["mcp-session-id"].to_str().unwrap().to_owned();
            let stream = mcp.answer_request(head(Method::GET, &session), Bytes::new(), &desk).await;
            assert_eq!(stream.status(), StatusCode::OK);
            // The stream ends with the session.
            stream.into_body().collect().await.unwrap();
            let gone = || async { mcp.answer_request(head(Method::GET, &session), Bytes::new(), &desk).await.status() };
            while gone().await != StatusCode::NOT_FOUND {
                tokio::task::yield_now().await;
            }
        });
    }
}
