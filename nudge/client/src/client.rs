//! Provides an asynchronous client of the session's PRIMARY, which many tasks can share. When the PRIMARY dies, the
//! client continues with the next one.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use nudge::{Caller, Error, Result};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{sleep, timeout};

use crate::connection::{RequestFailure, ServerConnection};
use crate::runtime::{RuntimeDir, ServerFile, no_server};
use crate::session::{PROTOCOL, SessionState};

/// Request header that asks the server to name the environment variables that `context.env` lacks
/// ([`Caller::asking_env`]). The value of the header is `ask`.
pub const ENV_HEADER: &str = "nudge-env";
/// Request header with the idempotency key of a call that may change data. The server carries out such a call once,
/// even if the client sends it several times ([`Caller::with_key`]).
pub const KEY_HEADER: &str = "idempotency-key";

/// Request header of a call that an agent made through its MCP tools ([`Caller::by_agent`]). The value of the header is
/// `yes`.
pub const AGENT_HEADER: &str = "nudge-agent";

/// Request header with the [`PROTOCOL`] of the caller. A session of another protocol refuses the call. A call that ends
/// the session does not have the header, so that `nudge stop` can end a session of any protocol. Programs that write
/// their own requests may omit the header too.
pub const PROTOCOL_HEADER: &str = "nudge-protocol";

/// Time limit of a call with all its retries. With this limit, a caller gets an answer or an error within 10 seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(7);
/// Time limit of the call that follows an unanswered call. With this limit, a caller that makes two calls in a row,
/// such as `nudge get`, also gets an error within 10 seconds.
const NEXT_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which [`Client::connect`] retries when a server runs but no connection can be opened.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// Longest time between winning the lock and writing `server.pid`. A server with many rows may need much of it.
const START_TIMEOUT: Duration = CALL_TIMEOUT;
/// Longest time for which a living session may have no PRIMARY, because a PROXY is taking over the lock.
const GAP_TIMEOUT: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(2);
/// Largest number of characters of a header value, such as the caller's name. Longer values are cut.
const MAX_NAME_CHARS: usize = 128;
/// Largest number of idle connections that the client keeps.
const MAX_IDLE: usize = 8;
const SHUTDOWN: &str = "nudge.shutdown";

/// A client of the session's PRIMARY. Whenever it opens a connection, it finds the PRIMARY through the runtime
/// directory. Any number of tasks of one tokio runtime may call it at the same time.
///
/// A call takes at most 7 seconds and then fails with `E_UNAVAILABLE`. After such a failure the next call takes at most
/// 2 seconds.
///
/// When the connection breaks, the PRIMARY may have died. Then the client sends the call again, to the next PRIMARY, as
/// long as the session lives. A call that may change data carries an idempotency key, so that the session carries it
/// out only once. The client sends `nudge.shutdown` only once.
pub struct Client {
    dir: RuntimeDir,
    /// The caller's name for calls that give no name of their own.
    name: HeaderValue,
    /// Headers that the client adds to every request.
    headers: HeaderMap,
    /// The id of the only session that the client calls; `None` for any session in `dir`.
    session: Option<String>,
    /// True when the client uses TCP and not the local channel.
    by_port: bool,
    idle: Mutex<Vec<ServerConnection>>,
    last_id: AtomicU64,
    /// True when the last call ran into [`CALL_TIMEOUT`]. The next call then has less time.
    silent: AtomicBool,
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Client>();
};

impl Client {
    /// Makes a client of the session in `dir`. The client looks for a server only at the first call. `name` is the
    /// caller's name, which `nudge.deletions` shows.
    pub fn new(dir: &RuntimeDir, name: impl Into<String>) -> Self {
        Self {
            dir: dir.clone(),
            name: to_header(&name.into()),
            headers: HeaderMap::new(),
            session: None,
            by_port: false,
            idle: Mutex::default(),
            last_id: AtomicU64::new(0),
            silent: AtomicBool::new(false),
        }
    }

