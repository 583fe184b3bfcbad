//! A session's worker in a process of its own, for tests that kill it: `nudge-code-worker PROJECT CACHES`.

use std::path::PathBuf;
use std::sync::Arc;

use nudge_code::SOURCE;
use nudge_core::clock::SystemClock;
use nudge_core::embed::NoModels;
use nudge_core::error::Result;
use nudge_core::settings::Values;
use nudge_core::source::{ChangeEvent, ChangeSink, DataDir, Fence, Host, Journal, SessionIdentity, StopFlag};
use serde_json::json;
use serde_json::value::to_raw_value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(project), Some(caches)) = (args.next(), args.next()) else {
        return Err("nudge-code-worker PROJECT CACHES".into());
    };
    let mut values = Values::default();
    SOURCE.settings.iter().for_each(|setting| values.or_default(setting));
    let source = (SOURCE.open)(Host {
        clock: Arc::new(SystemClock),
        session: SessionIdentity { id: "worker".into(), created_at: 0 },
        data: DataDir::new(caches.join("data")),
        cache: DataDir::new(&caches),
        fence: Arc::new(Nothing),
        journal: Arc::new(Nothing),
        records: Box::new(std::iter::empty()),
        changes: Arc::new(Nothing),
        models: Arc::new(NoModels),
        settings: Arc::new(values),
    })?;
    let status = to_raw_value(&json!({"context": {"cwd": project}}))?;
    source.call("nudge.code.status", &status)?;
    source.work(&StopFlag::default());
    Ok(())
}

/// No session.
struct Nothing;

impl Fence for Nothing {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        keep()
    }
}

impl Journal for Nothing {
    fn passed_over(&self, _: usize) {}

    fn append(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn is_long(&self) -> bool {
        false
    }

    fn begin_anew(&self, _: &[Vec<u8>]) {}
}

impl ChangeSink for Nothing {
    fn tell(&self, _: &[ChangeEvent]) {}
}
