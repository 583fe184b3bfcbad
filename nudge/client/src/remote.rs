//! Provides a blocking client of the PRIMARY as a [`Service`]. It wraps a [`Client`] and its own tokio runtime.

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

/// The caller's name for calls that give no name of their own.
const NAME: &str = concat!("nudge-client/", env!("CARGO_PKG_VERSION"));
/// Time limit of [`RemoteServer::is_alive`].
const HEALTH_TIMEOUT: Duration = Duration::from_millis(500);
/// Interval at which Nudge calls [`GiveUp`] while a call waits.
const LOOK: Duration = Duration::from_millis(50);

/// A function that Nudge calls every 50 ms, on the calling thread, while a call waits for its answer. If it returns
/// true, the wait ends with an error, although the server may still carry out the call. Bindings for languages that
/// notice Ctrl-C only in their own code check for it here.
pub type GiveUp = Arc<dyn Fn() -> bool + Send + Sync>;

/// A running server, which is found through its runtime directory.
///
/// Calls block, so they must not be made on a thread that drives a tokio runtime. [`Client`] documents the time limits
/// and retries.
pub struct RemoteServer {
    client: Client,
    /// The runtime; `None` only while this value is dropped.
    runtime: Option<Runtime>,
    give_up: Option<GiveUp>,
}

impl RemoteServer {
    /// Connects to the server of `dir` over the local channel, or over TCP when there is no local channel.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no server runs, or when it does not answer.
    pub fn connect(dir: &RuntimeDir) -> Result<Self> {
        Self::connect_giving_up(dir, None)
    }

    /// Connects as [`connect`](Self::connect) does. `give_up` can end the wait of this call and of each later one.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect); `E_UNAVAILABLE` after `give_up` has returned true.
    pub fn connect_giving_up(dir: &RuntimeDir, give_up: Option<GiveUp>) -> Result<Self> {
        let remote = Self::from_dir(dir, give_up)?;
        remote.open_connection()?;
        Ok(remote)
    }

    /// Makes a value that is not connected yet; [`open_connection`](Self::open_connection) connects it. Only this
    /// function reads the environment (tokio reads a variable), so code in other languages must not change the
    /// environment meanwhile.
    pub(crate) fn new_unconnected(client: Client, give_up: Option<GiveUp>) -> Result<Self> {
        let runtime = build_runtime().map_err(|error| {
            unavailable_error(format!("Cannot start the HTTP client: {error}; free some resources."))
        })?;
        Ok(Self { client, runtime: Some(runtime), give_up })
    }

    /// Makes a client of `dir` that is not connected yet.
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

    /// Connects as [`connect`](Self::connect) does, but only over TCP.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn connect_by_port(dir: &RuntimeDir) -> Result<Self> {
        let mut client = Client::new(dir, NAME);
        client.use_port();
        let remote = Self::new_unconnected(client, None)?;
        remote.open_connection()?;
        Ok(remote)
    }

    /// Sets the caller's name, which `nudge.deletions` shows.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.client.set_name(&name.into());
        self
    }

    /// Ends the server and its session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the server does not answer.
    pub fn shutdown(&self) -> Result<()> {
        let none = RawValue::from_string("{}".into()).map_err(|error| unavailable_error(error.to_string()))?;
        self.call("nudge.shutdown", &none).map(drop)
    }

    /// Returns true when the server that `server.pid` describes answers. The check sends no token.
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

/// Waits until the call has an answer or `give_up` returns true.
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
        // Shuts down in the background, because dropping a runtime panics on a thread that another runtime drives.
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
