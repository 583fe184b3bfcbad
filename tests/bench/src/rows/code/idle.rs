//! A session that never asks for code, beside one of a build without it.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::measure::{Clock, Turns, interleave_processes, take_turns, work};
use crate::process::{INITIALIZE, KEY, Lines, Server, program, tool_call};
use crate::rows::start::resident_bytes;
use crate::table::{Line, Scale, versus};

/// Ours, and ours without the feature.
pub const PROGRAMS: &[&str] = &["nudge", "nudge-without-code"];
/// Starts at the most, and servers whose memory is looked at.
const STARTS: usize = 201;
const SERVERS: usize = 5;
/// Calls before the memory is looked at.
const CALLS: usize = 1000;

/// Start, memory and `get`.
pub fn session(scale: &Scale) -> Vec<Line> {
    let line = |what: &str, measured, absolute| Line {
        what: format!("without a call for code: {what}"),
        limit: 1.02,
        unit: "x",
        measured,
        peer: "a build without it".into(),
        absolute,
    };
    let Some((with, without)) = program("nudge").zip(program("nudge-without-code")) else {
        return ["start", "memory", "get"].map(|what| line(what, None, "not built here".into())).into();
    };
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let start = |nudge: &Path| {
        let mut command = Command::new(nudge);
        command.args(["serve", "--port", "0"]).env("NUDGE_RUNTIME_DIR", temp.path().join("run"));
        let mut server = Lines::start(command).expect("the server starts");
        server.send(INITIALIZE);
        server.receive();
    };
    let turns = Turns { rounds: scale.turns.rounds.min(STARTS), slice: std::time::Duration::ZERO };
    let starts = interleave_processes(turns, &mut [work(|_| start(&with)), work(|_| start(&without))]);

    let get = tool_call("nudge_get_hint", &json!({"component": KEY.0, "key": KEY.1, "context": {"cwd": "/"}}));
    let call = |server: &mut Server| {
        server.mcp.send(&get);
        server.mcp.receive().len()
    };
    let resident = |nudge: &Path| -> Option<f64> {
        let mut server = Server::start(Command::new(nudge)).expect("the server starts");
        for _ in 0..CALLS {
            call(&mut server);
        }
        resident_bytes(server.mcp.pid())
    };
    let least = |nudge: &Path| -> Option<f64> {
        (0..SERVERS.min(scale.long_rounds))
            .map(|_| resident(nudge))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .reduce(f64::min)
    };
    let memory = least(&with).zip(least(&without));

    let [mut ours, mut theirs] =
        [&with, &without].map(|nudge| Server::start(Command::new(nudge)).expect("the server starts"));
    let clocks = [&ours, &theirs].map(|server| Clock::Asking(server.mcp.pid()));
    let turns = Turns { slice: scale.turns.slice * 10, ..scale.turns };
    let gets = take_turns(turns, &clocks, &mut [work(|_| call(&mut ours)), work(|_| call(&mut theirs))]);
    vec![
        line("start", Some(starts.ratio(0, 1)), versus(starts.median(0), starts.median(1))),
        line(
            "memory",
            memory.map(|(with, without)| with / without),
            memory.map_or_else(
                || "needs /proc".into(),
                |(with, without)| format!("{:.2} MB vs {:.2} MB", with / 1e6, without / 1e6),
            ),
        ),
        line("get", Some(gets.ratio(0, 1)), versus(gets.median(0), gets.median(1))),
    ]
}
