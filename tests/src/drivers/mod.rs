//! One driver for each surface.

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

/// A surface of Nudge that vectors can be put through.
pub trait Driver {
    /// The name that stands before each case's.
    fn name(&self) -> &'static str;

    /// A fresh, empty store with this configuration; its clock stands at
    /// `2026-01-01T00:00:00.000Z`. A store started before is dropped.
    fn start(&mut self, config: &Config) -> Result<(), String>;

    /// The same on a session, for sources that a store of one's own has not. Every surface with a server is one
    /// already.
    fn start_session(&mut self, config: &Config) -> Result<(), String> {
        self.start(config)
    }

    /// Calls a method (`nudge.set_hint`) with params as they stand.
    ///
    /// The error is the error object `{code, message, data}`.
    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value>;

    /// Moves the clock.
    fn advance(&mut self, ms: u64) -> Result<(), String>;

    /// Why this driver cannot run a case, if it cannot.
    fn skip(&self, _case: &Case) -> Option<String> {
        None
    }
}

/// Every driver.
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

/// The error object of a driver that got no answer at all; no case expects its code.
fn no_answer(message: &str) -> serde_json::Value {
    serde_json::json!({"code": -1, "message": format!("no answer: {message}"), "data": {}})
}
