//! Code by the command line, with a session and without, and by the hooks of an agent.
#![cfg(all(unix, feature = "code"))]

mod kit;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kit::{Serve, command, home};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A checkout, and a session beside it, which need not run.
struct Desk {
    home: TempDir,
    runtime: PathBuf,
    checkout: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let home = home();
        let (runtime, checkout) = (home.path().join("run"), home.path().join("checkout"));
        fs::create_dir_all(&checkout).unwrap();
        let done = Command::new("git").args(["init", "-q"]).current_dir(&checkout).status().unwrap();
        assert!(done.success());
        let desk = Self { home, runtime, checkout };
        desk.write("pay.py", "def process_payment(order):\n    return order\n");
        desk.write(
            "web.py",
            "from pay import process_payment\n\n\ndef view(order):\n    return process_payment(order)\n",
        );
        desk
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.checkout.join(path), text).unwrap();
    }

    /// The variables that keep it among its own files, and on.
    fn place(&self, command: &mut Command) {
        command.env("NUDGE_CACHE_DIR", self.home.path().join("caches"));
        command.env("NUDGE_DATA_DIR", self.home.path().join("data"));
        command.current_dir(&self.checkout).env("PWD", &self.checkout).env_remove("CLAUDE_PROJECT_DIR");
    }

    fn nudge(&self, args: &[&str]) -> Command {
        let mut nudge = Command::new(env!("CARGO_BIN_EXE_nudge"));
        for (name, value) in command(&self.runtime).get_envs() {
            match value {
                Some(value) => nudge.env(name, value),
                None => nudge.env_remove(name),
            };
        }
        self.place(&mut nudge);
        nudge.args(args);
        nudge
    }

    fn serve(&self) -> Serve {
        let mut serve = command(&self.runtime);
        serve.args(["--port", "0"]);
        self.place(&mut serve);
        Serve::spawn(serve, &self.runtime)
    }

    fn run(&self, args: &[&str]) -> Value {
        let output = self.nudge(&[args, &["--json"]].concat()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What a hook shows the model.
    fn hook(&self, mut event: Value) -> String {
        event["session_id"] = json!("s");
        event["cwd"] = json!(self.checkout);
        let mut hook = self.nudge(&["hook"]);
        let hook = hook.env("NUDGE_HOOK_MS", "5000").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = hook.spawn().unwrap();
        child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default().to_owned()
    }

    /// Asks until the answer is what is waited for: a source that is late is not waited for.
    fn told(&self, event: &Value, says: &str) -> String {
        let begun = Instant::now();
        loop {
            let told = self.hook(event.clone());
            if told.contains(says) {
                return told;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{event}: {told}");
        }
    }
}

#[test]
fn a_node_is_there_with_a_session_and_without() {
    let desk = Desk::new();
    let caller = |told: &Value| told["callers"][0]["id"].clone();
    let alone = desk.run(&["code", "node", "process_payment"]);
    assert_eq!((caller(&alone), &alone["as_of"]["complete"]), (json!("node:web.py:view"), &json!(true)), "{alone:#}");
    assert!(!desk.runtime.exists(), "no session was begun");
    assert_eq!(fs::read_dir(&desk.checkout).unwrap().count(), 3, "nothing is left in the project");
    let serve = desk.serve();
    assert_eq!(caller(&desk.run(&["code", "node", "pay.py:1"])), "node:web.py:view");
    desk.write("pay.py", "def process_payment(order, tax):\n    return order\n");
    let told = desk.run(&["code", "node", "process_payment"]);
    assert!(told["node"]["signature"].as_str().unwrap().contains("tax"), "{told:#}");
    drop(serve);
    let found = desk.run(&["code", "search", "process", "payment"]);
    assert_eq!(found["nodes"][0]["id"], "node:pay.py:process_payment");
}

#[test]
fn an_agent_hears_of_what_it_names_and_of_what_it_left_behind() {
    let desk = Desk::new();
    let _serve = desk.serve();
    desk.hook(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let prompt = |text: &str| json!({"hook_event_name": "UserPromptSubmit", "prompt": text});
    let told = desk.told(&prompt("why does process_payment() fail?"), "pay.py:1 process_payment(order)");
    assert!(told.contains("called by 1 (web.py:5)"), "{told}");
    assert_eq!(desk.hook(prompt("please go on")), "");
    desk.write("pay.py", "def process_payment(order, tax):\n    return order\n");
    let input = json!({"file_path": desk.checkout.join("pay.py")});
    let edit = json!({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": input, "tool_response": {}});
    let told = desk.told(&edit, "the signature has changed");
    assert!(told.contains("web.py:5"), "{told}");
    assert_eq!(desk.hook(edit), "");
}
