//! The method `nudge.shutdown`, which exists only over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nudge::{Method, Result};
use nudge_client::RuntimeDir;
use nudge_core::once::Once;
use nudge_core::table::{NoParams, Row, Table, TableService, answer, schema};
use serde::Serialize;
use tokio::sync::watch;

use super::journal::{SessionJournal, leaving};

/// The method that ends the session.
pub const SHUTDOWN: &str = "nudge.shutdown";

const ABOUT: &str = "Ends the session: this server, and every other that stands in line for it.";

static TABLE: Table<Control> = Table(&[&Row {
    method: Method::new(SHUTDOWN, "Stop the server", ABOUT, schema::<NoParams>).destructive().idempotent().quick(),
    run: |control, _, params| answer(params, |_: NoParams| control.shutdown()),
}]);

#[derive(Serialize)]
struct Stopping {
    stopping: bool,
}

/// The service that ends the session of its server.
pub struct Control {
    dir: RuntimeDir,
    journal: Arc<SessionJournal>,
    stop: watch::Sender<bool>,
    /// Set once the session was ended, so that a second call has nothing to do.
    ended: AtomicBool,
}

impl Control {
    /// Makes the service; `stop` becomes true when the method is called.
    pub fn new(dir: RuntimeDir, journal: Arc<SessionJournal>, stop: watch::Sender<bool>) -> Self {
        Self { dir, journal, stop, ended: AtomicBool::new(false) }
    }

    fn shutdown(&self) -> Result<Stopping> {
        match self.journal.end_session(&self.dir) {
            // The journal is closed: this process only leaves, and the session may go on elsewhere.
            None if !self.ended.load(Ordering::Relaxed) => return Err(leaving()),
            Some(Err(error)) => tracing::error!(error = error.message(), "the session was not ended cleanly"),
            None | Some(Ok(())) => {}
        }
        self.ended.store(true, Ordering::Relaxed);
        self.stop.send_replace(true);
        Ok(Stopping { stopping: true })
    }
}

impl TableService for Control {
    const TABLE: &'static Table<Self> = &TABLE;

    // A repeated call finds nothing to do.
    fn once(&self) -> Option<&dyn Once> {
        None
    }
}
