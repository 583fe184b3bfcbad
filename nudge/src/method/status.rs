//! `nudge.status`: the size and the limits of the store.

use nudge_core::clock::rfc3339;
use nudge_core::service::MethodSpec;
use nudge_core::table::{NoParams, TableRow, answer_typed, build_schema};
use serde::Serialize;

use crate::cache::Nudge;

const ABOUT: &str = "What is stored, and the limits.";

pub(super) static ROW: TableRow<Nudge> = TableRow {
    method: MethodSpec::new("nudge.status", "Status", ABOUT, build_schema::<NoParams>).read_only().vital(),
    run: |nudge, _, params| answer_typed(params, |_: NoParams| Ok(nudge.status())),
};

/// Result of [`Nudge::status`]. A server adds `pid`, `port` and its role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreStatus {
    /// The version of this library.
    pub version: &'static str,
    /// The session's random id.
    pub session_id: String,
    /// `LIBRARY` in a program with its own store; `PRIMARY` or `PROXY` from a server.
    pub role: &'static str,
    /// The time at which the store was made.
    pub started: String,
    /// The number of live hints; each variant counts.
    pub hints: usize,
    /// The number of components with live hints.
    pub components: usize,
    /// The limits in force.
    pub limits: StoreLimits,
    /// Seconds since `started`.
    pub uptime_s: i64,
}

/// The limits of semantics section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct StoreLimits {
    pub components: usize,
    pub hints_per_component: usize,
    pub hints: usize,
    pub bytes: usize,
}

impl Nudge {
    /// Returns the size and the limits of the store.
    pub fn status(&self) -> StoreStatus {
        let now = self.now();
        let counts = self.store.count_live(now);
        let config = self.config();
        StoreStatus {
            version: env!("CARGO_PKG_VERSION"),
            session_id: self.session_id.clone(),
            role: "LIBRARY",
            started: rfc3339::format_time(self.created_at),
            hints: counts.iter().map(|(_, count)| count).sum(),
            components: counts.len(),
            limits: StoreLimits {
                components: config.max_components,
                hints_per_component: config.max_hints_per_component,
                hints: config.max_hints,
                bytes: config.max_bytes,
            },
            uptime_s: (now - self.created_at).max(0) / 1000,
        }
    }
}
