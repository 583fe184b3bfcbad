//! HTTP: connections, bodies and their limits. [`door`] decides which requests are let in; [`rpc`] and, under
//! `/mcp`, [`mcp`] answer them.

pub mod door;
pub mod mcp;
pub mod reply;
pub mod request;
pub mod rpc;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nudge::Service;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_io_timeout::TimeoutStream;

use super::MAX_BODY_BYTES;
use super::memory;
use super::session::history::History;
use super::session::proxies::{ConnectedProxy, Proxies};
use door::{Door, Refusal, Route};
use mcp::McpHttp;
use reply::{empty, json};
use request::Head;

/// Request header with the pid of the PROXY that calls; for `nudge.status`, never for a decision.
pub const PROXY_HEADER: &str = "nudge-proxy";

/// Largest number of connections; further ones wait in the listener's queue.
const MAX_CONNECTIONS: u32 = 512;
/// Total time for a head, and so the longest idle time of a kept connection. With
/// [`BODY_TIMEOUT`] a request has 30 seconds in all, however slowly it is sent.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Total time for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a peer may read nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which the body of a refused request is read and dropped, so that the sender gets to read the refusal.
const LINGER: Duration = Duration::from_secs(2);
/// Largest request line and headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
const BUFFER_BYTES: usize = 64 << 10;
/// Pause when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A whole answer, or the answer of `/mcp`, which may be a stream.
type HttpResponse = Response<Either<Full<Bytes>, BoxBody<Bytes, Infallible>>>;

/// A handle on all accepted connections.
pub struct Connections {
    free: Arc<Semaphore>,
}

/// Accepts connections until `stopped` becomes true.
pub fn spawn(listener: TcpListener, endpoint: Endpoint, stopped: watch::Receiver<bool>) -> Connections {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    tokio::spawn(accept(listener, Arc::new(endpoint), Arc::clone(&free), stopped));
    Connections { free }
}

impl Connections {
    /// Waits until all connections have answered and closed, for `patience` at the most.
    pub async fn drained(&self, patience: Duration) {
        let _ = timeout(patience, self.free.acquire_many(MAX_CONNECTIONS)).await;
    }
}

/// The state that all connections share.
pub struct Endpoint {
    /// The checks of a request's head.
    pub door: Door,
    /// The service that answers calls.
    pub service: Arc<dyn Service>,
    /// The last changes, for `nudge.changes`.
    pub history: Arc<History>,
    /// The PROXYs among the callers.
    pub proxies: Arc<Proxies>,
    /// The handler of `/mcp`.
    pub mcp: McpHttp,
}

async fn accept(
    listener: TcpListener,
    endpoint: Arc<Endpoint>,
    free: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    let builder = builder();
    loop {
        let accepted = async {
            let permit = Arc::clone(&free).acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        let accepted = tokio::select! {
            accepted = accepted => accepted,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Some((permit, Ok((stream, _)))) => {
                let connection = connection(builder.clone(), stream, Arc::clone(&endpoint), stopped.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
            // The system is out of descriptors, or the peer has gone already: the listener itself still works.
            Some((_, Err(_))) => sleep(ACCEPT_PAUSE).await,
            None => return,
        }
    }
}

fn builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES);
    builder
}

async fn connection(
    builder: http1::Builder,
    stream: TcpStream,
    endpoint: Arc<Endpoint>,
    mut stopped: watch::Receiver<bool>,
) {
    // An answer is one write that nothing follows; Nagle's algorithm would only delay it.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let proxy = Arc::new(OnceLock::new());
    let service = service_fn(move |request| {
        let (endpoint, proxy) = (Arc::clone(&endpoint), Arc::clone(&proxy));
        async move { Ok::<_, Infallible>(endpoint.answer(request, &proxy).await) }
    });
    // hyper and `read` limit the time for reading; this limit is for peers that do not read the answer.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let stream = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(builder.serve_connection(stream, service));
    // Errors of a connection are ignored: only its peer is affected.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

impl Endpoint {
    /// Answers a request. `proxy` is set by the first request on the connection that has a [`PROXY_HEADER`].
    async fn answer(&self, request: Request<Incoming>, proxy: &OnceLock<ConnectedProxy>) -> HttpResponse {
        let (head, mut body) = request.into_parts();
        let read = match self.door.check(&head) {
            Ok(Route::Health) => return health().map(Either::Left),
            // The bodies of GET and DELETE are ignored.
            Ok(Route::Mcp) if head.method != Method::POST => {
                return self.mcp.answer(head, Bytes::new()).await.map(Either::Right);
            }
            Ok(route) => read(&mut body).await.map(|bytes| (route, bytes)),
            Err(refusal) => Err(refusal),
        };
        match read {
            Ok((Route::Mcp, bytes)) => {
                memory::used(bytes.len());
                self.mcp.answer(head, bytes).await.map(Either::Right)
            }
            Ok((_, bytes)) => {
                memory::used(bytes.len());
                if let Some(pid) = head.headers.get(PROXY_HEADER) {
                    let pid = pid.to_str().ok().and_then(|pid| pid.parse().ok());
                    pid.map(|pid| proxy.get_or_init(|| self.proxies.enter(pid)));
                }
                let caller = Head::read(&head.headers);
                match request::answer(Arc::clone(&self.service), &self.history, caller, bytes).await {
                    Some(answer) => {
                        memory::used(answer.len());
                        json(StatusCode::OK, answer).map(Either::Left)
                    }
                    None => empty(StatusCode::ACCEPTED).map(Either::Left),
                }
            }
            Err(refusal) => {
                tracing::info!(status = refusal.status().as_u16(), "refused a request");
                // With `Expect: 100-continue` the client waits for a go-ahead, so that there is no body to drop.
                if !body.is_end_stream() && !head.headers.contains_key(header::EXPECT) {
                    tokio::spawn(swallow(body));
                }
                refusal.response().map(Either::Left)
            }
        }
    }
}

/// Reads a body within the limits of size and time.
async fn read(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let deadline = Instant::now() + BODY_TIMEOUT;
    let mut whole = Bytes::new();
    let mut parts = BytesMut::new();
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Refusal::too_slow()),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Refusal::broken()),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + parts.len() + data.len() > MAX_BODY_BYTES {
            return Err(Refusal::too_large());
        }
        // Most bodies come in one piece, which needs no copy.
        if whole.is_empty() && parts.is_empty() {
            whole = data;
        } else {
            parts.extend_from_slice(&std::mem::take(&mut whole));
            parts.extend_from_slice(&data);
        }
    }
    Ok(if parts.is_empty() { whole } else { parts.freeze() })
}

/// Reads and drops the rest of a body: closing with unread bytes would reset the connection before the sender has
/// read the refusal.
async fn swallow(mut body: Incoming) {
    let _ = timeout(LINGER, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

fn health() -> Response<Full<Bytes>> {
    let mut response = json(StatusCode::OK, concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").into());
    // `/health` needs no token, so its connection is closed, as after a refusal.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
