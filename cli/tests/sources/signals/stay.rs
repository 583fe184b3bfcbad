//! Tests the commands that keep running, `nudge signals watch` and `nudge signals deacon`. The other agents are
//! scripts.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::Desk;
use super::kit::PATIENCE;

/// A running command and the events that it prints.
struct Stays {
    child: Child,
    lines: Receiver<String>,
}

impl Stays {
    fn start(desk: &Desk, own_name: &str, args: &[&str]) -> Self {
        let mut command = desk.nudge(own_name, &[args, &["--json"]].concat());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines }
    }

    /// Waits for the next event; panics if none comes.
    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("something is told");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for an event of this kind about this agent; skips all other events.
    fn until(&self, event: &str, agent: &str) -> Value {
        loop {
            let told = self.next();
            if told["event"] == event && (agent.is_empty() || told["agent"] == agent) {
                return told;
            }
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes an agent's hook file, as a mayor's script does.
fn hook(checkout: &Path, agent: &str, status: &str, last_activity: &str) {
    let hooks = checkout.join(".chipset/state/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let hook = json!({"agent_id": agent, "status": status, "last_activity": last_activity,
        "work_item": {"bead_id": "gt-abc12", "title": "Add a page", "assigned_at": "2026-03-05T10:30:00Z"}});
    let temporary = hooks.join(format!(".{agent}.tmp"));
    fs::write(&temporary, hook.to_string()).unwrap();
    fs::rename(temporary, hooks.join(format!("{agent}.json"))).unwrap();
}

const LONG_AGO: &str = "2026-03-05T10:32:00Z";

/// A script of an agent that follows the specification. It answers each signal that requires a response. With `notes`
/// it also writes its activity to its hook file.
const AGENT: &str = r#"
import datetime, json, os, sys, time
me, notes = sys.argv[1], sys.argv[2] == "notes"
state = os.path.join(".chipset", "state")
mine = os.path.join(state, "nudge", me, "latest.json")
hook = os.path.join(state, "hooks", me + ".json")
now = lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
def replace(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = path + "." + me + ".tmp"
    with open(temporary, "w") as file:
        file.write(text); file.flush(); os.fsync(file.fileno())
    os.rename(temporary, path)
seen = ""
while True:
    try:
        with open(mine) as file:
            nudge = json.load(file)
    except (FileNotFoundError, ValueError):
        nudge = None
    if nudge and nudge["timestamp"] > seen:
        seen = nudge["timestamp"]
        if notes:
            with open(hook) as file:
                mark = json.load(file)
            replace(hook, json.dumps(mark | {"last_activity": now()}, sort_keys=True))
        if nudge["requires_response"]:
            answer = {"from": me, "type": "nudge_response", "message": "Acknowledged.", "timestamp": now(), "requires_response": False}
            replace(os.path.join(state, "nudge", nudge["from"], "latest.json"), json.dumps(answer, sort_keys=True))
    time.sleep(0.02)
"#;

/// A script that runs as an agent until the test ends.
struct Agent(Child);

impl Agent {
    fn start(desk: &Desk, name: &str, how: &str) -> Self {
        let mut python = Command::new("python3");
        python.args(["-c", AGENT, name, how]).current_dir(&desk.checkout);
        Self(python.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn mails(checkout: &Path) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(checkout.join(".chipset/state/mail/mayor-1")) else { return Vec::new() };
    let mut mails: Vec<Value> =
        entries.map(|entry| serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap()).collect();
    mails.sort_by_key(|mail| mail["subject"].to_string());
    mails
}

const DEACON: [&str; 6] = ["signals", "deacon", "--mayor", "mayor-1", "--interval", "2500ms"];

/// Promise: see `a_restart_forgets_no_question_and_repeats_no_mail`.
#[test]
fn the_living_answer_the_dead_are_reported_once_and_two_answer_at_once() {
    let desk = Desk::new();
    for agent in ["alpha", "bravo", "dead", "idle"] {
        hook(&desk.checkout, agent, if agent == "idle" { "completed" } else { "active" }, LONG_AGO);
    }
    let _living = [Agent::start(&desk, "alpha", "notes"), Agent::start(&desk, "bravo", "notes")];
    let deacon = Stays::start(&desk, "witness-1", &DEACON);
    let started = deacon.next();
    assert_eq!((&started["event"], &started["from"]), (&json!("started"), &json!("witness-1")));
    let escalated = deacon.until("escalated", "dead");
    assert_eq!(escalated["to"], "mayor-1");
    // Meanwhile the deacon asks the other agents, and reports none of them.
    for _ in 0..4 {
        deacon.until("asked", "alpha");
    }
    let mails = mails(&desk.checkout);
    let told: Vec<_> = mails.iter().map(|mail| (&mail["type"], &mail["subject"], &mail["from"])).collect();
    assert_eq!(told, [(&json!("health_escalation"), &json!("dead does not answer"), &json!("witness-1"))]);
    // The dead agent starts again. The deacon reports it as active.
    let _back = Agent::start(&desk, "dead", "notes");
    deacon.until("active", "dead");
    deacon.signal(rustix::process::Signal::TERM);
    deacon.until("stopped", "");
    let mut deacon = deacon;
    assert!(deacon.child.wait().unwrap().success());
}

#[test]
fn an_agent_that_answers_and_keeps_no_hook_is_alive() {
    let desk = Desk::new();
    hook(&desk.checkout, "alpha", "active", LONG_AGO);
    let _living = Agent::start(&desk, "alpha", "answers");
    let deacon = Stays::start(&desk, "", &DEACON);
    for _ in 0..3 {
        deacon.until("asked", "alpha");
        deacon.until("answered", "alpha");
    }
    assert!(mails(&desk.checkout).is_empty());
}

#[test]
fn a_deacon_that_is_killed_is_followed_by_one_that_knows_what_it_asked() {
    let desk = Desk::new();
    hook(&desk.checkout, "dead", "active", LONG_AGO);
    let first = Stays::start(&desk, "", &DEACON);
    first.until("asked", "dead");
    drop(first);
    let second = Stays::start(&desk, "", &DEACON);
    second.until("started", "");
    // Only one deacon may run for a state directory.
    let (code, said) = desk.refused("", &DEACON);
    assert!(code == Some(3) && said.contains("end that one first"), "{said}");
    assert_eq!(second.next()["event"], "escalated", "without asking again");
    drop(second);
    let third = Stays::start(&desk, "", &DEACON);
    third.until("started", "");
    hook(&desk.checkout, "new", "active", LONG_AGO);
    third.until("escalated", "new");
    assert_eq!(mails(&desk.checkout).len(), 2, "one for each");
}

#[test]
fn each_signal_is_watched_as_it_comes() {
    let desk = Desk::new();
    desk.run("mayor", &["signals", "send", "b", "--type", "abort"]);
    let all = Stays::start(&desk, "", &["signals", "watch"]);
    let of_b = Stays::start(&desk, "b", &["signal", "watch"]);
    assert_eq!((&all.next()["agent"], &of_b.next()["type"]), (&json!("b"), &json!("abort")));
    // A new agent gets its first signal, and the command reports it.
    desk.run("mayor", &["signals", "send", "c", "--type", "sync_request", "--message", "one"]);
    assert_eq!(all.next()["message"], "one");
    desk.run("mayor", &["signals", "send", "b", "--type", "sync_request", "--message", "two"]);
    let told = of_b.next();
    let fields: Vec<_> = told.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["agent", "from", "message", "requires_response", "timestamp", "type"]);
    assert_eq!((&told["message"], &all.next()["message"]), (&json!("two"), &json!("two")));
    // `--last-seen` skips earlier signals, so the first event is the next signal.
    let seen = told["timestamp"].as_str().unwrap();
    let later = Stays::start(&desk, "b", &["signals", "watch", "--last-seen", seen]);
    desk.run("mayor", &["signals", "send", "b", "--type", "sync_request", "--message", "three"]);
    assert_eq!(later.next()["message"], "three");
}

#[test]
fn watching_ends_when_nobody_reads() {
    let desk = Desk::new();
    let mut watch = desk.nudge("", &["signals", "watch"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(watch.stdout.take());
    assert!(watch.wait().unwrap().success());
}
