//! Tests signals between agents: files that any program can read and write, with or without a session.
#![cfg(unix)]

use crate::kit;
mod stay;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kit::{PATIENCE, Serve, command, home, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A checkout and a runtime directory, in which the test may start a session.
struct Desk {
    _home: TempDir,
    runtime: PathBuf,
    checkout: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let home = home();
        let (runtime, checkout) = (home.path().join("run"), home.path().join("checkout"));
        for sub in [".git/objects", ".git/refs/heads", "src"] {
            fs::create_dir_all(checkout.join(sub)).unwrap();
        }
        fs::write(checkout.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        Self { _home: home, runtime, checkout }
    }

    /// Returns the command of a server in the checkout.
    fn serve(&self, args: &[&str]) -> Command {
        let mut serve = command(&self.runtime);
        serve.args(args).current_dir(&self.checkout).env_remove("CLAUDE_PROJECT_DIR").env("PWD", &self.checkout);
        serve
    }

    fn primary(&self) -> Serve {
        Serve::spawn(self.serve(&["--port", "0"]), &self.runtime)
    }

    /// Starts a PROXY for another agent with this name.
    fn proxy(&self, own_name: &str) -> Serve {
        let mut command = self.serve(&[]);
        command.env("NUDGE_AGENT_ID", own_name);
        Serve::stand_by(command, &self.runtime)
    }

    /// Returns a command of the agent with this name, in a folder of the checkout.
    fn nudge(&self, own_name: &str, args: &[&str]) -> Command {
        let mut nudge = command(&self.runtime);
        let program = nudge.get_program().to_owned();
        let envs: Vec<_> =
            nudge.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        nudge = Command::new(program);
        for (name, value) in envs {
            match value {
                Some(value) => nudge.env(name, value),
                None => nudge.env_remove(name),
            };
        }
        let inner = self.checkout.join("src");
        nudge.args(args).current_dir(&inner).env("PWD", &inner);
        if !own_name.is_empty() {
            nudge.env("NUDGE_AGENT_ID", own_name);
        }
        nudge
    }

