//! Tests kept hints (semantics section 12): with `keep`, hints with a duration survive the end of all processes.
#![cfg(unix)]

use crate::kit;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

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

    fn file(&self) -> PathBuf {
        self.folder().join("kept.json")
    }

    fn kept(&self) -> Value {
        std::fs::read(self.file()).map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap())
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
    fn stand_by(&self, session: &str, first: &Serve) -> Serve {
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

fn set(serve: &Serve, key: &str, meta: &Value) -> Value {
    let answer = serve.call("nudge.set_hint", &json!({"component": "a", "key": key, "value": "x", "meta": meta}));
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"]["hint"].clone()
}

fn get(serve: &Serve, key: &str) -> Value {
    serve.call("nudge.get_hint", &json!({"component": "a", "key": key}))["result"]["hint"].clone()
}

fn kept_keys(user: &User) -> Vec<String> {
    let kept = user.kept();
    kept["components"]["a"]["hints"].as_object().into_iter().flat_map(|hints| hints.keys().cloned()).collect()
}

fn until_kept(user: &User, keys: &[&str]) {
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
    let text = std::fs::read_to_string(user.file()).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&user.file()), mode(&user.folder())), (0o600, 0o700));

    let serve = user.serve("run");
    assert_eq!(get(&serve, "long"), before, "with its counts and times");
    assert_eq!(get(&serve, "short"), Value::Null);
    let keeping = serve.call("nudge.status", &json!({}))["result"]["keeping"].clone();
    assert_eq!(keeping, json!({"on": true, "hints": 2, "file": user.file().display().to_string()}));
    let shown = user.said("run", &["status"]);
    assert!(shown.contains("kept     2 hints for next time, in ") && shown.contains("kept.json"), "{shown}");
    serve.close();
}

/// Promise: see `a_damaged_file_is_set_aside_and_named`.
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
    let counted = || (user.kept()["components"]["a"]["hints"]["k"]["use_count"] == 1).then_some(());
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
    assert!(!user.folder().exists());
    let serve = user.serve("run");
    assert_eq!(get(&serve, "t"), Value::Null);
    assert_eq!(user.said("run", &["stop"]), "stopped\n");
    drop(serve);
}

/// Promise (kept hints): `nudge stop` says how many hints end, and `nudge forget` empties the file.
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

