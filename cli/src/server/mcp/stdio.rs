//! MCP over stdin and stdout, one message per line, with three things that rmcp's own transport does not do:
//!
//! - `arguments` of `tools/call` reach the service as raw JSON text, and its result goes out the
//!   same way: key order, duplicate keys and large integers would not survive rmcp's `Value`, and a
//!   large export would be parsed only to be written again;
//! - notifications that come before the first request are ignored instead of ending the server;
//! - a malformed request is answered with its id;
//! - while the client leaves `MAX_UNREAD_BYTES` of answers unread, or `MAX_UNANSWERED` requests have no answer yet, no
//!   further one is read.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientJsonRpcMessage, ClientNotification, ClientRequest,
    ContentBlock, ErrorData, GetExtensions, JsonRpcError, JsonRpcMessage, JsonRpcNotification, RequestId,
    RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Mutex, Notify};

use crate::server::MAX_BODY_BYTES;

/// Longest line, as large as a body over HTTP.
const MAX_LINE_BYTES: usize = MAX_BODY_BYTES;
/// Bytes of answers that the client has not read, from which on its requests wait.
const MAX_UNREAD_BYTES: usize = 4 << 20;
/// Requests without an answer, from which on further ones wait. rmcp holds each answer until it can be written: some
/// 75 KB for `tools/list`.
const MAX_UNANSWERED: usize = 256;
const READ_BUFFER_BYTES: usize = 16 << 10;
/// Size to which the line buffer shrinks after a large line.
const KEPT_LINE_BYTES: usize = 64 << 10;

/// The `arguments` of a `tools/call` as raw JSON text; passed in the request's extensions.
#[derive(Clone)]
pub struct RawArguments(pub Box<RawValue>);

