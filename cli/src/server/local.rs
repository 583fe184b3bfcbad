//! The store of this process as a server offers it: `nudge.status` tells of the server too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nudge::{Caller, Config, Error, ErrorKind, Method, Nudge, Result, Service, Status};
use nudge_client::Session;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::control::no_params;
use super::recorder::Recorder;

/// The store, with what `nudge.status` says of the server.
pub struct Local {
    nudge: Nudge,
    recorder: Arc<Recorder>,
    port: AtomicU16,
    proxies: Arc<Proxies>,
    #[cfg(feature = "test-clock")]
    clock: Arc<nudge::ManualClock>,
}

#[cfg(feature = "test-clock")]
type ServerClock = nudge::ManualClock;
#[cfg(not(feature = "test-clock"))]
type ServerClock = nudge::SystemClock;

#[derive(Serialize)]
struct ServerStatus {
    #[serde(flatten)]
    status: Status,
    pid: u32,
    port: u16,
    /// The processes of the session that are known: this one and its PROXYs.
    members: usize,
    proxies: Vec<u32>,
    /// Null when no journal is kept.
    journal_bytes: Option<u64>,
}

impl Local {
    /// A store whose changes go to `recorder`, empty or as `records` say.
    pub fn new(config: Config, recorder: Arc<Recorder>) -> Self {
        let clock = Arc::new(server_clock());
        let log = Box::new(Arc::clone(&recorder));
        let nudge = Nudge::with_log(config, Arc::clone(&clock) as Arc<dyn nudge::Clock>, log);
        Self {
            nudge,
            recorder,
            port: AtomicU16::new(0),
            proxies: Arc::default(),
            #[cfg(feature = "test-clock")]
            clock,
        }
    }

    /// Takes the identity of the session, and what its journal says, unless `given_up` becomes true.
    #[must_use]
    pub fn of_session(mut self, session: Option<&Session>, records: &[Vec<u8>], given_up: impl Fn() -> bool) -> Self {
        if let Some(session) = session {
            self.nudge = self.nudge.with_identity(session.id.clone(), session.created_at);
        }
        let unreadable = self.nudge.restore(records.iter().take_while(|_| !given_up()).map(Vec::as_slice));
        if unreadable > 0 {
            tracing::warn!(unreadable, "records of the journal were passed over");
        }
        self
    }

    /// The store's identity, for those who come after this process.
    pub fn session(&self, port: u16, token: &str) -> Session {
        let (id, created_at) = (self.nudge.session_id().to_owned(), self.nudge.created_at());
        Session { id, created_at, port, token: Some(token.to_owned()) }
    }

    /// The port on which this process answers, for the status.
    pub fn listens_on(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
    }

    /// Those who stand in line to take over.
    pub fn proxies(&self) -> &Arc<Proxies> {
        &self.proxies
    }

    /// Where changes are recorded.
    pub fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// When the store was made.
    pub fn started(&self) -> String {
        self.nudge.status().started
    }

    /// Drops what has expired.
    pub fn sweep(&self) {
        self.nudge.sweep();
    }

    fn status(&self) -> Result<Box<RawValue>> {
        let mut status = self.nudge.status();
        status.role = "PRIMARY";
        let proxies = self.proxies.pids();
        let status = ServerStatus {
            status,
            pid: std::process::id(),
            port: self.port.load(Ordering::Relaxed),
            members: 1 + proxies.len(),
            proxies,
            journal_bytes: self.recorder.bytes(),
        };
        to_raw_value(&status).map_err(|_| Error::new(ErrorKind::Invalid, "The status cannot be written as JSON."))
    }
}

#[cfg(not(feature = "test-clock"))]
fn server_clock() -> ServerClock {
    nudge::SystemClock
}

/// One that stands at the beginning of 2026.
#[cfg(feature = "test-clock")]
fn server_clock() -> ServerClock {
    const START_MS: nudge::Millis = 1_767_225_600_000;
    nudge::ManualClock::new(START_MS)
}

/// The PROXYs that have a connection open on which they hear of changes.
#[derive(Default)]
pub struct Proxies(Mutex<BTreeMap<u32, usize>>);

impl Proxies {
    /// Counts one in until what comes back is dropped.
    pub fn enter(self: &Arc<Self>, pid: u32) -> Present {
        *self.lock().entry(pid).or_default() += 1;
        Present { proxies: Arc::clone(self), pid }
    }

    fn pids(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A PROXY that is connected.
pub struct Present {
    proxies: Arc<Proxies>,
    pid: u32,
}

impl Drop for Present {
    fn drop(&mut self) {
        let mut proxies = self.proxies.lock();
        if let Some(count) = proxies.get_mut(&self.pid) {
            *count -= 1;
            if *count == 0 {
                proxies.remove(&self.pid);
            }
        }
    }
}

impl Service for Local {
    fn methods(&self) -> Vec<&'static Method> {
        #[allow(unused_mut)]
        let mut methods = self.nudge.methods();
        #[cfg(feature = "test-clock")]
        methods.extend([&test_clock::ADVANCE, &test_clock::PANIC]);
        methods
    }

    fn method(&self, name: &str) -> Option<&'static Method> {
        #[cfg(feature = "test-clock")]
        if let Some(row) = [&test_clock::ADVANCE, &test_clock::PANIC].into_iter().find(|row| row.name == name) {
            return Some(row);
        }
        self.nudge.method(name)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        #[cfg(feature = "test-clock")]
        if method == test_clock::ADVANCE.name {
            return test_clock::advance(&self.clock, params);
        }
        #[cfg(feature = "test-clock")]
        if method == test_clock::PANIC.name {
            test_clock::PANICS.notify_one();
            return super::control::object("{}");
        }
        if method == "nudge.status" {
            no_params(params)?;
            return self.status();
        }
        self.nudge.call_by(caller, method, params)
    }
}

/// Moves the clock, and makes the server panic, for tests; no release has it.
#[cfg(feature = "test-clock")]
pub(super) mod test_clock {
    use nudge::{Error, ErrorKind, ManualClock, Method, Result};
    use serde_json::value::RawValue;

    use crate::server::control::object;

    pub(super) static ADVANCE: Method = Method::new(
        "nudge.test_advance",
        "Move the clock",
        "Moves the store's clock by `ms`.",
        || serde_json::json!({"type": "object", "properties": {"ms": {"type": "integer"}}, "required": ["ms"]}),
    )
    .quick();

    /// Tells the server's own task.
    pub(in crate::server) static PANICS: tokio::sync::Notify = tokio::sync::Notify::const_new();

    pub(super) static PANIC: Method =
        Method::new("nudge.test_panic", "Panic", "Makes the server panic.", || serde_json::json!({"type": "object"}))
            .quick();

    pub(super) fn advance(clock: &ManualClock, params: &RawValue) -> Result<Box<RawValue>> {
        #[derive(serde::Deserialize)]
        struct Params {
            ms: i64,
        }
        let Params { ms } = serde_json::from_str(params.get())
            .map_err(|_| Error::new(ErrorKind::Invalid, "Give `ms`, a whole number of milliseconds."))?;
        object(&format!("{{\"now_ms\":{}}}", clock.advance(ms)))
    }
}
