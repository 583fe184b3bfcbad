//! Tests the counts that are kept beside the hints: by day for thirty days, and by fact and client session.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nudge::SystemClock;
use nudge_app::evidence::EvidenceStore;
use nudge_client::{HookLog, RuntimeDir};
use nudge_core::source::DataDir;
use nudge_core::suggest::evidence::FactCounts;
use serde_json::{Value, json};

use crate::keeping::{User, kill};
use crate::kit::{PATIENCE, Serve, wait_for};

const DAY_MS: i64 = 86_400_000;

fn file(user: &User) -> PathBuf {
    user.data().join("evidence.db")
}

/// Returns the local date of the day that is `ago` days before today.
fn date(ago: i64) -> String {
    let time = chrono::Local::now() - chrono::TimeDelta::milliseconds(ago * DAY_MS);
    time.format("%Y-%m-%d").to_string()
}

/// Tells a client session two lines: it follows one, and the other fails. Also runs a hook that is late.
fn tell(serve: &Serve, session: &str) {
    for (key, command) in [("build", "make build"), ("test", "make test")] {
        let params = json!({"component": "a", "key": key, "value": command});
        assert!(serve.call("nudge.set_hint", &params).get("error").is_none());
    }
    let asked = json!({"event": "start", "client_session": session, "context": {}});
    let told = serve.call("nudge.suggest", &asked);
    assert_eq!(told["result"]["suggestions"].as_array().map(Vec::len), Some(2), "{told}");
    for (command, ok) in [("make build", true), ("make test", false)] {
        let ended = serve.call("nudge.outcome", &json!({"command": command, "ok": ok, "client_session": session}));
        assert_eq!(ended["result"]["matched"].as_array().map(Vec::len), Some(1), "{ended}");
    }
    let runtime = RuntimeDir::open(Some(&serve.runtime)).unwrap();
    HookLog::open(&runtime).unwrap().note_hook(Duration::from_millis(45), true).unwrap();
}

/// Returns the days in the database of kept counts.
fn kept_days(user: &User) -> Value {
    let days = json!(store(user).read_days().unwrap().into_last_days(&SystemClock));
    without_bytes(days)
}

/// Returns the counts of all facts in all sessions: told, followed, failed.
fn kept_evidence(user: &User) -> [u32; 3] {
    let evidence = store(user).read_evidence().unwrap();
    let all: Vec<_> = evidence.sessions.values().flat_map(|session| session.facts.values()).collect();
    let sum = |count: fn(&FactCounts) -> u32| all.iter().map(|counts| count(counts)).sum();
    [sum(|counts| counts.told), sum(|counts| counts.followed), sum(|counts| counts.failed)]
}

fn store(user: &User) -> EvidenceStore {
    EvidenceStore::new(DataDir::new(user.data()), Arc::new(SystemClock))
}

fn stats(serve: &Serve) -> Value {
    serve.call("nudge.stats", &json!({}))["result"].clone()
}

fn told_days(serve: &Serve) -> Value {
    without_bytes(stats(serve)["days"].take())
}

/// Removes the numbers of bytes, because the notes in the lines change them.
fn without_bytes(mut days: Value) -> Value {
    for day in days.as_array_mut().into_iter().flatten() {
        assert!(day.as_object_mut().unwrap().remove("bytes").unwrap().is_u64());
    }
    days
}

/// Returns the counts of a day after this many calls of [`tell`].
fn day(day: &str, calls: u64) -> Value {
    json!({"day": day, "suggestions": 2 * calls, "followed": calls, "failed": calls, "late": calls})
}

