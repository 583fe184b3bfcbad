//! Tests what happens when files of a living session are removed, as `rm -rf /tmp/nudge` and programs that clear `/tmp`
//! do. No acknowledged change is lost, and no new agent starts an empty session beside the living one.
#![cfg(target_os = "linux")]

use crate::kit;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kit::agent::{Agent, LONG};
use kit::session::{Session, set, shown};
use kit::wait_for;
use nudge_client::{RuntimeDir, ServerFile};

/// The files of a session.
const FILES: [&str; 7] =
    ["primary.lock", "members.lock", "session.db", "session.db-wal", "session", "server.pid", "server.sock"];

fn remove_files(runtime: &Path) {
    for entry in fs::read_dir(runtime).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

fn remove_all(runtime: &Path) {
    fs::remove_dir_all(runtime).unwrap();
}

fn move_away(runtime: &Path) {
    fs::rename(runtime, runtime.with_file_name("elsewhere")).unwrap();
}

/// Sets a hint through each agent; returns their keys and values.
fn set_by_each(agents: &[Arc<Agent>], word: &str) -> Vec<(String, String)> {
    let set_hint = |(number, agent): (usize, &Arc<Agent>)| {
        let key = format!("{word}{number}");
        agent.result("nudge_set_hint", &set(&key, "x"));
        (key, "x".to_owned())
    };
    agents.iter().enumerate().map(set_hint).collect()
}

/// Removes files with `remove`, sets hints through each agent, starts another agent, and kills one PRIMARY after
/// another. Asserts that the remaining agents have every hint.
fn survives(what: &str, remove: impl Fn(&Path), proxies: usize) {
    let mut session = Session::start(proxies);
    let mut hints = set_by_each(&session.agents, "before");
    let id = session.status()["session_id"].clone();
    remove(&session.runtime);
    hints.extend(set_by_each(&session.agents, "after"));
    let new = session.join();
    hints.sort();
    assert_eq!(shown(&new), hints, "{what}: the new agent");
    assert_eq!(session.status()["session_id"], id, "{what}");
    wait_for("all files", LONG, || FILES.iter().all(|name| session.runtime.join(name).exists()).then_some(()));
    while session.agents.len() > 1 {
        session.kill_primary();
        session.agents.retain(|agent| agent.is_running());
        for agent in &session.agents {
            assert_eq!(shown(agent), hints, "{what}: after a kill");
        }
    }
    session.end();
}

/// Promise (session): A living session loses no hint when its files or its directory are removed, and a new agent
/// joins it (Linux).
#[test]
fn any_file_of_a_session_may_be_removed() {
    for name in FILES {
        for proxies in [0, 2] {
            survives(name, |runtime| fs::remove_file(runtime.join(name)).unwrap(), proxies);
        }
    }
}

/// Promise: see `any_file_of_a_session_may_be_removed`.
#[test]
fn all_files_of_a_session_may_be_removed() {
    for proxies in [0, 2] {
        survives("all files", remove_files, proxies);
        survives("the directory", remove_all, proxies);
        survives("the directory, moved", move_away, proxies);
    }
}

/// Promise: see `any_file_of_a_session_may_be_removed`.
#[test]
fn an_agent_that_starts_at_once_joins_the_session_after_its_files_were_removed() {
    for remove in [remove_files, remove_all, move_away] {
        let mut session = Session::start(1);
        let hints = set_by_each(&session.agents, "before");
        remove(&session.runtime);
        let new = session.join();
        assert_eq!(shown(&new), hints);
        session.kill_primary();
        session.agents.retain(|agent| agent.is_running());
        for agent in &session.agents {
            assert_eq!(shown(agent), hints);
        }
        session.end();
    }
}

/// Promise: see `any_file_of_a_session_may_be_removed`.
#[test]
fn a_command_finds_the_session_after_its_files_were_removed() {
    for remove in [remove_files, remove_all, move_away] {
        let session = Session::start(0);
        set_by_each(&session.agents, "before");
        remove(&session.runtime);
        let output = session.nudge(&["get", "c", "before0", "--value"]);
        assert!(output.status.success(), "{output:?}");
        session.end();
    }
}

#[test]
fn a_session_whose_place_another_has_leaves_its_hints_in_a_file() {
    let session = Session::start(0);
    let hints = set_by_each(&session.agents, "before");
    remove_all(&session.runtime);
    // Takes the lock as an older version does: without a check whether a PRIMARY still lives.
    let dir = RuntimeDir::create(Some(&session.runtime)).unwrap();
    let lock = dir.try_lock().unwrap().expect("the lock is free");
    dir.write_server_file(&lock, &ServerFile { pid: 1, port: 1, started: String::new(), token: None }).unwrap();
    let agent = &session.agents[0];
    agent.tool("nudge_set_hint", &set("late", "x"), LONG).unwrap_err();
    agent.ended(LONG);
    let said = agent.stderr();
    let file = said.split_whitespace().find(|word| word.contains("left-")).unwrap_or_else(|| panic!("{said}"));
    let text = fs::read_to_string(file.trim_end_matches(',')).unwrap();
    assert!(text.contains(&hints[0].0) && !text.contains("late"), "{text}");
    assert_eq!(dir.read_server_file().map(|file| file.pid), Some(1), "nothing of the other is touched");
}

/// Promise (session): A PROXY whose session was replaced by another one joins that session. The client notices only
/// that the hints differ (Linux).
#[test]
fn a_proxy_goes_over_to_the_session_that_took_the_place() {
    for remove in [remove_files, remove_all, move_away] {
        let mut session = Session::start(2);
        let [first, second, third] = &session.agents[..] else { panic!("three are there") };
        let (first, second, third) = (Arc::clone(first), Arc::clone(second), Arc::clone(third));
        let hints = set_by_each(&session.agents, "before");
        // The suspended PRIMARY cannot restore its files, and a new server waits for it in vain.
        first.stop();
        remove(&session.runtime);
        let new = session.join();
        new.result("nudge_set_hint", &set("new", "x"));
        second.result("nudge_set_hint", &set("second", "x"));
        let mut expected = vec![("new".to_owned(), "x".to_owned()), ("second".to_owned(), "x".to_owned())];
        for agent in [&new, &second, &third] {
            assert_eq!(shown(agent), expected);
        }
        first.resume();
        first.ended(LONG);
        let said = first.stderr();
        let file = said.split_whitespace().find(|word| word.contains("left-")).unwrap_or_else(|| panic!("{said}"));
        let text = fs::read_to_string(file.trim_end_matches(',')).unwrap();
        assert!(hints.iter().all(|(key, _)| text.contains(key)), "{text}");
        // The PROXYs have joined the new session, so it continues with one of them.
        session.agents.retain(|agent| agent.is_running());
        let next = session.kill_primary();
        assert!([second.pid, third.pid].contains(&next.pid));
        session.agents.retain(|agent| agent.is_running());
        session.agent(next.pid).result("nudge_set_hint", &set("last", "x"));
        expected.insert(0, ("last".to_owned(), "x".to_owned()));
        for agent in &session.agents {
            assert_eq!(shown(agent), expected);
        }
        session.end();
    }
}

/// Promise: see `any_file_of_a_session_may_be_removed`.
#[test]
fn the_status_and_the_doctor_say_that_files_were_removed() {
    for remove in [remove_files, remove_all, move_away] {
        let session = Session::start(0);
        let said = |word: &str| String::from_utf8(session.nudge(&[word]).stdout).unwrap();
        let told = "somebody removed its files; they were put back";
        assert!(!said("status").contains(told) && !said("doctor").contains(told));
        remove(&session.runtime);
        // Until this report, no process has looked for the files.
        let report = said("doctor");
        assert!(report.contains("✔ session") && report.contains(told), "{report}");
        assert!(said("status").contains(told));
        session.end();
    }
}

/// Promise: see `any_file_of_a_session_may_be_removed`.
#[test]
fn a_server_that_starts_waits_for_members_whose_lock_file_was_removed() {
    let mut session = Session::start(1);
    let hints = set_by_each(&session.agents, "before");
    let [first, second] = &session.agents[..] else { panic!("two are there") };
    let (first, second) = (Arc::clone(first), Arc::clone(second));
    // The suspended member cannot take the lock and cannot join again.
    second.stop();
    fs::remove_file(session.runtime.join("members.lock")).unwrap();
    first.kill();
    let new = Agent::launch(session.command());
    // No file shows that the session has a member. The new server waits for a sign of one before it begins a session.
    let until = Instant::now() + Duration::from_secs(1);
    while Instant::now() < until {
        assert!(session.dir().read_server_file().is_none_or(|file| file.pid != new.pid), "it has begun anew");
        std::thread::sleep(Duration::from_millis(5));
    }
    second.resume();
    assert!(new.greet().is_ok(), "{}", new.stderr());
    assert_eq!(shown(&second), hints);
    assert_eq!(shown(&new), hints, "it joined the session");
    session.agents = vec![second, Arc::new(new)];
    session.end();
}
