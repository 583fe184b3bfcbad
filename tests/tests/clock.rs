//! Tests the real binary while its clock jumps during a session. `NUDGE_BIN` must name the binary for vectors, whose
//! clock can be moved.
#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nudge_tests::drivers::binary;
use serde_json::{Value, json};

const DAY_MS: i64 = 86_400_000;

/// A user with kept hints and one session.
struct User {
    home: tempfile::TempDir,
    server: Child,
}

impl User {
    /// Starts the session.
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut serve = command(home.path());
        serve.args(["serve", "--keep", "-p", "0"]);
        let server = serve.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let user = Self { home, server };
        wait_for("the server", || user.call("status", &json!({})).ok().map(drop));
        user
    }

    fn call(&self, method: &str, params: &Value) -> Result<Value, String> {
        let output = command(self.home.path()).args(["call", method, &params.to_string()]).output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8(output.stderr).unwrap());
        }
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    }

    fn set(&self, key: &str, ttl: &str) {
        let hint = json!({"component": "a", "key": key, "value": "make", "meta": {"ttl": ttl}});
        self.call("set_hint", &hint).unwrap();
    }

    fn has(&self, key: &str) -> bool {
        self.call("get_hint", &json!({"component": "a", "key": key})).is_ok()
    }

    /// Moves the clock by `ms`. With `jump`, the clock is set to another time; otherwise the time passes.
    fn move_clock(&self, ms: i64, jump: bool) {
        self.call("nudge.test_advance", &json!({"ms": ms, "jump": jump})).unwrap();
    }

    /// Waits until the session reports the expiry of a hint.
    fn wait_for_expiry(&self, mut since: Value, key: &str) {
        let has_expired = |change: &Value| change["key"] == key && change["what"] == "expire";
        wait_for("the expiry", || {
            let told = self.call("nudge.changes", &json!({"since": since, "wait_s": 5})).unwrap();
            since = told["next"].clone();
            told["changes"].as_array().unwrap().iter().any(has_expired).then_some(())
        });
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn wait_for(what: &str, mut probe: impl FnMut() -> Option<()>) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while probe().is_none() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn command(home: &Path) -> Command {
    let mut command = Command::new(binary().unwrap());
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| ["NUDGE_", "XDG_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)))
    {
        command.env_remove(name);
    }
    command.env("HOME", home).env("NUDGE_RUNTIME_DIR", home.join("run")).current_dir(home);
    command
}

fn jump_and_return(jump: i64) {
    let user = User::new();
    user.set("month", "P30D");
    let since = user.call("nudge.changes", &json!({})).unwrap()["next"].clone();
    user.move_clock(jump, true);
    // A hint that is stored now still expires in time. Its report shows that the session has removed the expired hints.
    user.set("brief", "PT10S");
    user.move_clock(10_000, false);
    user.wait_for_expiry(since, "brief");
    assert_eq!(user.has("month"), jump < 30 * DAY_MS, "{jump}: reads follow the clock");
    user.move_clock(-jump, true);
    assert!(user.has("month"), "{jump}: it is there again");
    user.call("nudge.shutdown", &json!({})).unwrap();
    let database = user.home.path().join(".local/share/nudge/hints.db");
    let kept = nudge_app::kept::database::read_alone(&database).unwrap().unwrap();
    let keys: Vec<_> = kept.iter().map(|hint| hint.name.key.as_str()).collect();
    assert_eq!(keys, ["month"], "{jump}");
}

/// Promise: see `a_start_with_a_wrong_clock_loses_nothing`.
#[test]
fn a_jump_within_a_session_destroys_nothing() {
    std::thread::scope(|scope| {
        for jump in [DAY_MS, 31 * DAY_MS, 3650 * DAY_MS, -31 * DAY_MS] {
            scope.spawn(move || jump_and_return(jump));
        }
    });
}
