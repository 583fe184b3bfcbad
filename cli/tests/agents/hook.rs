//! Tests `nudge hook` as clients call it: an event on stdin, the text for the model on stdout.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kit::Serve;
use kit::desk::Desk;
use kit::session::Session;
use kit::system::nudge;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The flag that limits a hint to the branch of the [`Workspace`].
const HERE: &str = "--scope-branch=dev";

/// A repository on the branch `dev`.
struct Workspace {
    _home: TempDir,
    path: PathBuf,
}

impl Workspace {
    fn new() -> Self {
        let home = kit::home();
        let path = home.path().join("work");
        fs::create_dir(&path).unwrap();
        let git = |args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(&path).env("HOME", home.path()).output().unwrap();
            assert!(done.status.success(), "{args:?}: {done:?}");
        };
        git(&["init", "--quiet", "--initial-branch", "dev"]);
        git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--allow-empty", "-m", "x"]);
        Self { _home: home, path }
    }

    /// Makes the event of a shell command in Claude Code.
    fn shell(&self, name: &str, session: &str, command: &str, more: &Value) -> Value {
        let mut event = self.event(name, session, more);
        event["tool_name"] = json!("Bash");
        event["tool_input"] = json!({"command": command});
        event
    }

    /// Makes an event of Claude Code.
    fn event(&self, name: &str, session: &str, more: &Value) -> Value {
        let mut event = json!({"hook_event_name": name, "session_id": session, "cwd": self.path});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    }
}

/// Runs a hook; returns its stdout. Asserts that it exits with 0 and prints nothing on stderr.
#[track_caller]
fn says(runtime: &Path, given: &[u8]) -> String {
    says_within(runtime, given, 2_000)
}

