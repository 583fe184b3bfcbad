//! Tests a capture from the end of a session to the branch: the files that are written, the files that stay unchanged,
//! and the state after a worker was killed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread;

use nudge_core::clock::SystemClock;
use nudge_core::source::{DataDir, SourceHost};

use super::super::job::SessionEnd;
use super::*;
use crate::SOURCE;

const BODY: &str = "Clients that fail together must not retry together. Wait a random time between zero and a growing \
ceiling, and cap the ceiling; the load of a whole fleet then spreads by itself.";

/// A brain with a remote, and a folder of jobs.
struct Desk {
    place: tempfile::TempDir,
    jobs: JobFolder,
    brains: BrainSource,
    settings: SettingValues,
}

impl Desk {
    /// Makes a desk whose model is a shell command.
    fn new(command: &str) -> Self {
        Self::with(&[("brain.llm", "command"), ("brain.llm_command", command), ("brain.llm_seconds", "20")])
    }

    fn with(given: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let host = SourceHost::new_alone(place.path(), &SOURCE, given).unwrap();
        let settings = (*host.settings).clone();
        let jobs = JobFolder::open(&DataDir::new(place.path().join("data"))).unwrap();
        let desk = Self { place, jobs, brains: BrainSource::open(host), settings };
        git(desk.place.path(), &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        git(desk.place.path(), &["init", "-q", "-b", "main", "brain"]);
        fs::create_dir_all(desk.path("brain/domains/coding")).unwrap();
        fs::write(
            desk.path("brain/domains/coding/backoff.md"),
            "---\nid: backoff\n---\n# Exponential backoff\n\nEach pause is twice the last, up to forty seconds.\n",
        )
        .unwrap();
        fs::write(desk.path("brain/brain.yaml"), "brain: 1\n").unwrap();
        let brain = desk.path("brain");
        for words in [
            &["add", "-A"][..],
            &["commit", "-qm", "x"],
            &["remote", "add", "origin", "../remote.git"],
            &["push", "-q", "origin", "main"],
        ] {
            git(&brain, words);
        }
        desk
    }

    fn path(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    /// Makes a session that is long enough for a capture, with the additional text `more`.
    fn session(&self, name: &str, more: &str) -> CaptureJob {
        let transcript = self.path(&format!("{name}.jsonl"));
        let said = |role: &str, text: &str| {
            json!({"type": role, "sessionId": name, "cwd": "/w/shopfront", "message": {"role": role, "content": text}})
                .to_string()
        };
        let mut lines = vec![said("user", more)];
        for number in 0..3 {
            lines.push(said("user", &format!("prompt {number}: why do the clients fail again?")));
            lines.push(said(
                "assistant",
                &format!("Clients that fail together must not retry together. {}", "So it goes on. ".repeat(50)),
            ));
        }
        fs::write(&transcript, lines.join("\n") + "\n").unwrap();
        let end = SessionEnd { session: name.into(), transcript, cwd: None };
        self.jobs.note_end(&end, &self.path("brain"), 1_767_225_600_000).unwrap().unwrap()
    }

    fn worker<'a>(&'a self, stop: &'a StopFlag) -> CaptureWorker<'a> {
        let Self { jobs, brains, settings, .. } = self;
        CaptureWorker { jobs, brains, settings, clock: &SystemClock, program: &|_| None, stop, denied: &[] }
    }

    /// Locks a job, and retries if the lock is held. A child process that another test starts inherits this process's
    /// open files, and so the lock, for a moment.
    fn take(&self, id: &str) -> LockedJob<'_> {
        loop {
            if let Some(held) = self.jobs.lock_job(id).unwrap() {
                return held;
            }
            thread::yield_now();
        }
    }

    /// Runs all steps of a job.
    fn work(&self, id: &str) -> CaptureJob {
        let mut held = self.take(id);
        self.worker(&StopFlag::default()).run_job(&mut held).unwrap();
        held.job.clone()
    }

    fn branches(&self, folder: &str) -> Vec<String> {
        let all = git(&self.path(folder), &["for-each-ref", "--format=%(refname:short)", "refs/heads/nugget"]);
        all.lines().map(str::to_owned).collect()
    }

    /// Reads all files in the checkout that a capture must not change.
    fn untouched(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let brain = self.path("brain");
        let kept = |path: &Path| {
            let below = path.strip_prefix(&brain).unwrap();
            !below.starts_with(".git")
                || ["index", "config", "HEAD"].iter().any(|name| below == Path::new(".git").join(name))
        };
        let files = ignore::WalkBuilder::new(&brain).standard_filters(false).build().flatten();
        let files =
            files.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file())).map(ignore::DirEntry::into_path);
        files.filter(|path| kept(path)).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(words);
    let done = git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn unit(title: &str, body: &str) -> Value {
    json!({
        "type": "pattern", "title": title, "body": body, "domain": "coding", "tags": ["retry"], "confidence": 0.8,
        "scope": "general", "durable": true, "why": "x", "quote": "must not retry together",
        "related": [{"id": "backoff", "type": "uses"}], "updates": null,
    })
}

/// Makes a command that answers with these units, whatever the request is.
fn saying(units: &[Value]) -> String {
    let answer = json!({"units": units}).to_string();
    assert!(!answer.contains('\''));
    format!("cat >/dev/null; printf %s '{answer}'")
}

#[test]
fn a_session_becomes_a_branch_and_nothing_else_changes() {
    let desk = Desk::new(&saying(&[unit("Retry with full jitter", BODY), unit("Short", "no")]));
    let before = desk.untouched();
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert_eq!(
        (job.state, job.agent, job.calls.len()),
        (JobState::Remote, Some(transcript::TranscriptClient::Claude), 1),
        "{job:?}"
    );
    assert_eq!(job.rejected, [RejectedProposal::new("Short", "length")]);
    let branch = job.branch.unwrap();
    assert_eq!(branch, "nugget/session-20260101T000000Z-s1");
    for folder in ["brain", "remote.git"] {
        assert_eq!(desk.branches(folder), [branch.as_str()]);
    }
    let text = git(&desk.path("brain"), &["show", &format!("{branch}:domains/coding/retry-with-full-jitter.md")]);
    assert!(text.contains("related: [{id: backoff, type: uses}]\n") && text.contains(BODY), "{text}");
    assert!(text.contains("source: \"session:s1\"\n") || text.contains("source: session:s1\n"), "{text}");
    assert_eq!(desk.untouched(), before);
    assert_eq!(job.units[0].body, "", "what is in the repository need not lie in the job");
}

#[test]
fn nothing_worth_keeping_makes_no_branch() {
    for answer in [saying(&[]), saying(&[unit("Short", "no")])] {
        let desk = Desk::new(&answer);
        let job = desk.work(&desk.session("s-1", "hello").id);
        assert_eq!(job.state, JobState::Empty, "{job:?}");
        assert_eq!(desk.branches("brain"), [""; 0]);
    }
}

#[test]
fn a_unit_that_updates_another_is_added_to_its_file_and_the_same_twice_is_none() {
    let mut update = unit("Cap the backoff where people wait", BODY);
    update["updates"] = json!("backoff");
    let desk = Desk::new(&saying(&[update, unit("Cap the backoff where people wait", BODY)]));
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert_eq!(job.units[0].path, "domains/coding/backoff.md", "{job:?}");
    assert_eq!((job.rejected.len(), job.rejected[0].gate.as_str()), (1, "duplicate"));
    let diff = git(&desk.path("brain"), &["diff", "--numstat", &format!("main..{}", job.branch.unwrap())]);
    assert_eq!(diff, "4\t0\tdomains/coding/backoff.md\n");
}

#[test]
fn a_path_that_is_taken_gets_a_number() {
    let desk = Desk::new(&saying(&[unit("Backoff", BODY)]).replace("Backoff", "Exponential backoff"));
    fs::write(desk.path("brain/domains/coding/exponential-backoff.md"), "mine, not committed").unwrap();
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert_eq!(job.units[0].path, "domains/coding/exponential-backoff-2.md", "{job:?}");
}

#[test]
fn without_a_repository_or_a_model_nobody_is_asked() {
    let desk = Desk::new("touch ../../asked");
    fs::rename(desk.path("brain/.git"), desk.path("brain/.other")).unwrap();
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert!(job.note.unwrap().contains("`nudge brain init --git`"));
    assert_eq!(job.calls, []);
    let desk = Desk::with(&[]);
    let job = desk.work(&desk.session("s-1", "hello").id);
    assert!(job.note.unwrap().contains("There is no claude in PATH"));
}

/// Ten sessions end at the same time, and this happens ten times.
#[test]
fn a_hundred_captures_lose_nothing_and_touch_nothing() {
    let desk = Desk::new(&saying(&[unit("Retry with full jitter", BODY)]));
    git(&desk.path("brain"), &["config", "user.name", "t"]);
    git(&desk.path("brain"), &["config", "user.email", "t@t"]);
    fs::write(desk.path("brain/domains/coding/staged.md"), "staged\n").unwrap();
    git(&desk.path("brain"), &["add", "-A"]);
    fs::write(desk.path("brain/domains/coding/staged.md"), "staged and changed\n").unwrap();
    let before = desk.untouched();
    for round in 0..10 {
        let ids: Vec<_> =
            (0..10).map(|number| desk.session(&format!("{round}{number}-of-a-hundred"), "hello").id).collect();
        thread::scope(|scope| {
            for id in &ids {
                scope.spawn(|| assert_eq!(desk.work(id).state, JobState::Remote));
            }
        });
    }
    assert_eq!(desk.branches("brain").len(), 100);
    assert_eq!(desk.branches("remote.git"), desk.branches("brain"));
    assert_eq!(desk.untouched(), before);
    git(&desk.path("brain"), &["fsck", "--strict"]);
    let left: Vec<_> = fs::read_dir(desk.jobs.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let is_of_a_job = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.ends_with("-of-a-hundred.json") || name.ends_with("-of-a-hundred.lock")
    };
    assert!(left.iter().all(is_of_a_job), "{left:?}");
}

/// A worker may be killed after the work of a step, before or after the step is saved. The next worker gets the same
/// result.
#[test]
fn a_killed_worker_leaves_nothing_half_done() {
    let desk = Desk::new(&saying(&[unit("Retry with full jitter", BODY)]));
    let id = desk.session("s-1", "hello").id;
    let file = desk.jobs.path().join(format!("{id}.json"));
    let stop = StopFlag::default();
    let worker = desk.worker(&stop);
    let mut kept = vec![fs::read(&file).unwrap()];
    while kept.len() < 5 {
        assert!(worker.run_step(&mut desk.take(&id)).is_ok());
        kept.push(fs::read(&file).unwrap());
    }
    assert_eq!(desk.jobs.read(&id).unwrap().state, JobState::Pushed, "asked, committed, branched, pushed");
    let first = desk.branches("brain");
    // The first two saved states have no commit yet. From there, the repeated request may return another unit, which
    // leads to another branch.
    for (step, bytes) in kept.iter().enumerate().skip(2) {
        fs::write(&file, bytes).unwrap();
        let job = desk.work(&id);
        assert_eq!(job.state, JobState::Remote, "from step {step}");
        assert_eq!(desk.branches("brain"), first, "from step {step}");
        assert_eq!(desk.branches("remote.git"), first, "from step {step}");
        assert_eq!(job.calls.len(), 1, "nobody is asked twice");
    }
    // A commit that is on no branch yet is made again, with the same hash.
    fs::write(&file, &kept[1]).unwrap();
    assert_eq!(desk.work(&id).branch.as_deref(), first.first().map(String::as_str));
    assert_eq!(desk.branches("brain"), first);
    git(&desk.path("brain"), &["fsck", "--strict"]);
}

#[test]
fn faults_of_engines_are_tried_again_and_then_given_up() {
    for (command, seconds, expected) in [
        ("exit 3", "20", "the command ended with code 3"),
        ("echo hello", "20", "the command answered no JSON"),
        ("printf 7", "20", "The model answered in another form"),
        ("printf '\\377'", "20", "answered with what is no text"),
        ("sleep 600 & sleep 600", "1", "gave no answer in 1 s"),
    ] {
        let desk =
            Desk::with(&[("brain.llm", "command"), ("brain.llm_command", command), ("brain.llm_seconds", seconds)]);
        let id = desk.session("s-1", "hello").id;
        for attempt in 1..=MAX_TRIES {
            let job = desk.work(&id);
            assert!(job.note.as_deref().unwrap_or_default().contains(expected), "{command}: {job:?}");
            assert_eq!(job.state == JobState::Failed, attempt == MAX_TRIES, "{command}");
        }
        let mut held = desk.take(&id);
        held.allow_retry().unwrap();
        assert_eq!((held.job.state, held.job.tries), (JobState::Waiting, 0));
        assert_eq!(desk.branches("brain"), [""; 0]);
    }
}

#[test]
fn a_remote_that_is_gone_leaves_the_branch_here() {
    let desk = Desk::new(&saying(&[unit("Retry with full jitter", BODY)]));
    fs::rename(desk.path("remote.git"), desk.path("elsewhere.git")).unwrap();
    let id = desk.session("s-1", "hello").id;
    let states: Vec<_> = (0..MAX_TRIES).map(|_| desk.work(&id).state).collect();
    assert_eq!(states, [JobState::Branched, JobState::Branched, JobState::Local]);
    assert_eq!(desk.branches("brain").len(), 1);
    fs::rename(desk.path("elsewhere.git"), desk.path("remote.git")).unwrap();
    desk.take(&id).allow_retry().unwrap();
    assert_eq!(desk.work(&id).state, JobState::Remote);
    assert_eq!(desk.branches("remote.git"), desk.branches("brain"));
}

#[test]
fn no_secret_of_a_session_leaves() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("asked");
    let token = ["ghp", "_", "q7Zk2Vx9Lw4Tn8Rb3Yc6Md1Hf5Js0PgAeUoK"].concat();
    let leaky = unit("Retry with full jitter", &format!("{BODY} Use TOKEN_HERE for it."));
    let answer = json!({"units": [leaky]}).to_string();
    // The model joins the token from two halves.
    let (first, second) = token.split_at(9);
    let command = format!("cat >> '{}'; printf %s '{answer}' | sed s/TOKEN_HERE/{first}{second}/", log.display());
    let desk = Desk::new(&command);
    let more = format!("export TOKEN={token}\nand go on\n{first}\n{second}\n");
    let job = desk.work(&desk.session("s-1", &more).id);
    assert_eq!((job.state, job.rejected[0].gate.as_str()), (JobState::Empty, "secret"), "{job:?}");
    let sent = fs::read_to_string(log).unwrap();
    assert!(sent.contains("line withheld") && sent.contains("and go on") && !sent.contains(second), "{sent}");
    assert!(job.withheld >= 3);
    let file = fs::read_to_string(desk.jobs.path().join("s-1.json")).unwrap();
    assert!(!file.contains(second));
}

