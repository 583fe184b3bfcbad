//! Tests a file system that refuses locks, like NFS without its lock server. Every operation that needs a lock is
//! refused with one sentence, which names the file and says what to do. No acknowledged change is lost.
#![cfg(target_os = "linux")]

use crate::kit;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use kit::agent::{Agent, LONG};
use kit::desk::Desk;
use kit::faulty::{Disk, NO_LOCKS};
use kit::session::{Session, run, set, shown};
use kit::system::sentence;
use kit::{Serve, wait_for};
use serde_json::{Value, json};

const RECORD: &[&str] = &["records", "add", "--kind", "issue", "--title", "Uploads fail", "--body", "nginx"];

/// A desk with a folder on a file system without locks.
struct Lab {
    desk: Desk,
    disk: Disk,
    beneath: &'static str,
}

impl Lab {
    fn new(beneath: &'static str) -> Self {
        let desk = Desk::new();
        let lab = Self { disk: Disk::new(desk.home.path()), desk, beneath };
        lab.disk.arm(NO_LOCKS);
        lab
    }

    fn place(&self, command: &mut Command) {
        self.disk.place(command, self.beneath);
        command.env("HOME", self.desk.home.path()).env("XDG_CONFIG_HOME", self.desk.home.path().join("config"));
        command.env("NUDGE_KEEP", "1").env("NUDGE_RECORDS_ON", "0");
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.desk.nudge(args);
        self.place(&mut command);
        run(command, LONG)
    }

    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        sentence(&self.run(args))
    }

    #[track_caller]
    fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn doctor(&self) -> String {
        String::from_utf8(self.run(&["doctor"]).stdout).unwrap()
    }

    fn serve(&self) -> Serve {
        let mut serve = self.desk.server();
        self.place(&mut serve);
        Serve::spawn(serve, &self.desk.runtime)
    }
}

/// Promise (session): On a file system without locks no session begins. Every command says so, names the file and
/// says what to do.
#[test]
fn no_session_begins_without_locks_in_the_runtime_directory() {
    let lab = Lab::new("/run/");
    let mut serve = lab.desk.server();
    lab.place(&mut serve);
    let lock = lab.desk.runtime.join("primary.lock").display().to_string();
    let check = |said: &str| {
        assert!(said.contains(&lock) && said.contains("so set NUDGE_RUNTIME_DIR to"), "{said}");
    };
    check(&sentence(&run(serve, LONG)));
    check(&lab.refused(&["serve", "--detach"]));
    for args in [&["set", "web", "build", "make"][..], &["get", "web", "build"], &["stop"], &["status"]] {
        check(&lab.refused(args));
    }
    let report = lab.doctor();
    assert!(report.contains("✘ session"), "{report}");
    check(&report);
    // A record needs no session.
    lab.done(RECORD);
    assert!(lab.done(&["records", "list"]).contains("Uploads fail"));
    lab.disk.disarm();
    let serve = lab.serve();
    lab.done(&["set", "web", "build", "make"]);
    serve.close();
}

/// Promise: see `no_session_begins_without_locks_in_the_runtime_directory`.
#[test]
fn a_session_whose_locks_stop_working_goes_on_and_no_second_one_begins() {
    let home = kit::home();
    let disk = Disk::new(home.path());
    let runtime = home.path().join("run");
    let mut session = Session::at(&runtime, &[]);
    let start = |session: &mut Session| {
        let mut command = session.command();
        disk.place(&mut command, "/run/");
        let agent = std::sync::Arc::new(Agent::spawn(command));
        session.agents.push(std::sync::Arc::clone(&agent));
        agent
    };
    let first = start(&mut session);
    session.primary(|file| file.pid == first.pid);
    let second = start(&mut session);
    first.result("nudge_set_hint", &set("before", "x"));
    second.result("nudge_set_hint", &set("by-proxy", "x"));
    disk.arm(NO_LOCKS);
    first.result("nudge_set_hint", &set("meanwhile", "x"));
    second.result("nudge_set_hint", &set("meanwhile-by-proxy", "x"));
    let mut further = session.command();
    disk.place(&mut further, "/run/");
    let said = sentence(&run(further, LONG));
    assert!(said.contains("primary.lock") && said.contains("so set NUDGE_RUNTIME_DIR to"), "{said}");
    first.kill();
    session.primary(|file| file.pid == second.pid);
    let hints: Vec<_> =
        ["before", "by-proxy", "meanwhile", "meanwhile-by-proxy"].map(|key| (key.to_owned(), "x".to_owned())).into();
    wait_for("the hints", LONG, || (shown(&second) == hints).then_some(()));
    disk.disarm();
    let third = start(&mut session);
    assert_eq!(shown(&third), hints);
    session.end();
}

