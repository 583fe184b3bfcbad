//! `nudge.status`

use nudge_core::clock::rfc3339;
use nudge_core::service::Method;
use nudge_core::table::{NoParams, Row, answer, schema};
use serde::Serialize;

use crate::cache::Nudge;

const ABOUT: &str = "What is stored, and the limits.";

pub(super) static ROW: Row<Nudge> = Row {
    method: Method::new("nudge.status", "Status", ABOUT, schema::<NoParams>).reads().quick(),
    run: |nudge, _, params| answer(params, |_: NoParams| Ok(nudge.status())),
};

/// Result of [`Nudge::status`]. A server adds `pid`, `port` and its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The version of this library.
    pub version: &'static str,
    /// The session's random id.
    pub session_id: String,
    /// `LIBRARY` in process; `PRIMARY` or `PROXY` from a server.
    pub role: &'static str,
    /// The time at which the store was made.
    pub started: String,
    /// Number of live hints, variants counted.
    pub hints: usize,
    /// Number of components with live hints.
    pub components: usize,
    /// The limits in force.
    pub limits: Limits,
    /// Seconds since `started`.
    pub uptime_s: i64,
}

/// The limits of semantics section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Limits {
    pub components: usize,
    pub hints_per_component: usize,
    pub hints: usize,
    pub bytes: usize,
}

impl Nudge {
    /// Tells the stored numbers and the limits.
    pub fn status(&self) -> Status {
        let now = self.now();
        let counts = self.store.counts(now);
        let config = self.config();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            session_id: self.session_id.clone(),
            role: "LIBRARY",
            started: rfc3339::text(self.created_at),
            hints: counts.iter().map(|(_, count)| count).sum(),
            components: counts.len(),
            limits: Limits {
                components: config.max_components,
                hints_per_component: config.max_hints_per_component,
                hints: config.max_hints,
                bytes: config.max_bytes,
            },
            uptime_s: (now - self.created_at).max(0) / 1000,
        }
    }
}
