//! A blocking client of the PRIMARY, as a [`Service`]: a [`Client`] with a runtime of its own.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderMap;
use nudge::{Caller, MethodSpec, Result, Service};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::client::{Client, unavailable_error};
use crate::connection::ServerConnection;
use crate::runtime::{RuntimeDir, ServerFile};

/// The caller's name for calls that do not give their own.
const NAME: &str = concat!("nudge-client/", env!("CARGO_PKG_VERSION"));
/// Time limit of [`RemoteServer::is_alive`].
const HEALTH_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a caller that waits is asked whether it gives up.
const LOOK: Duration = Duration::from_millis(50);

/// Asked every 50 ms, on the thread that calls, while a call waits for its answer; true gives the call up. It may be
/// carried out all the same. A language that hears Ctrl-C only in its own code looks for it here.
pub type GiveUp = Arc<dyn Fn() -> bool + Send + Sync>;

/// A running server, found through its runtime directory.
///
/// Calls block; they must not be made on a thread that drives a tokio runtime. [`Client`] documents time
/// limits and retries.
pub struct RemoteServer {
    client: Client,
    /// `None` only while dropping.
    runtime: Option<Runtime>,
    give_up: Option<GiveUp>,
}

impl RemoteServer {
    /// Connects to the server of `dir`: over the local channel, or over TCP where there is none.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when none runs or it does not answer.
    pub fn connect(dir: &RuntimeDir) -> Result<Self> {
        Self::connect_giving_up(dir, None)
    }

    /// As [`connect`](Self::connect), for a caller that may give up, now or in any later call.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and as [`GiveUp`] says.
    pub fn connect_giving_up(dir: &RuntimeDir, give_up: Option<GiveUp>) -> Result<Self> {
        let remote = Self::from_dir(dir, give_up)?;
        remote.open_connection()?;
        Ok(remote)
    }

    /// Makes one that has not looked for its server; [`open_connection`](Self::open_connection) does. Here, and nowhere else, the environment
    /// is read (by tokio, for a switch of its own), which other languages must not change meanwhile.
    pub(crate) fn new_unconnected(client: Client, give_up: Option<GiveUp>) -> Result<Self> {
        let runtime = build_runtime().map_err(|error| {
            unavailable_error(format!("Cannot start the HTTP client: {error}; free some resources."))
        })?;
        Ok(Self { client, runtime: Some(runtime), give_up })
    }

    /// A client of `dir` that has not looked for its server.
    pub(crate) fn from_dir(dir: &RuntimeDir, give_up: Option<GiveUp>) -> Result<Self> {
        Self::new_unconnected(Client::new(dir, NAME), give_up)
    }

    /// Opens the first connection.
    pub(crate) fn open_connection(&self) -> Result<()> {
        wait_for_call(self.runtime()?, self.give_up.as_ref(), self.client.connect())
    }

    fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| unavailable_error("The client is closed; open a new one."))
    }

    /// As [`connect`](Self::connect), over TCP alone.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_by_port(dir: &RuntimeDir) -> Result<Self> {
        let mut client = Client::new(dir, NAME);
        client.use_port();
        let remote = Self::new_unconnected(client, None)?;
        remote.open_connection()?;
        Ok(remote)
    }

    /// Sets the caller's name, recorded for `nudge.deletions`.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.client.set_name(&name.into());
        self
    }

    /// Ends the server, and with it the session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it does not answer.
    pub fn shutdown(&self) -> Result<()> {
        let none = RawValue::from_string("{}".into()).map_err(|error| unavailable_error(error.to_string()))?;
        self.call("nudge.shutdown", &none).map(drop)
    }

    /// Returns true when the server that `server.pid` describes answers; no token is sent.
    pub fn is_alive(dir: &RuntimeDir, server: &ServerFile) -> bool {
        let none = HeaderMap::new();
        let ask = async {
            let connection = match ServerConnection::open_local(dir, &none).await {
                Ok(Some(connection)) => Ok(connection),
                Ok(None) => ServerConnection::open_tcp(server.port, None, &none).await,
                Err(failed) => Err(failed),
            };
            match connection {
                Ok(mut connection) => connection.is_healthy().await,
                Err(_) => false,
            }
        };
        let Ok(runtime) = build_runtime() else { return false };
        runtime.block_on(async { timeout(HEALTH_TIMEOUT, ask).await }).unwrap_or(false)
    }
}

/// Waits for a call, or until its caller gives it up.
fn wait_for_call<T>(runtime: &Runtime, give_up: Option<&GiveUp>, call: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(give_up) = give_up else { return runtime.block_on(call) };
    runtime.block_on(async {
        let mut call = pin!(call);
        loop {
            match timeout(LOOK, &mut call).await {
                Ok(answer) => return answer,
                Err(_) if give_up() => {
                    return Err(unavailable_error(
                        "The call was given up and may still be carried out; look before you repeat it.",
                    ));
                }
                Err(_) => {}
            }
        }
    })
}

fn build_runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl Service for RemoteServer {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        nudge::methods()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        wait_for_call(self.runtime()?, self.give_up.as_ref(), self.client.call(caller, method, params))
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        // A plain drop of the runtime panics on a thread that another runtime drives.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteServer").field("client", &self.client).finish_non_exhaustive()
    }
}
