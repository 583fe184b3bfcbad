//! Tests the source `code` by the command line, with and without a session, and by an agent's hooks.
#![cfg(all(unix, feature = "code"))]

use crate::kit;

use std::fs;
use std::time::{Duration, Instant};

use kit::desk::Desk;
use serde_json::{Value, json};

/// A checkout with a function and its caller.
struct Project(Desk);

impl Project {
    fn new() -> Self {
        let project = Self(Desk::new());
        project.write("pay.py", "def process_payment(order):\n    return order\n");
        project.write(
            "web.py",
            "from pay import process_payment\n\n\ndef view(order):\n    return process_payment(order)\n",
        );
        project
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.0.checkout.join(path), text).unwrap();
    }

    /// Runs a hook; returns its text for the model.
    fn hook(&self, mut event: Value) -> String {
        event["session_id"] = json!("s");
        event["cwd"] = json!(self.0.checkout);
        self.0.hook(&[], &event)
    }

    /// Repeats a hook until its text contains `says`, because a hook does not wait for a late source.
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

/// The source costs nothing before the first question about code: its thread starts with that question.
#[test]
#[cfg(target_os = "linux")]
fn the_thread_of_the_code_begins_with_the_first_question() {
    let project = Project::new();
    let serve = project.0.serve();
    let works = || {
        let threads = fs::read_dir(format!("/proc/{}/task", serve.file.pid)).unwrap();
        threads
            .flatten()
            .any(|thread| fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name == "nudge-code\n"))
    };
    project.0.run(&["set", "api", "build", "make"]);
    assert_eq!(project.0.run(&["get", "api", "build"])["hint"]["value"], "make");
    assert!(!works());
    project.0.run(&["code", "search", "payment"]);
    assert!(works());
}

#[test]
fn a_node_is_there_with_a_session_and_without() {
    let project = Project::new();
    let desk = &project.0;
    let caller = |told: &Value| told["callers"][0]["id"].clone();
    let alone = desk.run(&["code", "node", "process_payment"]);
    assert_eq!((caller(&alone), &alone["as_of"]["complete"]), (json!("node:web.py:view"), &json!(true)), "{alone:#}");
    assert!(!desk.runtime.exists(), "no session was begun");
    assert_eq!(fs::read_dir(&desk.checkout).unwrap().count(), 3, "nothing is left in the project");
    let serve = desk.serve();
    // Repeats the question: a session answers at once, with the files that it has read so far.
    let begun = Instant::now();
    while desk.run(&["code", "status"])["as_of"]["complete"] != true {
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(caller(&desk.run(&["code", "node", "pay.py:1"])), "node:web.py:view");
    project.write("pay.py", "def process_payment(order, tax):\n    return order\n");
    let told = desk.run(&["code", "node", "process_payment"]);
    assert!(told["node"]["signature"].as_str().unwrap().contains("tax"), "{told:#}");
    drop(serve);
    let found = desk.run(&["code", "search", "process", "payment"]);
    assert_eq!(found["nodes"][0]["id"], "node:pay.py:process_payment");
}

#[test]
fn an_agent_hears_of_what_it_names_and_of_what_it_left_behind() {
    let project = Project::new();
    let desk = &project.0;
    let _serve = desk.serve();
    project.hook(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    let prompt = |text: &str| json!({"hook_event_name": "UserPromptSubmit", "prompt": text});
    let told = project.told(&prompt("why does process_payment() fail?"), "pay.py:1 process_payment(order)");
    assert!(told.contains("called by 1 (web.py:5)"), "{told}");
    assert_eq!(project.hook(prompt("please go on")), "");
    project.write("pay.py", "def process_payment(order, tax):\n    return order\n");
    let input = json!({"file_path": desk.checkout.join("pay.py")});
    let edit = json!({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": input, "tool_response": {}});
    let told = project.told(&edit, "the signature has changed");
    assert!(told.contains("web.py:5"), "{told}");
    assert_eq!(project.hook(edit), "");
}

/// The checkout contains a program for each way in which git runs programs. It also contains a `git`, and PATH names
/// the checkout in three ways: by `.`, by an empty part and by its path. The answer must name the tests for the changed
/// code, and no program of the checkout may run.
#[test]
fn no_program_of_a_checkout_is_run_for_its_changes() {
    use std::os::unix::fs::PermissionsExt as _;

    let project = Project(Desk::new());
    let (checkout, mark) = (&project.0.checkout, project.0.home.path().join("mark"));
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(checkout).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
        assert!(git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().status.success(), "{words:?}");
    };
    fs::remove_dir_all(checkout.join(".git")).unwrap();
    git(&["init", "-q", "-b", "main"]);
    project.write("pay.py", "def process_payment(order):\n    return order\n");
    git(&["add", "-A"]);
    git(&["commit", "-qm", "x"]);
    // The new text is as long as the old one, so git cannot see the change from the size.
    project.write("pay.py", "def process_payment(order):\n    return OTHER\n");
    project.write("git", &format!("#!/bin/sh\necho >> '{}'\n", mark.display()));
    fs::set_permissions(checkout.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let evil = checkout.join("git").display().to_string();
    let path = std::env::var("PATH").unwrap();
    let here = checkout.display();
    let changed = |name: &str, path: &str| {
        let output = project.0.nudge(&["code", "tests", "--changed", "--json"]).env("PATH", path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("\"changed\":[\"pay.py\"]"), "{name}: {output:?}");
        assert!(!mark.exists(), "{name}: a program of the checkout was run");
    };
    for path in [format!(".:{path}"), format!(":{path}"), format!("{path}:"), format!("{here}:{path}")] {
        changed(&path, &path);
    }
    project.write(".gitattributes", "* filter=a\n");
    for key in ["filter.a.clean", "filter.a.process", "core.fsmonitor", "core.sshCommand", "remote.origin.uploadpack"] {
        let config = checkout.join(".git/config");
        let before = fs::read_to_string(&config).unwrap();
        git(&["config", key, &evil]);
        changed(key, &path);
        fs::write(&config, before).unwrap();
    }
}
