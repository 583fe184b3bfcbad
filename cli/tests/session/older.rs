//! Tests that Nudge reads the files of earlier versions (`tests/fixtures`), leaves a session of another protocol alone,
//! and makes caches of other versions anew or leaves them alone.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use kit::Serve;
use kit::agent::LONG;
use kit::desk::Desk;
use kit::session::{Session, run};
use serde_json::{Value, json};

/// Returns the fixtures whose names begin with this text. There is one for each version.
fn left_behind(begins: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(begins)).collect();
    assert!(!files.is_empty(), "{begins}");
    files
}

/// Copies a file to the path where this version looks for it.
fn put(file: &Path, target: &Path) {
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::copy(file, target).unwrap();
    for (path, mode) in [(target.parent().unwrap(), 0o700), (target, 0o600)] {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }
}

/// Asserts that each hint of `tests/fixtures/make` is found in its scope with all its fields.
fn holds_all(desk: &Desk) {
    let get = |component: &str, key: &str, branch: &str| {
        desk.run(&["get", component, key, "--branch", branch])["hint"].clone()
    };
    let build = get("api", "build", "main");
    assert_eq!(build["value"], "make api");
    assert_eq!((&build["meta"]["reason"], &build["meta"]["tags"]), (&json!("the Makefile has it"), &json!(["build"])));
    assert_eq!(build["use_count"], 1, "{build:#}");
    let dev = get("api", "build", "dev-x");
    assert_eq!(
        (&dev["value"], &dev["meta"]["priority"], &dev["meta"]["confidence"]),
        (&json!("make api PROFILE=dev"), &json!(8), &json!(0.75))
    );
    assert_eq!(get("api", "url", "main")["value"]["data"], json!({"port": 8080, "tls": false}));
    assert_eq!(get("api", "greet", "main")["value"]["defaults"], json!({"name": "you"}));
    assert_eq!(get("web", "test", "main")["value"]["shell"], "bash");
    assert_eq!(get("docs", "Straße 7 🦀", "main")["value"], "two\nlines");
}

/// Promise (session): Nudge imports the exports of every earlier version.
#[test]
fn exports_of_every_version_are_imported() {
    for file in left_behind("export-") {
        let desk = Desk::new();
        let _serve = desk.serve();
        let told = desk.run(&["import", file.to_str().unwrap()]);
        assert_eq!((&told["imported"], &told["errors"]), (&json!(6), &json!([])), "{}: {told:#}", file.display());
        holds_all(&desk);
    }
}

#[test]
fn hints_that_every_version_kept_are_there_again() {
    for (begins, target) in [("kept-", "state/nudge/kept.json"), ("hints-", "data/hints.db")] {
        for file in left_behind(begins) {
            let desk = Desk::new();
            put(&file, &desk.home.path().join(target));
            let _serve = Serve::spawn(keeping(&desk), &desk.runtime);
            holds_all(&desk);
        }
    }
}

/// Returns the command of a server that runs in the checkout and keeps hints.
fn keeping(desk: &Desk) -> std::process::Command {
    let mut serve = desk.nudge(&["serve", "--port", "0"]);
    serve.env("NUDGE_KEEP", "1");
    serve.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    serve
}

#[test]
fn records_of_every_version_are_found_and_changed() {
    for file in left_behind("records-") {
        let desk = Desk::new();
        put(&file, &desk.home.path().join("data/records.db"));
        let found = |words: &str| desk.run(&["records", "search", words])["results"][0].clone();
        let uploads = found("uploads fail 413");
        assert_eq!(
            (&uploads["id"], &uploads["status"], &uploads["project"]),
            (&json!(1), &json!("resolved"), &json!("acme/shop"))
        );
        assert_eq!(found("redis sessions")["title"], "Sessions live in Redis");
        assert_eq!(desk.run(&["records", "restore", "3"])["title"], "Invoices can be sent twice");
        desk.run(&["records", "edit", "1", "--title", "Uploads are cut off at 1 MB"]);
        assert_eq!(found("uploads cut off")["id"], 1);
        assert_eq!(desk.run(&["records", "list"])["total"], 3);
    }
}

