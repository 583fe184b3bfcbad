//! HTTP: connections, bodies and their limits. [`accept`] gives connections their places, [`door`] decides which
//! requests are let in; [`rpc`], under `/mcp` [`mcp`] and under `/api` [`api`] answer them.

pub mod accept;
pub mod api;
pub mod door;
pub mod mcp;
pub mod ports;
pub mod reply;
pub mod request;
pub mod rpc;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
use nudge_core::service::Lane;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_io_timeout::TimeoutStream;

use super::memory;
use super::page::{self, Page};
use super::session::history::History;
use super::session::proxies::{ConnectedProxy, Proxies};
use super::work::{CallerId, WorkDesk, WorkPool};
use accept::{Accepted, Connections, Listeners, Peer};
use door::{Door, Refusal, Route};
use mcp::McpHttp;
use reply::{empty, json};
use request::Head;

/// Request header with the pid of the PROXY that calls; for `nudge.status`, never for a decision.
pub const PROXY_HEADER: &str = "nudge-proxy";

/// Total time for a head, and so the longest idle time of a kept connection. With
/// [`BODY_TIMEOUT`] a request has 30 seconds in all, however slowly it is sent.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Total time for a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which a peer may read nothing of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for which the body of a refused request is read and dropped, so that the sender gets to read the refusal.
const LINGER: Duration = Duration::from_secs(2);
/// Time between two log lines about refused requests.
const REFUSALS_PAUSE: Duration = Duration::from_mins(1);
/// Largest request line and headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
const BUFFER_BYTES: usize = 64 << 10;

/// A whole answer, or the answer of `/mcp`, which may be a stream.
type HttpResponse = Response<Either<Full<Bytes>, BoxBody<Bytes, Infallible>>>;

/// Serves connections until `stopped` becomes true.
pub fn spawn(listeners: Listeners, endpoint: Endpoint, stopped: &watch::Receiver<bool>) -> Connections {
    let (builder, endpoint, told) = (builder(), Arc::new(endpoint), stopped.clone());
    Connections::accept(listeners, stopped, move |accepted| {
        tokio::spawn(connection(builder.clone(), accepted, Arc::clone(&endpoint), told.clone()));
    })
}

/// The state that all connections share.
pub struct Endpoint {
    /// The checks of a request's head.
    pub door: Door,
    /// The service that answers calls.
    pub service: Arc<dyn Service>,
    /// The page, with its codes and tokens.
    pub page: Arc<Page>,
    /// The service that answers the page's calls.
    pub for_page: Arc<dyn Service>,
    /// The last changes, for `nudge.changes`.
    pub history: Arc<History>,
    /// The PROXYs among the callers.
    pub proxies: Arc<Proxies>,
    /// The places of calls.
    pub work: Arc<WorkPool>,
    /// The handler of `/mcp`.
    pub mcp: McpHttp,
    /// The refusals, for the log.
    pub refused: Refused,
}

/// Logs refusals. Anybody on this machine can cause them, so they get a line a minute at most, or they would roll
/// everything else out of the log.
#[derive(Default)]
pub struct Refused(Mutex<Option<(Instant, u64)>>);