/// Uses sixty proposals. Twenty are good. Forty must be refused: they are chatter, about one project, invented, or in
/// the brain already. The author of the checks wrote the proposals too. So they show that each check works, and not how
/// good a real model's proposals are.
#[test]
fn of_sixty_planted_units_the_good_ones_pass() {
    let planted: Value = serde_json::from_str(include_str!("planted.json")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let answer = place.path().join("answer.json");
    let desk = Desk::new(&format!("cat >/dev/null; cat '{}'", answer.display()));
    for (index, known) in planted["known"].as_array().unwrap().iter().enumerate() {
        let text = format!("# {}\n\n{}\n", known["title"].as_str().unwrap(), known["body"].as_str().unwrap());
        fs::write(desk.path(&format!("brain/domains/coding/known-{index}.md")), text).unwrap();
    }
    let good = planted["good"].as_array().unwrap();
    let quotes: Vec<_> = good.iter().map(|unit| unit["quote"].as_str().unwrap()).collect();
    let kept = |name: &str, units: &[Value]| {
        let mut kept = Vec::new();
        for (index, some) in units.chunks(8).enumerate() {
            fs::write(&answer, json!({"units": some}).to_string()).unwrap();
            let job = desk.work(&desk.session(&format!("{name}-{index}"), &quotes.join(".\n")).id);
            assert_eq!(job.units.len() + job.rejected.len(), some.len(), "every one is accounted for: {job:?}");
            kept.extend(job.units.into_iter().map(|unit| unit.title));
        }
        kept
    };
    let passed = kept("good", good);
    assert!(passed.len() >= 19, "{} of 20: {passed:?}", passed.len());
    let refused = planted["refused"].as_object().unwrap();
    let wrong: Vec<_> = refused.iter().flat_map(|(name, units)| kept(name, units.as_array().unwrap())).collect();
    assert!(wrong.len() <= 2, "{} of 40: {wrong:?}", wrong.len());
    println!("good kept {} of 20, others refused {} of 40", passed.len(), 40 - wrong.len());
}

/// Puts credentials of known kinds into sessions: as a user pastes them, as a tool prints them, and as JSON over
/// several lines. `NUDGE_TEST_SECRETS` names a file with a JSON object on each line: `value`, `label` (true for a
/// credential), `kind`.
#[test]
fn planted_credentials_are_withheld() {
    let Some(file) = std::env::var_os("NUDGE_TEST_SECRETS") else {
        eprintln!("skipped: NUDGE_TEST_SECRETS names no file of credentials");
        return;
    };
    let guard = nudge_secrets::SecretGuard::new();
    let (mut all, mut held, mut clean, mut wrong) = (0, 0, 0, 0);
    for line in fs::read_to_string(file).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let plain = record["value"].as_str().map_or_else(|| record["value"].to_string(), str::to_owned);
        let pretty = serde_json::to_string_pretty(&record["value"]).unwrap();
        let before = "It was there before.\n".repeat(20);
        let turns = [
            transcript::SessionTurn::User(format!("Please look at this:\n{plain}\nWhat is wrong?")),
            transcript::SessionTurn::Outcome { text: format!("{plain}\n{before}"), is_error: false },
            transcript::SessionTurn::Assistant(format!("It is here:\n```\n{pretty}\n```\n")),
        ];
        for turn in turns {
            let (agent, folders) = (transcript::TranscriptClient::Claude, std::collections::BTreeSet::default());
            let session = Transcript { agent, session: None, cwd: None, folders, turns: vec![turn] };
            let view = view::render_session(&session);
            assert!(
                view.parts.iter().all(|part| guard.check(None, part).is_none()),
                "what the guard knows never leaves"
            );
            if record["label"] == true {
                all += 1;
                held += usize::from(view.withheld > 0);
                if view.withheld == 0 {
                    println!("not withheld: {}", record["kind"]);
                }
            } else {
                clean += 1;
                wrong += usize::from(view.withheld > 0);
            }
        }
    }
    println!("withheld {held} of {all}; of harmless ones {wrong} of {clean}");
    assert!(held * 100 >= all * 97, "{held} of {all}");
}

#[path = "repository_tests.rs"]
mod repositories;

#[cfg(unix)]
#[path = "engine_tests.rs"]
mod engines;
