//! The store of this process as a server offers it: `nudge.status` tells of the server too.

use std::sync::Arc;

use nudge::{Caller, Config, Error, ErrorKind, Method, Nudge, Result, Service, Status};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::control::no_params;
use super::history::History;

/// The store, with what `nudge.status` says of the server.
pub struct Local {
    nudge: Nudge,
    history: Arc<History>,
    port: u16,
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
}

impl Local {
    /// An empty store.
    #[cfg(not(feature = "test-clock"))]
    pub fn new(config: Config, port: u16) -> Self {
        Self::with_clock(config, port, &Arc::new(nudge::SystemClock))
    }

    /// An empty store whose clock stands at the beginning of 2026.
    #[cfg(feature = "test-clock")]
    pub fn new(config: Config, port: u16) -> Self {
        const START_MS: nudge::Millis = 1_767_225_600_000;
        Self::with_clock(config, port, &Arc::new(nudge::ManualClock::new(START_MS)))
    }

    fn with_clock(config: Config, port: u16, clock: &Arc<ServerClock>) -> Self {
        let history = Arc::new(History::default());
        let nudge = Nudge::with_log(config, Arc::clone(clock) as Arc<dyn nudge::Clock>, Box::new(Arc::clone(&history)));
        Self {
            nudge,
            history,
            port,
            #[cfg(feature = "test-clock")]
            clock: clock.clone(),
        }
    }

    /// What changes in the store.
    pub fn history(&self) -> &Arc<History> {
        &self.history
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
        to_raw_value(&ServerStatus { status, pid: std::process::id(), port: self.port })
            .map_err(|_| Error::new(ErrorKind::Invalid, "The status cannot be written as JSON."))
    }
}

impl Service for Local {
    fn methods(&self) -> Vec<&'static Method> {
        #[allow(unused_mut)]
        let mut methods = self.nudge.methods();
        #[cfg(feature = "test-clock")]
        methods.push(&test_clock::ADVANCE);
        methods
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        #[cfg(feature = "test-clock")]
        if method == test_clock::ADVANCE.name {
            return test_clock::advance(&self.clock, params);
        }
        if method == "nudge.status" {
            no_params(params)?;
            return self.status();
        }
        self.nudge.call_by(caller, method, params)
    }
}

/// Moves the clock, for tests; no release has it.
#[cfg(feature = "test-clock")]
mod test_clock {
    use nudge::{ContextUse, Error, ErrorKind, ManualClock, Method, Result};
    use serde_json::value::RawValue;

    use crate::server::control::object;

    pub(super) static ADVANCE: Method = Method {
        name: "nudge.test_advance",
        title: "Move the clock",
        description: "Moves the store's clock by `ms`.",
        tool: false,
        frequent: false,
        read_only: false,
        destructive: false,
        idempotent: false,
        context: ContextUse::None,
        params: || serde_json::json!({"type": "object", "properties": {"ms": {"type": "integer"}}, "required": ["ms"]}),
    };

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
