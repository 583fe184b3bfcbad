//! `nudge.shutdown`, which exists on HTTP alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge::{Caller, Error, ErrorKind, Method, Result, Service, unknown_method};
use nudge_client::RuntimeDir;
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::recorder::{Recorder, leaving};

/// Ends the session.
pub const SHUTDOWN: &str = "nudge.shutdown";

const ABOUT: &str = "Ends the session: this server, and every other that stands in line for it.";

static METHOD: Method = Method::new(
    SHUTDOWN,
    "Stop the server",
    ABOUT,
    || serde_json::json!({"type": "object", "additionalProperties": false}),
)
.destructive()
.idempotent()
.quick();

/// Ends the session of the server it belongs to.
pub struct Control {
    dir: RuntimeDir,
    recorder: Arc<Recorder>,
    stop: watch::Sender<bool>,
    /// The session is over, so that a second call finds nothing to do.
    ended: AtomicBool,
}

impl Control {
    /// `stop` becomes true when the method is called.
    pub fn new(dir: RuntimeDir, recorder: Arc<Recorder>, stop: watch::Sender<bool>) -> Self {
        Self { dir, recorder, stop, ended: AtomicBool::new(false) }
    }
}

impl Service for Control {
    fn methods(&self) -> Vec<&'static Method> {
        vec![&METHOD]
    }

    fn call_by(&self, _: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        if method != SHUTDOWN {
            return Err(unknown_method());
        }
        no_params(params)?;
        match self.recorder.end_session(&self.dir) {
            // This process only leaves, and the session may go on elsewhere.
            None if !self.ended.load(Ordering::Relaxed) => return Err(leaving()),
            Some(Err(error)) => tracing::error!(error = error.message(), "the session was not ended cleanly"),
            None | Some(Ok(())) => {}
        }
        self.ended.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        object("{\"stopping\":true}")
    }
}

/// Refuses params where a method takes none.
pub(super) fn no_params(params: &RawValue) -> Result<()> {
    let inside = params.get().trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    match inside {
        None => Err(Error::new(ErrorKind::ParamsNotObject, "`params` must be a JSON object.")),
        Some(inside) if inside.trim().is_empty() => Ok(()),
        Some(_) => Err(Error::new(ErrorKind::Invalid, "This method takes no params; leave them out.")),
    }
}

/// A result written by hand.
pub(super) fn object(json: &str) -> Result<Box<RawValue>> {
    RawValue::from_string(json.to_owned())
        .map_err(|_| Error::new(ErrorKind::Invalid, "The result cannot be written as JSON."))
}
