//! Different versions of Nudge in one session: whoever is upgraded first, nobody loses anything.
//!
//! `tests/upgrade` builds the other versions and runs this.
#![cfg(unix)]

mod kit;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kit::agent::{Agent, Failure, LONG};
use kit::session::{Session, get, set, shown};
use kit::wait_for;
use serde_json::{Value, json};

/// For a server that tries for some time before it gives up.
const PATIENT: Duration = Duration::from_secs(15);

/// The command of a session, by another binary.
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

/// The next version, which knows `nudge.reasons` and not `nudge.why`, and no confirmations of suggestions.
const NEXT: &str = "NUDGE_NEXT_BIN";
/// A version whose journal this one cannot read, nor it ours.
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

/// Each agent changes a hint, and each sees what all have stored.
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

/// What has been told to people: on stderr, or in the log while stdout belongs to MCP.
fn told(session: &Session, agent: &Agent) -> String {
    agent.stderr() + &fs::read_to_string(session.runtime.join("server.log")).unwrap_or_default()
}

fn is_explained(said: &str) -> bool {
    said.contains("journal") && said.contains("version")
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

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn a_tool_that_an_old_proxy_does_not_know_is_answered_by_a_new_primary() {
    let mut session = Session::empty(&[]);
    let new = join(&mut session, NEXT);
    session.primary(|file| file.pid == new.pid);
    let old = session.join();
    old.result("nudge_set_hint", &set("k", "x"));
    let why = old.result("nudge_reasons", &get("k"));
    assert_eq!(why["variants"][0]["hint"]["value"], "x", "{why}");
    let refused = old.tool("nudge_no_such_thing", &json!({}), LONG);
    assert!(matches!(&refused, Err(Failure::Refused(_))), "{refused:?}");
    // And what the old one knows and the new one does not is refused, not lost.
    let refused = session.raw().call("nudge.why", &get("k"), None);
    assert!(matches!(&refused, Err(Failure::Refused(error)) if error["code"] == -32601), "{refused:?}");
    session.end();
}

/// Promise (session): Two versions work in one session, and a version leaves a journal that it cannot read.
#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn an_upgrade_one_by_one_keeps_everything() {
    let mut session = Session::start(2);
    join(&mut session, NEXT);
    all_serve(&session, "first");
    // Each old one ends, as its client is started anew, and a new one comes.
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
fn a_proxy_that_cannot_read_the_journal_leaves_it_to_one_that_can() {
    for _ in 0..5 {
        let mut session = Session::start(1);
        let other = join(&mut session, OTHER);
        all_serve(&session, "before");
        let before = shown(&other);
        // It has waited for the lock as long as the old one: either may get it first.
        let file = session.kill_primary();
        assert_eq!(file.pid, session.agents[1].pid, "{}", told(&session, &other));
        session.agents.remove(0);
        assert_eq!(shown(&other), before);
        all_serve(&session, "after");
        session.end();
    }
}

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn a_proxy_that_cannot_read_the_journal_and_is_alone_says_so_and_keeps_it() {
    let mut session = Session::start(0);
    let other = join(&mut session, OTHER);
    all_serve(&session, "before");
    let before = shown(&other);
    session.agents.remove(0).kill();
    let journal = session.runtime.join("journal");
    let kept = fs::read(&journal).unwrap();
    let Err(Failure::Refused(error)) = other.tool("nudge_get_hint", &get("k"), LONG) else {
        panic!("it answers: {}", told(&session, &other))
    };
    assert_eq!(error["data"]["reason"], "E_UNAVAILABLE");
    wait_for("an explanation", LONG, || {
        let said = told(&session, &other) + &error.to_string();
        (is_explained(&said) && said.contains("nudge stop")).then_some(())
    });
    assert!(fs::read(&journal).unwrap() == kept, "the journal is as it was");
    // Whoever can read it goes on, and serves it too.
    let old = session.join();
    session.primary(|file| file.pid == old.pid);
    assert_eq!(shown(&old), before);
    wait_for("it to serve again", LONG, || other.tool("nudge_list_components", &json!({}), LONG).ok());
    assert_eq!(shown(&other), before);
    session.end();
}

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn a_start_that_cannot_read_the_journal_leaves_the_session_alone() {
    let session = Session::start(1);
    all_serve(&session, "before");
    let before = shown(&session.agents[1]);
    session.agents[1].stop();
    session.agents[0].kill();
    let other = Agent::launch(by(OTHER, &session));
    // It gives up, or waits for somebody who can.
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

#[test]
#[ignore = "needs other builds; tests/upgrade runs it"]
fn a_hook_tells_once_whichever_version_is_primary() {
    let (this, next) = (env!("CARGO_BIN_EXE_nudge").to_owned(), std::env::var(NEXT).expect("run tests/upgrade"));
    for (primary, hook) in [(&this, &next), (&next, &this)] {
        let mut session = Session::empty(&[]);
        let first = if primary == &next { join(&mut session, NEXT) } else { session.join() };
        session.primary(|file| file.pid == first.pid);
        let mut everywhere = set("build", "make all");
        everywhere["meta"] = json!({"priority": 9});
        everywhere["reach"] = "everywhere".into();
        first.result("nudge_set_hint", &everywhere);
        let says = || {
            let mut hook = Command::new(hook);
            hook.arg("hook").env("NUDGE_RUNTIME_DIR", &session.runtime).env("NUDGE_HOOK_MS", "5000");
            let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/"});
            child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
            String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
        };
        assert!(says().contains("make all"), "{primary}");
        assert_eq!(says(), "", "{primary}");
        let stats = session.raw().result("nudge.stats", &json!({}));
        assert_eq!(stats["suggestions"], 1, "{primary}");
        session.end();
    }
}
