//! Capture from the event of a session's end to a branch, as a user has it: the hook, the worker behind it, the commands.
#![cfg(unix)]

mod kit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use kit::system::{nudge, sentence};
use kit::{PATIENCE, home, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const BODY: &str = "Clients that fail together must not retry together. Wait a random time between zero and a growing \
ceiling, and cap the ceiling; the load of a whole fleet then spreads by itself.";

/// A user with a brain in a repository, and a command for a model.
struct User {
    home: TempDir,
    env: Vec<(&'static str, String)>,
}

impl User {
    fn new() -> Self {
        let user = Self { home: home(), env: Vec::new() };
        for path in ["work", "brain", "config/nudge"] {
            fs::create_dir_all(user.path(path)).unwrap();
        }
        fs::write(
            user.path("config/nudge/config.toml"),
            format!("[brain]\nroot = '{}'\nllm = \"command\"\n", user.path("brain").display()),
        )
        .unwrap();
        user.git(&["init", "-q", "-b", "main"]);
        fs::write(user.path("brain/brain.yaml"), "brain: 1\n").unwrap();
        user.git(&["add", "-A"]);
        user.git(&["commit", "-qm", "x"]);
        let answer = json!({"units": [{
            "type": "pattern", "title": "Retry with full jitter", "body": BODY, "domain": "coding", "tags": [],
            "confidence": 0.8, "scope": "general", "durable": true, "why": "x", "quote": "must not retry together",
            "related": [], "updates": null,
        }]});
        fs::write(user.path("answer.json"), answer.to_string()).unwrap();
        let command = format!("echo >> {0}/asked; cat > /dev/null; cat {0}/answer.json", user.home.path().display());
        user.with("NUDGE_BRAIN_LLM_COMMAND", &command).with("NUDGE_CAPTURE", "1")
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.to_owned()));
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words).current_dir(self.path("brain"));
        let done = git.env("HOME", self.home.path()).output().unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = nudge(&self.path("run"), args);
        command.env("HOME", self.home.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("NUDGE_CACHE_DIR", self.path("caches")).env("NUDGE_DATA_DIR", self.path("data"));
        command.env_remove("CLAUDE_PROJECT_DIR").current_dir(self.path("work")).env("PWD", self.path("work"));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn nudge(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// A session that is worth it.
    fn session(&self, name: &str) -> PathBuf {
        let file = self.path(&format!("{name}.jsonl"));
        let said = |role: &str, text: &str| json!({"type": role, "sessionId": name, "cwd": self.path("work"), "message": {"role": role, "content": text}});
        let lines = (0..3).flat_map(|at| {
            let long = format!("Clients that fail together must not retry together. {}", "So it goes on. ".repeat(50));
            [said("user", &format!("prompt {at}: why do they fail?")), said("assistant", &long)]
        });
        fs::write(&file, lines.map(|line| line.to_string() + "\n").collect::<String>()).unwrap();
        file
    }

    fn start_hook(&self, event: &Value) -> Child {
        let mut hook = self.command(&["hook"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        hook
    }

    fn hook(&self, event: &Value) -> String {
        let done = self.start_hook(event).wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn end(&self, session: &str, transcript: &Path) -> Value {
        json!({"hook_event_name": "SessionEnd", "session_id": session, "transcript_path": transcript, "cwd": self.path("work"), "reason": "other"})
    }

    fn jobs(&self) -> Vec<Value> {
        let done = self.nudge(&["brain", "jobs", "--json"]);
        let lines = String::from_utf8(done.stdout).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|job: &Value| job["id"].is_string())
            .collect()
    }

    /// Waits until a session's job is in a state.
    fn until(&self, session: &str, state: &str) -> Value {
        wait_for(state, PATIENCE * 3, || {
            let jobs = self.jobs();
            jobs.into_iter().find(|job| job["session"] == session && job["state"] == state)
        })
    }

    fn times_asked(&self) -> usize {
        fs::read_to_string(self.path("asked")).unwrap_or_default().lines().count()
    }
}

#[test]
fn the_end_of_a_session_becomes_a_branch_in_the_background() {
    let user = User::new();
    let transcript = user.session("s-1");
    assert_eq!(user.hook(&user.end("s-1", &transcript)), "", "nobody is left to read anything");
    let job = user.until("s-1", "local");
    assert_eq!(
        (&job["agent"], &job["units"][0]["title"]),
        (&json!("claude"), &json!("Retry with full jitter")),
        "{job}"
    );
    user.hook(&user.end("s-1", &transcript));
    assert_eq!(user.jobs().len(), 1, "two hooks tell of one end");

    let told = user.nudge(&["brain", "review"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("+title: Retry with full jitter") && told.contains("--merge` brings it in"), "{told}");
    fs::create_dir_all(user.path("brain/domains/coding")).unwrap();
    fs::write(user.path("brain/domains/coding/retry-with-full-jitter.md"), "mine").unwrap();
    let refused = sentence(&user.nudge(&["brain", "review", "--merge"]));
    assert!(refused.contains("domains/coding/retry-with-full-jitter.md has changes of yours"), "{refused}");
    fs::remove_file(user.path("brain/domains/coding/retry-with-full-jitter.md")).unwrap();
    user.git(&["config", "user.name", "t"]);
    user.git(&["config", "user.email", "t@t"]);
    assert!(user.nudge(&["brain", "review", "--merge"]).status.success());
    let found = String::from_utf8(user.nudge(&["ask", "retry", "jitter"]).stdout).unwrap();
    assert!(found.contains("must not retry together"), "{found}");
    let none = sentence(&user.nudge(&["brain", "review"]));
    assert!(none.contains("No captured session waits"), "{none}");
}

#[test]
fn what_is_off_or_denied_or_the_engines_own_is_never_noted() {
    for user in [User::new().with("NUDGE_CAPTURE", "0"), User::new().with("NUDGE_BRAIN", "relative"), {
        let user = User::new();
        let denied = user.home.path().display().to_string();
        user.with("NUDGE_CAPTURE_DENY", &denied)
    }] {
        let transcript = user.session("s-1");
        user.hook(&user.end("s-1", &transcript));
        assert_eq!(user.hook(&json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": user.path("work"), "source": "startup"})), "");
        assert!(user.jobs().is_empty() && !user.path("data/capture/s-1.json").exists());
    }
    // What the engine runs with capture on would be captured again, and again.
    let user = User::new();
    let inner = user.path("inner.json");
    fs::write(&inner, user.end("inner", &user.session("inner")).to_string()).unwrap();
    let binary = env!("CARGO_BIN_EXE_nudge");
    let answer = user.path("answer.json");
    let command = format!("cat >/dev/null; {binary} hook < {}; cat {}", inner.display(), answer.display());
    let user = user.with("NUDGE_BRAIN_LLM_COMMAND", &command);
    let transcript = user.session("outer");
    user.hook(&user.end("outer", &transcript));
    user.until("outer", "local");
    assert_eq!(user.jobs().len(), 1);
}

#[test]
fn the_start_of_a_session_tells_its_user_once_and_goes_on_with_what_was_left() {
    let user = User::new();
    let start = |source: &str| {
        user.hook(
            &json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": user.path("work"), "source": source}),
        )
    };
    let said: Value = serde_json::from_str(&start("startup")).unwrap();
    let text = said["systemMessage"].as_str().unwrap();
    assert!(text.contains("when this session ends it will be analysed for") && text.contains("/brain"), "{text}");
    for source in ["resume", "compact", "clear"] {
        assert_eq!(start(source), "");
    }
    // A job that nobody finished, of an hour ago.
    let away = user.path("away");
    fs::rename(user.path("answer.json"), &away).unwrap();
    user.hook(&user.end("s-1", &user.session("s-1")));
    wait_for("a first try", PATIENCE, || user.jobs().into_iter().find(|job| job["note"].is_string()));
    fs::rename(&away, user.path("answer.json")).unwrap();
    let file = user.path("data/capture/s-1.json");
    let mut job: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for name in ["created", "tried_at"] {
        job[name] = json!(job[name].as_i64().unwrap() - 3_600_000);
    }
    fs::write(&file, job.to_string()).unwrap();
    start("startup");
    assert_eq!(user.until("s-1", "local")["tries"], 2);
}

#[test]
fn a_worker_that_is_killed_is_followed_by_one_that_goes_on() {
    let user = User::new();
    let started = user.path("started");
    let slow = format!("cat >/dev/null; echo $$ > {}; sleep 600", started.display());
    let quick = user.env.iter().find(|(name, _)| *name == "NUDGE_BRAIN_LLM_COMMAND").unwrap().1.clone();
    let user = user.with("NUDGE_BRAIN_LLM_COMMAND", &slow);
    let transcript = user.session("s-1");
    let mut worker = user.command(&["brain", "capture", "--transcript", transcript.to_str().unwrap()]).spawn().unwrap();
    let model = wait_for("the model", PATIENCE, || fs::read_to_string(&started).ok().filter(|pid| pid.ends_with('\n')));
    worker.kill().unwrap();
    worker.wait().unwrap();
    let model = model.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
    let _ = rustix::process::kill_process_group(model, rustix::process::Signal::KILL);
    assert_eq!(user.jobs()[0]["state"], "waiting");
    let user = user.with("NUDGE_BRAIN_LLM_COMMAND", &quick);
    let done = user.nudge(&["brain", "capture"]);
    assert!(String::from_utf8(done.stdout).unwrap().contains("s-1: to be reviewed, 1 unit,"), "{:?}", done.stderr);
    assert_eq!(user.git(&["for-each-ref", "--format=x", "refs/heads/nugget"]), "x\n");
    assert_eq!(user.times_asked(), 1);
}

#[test]
fn a_dry_run_prints_what_would_be_sent_and_sends_nothing() {
    let user = User::new();
    let transcript = user.session("s-1");
    let told = user.nudge(&["brain", "capture", "--transcript", transcript.to_str().unwrap(), "--dry-run"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(
        told.contains("### USER\nprompt 0: why do they fail?\n") && told.contains("\"additionalProperties\""),
        "{told}"
    );
    assert_eq!(user.times_asked(), 0);
    assert!(user.jobs().is_empty());
    let unreadable = user.path("x.jsonl");
    fs::write(&unreadable, "hello\n").unwrap();
    let refused =
        sentence(&user.nudge(&["capture-session", "--transcript", unreadable.to_str().unwrap(), "--dry-run"]));
    assert!(refused.contains("has no line that is known"), "{refused}");
}

#[test]
fn init_switches_it_on_where_there_is_a_brain() {
    let user = User::new().with("NUDGE_CAPTURE", "");
    assert!(user.nudge(&["init", "claude", "--capture", "--yes"]).status.success());
    let settings = fs::read_to_string(user.path("config/nudge/config.toml")).unwrap();
    assert!(settings.contains("capture = true"), "{settings}");
    assert!(fs::read_to_string(user.path(".claude/settings.json")).unwrap().contains("\"SessionEnd\""));
    fs::write(user.path("config/nudge/config.toml"), "").unwrap();
    let refused = sentence(&user.nudge(&["init", "claude", "--capture", "--yes"]));
    assert!(refused.contains("`nudge brain use DIR` names yours first"), "{refused}");
}
