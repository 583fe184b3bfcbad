//! Tests notifications: a client that subscribed to changes is notified of changes by other callers, also after a
//! promotion.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::agent::{Agent, LONG};
use crate::kit::session::Session;
use crate::kit::system::nudge;
use crate::kit::{PATIENCE, wait_for};

/// Makes changes through another caller until all agents are notified. Repeats them, because after a promotion a PROXY
/// needs a moment to subscribe at the next PRIMARY.
fn all_hear(session: &Session, component: &str, hear: &[&dyn Fn(&Value) -> bool], agents: &[&Agent]) {
    for (agent, is_meant) in agents.iter().flat_map(|agent| hear.iter().map(move |predicate| (agent, predicate))) {
        let mut number = 0;
        wait_for(&format!("{} to hear of {component}", agent.pid), LONG, || {
            number += 1;
            // The component is new, so the list of components changes too.
            let (there, new) = (component.to_owned(), format!("{component}-{}-{number}", agent.pid));
            for component in [&there, &new] {
                assert!(session.nudge(&["set", component, &format!("k{number}"), "x"]).status.success());
            }
            let deadline = Instant::now() + Duration::from_secs(1);
            while let Some(message) = agent.unasked(deadline.saturating_duration_since(Instant::now())) {
                if is_meant(&message) {
                    return Some(());
                }
            }
            None
        });
    }
}

fn is_updated(uri: &'static str) -> impl Fn(&Value) -> bool {
    move |message| message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
}

fn is_list_changed(message: &Value) -> bool {
    message["method"] == "notifications/resources/list_changed"
}

#[test]
fn a_client_of_a_proxy_hears_of_changes_before_and_after_a_promotion() {
    let mut session = Session::start(2);
    let uris = ["nudge://components", "nudge://component/c"];
    // Clients of 2025 subscribe through two PROXYs. One of these PROXYs later becomes PRIMARY.
    for agent in &session.agents[1..] {
        agent.ask("resources/list", json!({}), LONG).unwrap();
        for uri in uris {
            let answer = agent.ask("resources/subscribe", json!({"uri": uri}), LONG).unwrap();
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
    // A client of 2026 subscribes through a third PROXY.
    let modern = Agent::launch(session.command());
    modern.begin(true, "server/discover", json!({})).unwrap().1.wait(LONG).unwrap();
    let filter = json!({"resourcesListChanged": true, "resourceSubscriptions": uris});
    let _listening = modern.begin(true, "subscriptions/listen", json!({"notifications": filter})).unwrap();
    let acknowledged = modern.unasked(PATIENCE).expect("an acknowledgement");
    assert_eq!(acknowledged["params"]["notifications"], filter, "{acknowledged}");

    let (components, component) = (is_updated(uris[0]), is_updated(uris[1]));
    let hear: [&dyn Fn(&Value) -> bool; 3] = [&is_list_changed, &components, &component];
    let first = session.agents.remove(0);
    let agents = [&*session.agents[0], &*session.agents[1], &modern];
    all_hear(&session, "c", &hear, &agents);
    first.kill();
    wait_for("the next PRIMARY", LONG, || session.dir().read_server_file().filter(|file| file.pid != first.pid));
    all_hear(&session, "c", &hear, &agents);
}

/// A running `nudge watch`. Dropping it ends the command, even if the test panics.
struct Watching {
    child: Child,
    lines: Receiver<Value>,
}

impl Watching {
    fn start(session: &Session) -> Self {
        let mut command = nudge(&session.runtime, &["watch", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            let values = BufReader::new(stdout).lines().map_while(Result::ok);
            values.map(|line| serde_json::from_str(&line).unwrap()).try_for_each(|value| sender.send(value))
        });
        Self { child, lines }
    }

    /// Makes changes until `nudge watch` reports one, then makes one more change and waits for its report.
    fn tells(&mut self, session: &Session, key: &str) {
        let mut number = 0;
        wait_for(&format!("`nudge watch` to tell of {key}"), LONG, || {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended");
            number += 1;
            assert!(session.nudge(&["set", "watched", &format!("{key}-{number}"), "x"]).status.success());
            self.lines.recv_timeout(Duration::from_millis(200)).ok().filter(|told| names(told, key))
        });
        let last = format!("{key}-last");
        assert!(session.nudge(&["set", "watched", &last, "x"]).status.success());
        while !names(&self.lines.recv_timeout(PATIENCE).expect("the change"), &last) {}
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn names(told: &Value, key: &str) -> bool {
    told["component"] == "watched" && told["key"].as_str().is_some_and(|told| told.starts_with(key))
}

#[test]
fn watching_goes_on_over_promotions() {
    let session = Session::start(2);
    let mut watching = Watching::start(&session);
    watching.tells(&session, "before");
    session.kill_primary();
    watching.tells(&session, "after");
    session.kill_primary();
    watching.tells(&session, "again");
    session.end();
}