    /// Replaces the caller's name, which `nudge.deletions` shows.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.name = to_header(name);
    }

    /// Makes the client use the port and the token instead of the local channel.
    pub(crate) fn use_port(&mut self) {
        self.by_port = true;
        self.idle.lock().clear();
    }

    /// Adds a header to every request, such as the header by which a PROXY identifies itself. The value is cut to 128
    /// characters.
    ///
    /// # Panics
    /// Panics when `name` is not a valid header name in lower case.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.insert(HeaderName::from_static(name), to_header(&value.into()));
        // Closes idle connections, because they still use the old headers.
        self.idle.lock().clear();
        self
    }

    /// Restricts the client to the session with this id. A PROXY needs this, because it must not forward its callers to
    /// another session.
    #[must_use]
    pub fn of_session(mut self, id: Option<String>) -> Self {
        self.session = id;
        self
    }

    /// Opens the first connection before the first call needs it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server runs or the server cannot be reached.
    pub async fn connect(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.open_connection().await {
                Ok(connection) => {
                    self.keep_idle(connection);
                    return Ok(());
                }
                Err(failed) if failed.lasting || begun.elapsed() > CONNECT_PATIENCE => return Err(failed.error),
                Err(_) => sleep(POLL).await,
            }
        }
    }

    /// Calls a method by its JSON-RPC name. `params` must be a JSON object. Dropping the future cancels the wait, but
    /// the server may still carry out the call.
    ///
    /// # Errors
    /// The method's own errors; `E_UNAVAILABLE` when no server runs or none answers in time; `E_INVALID` for an
    /// idempotency key with characters other than visible ASCII.
    pub async fn call(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let request = self.prepare_call(caller, method, params)?;
        let hurried = self.silent.swap(false, Ordering::Relaxed);
        let patience = if hurried { NEXT_CALL_TIMEOUT } else { CALL_TIMEOUT };
        let mut trouble = None;
        let answer = timeout(patience, self.send_until_answered(&request, &mut trouble)).await;
        answer.unwrap_or_else(|_| {
            self.silent.store(!hurried, Ordering::Relaxed);
            Err(trouble.unwrap_or_else(|| self.timeout_error(patience)))
        })
    }

    fn prepare_call(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<PreparedCall> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut body = Vec::with_capacity(params.get().len() + method.len() + 64);
        let call = RpcCall { jsonrpc: "2.0", id, method, params };
        serde_json::to_writer(&mut body, &call).map_err(|error| unavailable_error(error.to_string()))?;
        let name = if caller.name.is_empty() { self.name.clone() } else { to_header(caller.name) };
        // Every call gets a key. Only the PRIMARY knows which methods only read, and it ignores their keys.
        let key = make_key_header(caller.key)?;
        Ok(PreparedCall {
            name,
            key,
            env: caller.env,
            agent: caller.agent,
            body: body.into(),
            once: method == SHUTDOWN,
        })
    }

    /// Sends a call, and repeats it until a server answers. `trouble` holds the last failure, so that the caller can
    /// report it on a timeout.
    async fn send_until_answered(&self, request: &PreparedCall, trouble: &mut Option<Error>) -> Result<Box<RawValue>> {
        let mut refused = false;
        loop {
            let kept = self.take_idle();
            let was_kept = kept.is_some();
            let failed = match self.try_once(kept, request, trouble).await {
                Ok((StatusCode::UNAUTHORIZED, answer)) if !refused && !request.once => {
                    // The token is outdated when another PRIMARY took over after this client had read `server.pid`.
                    refused = true;
                    RequestFailure { error: read_refusal(&answer), sent: true, lasting: false }
                }
                Ok((_, answer)) => match read_answer(&answer) {
                    // The PRIMARY is ending and has not carried out the call, so the client may send even
                    // `nudge.shutdown` again.
                    Err(error) if is_ending(&error) => RequestFailure { error, sent: false, lasting: false },
                    answer => return answer,
                },
                Err(failed) => failed,
            };
            if failed.lasting || (request.once && failed.sent) {
                return Err(failed.error);
            }
            *trouble = Some(failed.error);
            // The other idle connections lead to the same dead PRIMARY, so they are closed too.
            self.idle.lock().clear();
            if !was_kept {
                sleep(POLL).await;
            }
        }
    }

    /// Sends a call once, over an idle connection or a new one.
    async fn try_once(
        &self,
        kept: Option<ServerConnection>,
        request: &PreparedCall,
        trouble: &mut Option<Error>,
    ) -> Result<(StatusCode, Bytes), RequestFailure> {
        let mut connection = match kept {
            Some(kept) => kept,
            None => self.open_connection().await?,
        };
        *trouble = None;
        let answer = connection.post(request.build_headers(), request.body.clone()).await?;
        if answer.0 != StatusCode::UNAUTHORIZED {
            self.keep_idle(connection);
        }
        Ok(answer)
    }

    /// Finds the server and connects to it. It uses the local channel if there is one, and TCP otherwise.
    async fn open_connection(&self) -> Result<ServerConnection, RequestFailure> {
        self.dir.follow_path();
        let connection = if let Some(connection) = self.open_local().await? {
            connection
        } else {
            // A starting PRIMARY opens its local channel before it writes `server.pid`.
            let server = find_server(&self.dir).await.map_err(RequestFailure::new_lasting)?;
            match self.open_local().await? {
                Some(connection) => connection,
                None => self.open_tcp(&server).await?,
            }
        };
        match &self.session {
            Some(session) if self.dir.is_over(session) => {
                Err(RequestFailure::new_lasting(match self.dir.read_session() {
                    SessionState::Lives(_) => displaced(),
                    _ => session_over(),
                }))
            }
            _ => Ok(connection),
        }
    }

    async fn open_local(&self) -> Result<Option<ServerConnection>, RequestFailure> {
        if self.by_port { Ok(None) } else { ServerConnection::open_local(&self.dir, &self.headers).await }
    }

    async fn open_tcp(&self, server: &ServerFile) -> Result<ServerConnection, RequestFailure> {
        let connection = ServerConnection::open_tcp(server.port, server.token.as_deref(), &self.headers).await?;
        // Checks again after connecting: if the server has died meanwhile, another process may have the port and would
        // get the token.
        if !self.dir.is_held() || self.dir.read_server_file().as_ref() != Some(server) {
            return Err(RequestFailure::new_broken("it has just ended", false));
        }
        Ok(connection)
    }

    fn take_idle(&self) -> Option<ServerConnection> {
        let mut idle = self.idle.lock();
        std::iter::from_fn(|| idle.pop()).find(ServerConnection::is_open)
    }

    fn keep_idle(&self, connection: ServerConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }

    fn timeout_error(&self, patience: Duration) -> Error {
        let server = self.dir.read_server_file().map_or("the server".into(), |file| format!("process {}", file.pid));
        unavailable_error(format!(
            "The Nudge server does not answer within {} seconds and the call may still be carried out; end {server} or try again.",
            patience.as_secs()
        ))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// A call that is ready to be sent. Every retry sends the same request.
struct PreparedCall {
    name: HeaderValue,
    key: HeaderValue,
    env: bool,
    agent: bool,
    body: Bytes,
    /// True when the call must not be sent again once the server may have received it.
    once: bool,
}

impl PreparedCall {
    fn build_headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let mark =
            |set: bool, name, value| set.then(|| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        [(USER_AGENT, self.name.clone()), (HeaderName::from_static(KEY_HEADER), self.key.clone())]
            .into_iter()
            .chain(mark(self.env, ENV_HEADER, "ask"))
            .chain(mark(self.agent, AGENT_HEADER, "yes"))
            .chain((!self.once).then(|| (HeaderName::from_static(PROTOCOL_HEADER), PROTOCOL.into())))
    }
}

#[derive(Serialize)]
struct RpcCall<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a RawValue,
}

