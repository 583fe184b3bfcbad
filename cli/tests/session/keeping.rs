//! Tests kept hints (semantics section 12): with `keep`, hints with a duration survive the end of all processes.
#![cfg(unix)]

use crate::kit;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use kit::kept::{find_hint, list_keys, read_hints};
use kit::pty::{Pty, asked, with_terminal};
use kit::{PATIENCE, Serve, home, wait_for};
use serde_json::{Value, json};

/// A user with one state folder and several sessions.
pub struct User(tempfile::TempDir);

impl User {
    pub fn new() -> Self {
        Self(home())
    }

    pub fn runtime(&self, session: &str) -> PathBuf {
        self.0.path().join(session)
    }

    pub fn folder(&self) -> PathBuf {
        self.0.path().join("state/nudge")
    }

    /// Returns the path of an earlier version's kept file.
    fn earlier(&self) -> PathBuf {
        self.folder().join("kept.json")
    }

    pub fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    pub fn file(&self) -> PathBuf {
        self.data().join("hints.db")
    }

    /// Writes the kept file of an earlier version.
    fn write_earlier(&self, text: &str) {
        std::fs::create_dir_all(self.folder()).unwrap();
        std::fs::write(self.earlier(), text).unwrap();
    }

    /// Returns the files of the folder for state whose names have this beginning, with their texts.
    fn list_state(&self, begins: &str) -> Vec<(PathBuf, String)> {
        let paths = std::fs::read_dir(self.folder()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_wanted = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(begins);
        paths.filter(is_wanted).map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
    }

    pub fn command(&self, session: &str, keep: bool) -> Command {
        let mut command = kit::command(&self.runtime(session));
        command.env("XDG_STATE_HOME", self.0.path().join("state")).env("NUDGE_KEEP", if keep { "1" } else { "0" });
        command.env("RUST_BACKTRACE", "0");
        command
    }

    pub fn serve(&self, session: &str) -> Serve {
        Serve::spawn(self.command(session, true), &self.runtime(session))
    }

    /// Starts a PROXY of the session whose PRIMARY is `first`.
    pub fn stand_by(&self, session: &str, first: &Serve) -> Serve {
        let mut serve =
            Serve::attach_to(self.command(session, true).spawn().unwrap(), &self.runtime(session), first.file.clone());
        serve.initialize(kit::mcp::LEGACY);
        serve
    }

    pub fn run(&self, session: &str, words: &[&str]) -> Output {
        self.words(session, words).output().unwrap()
    }

    /// Returns a command with the environment of the session's server.
    fn words(&self, session: &str, words: &[&str]) -> Command {
        let serve = self.command(session, true);
        let mut command = Command::new(serve.get_program());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(words);
        command
    }

    pub fn said(&self, session: &str, words: &[&str]) -> String {
        let out = self.run(session, words);
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }
}

pub fn set(serve: &Serve, key: &str, meta: &Value) -> Value {
    let answer = serve.call("nudge.set_hint", &json!({"component": "a", "key": key, "value": "x", "meta": meta}));
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"]["hint"].clone()
}

pub fn get(serve: &Serve, key: &str) -> Value {
    serve.call("nudge.get_hint", &json!({"component": "a", "key": key}))["result"]["hint"].clone()
}

fn kept_keys(user: &User) -> Vec<String> {
    list_keys(&user.file())
}

fn read_keeping(serve: &Serve) -> Value {
    serve.call("nudge.status", &json!({}))["result"]["keeping"].clone()
}

pub fn until_kept(user: &User, keys: &[&str]) {
    wait_for("the file", PATIENCE, || (kept_keys(user) == keys).then_some(()));
}

pub fn kill(mut serve: Serve) {
    serve.child.kill().unwrap();
    serve.child.wait().unwrap();
}

/// Promise (kept hints): Hints with a duration come back in the next session with their counts. Without `keep`, Nudge
/// writes no kept file and says so.
#[test]
fn a_hint_with_a_duration_is_there_again_with_its_counts() {
    let user = User::new();
    let serve = user.serve("run");
    assert_eq!(set(&serve, "long", &json!({}))["meta"]["ttl"], "P365D");
    set(&serve, "long", &json!({}));
    set(&serve, "own", &json!({"ttl": "P30D", "scope": {"branch": "dev"}}));
    set(&serve, "short", &json!({"ttl": "session"}));
    set(&serve, "secret", &json!({"ttl": "P30D", "sensitivity": "secret"}));
    serve.call("nudge.bump", &json!({"component": "a", "key": "long", "delta": 3}));
    let before = get(&serve, "long");
    assert_eq!((&before["use_count"], &before["version"]), (&json!(3), &json!(2)));
    serve.close();
    assert_eq!(kept_keys(&user), ["long", "own"]);
    let bytes = std::fs::read(user.file()).unwrap();
    assert!(["secret", "short"].iter().all(|key| !bytes.windows(key.len()).any(|part| part == key.as_bytes())));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&user.file()), mode(&user.data())), (0o600, 0o700));

    let serve = user.serve("run");
    assert_eq!(get(&serve, "long"), before, "with its counts and times");
    assert_eq!(get(&serve, "short"), Value::Null);
    let keeping = serve.call("nudge.status", &json!({}))["result"]["keeping"].clone();
    assert_eq!(keeping, json!({"on": true, "hints": 2, "file": user.file().display().to_string()}));
    let shown = user.said("run", &["status"]);
    assert!(shown.contains("kept     2 hints for next time, in ") && shown.contains("hints.db"), "{shown}");
    serve.close();
}

