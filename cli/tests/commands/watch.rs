//! Tests `nudge watch`, which shows the changes of other callers.
#![cfg(unix)]

use crate::kit;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use kit::system::{nudge, sentence};
use kit::{PATIENCE, Serve, home, wait_for};
use nudge::Service as _;
use nudge_client::{RemoteServer, RuntimeDir};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// The time limit for the removal of expired hints, which the server does every few seconds.
const SWEEP_PATIENCE: Duration = Duration::from_secs(15);

fn ok(runtime: &Path, args: &[&str]) -> String {
    let out = nudge(runtime, args).output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{args:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap()
}

/// A running `nudge watch`. It has already reported a change.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(serve: &Serve, args: &[&str]) -> Self {
        let mut command = nudge(&serve.runtime, &[&["watch"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let watching = Self { child, lines };
        watching.begun(serve);
        watching
    }

    /// Waits until `nudge watch` reports changes. The command reports only changes after its first request, and the
    /// test cannot see that request. So the test repeats a change until the command reports one, and then waits for the
    /// report of the last one.
    fn begun(&self, serve: &Serve) {
        let mut last = Value::Null;
        let mut heard = wait_for("the first change", PATIENCE, || {
            let probe = json!({"component": "http-proxy", "key": "probe", "value": "x"});
            last = serve.call("nudge.set_hint", &probe)["result"]["hint"]["version"].clone();
            self.lines.recv_timeout(Duration::from_millis(50)).ok()
        });
        let is_last =
            |line: &str| line.contains(&format!(" v{last} ")) || line.contains(&format!("\"version\":{last},"));
        while !is_last(&heard) {
            heard = self.next();
        }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a change")
    }
}

/// Makes one change of each kind; returns the expected reports in order.
fn one_of_everything(runtime: &Path) -> [(&'static str, &'static str, u64); 8] {
    ok(runtime, &["set", "http-proxy", "build", "make"]);
    ok(runtime, &["set", "http-proxy", "build", "make all"]);
    ok(runtime, &["bump", "http-proxy", "build"]);
    ok(runtime, &["set", "http-proxy", "token", "hush hush", "--secret"]);
    ok(runtime, &["delete", "http-proxy", "build"]);
    ok(runtime, &["undo"]);
    let payload = runtime.with_file_name("payload.json");
    std::fs::write(&payload, r#"{"components": {"http-proxy": {"hints": {"x": "1", "y": "2"}}}}"#).unwrap();
    ok(runtime, &["import", payload.to_str().unwrap()]);
    [
        ("set", "build", 1),
        ("set", "build", 2),
        ("bump", "build", 2),
        ("set", "token", 1),
        ("delete", "build", 2),
        ("undo", "build", 2),
        ("import", "x", 1),
        ("import", "y", 1),
    ]
}

#[test]
fn changes_are_told_in_order_with_who_made_them() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let people = Watching::start(&serve, &[]);
    let scripts = Watching::start(&serve, &["--json", "http-proxy"]);
    // Skips the changes that started the second `nudge watch`.
    ok(&serve.runtime, &["set", "http-proxy", "end-of-probes", "x"]);
    while !people.next().contains("end-of-probes") {}
    assert!(scripts.next().contains("end-of-probes"));
    let client = format!("nudge-cli/{}", env!("CARGO_PKG_VERSION"));
    for (what, key, version) in one_of_everything(&serve.runtime) {
        let line = people.next();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[1..4], [what, &format!("http-proxy/{key}"), &format!("v{version}")], "{line}");
        assert!(line.ends_with(&format!("({client})")) && !line.contains('\u{1b}'), "{line}");
        assert!(words[0].len() == "00:00:00".len() && words[0].matches(':').count() == 2, "{line}");
        let object: Value = serde_json::from_str(&scripts.next()).expect("one JSON object a line");
        assert_eq!(
            (&object["what"], &object["component"], &object["key"], &object["version"], &object["by"]),
            (&json!(what), &json!("http-proxy"), &json!(key), &json!(version), &json!(client))
        );
        assert_eq!(object["value"] == "[secret]", key == "token", "{object}");
        assert!(!line.contains("hush"), "{line}");
    }
}

#[test]
fn an_expired_hint_is_told_once_it_is_swept() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let watching = Watching::start(&serve, &["--json"]);
    ok(&serve.runtime, &["set", "http-proxy", "brief", "x", "--ttl", "PT1S"]);
    assert!(watching.next().contains("\"what\":\"set\""));
    let told = watching.lines.recv_timeout(SWEEP_PATIENCE).expect("it expires");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["what"], &told["key"]), (&json!("expire"), &json!("brief")));
    assert!(told.get("by").is_none(), "nobody does that: {told}");
}

#[test]
fn one_component_and_changes_of_many_hints() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let watching = Watching::start(&serve, &["http-proxy"]);
    ok(&serve.runtime, &["set", "other", "k", "x"]);
    ok(&serve.runtime, &["set", "http-proxy-2", "k", "x"]);
    ok(&serve.runtime, &["set", "http-proxy", "mine", "x"]);
    assert!(watching.next().contains("http-proxy/mine v1"));
    // A change of many hints becomes one line without a component.
    let hints: serde_json::Map<_, _> = (0..60).map(|n| (format!("k{n}"), json!("x"))).collect();
    let payload = json!({"components": {"many": {"hints": hints}}});
    assert!(serve.call("nudge.import", &json!({"payload": payload}))["result"].is_object());
    let line = watching.next();
    assert!(line.contains("import") && line.contains("60 hints"), "{line}");
}

