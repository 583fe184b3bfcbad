//! HTTP: connections, bodies and their limits. [`accept`] gives connections their places. [`door`] decides which
//! requests the server accepts. [`rpc`] answers the accepted requests, [`mcp`] those under `/mcp`, and [`api`] those
//! under `/api`.

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
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nudge::Service;
use nudge_core::service::CallLane;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_io_timeout::TimeoutStream;

use super::memory;
use super::page::{self, SessionPage};
use super::session::history::ChangeHistory;
use super::session::proxies::{ConnectedProxies, ConnectedProxy};
use super::work::{CallerId, WorkDesk, WorkPool};
use accept::{AcceptedConnection, ConnectionPeer, OpenConnections, ServerListeners};
use door::{HttpDoor, HttpRefusal, HttpRoute};
use mcp::McpHttp;
use reply::{empty_response, json_response};
use request::CallerHeaders;

/// The request header with the process id of a calling PROXY. `nudge.status` shows the id; no decision depends on it.
pub const PROXY_HEADER: &str = "nudge-proxy";

/// The time limit for a request's head, and for an open connection without a request. With [`BODY_TIMEOUT`], a slow
/// request has 30 seconds in all.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The time limit for a request's body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest time for which a peer may read no byte of an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// The time for which the server still reads the body of a refused request, so that the sender can read the refusal.
const LINGER: Duration = Duration::from_secs(2);
/// The shortest pause between two log lines about refused requests.
const REFUSALS_PAUSE: Duration = Duration::from_mins(1);
/// The most bytes of a request line with its headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
const BUFFER_BYTES: usize = 64 << 10;

/// A complete response, or a response of `/mcp`, which may be a stream.
type HttpResponse = Response<Either<Full<Bytes>, BoxBody<Bytes, Infallible>>>;

/// Serves connections until `stopped` becomes true.
pub fn serve_connections(
    listeners: ServerListeners,
    endpoint: HttpEndpoint,
    stopped: &watch::Receiver<bool>,
) -> OpenConnections {
    let (builder, endpoint, told) = (make_builder(), Arc::new(endpoint), stopped.clone());
    OpenConnections::start_accepting(listeners, stopped, move |accepted| {
        tokio::spawn(serve_connection(builder.clone(), accepted, Arc::clone(&endpoint), told.clone()));
    })
}

/// The state shared by all connections.
pub struct HttpEndpoint {
    /// The checks of a request's head.
    pub door: HttpDoor,
    /// The service that answers calls.
    pub service: Arc<dyn Service>,
    /// The page, with its codes and tokens.
    pub page: Arc<SessionPage>,
    /// The service that answers the page's calls.
    pub for_page: Arc<dyn Service>,
    /// The last changes, for `nudge.changes`.
    pub history: Arc<ChangeHistory>,
    /// The PROXYs among the callers.
    pub proxies: Arc<ConnectedProxies>,
    /// The places for calls.
    pub work: Arc<WorkPool>,
    /// The handler of `/mcp`.
    pub mcp: McpHttp,
    /// Counts the refusals for the log.
    pub refused: RefusalLog,
}

/// Logs refusals, at most one line a minute. Any process on this machine can cause refusals, and too many lines would
/// push all other lines out of the log.
#[derive(Default)]
pub struct RefusalLog(Mutex<Option<(Instant, u64)>>);

impl RefusalLog {
    fn note_refusal(&self, status: StatusCode) {
        let mut last = self.0.lock();
        match &mut *last {
            Some((logged_at, more)) if logged_at.elapsed() < REFUSALS_PAUSE => *more += 1,
            _ => {
                let unsaid = last.take().map_or(0, |(_, more)| more);
                tracing::info!(status = status.as_u16(), unsaid, "refused a request");
                *last = Some((Instant::now(), 0));
            }
        }
    }
}

fn make_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(BUFFER_BYTES);
    builder
}

