//! Tests how a PRIMARY can end. While one `nudge serve` of the session lives, the session continues with all its state.
//! When no process is left, the session is over and leaves no state.
//!
//! With the feature `test-clock` the PRIMARY really panics. Otherwise the test aborts it from outside. Run it with:
//! `cargo test -p nudge-cli --features test-clock --test session endings::`
#![cfg(unix)]

use crate::kit;
mod secrets;
mod told;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kit::agent::{Agent, Failure, LONG};
use kit::session::{Session, assert_nothing_left, get, holders, listening, set, shown};
use kit::{PATIENCE, wait_for};
use nudge_client::ServerFile;
use rustix::process::Signal;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    EndOfFile,
    Sigterm,
    Sigkill,
    Panic,
}

impl Ending {
    /// Ends the PRIMARY. Returns false if it continues, which only a panic allows.
    fn apply(self, session: &Session, agent: &Agent) -> bool {
        match self {
            Self::EndOfFile => agent.close(),
            Self::Sigterm => agent.signal(Signal::TERM),
            Self::Sigkill => agent.signal(Signal::KILL),
            Self::Panic => {
                let mut raw = session.raw();
                raw.patience = Duration::from_secs(2);
                match raw.attempt("nudge.test_panic", &json!({}), None) {
                    Ok(answer) if answer["error"]["code"] == -32601 => agent.signal(Signal::ABORT),
                    _ => return agent.ends_within(Duration::from_secs(1)),
                }
            }
        }
        let status = agent.ended(PATIENCE);
        if matches!(self, Self::EndOfFile | Self::Sigterm) {
            assert!(status.success(), "{self:?}: {status}: {}", agent.stderr());
        }
        true
    }
}

/// Returns all hints of an export, with their versions, times and counts.
fn everything(exported: &Value) -> Value {
    let payload = &exported["payload"];
    let payload = payload.as_str().map_or_else(|| payload.clone(), |text| serde_json::from_str(text).unwrap());
    assert!(payload["components"].is_object(), "{exported}");
    payload["components"].clone()
}

/// Stores hints of every kind through every kind of caller.
fn fill(session: &Session) {
    for (number, agent) in session.agents.iter().enumerate() {
        for version in 1..=3 {
            agent.result("nudge_set_hint", &set(&format!("k{number}"), &format!("v{version}")));
        }
    }
    let first = &session.agents[0];
    let scoped =
        json!({"component": "c", "key": "k0", "value": "scoped", "meta": {"scope": {"branch": "dev"}, "ttl": "PT2H"}});
    first.result("nudge_set_hint", &scoped);
    first.result("nudge_set_hint", &set("gone", "x"));
    first.result("nudge_delete_hint", &get("gone"));
    first.result("nudge_bump", &json!({"component": "c", "key": "k0", "variant": ""}));
    let typed =
        json!({"component": "d", "key": "json", "value": {"type": "json", "data": {"z": 1, "a": [1.50, null]}}});
    session.raw().result("nudge.set_hint", &typed);
    let payload = json!({"components": {"e": {"hints": {"x": "1", "y": "2"}}}});
    session.raw().result("nudge.import", &json!({"payload": payload}));
    assert!(session.nudge(&["set", "c", "by-command", "x", "--priority", "8"]).status.success());
}

