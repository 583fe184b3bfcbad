//! A blocking client of the PRIMARY, as a [`Service`]: a [`Client`] with a runtime of its own.

use std::fmt;
use std::time::Duration;

use hyper::header::HeaderMap;
use nudge::{Caller, Method, Result, Service};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::client::{Client, unavailable};
use crate::connection::Connection;
use crate::runtime::RuntimeDir;

/// Time limit of [`Remote::is_alive`].
const HEALTH_TIMEOUT: Duration = Duration::from_millis(500);

/// A running server, found through its runtime directory.
///
/// Calls block; they must not be made on a thread that drives a tokio runtime. [`Client`] documents time
/// limits and retries.
pub struct Remote {
    client: Client,
    /// `None` only while dropping.
    runtime: Option<Runtime>,
}

impl Remote {
    /// Connects to the server of `dir`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when none runs or it does not answer.
    pub fn connect(dir: &RuntimeDir) -> Result<Self> {
        let runtime = runtime()
            .map_err(|error| unavailable(format!("Cannot start the HTTP client: {error}; free some resources.")))?;
        let client = Client::new(dir, concat!("nudge-client/", env!("CARGO_PKG_VERSION")));
        runtime.block_on(client.connect())?;
        Ok(Self { client, runtime: Some(runtime) })
    }

    /// Sets the caller's name, recorded for `nudge.deletions`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.client.rename(&name.into());
        self
    }

    /// Ends the server, and with it the session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it does not answer.
    pub fn shutdown(&self) -> Result<()> {
        let none = RawValue::from_string("{}".into()).map_err(|error| unavailable(error.to_string()))?;
        self.call("nudge.shutdown", &none).map(drop)
    }

    /// Returns true when a Nudge server answers on a port; no token is sent.
    pub fn is_alive(port: u16) -> bool {
        let ask = async {
            match Connection::open(port, None, &HeaderMap::new()).await {
                Ok(mut connection) => connection.is_healthy().await,
                Err(_) => false,
            }
        };
        let Ok(runtime) = runtime() else { return false };
        runtime.block_on(async { timeout(HEALTH_TIMEOUT, ask).await }).unwrap_or(false)
    }
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl Service for Remote {
    fn methods(&self) -> Vec<&'static Method> {
        nudge::methods()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let runtime = self.runtime.as_ref().ok_or_else(|| unavailable("The client is closed; open a new one."))?;
        runtime.block_on(self.client.call(caller, method, params))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // A plain drop of the runtime panics on a thread that another runtime drives.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("client", &self.client).finish_non_exhaustive()
    }
}
