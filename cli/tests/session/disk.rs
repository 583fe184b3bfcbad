//! Tests a disk that fails while Nudge writes a durable file: I/O error, no space, half a write, read-only, failed
//! flush. The old file stays as it was, no file is half written, and the caller gets one sentence. After the disk works
//! again, Nudge continues.
#![cfg(target_os = "linux")]

mod caches;

use crate::kit;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kit::desk::Desk;
use kit::faulty::{Disk, FAULTS, advice, assert_sentence};
use kit::session::run;
use kit::{Serve, wait_for};
use serde_json::{Value, json};

use kit::agent::LONG;

/// A desk whose commands meet a failing disk under some of their files.
struct Lab {
    desk: Desk,
    disk: Disk,
}

impl Lab {
    fn new() -> Self {
        let desk = Desk::new();
        Self { disk: Disk::new(desk.home.path()), desk }
    }

    fn place(&self, command: &mut Command, beneath: &str) {
        self.disk.place(command, beneath);
        command.env("HOME", self.desk.home.path());
        // Makes `nudge init` write into a folder of the test.
        command.env("XDG_CONFIG_HOME", self.desk.home.path().join("config"));
        command.env("NUDGE_RECORDS_ON", "0").env("NUDGE_BRAIN_ROOT", self.desk.home.path().join("notes"));
    }

    fn arm(&self, fault: &str) {
        self.disk.arm(fault);
    }

    fn disarm(&self) {
        self.disk.disarm();
    }

    fn command(&self, beneath: &str, args: &[&str]) -> Command {
        let mut command = self.desk.nudge(args);
        command.env("NUDGE_KEEP", "0");
        self.place(&mut command, beneath);
        command
    }

    /// Starts a session on the failing disk. Later commands call this session.
    fn serve(&self, beneath: &str) -> Serve {
        let mut serve = self.desk.server();
        self.place(&mut serve, beneath);
        Serve::spawn(serve, &self.desk.runtime)
    }

    /// Returns every file of the user and of the checkout. Leaves out the session's files, caches and locks.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let theirs = |path: &Path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let caches = self.desk.home.path().join("caches");
            let own = path.starts_with(&self.desk.runtime) || path.starts_with(caches) || name == "armed";
            // SQLite may write the files `-wal` and `-shm` beside a database even if it changes no record.
            !(own
                || path.extension().is_some_and(|kind| kind == "lock")
                || name.ends_with("-wal")
                || name.ends_with("-shm"))
        };
        kit::system::files(self.desk.home.path()).into_iter().filter(|(path, _)| theirs(path)).collect()
    }
}

/// A test case: its name, its preparation, the part of a path whose writes fail, and the arguments of the command.
type Case = (&'static str, fn(&Lab), &'static str, &'static [&'static str]);

const CASES: &[Case] = &[
    ("seeds.json", make, "/state/nudge", &["seed"]),
    ("trust.json", commit, "/state/nudge", &["trust", "--yes"]),
    (".nudge.json", store, "/checkout", &["save", "--all"]),
    ("a client's settings", |_| (), "/.cursor", &["init", "cursor", "--yes"]),
    ("init.json", |_| (), "/state/nudge", &["init", "cursor", "--yes"]),
    (
        "records.db, the first",
        |_| (),
        "records.db",
        &["records", "add", "--kind", "arch", "--title", "Amounts are minor units"],
    ),
    (
        "records.db, another",
        record,
        "records.db",
        &["records", "add", "--kind", "arch", "--title", "Amounts are minor units"],
    ),
    ("config.toml, the first", note, "/config/nudge", &["brain", "use", "../notes"]),
    ("config.toml, another", settings, "/config/nudge", &["brain", "use", "../notes"]),
    ("a note that is changed", note, "/notes", &["brain", "set", "a", "title", "Two"]),
    ("a note that is new", note, "/notes", &["brain", "add", "Three", "What there is to say."]),
];

fn make(lab: &Lab) {
    fs::write(lab.desk.checkout.join("Makefile"), "check: ## Runs everything\n\tpytest -qq\n").unwrap();
}

