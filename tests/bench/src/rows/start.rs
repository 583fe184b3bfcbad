//! Measures how an agent starts a session: the time until the first answer, and the memory.

use std::process::Command;

use serde_json::json;

use crate::measure::{median, wall_ns};
use crate::process::{INITIALIZE, KEY, Lines, Server, program, tool_call};
use crate::table::{Line, Scale, time};

/// The most starts that are measured.
const STARTS: usize = 51;
/// The number of calls before the memory is read.
const CALLS: usize = 1000;

/// Measures the time from the start of the process to its first line on stdout.
pub fn first_reply(scale: &Scale) -> Vec<Line> {
    let times = program("nudge").map(|nudge| {
        let temp = tempfile::tempdir().expect("a folder for temporary files");
        let once = |_| {
            let mut command = Command::new(&nudge);
            command.args(["serve", "--port", "0"]).env("NUDGE_RUNTIME_DIR", temp.path().join("run"));
            let start = wall_ns();
            let mut server = Lines::start(command).expect("the server starts");
            server.send(INITIALIZE);
            server.receive();
            wall_ns() - start
        };
        median((0..scale.turns.rounds.min(STARTS)).map(once).collect())
    });
    vec![Line {
        what: "start to first MCP reply, p50".into(),
        limit: 15.0,
        unit: "ms",
        measured: times.map(|ns| ns / 1e6),
        peer: "-".into(),
        absolute: times.map_or_else(|| "not built here".into(), time),
    }]
}

/// Measures the resident memory of a server after a thousand calls.
pub fn resident(_: &Scale) -> Vec<Line> {
    let megabytes = program("nudge").and_then(|nudge| {
        let mut server = Server::start(Command::new(nudge)).expect("the server starts");
        let get = tool_call("nudge_get_hint", &json!({"component": KEY.0, "key": KEY.1}));
        for _ in 0..CALLS {
            server.mcp.send(&get);
            server.mcp.receive();
        }
        resident_bytes(server.mcp.pid()).map(|bytes| bytes / 1e6)
    });
    vec![Line {
        what: "serve, resident memory".into(),
        limit: 10.0,
        unit: "MB",
        measured: megabytes,
        peer: "-".into(),
        absolute: megabytes.map_or_else(|| "needs /proc".into(), |megabytes| format!("{megabytes:.1} MB")),
    }]
}

/// Returns the resident memory of a process in bytes; `None` if the system does not report it.
pub fn resident_bytes(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"))?;
    kib.parse::<f64>().ok().map(|kib| kib * 1024.0)
}
