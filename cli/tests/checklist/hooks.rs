//! Tests row 22 of the security checklist. Hooks run while the test suspends the PRIMARY now and then, so a part of
//! them ends without output. Later hooks must tell the lines that these hooks lost. Run it longer with:
//! `NUDGE_HOOKS=1000 cargo test -p nudge-cli --test checklist hooks:: -- --nocapture`
#![cfg(unix)]

use crate::kit;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kit::rng::Rng;
use kit::session::Session;
use kit::system::{nudge, signal};
use serde_json::{Value, json};

/// The time limit of a hook in milliseconds: the default of `NUDGE_HOOK_MS`.
const PATIENCE_MS: u64 = 45;
/// The number of hooks of a client session that run with the default limit. Each further group of `TRIES` hooks gets 45
/// ms more, because on a busy machine no hook may finish in 45 ms.
const TRIES: usize = 50;
/// The number of threads that run hooks. Each thread runs one client session after another.
const WORKERS: usize = 4;
/// The most hooks of one client session. A line that a hook got and did not confirm stays reserved for [`PATIENCE_MS`],
/// while a few dozen hooks run.
const MAX_TRIES: usize = 400;
const HINTS: [(&str, &str); 3] =
    [("build", "cargo build --workspace"), ("test", "cargo test --workspace"), ("lint", "cargo clippy --workspace")];

/// Makes the event with this number: a start, a prompt and a failed command in turn.
fn event(client: &str, number: usize) -> Value {
    let mut event = json!({"session_id": client, "cwd": "/"});
    let more = match number % 3 {
        0 => json!({"hook_event_name": "SessionStart", "source": "startup"}),
        1 => json!({"hook_event_name": "UserPromptSubmit", "prompt": "please test it"}),
        _ => json!({"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "error": "Exit code 1",
                    "tool_input": {"command": format!("{} --release", HINTS[number / 3 % HINTS.len()].1)}}),
    };
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// Runs a hook whose time limit is `more` times 45 ms longer than the default; returns its output, which may be empty.
fn hook(runtime: &Path, event: &Value, more: usize) -> String {
    let mut hook = nudge(runtime, &["hook"]);
    if more > 0 {
        hook.env("NUDGE_HOOK_MS", (PATIENCE_MS * (1 + more as u64)).to_string());
    }
    hook.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = hook.spawn().unwrap();
    // Ignores a failed write: a hook may end before it has read its input.
    let _ = child.stdin.take().unwrap().write_all(event.to_string().as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs hooks of one client session until they have told every hint. Returns the number of hooks, and how often each
/// hint was told.
fn until_all_is_told(runtime: &Path, client: &str, first: usize) -> (usize, BTreeMap<&'static str, usize>) {
    let mut told = BTreeMap::new();
    for tries in 0..MAX_TRIES {
        if told.len() == HINTS.len() {
            return (tries, told);
        }
        let said = hook(runtime, &event(client, first + tries), tries / TRIES);
        for (key, _) in HINTS.iter().filter(|(key, _)| said.contains(&format!("api/{key}"))) {
            *told.entry(*key).or_default() += 1;
        }
    }
    panic!("{client} was told {told:?} in {MAX_TRIES} hooks, and never the rest");
}

#[test]
fn row_22_no_hint_is_lost_beside_a_server_that_stops() {
    let wanted: usize = std::env::var("NUDGE_HOOKS").map_or(100, |hooks| hooks.parse().unwrap());
    let session = Session::start(0);
    for (key, command) in HINTS {
        session.raw().result("nudge.set_hint", &json!({"component": "api", "key": key, "value": command}));
    }
    let pid = session.primary(|_| true).pid;
    let (hooks, clients, twice) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let over = AtomicBool::new(false);
    let mut rng = Rng::new(Rng::seed("row_22"));
    let mut stops = 0;
    thread::scope(|scope| {
        let worker = || {
            while hooks.load(Ordering::SeqCst) < wanted {
                let client = clients.fetch_add(1, Ordering::SeqCst);
                let (tries, told) = until_all_is_told(&session.runtime, &format!("s{client}"), client);
                hooks.fetch_add(tries, Ordering::SeqCst);
                twice.fetch_add(told.values().filter(|times| **times > 1).count(), Ordering::SeqCst);
            }
        };
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        let (over, stops) = (&over, &mut stops);
        let stopper = scope.spawn(move || {
            while !over.load(Ordering::SeqCst) {
                thread::sleep(rng.millis(5, PATIENCE_MS));
                signal(pid, "STOP");
                thread::sleep(rng.millis(PATIENCE_MS, 3 * PATIENCE_MS));
                signal(pid, "CONT");
                *stops += 1;
            }
        });
        let ended: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::SeqCst);
        stopper.join().unwrap();
        assert!(ended.iter().all(Result::is_ok), "a client session was not told everything");
    });
    let [hooks, clients, twice] = [hooks, clients, twice].map(AtomicUsize::into_inner);
    println!("{hooks} hooks of {clients} client sessions beside {stops} stops: {twice} hints told more than once");
    assert!(stops > 0);
    session.end();
}
