//! One call over stdio, as an agent makes it.

use std::process::Command;

use serde_json::json;

use crate::measure::{interleave_processes, work};
use crate::peers::echo_tool::ECHO_TOOL;
use crate::process::{KEY, Lines, Server, VALUE, program, tool_call};
use crate::table::{Line, Scale, versus};

/// `nudge_get_hint` beside an rmcp tool that gives back as many bytes as the hint's value has.
pub fn call(scale: &Scale) -> Vec<Line> {
    let line = |measured, absolute| Line {
        what: "MCP call over stdio".into(),
        limit: 1.3,
        unit: "x",
        measured,
        peer: "bare rmcp echo tool".into(),
        absolute,
    };
    let Some(nudge) = program("nudge") else { return vec![line(None, "not built here".into())] };
    let mut ours = Server::start(&nudge, None).expect("the server starts");
    let mut echo = Command::new(std::env::current_exe().expect("this program"));
    echo.arg(ECHO_TOOL);
    let mut echo = Lines::start(echo).expect("the peer starts");
    echo.initialize();

    let get = tool_call("nudge_get_hint", &json!({"component": KEY.0, "key": KEY.1}));
    let say = tool_call("echo", &json!({"say": VALUE}));
    for (server, call) in [(&mut ours.mcp, &get), (&mut echo, &say)] {
        server.send(call);
        let answer = server.receive();
        assert!(answer.contains(VALUE) && answer.contains("\"isError\":false"), "{answer}");
    }
    let turn = |server: &mut Lines, call: &str| {
        server.send(call);
        server.receive().len()
    };
    let times =
        interleave_processes(scale.turns, &mut [work(|_| turn(&mut ours.mcp, &get)), work(|_| turn(&mut echo, &say))]);
    vec![line(Some(times.ratio(0, 1)), versus(times.median(0), times.median(1)))]
}