/// Promise (kept hints): Counts are kept without any name or text: by day for thirty days, which `nudge stats` tells
/// without a server, too, and by fact in each session of an agent.
#[test]
fn days_are_counted_across_sessions() {
    let user = User::new();
    let serve = user.serve("run");
    assert_eq!(stats(&serve)["days"], json!([]));
    tell(&serve, "secret-name");
    let today = date(0);
    assert_eq!(told_days(&serve), json!([day(&today, 1)]), "at once");
    assert_eq!(stats(&serve)["days"][0]["bytes"], stats(&serve)["bytes"]);
    serve.close();
    assert_eq!((kept_days(&user), kept_evidence(&user)), (json!([day(&today, 1)]), [2, 1, 1]));
    assert_eq!(file(&user).metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // An earlier version has left its file of days. One of them is too old and must not appear.
    let (over, first, last) = (date(30), date(29), date(1));
    let mut days = json!({"days": [day(&over, 9), day(&first, 3), day(&last, 1)]});
    days["days"].as_array_mut().unwrap().iter_mut().for_each(|day| day["bytes"] = 50.into());
    let earlier = user.folder().join("days.json");
    std::fs::write(&earlier, days.to_string()).unwrap();
    let unserved = |words: &[&str]| {
        let output = user.run("run", words);
        let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success() && told.contains("no server runs; this is what is kept"), "{told}");
        said
    };
    let mut told: Value = serde_json::from_str(&unserved(&["stats", "--json"])).unwrap();
    assert_eq!(without_bytes(told["days"].take()), json!([day(&first, 3), day(&last, 1), day(&today, 1)]));
    assert_eq!(told["suggestions"], 0);
    let said = unserved(&["stats"]);
    let rows: Vec<Vec<_>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[2], ["DAY", "TOLD", "FOLLOWED", "FAILED", "LATE", "BYTES"], "{said}");
    assert_eq!((rows[3][0], rows[5][0]), (&*first, &*today), "{said}");
    assert_eq!(rows[6][..5], ["all", "10", "5", "5", "5"], "{said}");
    assert_eq!(std::fs::read_to_string(&earlier).unwrap(), days.to_string(), "a command that reads writes nothing");

    // The next session adds its counts to those of the file.
    let serve = user.serve("run");
    tell(&serve, "s");
    assert_eq!(told_days(&serve)[2], day(&today, 2));
    assert_eq!((&stats(&serve)["days_note"], &stats(&serve)["suggestions"]), (&Value::Null, &json!(2)));
    user.said("run", &["stop"]);
    assert_eq!(kept_days(&user), json!([day(&first, 3), day(&last, 1), day(&today, 2)]), "the oldest is over");
    assert_eq!((kept_evidence(&user), earlier.exists()), ([4, 2, 2], false));
    let bytes = std::fs::read(file(&user)).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(["make", "secret-name", "build"].iter().all(|name| !text.contains(name)), "{text}");
}

#[test]
fn a_kill_loses_seconds_at_most_and_two_sessions_lose_nothing() {
    let user = User::new();
    let [first, second] = ["a", "b"].map(|session| user.serve(session));
    for serve in [&first, &second] {
        tell(serve, "s");
    }
    let both = json!([day(&date(0), 2)]);
    wait_for("the file", PATIENCE, || (kept_days(&user) == both).then_some(()));
    assert_eq!(told_days(&first), both, "of all sessions");
    kill(first);
    second.close();
    assert_eq!((kept_days(&user), kept_evidence(&user)), (both.clone(), [4, 2, 2]));
    // The next server of a killed session counts no event twice.
    let serve = user.serve("a");
    assert_eq!(told_days(&serve), both);
    serve.close();
    assert_eq!(kept_days(&user), both);
}

#[test]
fn a_session_that_keeps_nothing_counts_its_own_days_and_says_so() {
    let user = User::new();
    let serve = Serve::spawn(user.command("run", false), &user.runtime("run"));
    tell(&serve, "s");
    assert_eq!(told_days(&serve), json!([day(&date(0), 1)]));
    let told = stats(&serve);
    let note = told["days_note"].as_str().unwrap();
    assert!(note.starts_with("only the days of this session are counted: keep is off"), "{note}");
    assert!(user.said("run", &["stats"]).contains(note));
    serve.close();
    assert!(!file(&user).exists());
}

#[test]
fn days_are_forgotten_with_the_kept_hints() {
    let user = User::new();
    let serve = user.serve("run");
    tell(&serve, "s");
    wait_for("the file", PATIENCE, || file(&user).exists().then_some(()));
    user.said("run", &["forget", "--yes"]);
    assert_eq!((told_days(&serve), file(&user).exists()), (json!([]), false));
    tell(&serve, "t");
    serve.close();
    assert_eq!(kept_days(&user), json!([day(&date(0), 1)]), "what was told since");
    assert_eq!(kept_evidence(&user), [2, 1, 1]);
    let asked = user.run("run", &["forget"]);
    let told = String::from_utf8(asked.stderr).unwrap();
    assert!(told.contains("and the counts of earlier sessions beside it"), "{told}");
    user.said("run", &["forget", "--yes"]);
    assert!(!file(&user).exists() && user.said("run", &["forget", "--yes"]).contains("nothing is kept"));
}

#[test]
fn a_damaged_database_of_counts_begins_anew_and_a_newer_one_is_named() {
    let user = User::new();
    std::fs::create_dir_all(user.data()).unwrap();
    std::fs::set_permissions(user.data(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(file(&user), "no database at all, but long enough for a header of a hundred bytes".repeat(100))
        .unwrap();
    let serve = user.serve("run");
    tell(&serve, "s");
    serve.close();
    assert_eq!((kept_days(&user), kept_evidence(&user)), (json!([day(&date(0), 1)]), [2, 1, 1]));

    let database = nudge_storage::rusqlite::Connection::open(file(&user)).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    drop(database);
    let serve = user.serve("run");
    tell(&serve, "t");
    assert_eq!(told_days(&serve), json!([day(&date(0), 1)]), "of this session alone");
    let told = stats(&serve);
    assert!(told["days_note"].as_str().unwrap().contains("evidence.db was written by a newer nudge"), "{told}");
    serve.close();
    let said = user.said("run", &["stats"]);
    assert!(said.contains("evidence.db was written by a newer nudge; update this one."), "{said}");
}
