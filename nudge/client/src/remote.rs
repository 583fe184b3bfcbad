//! The PRIMARY as a [`Service`]: one kept HTTP connection, used by one caller at a time.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use nudge::{Caller, Error, ErrorKind, Method, Result, Service};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::runtime::{RuntimeDir, ServerFile};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// For the call after one that was not answered: a caller that makes two in a row, such as `nudge get`,
/// is told within 15 seconds that its server is stopped.
const NEXT_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a server may take from winning its lock to writing `server.pid`.
const START_TIMEOUT: Duration = Duration::from_secs(2);
const START_POLL: Duration = Duration::from_millis(5);
/// Whether a server is there at all is asked with less patience.
const HEALTH_TIMEOUT: Duration = Duration::from_millis(500);
/// What travels of a caller's name.
const MAX_NAME_CHARS: usize = 128;
/// More than any export: the server's own limit is 24 MiB of hints.
const MAX_ANSWER_BYTES: usize = 128 << 20;

/// A running server, found through its runtime directory.
///
/// Calls block; they must not be made on a thread that drives a tokio runtime. Each takes 10 seconds
/// at the most (2 when the one before was not answered in that time), then it is `E_UNAVAILABLE`. A
/// kept connection that died while idle is replaced; a call is never sent twice.
pub struct Remote {
    dir: RuntimeDir,
    /// Who calls, where the call itself does not say.
    name: String,
    inner: Mutex<Inner>,
}

struct Inner {
    /// `None` only while dropping.
    runtime: Option<Runtime>,
    kept: Option<Connection>,
    last_id: u64,
    /// The last call was given all its time and not answered.
    silent: bool,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    authorization: Option<HeaderValue>,
}

impl Remote {
    /// Connects to the server of `dir`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when none runs or it does not answer.
    pub fn connect(dir: &RuntimeDir) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unavailable(format!("Cannot start the HTTP client: {error}; free some resources.")))?;
        let kept = Some(runtime.block_on(connect(dir))?);
        let name = concat!("nudge-client/", env!("CARGO_PKG_VERSION")).to_owned();
        let inner = Inner { runtime: Some(runtime), kept, last_id: 0, silent: false };
        Ok(Self { dir: dir.clone(), name, inner: Mutex::new(inner) })
    }

    /// Says who calls, for people who ask later who did what (`nudge.deletions`).
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Ends the server, and with it the session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it does not answer.
    pub fn shutdown(&self) -> Result<()> {
        self.call("nudge.shutdown", raw_object()?.as_ref()).map(|_| ())
    }

    /// Whether a Nudge server answers on a port; sends it nothing but the question.
    pub fn is_alive(port: u16) -> bool {
        let ask = async {
            let mut connection = open(port, None).await?;
            let request = Request::get("/health").header(HOST, connection.host.clone()).body(Full::default());
            let request = request.map_err(|error| unavailable(error.to_string()))?;
            connection.sender.send_request(request).await.map_err(|error| unavailable(error.to_string()))
        };
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return false };
        runtime
            .block_on(async { timeout(HEALTH_TIMEOUT, ask).await })
            .is_ok_and(|answer| answer.is_ok_and(|response| response.status() == hyper::StatusCode::OK))
    }

    fn hung(&self, patience: Duration) -> Error {
        let server = self.dir.read_server_file().map_or("the server".into(), |file| format!("process {}", file.pid));
        unavailable(format!(
            "The Nudge server does not answer within {} seconds and the call may still be carried out; end {server} or try again.",
            patience.as_secs()
        ))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic elsewhere leaves nothing half done here that the next call would not replace.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Remote {
    fn methods(&self) -> Vec<&'static Method> {
        nudge::methods()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let by = user_agent(if caller.name.is_empty() { &self.name } else { caller.name });
        let mut inner = self.lock();
        inner.last_id += 1;
        let call = Call { jsonrpc: "2.0", id: inner.last_id, method, params };
        let body = serde_json::to_vec(&call).map_err(|error| unavailable(error.to_string()))?;
        let Inner { runtime: Some(runtime), kept, silent, .. } = &mut *inner else {
            return Err(unavailable("The client is closed; open a new one."));
        };
        let hurried = std::mem::take(silent);
        let patience = if hurried { NEXT_CALL_TIMEOUT } else { CALL_TIMEOUT };
        let answer = runtime.block_on(async { timeout(patience, exchange(&self.dir, kept, by, body.into())).await });
        let answer = answer.unwrap_or_else(|_| {
            *kept = None;
            *silent = !hurried;
            Err(self.hung(patience))
        })?;
        read_answer(&answer)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Dropping a runtime plainly panics where another one drives the thread.
        if let Some(runtime) = self.lock().runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("dir", &self.dir).finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Call<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a RawValue,
}

#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<serde_json::Value>,
}

