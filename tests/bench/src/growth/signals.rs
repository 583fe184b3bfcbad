//! Measures how the cost of a state directory grows with its number of agents. Each agent has a signal.

use std::path::Path;
use std::sync::Arc;

use nudge_core::source::{Source, SourceHost};
use nudge_signals::SOURCE;
use serde_json::json;

use super::{call, of};

fn opened(folder: &Path) -> Arc<dyn Source> {
    let host = SourceHost::new_alone(&folder.join("data"), &SOURCE, &[]).expect("the defaults are allowed");
    (SOURCE.open)(host).expect("the folder is there")
}

/// Writes a signal for each agent.
pub fn fill(folder: &Path, items: usize) {
    let source = opened(folder);
    let context = json!({"cwd": folder});
    for index in 0..items {
        let params =
            json!({"agent": format!("agent-{index}"), "type": "sync_request", "from": "mayor", "context": context});
        call(&*source, "nudge.signals.send", &params);
    }
}

/// Calls all verbs of the signals.
pub fn ask(folder: &Path, items: usize) {
    let source = opened(folder);
    let context = json!({"cwd": folder});
    let agent = |step: usize| format!("agent-{}", step * 7_919 % items);
    of("check", 20, |step| {
        call(&*source, "nudge.signals.check", &json!({"agent": agent(step), "context": context}));
    });
    of("send", 20, |step| {
        let params = json!({"agent": agent(step), "type": "health_check", "from": "mayor", "context": context});
        call(&*source, "nudge.signals.send", &params);
    });
    of("respond", 20, |step| {
        call(&*source, "nudge.signals.respond", &json!({"agent": agent(step), "context": context}));
    });
    of("list", 1, |_| {
        call(&*source, "nudge.signals.list", &json!({"context": context}));
    });
}