#[test]
fn watching_ends_with_its_reader() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    // The reader ends after the first line. `nudge watch` must then end without a further change.
    let mut gone = nudge(&serve.runtime, &["watch"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(gone.stdout.take().unwrap());
    let heard = std::thread::spawn(move || reader.read_line(&mut String::new()).unwrap());
    wait_for("the first change", PATIENCE, || {
        ok(&serve.runtime, &["set", "a", "k", "x"]);
        heard.is_finished().then_some(())
    });
    assert!(heard.join().unwrap() > 0);
    let status = wait_for("the end without a reader", PATIENCE, || gone.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn watching_goes_on_with_the_next_server() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let (mut people, mut scripts) = (Watching::start(&serve, &[]), Watching::start(&serve, &["--json"]));
    let says = |watching: &mut Watching| {
        let stderr = BufReader::new(watching.child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        lines
    };
    let said = [says(&mut people), says(&mut scripts)];
    let heard = |what: &str| {
        for lines in &said {
            let line = lines.recv_timeout(PATIENCE).expect("a line on stderr");
            assert!(line.contains(what), "{line}");
        }
    };
    ok(&serve.runtime, &["stop"]);
    heard("the server has ended");
    let serve = Serve::start(&home.path().join("run"));
    heard("a server answers again");
    ok(&serve.runtime, &["set", "api", "after", "make"]);
    // Skips the changes that started the two commands: each command also saw those of the other.
    while !people.next().contains("api/after v1") {}
    while serde_json::from_str::<Value>(&scripts.next()).unwrap()["key"] != "after" {}
    for mut watching in [people, scripts] {
        drop(watching.child.stdout.take());
        watching.child.kill().unwrap();
        watching.child.wait().unwrap();
    }
}

#[test]
fn thirty_two_may_watch() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let next = serve.call("nudge.changes", &json!({}))["result"]["next"].clone();
    let wait = json!({"since": next, "wait_s": 5});
    // Each waiting caller has its own client, because a client makes one call at a time. The probe below may take a
    // place before all callers wait, and a wait ends after 5 seconds. So the callers repeat the call until they get the
    // change.
    let runtime = &serve.runtime;
    let waits = || {
        let remote = RemoteServer::connect(&RuntimeDir::open(Some(runtime)).unwrap()).unwrap();
        wait_for("the change", 3 * PATIENCE, || {
            let answer = remote.call("nudge.changes", &to_raw_value(&wait).unwrap()).ok()?;
            serde_json::from_str::<Value>(answer.get()).unwrap()["changes"].get(0).cloned()
        })
    };
    std::thread::scope(|scope| {
        let watchers: Vec<_> = (0..128).map(|_| scope.spawn(waits)).collect();
        let refused = wait_for("a refusal", PATIENCE, || {
            let answer = serve.call("nudge.changes", &json!({"since": next, "wait_s": 0.001}));
            answer.get("error").cloned()
        });
        assert_eq!(
            (&refused["data"]["reason"], &refused["data"]["limit"], &refused["data"]["max"]),
            (&json!("E_QUOTA"), &json!("watchers"), &json!(128))
        );
        // Starts the command until it is refused: it finds a free place while a caller is between two calls.
        let out = wait_for("a watcher that is refused", PATIENCE, || {
            let mut command = nudge(runtime, &["watch"]);
            let mut one_more = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let patience = Instant::now() + Duration::from_secs(2);
            while one_more.try_wait().unwrap().is_none() && Instant::now() < patience {
                std::thread::sleep(Duration::from_millis(2));
            }
            let _ = one_more.kill();
            let out = one_more.wait_with_output().unwrap();
            out.status.code().is_some().then_some(out)
        });
        assert_eq!(out.status.code(), Some(4));
        assert!(sentence(&out).contains("128 callers watch already"));
        // A call without a wait needs no place. Each waiting caller gets the change.
        assert!(serve.call("nudge.changes", &json!({}))["result"].is_object());
        ok(&serve.runtime, &["set", "a", "k", "x"]);
        for watcher in watchers {
            assert_eq!(watcher.join().unwrap()["key"], "k");
        }
    });
    assert!(serve.call("nudge.changes", &wait)["result"].is_object(), "there is room again");
}

#[test]
fn params_of_changes_are_checked() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for params in [
        json!({"since": -1}),
        json!({"since": 1.5}),
        json!({"since": "1"}),
        json!({"since": [1]}),
        json!({"wait_s": "1"}),
        json!({"wait_s": -1}),
        json!({"wait_s": 5.5}),
        json!({"wait_s": 1e300}),
        json!({"more": 1}),
    ] {
        let begun = Instant::now();
        let answer = serve.call("nudge.changes", &params);
        assert_eq!(answer["error"]["data"]["reason"], "E_INVALID", "{params}: {answer}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{params} waits");
    }
    assert_eq!(serve.call("nudge.changes", &json!([1]))["error"]["code"], -32_602);
    for params in [json!({"since": null, "wait_s": null}), json!({"since": u64::MAX}), json!({"wait_s": 0})] {
        assert!(serve.call("nudge.changes", &params)["result"].is_object(), "{params}");
    }
}