impl Refused {
    fn note(&self, status: StatusCode) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some((at, more)) if at.elapsed() < REFUSALS_PAUSE => *more += 1,
            _ => {
                let unsaid = last.take().map_or(0, |(_, more)| more);
                tracing::info!(status = status.as_u16(), unsaid, "refused a request");
                *last = Some((Instant::now(), 0));
            }
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
    accepted: Accepted,
    endpoint: Arc<Endpoint>,
    mut stopped: watch::Receiver<bool>,
) {
    let Accepted { stream, peer, place: _place } = accepted;
    let peer = Arc::new(peer);
    let (proxy, other) = (Arc::new(OnceLock::new()), Arc::clone(&peer));
    let service = service_fn(move |request| {
        let (endpoint, proxy, peer) = (Arc::clone(&endpoint), Arc::clone(&proxy), Arc::clone(&other));
        async move { Ok::<_, Infallible>(endpoint.answer(request, &peer, &proxy).await) }
    });
    // hyper and `read` limit the time for reading; this limit is for peers that do not read the answer.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let stream = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(builder.serve_connection(stream, service));
    // Errors of a connection are ignored: only its peer is affected.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = peer.dismissed() => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

impl Endpoint {
    /// Answers a request. `proxy` is set by the first request on the connection that has a [`PROXY_HEADER`].
    async fn answer(&self, request: Request<Incoming>, peer: &Peer, proxy: &OnceLock<ConnectedProxy>) -> HttpResponse {
        let (head, mut body) = request.into_parts();
        peer.has_spoken();
        if peer.is_over_its_share() {
            return Refusal::over_its_share().response().map(Either::Left);
        }
        let checked = self.door.check(&head, peer.is_local(), &self.page);
        if checked.as_ref().is_ok_and(|route| route.takes_token()) {
            peer.is_let_in();
        }
        let read = match checked {
            Ok(Route::Health) => return health().map(Either::Left),
            Ok(Route::PageFile(file)) => return page::respond(file).map(Either::Left),
            // The bodies of GET and DELETE are ignored.
            Ok(Route::Mcp) if head.method != Method::POST => {
                return self.mcp.answer(head, Bytes::new(), &self.desk(peer, proxy)).await.map(Either::Right);
            }
            Ok(Route::PageSession) => match read(&mut body, Route::PageSession.max_body_bytes()).await {
                Ok(bytes) => self.enter_page(bytes, peer).await.map(|answer| (Route::PageSession, answer)),
                Err(refusal) => Err(refusal),
            },
            Ok(route) => read(&mut body, route.max_body_bytes()).await.map(|bytes| (route, bytes)),
            Err(refusal) => Err(refusal),
        };
        match read {
            Ok((Route::Mcp, bytes)) => {
                memory::used(bytes.len());
                self.mcp.answer(head, bytes, &self.desk(peer, proxy)).await.map(Either::Right)
            }
            Ok((Route::Api { api, by_page }, body)) => {
                let (service, caller, desk) = if by_page {
                    (&self.for_page, Head::of_page(&head.headers), self.work.desk(CallerId::Page))
                } else {
                    (&self.service, Head::read(&head.headers), self.desk(peer, proxy))
                };
                let query = head.uri.query().map(str::to_owned);
                let asked = api::Asked { api, method: head.method, query, body };
                let (status, answer) = api::answer(&desk, Arc::clone(service), caller, asked).await;
                memory::used(answer.len());
                json(status, answer).map(Either::Left)
            }
            Ok((Route::PageSession, answer)) => closing(json(StatusCode::OK, answer)).map(Either::Left),
            Ok((route, bytes)) => {
                memory::used(bytes.len());
                if let Some(pid) = head.headers.get(PROXY_HEADER).filter(|_| route == Route::Rpc) {
                    let pid = pid.to_str().ok().and_then(|pid| pid.parse().ok());
                    pid.map(|pid| proxy.get_or_init(|| self.proxies.enter(pid)));
                }
                let (service, caller, desk) = match route {
                    Route::PageRpc => (&self.for_page, Head::of_page(&head.headers), self.work.desk(CallerId::Page)),
                    _ => (&self.service, Head::read(&head.headers), self.desk(peer, proxy)),
                };
                let asked = request::Asked { service: Arc::clone(service), history: &self.history, desk };
                match request::answer(asked, caller, bytes).await {
                    Some(answer) => {
                        memory::used(answer.len());
                        json(StatusCode::OK, answer).map(Either::Left)
                    }
                    None => empty(StatusCode::ACCEPTED).map(Either::Left),
                }
            }
            Err(refusal) => {
                self.refused.note(refusal.status());
                // With `Expect: 100-continue` the client waits for a go-ahead, so that there is no body to drop.
                if !body.is_end_stream() && !head.headers.contains_key(header::EXPECT) {
                    tokio::spawn(swallow(body));
                }
                refusal.response().map(Either::Left)
            }
        }
    }
}

impl Endpoint {
    /// Returns the places of the caller at the other end.
    fn desk(&self, peer: &Peer, proxy: &OnceLock<ConnectedProxy>) -> WorkDesk {
        self.work.desk(peer.caller(proxy.get().map(ConnectedProxy::pid)))
    }

    /// Takes a code of the page. Looks up the sender's process in a file of the system.
    async fn enter_page(&self, code: Bytes, peer: &Peer) -> Result<Bytes, Refusal> {
        let (page, ends) = (Arc::clone(&self.page), peer.ends());
        let desk = self.work.desk(CallerId::Page);
        let entered = desk.run(Lane::Vital, move || page.enter(&code, ends)).await;
        entered
            .map_err(|error| Refusal::code((StatusCode::SERVICE_UNAVAILABLE, error.message().to_owned())))?
            .map_err(Refusal::code)
    }
}

/// Reads a body within the limits of size and time.
async fn read(body: &mut Incoming, max_bytes: usize) -> Result<Bytes, Refusal> {
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
        if whole.len() + parts.len() + data.len() > max_bytes {
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
    closing(json(StatusCode::OK, concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").into()))
}

/// A response that needed no token: its connection is closed, as after a refusal.
fn closing(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
