//! Tests different builds of Nudge in one session. Builds with the same protocol share the session. A build with
//! another protocol reports this and ends.
//!
//! `tests/upgrade` makes the other builds and runs these tests.
#![cfg(unix)]

mod kit;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kit::agent::{Agent, LONG};
use kit::session::{Session, set, shown};
use serde_json::{Value, json};

/// The time limit for a server that retries for a while before it gives up.
const PATIENT: Duration = Duration::from_secs(15);

/// Returns the command that starts an agent of the session with the binary that `variable` names.
fn by(variable: &str, session: &Session) -> Command {
    let template = session.command();
    let mut command = Command::new(std::env::var(variable).expect("run tests/upgrade"));
    command.args(template.get_args());
    if let Some(dir) = template.get_current_dir() {
        command.current_dir(dir);
    }
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The environment variable with the path of the next version's binary, which has the same protocol.
const NEXT: &str = "NUDGE_NEXT_BIN";
/// The environment variable with the path of a binary that has another protocol.
const OTHER: &str = "NUDGE_OTHER_BIN";

fn join(session: &mut Session, variable: &str) -> Arc<Agent> {
    let agent = Arc::new(Agent::spawn(by(variable, session)));
    session.agents.push(Arc::clone(&agent));
    agent
}

fn versions(session: &Session) -> (Value, Value) {
    let status = session.status();
    (status["version"].clone(), status["pid"].clone())
}

/// Asserts that each agent can set a hint and sees the hints of all agents.
fn all_serve(session: &Session, round: &str) {
    for agent in &session.agents {
        agent.result("nudge_set_hint", &set(&format!("{round}-{}", agent.pid), "x"));
    }
    let all = shown(&session.agents[0]);
    assert!(all.len() >= session.agents.len());
    for agent in &session.agents {
        assert_eq!(shown(agent), all, "{}", agent.pid);
    }
}

/// Returns the messages for people, from the agent's stderr and from `server.log`.
fn told(session: &Session, agent: &Agent) -> String {
    agent.stderr() + &fs::read_to_string(session.runtime.join("server.log")).unwrap_or_default()
}

fn is_explained(said: &str) -> bool {
    said.contains("speaks protocol") && said.contains("nudge stop")
}

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn old_and_new_serve_one_session_whoever_is_primary() {
    let mut session = Session::start(0);
    join(&mut session, NEXT);
    assert_eq!(versions(&session), (json!("0.1.0"), json!(session.agents[0].pid)));
    all_serve(&session, "old");
    let before = shown(&session.agents[1]);
    let first = session.agents.remove(0);
    first.close();
    assert!(first.ended(LONG).success());
    session.next_primary(first.pid);
    assert_eq!(shown(&session.agents[0]), before);
    session.join();
    assert_eq!(versions(&session), (json!("0.2.0"), json!(session.agents[0].pid)));
    all_serve(&session, "new");
    assert!(session.nudge(&["set", "c", "by-old-command", "x"]).status.success());
    let (port, dir) = (session.primary(|_| true).port.to_string(), session.runtime.display().to_string());
    let mut command = Command::new(std::env::var(NEXT).unwrap());
    command.args(["get", "c", "by-old-command", "-p", &port, "--runtime-dir", &dir]).env_remove("NUDGE_PORT");
    assert!(kit::session::run(command, LONG).status.success());
    session.end();
}

/// Promise (session): Two builds of one protocol work in one session, whatever their versions.
#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn an_upgrade_one_by_one_keeps_everything() {
    let mut session = Session::start(2);
    join(&mut session, NEXT);
    all_serve(&session, "first");
    // Replaces each old agent with a new one, as when a client restarts.
    for round in 0..3 {
        let before = shown(&session.agents[1]);
        let old = session.agents.remove(0);
        if round % 2 == 0 {
            old.close();
            assert!(old.ended(LONG).success());
        } else {
            old.kill();
        }
        session.primary(|file| file.pid != old.pid);
        join(&mut session, NEXT);
        for agent in &session.agents {
            assert_eq!(shown(agent), before);
        }
        all_serve(&session, &format!("round{round}"));
    }
    assert_eq!(versions(&session).0, "0.2.0");
    session.end();
}

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn a_program_of_another_protocol_says_so_and_may_end_the_session() {
    let mut session = Session::start(1);
    all_serve(&session, "before");
    let before = shown(&session.agents[1]);
    let other = Agent::launch(by(OTHER, &session));
    assert!(!other.ended(LONG).success());
    assert!(is_explained(&told(&session, &other)), "{}", told(&session, &other));
    let run_other = |args: &[&str]| {
        let mut command = Command::new(std::env::var(OTHER).expect("run tests/upgrade"));
        command.args(args).args(["--runtime-dir", session.runtime.to_str().unwrap()]);
        kit::session::run(command, LONG)
    };
    let refused = run_other(&["get", "c", "k"]);
    assert!(!refused.status.success() && is_explained(&String::from_utf8_lossy(&refused.stderr)), "{refused:?}");
    assert_eq!(shown(&session.agents[1]), before);
    assert!(run_other(&["stop"]).status.success());
    for agent in session.agents.drain(..) {
        agent.ended(LONG);
    }
}

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn a_start_beside_members_of_another_protocol_leaves_the_session_alone() {
    let session = Session::start(1);
    all_serve(&session, "before");
    let before = shown(&session.agents[1]);
    session.agents[1].stop();
    session.agents[0].kill();
    let other = Agent::launch(by(OTHER, &session));
    // The server reports the protocol, and then ends or continues to wait for a PRIMARY of its own protocol.
    let patience = std::time::Instant::now() + PATIENT;
    while other.is_running() && std::time::Instant::now() < patience {
        thread::sleep(Duration::from_millis(20));
    }
    let said = told(&session, &other);
    assert!(is_explained(&said), "{said}");
    session.agents[1].resume();
    let file = session.next_primary(session.agents[0].pid);
    assert_eq!(file.pid, session.agents[1].pid);
    assert_eq!(shown(&session.agents[1]), before);
    drop(other);
    session.end();
}
