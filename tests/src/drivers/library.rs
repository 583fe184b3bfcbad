//! Tests the library in this process through its [`Service`].

use std::sync::Arc;

use nudge::{Config as NudgeConfig, ManualClock, Nudge, Service};
use serde_json::value::RawValue;

use super::{Driver, no_answer};
use crate::format::{Case, Config};

/// `2026-01-01T00:00:00.000Z` in milliseconds since 1970.
const START_MS: i64 = 1_767_225_600_000;

/// The library with a clock that the case moves.
#[derive(Default)]
pub struct Library {
    running: Option<(Nudge, Arc<ManualClock>)>,
}

impl Driver for Library {
    fn name(&self) -> &'static str {
        "library"
    }

    fn start(&mut self, config: &Config) -> Result<(), String> {
        let env = config.env();
        let config = NudgeConfig::from_env(|name| env.get(name).cloned()).map_err(|e| e.to_string())?;
        let clock = Arc::new(ManualClock::new(START_MS));
        self.running = Some((Nudge::with_clock(config, clock.clone()), clock));
        Ok(())
    }

    fn skip(&self, case: &Case) -> Option<String> {
        case.needs.as_ref().map(|_| "a store of this process has hints alone".to_owned())
    }

    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
        let (nudge, _) = self.running.as_ref().ok_or_else(|| no_answer("not started"))?;
        nudge
            .call(method, params)
            .map_err(|error| serde_json::to_value(&error).unwrap_or_else(|e| no_answer(&e.to_string())))
    }

    fn advance(&mut self, ms: u64) -> Result<(), String> {
        let (_, clock) = self.running.as_ref().ok_or("not started")?;
        clock.advance_by(i64::try_from(ms).map_err(|e| e.to_string())?);
        Ok(())
    }
}
