//! MCP over stdin and stdout, with one message per line. This transport adds four things to that of rmcp:
//!
//! - The `arguments` of `tools/call` reach the service as raw JSON text, and the result is raw text too. rmcp's `Value`
//!   would change key order, duplicate keys and large integers. It would also parse a large export only to write it
//!   again.
//! - Notifications before the first request are ignored; rmcp would end the server.
//! - A malformed request gets an answer with its id.
//! - The transport reads no further request in two cases: while the client leaves `MAX_UNREAD_BYTES` of answers unread,
//!   and while `MAX_UNANSWERED` requests have no answer that the client has read.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    ContentBlock, ErrorData, GetExtensions, JsonRpcMessage, MetaObject, RequestId, RequestMetaObject, ResultType,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify};

use crate::MAX_BODY_BYTES;

/// The most bytes of a line, the same as of an HTTP body.
const MAX_LINE_BYTES: usize = MAX_BODY_BYTES;
/// The bytes of unread answers at which the transport stops reading requests.
const MAX_UNREAD_BYTES: usize = 4 << 20;
/// The number of requests at which the transport stops reading further ones. It counts requests with a running handler,
/// and requests whose answer the client has not read. A request takes 11 KB besides its answer, measured with 150,000
/// pings. A list of tools takes 100 KB until it is serialized.
const MAX_UNANSWERED: usize = 256;
const READ_BUFFER_BYTES: usize = 16 << 10;
/// The size to which the line buffer shrinks after a larger line.
const KEPT_LINE_BYTES: usize = 64 << 10;

/// The `arguments` of a `tools/call` as raw JSON text. The request's extensions carry them.
#[derive(Clone)]
pub struct RawArguments(pub Box<RawValue>);

/// rmcp's transport over a pair of pipes.
pub struct StdioTransport<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// True while the transport skips the rest of a line that is too long.
    dropping: bool,
    /// True after the first request. From then on, rmcp also gets notifications.
    opened: bool,
    write: Arc<Mutex<W>>,
    /// The requests that rmcp has received and has not answered, without cancelled ones. A second answer to the same id
    /// is dropped.
    open: HashMap<RequestId, CountedRequest>,
    unread: Arc<UnreadAnswers>,
    /// Notified when the input has ended.
    ended: Arc<Notify>,
}

