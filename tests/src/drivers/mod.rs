//! Contains one driver for each surface.

pub mod c;
mod child;
pub mod cli;
mod flags;
pub mod http;
pub mod library;
pub mod mcp;

pub use child::binary;
use serde_json::value::RawValue;

use crate::format::{Case, Config};

/// Runs vectors through one surface of Nudge.
pub trait Driver {
    /// Returns the name of the surface, which begins the name of each test.
    fn name(&self) -> &'static str;

    /// Starts a fresh, empty store with this configuration. Its clock stands at `2026-01-01T00:00:00.000Z`. The
    /// previous store is dropped.
    fn start(&mut self, config: &Config) -> Result<(), String>;

    /// Starts a session, for sources that a store in this process does not have. If the surface has a server anyway,
    /// this is the same as [`Self::start`].
    fn start_session(&mut self, config: &Config) -> Result<(), String> {
        self.start(config)
    }

    /// Calls a method such as `nudge.set_hint` and does not change the params.
    ///
    /// The error is the error object `{code, message, data}`.
    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value>;

    /// Moves the clock forward by `ms` milliseconds.
    fn advance(&mut self, ms: u64) -> Result<(), String>;

    /// Returns the reason why this driver cannot run a case; `None` if it can.
    fn skip(&self, _case: &Case) -> Option<String> {
        None
    }
}

/// Lists a constructor for every driver.
#[must_use]
pub fn all() -> Vec<fn() -> Box<dyn Driver>> {
    vec![
        || Box::new(library::Library::default()),
        || Box::new(c::C::default()),
        || Box::new(http::Http::default()),
        || Box::new(mcp::Mcp::default()),
        || Box::new(cli::Cli::default()),
    ]
}

/// Makes the error object for a call without an answer. No case expects its code.
fn no_answer(message: &str) -> serde_json::Value {
    serde_json::json!({"code": -1, "message": format!("no answer: {message}"), "data": {}})
}