/// Promise (kept hints): Nudge overwrites no kept file that it has not read, and sets a damaged one aside.
#[test]
fn a_damaged_file_is_set_aside_and_named() {
    for damage in [
        "{\"components\": {\"a\"",
        "[]",
        "",
        "{}",
        "{\"schema_version\":\"9.0\",\"components\":{\"a\":{\"hints\":{\"k\":\"x\"}}}}",
    ] {
        let user = User::new();
        std::fs::create_dir_all(user.folder()).unwrap();
        std::fs::write(user.file(), damage).unwrap();
        let serve = user.serve("run");
        let status = serve.call("nudge.status", &json!({}))["result"]["keeping"].clone();
        assert_eq!(status["on"], true, "{status}");
        let aside = status["aside"].as_str().unwrap_or_else(|| panic!("{damage}: {status}"));
        set(&serve, "k", &json!({}));
        serve.close();
        assert_eq!(kept_keys(&user), ["k"]);
        let names: Vec<_> = std::fs::read_dir(user.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let kept = names.iter().find(|path| path.to_str().unwrap().contains("kept-aside-")).unwrap();
        assert_eq!(std::fs::read_to_string(kept).unwrap(), damage);
        assert!(aside.contains(kept.to_str().unwrap()), "{aside}");
    }
}

/// Replaces the kept file with an older one, as a user who restores a backup does.
type Put = fn(file: &Path, older: &str);

const PUTS: [(&str, Put); 3] = [
    ("moved there", |file, older| {
        let backup = file.with_file_name("backup");
        std::fs::write(&backup, older).unwrap();
        std::fs::rename(backup, file).unwrap();
    }),
    ("written over it", |file, older| std::fs::write(file, older).unwrap()),
    ("moved there after it was removed", |file, older| {
        std::fs::remove_file(file).unwrap();
        let backup = file.with_file_name("backup");
        std::fs::write(&backup, older).unwrap();
        std::fs::rename(backup, file).unwrap();
    }),
];

/// Promise (kept hints): If another program replaces the kept file while a session keeps hints, the new file is set
/// aside and named, and never overwritten.
#[test]
fn a_file_that_is_put_back_while_a_session_keeps_is_set_aside() {
    for (how, put) in PUTS {
        let user = User::new();
        let serve = user.serve("run");
        set(&serve, "old", &json!({}));
        until_kept(&user, &["old"]);
        let older = std::fs::read_to_string(user.file()).unwrap();
        serve.call("nudge.delete_hint", &json!({"component": "a", "key": "old"}));
        set(&serve, "new", &json!({}));
        until_kept(&user, &["new"]);
        put(&user.file(), &older);
        set(&serve, "newer", &json!({}));
        until_kept(&user, &["new", "newer"]);
        let told = serve.call("nudge.status", &json!({}))["result"]["keeping"]["aside"].clone();
        let told = told.as_str().unwrap_or_else(|| panic!("{how}: nothing is told"));
        let names: Vec<_> = std::fs::read_dir(user.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let aside = names.iter().find(|path| path.to_str().unwrap().contains("kept-aside-")).expect(how);
        assert!(told.contains(aside.to_str().unwrap()), "{how}: {told}");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), older, "{how}");
        let report = String::from_utf8(user.run("run", &["doctor"]).stdout).unwrap();
        assert!(report.contains("kept-aside-") && report.contains("`nudge import FILE`"), "{how}: {report}");
        assert_eq!(user.run("run", &["import", aside.to_str().unwrap()]).status.code(), Some(0), "{how}");
        assert_eq!(get(&serve, "old")["value"], "x", "{how}");
        serve.close();
        assert_eq!(kept_keys(&user), ["new", "newer", "old"], "{how}");
    }
}

/// Promise (kept hints): If the kept file or its folder is removed, the session writes all kept hints again.
#[test]
fn a_file_that_is_removed_while_a_session_keeps_is_written_again() {
    let user = User::new();
    let serve = user.serve("run");
    set(&serve, "first", &json!({}));
    until_kept(&user, &["first"]);
    std::fs::remove_file(user.file()).unwrap();
    set(&serve, "second", &json!({}));
    until_kept(&user, &["first", "second"]);
    std::fs::remove_dir_all(user.folder()).unwrap();
    set(&serve, "third", &json!({}));
    until_kept(&user, &["first", "second", "third"]);
    let keeping = serve.call("nudge.status", &json!({}))["result"]["keeping"].clone();
    assert_eq!((&keeping["aside"], &keeping["failed"]), (&Value::Null, &Value::Null), "{keeping}");
    // The session has locked the new file, so another session keeps no hints.
    let other = user.serve("else");
    assert_eq!(other.call("nudge.status", &json!({}))["result"]["keeping"]["on"], false);
    other.close();
    // Now another session holds the lock. This session must not overwrite the other's file.
    std::fs::remove_dir_all(user.folder()).unwrap();
    let other = user.serve("else");
    set(&other, "other", &json!({}));
    until_kept(&user, &["other"]);
    set(&serve, "fourth", &json!({}));
    let failed = wait_for("the status to tell it", PATIENCE, || {
        serve.call("nudge.status", &json!({}))["result"]["keeping"]["failed"].as_str().map(str::to_owned)
    });
    assert!(failed.contains("another session keeps hints there now"), "{failed}");
    assert_eq!(kept_keys(&user), ["other"]);
    other.close();
    set(&serve, "fifth", &json!({}));
    until_kept(&user, &["fifth", "first", "fourth", "second", "third"]);
    let aside = serve.call("nudge.status", &json!({}))["result"]["keeping"]["aside"].clone();
    assert!(aside.as_str().is_some_and(|told| told.contains("kept-aside-")), "{aside}");
    serve.close();
}

