//! One call over stdio, as an agent makes it.

use std::cell::RefCell;
use std::process::Command;

use serde_json::json;

use crate::measure::{Clock, Turns, take_turns, work};
use crate::peers::echo_tool::ECHO_TOOL;
use crate::process::{KEY, Lines, Server, VALUE, program, tool_call};
use crate::rows::git::repository;
use crate::table::{Line, Scale, versus};

/// Who says where it is, and who leaves that to the server, which then looks at git's files.
const CALLERS: [&str; 2] = ["MCP call over stdio, context given", "MCP call over stdio, inferred"];

/// What ours is compared with, and how long it may take beside each.
const PEERS: [(&str, f64); 2] = [("bare rmcp echo tool", 1.3), ("bare rmcp tool, an answer as long", 1.3)];

/// `nudge_get_hint` beside an rmcp tool that gives back as many bytes as the hint's value has, and as the whole answer has.
pub fn call(scale: &Scale) -> Vec<Line> {
    let line = |what: &str, peer: usize, measured, absolute| {
        let (name, limit) = PEERS[peer];
        Line { what: what.into(), limit, unit: "x", measured, peer: name.into(), absolute }
    };
    let Some(nudge) = program("nudge") else {
        let unknown = |what| [0, 1].map(|peer| line(what, peer, None, "not built here".into()));
        return CALLERS.map(unknown).into_iter().flatten().collect();
    };
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let here = repository(&temp).expect("git makes a repository");
    let mut command = Command::new(&nudge);
    command.current_dir(&here).env("PWD", &here);
    let mut ours = Server::start(command).expect("the server starts");
    let mut echo = Command::new(std::env::current_exe().expect("this program"));
    echo.arg(ECHO_TOOL);
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
        answer.len()
    };
    let length = check(&mut ours.mcp, &given);
    check(&mut ours.mcp, &inferred);
    check(&mut echo, &say);
    let say_more = tool_call("echo", &json!({"say": VALUE, "times": length / VALUE.len()}));
    check(&mut echo, &say_more);
    let [our_clock, clock] = [&ours.mcp, &echo].map(|server| Clock::Asking(server.pid()));
    let turn = |server: &mut Lines, call: &str| {
        server.send(call);
        server.receive().len()
    };
    // Long enough for either process to be warm for most of its turn.
    let turns = Turns { slice: scale.turns.slice * 10, ..scale.turns };
    let echo = RefCell::new(echo);
    let lines = [(CALLERS[0], given), (CALLERS[1], inferred)].map(|(what, get)| {
        let mut contenders = [
            work(|_| turn(&mut ours.mcp, &get)),
            work(|_| turn(&mut echo.borrow_mut(), &say)),
            work(|_| turn(&mut echo.borrow_mut(), &say_more)),
        ];
        let times = take_turns(turns, &[our_clock, clock, clock], &mut contenders);
        [1, 2].map(|peer| line(what, peer - 1, Some(times.ratio(0, peer)), versus(times.median(0), times.median(peer))))
    });
    lines.into_iter().flatten().collect()
}
