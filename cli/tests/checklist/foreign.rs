//! Tests row 19 of the security checklist: foreign files that change while Nudge reads them, or that are of the wrong
//! kind. `main.rs` lists all rows.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kit::desk::Desk;
use kit::{Serve, command, home, wait_for};
use serde_json::{Value, json};

/// The duration of the attack. A reader that waits for a pipe made the server hang within a second.
const LONG_ENOUGH: Duration = Duration::from_secs(6);

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Makes a folder that git accepts as a repository.
fn repository(folder: &Path) {
    for sub in ["objects", "refs/heads"] {
        fs::create_dir_all(folder.join(".git").join(sub)).unwrap();
    }
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/dev\n").unwrap();
    fs::write(folder.join(".git/config"), "[core]\n").unwrap();
}

/// The attacker owns a folder above and replaces one of git's files with a pipe. The pipe appears between Nudge's check
/// of the file and its opening. No process ever writes to the pipe.
#[test]
fn row_19_a_file_that_turns_into_a_pipe_holds_up_no_call() {
    let home = home();
    let top = home.path().join("repo");
    repository(&top);
    let (file, pipe_path, next) = (home.path().join("file"), home.path().join("pipe"), home.path().join("next"));
    fs::copy(top.join(".git/HEAD"), &file).unwrap();
    pipe(&pipe_path);
    let mut command = command(&home.path().join("run"));
    // From a pipe Nudge learns nothing about the repository. So hints get no scope here, and every call must find them.
    command.env("NUDGE_DEFAULT_REACH", "everywhere").current_dir(&top);
    let mut serve = Serve::spawn(command, &home.path().join("run"));
    serve.initialize("2025-11-25");
    serve.tool("nudge_set_hint", &json!({"component": "a", "key": "k", "value": "v"}));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for now in [&pipe_path, &file] {
                    fs::hard_link(now, &next).unwrap();
                    fs::rename(&next, top.join(".git/HEAD")).unwrap();
                }
            }
        });
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // If git's files do not say enough, Nudge runs git. Git hangs at the pipe until Nudge ends it.
            let end = Instant::now() + LONG_ENOUGH;
            while Instant::now() < end {
                let got = serve.tool("nudge_get_hint", &json!({"component": "a", "key": "k"}));
                assert_eq!(got["result"]["structuredContent"]["hint"]["value"], "v", "{got}");
            }
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(failed) = asked {
            serve.child.kill().unwrap();
            std::panic::resume_unwind(failed);
        }
    });
    serve.close();
}

/// Makes something in the place of a file.
type MakeFile = fn(&Path);

/// Lists what a clone or an unpacked folder may have in the place of a `.gitignore`.
fn hostile_rules() -> [(&'static str, MakeFile); 4] {
    [
        ("a link to a device", |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap()),
        ("a pipe", pipe),
        ("a folder", |path| fs::create_dir(path).unwrap()),
        ("20 MiB of one pattern", |path| fs::write(path, "*a".repeat(10 << 20)).unwrap()),
    ]
}

#[test]
fn row_19_rules_that_are_no_file_are_passed_over_by_seeds() {
    for (what, make) in hostile_rules() {
        let desk = Desk::new();
        fs::write(desk.checkout.join("Makefile"), "test:\n\ttrue\n").unwrap();
        make(&desk.checkout.join(".gitignore"));
        let shown = desk.run(&["seed", "--dry-run"]);
        assert_eq!(shown["seeds"][0]["command"], "make test", "{what}: {shown}");
        assert_eq!(shown["passed_over"][0]["file"], ".gitignore", "{what}: {shown}");
    }
}

#[test]
fn row_19_rules_that_are_no_file_are_passed_over_by_the_brain() {
    for (what, make) in hostile_rules() {
        let desk = Desk::new();
        for (file, text) in [("brain.yaml", "name: x\n"), ("a.md", "# Retries\n\nA worker that crashed tries again.\n")]
        {
            fs::write(desk.checkout.join(file), text).unwrap();
        }
        make(&desk.checkout.join(".gitignore"));
        let asked = desk.nudge(&["ask", "worker crashed retries", "--json"]).output().unwrap();
        assert!(String::from_utf8_lossy(&asked.stdout).contains("a.md"), "{what}: {asked:?}");
    }
}

/// The coverage file has a view in the place of a table, and the view never ends. This call must still get its answer,
/// and so must every other caller.
#[test]
#[cfg(feature = "code")]
fn row_19_a_hostile_file_of_coverage_holds_up_no_call() {
    let desk = Desk::new();
    fs::write(desk.checkout.join("a.py"), "def f(x):\n    return x\n").unwrap();
    let made = Command::new("python3").args(["-c", HOSTILE_COVERAGE]).arg(desk.checkout.join(".coverage")).status();
    assert!(made.unwrap().success());
    // Repeats the command: on a busy machine it may end before it has read the file.
    let alone = wait_for("the file to be read", Duration::from_mins(1), || {
        let asked = desk.nudge(&["code", "node", "f", "--json"]).output().unwrap();
        asked.status.success().then(|| serde_json::from_slice::<Value>(&asked.stdout).unwrap())
    });
    assert_eq!(alone["node"]["id"], "node:a.py:f", "{alone}");
    let serve = desk.serve();
    wait_for("the server to have read it", Duration::from_mins(1), || {
        desk.nudge(&["code", "node", "f"]).output().unwrap().status.success().then_some(())
    });
    for _ in 0..3 {
        let told = desk.run(&["code", "node", "f"]);
        assert_eq!((&told["node"]["id"], &told["tests"]["covered"]), (&json!("node:a.py:f"), &json!(null)), "{told}");
        desk.run(&["code", "status"]);
        desk.run(&["status"]);
    }
    assert_eq!(fs::read_dir(&desk.checkout).unwrap().count(), 3, "nothing was made beside the file of coverage");
    serve.close();
}

#[cfg(feature = "code")]
const HOSTILE_COVERAGE: &str = r#"import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript("""PRAGMA journal_mode = WAL;
CREATE TABLE file(id INTEGER PRIMARY KEY, path TEXT); INSERT INTO file VALUES(1, 'a.py');
CREATE TABLE context(id INTEGER PRIMARY KEY, context TEXT); INSERT INTO context VALUES(1, 't.test_f');
CREATE VIEW line_bits(file_id, context_id, numbits) AS
  WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 1, 1, zeroblob(400000000) FROM n WHERE x < 0;""")
c.close()"#;