fn read_answer(body: &[u8]) -> Result<Box<RawValue>> {
    match serde_json::from_slice(body) {
        Ok(Answer { result: Some(result), error: None }) => Ok(result),
        Ok(Answer { error: Some(error), .. }) => Err(Error::from_json(&error)),
        _ => Err(unavailable("The Nudge server answered something else than JSON-RPC; update it and start it again.")),
    }
}

/// Sends one call over the kept connection, or over a new one when that has died unused.
async fn exchange(dir: &RuntimeDir, kept: &mut Option<Connection>, by: HeaderValue, body: Bytes) -> Result<Bytes> {
    if let Some(connection) = kept {
        // Two turns of the event loop: enough to see that the server has closed it meanwhile.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        if connection.sender.is_closed() {
            *kept = None;
        }
    }
    let fresh = kept.is_none();
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => connect(dir).await?,
    };
    let response = match connection.send(by.clone(), body.clone()).await {
        Ok(response) => response,
        Err(Failed { unsent: true, .. }) if !fresh => {
            connection = connect(dir).await?;
            connection.send(by, body).await.map_err(|failed| failed.error)?
        }
        Err(failed) => return Err(failed.error),
    };
    let answer = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
    let answer = answer.map_err(|error| broken(&error.to_string()))?;
    *kept = Some(connection);
    Ok(answer.to_bytes())
}

struct Failed {
    error: Error,
    /// Nothing of the request has left this process.
    unsent: bool,
}

impl Connection {
    async fn send(&mut self, by: HeaderValue, body: Bytes) -> Result<Response<Incoming>, Failed> {
        let mut request = Request::post("/")
            .header(HOST, self.host.clone())
            .header(USER_AGENT, by)
            .header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| Failed { error: broken(&error.to_string()), unsent: true })?;
        if let Err(error) = self.sender.ready().await {
            return Err(Failed { error: broken(&error.to_string()), unsent: true });
        }
        self.sender.try_send_request(request).await.map_err(|mut error| {
            let unsent = error.take_message().is_some();
            Failed { error: broken(&error.error().to_string()), unsent }
        })
    }
}

/// Finds the server and connects to it.
async fn connect(dir: &RuntimeDir) -> Result<Connection> {
    let server = find(dir).await?;
    let connection = open(server.port, server.token.as_deref()).await?;
    // Had it died before the port was opened, whoever has the port now would get the token.
    if dir.is_held() { Ok(connection) } else { Err(no_server()) }
}

/// What `server.pid` says, believed only while the lock is held.
async fn find(dir: &RuntimeDir) -> Result<ServerFile> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        if !dir.is_held() {
            return Err(no_server());
        }
        if let Some(server) = dir.read_server_file() {
            return Ok(server);
        }
        if Instant::now() > deadline {
            return Err(unavailable("A Nudge server is starting but does not say where; stop it and start it again."));
        }
        sleep(START_POLL).await;
    }
}

async fn open(port: u16, token: Option<&str>) -> Result<Connection> {
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect((Ipv4Addr::LOCALHOST, port))).await;
    let stream =
        stream.map_err(|_| broken("no connection within 2 seconds"))?.map_err(|error| broken(&error.to_string()))?;
    // A call is one small write that nothing follows; waiting to fill a packet would only delay it.
    stream.set_nodelay(true).map_err(|error| broken(&error.to_string()))?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error.to_string()))?;
    tokio::spawn(connection);
    let host = HeaderValue::try_from(format!("127.0.0.1:{port}")).map_err(|error| broken(&error.to_string()))?;
    let authorization = token.map(|token| HeaderValue::try_from(format!("Bearer {token}"))).transpose();
    let mut authorization = authorization.map_err(|_| broken("its token cannot be sent"))?;
    if let Some(value) = &mut authorization {
        value.set_sensitive(true);
    }
    Ok(Connection { sender, host, authorization })
}

/// A name as a header can carry it.
fn user_agent(name: &str) -> HeaderValue {
    let plain: String =
        name.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).take(MAX_NAME_CHARS).collect();
    HeaderValue::try_from(plain).unwrap_or(HeaderValue::from_static("?"))
}

fn raw_object() -> Result<Box<RawValue>> {
    RawValue::from_string("{}".into()).map_err(|error| unavailable(error.to_string()))
}

fn broken(reason: &str) -> Error {
    unavailable(format!("The Nudge server cannot be reached ({reason}); check `nudge status` or start it again."))
}

/// Also when there is not even a directory where one could be.
pub(crate) fn no_server() -> Error {
    unavailable("No Nudge server is running; start one with `nudge serve`.")
}

fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}
