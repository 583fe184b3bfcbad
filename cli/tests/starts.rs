//! Starts fifty agents at once: one becomes PRIMARY, and all are served.
//!
//! Run it longer with: `NUDGE_ROUNDS=200 cargo test -p nudge-cli --test starts -- --nocapture`
#![cfg(unix)]

mod kit;

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kit::agent::{Agent, LONG};
use kit::session::{Session, assert_nothing_left, holders, listening, set, shown};
use kit::wait_for;
use serde_json::json;

const AGENTS: usize = 50;
/// The time limit for fifty processes on a busy machine.
const PATIENT: Duration = Duration::from_mins(1);

/// Promise (session): Fifty processes that start at once get one primary, and all are served.
#[test]
fn of_fifty_that_start_at_once_one_is_primary_and_all_are_served() {
    let rounds: usize = std::env::var("NUDGE_ROUNDS").map_or(10, |rounds| rounds.parse().unwrap());
    let begun = Instant::now();
    for number in 0..rounds {
        let round = Instant::now();
        one_round(number);
        println!("starts: round {} of {rounds}: {:.1} s", number + 1, round.elapsed().as_secs_f64());
    }
    println!("starts: {rounds} rounds of {AGENTS} in {:.1} s", begun.elapsed().as_secs_f64());
}

fn one_round(number: usize) {
    let session = Session::empty(&[]);
    let agents: Vec<_> = (0..AGENTS).map(|_| Agent::launch(session.command())).collect();
    let pids: Vec<_> = agents.iter().map(|agent| agent.pid).collect();
    let (all_set, over) = (Barrier::new(AGENTS), AtomicBool::new(false));
    let expected: Vec<_> = {
        let mut keys: Vec<_> = pids.iter().map(|pid| (format!("k{pid}"), format!("of {pid}"))).collect();
        keys.sort();
        keys
    };
    thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&session, &pids, &over));
        let served: Vec<_> = agents
            .iter()
            .map(|agent| {
                let (all_set, expected) = (&all_set, &expected);
                scope.spawn(move || {
                    let (key, value) = (format!("k{}", agent.pid), format!("of {}", agent.pid));
                    let served = agent.greet().and_then(|_| agent.tool("nudge_set_hint", &set(&key, &value), PATIENT));
                    // Waits at the barrier before it panics: otherwise the other threads would wait forever.
                    all_set.wait();
                    let stored = served.unwrap_or_else(|why| panic!("{}: {why:?}: {}", agent.pid, agent.stderr()));
                    assert_eq!(stored["hint"]["version"], 1);
                    assert_eq!(&shown(agent), expected, "what {} sees", agent.pid);
                })
            })
            .collect();
        let served: Vec<_> = served.into_iter().map(thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        let named = watcher.join().unwrap();
        for served in served {
            served.unwrap();
        }
        assert_eq!(named.len(), 1, "server.pid named {named:?}");
        let status = session.status();
        let told = [&status["role"], &status["pid"]];
        assert_eq!(told, [&json!("PRIMARY"), &json!(named.first().unwrap())]);
        // Each PROXY has made a call by now, so the PRIMARY counts it.
        assert_eq!(status["members"], AGENTS, "{status}");
    });
    // In every second round `nudge stop` ends the session. In the other rounds the clients close stdin.
    if number.is_multiple_of(2) {
        assert!(session.nudge(&["stop"]).status.success());
    } else {
        agents.iter().for_each(Agent::close);
    }
    for agent in &agents {
        let status = agent.ended(PATIENT);
        assert!(status.success(), "{status}: {}", agent.stderr());
    }
    assert_nothing_left(&session.runtime);
}

/// Returns all process ids that `server.pid` names until `over` is set. Meanwhile asserts that at most one process
/// listens and at most one holds the lock.
fn watch(session: &Session, pids: &[u32], over: &AtomicBool) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    let dir = wait_for("the runtime directory", LONG, || nudge_client::RuntimeDir::open(Some(&session.runtime)).ok());
    while !over.load(Ordering::Relaxed) {
        named.extend(dir.read_server_file().map(|file| file.pid));
        for (what, who) in
            [("listen", listening(pids)), ("hold the lock", holders(pids, &session.runtime.join("primary.lock")))]
        {
            assert!(who.as_ref().is_none_or(|who| who.len() <= 1), "{who:?} {what}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    named
}