/// Promise (kept hints): A kill of all processes loses no acknowledged hint with a duration.
#[test]
fn a_kill_of_all_processes_loses_nothing_that_was_acknowledged() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "kept", &json!({}));
    until_kept(&user, &["kept"]);
    set(&serve, "late", &json!({}));
    set(&serve, "short", &json!({"ttl": "session"}));
    set(&serve, "secret", &json!({"ttl": "P30D", "sensitivity": "secret"}));
    serve.call("nudge.delete_hint", &json!({"component": "a", "key": "kept"}));
    kill(serve);
    let serve = user.serve("run");
    for (key, there) in [("kept", false), ("late", true), ("short", false), ("secret", false)] {
        assert_eq!(!get(&serve, key).is_null(), there, "{key}");
    }
    assert_eq!(kept_keys(&user), ["late"]);
    // A session in another runtime directory starts with the same kept hint.
    serve.close();
    assert_eq!(get(&user.serve("else"), "late")["value"], "x");
}

#[test]
fn a_kill_loses_nothing_that_is_two_seconds_old() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "k", &json!({}));
    wait_for("the file", Duration::from_secs(2), || (kept_keys(&user) == ["k"]).then_some(()));
    serve.call("nudge.bump", &json!({"component": "a", "key": "k"}));
    let counted = || (find_hint(&user.file(), "k")["use_count"] == 1).then_some(());
    wait_for("the count", Duration::from_secs(2), counted);
    kill(serve);
    let serve = user.serve("run");
    assert_eq!(get(&serve, "k")["use_count"], 1);
    serve.call("nudge.delete_hint", &json!({"component": "a", "key": "k"}));
    until_kept(&user, &[]);
    kill(serve);
    assert_eq!(get(&user.serve("run"), "k"), Value::Null);
}

