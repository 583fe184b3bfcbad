//! Test methods that move the clock, or make the server panic or hang. No release contains them.

use std::sync::Arc;
use std::time::Duration;

use nudge::{ManualClock, MethodSpec};
use nudge_core::once::OnceByKey;
use nudge_core::table::{MethodTable, TableRow, TableService, answer_typed};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

/// Tells the server's main task to panic.
pub static PANICS: Notify = Notify::const_new();

/// The start time of a test clock: the beginning of 2026.
pub const START_MS: nudge::Millis = 1_767_225_600_000;

static TABLE: MethodTable<TestClock> = MethodTable(&[
    &TableRow {
        method: MethodSpec::new(
            "nudge.test_advance",
            "Move the clock",
            "Lets `ms` pass for the store, or sets its clock by `ms` without that any time passes.",
            || {
                let properties = json!({"ms": {"type": "integer"}, "jump": {"type": "boolean"}});
                json!({"type": "object", "properties": properties, "required": ["ms"]})
            },
        )
        .vital(),
        run: |clock, _, params| {
            answer_typed(params, |AdvanceParams { ms, jump }| {
                let now_ms = if jump { clock.0.jump_by(ms) } else { clock.0.advance_by(ms) };
                Ok(json!({"now_ms": now_ms}))
            })
        },
    },
    &TableRow {
        method: MethodSpec::new("nudge.test_panic", "Panic", "Makes the server panic.", || json!({"type": "object"}))
            .vital(),
        run: |_, _, params| {
            answer_typed(params, |_: nudge::NoParams| {
                PANICS.notify_one();
                Ok(json!({}))
            })
        },
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.test_stall",
            "Stand still",
            "Keeps the event loop from going on for `ms`.",
            || json!({"type": "object", "properties": {"ms": {"type": "integer"}}, "required": ["ms"]}),
        )
        .inline(),
        run: |_, _, params| {
            answer_typed(params, |StallParams { ms }| {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(json!({}))
            })
        },
    },
]);

#[derive(Deserialize)]
struct StallParams {
    ms: u64,
}

#[derive(Deserialize)]
struct AdvanceParams {
    ms: i64,
    #[serde(default)]
    jump: bool,
}

/// The service that moves the clock of a server under test.
pub struct TestClock(pub Arc<ManualClock>);

impl TableService for TestClock {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}