#[derive(Deserialize)]
struct RpcReply {
    result: Option<Box<RawValue>>,
    error: Option<Value>,
}

fn read_answer(body: &[u8]) -> Result<Box<RawValue>> {
    match serde_json::from_slice(body) {
        Ok(RpcReply { result: Some(result), error: None }) => Ok(result),
        Ok(RpcReply { error: Some(error), .. }) => Err(Error::from_json(&error)),
        _ => Err(unavailable_error("The Nudge server answered something else than JSON-RPC; start it again.")),
    }
}

/// Returns the error in the answer of a server that refuses the token.
fn read_refusal(body: &[u8]) -> Error {
    read_answer(body).err().unwrap_or_else(|| unavailable_error("The Nudge server refuses the token; start it again."))
}

/// Returns true when the error says that the PRIMARY is ending and accepts no more calls.
fn is_ending(error: &Error) -> bool {
    error.data().get("ending") == Some(&Value::Bool(true))
}

/// Reads `server.pid`, which is valid only while a process holds the lock. Waits for a PRIMARY that is starting or
/// taking over.
async fn find_server(dir: &RuntimeDir) -> Result<ServerFile> {
    let begun = Instant::now();
    let mut free_since = None;
    let mut is_asked = false;
    loop {
        if dir.is_held() {
            free_since = None;
            if let Some(server) = dir.read_server_file() {
                return Ok(server);
            }
            if begun.elapsed() > START_TIMEOUT {
                return Err(unavailable_error(
                    "A Nudge server has been starting for long and does not say where it is; try again.",
                ));
            }
        } else {
            // Another program may have removed the files of a living PRIMARY, which restores them when a client asks.
            if !std::mem::replace(&mut is_asked, true) && dir.ask_for_life(crate::life::CLIENT_PATIENCE) {
                dir.follow_path();
                continue;
            }
            let over = matches!(dir.read_session(), SessionState::Unknown | SessionState::Stopped);
            if over || free_since.get_or_insert_with(Instant::now).elapsed() > GAP_TIMEOUT {
                dir.look_at_lock()?;
                return Err(no_server());
            }
        }
        sleep(POLL).await;
    }
}

