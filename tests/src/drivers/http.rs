//! Tests JSON-RPC over HTTP, with a separate `nudge serve` for each case.

use std::process::Stdio;

use serde_json::value::RawValue;

use super::child::Server;
use super::{Driver, no_answer};
use crate::format::Config;

/// The server over HTTP.
#[derive(Default)]
pub struct Http {
    server: Option<Server>,
}

impl Driver for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn start(&mut self, config: &Config) -> Result<(), String> {
        self.server = None;
        self.server = Some(Server::start(config, Stdio::null())?);
        Ok(())
    }

    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
        self.server.as_ref().ok_or_else(|| no_answer("not started"))?.call(method, params)
    }

    fn advance(&mut self, ms: u64) -> Result<(), String> {
        self.server.as_ref().ok_or("not started")?.advance(ms)
    }
}