/// Promise (kept hints): On a file system without locks Nudge keeps no hints, the kept hints stay as they are, and the
/// session says so.
#[test]
fn nothing_is_kept_without_locks_in_the_folder_for_data_and_all_are_told() {
    let lab = Lab::new("/data/");
    lab.disk.disarm();
    let serve = lab.serve();
    lab.done(&["set", "web", "build", "make", "--ttl", "P3D"]);
    serve.close();
    let file = lab.desk.home.path().join("data/hints.db");
    let before = fs::read(&file).unwrap();
    assert_eq!(kit::kept::list_keys(&file), ["build"]);
    lab.disk.arm(NO_LOCKS);
    let folder = file.parent().unwrap().display().to_string();
    let check = |said: &str| assert!(said.contains(&folder) && said.contains("so set NUDGE_DATA_DIR to"), "{said}");
    let serve = lab.serve();
    check(&lab.done(&["set", "web", "port", "8080", "--ttl", "P3D"]));
    check(&lab.done(&["status"]));
    let report = lab.doctor();
    assert!(report.contains("✘ kept hints"), "{report}");
    check(&report);
    check(&lab.refused(&["forget", "--yes"]));
    check(&lab.done(&["stop"]));
    drop(serve);
    assert_eq!(fs::read(&file).unwrap(), before);
    lab.disk.disarm();
    let serve = lab.serve();
    assert!(lab.done(&["get", "web", "build"]).contains("make"));
    serve.close();
}

#[test]
fn nothing_is_set_up_without_locks_in_the_folder_for_state() {
    let lab = Lab::new("/state/");
    let folder = lab.desk.home.path().join("state/nudge").display().to_string();
    let check = |said: &str| assert!(said.contains(&folder) && said.contains("so set XDG_STATE_HOME to"), "{said}");
    fs::create_dir_all(lab.desk.home.path().join(".cursor")).unwrap();
    let refused = lab.run(&["init", "cursor", "--yes"]);
    assert!(!refused.status.success());
    let said = String::from_utf8(refused.stderr).unwrap();
    check(said.lines().last().unwrap());
}

/// Promise (storage): On a file system without locks no record is acknowledged, and the refusal says what to do.
#[test]
fn no_record_is_acknowledged_without_locks_in_the_folder_for_data() {
    let lab = Lab::new("/data/");
    let check = |said: &str| {
        assert!(said.contains("records.db is on a file system without locks") && said.contains("set NUDGE_DATA_DIR"));
    };
    check(&lab.refused(RECORD));
    let report = lab.doctor();
    assert!(report.contains("✘ records"), "{report}");
    check(&report);
    let serve = lab.serve();
    check(&lab.refused(RECORD));
    let params = json!({"kind": "issue", "title": "Uploads fail", "context": {"repo": "github.com/acme/shop"}});
    let answer: Value = serve.call("nudge.records.upsert", &params);
    check(answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")));
    lab.done(&["set", "web", "build", "make"]);
    check(&lab.done(&["status"]));
    lab.disk.disarm();
    lab.done(RECORD);
    assert!(lab.done(&["records", "list"]).contains("Uploads fail"));
    serve.close();
    let own = |name: &Path| name.to_string_lossy().contains(".scratch");
    assert!(!kit::system::files(&lab.desk.home.path().join("data")).iter().any(|(path, _)| own(path)));
}
