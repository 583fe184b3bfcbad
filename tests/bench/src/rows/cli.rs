//! Measures `nudge get` and `nudge hook` as whole processes. Compares them with processes without work and with a
//! similar tool.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nudge::ExportHints;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::data;
use crate::measure::{Times, Turns, Work, interleave_processes, work};
use crate::process::{KEY, Server, VALUE, program, tool_call};
use crate::rows::git::repository;
use crate::table::{Line, Scale, versus};

/// Nudge as `cargo install` builds it and as it is released, and peers that are built in the same ways.
pub const PROGRAMS: &[&str] = &["nudge", "hello", "nudge-static", "zoxide", "ask"];
/// The programs for the hook.
pub const HOOK_PROGRAMS: &[&str] = &["nudge", "hello", "nudge-static", "ask"];
/// The program that sends a prepared request. It shows the least time of a command that calls a session.
const ASK: &str = "Rust, one call to the session";
/// The largest allowed ratio of Nudge's time to the time of this program.
const TWICE: f64 = 2.0;
/// The number of folders in zoxide's database.
const FOLDERS: usize = 50;

/// A program with everything that it needs for repeated runs.
struct Contender {
    program: PathBuf,
    run: Box<dyn Fn(&Path) -> Command>,
    says: &'static str,
}

/// Measures `nudge get` in a folder of a repository while a server runs.
pub fn get(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let here = repository(&temp).expect("git makes a repository");
    let server = program("nudge").and_then(|nudge| Server::start(Command::new(nudge)).ok());
    let runtime = server.as_ref().map(Server::runtime).unwrap_or_default();
    let database = program("zoxide").and_then(|zoxide| database(&zoxide, &temp));

    let ours = |program: PathBuf| {
        let (runtime, here) = (runtime.clone(), here.clone());
        let run = move |program: &Path| {
            let mut command = Command::new(program);
            command.args(["get", KEY.0, KEY.1]).env("NUDGE_RUNTIME_DIR", &runtime);
            command.current_dir(&here).env("PWD", &here);
            command
        };
        Contender { program, run: Box::new(run), says: VALUE }
    };
    let zoxide = |database: PathBuf| {
        let run = move |program: &Path| {
            let mut command = Command::new(program);
            command.args(["query", "folder-17"]).env("_ZO_DATA_DIR", &database);
            command
        };
        program("zoxide").map(|program| Contender { program, run: Box::new(run), says: "folder-17" })
    };
    let question = json!({"component": KEY.0, "key": KEY.1, "context": {"cwd": here}});
    let contenders = [
        program("nudge").map(ours),
        program("hello").map(hello),
        program("nudge-static").map(ours),
        database.and_then(zoxide),
        ask(&temp, &runtime, "nudge.get_hint", &question, VALUE),
    ];
    let (times, positions) = times(scale, &contenders);
    let line = |what, limit, pair, peer| line(&times, &positions, what, limit, pair, peer);
    vec![
        line("nudge get, process, static", 1.3, (2, 1), "Rust hello-world"),
        line("nudge get, process, static", 0.85, (2, 3), "zoxide query"),
        line("nudge get, process, static", TWICE, (2, 4), ASK),
        line("nudge get, process, cargo install", 2.0, (0, 1), "Rust hello-world"),
        line("nudge get, process, cargo install", TWICE, (0, 4), ASK),
    ]
}

/// Makes a contender from the smallest program: it sends this call and prints the answer. Returns `None` if the program
/// was not built.
fn ask(temp: &TempDir, runtime: &Path, method: &str, params: &Value, says: &'static str) -> Option<Contender> {
    let (socket, body) = (runtime.join("server.sock"), temp.path().join("question.json"));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    std::fs::write(&body, call.to_string()).expect("a file");
    let run = move |program: &Path| {
        let mut command = Command::new(program);
        command.arg(&socket).arg(&body);
        command
    };
    program("ask").map(|program| Contender { program, run: Box::new(run), says })
}

fn hello(program: PathBuf) -> Contender {
    Contender { program, run: Box::new(|program: &Path| Command::new(program)), says: "hello" }
}

