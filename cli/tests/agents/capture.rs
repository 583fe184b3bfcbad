//! Tests capture as a user sees it: from the event at the end of a session to a branch in the brain. Covers the hook,
//! the worker process and the commands.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod disk;

use crate::kit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use kit::rng::Rng;
use kit::system::{nudge, sentence};
use kit::{PATIENCE, home, wait_for};
use serde_json::{Value, json};
use tempfile::TempDir;

const BODY: &str = "Clients that fail together must not retry together. Wait a random time between zero and a growing \
ceiling, and cap the ceiling; the load of a whole fleet then spreads by itself.";

/// A user with a brain in a repository. A shell command takes the place of the model.
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

    /// Writes the transcript of a session that is long enough to be captured; returns its path.
    fn session(&self, name: &str) -> PathBuf {
        let file = self.path(&format!("{name}.jsonl"));
        let said = |role: &str, text: &str| json!({"type": role, "sessionId": name, "cwd": self.path("work"), "message": {"role": role, "content": text}});
        let lines = (0..3).flat_map(|number| {
            let long = format!("Clients that fail together must not retry together. {}", "So it goes on. ".repeat(50));
            [said("user", &format!("prompt {number}: why do they fail?")), said("assistant", &long)]
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

    /// Waits until the job of a session has a state; returns the job.
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
    let branch = job["branch"].as_str().unwrap();
    user.git(&["branch", "-q", "-d", branch]);
    for words in [&["brain", "jobs"][..], &["brain", "jobs", "--retry"]] {
        let told = String::from_utf8(user.nudge(words).stdout).unwrap();
        assert!(told.contains("s-1: reviewed") && told.contains("Its branch is merged."), "{told}");
    }
    let told = String::from_utf8(user.nudge(&["brain", "capture"]).stdout).unwrap();
    assert!(told.contains("no session waits"), "{told}");
}

#[test]
fn a_session_that_is_off_or_denied_or_the_engines_own_is_never_noted() {
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
    // The model's command itself ends a session. Its capture would start the model again, and this would never end.
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
    // Makes a job that failed an hour ago, so that a retry is due.
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
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert!(told["text"].as_str().unwrap().contains("### USER\nprompt 0: why do they fail?\n"), "{told}");
    assert_eq!(told["schema"]["additionalProperties"], false, "{told}");
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

/// A dry run prints the request, sends nothing, and changes no file.
#[test]
fn a_dry_run_of_what_waits_sends_nothing_and_changes_nothing() {
    let user = User::new();
    let log = user.path("sent");
    let command = format!("cat >> '{}'; cat '{}'", log.display(), user.path("answer.json").display());
    let away = user.path("away");
    fs::rename(user.path("answer.json"), &away).unwrap();
    let user = user.with("NUDGE_BRAIN_LLM_COMMAND", "exit 3");
    user.hook(&user.end("s-1", &user.session("s-1")));
    wait_for("a first try", PATIENCE, || user.jobs().into_iter().find(|job| job["note"].is_string()));
    fs::rename(&away, user.path("answer.json")).unwrap();
    let user = user.with("NUDGE_BRAIN_LLM_COMMAND", &command);
    let file = user.path("data/capture/s-1.json");
    let before = fs::read(&file).unwrap();
    for words in [&["brain", "capture", "--dry-run"][..], &["brain", "capture", "--dry-run", "--detach"]] {
        let told = user.nudge(words);
        let told = String::from_utf8(told.stdout).unwrap();
        assert!(told.contains("why do they fail?") && told.contains("additionalProperties"), "{told}");
        assert!(!log.exists(), "nothing is sent");
        assert_eq!(fs::read(&file).unwrap(), before, "nothing is noted");
    }
    assert_eq!(user.git(&["for-each-ref", "--format=x", "refs/heads/nugget"]), "");
    let json = user.nudge(&["brain", "capture", "--dry-run", "--json"]);
    let shown: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(user.nudge(&["brain", "capture"]).status.success());
    assert_eq!(shown["bytes"].as_str().unwrap(), fs::read_to_string(&log).unwrap(), "what is shown is what is sent");
    // A session that is too short to be sent has no request to show.
    let short = user.path("short.jsonl");
    fs::write(&short, json!({"type": "user", "sessionId": "x", "message": {"content": "hello there"}}).to_string())
        .unwrap();
    let told = user.nudge(&["brain", "capture", "--dry-run", "--transcript", short.to_str().unwrap()]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("nothing would be sent") && told.contains("too short") && !told.contains("hello"), "{told}");
}

/// A denied folder is denied under each of its names. A session belongs to each folder that its transcript names.
#[test]
fn a_denied_folder_is_never_sent_by_any_name() {
    let user = User::new();
    let (denied, link) = (user.path("denied"), user.path("link"));
    fs::create_dir_all(denied.join("app")).unwrap();
    fs::create_dir_all(user.path("x")).unwrap();
    std::os::unix::fs::symlink(&denied, &link).unwrap();
    let session = |name: &str| {
        let file = user.session(name);
        let text = fs::read_to_string(&file).unwrap();
        let (first, rest) = text.split_at(text.trim_end().rfind('\n').unwrap());
        let work = user.path("work").display().to_string();
        let inside = denied.join("app").display().to_string();
        fs::write(&file, format!("{first}{}", rest.replace(&work, &inside))).unwrap();
        file
    };
    let round_about = user.path("x/../denied/app");
    for (index, (deny, cwd)) in [
        (&denied, Some(user.path("work"))),
        (&denied, None),
        (&link, Some(user.path("work"))),
        (&denied, Some(round_about)),
        (&link, Some(denied.join("app"))),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("d-{index}");
        let transcript = if index < 3 { session(&name) } else { user.session(&name) };
        let event = json!({"hook_event_name": "SessionEnd", "session_id": name, "transcript_path": transcript, "cwd": cwd, "reason": "other"});
        let mut hook = user.command(&["hook"]).env("NUDGE_CAPTURE_DENY", deny).stdin(Stdio::piped()).spawn().unwrap();
        hook.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
        assert!(hook.wait().unwrap().success());
        if index < 3 {
            let job = user.until(&name, "skipped");
            assert!(job["note"].as_str().unwrap().contains("capture_deny"), "{job}");
        } else {
            assert!(!user.path(&format!("data/capture/{name}.json")).exists(), "{name}");
        }
        let mut by_hand = user.command(&[
            "brain",
            "capture",
            "--dry-run",
            "--transcript",
            session(&format!("{name}-h")).to_str().unwrap(),
        ]);
        let told = String::from_utf8(by_hand.env("NUDGE_CAPTURE_DENY", deny).output().unwrap().stdout).unwrap();
        assert!(told.contains("nothing would be sent") && !told.contains("prompt 0"), "{told}");
    }
    assert_eq!(user.times_asked(), 0);
}

/// Kills two workers of each job at random moments; a third worker finishes the job. At no time does a branch lack its
/// files. The checkout does not change, and in the end each session has one branch, here and at the remote.
#[test]
fn a_worker_that_is_killed_anywhere_leaves_nothing_half_done() {
    const JOBS: usize = 12;
    let user = User::new();
    let remote = user.path("remote.git");
    user.git(&["init", "-q", "--bare", "-b", "main", remote.to_str().unwrap()]);
    user.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
    user.git(&["push", "-q", "-u", "origin", "main"]);
    let whole = |repo: &Path| {
        let refs = ["-C", repo.to_str().unwrap(), "for-each-ref", "--format=%(refname)", "refs/heads/nugget"];
        let refs = user.git(&refs);
        for name in refs.lines() {
            let files = user.git(&["-C", repo.to_str().unwrap(), "diff", "--name-only", "main", name]);
            assert!(
                files.starts_with("domains/coding/retry-with-full-jitter") || files.starts_with("coding/"),
                "{name}: {files}"
            );
        }
        refs.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let kept = || {
        (
            user.git(&["status", "--porcelain"]),
            fs::read(user.path("brain/.git/index")).unwrap(),
            fs::read(user.path("brain/.git/config")).unwrap(),
        )
    };
    let before = kept();
    // Measures the second job, because the first job also builds the index of the brain. The later jobs take as long as
    // the second.
    let [_, usual] = ["k-a", "k-b"].map(|name| {
        let (transcript, since) = (user.session(name), std::time::Instant::now());
        assert!(user.nudge(&["brain", "capture", "--transcript", transcript.to_str().unwrap()]).status.success());
        u64::try_from(since.elapsed().as_millis()).unwrap()
    });
    let mut rng = Rng::new(Rng::seed("killed anywhere"));
    let mut killed = 0;
    for number in 1..=JOBS {
        let transcript = user.session(&format!("k-{number}"));
        for attempt in 0..2 {
            let words = ["brain", "capture", "--transcript", transcript.to_str().unwrap()];
            let mut worker = user.command(if attempt == 0 { &words } else { &words[..2] });
            let mut worker = worker.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // Waits for a random time of at most one job, then kills the worker.
            std::thread::sleep(rng.millis(0, usual.max(2)));
            killed += usize::from(worker.try_wait().unwrap().is_none());
            let _ = worker.kill();
            worker.wait().unwrap();
            whole(&user.path("brain"));
            whole(&remote);
        }
        // Tries again until the job is done: for a moment, children of the killed worker may still hold its files.
        wait_for("the end of the job", PATIENCE, || {
            user.nudge(&["brain", "capture", "--transcript", transcript.to_str().unwrap()]);
            user.nudge(&["brain", "capture"]);
            user.jobs().into_iter().find(|job| job["session"] == format!("k-{number}") && job["state"] == "remote")
        });
    }
    let branches = whole(&user.path("brain"));
    assert_eq!(branches.len(), JOBS + 2, "{branches:?}");
    assert_eq!(whole(&remote), branches);
    assert_eq!(kept(), before);
    user.git(&["fsck", "--strict"]);
    println!("{killed} of {} workers were killed before their end", 2 * JOBS);
    assert!(killed >= JOBS / 4, "{killed}");
}