#[test]
fn a_hint_that_makes_no_sense_does_not_cost_the_others() {
    let user = User::new();
    std::fs::create_dir_all(user.folder()).unwrap();
    let hints = json!({"components": {"a": {"hints": {
        "good": {"value": "x", "meta": {"ttl": "P30D"}},
        "bad": {"value": "x", "meta": {"scoop": 1}},
        "over": {"value": "x", "meta": {"ttl": "PT1S"}, "updated_at": "2020-01-01T00:00:00.000Z"},
    }}}});
    std::fs::write(user.file(), hints.to_string()).unwrap();
    let serve = user.serve("run");
    let status = serve.call("nudge.status", &json!({}))["result"]["keeping"].clone();
    assert!(status["aside"].as_str().unwrap().contains("1 of its hints make no sense"), "{status}");
    serve.close();
    assert_eq!(kept_keys(&user), ["good"]);
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
    assert!(told.as_str().unwrap().contains("kept-over.json"), "{told}");
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
    let names: Vec<_> = std::fs::read_dir(user.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name == "kept-over.json"), "{names:?}");
    assert!(names.iter().any(|name| name == "kept-before.json"), "{names:?}");
    user.said("run", &["forget", "--yes"]);
    assert!(!user.folder().join("kept-before.json").exists(), "forgotten is forgotten");
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
    let text = std::fs::read_to_string(user.file()).unwrap();
    let stamp = |name: &str| text.split(name).nth(1).unwrap()[3..27].to_owned();
    let now = chrono_ms(&stamp("updated_at"));
    let earlier = text.replace(&stamp("updated_at"), &written(now - 40 * 86_400_000));
    let earlier = earlier.replace(&stamp("created_at"), &written(now - 40 * 86_400_000));
    std::fs::write(user.file(), earlier).unwrap();
    std::fs::remove_file(user.folder().join("clock.json")).unwrap();
    let file = std::fs::File::options().write(true).open(user.file()).unwrap();
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

/// Promise: see `a_damaged_file_is_set_aside_and_named`.
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
    std::os::unix::fs::symlink(&elsewhere, user.file()).unwrap();
    let before = std::fs::read_to_string(&elsewhere).unwrap();
    let serve = user.serve("run");
    assert_eq!(get(&serve, "planted"), Value::Null);
    set(&serve, "k", &json!({}));
    serve.close();
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), before);
    assert_eq!(kept_keys(&user), ["k"]);
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
        assert!(told.contains("what can be undone ended with the last session"), "{told}");
    }
    // A change needs a server. A read changes nothing in the kept file.
    assert_eq!(run(&["set", "a", "build", "make"]).0, 3);
    assert_eq!(std::fs::read(user.file()).unwrap(), kept);

    // The changes of the next session leave a backup of the kept file, and an import restores it.
    let serve = user.serve("a");
    set(&serve, "new", &json!({"ttl": "P30D"}));
    until_kept(&user, &["build", "new"]);
    assert_eq!(user.run("a", &["stop"]).status.code(), Some(0));
    drop(serve);
    let (_, _, told) = run(&["undo"]);
    assert!(told.contains("nudge import") && told.contains("kept-before.json"), "{told}");

    for text in ["{\"x", "[]", "{\"components\": 5}"] {
        std::fs::write(user.file(), text).unwrap();
        for words in [&["get", "a", "build"][..], &["ls"], &["status"]] {
            let (code, said, told) = run(words);
            assert_eq!((code, &*said), (3, ""), "{words:?}");
            assert!(told.contains("kept.json cannot be read"), "{words:?}: {told}");
        }
        assert_eq!(std::fs::read_to_string(user.file()).unwrap(), text);
    }
}