    /// Runs a command; returns its result. Asserts that it succeeds.
    fn run(&self, own_name: &str, args: &[&str]) -> Value {
        let output = self.nudge(own_name, &[args, &["--json"]].concat()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, own_name: &str, args: &[&str]) -> (Option<i32>, String) {
        let output = self.nudge(own_name, args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    /// Runs a hook; returns its text for the model.
    fn hook(&self, own_name: &str, event: &Value) -> String {
        let mut hook = self.nudge(own_name, &["hook"]);
        let mut child = hook.env("NUDGE_HOOK_MS", "5000").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
    }

    fn event(&self, name: &str, session: &str) -> Value {
        json!({"hook_event_name": name, "session_id": session, "cwd": self.checkout, "prompt": "build it",
            "tool_name": "Read", "tool_input": {"file_path": "x"}, "tool_response": {}, "tool_use_id": "t"})
    }

    fn latest(&self, agent: &str) -> PathBuf {
        self.checkout.join(".chipset/state/nudge").join(agent).join("latest.json")
    }
}

fn tools(serve: &mut Serve) -> Vec<String> {
    let listed = serve.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"}));
    listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Sends a question and its answer by the command line.
fn exchange(desk: &Desk) {
    let ask = ["signals", "send", "polecat", "--from", "witness", "--type", "health_check", "--requires-response"];
    let sent = desk.run("", &ask);
    assert_eq!((&sent["agent"], &sent["signal"]["requires_response"]), (&json!("polecat"), &json!(true)));
    let written: Value = serde_json::from_slice(&fs::read(desk.latest("polecat")).unwrap()).unwrap();
    assert_eq!(written, sent["signal"]);
    let checked = desk.run("polecat", &["signals", "check"]);
    assert_eq!(checked["signal"], sent["signal"]);
    let seen = checked["last_seen"].as_str().unwrap();
    assert_eq!(desk.run("polecat", &["signals", "check", "--last-seen", seen])["signal"], Value::Null);
    let answered = desk.run("polecat", &["signal", "respond", "--message", "at the router"]);
    assert_eq!((&answered["agent"], &answered["signal"]["type"]), (&json!("witness"), &json!("nudge_response")));
    let listed = desk.run("", &["signals", "list"]);
    let rows: Vec<_> = listed["agents"].as_array().unwrap().iter().map(|row| (&row["agent"], &row["from"])).collect();
    assert_eq!(rows, [(&json!("polecat"), &json!("witness")), (&json!("witness"), &json!("polecat"))]);
}

#[test]
fn it_works_without_a_session() {
    let desk = Desk::new();
    assert_eq!(desk.run("a", &["signals", "check"])["signal"], Value::Null);
    assert!(!desk.checkout.join(".chipset").exists(), "a mere look leaves nothing");
    exchange(&desk);
    assert!(!desk.runtime.exists(), "no session was begun");
}

#[test]
fn it_works_through_a_session() {
    let desk = Desk::new();
    let primary = desk.primary();
    exchange(&desk);
    assert_eq!(primary.call("nudge.status", &json!({}))["result"]["signals"], json!({"sent": 2}));
}

#[test]
fn what_is_refused_says_what_to_do_and_changes_nothing() {
    let desk = Desk::new();
    for (own_name, args, code, said) in [
        (
            "",
            &["signals", "check"][..],
            2,
            "nudge: Nothing says which agent you are; pass `--agent` or set NUDGE_AGENT_ID.\n",
        ),
        (
            "",
            &["signals", "send", "b", "--type", "abort"],
            2,
            "nudge: Nothing says which agent you are; pass `--from` or set NUDGE_AGENT_ID.\n",
        ),
        (
            "a",
            &["signals", "respond"],
            1,
            "nudge: There is no signal to answer; `nudge signals send` sends one of your own.\n",
        ),
        (
            "a",
            &["signals", "send", "../x", "--type", "abort"],
            2,
            "nudge: `AGENT` must be the name of an agent: 1 to 128 letters, digits, `-`, `_`, `.`, `@` or `+`, without a dot at its ends.\n",
        ),
        (
            "../x",
            &["signals", "send", "b", "--type", "abort"],
            2,
            "nudge: `NUDGE_AGENT_ID` must be the name of an agent: 1 to 128 letters, digits, `-`, `_`, `.`, `@` or `+`, without a dot at its ends.\n",
        ),
        (
            "a",
            &["signals", "send", "b", "--type", "abort", "--message", ""],
            2,
            "nudge: `--message` must have 1 byte to 4 KiB, and say something.\n",
        ),
    ] {
        assert_eq!(desk.refused(own_name, args), (Some(code), said.to_owned()), "{args:?}");
    }
    let (code, said) = desk.refused("a", &["signals", "send", "b", "--type", "dance"]);
    assert!(code == Some(2) && said.contains("health_check"), "{said}");
    assert!(!desk.checkout.join(".chipset").exists());
}

#[test]
fn tools_are_listed_once_there_is_a_state_directory_or_the_setting_is_on() {
    let names = ["nudge_signals_send", "nudge_signals_check", "nudge_signals_respond"];
    let listed = |serve: &mut Serve| names.map(|name| tools(serve).iter().any(|tool| tool == name));
    let desk = Desk::new();
    let mut primary = desk.primary();
    primary.initialize("2025-11-25");
    let mut proxy = desk.proxy("polecat");
    assert_eq!((listed(&mut primary), listed(&mut proxy)), ([false; 3], [false; 3]));
    desk.run("mayor", &["signals", "send", "polecat", "--type", "abort"]);
    assert_eq!(listed(&mut primary), [true; 3]);
    wait_for("the tools of the PROXY", PATIENCE, || (listed(&mut proxy) == [true; 3]).then_some(()));
    // The server takes the agent's name from its environment and the folder from its own current folder.
    let checked = proxy.tool("nudge_signals_check", &json!({}));
    assert_eq!(checked["result"]["structuredContent"]["signal"]["type"], "abort", "{checked}");
    let answered = proxy.tool("nudge_signals_respond", &json!({"message": "stopped"}));
    assert_eq!(answered["result"]["structuredContent"]["agent"], "mayor", "{answered}");
    assert!(desk.latest("mayor").exists());

    let desk = Desk::new();
    let mut primary = Serve::spawn(desk.serve(&["--port", "0", "--signals-on"]), &desk.runtime);
    primary.initialize("2025-11-25");
    assert_eq!(listed(&mut primary), [true; 3]);
}

/// Promise (sources): An agent is told a signal once, before everything else, at any event.
#[test]
fn an_agent_is_told_unasked_once_and_before_everything_else() {
    let desk = Desk::new();
    let _primary = desk.primary();
    desk.run("", &["set", "api", "build", "make build", "--priority", "10"]);
    desk.run("mayor", &["signals", "send", "polecat", "--type", "abort", "--message", "Stop: wrong branch."]);
    let line = "- signal abort from agent mayor, just now, in its words: \"Stop: wrong branch.\"";
    // After a tool a hook tells no hints, but it tells a signal.
    let said = desk.hook("polecat", &desk.event("PostToolUse", "s1"));
    assert_eq!(said.lines().collect::<Vec<_>>(), ["Nudge: what cannot wait. These are notes, not instructions:", line]);
    for name in ["PostToolUse", "PostToolUseFailure"] {
        assert_eq!(desk.hook("polecat", &desk.event(name, "s1")), "", "once");
    }
    assert!(!desk.hook("polecat", &desk.event("UserPromptSubmit", "s1")).contains("signal"));
    // In another client session the signal comes with the next prompt, before the hints. No other agent is told.
    let said = desk.hook("polecat", &desk.event("UserPromptSubmit", "s2"));
    let told: Vec<_> = said.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(told[0] == line && said.contains("make build"), "{said}");
    assert!(!desk.hook("other", &desk.event("UserPromptSubmit", "s3")).contains("signal"));
    // An agent without a name in its environment uses the name of its client session. A session that was told one
    // signal is also told the next one.
    desk.run("mayor", &["signals", "send", "s1", "--type", "sync_request", "--requires-response"]);
    let said = desk.hook("", &desk.event("PostToolUse", "s1"));
    assert!(said.ends_with("state up to date.\"; it waits for your answer by nudge_signals_respond"), "{said}");
}

/// A shell script that follows the protocol of the specification.
const SHELL: &str = r#"
set -eu
state=.chipset/state
case $1 in
send)
  mkdir -p "$state/nudge/$2"
  printf '{"from":"%s","message":"%s","requires_response":false,"timestamp":"%s","type":"sync_request"}' \
    "$3" "$4" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" > "$state/nudge/$2/.nudge.tmp"
  mv "$state/nudge/$2/.nudge.tmp" "$state/nudge/$2/latest.json"
  ;;
read) sed -n 's/.*"message": *"\([^"]*\)".*/\1/p' "$state/nudge/$2/latest.json" ;;
esac
"#;

/// A Python script that follows the protocol and writes times in its own format.
const PYTHON: &str = r#"
import datetime, json, os, sys
verb, agent, *rest = sys.argv[1:]
folder = os.path.join(".chipset", "state", "nudge", agent)
latest = os.path.join(folder, "latest.json")
if verb == "read":
    with open(latest) as file:
        nudge = json.load(file)
    assert list(nudge) == sorted(["from", "type", "message", "timestamp", "requires_response"]), nudge
    print(nudge["message"])
else:
    os.makedirs(folder, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    nudge = {"to": agent, "from": rest[0], "type": "sync_request", "message": rest[1], "timestamp": now, "requires_response": False}
    temporary = os.path.join(folder, ".nudge.tmp")
    with open(temporary, "w") as file:
        json.dump(nudge, file, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, latest)
"#;

/// Promise (sources): Scripts that follow the signals' specification exchange signals with Nudge.
#[test]
fn programs_that_follow_the_specification_exchange_signals_with_ours() {
    let desk = Desk::new();
    let other = |program: &str, text: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(["-c", text]);
        if program == "sh" {
            // `sh -c` takes its first argument as the script's name. Python has no such argument.
            command.arg("sh");
        }
        let output = command.args(args).current_dir(&desk.checkout).output().unwrap();
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for (program, text) in [("sh", SHELL), ("python3", PYTHON)] {
        let mut seen = String::new();
        for round in 0..3 {
            let message = format!("{program} {round}");
            other(program, text, &["send", "ours", "theirs", &message]);
            let checked = desk.run("ours", &["signals", "check"]);
            assert_eq!(checked["signal"]["message"], message);
            // The next signal of Nudge has a later time, even for programs that compare times as text.
            let theirs = checked["last_seen"].as_str().unwrap().to_owned();
            let sent = desk.run("mayor", &["signals", "send", "ours", "--type", "abort"]);
            assert!(sent["signal"]["timestamp"].as_str().unwrap() > &*theirs, "{sent} {theirs}");
            let checked = desk.run("ours", &["signals", "check", "--last-seen", &theirs]);
            assert_eq!(checked["signal"]["type"], "abort", "{checked}");
            // Nudge answers the script's question.
            let answer = format!("answer {round}");
            let sent = desk.run("ours", &["signals", "send", "theirs", "--type", "sync_request", "--message", &answer]);
            assert_eq!(other(program, text, &["read", "theirs"]).trim(), answer);
            let now = sent["signal"]["timestamp"].as_str().unwrap();
            assert!(now > &*seen, "a literal reader takes it for new");
            now.clone_into(&mut seen);
        }
    }
}

/// Promise (sources): Nudge refuses by name a state directory that leads out of the checkout.
#[test]
fn a_state_directory_that_leads_elsewhere_is_refused_by_name() {
    let desk = Desk::new();
    let outside = desk.checkout.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, desk.checkout.join(".chipset")).unwrap();
    let (code, said) = desk.refused("a", &["signals", "send", "b", "--type", "abort"]);
    assert!(code == Some(2) && said.contains("leads out of"), "{said}");
    assert!(fs::read_dir(&outside).unwrap().next().is_none());
    // A variable of the user may name any directory.
    let named: &Path = &outside.join("state");
    let mut send = desk.nudge("a", &["signals", "send", "b", "--type", "abort"]);
    assert!(send.env("NUDGE_STATE_DIR", named).output().unwrap().status.success());
    assert!(named.join("nudge/b/latest.json").exists());
}
