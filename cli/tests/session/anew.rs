//! Tests that a new session begins after `nudge stop`: a process that starts right afterwards does not meet the old
//! members. A session whose file was removed continues.
#![cfg(unix)]

use crate::kit;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kit::agent::{Agent, LONG};
use kit::session::{Session, get, set};
use kit::{PATIENCE, wait_for};
use serde_json::{Value, json};

const ROUNDS: usize = 10;
const PROXIES: usize = 4;
const OLD_END: Duration = Duration::from_secs(2);
/// How long the test repeats the check that the status names no PROXY of the old session.
const LOOKED: Duration = Duration::from_millis(300);

/// Promise (session): A process that starts right after `nudge stop` is in a new session. A session whose file was
/// removed continues.
#[test]
fn a_start_right_after_stop_is_in_a_new_session() {
    let mut session = Session::start(PROXIES);
    for round in 0..ROUNDS {
        one_round(&mut session, round);
    }
    session.end();
}

fn one_round(session: &mut Session, round: usize) {
    for agent in &session.agents {
        agent.result("nudge_set_hint", &set("old", &format!("of {round}")));
    }
    let old_id = session.status()["session_id"].clone();
    let old = std::mem::take(&mut session.agents);

    let stopped = session.nudge(&["stop"]);
    let begun = Instant::now();
    session.agents = (0..PROXIES).map(|_| Arc::new(Agent::launch(session.command()))).collect();
    assert!(stopped.status.success(), "round {round}: {stopped:?}");
    for agent in &old {
        let left = OLD_END.saturating_sub(begun.elapsed());
        assert!(agent.ends_within(left), "round {round}: {} still runs after {OLD_END:?}", agent.pid);
        let status = agent.ended(PATIENCE);
        assert!(status.success(), "round {round}: {status}: {}", agent.stderr());
    }
    for agent in &session.agents {
        agent.greet().unwrap_or_else(|why| panic!("round {round}: {} is not served: {why:?}", agent.pid));
    }

    let pids: Vec<_> = session.agents.iter().map(|agent| agent.pid).collect();
    session.primary(|file| pids.contains(&file.pid));
    let status = session.status();
    let id = status["session_id"].clone();
    assert_ne!(id, old_id, "round {round}: the old session goes on");
    assert_eq!(status["hints"], 0, "round {round}: {status}");
    for agent in &session.agents {
        let found = agent.result("nudge_list_components", &json!({}));
        assert_eq!(found, json!({"components": []}), "round {round}: what {} sees", agent.pid);
    }
    let until = Instant::now() + LOOKED;
    while Instant::now() < until {
        assert_new_proxies(&session.status(), &pids, round);
        thread::sleep(Duration::from_millis(20));
    }

    // The new session is complete: its next PRIMARY has every acknowledged change.
    let (first, value) = (session.primary(|_| true).pid, format!("new {round}"));
    let writer = session.agents.iter().find(|agent| agent.pid != first).unwrap();
    writer.result("nudge_set_hint", &set("new", &value));
    session.kill_primary();
    session.agents.retain(|agent| agent.pid != first);
    for agent in &session.agents {
        assert_eq!(agent.result("nudge_get_hint", &get("new"))["hint"]["value"], value, "round {round}");
    }
    assert_eq!(session.status()["session_id"], id, "round {round}: the new session goes on");
    while session.agents.len() <= PROXIES {
        session.join();
    }
}

fn assert_new_proxies(status: &Value, pids: &[u32], round: usize) {
    let proxies = status["proxies"].as_array().unwrap_or_else(|| panic!("no proxies: {status}"));
    let new = |pid: &Value| pids.iter().any(|new| *pid == *new);
    assert!(proxies.iter().all(new), "round {round}: {proxies:?} are not all of {pids:?}");
}

/// Promise: see `a_start_right_after_stop_is_in_a_new_session`.
#[test]
fn without_its_file_the_session_is_the_same() {
    let mut session = Session::start(2);
    session.agents[1].result("nudge_set_hint", &set("first", "1"));
    let id = session.status()["session_id"].clone();
    let file = session.runtime.join("session");
    std::fs::remove_file(&file).unwrap();
    // Waits for the file, but does not require it: another test checks that the file comes back.
    let until = Instant::now() + PATIENCE;
    while !file.exists() && Instant::now() < until {
        thread::sleep(Duration::from_millis(50));
    }

    let last = Arc::clone(&session.agents[2]);
    for (killed, key) in ["second", "third"].into_iter().enumerate() {
        let primary = session.primary(|_| true).pid;
        session.agent(primary).kill();
        session.agents.retain(|agent| agent.pid != primary);
        let writer = if last.is_running() { &last } else { &session.agents[0] };
        writer.result("nudge_set_hint", &set(key, "1"));
        session.next_primary(primary);
        assert_eq!(session.status()["session_id"], id, "after death {}", killed + 1);
        for agent in &session.agents {
            for key in ["first", "second", key] {
                let found = agent.tool("nudge_get_hint", &get(key), LONG);
                assert!(found.is_ok(), "after death {}: {key} by {}: {found:?}", killed + 1, agent.pid);
            }
        }
    }
    let alone = &session.agents[0];
    wait_for("the last to be alone", PATIENCE, || (session.status()["pid"] == alone.pid).then_some(()));
    session.end();
}