/// Measures `nudge hook` with a prompt that mentions a hint. The server's store has the default size.
pub fn hook(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let here = repository(&temp).expect("git makes a repository");
    let event = temp.path().join("event.json");
    // The event has no client session, so each call is like the first call of a session.
    let prompt = format!("how do I {} {}?", KEY.1, KEY.0);
    let said = json!({"hook_event_name": "UserPromptSubmit", "cwd": here, "prompt": prompt});
    std::fs::write(&event, said.to_string()).expect("a file");
    let server = program("nudge").and_then(|nudge| Server::start(Command::new(nudge)).ok()).map(|mut server| {
        // The store has as many hints as it may, together with the one that the prompt mentions.
        let payload = data::store(&data::seeds(scale.small - 1))
            .export(&ExportHints::default())
            .expect("the whole store")
            .payload;
        server.mcp.send(&tool_call("nudge_import", &json!({"payload": payload, "mode": "replace"})));
        assert!(server.mcp.receive().contains("imported"), "the store is filled");
        let hint = json!({"component": KEY.0, "key": KEY.1, "value": VALUE, "meta": {"tags": [KEY.1]}});
        server.mcp.send(&tool_call("nudge_set_hint", &hint));
        assert!(server.mcp.receive().contains("version"), "what is asked for is there");
        server
    });
    let runtime = server.as_ref().map(Server::runtime).unwrap_or_default();
    let ours = |program: PathBuf| {
        let (runtime, event) = (runtime.clone(), event.clone());
        let run = move |program: &Path| {
            let mut command = Command::new(program);
            command.arg("hook").env("NUDGE_RUNTIME_DIR", &runtime).env("NUDGE_HOOK_MS", "10000");
            command.stdin(File::open(&event).expect("it was just written"));
            command
        };
        Contender { program, run: Box::new(run), says: "additionalContext" }
    };
    let question = json!({"event": "prompt", "limit": 6, "prompt": prompt, "context": {"cwd": here}});
    let contenders = [
        program("nudge").map(ours),
        program("hello").map(hello),
        program("nudge-static").map(ours),
        ask(&temp, &runtime, "nudge.suggest", &question, VALUE),
    ];
    let (times, positions) = times(scale, &contenders);
    let line = |what, limit, pair, peer| line(&times, &positions, what, limit, pair, peer);
    vec![
        line("nudge hook, process, static", 2.5, (2, 1), "Rust hello-world"),
        line("nudge hook, process, static", TWICE, (2, 3), ASK),
        line("nudge hook, process, cargo install", 2.5, (0, 1), "Rust hello-world"),
        line("nudge hook, process, cargo install", TWICE, (0, 3), ASK),
    ]
}

/// Measures the contenders that were built. Returns their times and the index of each contender.
fn times<const COUNT: usize>(
    scale: &Scale,
    contenders: &[Option<Contender>; COUNT],
) -> (Times, [Option<usize>; COUNT]) {
    let present: Vec<_> = contenders.iter().flatten().collect();
    for contender in &present {
        check(contender);
    }
    let mut turns: Vec<Work<'_>> = present.iter().map(|contender| work(|_| spawn(contender))).collect();
    // A turn is one process.
    let times = interleave_processes(Turns { slice: std::time::Duration::ZERO, ..scale.turns }, &mut turns);
    let mut present = 0..;
    (times, std::array::from_fn(|index| contenders[index].as_ref().and_then(|_| present.next())))
}

fn line(
    times: &Times,
    positions: &[Option<usize>],
    what: &str,
    limit: f64,
    (ours, theirs): (usize, usize),
    peer: &str,
) -> Line {
    let pair = positions[ours].zip(positions[theirs]);
    Line {
        what: what.into(),
        limit,
        unit: "x",
        measured: pair.map(|(ours, theirs)| times.ratio(ours, theirs)),
        peer: peer.into(),
        absolute: pair
            .map_or_else(|| "not built here".into(), |(ours, theirs)| versus(times.median(ours), times.median(theirs))),
    }
}

/// Checks before the measurement that a contender prints the right answer.
fn check(contender: &Contender) {
    let output = (contender.run)(&contender.program).output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains(contender.says), "{}: {output:?}", contender.program.display());
}

fn spawn(contender: &Contender) {
    let mut command = (contender.run)(&contender.program);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{}", contender.program.display());
}

/// Makes a database for zoxide; its folders exist.
fn database(zoxide: &Path, temp: &TempDir) -> Option<PathBuf> {
    let data = temp.path().join("zoxide");
    let folders: Vec<_> = (0..FOLDERS).map(|index| temp.path().join(format!("folder-{index}"))).collect();
    for folder in &folders {
        std::fs::create_dir(folder).ok()?;
    }
    let added = Command::new(zoxide).arg("add").args(&folders).env("_ZO_DATA_DIR", &data).status();
    added.ok()?.success().then_some(data)
}