#[test]
fn a_proxy_goes_on_keeping_and_reads_nothing_again() {
    let user = User::new();
    let first = user.serve("run");
    set(&first, "old", &json!({}));
    first.close();
    let first = user.serve("run");
    let mut second = user.stand_by("run", &first);
    // Deletes a hint that came from the kept file. The PROXY must not read the file again.
    first.call("nudge.delete_hint", &json!({"component": "a", "key": "old"}));
    set(&first, "new", &json!({}));
    kill(first);
    let answer = second.tool("nudge_get_hint", &json!({"component": "a", "key": "old"}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = second.tool("nudge_set_hint", &json!({"component": "a", "key": "later", "value": "x"}));
    assert_eq!(answer["result"]["structuredContent"]["hint"]["meta"]["ttl"], "P365D", "{answer}");
    until_kept(&user, &["later", "new"]);
    drop(second.stdin.take());
    second.end(PATIENCE);
    assert_eq!(kept_keys(&user), ["later", "new"]);
}

#[test]
fn without_a_journal_the_next_primary_has_what_was_kept() {
    let user = User::new();
    let serve = |user: &User| {
        let mut command = user.command("run", true);
        command.env("NUDGE_JOURNAL", "0");
        command
    };
    let first = Serve::spawn(serve(&user), &user.runtime("run"));
    let mut second = Serve::attach_to(serve(&user).spawn().unwrap(), &user.runtime("run"), first.file.clone());
    second.initialize(kit::mcp::LEGACY);
    set(&first, "k", &json!({}));
    until_kept(&user, &["k"]);
    kill(first);
    let answer = second.tool("nudge_get_hint", &json!({"component": "a", "key": "k"}));
    assert_eq!(answer["result"]["structuredContent"]["hint"]["value"], "x", "{answer}");
}

#[test]
fn whether_a_session_keeps_is_the_sessions() {
    let user = User::new();
    let first = user.serve("run");
    let mut second =
        Serve::attach_to(user.command("run", false).spawn().unwrap(), &user.runtime("run"), first.file.clone());
    second.initialize(kit::mcp::LEGACY);
    kill(first);
    let answer = second.tool("nudge_set_hint", &json!({"component": "a", "key": "k", "value": "x"}));
    assert_eq!(answer["result"]["structuredContent"]["hint"]["meta"]["ttl"], "P365D", "{answer}");
    until_kept(&user, &["k"]);
}

/// Promise: see `a_hint_with_a_duration_is_there_again_with_its_counts`.
#[test]
fn without_keep_nothing_is_written_and_the_caller_is_told() {
    let user = User::new();
    let runtime = user.runtime("run");
    let mut serve = Serve::spawn(user.command("run", false), &runtime);
    let hello = serve.initialize(kit::mcp::LEGACY);
    assert!(hello["result"]["instructions"].as_str().unwrap().contains("Hints end with the session"), "{hello}");
    assert_eq!(set(&serve, "k", &json!({}))["meta"]["ttl"], "session");
    let stored =
        serve.tool("nudge_set_hint", &json!({"component": "a", "key": "t", "value": "x", "meta": {"ttl": "P30D"}}));
    let stored = &stored["result"]["structuredContent"];
    assert!(stored["keeping"].as_str().unwrap().contains("keep is off; `nudge init`"), "{stored}");
    let plain = serve.tool("nudge_set_hint", &json!({"component": "a", "key": "u", "value": "x"}));
    assert_eq!(plain["result"]["structuredContent"].get("keeping"), None);
    let said = user.said("run", &["set", "a", "v", "x", "--ttl", "P1D"]);
    assert!(said.contains("it ends with this session at the latest"), "{said}");
    let said = user.said("run", &["stop"]);
    assert_eq!(said, "stopped; 4 hints are gone: keep is off; `nudge init` switches it on\n");
    serve.end(PATIENCE);
    assert!(!user.folder().exists() && !user.file().exists());
    let serve = user.serve("run");
    assert_eq!(get(&serve, "t"), Value::Null);
    assert_eq!(user.said("run", &["stop"]), "stopped\n");
    drop(serve);
}

/// Promise (kept hints): `nudge stop` says how many hints end, and `nudge forget` removes what is kept.
#[test]
fn stop_names_the_kept_hints() {
    let user = User::new();
    let mut serve = user.serve("run");
    set(&serve, "k", &json!({}));
    set(&serve, "s", &json!({"ttl": "session"}));
    let said = user.said("run", &["stop"]);
    let file = user.file();
    assert_eq!(
        said,
        format!("stopped; 1 hint is kept for next time in {}; 1 hint ended with the session\n", file.display())
    );
    serve.end(PATIENCE);
    assert_eq!(kept_keys(&user), ["k"]);
    let serve = user.serve("run");
    let said = user.said("run", &["stop", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said, json!({"stopping": true, "hints": 1, "kept": 1, "file": file}));
    drop(serve);
}

#[test]
fn the_default_ttl_decides_where_it_is_set() {
    let user = User::new();
    let mut command = user.command("run", true);
    command.env("NUDGE_DEFAULT_TTL", "PT1H");
    let serve = Serve::spawn(command, &user.runtime("run"));
    assert_eq!(set(&serve, "k", &json!({}))["meta"]["ttl"], "PT1H");
    until_kept(&user, &["k"]);
}

/// Promise (kept hints): A `kept.json` of an earlier version that cannot be read is set aside and named, and nothing of
/// it is lost.
#[test]
fn a_damaged_file_of_an_earlier_version_is_set_aside_and_named() {
    for damage in [
        "{\"components\": {\"a\"",
        "[]",
        "",
        "{}",
        "{\"schema_version\":\"9.0\",\"components\":{\"a\":{\"hints\":{\"k\":\"x\"}}}}",
    ] {
        let user = User::new();
        user.write_earlier(damage);
        let serve = user.serve("run");
        let status = read_keeping(&serve);
        assert_eq!(status["on"], true, "{status}");
        let aside = status["aside"].as_str().unwrap_or_else(|| panic!("{damage}: {status}"));
        set(&serve, "k", &json!({}));
        serve.close();
        assert_eq!(kept_keys(&user), ["k"]);
        let kept = user.list_state("kept-aside-");
        assert_eq!(kept.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), [damage]);
        assert!(aside.contains(kept[0].0.to_str().unwrap()), "{aside}");
        assert!(!user.earlier().exists());
    }
}

/// Returns a kept file as an earlier version wrote it.
fn to_earlier(hints: &Value) -> String {
    json!({"schema_version": "1.0", "session_id": "s", "components": {"a": hints}}).to_string()
}

/// Promise (kept hints): The hints of an earlier version's `kept.json` are read once, byte for byte, and the file is
/// then called `kept.json.imported`.
#[test]
fn the_file_of_an_earlier_version_is_read_once() {
    let user = User::new();
    let body = r#"{"value":{"type":"json","data":{"z":1.0,"a":2}},"meta":{"ttl":"P365D"},"version":3,"use_count":7,"created_at":"2026-11-20T00:00:00.000Z","updated_at":"2026-11-21T00:00:00.000Z"}"#;
    let text =
        format!(r#"{{"schema_version":"1.0","session_id":"s","components":{{"a":{{"hints":{{"k":{body}}}}}}}}}"#);
    user.write_earlier(&text);
    let over = to_earlier(&json!({"hints": {"over": {"value": "y", "meta": {"ttl": "P30D"}}}}));
    std::fs::write(user.folder().join("kept-over.json"), over).unwrap();
    // A command that only reads has the hints too, and changes no file.
    assert!(user.said("run", &["get", "a", "k", "--json"]).contains(r#""data":{"z":1.0,"a":2}"#));
    assert!(user.earlier().exists() && !user.file().exists());
    // The new version keeps an unchanged hint byte for byte, also before it writes it anew.
    let serve = user.serve("run");
    let hint = get(&serve, "k");
    assert_eq!((&hint["version"], &hint["use_count"]), (&json!(3), &json!(7)));
    assert_eq!(get(&serve, "over")["value"], "y", "there is room for it");
    let data = read_hints(&user.file()).iter().map(|hint| hint.body.contains(r#""data":{"z":1.0,"a":2}"#)).next();
    assert_eq!(data, Some(true));
    assert_eq!(read_keeping(&serve).get("aside"), None);
    assert!(!user.earlier().exists() && !user.folder().join("kept-over.json").exists());
    assert_eq!(std::fs::read_to_string(user.folder().join("kept.json.imported")).unwrap(), text);
    serve.call("nudge.delete_hint", &json!({"component": "a", "key": "k"}));
    serve.close();
    assert_eq!(kept_keys(&user), ["over"]);

    // As after a kill between the write and the renaming: the file is there again, and is not read again.
    std::fs::rename(user.folder().join("kept.json.imported"), user.earlier()).unwrap();
    std::fs::rename(user.folder().join("kept-over.json.imported"), user.folder().join("kept-over.json")).unwrap();
    let serve = user.serve("run");
    assert_eq!(get(&serve, "k"), Value::Null, "deleted since");
    assert!(!user.earlier().exists());
    serve.close();

    // A file that an earlier version has written since is read, too. Its newer hints win.
    let newer = json!({"value": "new", "meta": {"ttl": "P30D"}, "updated_at": "2099-01-01T00:00:00.000Z"});
    let older = json!({"value": "old", "meta": {"ttl": "P30D"}, "updated_at": "2020-01-01T00:00:00.000Z"});
    let serve = user.serve("run");
    set(&serve, "mine", &json!({}));
    serve.close();
    user.write_earlier(&to_earlier(&json!({"hints": {"k": newer, "mine": older}})));
    let serve = user.serve("run");
    assert_eq!((&get(&serve, "k")["value"], &get(&serve, "mine")["value"]), (&json!("new"), &json!("x")));
    assert_eq!(user.list_state("kept.json.imported").len(), 2, "none is replaced");
    serve.close();
}

#[test]
fn the_file_of_an_earlier_version_that_still_runs_is_left_to_it() {
    let user = User::new();
    user.write_earlier(&to_earlier(&json!({"hints": {"k": {"value": "x", "meta": {"ttl": "P30D"}}}})));
    let lock = std::fs::File::create(user.folder().join("kept.lock")).unwrap();
    lock.lock().unwrap();
    let serve = user.serve("run");
    let told = read_keeping(&serve)["aside"].clone();
    assert!(told.as_str().unwrap().contains("is kept by a session of an earlier version"), "{told}");
    assert_eq!(get(&serve, "k"), Value::Null);
    serve.close();
    drop(lock);
    let serve = user.serve("run");
    assert_eq!(get(&serve, "k")["value"], "x");
    serve.close();
}

/// Puts a copy in the place of the database.
type PutCopy = fn(user: &User, copy: &Path);

/// Makes a copy of the database while a session has it.
fn copy_database(user: &User) -> PathBuf {
    let copy = user.0.path().join("copy.db");
    user.said("run", &["hints", "backup", copy.to_str().unwrap()]);
    copy
}

/// Promise (kept hints): A copy that takes the place of the database while a session keeps hints is read into the
/// session, and no hint of the session is lost.
#[test]
fn a_copy_that_is_put_back_while_a_session_keeps_is_read() {
    let puts: [(&str, PutCopy); 3] = [
        ("moved there", |user, copy| std::fs::rename(copy, user.file()).unwrap()),
        ("moved there after it was removed", |user, copy| {
            std::fs::remove_file(user.file()).unwrap();
            std::fs::rename(copy, user.file()).unwrap();
        }),
        ("recovered", |user, copy| {
            let said = user.said("else", &["hints", "recover", copy.to_str().unwrap(), "--yes"]);
            assert!(said.contains("✔ 4 hints kept") && said.contains("-replaced.db"), "{said}");
        }),
    ];
    for (how, put) in puts {
        let user = User::new();
        let serve = user.serve("run");
        set(&serve, "old", &json!({}));
        set(&serve, "both", &json!({}));
        until_kept(&user, &["both", "old"]);
        let copy = copy_database(&user);
        serve.call("nudge.delete_hint", &json!({"component": "a", "key": "old"}));
        serve.call("nudge.bump", &json!({"component": "a", "key": "both"}));
        set(&serve, "new", &json!({}));
        set(&serve, "next", &json!({}));
        until_kept(&user, &["both", "new", "next"]);
        // A write that ends while the copy is put there is repeated in the copy. So this waits for its end.
        wait_for("the end of the write", PATIENCE, || (read_keeping(&serve)["hints"] == 3).then_some(()));
        put(&user, &copy);
        if how == "recovered" {
            assert_eq!(get(&serve, "old")["value"], "x", "at once");
        }
        set(&serve, "newer", &json!({}));
        until_kept(&user, &["both", "new", "newer", "next", "old"]);
        assert_eq!(get(&serve, "old")["value"], "x", "{how}");
        assert_eq!(get(&serve, "both")["use_count"], 1, "{how}");
        assert_eq!(read_keeping(&serve).get("failed"), None, "{how}");
        serve.close();
        assert_eq!(kept_keys(&user), ["both", "new", "newer", "next", "old"], "{how}");
    }
}

/// Promise (kept hints): If the database or its folder is removed, the session writes all kept hints again.
#[test]
fn a_database_that_is_removed_while_a_session_keeps_is_written_again() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "first", &json!({}));
    until_kept(&user, &["first"]);
    std::fs::remove_file(user.file()).unwrap();
    set(&serve, "second", &json!({}));
    until_kept(&user, &["first", "second"]);
    std::fs::remove_dir_all(user.data()).unwrap();
    set(&serve, "third", &json!({}));
    until_kept(&user, &["first", "second", "third"]);
    let keeping = read_keeping(&serve);
    assert_eq!((&keeping["aside"], &keeping["failed"]), (&Value::Null, &Value::Null), "{keeping}");
    // The session has locked the new folder, so another session keeps no hints.
    let other = user.serve("else");
    assert_eq!(read_keeping(&other)["on"], false);
    other.close();
    // Now another session holds the lock. This session must not overwrite the other's hints.
    std::fs::remove_dir_all(user.data()).unwrap();
    let other = user.serve("else");
    set(&other, "other", &json!({}));
    until_kept(&user, &["other"]);
    set(&serve, "fourth", &json!({}));
    let failed =
        wait_for("the status to tell it", PATIENCE, || read_keeping(&serve)["failed"].as_str().map(str::to_owned));
    assert!(failed.contains("Another session keeps hints in "), "{failed}");
    assert_eq!(kept_keys(&user), ["other"]);
    other.close();
    set(&serve, "fifth", &json!({}));
    until_kept(&user, &["fifth", "first", "fourth", "other", "second", "third"]);
    assert_eq!(get(&serve, "other")["value"], "x", "the hints of both are there");
    serve.close();
}

/// Promise (kept hints): A database that is removed after a copy of it was made is written again by the session that
/// has its hints, and a hint that was deleted since the copy does not come back. Without such a session the user decides
/// whether the copy comes back.
#[test]
fn a_removed_database_with_a_copy_is_written_again() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "first", &json!({}));
    set(&serve, "gone", &json!({}));
    serve.close();
    // The first change of another process makes the copy of the day.
    let serve = user.serve("run");
    serve.call("nudge.delete_hint", &json!({"component": "a", "key": "gone"}));
    until_kept(&user, &["first"]);
    assert_eq!(std::fs::read_dir(user.data().join("backups")).unwrap().count(), 1);
    std::fs::remove_file(user.file()).unwrap();
    set(&serve, "second", &json!({}));
    until_kept(&user, &["first", "second"]);
    assert_eq!(get(&serve, "gone"), Value::Null);
    let told = read_keeping(&serve)["aside"].clone();
    assert!(told.as_str().is_some_and(|told| told.contains("is in its place")), "{told}");
    serve.close();

    std::fs::remove_file(user.file()).unwrap();
    let serve = user.serve("run");
    set(&serve, "third", &json!({}));
    let failed =
        wait_for("the status to tell it", PATIENCE, || read_keeping(&serve)["failed"].as_str().map(str::to_owned));
    assert!(failed.contains("is empty, and its newest backup is not; `nudge hints recover "), "{failed}");
    let copy = failed.split("recover ").nth(1).unwrap().split('`').next().unwrap();
    user.said("run", &["hints", "recover", copy, "--yes"]);
    assert_eq!(get(&serve, "first")["value"], "x");
    until_kept(&user, &["first", "gone", "third"]);
    serve.close();
}

/// Promise (kept hints): A damaged database is set aside and named. The newest copy takes its place, and no hint of the
/// running session is lost.
#[test]
fn a_damaged_database_is_set_aside_and_named() {
    for (has_copy, is_running) in [(false, false), (false, true), (true, false), (true, true)] {
        let case = format!("copy: {has_copy}, running: {is_running}");
        let user = User::new();
        let serve = user.serve("run");
        set(&serve, "first", &json!({}));
        serve.close();
        let serve = user.serve("run");
        if has_copy {
            set(&serve, "second", &json!({}));
            until_kept(&user, &["first", "second"]);
        }
        let running = if is_running {
            set(&serve, "last", &json!({}));
            wait_for("the last", PATIENCE, || kept_keys(&user).contains(&"last".to_owned()).then_some(()));
            Some(serve)
        } else {
            serve.close();
            None
        };
        if !has_copy {
            let _ = std::fs::remove_dir_all(user.data().join("backups"));
        }
        let damaged = user.0.path().join("damaged");
        std::fs::write(&damaged, "no database ".repeat(1_000)).unwrap();
        std::fs::rename(damaged, user.file()).unwrap();
        let serve = running.unwrap_or_else(|| {
            let refused = user.run("run", &["get", "a", "first"]);
            let told = String::from_utf8(refused.stderr).unwrap();
            assert!(told.contains("hints.db cannot be read (the file is damaged)"), "{case}: {told}");
            user.serve("run")
        });
        set(&serve, "new", &json!({}));
        let is_sound = || std::fs::read(user.file()).is_ok_and(|bytes| bytes.starts_with(b"SQLite"));
        wait_for("the new hint", PATIENCE, || {
            (is_sound() && kept_keys(&user).contains(&"new".to_owned())).then_some(())
        });
        let keeping = read_keeping(&serve);
        assert!(keeping["aside"].as_str().is_some_and(|told| told.contains(" was damaged")), "{case}: {keeping}");
        assert_eq!(keeping.get("failed"), None, "{case}");
        assert_eq!(!get(&serve, "first").is_null(), has_copy || is_running, "{case}");
        assert_eq!(kept_keys(&user).contains(&"last".to_owned()), is_running, "{case}");
        serve.close();
    }
}

/// Promise (kept hints): A database of a later version stays as it is. The session says so, and leaves its own hints in
/// a file that `nudge import` reads.
#[test]
fn a_database_of_a_later_version_is_left_alone() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "first", &json!({}));
    serve.close();
    super::older::of_version(&user.file(), 99);
    let bytes = std::fs::read(user.file()).unwrap();
    let refused = user.run("run", &["get", "a", "first"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("were written by a newer nudge"), "{told}");
    let serve = user.serve("run");
    let failed = read_keeping(&serve)["failed"].clone();
    assert!(failed.as_str().unwrap().ends_with("hints.db was written by a newer nudge; update this one"), "{failed}");
    set(&serve, "second", &json!({}));
    let said = user.said("run", &["stop"]);
    assert!(said.contains("1 hint is in ") && said.contains("which `nudge import` reads"), "{said}");
    drop(serve);
    assert_eq!(std::fs::read(user.file()).unwrap(), bytes);
    let left = user.list_state("left-");
    assert!(left.len() == 1 && left[0].1.contains("second"), "{left:?}");
}

#[test]
fn a_hint_that_makes_no_sense_does_not_cost_the_others() {
    let user = User::new();
    let hints = json!({"components": {"a": {"hints": {
        "good": {"value": "x", "meta": {"ttl": "P30D"}},
        "bad": {"value": "x", "meta": {"scoop": 1}},
        "over": {"value": "x", "meta": {"ttl": "PT1S"}, "updated_at": "2020-01-01T00:00:00.000Z"},
    }}}});
    user.write_earlier(&hints.to_string());
    for _ in 0..2 {
        let serve = user.serve("run");
        let status = read_keeping(&serve);
        assert!(status["aside"].as_str().unwrap().contains("1 of its hints make no sense"), "{status}");
        set(&serve, "good", &json!({}));
        serve.close();
        assert_eq!(kept_keys(&user), ["good"]);
        // The hint stays for a version that understands it.
        let waiting: Vec<_> = read_hints(&user.file()).into_iter().filter(|hint| hint.waits).collect();
        assert_eq!(
            waiting.iter().map(|hint| hint.body.as_str()).collect::<Vec<_>>(),
            [r#"{"value":"x","meta":{"scoop":1}}"#]
        );
    }
}

#[test]
fn limits_that_leave_no_room_lose_nothing() {
    let user = User::new();
    let serve = user.serve("run");
    for key in ["k1", "k2", "k3"] {
        set(&serve, key, &json!({}));
    }
    serve.close();
    let mut command = user.command("run", true);
    command.env("NUDGE_MAX_HINTS", "2");
    let serve = Serve::spawn(command, &user.runtime("run"));
    let status = serve.call("nudge.status", &json!({}))["result"].clone();
    assert_eq!((&status["hints"], &status["keeping"]["hints"]), (&json!(2), &json!(2)), "{status}");
    assert!(status["keeping"]["aside"].as_str().unwrap().contains("room for 2 of its 3 hints"), "{status}");
    let report = String::from_utf8(user.run("run", &["doctor"]).stdout).unwrap();
    assert!(report.contains("! kept hints") && report.contains("room for 2 of its 3 hints"), "{report}");
}

/// Promise (kept hints): When limits are lowered, the most used hints stay, and the others come back when there is
/// room.
#[test]
fn the_most_used_find_room_and_the_others_come_back() {
    let user = User::new();
    let serve = user.serve("run");
    for key in ["k1", "k2", "k3", "k4"] {
        set(&serve, key, &json!({}));
    }
    for key in ["k3", "k4"] {
        serve.call("nudge.bump", &json!({"component": "a", "key": key}));
    }
    serve.close();
    let with = |max: &str| {
        let mut command = user.command("run", true);
        command.env("NUDGE_MAX_HINTS", max);
        Serve::spawn(command, &user.runtime("run"))
    };
    let lower = with("2");
    assert!(["k3", "k4"].iter().all(|key| !get(&lower, key).is_null()), "in use, whatever they are called");
    let told = lower.call("nudge.status", &json!({}))["result"]["keeping"]["aside"].clone();
    assert!(told.as_str().unwrap().contains("hints.db until there is room"), "{told}");
    lower.close();
    let middle = with("3");
    assert!(["k3", "k4"].iter().all(|key| !get(&middle, key).is_null()));
    middle.close();
    let raised = user.serve("run");
    for key in ["k1", "k2", "k3", "k4"] {
        assert_eq!(get(&raised, key)["value"], "x", "{key}");
    }
    let keeping = raised.call("nudge.status", &json!({}))["result"]["keeping"].clone();
    assert_eq!(keeping.get("aside"), None, "{keeping}");
    raised.close();
    assert!(read_hints(&user.file()).iter().all(|hint| !hint.waits));
    // `nudge forget` removes the copies and the files of earlier versions, too.
    std::fs::write(user.folder().join("kept-before.json"), "{}").unwrap();
    user.said("run", &["forget", "--yes"]);
    assert_eq!((user.list_state("kept"), user.file().exists()), (Vec::new(), false), "forgotten is forgotten");
    let copies = std::fs::read_dir(user.data().join("backups")).unwrap();
    assert_eq!(copies.count(), 0);
}

/// Promise (kept hints): A clock that is wrong for seconds destroys no hint, neither at the start of a session nor
/// later.
#[test]
fn a_start_with_a_wrong_clock_loses_nothing() {
    const DAY: Duration = Duration::from_hours(24);
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "month", &json!({"ttl": "P30D"}));
    serve.close();
    // A correct clock wrote the kept hints forty days ago. Now the clock is forty days fast.
    let hint = find_hint(&user.file(), "month");
    let now = chrono_ms(hint["updated_at"].as_str().unwrap());
    let mut earlier = hint.clone();
    for name in ["updated_at", "created_at"] {
        earlier[name] = written(now - 40 * 86_400_000).into();
    }
    user.write_earlier(&to_earlier(&json!({"hints": {"month": earlier}})));
    std::fs::remove_file(user.folder().join("clock.json")).unwrap();
    std::fs::remove_dir_all(user.data()).unwrap();
    let file = std::fs::File::options().write(true).open(user.earlier()).unwrap();
    file.set_modified(std::time::SystemTime::now() - DAY * 40).unwrap();
    let serve = user.serve("run");
    assert_eq!(get(&serve, "month"), Value::Null, "reads follow the clock");
    set(&serve, "new", &json!({"ttl": "P30D"}));
    serve.close();
    assert_eq!(kept_keys(&user), ["month", "new"], "nothing is dropped");
}

fn chrono_ms(text: &str) -> i64 {
    nudge_core::clock::parse_time(text).unwrap()
}

fn written(ms: i64) -> String {
    nudge_core::clock::rfc3339::format_time(ms)
}

/// Promise (kept hints): One session at a time keeps hints, and another one says which.
#[test]
fn one_session_at_a_time_keeps() {
    let user = User::new();
    let first = user.serve("one");
    let second = user.serve("two");
    let status = second.call("nudge.status", &json!({}))["result"]["keeping"].clone();
    assert_eq!(status["on"], false);
    let why = status["why"].as_str().unwrap();
    assert!(why.contains(user.runtime("one").to_str().unwrap()), "{why}");
    assert_eq!(set(&second, "second", &json!({}))["meta"]["ttl"], "session");
    set(&first, "first", &json!({}));
    assert!(user.said("two", &["stop"]).contains("keeps hints already"));
    first.close();
    assert_eq!(kept_keys(&user), ["first"]);
    drop(second);
}

/// Promise: see `stop_names_the_kept_hints`.
#[test]
fn forget_removes_the_kept_hints() {
    let user = User::new();
    assert_eq!(user.said("run", &["forget", "--yes"]), "nothing is kept\n");
    let serve = user.serve("run");
    set(&serve, "k1", &json!({}));
    set(&serve, "k2", &json!({}));
    let refused = user.run("run", &["forget"]);
    assert_eq!(refused.status.code(), Some(2));
    until_kept(&user, &["k1", "k2"]);
    let asked = String::from_utf8(refused.stderr).unwrap();
    assert!(asked.contains("hints are kept") && asked.contains("--yes"), "{asked}");
    // `nudge forget` reaches the session that keeps hints, even if it is called for another session.
    let said = user.said("elsewhere", &["forget", "--yes"]);
    assert!(said.starts_with("forgot 2 hints of ") && said.contains("what the running session holds"), "{said}");
    assert_eq!(kept_keys(&user), [""; 0]);
    assert_eq!(get(&serve, "k1")["value"], "x", "the session has it still");
    // A new count does not bring a forgotten hint back. A new value does.
    serve.call("nudge.bump", &json!({"component": "a", "key": "k1"}));
    set(&serve, "k2", &json!({}));
    until_kept(&user, &["k2"]);
    // The forgotten hint does not come back with the next PRIMARY either.
    let mut second = user.stand_by("run", &serve);
    kill(serve);
    let answer = second.tool("nudge_bump", &json!({"component": "a", "key": "k1"}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    drop(second.stdin.take());
    second.end(PATIENCE);
    assert_eq!(kept_keys(&user), ["k2"]);

    // Calls `nudge forget` without a session. The last session was killed before it had written all hints.
    let serve = user.serve("run");
    set(&serve, "k3", &json!({}));
    kill(serve);
    assert!(user.said("run", &["forget", "--yes"]).starts_with("forgot 1 hint of "));
    assert_eq!(kept_keys(&user), [""; 0]);
    let serve = user.serve("run");
    assert_eq!((get(&serve, "k2"), get(&serve, "k3")), (Value::Null, Value::Null));
}

#[test]
fn a_link_in_place_of_the_file_is_neither_read_nor_written_through() {
    let user = User::new();
    std::fs::create_dir_all(user.folder()).unwrap();
    let elsewhere = user.0.path().join("elsewhere.json");
    std::fs::write(&elsewhere, "{\"components\":{\"a\":{\"hints\":{\"planted\":\"x\"}}}}").unwrap();
    std::os::unix::fs::symlink(&elsewhere, user.earlier()).unwrap();
    let before = std::fs::read_to_string(&elsewhere).unwrap();
    let serve = user.serve("run");
    assert_eq!(get(&serve, "planted"), Value::Null);
    set(&serve, "k", &json!({}));
    serve.close();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), before);
    assert_eq!(kept_keys(&user), ["k"]);
    // The same for the database.
    let moved = user.0.path().join("moved.db");
    std::fs::rename(user.file(), &moved).unwrap();
    std::os::unix::fs::symlink(&moved, user.file()).unwrap();
    let before = std::fs::read(&moved).unwrap();
    let serve = user.serve("run");
    assert_eq!(get(&serve, "k"), Value::Null);
    let failed = read_keeping(&serve)["failed"].clone();
    assert!(failed.as_str().unwrap().contains("is not a regular file of this user's alone"), "{failed}");
    serve.close();
    assert_eq!(std::fs::read(&moved).unwrap(), before);
}

#[test]
fn replacing_says_how_many_it_removed() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "k1", &json!({}));
    set(&serve, "k2", &json!({}));
    let payload = user.0.path().join("payload.json");
    std::fs::write(&payload, "{\"components\":{\"b\":{\"hints\":{\"k\":\"x\"}}}}").unwrap();
    let said = user.said("run", &["import", payload.to_str().unwrap(), "--mode", "replace"]);
    assert!(said.contains("imported 1 hint") && said.contains("removed 2 hints that were stored before"), "{said}");
    let said = user.said("run", &["import", payload.to_str().unwrap()]);
    assert!(!said.contains("removed"), "{said}");
    drop(serve);
}