/// rmcp's transport over a pair of pipes.
pub struct StdioTransport<R, W> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// Set while the rest of a line that is too long is dropped.
    dropping: bool,
    /// Set once a request has come: from then on rmcp takes notifications too.
    opened: bool,
    write: Arc<Mutex<W>>,
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
            unread: Arc::default(),
            ended: Arc::default(),
        }
    }

    /// Returns the notification of the end of the input; answers to earlier requests may still be under way.
    pub fn ended(&self) -> Arc<Notify> {
        Arc::clone(&self.ended)
    }

    /// Puts the next line into `self.line`; false at the end of the input.
    ///
    /// Cancel-safe: what was read stays in `self.line`, and the next call reads on.
    async fn next_line(&mut self) -> bool {
        loop {
            let room = MAX_LINE_BYTES + 1 - self.line.len();
            let read = (&mut self.read).take(room as u64).read_until(b'\n', &mut self.line).await;
            let ended = self.line.last() == Some(&b'\n');
            match read {
                Ok(0) | Err(_) if self.line.is_empty() || self.dropping => return false,
                // The last line may lack its newline.
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
                // The input ended within a line; the next read returns 0.
                Ok(_) => {}
            }
        }
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
        match &item {
            JsonRpcMessage::Response(response) => self.unread.answer(&response.id),
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => self.unread.answer(id),
            _ => {}
        }
        let answer = line(&item).map(|line| self.unread.enter(line));
        async move { write_line(&write, &answer?.line).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            self.unread.are_few().await;
            if !self.next_line().await {
                self.ended.notify_one();
                return None;
            }
            let parsed = parse(&self.line);
            let id = if parsed.is_err() { id(&self.line) } else { None };
            self.line.clear();
            self.line.shrink_to(KEPT_LINE_BYTES);
            match parsed {
                Ok(message) => {
                    match &message {
                        JsonRpcMessage::Request(request) => {
                            self.opened = true;
                            self.unread.ask(request.id.clone());
                        }
                        // rmcp drops the answer of a request that is cancelled.
                        JsonRpcMessage::Notification(JsonRpcNotification {
                            notification: ClientNotification::CancelledNotification(cancelled),
                            ..
                        }) => cancelled.params.request_id.iter().for_each(|id| self.unread.answer(id)),
                        _ => {}
                    }
                    if self.opened {
                        return Some(message);
                    }
                }
                // Garbage without an id gets no answer: nobody waits for one, and it could cause more garbage.
                Err(error) => {
                    if let Some(id) = id {
                        let error = ErrorData::invalid_request(format!("This is not an MCP request: {error}."), None);
                        let answered = self.send(ServerJsonRpcMessage::error(error, Some(id))).await;
                        answered.ok()?;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.shutdown().await
    }
}

/// Counts the requests that have no answer, and the bytes of answers that are not written yet.
#[derive(Default)]
struct UnreadAnswers {
    bytes: AtomicUsize,
    unanswered: parking_lot::Mutex<HashMap<RequestId, usize>>,
    written: Notify,
}

impl UnreadAnswers {
    fn enter(self: &Arc<Self>, line: Vec<u8>) -> UnreadAnswer {
        self.bytes.fetch_add(line.len(), Ordering::Relaxed);
        UnreadAnswer { all: Arc::clone(self), line }
    }

    fn ask(&self, id: RequestId) {
        *self.unanswered.lock().entry(id).or_default() += 1;
    }

    /// Counts the requests of an id as answered: rmcp answers one of several with the same id.
    fn answer(&self, id: &RequestId) {
        self.unanswered.lock().remove(id);
        self.written.notify_one();
    }

    /// Waits until there is room for answers. It may be dropped and called again.
    async fn are_few(&self) {
        while self.bytes.load(Ordering::Relaxed) > MAX_UNREAD_BYTES
            || self.unanswered.lock().values().sum::<usize>() >= MAX_UNANSWERED
        {
            self.written.notified().await;
        }
    }
}

/// An answer that is not written yet, counted until this is dropped.
struct UnreadAnswer {
    all: Arc<UnreadAnswers>,
    line: Vec<u8>,
}

impl Drop for UnreadAnswer {
    fn drop(&mut self) {
        self.all.bytes.fetch_sub(self.line.len(), Ordering::Relaxed);
        // It stays for the next who waits.
        self.all.written.notify_one();
    }
}

async fn write_line<W: AsyncWrite + Unpin>(write: &Mutex<W>, line: &[u8]) -> io::Result<()> {
    let mut write = write.lock().await;
    write.write_all(line).await?;
    write.flush().await
}

/// Parses a message. The arguments of a tool call are taken out of the text before rmcp parses the rest.
fn parse(line: &[u8]) -> serde_json::Result<ClientJsonRpcMessage> {
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

/// Parses a plain `tools/call`, the most frequent message, directly: rmcp's way of finding a message's type costs
/// more than the call. `None` for anything unusual, which rmcp parses.
fn tool_call(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Message<'a> {
        jsonrpc: &'a str,
        id: RequestId,
        method: &'a str,
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params<'a> {
        name: String,
        #[serde(borrow)]
        arguments: &'a RawValue,
        #[serde(rename = "_meta")]
        meta: Option<RequestMetaObject>,
    }
    let Message { jsonrpc: "2.0", id, method: "tools/call", params } = serde_json::from_slice(line).ok()? else {
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

/// Splits a tool call into the message without `arguments`, and these; `None` for other messages.
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

/// Finds the id of a request that rmcp cannot parse.
pub fn id(line: &[u8]) -> Option<RequestId> {
    let members: Members<'_> = serde_json::from_slice(line).ok()?;
    members.get("method")?;
    serde_json::from_str(members.get("id")?.get()).ok()
}

/// Writes a message as one line.
fn line(message: &ServerJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = match structured(message) {
        Some(reply) => serde_json::to_vec(&reply)?,
        None => serde_json::to_vec(message)?,
    };
    line.push(b'\n');
    Ok(line)
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: Structured<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structured<'a> {
    #[serde(flatten)]
    result: &'a CallToolResult,
    structured_content: &'a RawValue,
}

/// Adds `structuredContent` to the result of a tool call that succeeded, copied from its one JSON text. It must be an
/// object for clients of before 2026, so that a list is told as text alone.
fn structured(message: &ServerJsonRpcMessage) -> Option<Reply<'_>> {
    let JsonRpcMessage::Response(response) = message else { return None };
    let ServerResult::CallToolResult(result) = &response.result else { return None };
    let ([ContentBlock::Text(content)], None, Some(false)) =
        (&result.content[..], &result.structured_content, result.is_error)
    else {
        return None;
    };
    let structured_content: &RawValue = serde_json::from_str(&content.text).ok()?;
    if !structured_content.get().starts_with('{') {
        return None;
    }
    Some(Reply { jsonrpc: "2.0", id: &response.id, result: Structured { result, structured_content } })
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn who_reads_no_answers_is_not_read_from() {
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

    #[test]
    fn requests_wait_while_many_have_no_answer() {
        let ping = |id: usize| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut theirs, requests) = tokio::io::duplex(64 << 10);
            let mut transport = StdioTransport::new(requests, tokio::io::sink());
            let all: String = (0..MAX_UNANSWERED + 2).map(ping).collect();
            theirs.write_all(all.as_bytes()).await.unwrap();
            for _ in 0..MAX_UNANSWERED {
                // rmcp drops a request once it is handled, and its answer may wait.
                transport.receive().await.expect("a request");
            }
            let pause = std::time::Duration::from_millis(20);
            let waited = timeout(pause, transport.receive()).await;
            assert!(waited.is_err(), "a request was read while {MAX_UNANSWERED} have no answer");
            let answer = ErrorData::internal_error("", None);
            transport.send(ServerJsonRpcMessage::error(answer, Some(RequestId::Number(3)))).await.unwrap();
            assert!(transport.receive().await.is_some(), "there is room again");
            assert!(timeout(pause, transport.receive()).await.is_err(), "there is room for one");
        });
    }
}