/// Makes a random idempotency key. A caller needs its own key when it may send the same call to another server too;
/// otherwise [`Client::call`] makes one.
pub fn new_key() -> String {
    // Each `RandomState` of the standard library has random keys that differ from those of the others.
    let state = RandomState::new();
    format!("{:016x}{:016x}", state.hash_one(0_u8), state.hash_one(1_u8))
}

/// Returns the caller's idempotency key, or makes a random one if the caller has none.
fn make_key_header(given: Option<&str>) -> Result<HeaderValue> {
    let value = given.map_or_else(|| HeaderValue::try_from(new_key()), HeaderValue::from_str);
    value.map_err(|_| Error::invalid("The key of a call may hold visible ASCII alone; give another."))
}

/// Turns a text into a header value. Replaces characters other than visible ASCII and spaces by `?`, and cuts the text
/// to [`MAX_NAME_CHARS`].
fn to_header(text: &str) -> HeaderValue {
    let plain: String =
        text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).take(MAX_NAME_CHARS).collect();
    HeaderValue::try_from(plain).unwrap_or(HeaderValue::from_static("?"))
}

pub(crate) fn unavailable_error(message: impl Into<String>) -> Error {
    Error::unavailable(message)
}

/// Makes the error of a client whose session has ended and was followed by another session. The error's data has the
/// field `displaced`.
fn displaced() -> Error {
    unavailable_error("The session of this server is over and another one has begun in its place; try again.")
        .with_data("displaced", true)
}

/// Returns true when the error says that the client's session has ended and was followed by another session.
pub fn is_displaced(error: &Error) -> bool {
    error.data().get("displaced") == Some(&Value::Bool(true))
}

fn session_over() -> Error {
    unavailable_error("The session of this server was ended with `nudge stop`; start the server again.")
}