#[test]
fn whoever_sits_at_a_terminal_is_asked_before_hints_go() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "k1", &json!({}));
    until_kept(&user, &["k1"]);
    let payload = user.0.path().join("payload.json");
    std::fs::write(&payload, "{\"components\":{\"b\":{\"hints\":{\"k\":\"x\"}}}}").unwrap();
    let replace = ["import", payload.to_str().unwrap(), "--mode", "replace"];
    let question = "1 hint is stored, and --mode replace removes all. Go on? [y/N]";
    let (done, said) = asked(user.words("run", &replace), &[(question, "n\n")]);
    assert!(!done && said.contains("Nothing was changed"), "{said}");
    assert_eq!(get(&serve, "k1")["value"], "x");
    let (done, said) = asked(user.words("run", &["forget"]), &[("Forget them? [y/N]", "\n")]);
    assert!(!done && said.contains("1 hint is kept in"), "{said}");
    assert_eq!(kept_keys(&user), ["k1"]);
    let (done, said) = asked(user.words("run", &["forget"]), &[("Forget them? [y/N]", "y\n")]);
    assert!(done && said.contains("forgot 1 hint"), "{said}");
    let (done, said) = asked(user.words("run", &replace), &[(question, "y\n")]);
    assert!(done && said.contains("removed 1 hint that was stored before"), "{said}");
    let (done, said) = asked(user.words("run", &[&replace[..], &["--yes"]].concat()), &[]);
    assert!(done && !said.contains("Go on?"), "{said}");
}

