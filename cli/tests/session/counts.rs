//! Tests the counts by day in `nudge stats`, which are kept with the hints for thirty days.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use nudge_client::{HookLog, RuntimeDir};
use serde_json::{Value, json};

use crate::keeping::{User, kill};
use crate::kit::{PATIENCE, Serve, wait_for};

const DAY_MS: i64 = 86_400_000;

fn file(user: &User) -> PathBuf {
    user.folder().join("days.json")
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

/// Returns the days in the file of kept counts.
fn kept_days(user: &User) -> Value {
    let kept = std::fs::read(file(user)).map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap());
    without_bytes(kept["days"].clone())
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

/// Promise (kept hints): Counts by day, without any text, are kept for thirty days, and `nudge stats` tells them
/// without a server, too.
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
    assert_eq!(kept_days(&user), json!([day(&today, 1)]));
    assert_eq!(file(&user).metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // Writes earlier days. One of them is too old and must not appear.
    let (over, first, last) = (date(30), date(29), date(1));
    let mut days = json!({"days": [day(&over, 9), day(&first, 3), day(&last, 1), day(&today, 1)]});
    days["days"].as_array_mut().unwrap().iter_mut().for_each(|day| day["bytes"] = 50.into());
    std::fs::write(file(&user), days.to_string()).unwrap();
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
    assert_eq!(rows[6..], [["all", "10", "5", "5", "5", "150"]], "{said}");
    assert_eq!(std::fs::read_to_string(file(&user)).unwrap(), days.to_string(), "a command that reads writes nothing");

    // The next session adds its counts to those of the file.
    let serve = user.serve("run");
    tell(&serve, "s");
    assert_eq!(told_days(&serve)[2], day(&today, 2));
    assert_eq!((&stats(&serve)["days_note"], &stats(&serve)["suggestions"]), (&Value::Null, &json!(2)));
    user.said("run", &["stop"]);
    assert_eq!(kept_days(&user), json!([day(&first, 3), day(&last, 1), day(&today, 2)]), "the oldest is over");
    let text = std::fs::read_to_string(file(&user)).unwrap();
    assert!(!text.contains("make") && !text.contains("secret-name"), "{text}");
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
    assert_eq!(kept_days(&user), both);
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
    let asked = user.run("run", &["forget"]);
    let told = String::from_utf8(asked.stderr).unwrap();
    assert!(told.contains("and the counts of the last days beside it"), "{told}");
    user.said("run", &["forget", "--yes"]);
    assert!(!file(&user).exists() && user.said("run", &["forget", "--yes"]).contains("nothing is kept"));
}

#[test]
fn a_damaged_file_of_days_is_named_and_stays() {
    let user = User::new();
    std::fs::create_dir_all(user.folder()).unwrap();
    let damaged = r#"{"days": 5}"#;
    std::fs::write(file(&user), damaged).unwrap();
    let serve = user.serve("run");
    tell(&serve, "s");
    assert_eq!(told_days(&serve), json!([day(&date(0), 1)]));
    let told = stats(&serve);
    assert!(told["days_note"].as_str().unwrap().contains("days.json: "), "{told}");
    serve.close();
    assert_eq!(std::fs::read_to_string(file(&user)).unwrap(), damaged);
    let said = user.said("run", &["stats"]);
    assert!(said.contains("Cannot read ") && said.contains("; move it away."), "{said}");
    std::fs::remove_file(file(&user)).unwrap();
    let serve = user.serve("run");
    tell(&serve, "s");
    serve.close();
    assert_eq!(kept_days(&user), json!([day(&date(0), 1)]));
}