fn note(lab: &Lab) {
    let notes = lab.desk.home.path().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("a.md"), "---\nid: a\ntags: [x]\n---\n# One\n").unwrap();
}

/// Writes the user's settings; they contain comments.
fn settings(lab: &Lab) {
    note(lab);
    let folder = lab.desk.home.path().join("config/nudge");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "# Mine.\nmax_hints = 700\n\n[brain]\nfusion = \"ranks\" # tried\n").unwrap();
}

fn commit(lab: &Lab) {
    let text = r#"{"schema_version":"1.0","components":{"api":{"hints":{"test":"make check"}}}}"#;
    fs::write(lab.desk.checkout.join(".nudge.json"), text).unwrap();
}

fn store(lab: &Lab) {
    lab.desk.run(&["set", "api", "test", "make check", "--scope-repo", "."]);
}

fn record(lab: &Lab) {
    lab.desk.run(&["records", "add", "--kind", "issue", "--title", "Uploads fail"]);
}

/// Promise (kept hints): When the disk fails during a write, the file stays as it was and the caller gets one
/// sentence.
#[test]
fn a_file_of_a_command_is_whole_or_as_it_was() {
    for (name, before, beneath, args) in CASES {
        for (fault, kind) in FAULTS {
            let what = format!("{name}, {kind}");
            let lab = Lab::new();
            fs::create_dir_all(lab.desk.home.path().join(".cursor")).unwrap();
            fs::write(lab.desk.home.path().join(".cursor/mcp.json"), "{\"mcpServers\": {}}\n").unwrap();
            let serve = (*name == ".nudge.json").then(|| lab.desk.serve());
            before(&lab);
            let (records, files) = (records(&lab), lab.files());
            lab.arm(fault);
            let output = run(lab.command(beneath, args), LONG);
            lab.disarm();
            if output.status.success() {
                // Only a failed flush (fault `f`) may go unnoticed: the file is complete, and only a crash of the
                // machine could lose it.
                assert_eq!(fault, "f", "{what}: {output:?}");
                assert!(self::records(&lab) != records || lab.files() != files, "{what}: nothing was written");
            } else {
                // A few commands print their plan before the error.
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let last = said.lines().last().unwrap_or_default();
                assert_sentence(last, &what);
                // SQLite does not always tell why it could not write a file.
                let advice = if beneath.starts_with("records") { "look at its disk" } else { "free some space" };
                assert!(fault != "s" || last.contains("free some space") || last.contains(advice), "{what}: {last}");
                assert_eq!(self::records(&lab), records, "{what}");
                let now = lab.files();
                let changed: Vec<_> = now
                    .iter()
                    .filter(|(path, bytes)| files.get(*path) != Some(bytes) && !of_records(path))
                    .map(|(path, bytes)| (path, String::from_utf8_lossy(bytes)))
                    .collect();
                assert!(changed.is_empty() && files.keys().all(|path| now.contains_key(path)), "{what}: {changed:?}");
                let again = run(lab.command(beneath, args), LONG);
                assert!(again.status.success(), "{what}, once the disk is well: {again:?}");
            }
            drop(serve);
        }
    }
}

/// Returns true for the database of records and its backups. Their bytes may change, so the test compares the titles of
/// the records.
fn of_records(path: &Path) -> bool {
    path.ends_with("records.db") || path.parent().is_some_and(|folder| folder.ends_with("backups"))
}

/// Returns the titles of all records.
fn records(lab: &Lab) -> Vec<Value> {
    let all = lab.desk.run(&["records", "list", "--project", "*"]);
    all["records"].as_array().unwrap().iter().map(|record| record["title"].clone()).collect()
}

fn set(serve: &Serve, key: &str) -> Value {
    let params = json!({"component": "a", "key": key, "value": "x", "meta": {"ttl": "P1D"}});
    serve.call("nudge.set_hint", &params)
}

