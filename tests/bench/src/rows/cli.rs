//! What `nudge get` and `nudge hook` cost as a whole process, beside processes that do nothing and a tool of its kind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nudge::Export;
use serde_json::json;
use tempfile::TempDir;

use crate::data;
use crate::measure::{Times, Turns, Work, interleave_processes, work};
use crate::process::{KEY, Server, VALUE, program, tool_call};
use crate::rows::git::repository;
use crate::table::{Line, Scale, versus};

/// Ours as `cargo install` builds it and as it is released, and the peers built the same ways.
pub const PROGRAMS: &[&str] = &["nudge", "hello", "nudge-static", "zoxide"];
/// The same for the hook.
pub const HOOK_PROGRAMS: &[&str] = &["nudge", "hello", "nudge-static"];
/// Folders that zoxide knows.
const FOLDERS: usize = 50;

/// A program with all it needs to run again and again.
struct Contender {
    program: PathBuf,
    run: Box<dyn Fn(&Path) -> Command>,
    says: &'static str,
}

/// `nudge get` from a folder in a repository, to a server that runs.
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
    let contenders = [
        program("nudge").map(ours),
        program("hello").map(hello),
        program("nudge-static").map(ours),
        database.and_then(zoxide),
    ];
    measure(scale, &contenders)
}

fn hello(program: PathBuf) -> Contender {
    Contender { program, run: Box::new(|program: &Path| Command::new(program)), says: "hello" }
}

/// `nudge hook` of a prompt that mentions something, to a server that holds a store of the default size.
pub fn hook(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("a folder for temporary files");
    let here = repository(&temp).expect("git makes a repository");
    let event = temp.path().join("event.json");
    // No session: then every call is like the first.
    let said =
        json!({"hook_event_name": "UserPromptSubmit", "cwd": here, "prompt": format!("how do I {} {}?", KEY.1, KEY.0)});
    std::fs::write(&event, said.to_string()).expect("a file");
    let server = program("nudge").and_then(|nudge| Server::start(Command::new(nudge)).ok()).map(|mut server| {
        // As many as fit beside the one that is asked for.
        let payload =
            data::store(&data::seeds(scale.small - 1)).export(&Export::default()).expect("the whole store").payload;
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
    let contenders = [program("nudge").map(ours), program("hello").map(hello), program("nudge-static").map(ours), None];
    let (times, at) = times(scale, &contenders);
    vec![
        line(&times, &at, "nudge hook, process, static", 2.5, (2, 1), "Rust hello-world"),
        line(&times, &at, "nudge hook, process, cargo install", 2.5, (0, 1), "Rust hello-world"),
    ]
}

fn measure(scale: &Scale, contenders: &[Option<Contender>; 4]) -> Vec<Line> {
    let (times, at) = times(scale, contenders);
    vec![
        line(&times, &at, "nudge get, process, static", 1.3, (2, 1), "Rust hello-world"),
        line(&times, &at, "nudge get, process, static", 0.85, (2, 3), "zoxide query"),
        line(&times, &at, "nudge get, process, cargo install", 2.0, (0, 1), "Rust hello-world"),
    ]
}

/// Times of those that are there, and which of them each contender is.
fn times(scale: &Scale, contenders: &[Option<Contender>; 4]) -> (Times, [Option<usize>; 4]) {
    let present: Vec<_> = contenders.iter().flatten().collect();
    for contender in &present {
        check(contender);
    }
    let mut turns: Vec<Work<'_>> = present.iter().map(|contender| work(|_| spawn(contender))).collect();
    // One process a turn.
    let times = interleave_processes(Turns { slice: std::time::Duration::ZERO, ..scale.turns }, &mut turns);
    let mut present = 0..;
    (times, std::array::from_fn(|at| contenders[at].as_ref().and_then(|_| present.next())))
}

fn line(
    times: &Times,
    at: &[Option<usize>; 4],
    what: &str,
    limit: f64,
    (ours, theirs): (usize, usize),
    peer: &str,
) -> Line {
    let pair = at[ours].zip(at[theirs]);
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

/// It does what it should before the clock starts.
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

/// A database of folders that exist.
fn database(zoxide: &Path, temp: &TempDir) -> Option<PathBuf> {
    let data = temp.path().join("zoxide");
    let folders: Vec<_> = (0..FOLDERS).map(|at| temp.path().join(format!("folder-{at}"))).collect();
    for folder in &folders {
        std::fs::create_dir(folder).ok()?;
    }
    let added = Command::new(zoxide).arg("add").args(&folders).env("_ZO_DATA_DIR", &data).status();
    added.ok()?.success().then_some(data)
}
