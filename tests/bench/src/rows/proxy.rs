//! Measures one call through a PROXY. The peer is the sum of the two calls that it consists of.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::json;

use crate::measure::{Turns, interleave_processes, work};
use crate::process::{KEY, Lines, Server, VALUE, program, tool_call};
use crate::table::{Line, Scale, versus};

/// Measures `nudge_get_hint` over stdio through a PROXY. The peer makes the call to the PRIMARY over stdio, and then
/// over HTTP.
pub fn call(scale: &Scale) -> Vec<Line> {
    let line = |measured, absolute| {
        vec![Line {
            what: "MCP call through a PROXY".into(),
            limit: 1.25,
            unit: "x",
            measured,
            peer: "stdio call + HTTP call".into(),
            absolute,
        }]
    };
    let Some(nudge) = program("nudge") else { return line(None, "not built here".into()) };
    let mut primary = Server::start(Command::new(&nudge)).expect("the server starts");
    let mut command = Command::new(&nudge);
    command.arg("serve").env("NUDGE_RUNTIME_DIR", primary.runtime());
    let mut proxy = Lines::start(command).expect("the PROXY starts");
    proxy.initialize();

    let place = json!({"cwd": "/", "repo": "github.com/acme/mono", "branch": "main", "os": "linux", "env": {"CI": ""}});
    let params = json!({"component": KEY.0, "key": KEY.1, "context": place});
    let get = tool_call("nudge_get_hint", &params);
    let request = primary.request("nudge.get_hint", &params);
    let mut stream = TcpStream::connect(("127.0.0.1", primary.port)).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    let mut buffer = vec![0; 64 << 10];
    let mut over_http = move || {
        stream.write_all(&request).expect("the server reads");
        // The server sends its answer in one piece, so one read is enough.
        stream.read(&mut buffer).map(|read| String::from_utf8_lossy(&buffer[..read]).contains(VALUE))
    };
    let over_stdio = |server: &mut Lines| {
        server.send(&get);
        server.receive().contains(VALUE)
    };
    assert!(over_stdio(&mut proxy) && over_stdio(&mut primary.mcp) && over_http().expect("an answer"));
    let turns = Turns { slice: scale.turns.slice * 10, ..scale.turns };
    let mut contenders =
        [work(|_| over_stdio(&mut proxy)), work(|_| over_stdio(&mut primary.mcp) && over_http().expect("an answer"))];
    let times = interleave_processes(turns, &mut contenders);
    line(Some(times.ratio(0, 1)), versus(times.median(0), times.median(1)))
}