/// Tests one ending of the PRIMARY of a session with this many PROXYs.
fn goes_on(ending: Ending, proxies: usize) {
    let mut session = Session::start(proxies);
    fill(&session);
    let mut raw = session.raw();
    let before = everything(&raw.result("nudge.export", &json!({})));
    let status = session.status();
    assert_eq!(status["members"], proxies + 1, "{status}");
    assert!(status["journal_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{status}");
    let first = session.primary(|_| true);

    let agent = Arc::clone(session.agent(first.pid));
    if ending.apply(&session, &agent) {
        let second = session.next_primary(first.pid);
        let same = |file: &ServerFile| (file.port, file.token.clone());
        assert_eq!(same(&second), same(&first), "port and token stay");
        session.agents.retain(|agent| agent.pid != first.pid);
        assert_eq!(session.agents.len(), proxies);
    } else {
        assert_eq!(ending, Ending::Panic);
    }
    assert_one_primary(&session);
    for agent in &session.agents {
        assert_eq!(everything(&agent.result("nudge_export", &json!({}))), before, "by {}", agent.pid);
    }
    assert_eq!(everything(&raw.result("nudge.export", &json!({}))), before, "by a connection that was kept");
    let status_now = session.status();
    assert_eq!(status_now["session_id"], status["session_id"]);
    assert_eq!(status_now["members"], session.agents.len(), "{status_now}");

    // The session continues: each agent sets a hint, and all agents see all hints.
    for (number, agent) in session.agents.iter().enumerate() {
        let stored = agent.result("nudge_set_hint", &set(&format!("after{number}"), "x"));
        assert_eq!(stored["hint"]["version"], 1);
    }
    let all = shown(&session.agents[0]);
    assert!(session.agents.iter().all(|agent| shown(agent) == all));
    let late = session.join();
    assert_eq!(shown(&late), all, "one that comes late");
    is_over(&mut session, &status["session_id"], &first);
}

/// Ends the session. Asserts that the next session has none of its state.
fn is_over(session: &mut Session, id: &Value, first: &ServerFile) {
    session.end();
    session.agents.clear();
    session.fill(0);
    assert_empty(session);
    assert_ne!(session.status()["session_id"], *id);
    assert_ne!(session.primary(|_| true).token, first.token);
    session.end();
}

fn assert_empty(session: &Session) {
    let status = session.status();
    assert_eq!((&status["hints"], &status["members"]), (&json!(0), &json!(1)), "{status}");
    assert_eq!(session.agents[0].result("nudge_list_components", &json!({})), json!({"components": []}));
}

/// Asserts that exactly one process holds the lock and listens, and that `server.pid` names this process.
fn assert_one_primary(session: &Session) {
    let named = session.primary(|_| true).pid;
    let pids: Vec<_> = session.agents.iter().map(|agent| agent.pid).collect();
    for who in [holders(&pids, &session.runtime.join("primary.lock")), listening(&pids)] {
        assert!(who.as_ref().is_none_or(|who| *who == [named]), "{who:?}, and {named} is named");
    }
    let status = session.status();
    assert_eq!((&status["role"], &status["pid"]), (&json!("PRIMARY"), &json!(named)));
}

/// Tests one ending of the PRIMARY of a session without a PROXY.
fn is_gone(ending: Ending) {
    let mut session = Session::start(0);
    fill(&session);
    let (first, id) = (session.primary(|_| true), session.status()["session_id"].clone());
    if !ending.apply(&session, &session.agents[0]) {
        return is_over(&mut session, &id, &first);
    }
    if matches!(ending, Ending::EndOfFile | Ending::Sigterm) {
        assert_nothing_left(&session.runtime);
    }
    session.agents.clear();
    session.fill(0);
    assert_empty(&session);
    assert_ne!(session.status()["session_id"], id);
    assert_ne!(session.primary(|_| true).token, first.token);
    session.end();
}

#[test]
fn after_an_end_of_file_the_session_goes_on_while_a_proxy_lives() {
    is_gone(Ending::EndOfFile);
    goes_on(Ending::EndOfFile, 1);
    goes_on(Ending::EndOfFile, 3);
}

/// Promise: see `after_sigkill_the_session_goes_on_while_a_proxy_lives`.
#[test]
fn after_sigterm_the_session_goes_on_while_a_proxy_lives() {
    is_gone(Ending::Sigterm);
    goes_on(Ending::Sigterm, 1);
    goes_on(Ending::Sigterm, 3);
}

/// Promise (session): A session goes on when its primary ends or is killed, while a proxy lives.
#[test]
fn after_sigkill_the_session_goes_on_while_a_proxy_lives() {
    is_gone(Ending::Sigkill);
    goes_on(Ending::Sigkill, 1);
    goes_on(Ending::Sigkill, 3);
}

#[test]
fn after_a_panic_the_session_goes_on_while_a_proxy_lives() {
    is_gone(Ending::Panic);
    goes_on(Ending::Panic, 1);
    goes_on(Ending::Panic, 3);
}

#[test]
fn calls_under_way_are_answered_once_by_the_next() {
    for ending in [Ending::EndOfFile, Ending::Sigterm, Ending::Sigkill] {
        let session = Session::start(3);
        let primary = Arc::clone(&session.agents[0]);
        primary.result("nudge_set_hint", &set("k", "x"));
        let mut raw = session.raw();
        primary.stop();
        thread::scope(|scope| {
            let proxies: Vec<_> = session.agents[1..]
                .iter()
                .map(|agent| agent.begin_tool("nudge_bump", &get("k")).unwrap_or_else(|why| panic!("{why:?}")))
                .collect();
            let http = scope.spawn(|| raw.call("nudge.bump", &get("k"), Some("a key of ours")));
            let command = scope.spawn(|| session.nudge(&["bump", "c", "k", "--json"]));
            // Gives the calls time to reach the PRIMARY, which the test cannot observe. A call that arrives later is no
            // fault, but tests less.
            thread::sleep(Duration::from_millis(300));
            match ending {
                Ending::EndOfFile => primary.close(),
                Ending::Sigterm => primary.signal(Signal::TERM),
                _ => primary.signal(Signal::KILL),
            }
            primary.resume();
            for pending in proxies {
                pending.tool(LONG).unwrap_or_else(|why| panic!("{ending:?}: {why:?}"));
            }
            http.join().unwrap().unwrap_or_else(|why| panic!("{ending:?}: {why:?}"));
            let output = command.join().unwrap();
            assert!(output.status.success(), "{ending:?}: {output:?}");
        });
        session.next_primary(primary.pid);
        let found = session.agents[1].result("nudge_get_hint", &get("k"));
        assert_eq!(found["hint"]["use_count"], 5, "{ending:?}: each of five bumps counts once");
        session.end();
    }
}

#[test]
fn the_same_key_again_is_the_first_result_also_after_a_promotion() {
    let session = Session::start(2);
    let mut raw = session.raw();
    let mut call = |method: &str, params: &Value, key: &str| raw.call(method, params, Some(key)).unwrap();
    let compared = json!({"component": "c", "key": "k", "value": "x", "if_match_version": 0});
    let longest = "k".repeat(255);
    let record = json!({"kind": "issue", "title": "Once", "distinct": true, "context": {"repo": "acme/shop"}});
    let calls = [
        ("nudge.set_hint", &compared, "one"),
        ("nudge.bump", &get("k"), &longest),
        ("nudge.set_hint", &set("k", "y"), "three ~!\"#"),
        ("nudge.delete_hint", &get("k"), "four"),
        ("nudge.records.upsert", &record, "in a file"),
    ];
    let first = calls.map(|(method, params, key)| call(method, params, key));
    for _ in 0..2 {
        let again = calls.map(|(method, params, key)| call(method, params, key));
        assert_eq!(again, first);
        session.kill_primary();
        // A call with another key is another call, so it changes the hint.
        let stored = call("nudge.set_hint", &set("other", "x"), "five");
        assert_eq!(stored["hint"]["version"], 1);
    }
    let stored = call("nudge.set_hint", &set("other", "x"), "six");
    assert_eq!(stored["hint"]["version"], 2);
    assert_eq!(call("nudge.records.list", &json!({"project": "*"}), "seven")["total"], 1);
    session.end();
}

#[test]
fn stop_ends_all_within_half_a_second_and_the_next_session_is_empty() {
    for proxies in [0, 1, 3] {
        let times: Vec<_> = (0..3)
            .map(|_| {
                let mut session = Session::start(proxies);
                fill(&session);
                let (first, id) = (session.primary(|_| true), session.status()["session_id"].clone());
                // A client with an open connection must not delay the end.
                let mut idle = session.raw();
                idle.result("nudge.status", &json!({}));
                let took = session.end();
                for agent in &session.agents {
                    let status = agent.ended(PATIENCE);
                    assert!(status.success(), "{status}: {}", agent.stderr());
                }
                session.agents.clear();
                session.fill(0);
                assert_empty(&session);
                is_over(&mut session, &id, &first);
                took
            })
            .collect();
        // Takes the shortest of three times, because other tests run on the machine.
        assert!(times.iter().min().unwrap() < &Duration::from_millis(500), "{proxies}: {times:?}");
    }
}

#[test]
fn a_proxy_that_slept_through_stop_brings_nothing_back() {
    let mut session = Session::start(2);
    fill(&session);
    let sleeper = session.agents.pop().unwrap();
    sleeper.stop();
    assert!(session.nudge(&["stop"]).status.success());
    for agent in session.agents.drain(..) {
        agent.ended(PATIENCE);
    }
    sleeper.resume();
    // The suspended PROXY ends, or continues with an empty store.
    if !sleeper.ends_within(Duration::from_secs(2)) {
        assert_eq!(sleeper.result("nudge_list_components", &json!({})), json!({"components": []}));
        sleeper.close();
        assert!(sleeper.ended(PATIENCE).success());
    }
    assert_nothing_left(&session.runtime);
    session.fill(0);
    assert_empty(&session);
}

#[test]
fn a_stopped_primary_stays_the_only_one_and_callers_are_told() {
    let session = Session::start(1);
    session.agents[0].result("nudge_set_hint", &set("k", "x"));
    let first = session.primary(|_| true);
    session.agents[0].stop();
    let (begun, within) = (Instant::now(), Duration::from_secs(12));
    thread::scope(|scope| {
        let command = scope.spawn(|| session.nudge(&["set", "c", "late", "x", "--json"]));
        let more = scope.spawn(|| {
            let agent = Agent::launch(session.command());
            let status = agent.ended(within);
            (status, agent.stderr())
        });
        let refused = session.agents[1].tool("nudge_get_hint", &get("k"), within);
        assert!(matches!(&refused, Err(why) if why.reason() == "E_UNAVAILABLE"), "{refused:?}");
        let output = command.join().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let error: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(error["data"]["reason"], "E_UNAVAILABLE");
        let (status, stderr) = more.join().unwrap();
        assert!(!status.success() && stderr.starts_with("nudge: ") && stderr.lines().count() == 1, "{stderr}");
    });
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
    assert_eq!(session.dir().read_server_file().as_ref(), Some(&first), "nobody took its place");
    let pids = [session.agents[1].pid];
    for who in [holders(&pids, &session.runtime.join("primary.lock")), listening(&pids)] {
        assert!(who.is_none_or(|who| who.is_empty()));
    }

    session.agents[0].resume();
    let proxy = &session.agents[1];
    let found = wait_for("the PROXY to reach it", PATIENCE, || proxy.tool("nudge_get_hint", &get("k"), LONG).ok());
    assert_eq!(found["hint"]["value"], "x");
    assert_one_primary(&session);
    assert_eq!(session.primary(|_| true), first);
    // The call without an answer may have taken effect, but only once.
    match proxy.tool("nudge_get_hint", &get("late"), LONG) {
        Ok(found) => assert_eq!(found["hint"]["version"], 1),
        Err(Failure::Refused(error)) => assert_eq!(error["data"]["reason"], "E_NOT_FOUND"),
        Err(why) => panic!("{why:?}"),
    }
    session.end();
}