#[test]
fn a_server_on_a_terminal_says_what_becomes_of_the_hints() {
    for (keep, says) in [("1", "1 hint is kept for next time in "), ("0", "1 hint is gone: keep is off; `nudge init`")]
    {
        let user = User::new();
        let (mut terminal, end) = Pty::open();
        let mut serve = user.words("run", &["serve", "--port", "0"]);
        serve.env("NUDGE_KEEP", keep);
        let Some(mut command) = with_terminal(&serve, &end) else { return };
        command.stdout(std::process::Stdio::null()).stderr(end);
        let mut serve = command.spawn().unwrap();
        drop(command);
        terminal.wait_for("serving http://");
        user.said("run", &["set", "a", "k", "x"]);
        terminal.press(b"\x03");
        assert!(serve.wait().unwrap().success());
        let said = terminal.finish();
        assert!(said.contains(says), "{said}");
    }
}

/// Promise (kept hints): Verbs that only read answer from what is kept while no server runs, and say so.
#[test]
fn without_a_server_what_is_kept_is_read() {
    let user = User::new();
    let run = |words: &[&str]| {
        let output = user.run("a", words);
        let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code().unwrap(), said, told)
    };
    for words in [&["status"][..], &["get", "a", "build"], &["ls"], &["query", "make"], &["why", "a", "build"]] {
        let (code, said, told) = run(words);
        assert_eq!((code, &*said), (3, ""), "{words:?}: {told}");
        assert!(told.contains("No Nudge server is running"), "{words:?}: {told}");
    }
    let serve = user.serve("a");
    set(&serve, "build", &json!({"ttl": "P30D"}));
    set(&serve, "gone", &json!({"ttl": "P30D"}));
    set(&serve, "short", &json!({"ttl": "session"}));
    assert_eq!(user.run("a", &["delete", "a", "gone"]).status.code(), Some(0));
    assert_eq!(user.run("a", &["stop"]).status.code(), Some(0));
    drop(serve);
    let kept = std::fs::read(user.file()).unwrap();
    for words in [
        &["get", "a", "build"][..],
        &["ls"],
        &["ls", "a"],
        &["query", "build"],
        &["why", "a", "build"],
        &["search", "build"],
    ] {
        let (code, said, told) = run(words);
        assert_eq!(code, 0, "{words:?}: {told}");
        assert!(said.contains("build") || words[0] != "ls", "{words:?}: {said}");
        assert!(!said.contains("gone") && !said.contains("short"), "{words:?}: {said}");
        assert!(told.contains("no server runs; this is what is kept for the next session"), "{words:?}: {told}");
    }
    let (code, said, _) = run(&["status"]);
    assert_eq!(code, 3, "scripts ask by it if a server runs");
    assert!(said.contains("No Nudge server runs") && said.contains("1 hint for next time"), "{said}");
    let (_, said, _) = run(&["status", "--json"]);
    let status: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&status["running"], &status["keeping"]["hints"]), (&json!(false), &json!(1)));
    for words in [&["undo"][..], &["undo", "--list"]] {
        let (code, said, told) = run(words);
        assert_eq!((code, &*said), (3, ""));
        assert!(told.contains("only a server can undo; start one with `nudge serve --detach`"), "{told}");
    }
    // A change needs a server. A read changes nothing in the kept file.
    assert_eq!(run(&["set", "a", "build", "make"]).0, 3);
    assert_eq!(std::fs::read(user.file()).unwrap(), kept);

    // The first change of the next process leaves a copy of the database, and a recovery restores it.
    let serve = user.serve("a");
    set(&serve, "new", &json!({"ttl": "P30D"}));
    until_kept(&user, &["build", "new"]);
    assert_eq!(user.run("a", &["stop"]).status.code(), Some(0));
    drop(serve);
    let copies = std::fs::read_dir(user.data().join("backups")).unwrap().map(|entry| entry.unwrap().path());
    let copy = copies.max().unwrap();
    let (code, said, _) = run(&["hints", "recover", copy.to_str().unwrap(), "--yes"]);
    assert!(code == 0 && said.contains("✔ 1 hint kept"), "{said}");
    assert_eq!(kept_keys(&user), ["build"]);

    for text in ["{\"x", "[]", "{\"components\": 5}"] {
        user.write_earlier(text);
        for words in [&["get", "a", "build"][..], &["ls"], &["status"]] {
            let (code, said, told) = run(words);
            assert_eq!((code, &*said), (3, ""), "{words:?}");
            assert!(told.contains("kept.json cannot be read"), "{words:?}: {told}");
        }
        assert_eq!(std::fs::read_to_string(user.earlier()).unwrap(), text);
    }
}