/// Promise: see `a_file_of_a_command_is_whole_or_as_it_was`.
#[test]
fn hints_that_are_kept_are_as_they_were_until_the_disk_is_well() {
    for (fault, kind) in FAULTS {
        let lab = Lab::new();
        let mut command = kit::command(&lab.desk.runtime);
        command.args(["--port", "0"]).env("NUDGE_KEEP", "1").env("XDG_STATE_HOME", lab.desk.home.path().join("state"));
        lab.place(&mut command, "/data/hints.db");
        let serve = Serve::spawn(command, &lab.desk.runtime);
        let file = lab.desk.home.path().join("data/hints.db");
        let kept = || kit::kept::list_keys(&file).join(" ");
        assert!(set(&serve, "one")["result"].is_object());
        wait_for("the first hint to be kept", LONG, || kept().contains("one").then_some(()));
        let before = kept();
        lab.arm(fault);
        assert!(set(&serve, "two")["result"].is_object(), "{kind}: the session has it");
        let failed =
            || serve.call("nudge.status", &json!({}))["result"]["keeping"]["failed"].as_str().map(str::to_owned);
        let told = wait_for("the status to tell it", LONG, &failed);
        assert_sentence(&told, kind);
        assert!(told.contains("hints.db"), "{kind}: {told}");
        let stored = lab.desk.run(&["set", "b", "three", "x", "--ttl", "P1D"]);
        assert!(stored["keeping"].as_str().is_some_and(|why| why.contains(&told)), "{kind}: {stored}");
        // If only the flush failed, a reader of the log's bytes sees the change, which SQLite does not count.
        assert!(kept() == before || kind == "no flush", "{kind}");
        lab.disarm();
        wait_for("both to be kept", LONG, || kept().contains("two").then_some(()));
        wait_for("the status to be well", LONG, || failed().is_none().then_some(()));
        serve.close();
        let mut names: Vec<_> =
            fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["hints.db", "hints.lock"], "{kind}");
    }
}

/// Promise: see `a_file_of_a_command_is_whole_or_as_it_was`.
#[test]
fn rows_that_cannot_be_written_refuse_changes_and_show_none_of_them() {
    // Nudge does not flush the rows, so the last kind of fault cannot occur.
    for (fault, kind) in &FAULTS[..4] {
        let lab = Lab::new();
        let mut command = kit::command(&lab.desk.runtime);
        command.args(["--port", "0"]);
        lab.place(&mut command, "/session.db");
        let serve = Serve::spawn(command, &lab.desk.runtime);
        let stored =
            |key: &str| serve.call("nudge.get_hint", &json!({"component": "a", "key": key})).get("result").is_some();
        assert!(set(&serve, "one")["result"].is_object());
        lab.arm(fault);
        for key in ["two", "three"] {
            let refused = set(&serve, key);
            assert_eq!(refused["error"]["data"]["reason"], "E_UNAVAILABLE", "{kind}: {refused}");
            let said = refused["error"]["message"].as_str().unwrap();
            assert_sentence(said, kind);
            assert!(said.contains(advice(fault)), "{kind}: {said}");
            assert!(!stored(key) && stored("one"), "{kind}");
        }
        lab.disarm();
        wait_for("changes to be taken again", LONG, || set(&serve, "four")["result"].is_object().then_some(()));
        // Kills the PRIMARY. The next PRIMARY of the session has exactly the acknowledged changes.
        let mut other = kit::command(&lab.desk.runtime);
        other.args(["--port", "0"]);
        let mut next = Serve::attach_to(other.spawn().unwrap(), &lab.desk.runtime, serve.file.clone());
        next.initialize(kit::mcp::LEGACY);
        let mut serve = serve;
        serve.child.kill().unwrap();
        serve.child.wait().unwrap();
        let answer = next.tool("nudge_query", &json!({"component": "a"}));
        let hints = answer["result"]["structuredContent"]["hints"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let mut keys: Vec<_> = hints.iter().map(|row| row["hint"]["key"].as_str().unwrap()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["four", "one"], "{kind}");
    }
}