async fn serve_connection(
    builder: http1::Builder,
    accepted: AcceptedConnection,
    endpoint: Arc<HttpEndpoint>,
    mut stopped: watch::Receiver<bool>,
) {
    let AcceptedConnection { stream, peer, place: _place } = accepted;
    let peer = Arc::new(peer);
    let (proxy, other) = (Arc::new(OnceLock::new()), Arc::clone(&peer));
    let service = service_fn(move |request| {
        let (endpoint, proxy, peer) = (Arc::clone(&endpoint), Arc::clone(&proxy), Arc::clone(&other));
        async move { Ok::<_, Infallible>(endpoint.answer_request(request, &peer, &proxy).await) }
    });
    // hyper and `read` limit the time to read a request. This limit is for peers that do not read the response.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let stream = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(builder.serve_connection(stream, service));
    // Errors of a connection affect only its peer, so they are ignored.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = peer.wait_for_dismissal() => return,
        _ = stopped.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

impl HttpEndpoint {
    /// Answers a request. The first request with a [`PROXY_HEADER`] on the connection sets `proxy`.
    async fn answer_request(
        &self,
        request: Request<Incoming>,
        peer: &ConnectionPeer,
        proxy: &OnceLock<ConnectedProxy>,
    ) -> HttpResponse {
        let (head, mut body) = request.into_parts();
        peer.has_spoken();
        if peer.is_over_its_share() {
            return HttpRefusal::over_its_share().into_response().map(Either::Left);
        }
        let checked = self.door.check_head(&head, peer.is_local(), &self.page);
        if checked.as_ref().is_ok_and(|route| route.takes_token()) {
            peer.is_let_in();
        }
        let read = match checked {
            Ok(HttpRoute::Health) => return answer_health().map(Either::Left),
            Ok(HttpRoute::PageFile(file)) => return page::respond_with_file(file).map(Either::Left),
            // The body of a GET or DELETE is ignored.
            Ok(HttpRoute::Mcp) if head.method != Method::POST => {
                return self
                    .mcp
                    .answer_request(head, Bytes::new(), &self.desk_for_peer(peer, proxy))
                    .await
                    .map(Either::Right);
            }
            Ok(HttpRoute::PageSession) => match read(&mut body, HttpRoute::PageSession.max_body_bytes()).await {
                Ok(bytes) => self.enter_page(bytes, peer).await.map(|answer| (HttpRoute::PageSession, answer)),
                Err(refusal) => Err(refusal),
            },
            Ok(route) => read(&mut body, route.max_body_bytes()).await.map(|bytes| (route, bytes)),
            Err(refusal) => Err(refusal),
        };
        match read {
            Ok((HttpRoute::Mcp, bytes)) => {
                let sent = bytes.len();
                let answered = self.mcp.answer_request(head, bytes, &self.desk_for_peer(peer, proxy)).await;
                memory::note_use(sent);
                answered.map(Either::Right)
            }
            Ok((HttpRoute::Api { api, by_page }, body)) => {
                let (service, caller, desk) = if by_page {
                    (&self.for_page, CallerHeaders::of_page(&head.headers), self.work.desk_for(CallerId::Page))
                } else {
                    (&self.service, CallerHeaders::read(&head.headers), self.desk_for_peer(peer, proxy))
                };
                let query = head.uri.query().map(str::to_owned);
                let asked = api::ApiRequest { api, method: head.method, query, body };
                let (status, answer) = api::answer_api(&desk, Arc::clone(service), caller, asked).await;
                memory::note_use(answer.len());
                json_response(status, answer).map(Either::Left)
            }
            Ok((HttpRoute::PageSession, answer)) => {
                with_connection_close(json_response(StatusCode::OK, answer)).map(Either::Left)
            }
            Ok((route, bytes)) => {
                let sent = bytes.len();
                if let Some(pid) = head.headers.get(PROXY_HEADER).filter(|_| route == HttpRoute::Rpc) {
                    let pid = pid.to_str().ok().and_then(|pid| pid.parse().ok());
                    pid.map(|pid| proxy.get_or_init(|| self.proxies.add_connection(pid)));
                }
                let (service, caller, desk) = match route {
                    HttpRoute::PageRpc => {
                        (&self.for_page, CallerHeaders::of_page(&head.headers), self.work.desk_for(CallerId::Page))
                    }
                    _ => (&self.service, CallerHeaders::read(&head.headers), self.desk_for_peer(peer, proxy)),
                };
                let asked = request::CallTarget { service: Arc::clone(service), history: &self.history, desk };
                let answer = request::answer_http_body(asked, caller, bytes).await;
                memory::note_use(sent.max(answer.as_ref().map_or(0, Bytes::len)));
                match answer {
                    Some(answer) => json_response(StatusCode::OK, answer).map(Either::Left),
                    None => empty_response(StatusCode::ACCEPTED).map(Either::Left),
                }
            }
            Err(refusal) => {
                self.refused.note_refusal(refusal.status());
                // With `Expect: 100-continue`, the client sends no body after a refusal.
                if !body.is_end_stream() && !head.headers.contains_key(header::EXPECT) {
                    tokio::spawn(drain_body(body));
                }
                refusal.into_response().map(Either::Left)
            }
        }
    }
}

impl HttpEndpoint {
    /// Returns the work desk of the peer.
    fn desk_for_peer(&self, peer: &ConnectionPeer, proxy: &OnceLock<ConnectedProxy>) -> WorkDesk {
        self.work.desk_for(peer.caller_id(proxy.get().map(ConnectedProxy::pid)))
    }

    /// Exchanges a code of the page for a token. May read a file of the system to find out whose process sent the code.
    async fn enter_page(&self, code: Bytes, peer: &ConnectionPeer) -> Result<Bytes, HttpRefusal> {
        let (page, ends) = (Arc::clone(&self.page), peer.tcp_ends());
        let desk = self.work.desk_for(CallerId::Page);
        let entered = desk.run(CallLane::Vital, move || page.exchange_code(&code, ends)).await;
        entered
            .map_err(|error| HttpRefusal::from_status((StatusCode::SERVICE_UNAVAILABLE, error.message().to_owned())))?
            .map_err(HttpRefusal::from_status)
    }
}

/// Reads a body within the limits of size and time.
async fn read(body: &mut Incoming, max_bytes: usize) -> Result<Bytes, HttpRefusal> {
    match timeout(BODY_TIMEOUT, Limited::new(body, max_bytes).collect()).await {
        Err(_) => Err(HttpRefusal::too_slow()),
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(HttpRefusal::too_large()),
        Ok(Err(_)) => Err(HttpRefusal::broken_body()),
    }
}

/// Reads and drops the rest of a body. If the server closed the connection before that, the sender could not read the
/// refusal.
async fn drain_body(mut body: Incoming) {
    let _ = timeout(LINGER, async { while let Some(Ok(_)) = body.frame().await {} }).await;
}

fn answer_health() -> Response<Full<Bytes>> {
    with_connection_close(json_response(
        StatusCode::OK,
        concat!("{\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").into(),
    ))
}

/// Adds the header that closes the connection, for responses that need no token. A refusal already has this header.
fn with_connection_close(mut response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
