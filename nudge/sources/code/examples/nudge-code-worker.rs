//! Runs the worker of a session in a separate process, for tests that kill the worker:
//! `nudge-code-worker PROJECT CACHES`.

use std::path::PathBuf;

use nudge_code::SOURCE;
use nudge_core::source::{DataDir, SessionIdentity, SourceHost};
use serde_json::json;
use serde_json::value::to_raw_value;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(project), Some(caches)) = (args.next(), args.next()) else {
        return Err("nudge-code-worker PROJECT CACHES".into());
    };
    let source = (SOURCE.open)(SourceHost {
        session: SessionIdentity { id: "worker".into(), created_at: 0 },
        cache: DataDir::new(&caches),
        ..SourceHost::new_alone(&caches, &SOURCE, &[])?
    })?;
    let status = to_raw_value(&json!({"context": {"cwd": project}}))?;
    source.call("nudge.code.status", &status)?;
    // The worker runs on its own thread until the process is killed.
    loop {
        std::thread::park();
    }
}
