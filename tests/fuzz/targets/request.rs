//! Passes a JSON-RPC body to a store.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nudge::{Caller, Config, Nudge, SetHint};
use nudge_server::http::rpc::answer_rpc_body;
use serde_json::Value;

static STORE: LazyLock<Nudge> = LazyLock::new(|| {
    // Low limits keep the store small. So a call after many others takes no longer.
    let nudge = Nudge::new(Config { max_hints: 50, max_bytes: 1 << 16, ..Config::default() });
    nudge.set(SetHint::new("api", "build", "make api")).expect("a plain hint");
    nudge
});

fuzz_target!(|body: &[u8]| {
    if let Some(answer) = answer_rpc_body(&*STORE, Caller::default(), body) {
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        let all = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
        assert!(
            all.iter().all(|answer| answer["jsonrpc"] == "2.0"
                && (answer.get("result").is_some() != answer.get("error").is_some()))
        );
    }
});