impl<R, W> StdioTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Makes a transport that reads requests from `read` and writes answers to `write`.
    pub fn new(read: R, write: W) -> Self {
        Self {
            read: BufReader::with_capacity(READ_BUFFER_BYTES, read),
            line: Vec::new(),
            dropping: false,
            opened: false,
            write: Arc::new(Mutex::new(write)),
            open: HashMap::new(),
            unread: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// Returns the notification that the input has ended. Answers to earlier requests may not be written yet.
    pub fn ended(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Reads the next line into `self.line`. Returns false at the end of the input.
    ///
    /// The function is cancel-safe: bytes that were read stay in `self.line`, and the next call continues from there.
    async fn next_line(&mut self) -> bool {
        loop {
            let room = MAX_LINE_BYTES + 1 - self.line.len();
            let read = (&mut self.read).take(room as u64).read_until(b'\n', &mut self.line).await;
            let ended = self.line.last() == Some(&b'\n');
            match read {
                Ok(0) | Err(_) if self.line.is_empty() || self.dropping => return false,
                // The last line may have no newline.
                Ok(0) | Err(_) => return true,
                Ok(_) if ended && !self.dropping => return true,
                Ok(_) if ended => {
                    self.dropping = false;
                    self.line.clear();
                }
                Ok(_) if self.line.len() > MAX_LINE_BYTES => {
                    if !self.dropping {
                        tracing::warn!("a line on stdin was over 32 MiB and is ignored");
                    }
                    self.dropping = true;
                    self.line.clear();
                }
                // The input has ended within a line; the next read returns 0.
                Ok(_) => {}
            }
        }
    }
}

impl<R, W> StdioTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    /// Answers a request that rmcp does not get. A separate task writes the answer, because rmcp may drop the future of
    /// `receive` when half a line is written.
    fn refuse(&mut self, id: RequestId, message: &str) {
        let error = ErrorData::invalid_request(message.to_owned(), None);
        let write = Arc::clone(&self.write);
        // A request that rmcp still handles may have the same id.
        let answer = to_line(&ServerJsonRpcMessage::error(error, Some(id)));
        let answer = answer.map(|line| self.unread.add_answer(line, Some(self.unread.count_pending())));
        tokio::spawn(async move { write_line(&write, &answer?.line).await });
    }
}

impl<R, W> Transport<RoleServer> for StdioTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = Arc::clone(&self.write);
        let request = answered_id(&item).map(|id| self.open.remove(id).unwrap_or_else(|| self.unread.count_pending()));
        let answer = to_line(&item).map(|line| self.unread.add_answer(line, request));
        async move { write_line(&write, &answer?.line).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.unread.are_few().await;
            if !self.next_line().await {
                self.ended.notify_one();
                return None;
            }
            let parsed = parse_message(&self.line);
            let id = if parsed.is_err() { find_request_id(&self.line) } else { None };
            self.line.clear();
            self.line.shrink_to(KEPT_LINE_BYTES);
            match parsed {
                Ok(JsonRpcMessage::Request(request)) if self.open.contains_key(&request.id) => {
                    self.refuse(request.id, "This id is that of a request without an answer; give each its own.");
                }
                Ok(JsonRpcMessage::Request(mut request)) => {
                    self.opened = true;
                    self.open.insert(request.id.clone(), self.unread.count_pending());
                    request.request.extensions_mut().insert(Arc::new(self.unread.count_handled()));
                    return Some(JsonRpcMessage::Request(request));
                }
                Ok(message) if self.opened => {
                    if let Some(id) = cancelled_id(&message) {
                        self.open.remove(id);
                    }
                    return Some(message);
                }
                Ok(_) => {}
                // Garbage without an id gets no answer: no client waits for one, and an answer could provoke more
                // garbage.
                Err(error) => {
                    if let Some(id) = id {
                        self.refuse(id, &format!("This is not an MCP request: {error}."));
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.shutdown().await
    }
}

/// Counts the bytes of unwritten answers, and the requests without a written answer.
#[derive(Default)]
struct UnreadAnswers {
    bytes: AtomicUsize,
    /// The number of requests whose handler runs; includes cancelled requests.
    handled: AtomicUsize,
    /// The number of requests whose answer is not written; without cancelled requests.
    pending: AtomicUsize,
    written: Notify,
}

impl UnreadAnswers {
    fn add_answer(self: &Arc<Self>, line: Vec<u8>, request: Option<CountedRequest>) -> UnreadAnswer {
        self.bytes.fetch_add(line.len(), Ordering::Relaxed);
        UnreadAnswer { all: Arc::clone(self), line, _request: request }
    }

    fn count_handled(self: &Arc<Self>) -> CountedRequest {
        CountedRequest::new(self, |all| &all.handled)
    }

    fn count_pending(self: &Arc<Self>) -> CountedRequest {
        CountedRequest::new(self, |all| &all.pending)
    }

    /// Waits until there is room for more answers. A caller may drop the future and call again.
    async fn are_few(&self) {
        while self.bytes.load(Ordering::Relaxed) > MAX_UNREAD_BYTES
            || self.handled.load(Ordering::Relaxed) >= MAX_UNANSWERED
            || self.pending.load(Ordering::Relaxed) >= MAX_UNANSWERED
        {
            self.written.notified().await;
        }
    }
}

/// Counts a request until this value is dropped.
struct CountedRequest {
    all: Arc<UnreadAnswers>,
    counter: fn(&UnreadAnswers) -> &AtomicUsize,
}

impl CountedRequest {
    fn new(all: &Arc<UnreadAnswers>, counter: fn(&UnreadAnswers) -> &AtomicUsize) -> Self {
        counter(all).fetch_add(1, Ordering::Relaxed);
        Self { all: Arc::clone(all), counter }
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        (self.counter)(&self.all).fetch_sub(1, Ordering::Relaxed);
        // If no task waits now, the permit stays for the next task that waits.
        self.all.written.notify_one();
    }
}

/// An answer that is not written yet. It counts until this value is dropped.
struct UnreadAnswer {
    all: Arc<UnreadAnswers>,
    line: Vec<u8>,
    _request: Option<CountedRequest>,
}

impl Drop for UnreadAnswer {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.line.len(), Ordering::Relaxed);
        self.all.written.notify_one();
    }
}

/// Returns the id of the request that a message answers.
fn answered_id(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Returns the id of the request that a message cancels.
fn cancelled_id(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

async fn write_line<W: AsyncWrite + Unpin>(write: &Mutex<W>, line: &[u8]) -> io::Result<()> {
    let mut write = write.lock().await;
    write.write_all(line).await?;
    write.flush().await
}

/// Parses a message. Takes the arguments of a tool call out of the text before rmcp parses the rest.
fn parse_message(line: &[u8]) -> serde_json::Result<ClientJsonRpcMessage> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if let Some(call) = tool_call(line) {
        return Ok(call);
    }
    let (message, arguments) = without_arguments(line);
    let mut message: ClientJsonRpcMessage = serde_json::from_slice(&message)?;
    if let (JsonRpcMessage::Request(request), Some(arguments)) = (&mut message, arguments) {
        request.request.extensions_mut().insert(RawArguments(arguments));
    }
    Ok(message)
}

/// Parses a plain `tools/call`, the most frequent message, without rmcp: rmcp needs more time to find the type of a
/// message than the whole call takes. Returns `None` for any other message, which rmcp then parses.
fn tool_call(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ToolCallMessage<'a> {
        jsonrpc: &'a str,
        id: RequestId,
        method: &'a str,
        #[serde(borrow)]
        params: ToolCallParams<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ToolCallParams<'a> {
        name: String,
        #[serde(borrow)]
        arguments: &'a RawValue,
        #[serde(rename = "_meta")]
        meta: Option<RequestMetaObject>,
    }
    let ToolCallMessage { jsonrpc: "2.0", id, method: "tools/call", params } = serde_json::from_slice(line).ok()?
    else {
        return None;
    };
    let mut request = CallToolRequest::new(CallToolRequestParams::new(params.name));
    request.extensions.insert(RawArguments(params.arguments.to_owned()));
    if let Some(meta) = params.meta {
        request.extensions.insert(meta);
    }
    Some(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

fn without_arguments(line: &[u8]) -> (Cow<'_, [u8]>, Option<Box<RawValue>>) {
    taken_apart(line).map_or((Cow::Borrowed(line), None), |(rest, arguments)| (Cow::Owned(rest), Some(arguments)))
}

/// Splits a tool call into the message without `arguments`, and the arguments. Returns `None` for other messages.
pub fn taken_apart(line: &[u8]) -> Option<(Vec<u8>, Box<RawValue>)> {
    let mut members: Members<'_> = serde_json::from_slice(line).ok()?;
    if members.get("method")?.get() != "\"tools/call\"" {
        return None;
    }
    let mut params: Members<'_> = serde_json::from_str(members.get("params")?.get()).ok()?;
    let arguments = params.remove("arguments")?.to_owned();
    let params = to_raw_value(&params).ok()?;
    members.insert("params".into(), &params);
    Some((serde_json::to_vec(&members).ok()?, arguments))
}

/// Finds the id of a request that rmcp cannot parse. Returns `None` if the message is no request.
pub fn find_request_id(line: &[u8]) -> Option<RequestId> {
    let members: Members<'_> = serde_json::from_slice(line).ok()?;
    members.get("method")?;
    serde_json::from_str(members.get("id")?.get()).ok()
}

/// Writes a message as one line.
fn to_line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = match with_structured_content(message) {
        Some(reply) => serde_json::to_vec(&reply)?,
        None => serde_json::to_vec(message)?,
    };
    line.push(b'\n');
    Ok(line)
}

#[derive(Serialize)]
struct ToolCallReply<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: StructuredResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StructuredResult<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'a ResultType>,
    content: &'a [ContentBlock],
    structured_content: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a MetaObject>,
}

/// The place of the JSON that goes out as `structuredContent`. A handler marks a result with it, as the result itself
/// would hold a parsed copy, which loses digits.
pub enum RawStructure {
    /// It is beside the text.
    Text(Box<RawValue>),
    /// It is the text of the one content block.
    Content,
}

impl RawStructure {
    /// Returns the mark for the result: a string with the JSON, or true. Neither occurs as `structuredContent`
    /// otherwise, which is an object.
    pub fn to_mark(self) -> Value {
        match self {
            Self::Text(json) => Value::String(Box::<str>::from(json).into()),
            Self::Content => Value::Bool(true),
        }
    }
}

/// Writes the `structuredContent` that a mark stands for.
fn with_structured_content(message: &ServerJsonRpcMessage) -> Option<ToolCallReply<'_>> {
    let JsonRpcMessage::Response(response) = message else { return None };
    let ServerResult::CallToolResult(result) = &response.result else { return None };
    let json = match (&result.structured_content, &result.content[..]) {
        (Some(Value::String(json)), _) => json,
        (Some(Value::Bool(true)), [ContentBlock::Text(content)]) => &content.text,
        _ => return None,
    };
    let structured_content: &RawValue = serde_json::from_str(json).ok()?;
    let CallToolResult { result_type, content, is_error, meta, .. } = result;
    let (result_type, is_error, meta) = (result_type.as_ref(), *is_error, meta.as_ref());
    let result = StructuredResult { result_type, content, structured_content, is_error, meta };
    Some(ToolCallReply { jsonrpc: "2.0", id: &response.id, result })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::DuplexStream;
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn a_client_that_reads_no_answers_is_not_read_from() {
        const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
        const ANSWERS: usize = 10;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut theirs, requests) = tokio::io::duplex(1 << 10);
            let (answers, mut read) = tokio::io::duplex(1 << 10);
            let mut transport = StdioTransport::new(requests, answers);
            theirs.write_all(PING).await.unwrap();
            assert!(transport.receive().await.is_some());
            let text = "x".repeat(MAX_UNREAD_BYTES / ANSWERS + 1);
            for id in 0..ANSWERS {
                let error = ErrorData::internal_error(text.clone(), None);
                let id = RequestId::Number(i64::try_from(id).unwrap());
                tokio::spawn(transport.send(ServerJsonRpcMessage::error(error, Some(id))));
            }
            theirs.write_all(PING).await.unwrap();
            let waited = timeout(std::time::Duration::from_millis(20), transport.receive()).await;
            assert!(waited.is_err(), "a request was read while {MAX_UNREAD_BYTES} bytes are unread");
            let mut half = vec![0; text.len()];
            read.read_exact(&mut half).await.unwrap();
            assert!(transport.receive().await.is_some(), "there is room again");
        });
    }

    fn ping(id: usize) -> Vec<u8> {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").into_bytes()
    }

    fn number(id: usize) -> RequestId {
        RequestId::Number(i64::try_from(id).unwrap())
    }

    /// Runs `play` with a transport, the stream that the client writes to, and the stream that the client reads from.
    fn with_client<P>(play: impl FnOnce(StdioTransport<DuplexStream, DuplexStream>, DuplexStream, DuplexStream) -> P)
    where
        P: Future<Output = ()>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (theirs, requests) = tokio::io::duplex(1 << 20);
            let (answers, read) = tokio::io::duplex(64);
            play(StdioTransport::new(requests, answers), theirs, read).await;
        });
    }

    async fn is_read_from<R, W>(transport: &mut StdioTransport<R, W>) -> bool
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        timeout(std::time::Duration::from_millis(20), transport.receive()).await.is_ok()
    }

    #[test]
    fn requests_wait_while_many_are_handled() {
        with_client(async |mut transport, mut theirs, _read| {
            let mut handled = Vec::new();
            for id in 0..MAX_UNANSWERED {
                theirs.write_all(&ping(id)).await.unwrap();
                handled.push(transport.receive().await.expect("a request"));
                // The client cancels the request, but the handler runs until it notices the cancellation.
                transport.open.remove(&number(id));
            }
            theirs.write_all(&ping(MAX_UNANSWERED)).await.unwrap();
            assert!(!is_read_from(&mut transport).await, "a request was read while {MAX_UNANSWERED} are handled");
            // Drops the request, as rmcp does with an answered or cancelled request.
            handled.pop();
            assert!(is_read_from(&mut transport).await, "there is room again");
        });
    }

    /// The answers to pings are small, but rmcp uses much memory for each of them.
    #[test]
    fn requests_wait_while_many_have_no_answer_that_is_read() {
        with_client(async |mut transport, mut theirs, mut read| {
            for id in 0..MAX_UNANSWERED {
                theirs.write_all(&ping(id)).await.unwrap();
                // rmcp drops a request after its handler has ended, even if the answer is not written yet.
                drop(transport.receive().await.expect("a request"));
            }
            theirs.write_all(&ping(MAX_UNANSWERED)).await.unwrap();
            assert!(!is_read_from(&mut transport).await, "a request was read while no answer is sent");
            for id in 0..MAX_UNANSWERED {
                // The pipe has room for half of the answers.
                let error = ErrorData::internal_error("x".repeat(64), None);
                tokio::spawn(transport.send(ServerJsonRpcMessage::error(error, Some(number(id)))));
            }
            assert!(!is_read_from(&mut transport).await, "a request was read while no answer is read");
            let mut some = [0; 200];
            read.read_exact(&mut some).await.unwrap();
            assert!(is_read_from(&mut transport).await, "there is room again");
        });
    }

    #[test]
    fn a_request_that_is_cancelled_gives_its_place_back() {
        with_client(async |mut transport, mut theirs, _read| {
            for id in 0..=MAX_UNANSWERED {
                let cancel =
                    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
                theirs.write_all(&[ping(id), format!("{cancel}\n").into_bytes()].concat()).await.unwrap();
                drop(transport.receive().await.expect("a request"));
                assert!(matches!(transport.receive().await, Some(JsonRpcMessage::Notification(_))));
            }
            assert!(transport.open.is_empty());
        });
    }

    #[test]
    fn an_id_that_is_in_use_is_refused_and_its_request_stays() {
        with_client(async |mut transport, mut theirs, read| {
            theirs.write_all(&[ping(1), ping(1), ping(2)].concat()).await.unwrap();
            for id in [1, 2] {
                let Some(JsonRpcMessage::Request(request)) = transport.receive().await else { panic!("a request") };
                assert_eq!(request.id, number(id));
            }
            let refused = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
            assert!(refused.contains("\"id\":1") && refused.contains("give each its own"), "{refused}");
            assert_eq!(transport.open.len(), 2);
        });
    }

    /// rmcp drops the future of `receive` whenever another event comes first.
    #[test]
    fn the_answer_to_a_malformed_request_is_written_whole_by_a_receive_that_is_dropped() {
        with_client(async |mut transport, mut theirs, read| {
            let malformed = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":5}"#;
            theirs.write_all(format!("{malformed}\n").repeat(3).as_bytes()).await.unwrap();
            // The pipe has room for half of an answer.
            assert!(!is_read_from(&mut transport).await);
            let mut lines = BufReader::new(read).lines();
            for _ in 0..3 {
                let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
                assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)), "{answer}");
            }
        });
    }
}