/// Promise (session): A server that finds a session of another protocol says so and ends; the session continues.
#[test]
fn a_session_of_another_protocol_is_left_alone() {
    let mut session = Session::start(0);
    let file = session.runtime.join("session");
    let own = fs::read_to_string(&file).unwrap();
    let other = own.replace("\"protocol\":1", "\"protocol\":2");
    assert_ne!(own, other);
    fs::write(&file, &other).unwrap();
    let output = run(session.command(), LONG);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("it speaks protocol 2, this program 1"), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), other, "nothing of it is touched");
    fs::write(&file, own).unwrap();
    session.join();
    session.end();
}

/// Finds the only file with this name below a folder.
fn file_below(folder: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.filter_map(|path| {
        if path.is_dir() {
            return Some(file_below(&path, name)).filter(|path| path.exists());
        }
        path.ends_with(name).then_some(path)
    });
    found.into_iter().next().unwrap_or_default()
}

/// Writes the number of migrations into the header of a database
/// (<https://sqlite.org/fileformat2.html#user_version_number>).
pub fn of_version(file: &Path, version: u32) {
    assert!(!file.with_extension("db-wal").exists(), "what is logged would count");
    fs::OpenOptions::new().write(true).open(file).unwrap().write_all_at(&version.to_be_bytes(), 60).unwrap();
}

#[cfg(feature = "code")]
#[test]
fn a_code_cache_of_a_newer_version_is_left_alone_and_the_answer_is_the_same() {
    let desk = Desk::new();
    fs::write(
        desk.checkout.join("pay.py"),
        "def pay(order):\n    return total(order)\n\n\ndef total(order):\n    return 1\n",
    )
    .unwrap();
    let before = desk.run(&["code", "node", "total"]);
    assert_eq!(before["callers"][0]["id"], "node:pay.py:pay");
    let cache = file_below(&desk.home.path().join("caches/code"), "index.db");
    of_version(&cache, 99);
    let bytes = fs::read(&cache).unwrap();
    let after = desk.run(&["code", "node", "total"]);
    assert_eq!((&after["callers"], &after["node"]), (&before["callers"], &before["node"]));
    let told = desk.run(&["code", "status"]).to_string();
    assert!(told.contains("was written by a newer nudge; update this one."), "{told}");
    assert_eq!(fs::read(&cache).unwrap(), bytes);
}

#[test]
fn a_brain_index_of_a_newer_version_is_left_alone_and_told_of() {
    let desk = Desk::new();
    let brain = desk.home.path().join("brain");
    let root = ("NUDGE_BRAIN_ROOT", brain.to_str().unwrap());
    let run = |args: &[&str]| -> Value {
        let output = desk.nudge(&[args, &["--json"]].concat()).env(root.0, root.1).output().unwrap();
        serde_json::from_slice(if output.status.success() { &output.stdout } else { &output.stderr }).unwrap()
    };
    run(&["brain", "init", root.1]);
    run(&["brain", "add", "Retry with jitter", "Wait a random while before the next try."]);
    assert_eq!(run(&["brain", "ask", "retry with jitter"])["units"][0]["title"], "Retry with jitter");
    let index = file_below(&desk.home.path().join("caches/brain"), "brain.db");
    of_version(&index, 99);
    let bytes = fs::read(&index).unwrap();
    let told = run(&["brain", "ask", "retry with jitter"]);
    assert_eq!(told["units"][0]["title"], "Retry with jitter", "{told:#}");
    let degraded = told["degraded"][0].as_str().unwrap();
    assert!(degraded.ends_with("was written by a newer nudge; update this one."), "{told:#}");
    assert_eq!(fs::read(&index).unwrap(), bytes);
}
