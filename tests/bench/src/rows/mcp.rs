//! Measures one MCP call over stdio, as an agent makes it.

use std::cell::RefCell;
use std::process::Command;

use serde_json::json;

use crate::measure::{Clock, Times, Turns, take_turns, work};
use crate::peers::echo_tool::ECHO_TOOL;
use crate::process::{KEY, Lines, Server, VALUE, program, tool_call};
use crate::rows::git::repository;
use crate::table::{Line, Scale, versus};

/// The lines of the table: a call that gives its context, and a call without a context, for which the server reads
/// git's files.
const GIVEN: &str = "MCP call over stdio, context given";
const INFERRED: &str = "MCP call over stdio, inferred";

/// The names of the peers: an rmcp tool that returns as many bytes as the hint's value, and an rmcp tool that makes the
/// same call of the library. Without a context, the second tool infers it.
const ECHO: &str = "bare rmcp echo tool";
const CALLS: &str = "bare rmcp tool, the same call of the library";

/// Measures `nudge_get_hint` and compares it with both peers.
pub fn call(scale: &Scale) -> Vec<Line> {
    let line = |what: &str, peer: &str, measured: Option<(&Times, usize)>| Line {
        what: what.into(),
        limit: 1.3,
        unit: "x",
        measured: measured.map(|(times, contender)| times.ratio(0, contender)),
        peer: peer.into(),
        absolute: measured.map_or_else(
            || "not built here".into(),
            |(times, contender)| versus(times.median(0), times.median(contender)),
        ),
    };
    let lines = |times: Option<[Times; 2]>| {
        let measured = |caller: usize, contender| times.as_ref().map(|times| (&times[caller], contender));
        [(GIVEN, 0), (INFERRED, 1)]
            .into_iter()
            .flat_map(|(what, caller)| {
                [(ECHO, 1), (CALLS, 2)].map(|(peer, contender)| line(what, peer, measured(caller, contender)))
            })
            .collect()
    };
    let Some(nudge) = program("nudge") else { return lines(None) };
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let here = repository(&temp).expect("git makes a repository");
    let mut command = Command::new(&nudge);
    command.current_dir(&here).env("PWD", &here);
    let mut ours = Server::start(command).expect("the server starts");
    let mut echo = Command::new(std::env::current_exe().expect("this program"));
    echo.arg(ECHO_TOOL).current_dir(&here);
    let mut echo = Lines::start(echo).expect("the peer starts");
    echo.initialize();

    let place = json!({"cwd": here, "repo": "github.com/acme/mono", "branch": "feature/login", "os": "linux", "env": {"CI": ""}});
    let given = tool_call("nudge_get_hint", &json!({"component": KEY.0, "key": KEY.1, "context": place}));
    let inferred = tool_call("nudge_get_hint", &json!({"component": KEY.0, "key": KEY.1}));
    let say = tool_call("echo", &json!({"say": VALUE}));
    let check = |server: &mut Lines, call: &str| {
        server.send(call);
        let answer = server.receive();
        assert!(answer.contains(VALUE) && answer.contains("\"isError\":false"), "{answer}");
    };
    check(&mut ours.mcp, &given);
    check(&mut ours.mcp, &inferred);
    check(&mut echo, &say);
    let [bare_given, bare_inferred] = [&given, &inferred].map(|call| call.replace("nudge_get_hint", "get_hint"));
    check(&mut echo, &bare_given);
    check(&mut echo, &bare_inferred);
    let [our_clock, clock] = [&ours.mcp, &echo].map(|server| Clock::Asking(server.pid()));
    let turn = |server: &mut Lines, call: &str| {
        server.send(call);
        server.receive().len()
    };
    // The turn is long, so that each process runs with full caches most of the time.
    let turns = Turns { slice: scale.turns.slice * 10, ..scale.turns };
    let echo = RefCell::new(echo);
    lines(Some([(given, bare_given), (inferred, bare_inferred)].map(|(get, bare)| {
        let mut contenders = [
            work(|_| turn(&mut ours.mcp, &get)),
            work(|_| turn(&mut echo.borrow_mut(), &say)),
            work(|_| turn(&mut echo.borrow_mut(), &bare)),
        ];
        take_turns(turns, &[our_clock, clock, clock], &mut contenders)
    })))
}
