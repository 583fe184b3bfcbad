//! Measures a session that gets no question about code, and compares it with a session of a build without code.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::measure::{Clock, Turns, interleave_processes, median, take_turns, work};
use crate::process::{INITIALIZE, KEY, Lines, Server, program, tool_call};
use crate::rows::start::resident_bytes;
use crate::table::{Line, Scale, versus};

/// Nudge, and Nudge without the feature `code`.
pub const PROGRAMS: &[&str] = &["nudge", "nudge-without-code"];
/// The most starts of each binary.
const STARTS: usize = 51;
/// The number of calls before the memory is read.
const CALLS: usize = 1000;

/// Measures the start, the memory and `get`.
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
    // Each round uses new copies of both binaries. The physical position of a file's pages changes the time of a start
    // by up to 5 %, and the memory of the process by as much.
    let turns = Turns { rounds: scale.turns.rounds.min(STARTS), slice: Duration::ZERO };
    let (mut starts, mut memory) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..=scale.long_rounds * 2 {
        let [with, without] = [(&with, "with"), (&without, "without")].map(|(nudge, name)| {
            let copy = temp.path().join(name);
            // Removes the old copy first, because an overwritten file would keep its pages.
            let _ = fs::remove_file(&copy);
            fs::copy(nudge, &copy).expect("there is room for a copy");
            copy
        });
        starts.push(interleave_processes(turns, &mut [work(|_| start(&with)), work(|_| start(&without))]));
        for (samples, nudge) in memory.iter_mut().zip([&with, &without]) {
            samples.extend(resident(nudge));
        }
    }
    let took = |contender| median(starts.iter().map(|times| times.median(contender)).collect());
    let ratio = median(starts.iter().map(|times| times.ratio(0, 1)).collect());
    let [with_bytes, without_bytes] = memory.map(median);

    let [mut ours, mut theirs] =
        [&with, &without].map(|nudge| Server::start(Command::new(nudge)).expect("the server starts"));
    let clocks = [&ours, &theirs].map(|server| Clock::Asking(server.mcp.pid()));
    let turns = Turns { slice: scale.turns.slice * 10, ..scale.turns };
    let gets = take_turns(turns, &clocks, &mut [work(|_| call(&mut ours)), work(|_| call(&mut theirs))]);
    vec![
        line("start", Some(ratio), versus(took(0), took(1))),
        line(
            "memory",
            Some(with_bytes / without_bytes).filter(|ratio| ratio.is_finite()),
            format!("{:.2} MB vs {:.2} MB", with_bytes / 1e6, without_bytes / 1e6),
        ),
        line("get", Some(gets.ratio(0, 1)), versus(gets.median(0), gets.median(1))),
    ]
}