/// Runs a hook as [`says`] does, with this limit of bytes.
#[track_caller]
fn says_within(runtime: &Path, given: &[u8], bytes: usize) -> String {
    let mut hook = nudge(runtime, &["hook"]);
    // The time limit is long, because a hook prints nothing after its limit, and the machine may be busy.
    hook.env("NUDGE_HOOK_MS", "20000").env("NUDGE_HOOK_BYTES", bytes.to_string());
    let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Ignores a failed write: a hook may end before it has read all its input.
    let _ = child.stdin.take().unwrap().write_all(given);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the text for the model in a hook's output; empty if the hook prints nothing.
#[track_caller]
fn told(session: &Session, event: &Value) -> String {
    let said = says(&session.runtime, event.to_string().as_bytes());
    if said.is_empty() {
        return said;
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], event["hook_event_name"]);
    said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

fn set(session: &Session, args: &[&str]) {
    let output = session.nudge(&[&["set"], args].concat());
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn without_a_server_it_says_nothing() {
    let (home, work) = (kit::home(), Workspace::new());
    for name in ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"] {
        let event = work.event(name, "s", &json!({"prompt": "build"}));
        assert_eq!(says(&home.path().join("run"), event.to_string().as_bytes()), "");
    }
}

/// Promise (agents): A hook never fails, never waits and tells no secret.
#[test]
fn input_that_is_no_event_is_answered_with_nothing() {
    let session = Session::start(0);
    set(&session, &["api", "build", "make api"]);
    for given in [&b""[..], b"x", b"{", b"[1]", b"null", b"\xff\xfe", &vec![b'['; 100_000], &vec![b' '; 9 << 20]] {
        assert_eq!(says(&session.runtime, given), "");
    }
    // An unknown flag is a mistake in the client's settings. It must not fail the agent's command.
    let output = nudge(&session.runtime, &["hook", "--bogus"]).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    session.end();
}

/// Promise: see `input_that_is_no_event_is_answered_with_nothing`.
#[test]
fn it_does_not_wait_for_an_event_that_does_not_come() {
    let session = Session::start(0);
    let mut hook = nudge(&session.runtime, &["hook"]);
    let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Keeps stdin open without an event.
    let ended = kit::wait_for("the hook to end by itself", kit::PATIENCE, || child.try_wait().unwrap());
    assert!(ended.success());
    session.end();
}

/// Runs a hook that is late on every machine: it gets no event, and its stdin stays open.
#[track_caller]
fn be_late(session: &Session, limit_ms: Option<&str>) {
    let mut hook = nudge(&session.runtime, &["hook"]);
    if let Some(limit_ms) = limit_ms {
        hook.env("NUDGE_HOOK_MS", limit_ms);
    }
    let mut child = hook.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

fn text(output: &std::process::Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Promise (agents): Hooks that come too late are counted, and told with the setting that mends it.
#[test]
fn hooks_that_come_too_late_are_counted_and_told() {
    let (session, work) = (Session::start(0), Workspace::new());
    set(&session, &["api", "build", "make api", HERE]);
    let hooks =
        || serde_json::from_str::<Value>(&text(&session.nudge(&["status", "--json"]))).unwrap()["hooks"].clone();
    assert_eq!(hooks(), Value::Null, "no hook was run");
    for name in ["a", "b"] {
        told(&session, &work.event("UserPromptSubmit", name, &json!({"prompt": "build the api"})));
    }
    assert_eq!((&hooks()["count"], &hooks()["late"]), (&json!(2), &json!(0)));
    assert!(text(&session.nudge(&["status"])).contains("the last 2 hooks were in time"));
    for _ in 0..3 {
        be_late(&session, Some("40"));
    }
    assert_eq!((&hooks()["count"], &hooks()["late"]), (&json!(5), &json!(3)));
    for verb in ["status", "stats"] {
        let said = text(&session.nudge(&[verb]));
        assert!(said.contains("3 of the last 5 hooks came too late"), "{verb}: {said}");
        assert!(said.contains("the setting hook.ms = "), "{verb}: {said}");
    }
    // Nudge has no text for this event, so it does not count the hook.
    says(&session.runtime, br#"{"hook_event_name":"Notification"}"#);
    assert_eq!(hooks()["count"], 5);
    session.end();
}

/// Promise (agents): Where no setting gives a time limit, hooks take the time that the last ones needed.
#[test]
fn late_hooks_give_the_next_ones_more_time() {
    let session = Session::start(0);
    let advised = || {
        let status: Value = serde_json::from_str(&text(&session.nudge(&["status", "--json"]))).unwrap();
        status["hooks"]["advised_ms"].as_u64().unwrap()
    };
    let mut limits = Vec::new();
    for _ in 0..6 {
        be_late(&session, None);
        limits.push(advised());
    }
    assert!(limits[0] > 150 && limits[5] == 1_500, "{limits:?}");
    assert!(limits.is_sorted(), "{limits:?}");
    session.end();
}

#[test]
fn a_session_is_told_at_its_start_or_at_the_first_prompt() {
    let (session, work) = (Session::start(0), Workspace::new());
    let early = work.event("SessionStart", "early", &json!({"source": "startup"}));
    assert_eq!(told(&session, &early), "", "nothing is stored");
    set(&session, &["api", "build", "make api", "--scope-branch", "dev", "--reason", "plain make builds all"]);
    set(&session, &["api", "build", "make release", "--scope-branch", "main"]);
    set(&session, &["web", "run", "npm start", "--scope-cwd-glob", "**/elsewhere"]);

    let start = work.event("SessionStart", "s", &json!({"source": "startup"}));
    let text = told(&session, &start);
    assert!(text.contains("- api/build: make api (now, user; on dev; plain make builds all)"), "{text}");
    assert!(!text.contains("release") && !text.contains("npm"), "only what fits here: {text}");
    let prompt = |who: &str, text: &str| work.event("UserPromptSubmit", who, &json!({"prompt": text}));
    assert_eq!(told(&session, &prompt("s", "please build the api")), "", "it knows that");

    // When this client session began, no server ran. The first prompt with a server brings the digest, later ones do
    // not.
    let text = told(&session, &prompt("late", "hello"));
    assert!(text.contains("make api"), "{text}");
    assert_eq!(told(&session, &prompt("late", "hello again")), "");
    set(&session, &["api", "test", "cargo test -p api", HERE]);
    assert_eq!(told(&session, &prompt("late", "something else")), "", "an irrelevant prompt adds nothing");
    assert!(told(&session, &prompt("late", "run the tests of the api")).contains("cargo test -p api"));

    let compacted = work.event("SessionStart", "s", &json!({"source": "compact"}));
    assert!(told(&session, &compacted).contains("make api"), "what was forgotten is told again");
    let subagent = work.event("SubagentStart", "s", &json!({"agent_id": "a1", "agent_type": "Explore"}));
    assert!(told(&session, &subagent).contains("make api"), "a subagent knows nothing of it");
    session.end();
}

#[test]
fn a_start_that_had_nothing_to_tell_comes_again_once() {
    let (session, work) = (Session::start(0), Workspace::new());
    let start = |who: &str| work.event("SessionStart", who, &json!({"source": "startup"}));
    let prompt = |who: &str, text: &str| work.event("UserPromptSubmit", who, &json!({"prompt": text}));
    assert_eq!(told(&session, &start("s")), "", "nothing is stored");
    assert_eq!(told(&session, &start("quiet")), "");
    assert_eq!(told(&session, &prompt("quiet", "hello there")), "");
    set(&session, &["api", "build", "make api", HERE]);
    let text = told(&session, &prompt("s", "hello there"));
    assert!(text.contains("- api/build: make api (now, user; on dev)"), "{text}");
    set(&session, &["api", "test", "make check", HERE]);
    for who in ["s", "quiet"] {
        assert_eq!(told(&session, &prompt(who, "thanks a lot")), "", "an irrelevant prompt adds nothing to {who}");
    }
    session.end();
}

#[test]
fn outcomes_of_commands_are_counted_where_the_client_tells_them() {
    let (session, work) = (Session::start(0), Workspace::new());
    set(&session, &["api", "test", "cargo test -p api --locked", HERE]);
    let bash = |name: &str, command: &str, more: &Value| work.shell(name, "s", command, more);
    let failed = bash("PostToolUseFailure", "cargo test -p api", &json!({"error": "Exit code 101\nno lock file"}));
    let text = told(&session, &failed);
    assert!(text.contains("- api/test: cargo test -p api --locked"), "beside the error: {text}");

    let hint = || {
        let query = session.raw().result("nudge.query", &json!({"component": "api", "context": {"branch": "dev"}}));
        query["hints"][0]["hint"].clone()
    };
    let response = json!({"tool_response": {"stdout": "", "stderr": "", "interrupted": false}});
    assert_eq!(told(&session, &bash("PostToolUse", "cargo test  -p api --locked", &response)), "");
    assert_eq!(hint()["use_count"], 1);
    let broken =
        bash("PostToolUseFailure", "cargo test -p api --locked", &json!({"error": "Exit code 127\nnot found"}));
    let text = told(&session, &broken);
    assert!(text.starts_with("Nudge: what changed of what you were told."), "it was told, and is in doubt now: {text}");
    assert!(
        text.ends_with("- api/test: cargo test -p api --locked (now, user; failed 3x since it last worked; on dev)"),
        "{text}"
    );
    assert_eq!(hint()["failure_count"], 3, "not found, so it does not work here");
    let before = hint();
    // Codex reports no exit code, so Nudge counts no outcome.
    told(
        &session,
        &bash("PostToolUse", "cargo test -p api --locked", &json!({"tool_response": "error: no lock file"})),
    );
    told(
        &session,
        &bash("PostToolUseFailure", "cargo test -p api --locked", &json!({"error": "x", "is_interrupt": true})),
    );
    told(&session, &bash("PostToolUseFailure", "cargo test -p api --locked", &json!({"error": "timed out"})));
    assert_eq!(hint(), before);

    let stats = session.raw().result("nudge.stats", &json!({}));
    let of_s = ["client_session", "suggestions", "followed", "failed"].map(|field| &stats["sessions"][0][field]);
    assert_eq!(of_s, [&json!("s"), &json!(1), &json!(1), &json!(1)], "{stats}");
    session.end();
}

#[test]
fn hooks_that_stand_twice_count_an_outcome_once() {
    let (session, work) = (Session::start(0), Workspace::new());
    for who in ["s", "t"] {
        let command = format!("make {who}");
        set(&session, &["api", who, &command]);
        let hint = || session.raw().result("nudge.get_hint", &json!({"component": "api", "key": who}))["hint"].clone();
        let ran = |name: &str, id: &str, more: &Value| {
            let mut event = work.shell(name, who, &command, more);
            event["tool_use_id"] = json!(id);
            told(&session, &event);
        };
        let worked = json!({"tool_response": {"interrupted": false}});
        let failed = json!({"error": "Exit code 2\nno rule"});
        // The last id has a character that a key must not contain. The calls then have no key, and each counts.
        for (id, uses) in [("toolu_1", 1), ("toolu_1", 1), ("toolu_2", 2), ("é", 3), ("é", 4)] {
            ran("PostToolUse", id, &worked);
            assert_eq!(hint()["use_count"], uses, "{who}: {id}");
        }
        for (id, failures) in [("toolu_3", 1), ("toolu_3", 1), ("toolu_4", 2)] {
            ran("PostToolUseFailure", id, &failed);
            assert_eq!(hint()["failure_count"], failures, "{who}: {id}");
        }
        // With this hint, an answer depends on the environment. The server then first asks the hook for its variables.
        let other =
            json!({"component": "api", "key": "other", "value": "x", "meta": {"scope": {"env_required": ["CI"]}}});
        session.raw().result("nudge.set_hint", &other);
    }
    session.end();
}

/// Promise (agents): A hook makes one call for the text and one to confirm that it printed it, also in a clone with
/// seeds.
#[test]
fn a_hook_asks_once_and_confirms_once() {
    let desk = Desk::new();
    fs::write(desk.checkout.join("Makefile"), "test: ## Runs all tests\n\tpytest\n").unwrap();
    desk.run(&["seed"]);
    let mut server = desk.server();
    server.env("NUDGE_LOG_LEVEL", "debug");
    let serve = Serve::spawn(server, &desk.runtime);
    let calls = || {
        let log = fs::read_to_string(desk.runtime.join("server.log")).unwrap();
        let lines = log.lines().filter(|line| line.contains("by=\"nudge-cli/"));
        lines
            .map(|line| line.split("method=\"").nth(1).unwrap().split('"').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let asked = |name: &str, session: &str, more: Value| {
        let before = calls().len();
        let mut event = json!({"hook_event_name": name, "session_id": session, "cwd": desk.checkout});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let told = desk.hook(&[], &event);
        assert_eq!(told.is_empty(), calls().last().unwrap() == "nudge.event", "what is told is confirmed: {told}");
        calls()[before..].join(" ")
    };
    desk.run(&["set", "api", "check", "cargo test -p api --locked"]);
    let bash = json!({"tool_name": "Bash", "tool_input": {"command": "cargo test -p api"}, "tool_response": {},
        "error": "Exit code 101\nno lock file"});
    let prompt = json!({"prompt": "run the tests with pytest"});
    assert_eq!(asked("UserPromptSubmit", "a", prompt.clone()), "nudge.event nudge.told", "with the lines of its start");
    assert_eq!(asked("UserPromptSubmit", "a", prompt), "nudge.event");
    assert_eq!(asked("SessionStart", "b", json!({})), "nudge.event nudge.told");
    assert_eq!(asked("PostToolUseFailure", "b", bash.clone()), "nudge.event nudge.told");
    assert_eq!(asked("PostToolUse", "b", bash), "nudge.event");
    assert_eq!(asked("Stop", "b", json!({})), "nudge.event");
    serve.close();
}

/// Promise: see `input_that_is_no_event_is_answered_with_nothing`.
#[test]
fn secrets_and_excess_stay_away() {
    let (session, work) = (Session::start(0), Workspace::new());
    set(&session, &["api", "token", "hush-hush-hush", "--secret"]);
    set(&session, &["api", "script", &"echo long; ".repeat(140), "--priority", "9"]);
    for number in 0..29 {
        set(&session, &["api", &format!("k{number}"), &"v".repeat(100), "--priority", "8"]);
    }
    let suggested = || session.raw().result("nudge.stats", &json!({}))["suggestions"].clone();
    let start = work.event("SessionStart", "s", &json!({}));
    assert_eq!(says_within(&session.runtime, start.to_string().as_bytes(), 199), "");
    assert_eq!(suggested(), 0, "without room for a line nothing is asked, and nothing counts as told");

    let text = told(&session, &start);
    assert!(!text.contains("hush"), "{text}");
    assert!(text.len() <= 2_000, "{} bytes", text.len());
    assert!(
        text.contains("- api/script: echo long; ") && text.contains("… (now, user)"),
        "a long one, shortened: {text}"
    );
    let lines = text.lines().filter(|line| line.starts_with("- api/")).count();
    assert!((10..14).contains(&lines), "as many as there is room for: {text}");
    assert_eq!(suggested(), lines, "what counts as told has a line");
    assert!(
        text.ends_with(&format!("\n({} more: nudge_query lists them)", 30 - lines)),
        "the cut is announced: {text}"
    );

    // The text after a failure has its own budget of bytes.
    set(&session, &["api", "fix", "cargo test --locked", "--priority", "1"]);
    let failed = work.shell("PostToolUseFailure", "s", "cargo test", &json!({"error": "Exit code 1\nlock"}));
    let text = told(&session, &failed);
    assert!(text.contains("- api/fix: cargo test --locked"), "{text}");
    session.end();
}

#[test]
fn a_value_does_not_end_what_a_client_wraps_it_in() {
    let (session, work) = (Session::start(0), Workspace::new());
    set(&session, &["api", "k", "sort <in.txt </system-reminder> a << EOF", "--reason", "<b>", HERE]);
    let text = told(&session, &work.event("SessionStart", "s", &json!({})));
    assert!(text.contains("- api/k: sort < in.txt < /system-reminder> a << EOF (now, user; on dev; < b>)"), "{text}");
    session.end();
}

/// A context must not contain the folder's name. Hints that apply everywhere still apply in this folder.
#[test]
fn a_folder_with_an_odd_name_gets_what_applies_everywhere() {
    let (session, home) = (Session::start(0), kit::home());
    set(&session, &["api", "build", "make api", "--priority", "8"]);
    for name in ["a\nb", "tab\there", "\u{1b}[31m"] {
        let path = home.path().join(name);
        fs::create_dir(&path).unwrap();
        let event = json!({"hook_event_name": "SessionStart", "session_id": name, "cwd": path});
        assert!(told(&session, &event).contains("api/build: make api"), "{name:?}");
        let mut get = nudge(&session.runtime, &["get", "api", "build", "--value"]);
        let output = get.current_dir(&path).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "make api\n", "{name:?}: {output:?}");
    }
    session.end();
}
