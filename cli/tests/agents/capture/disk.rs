//! Tests capture on a disk that fails under the jobs or under the brain's repository. A session's job is complete or
//! absent, and no branch lacks its files. After the disk works again, Nudge captures the session exactly once.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::User;
use crate::kit::faulty::{Disk, FAULTS, advice, assert_sentence};

/// The moment at which the disk begins to fail.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Before,
    /// After the model has answered.
    Answered,
}

struct Lab {
    user: User,
    disk: Disk,
}

impl Lab {
    fn new(fault: &str, when: When) -> Self {
        let user = User::new();
        let disk = Disk::new(user.home.path());
        let usual = user.env.iter().find(|(name, _)| *name == "NUDGE_BRAIN_LLM_COMMAND").unwrap().1.clone();
        // The model's command arms the disk once, after its answer. A later try finds a working disk.
        let (armed, once) = (disk.armed().display().to_string(), user.path("once").display().to_string());
        let failing = format!("{usual}; [ -e {once} ] || {{ echo {fault} > {armed}; touch {once}; }}");
        let user = if when == When::Answered { user.with("NUDGE_BRAIN_LLM_COMMAND", &failing) } else { user };
        Self { user, disk }
    }

    fn command(&self, beneath: &str, args: &[&str]) -> Command {
        let mut command = self.user.command(args);
        self.disk.place(&mut command, beneath);
        command
    }

    fn run(&self, beneath: &str, args: &[&str]) -> Output {
        self.command(beneath, args).output().unwrap()
    }

    /// Asserts that every branch of a capture contains its file; returns the number of branches.
    fn branches(&self, what: &str) -> usize {
        let refs = self.user.git(&["for-each-ref", "--format=%(refname)", "refs/heads/nugget"]);
        for name in refs.lines() {
            let files = self.user.git(&["diff", "--name-only", "main", name]);
            assert!(files.contains("retry-with-full-jitter.md"), "{what}: {name}: {files}");
        }
        refs.lines().count()
    }

    /// Returns the jobs. Asserts that each job's file is valid JSON.
    fn jobs(&self, what: &str) -> Vec<Value> {
        let names = fs::read_dir(self.user.path("data/capture")).into_iter().flatten().flatten();
        let files = names.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "json"));
        for file in files {
            let text = fs::read_to_string(file.path()).unwrap();
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{what}: half a job: {text:?}");
        }
        self.user.jobs()
    }
}

#[test]
fn a_session_is_captured_whole_and_once_however_the_disk_fails_meanwhile() {
    for (beneath, when) in
        [("/data/capture", When::Before), ("/data/capture", When::Answered), ("/brain/.git/", When::Before)]
    {
        for (fault, kind) in FAULTS {
            let what = format!("{beneath} {when:?}, {kind}");
            let lab = Lab::new(fault, when);
            let transcript = lab.user.session("s-1");
            let before = lab.user.git(&["status", "--porcelain"]);
            if when == When::Before {
                lab.disk.arm(fault);
            }
            let words = ["brain", "capture", "--transcript", transcript.to_str().unwrap()];
            let done = lab.run(beneath, &words);
            lab.disk.disarm();
            let branches = lab.branches(&what);
            let jobs = lab.jobs(&what);
            if done.status.success() {
                // Git need not flush its files, so it may have succeeded. If a step failed, the job contains the error.
                let job = jobs.first().unwrap_or_else(|| panic!("{what}: {done:?}"));
                let is_done = job["state"] == "local";
                assert_eq!(branches, usize::from(is_done), "{what}: {job}");
                if !is_done {
                    assert_sentence(job["note"].as_str().unwrap_or_default(), &what);
                }
            } else {
                let said = String::from_utf8_lossy(&done.stderr);
                assert_sentence(&said, &what);
                assert!(said.contains(advice(fault)), "{what}: it says what to do: {said}");
                assert!(jobs.iter().all(|job| job["state"] != "local"), "{what}: {jobs:?}");
            }
            // The disk works again. The session gets no second job, and its capture continues.
            lab.run(beneath, &words);
            lab.run(beneath, &["brain", "jobs", "--retry"]);
            let again = lab.run(beneath, &["brain", "capture"]);
            let jobs = lab.jobs(&what);
            assert_eq!((jobs.len(), &jobs[0]["state"]), (1, &json!("local")), "{what}: {again:?} {jobs:?}");
            assert_eq!(lab.branches(&what), 1, "{what}");
            assert_eq!(lab.user.git(&["status", "--porcelain"]), before, "{what}: the checkout stays as it was");
            lab.user.git(&["fsck", "--strict"]);
        }
    }
}

/// The hook at the end of a session cannot report an error. It writes a complete job or none. If it wrote none, the
/// next event writes the job.
#[test]
fn the_hook_of_an_end_notes_a_whole_job_or_none() {
    for (fault, kind) in FAULTS {
        let lab = Lab::new(fault, When::Before);
        let transcript = lab.user.session("s-1");
        let end = lab.user.path("end.json");
        fs::write(&end, lab.user.end("s-1", &transcript).to_string()).unwrap();
        let hook = || {
            let mut hook = lab.command("/data/capture", &["hook"]);
            let done = hook.stdin(fs::File::open(&end).unwrap()).output().unwrap();
            assert!(done.status.success() && done.stdout.is_empty(), "{kind}: {done:?}");
        };
        lab.disk.arm(fault);
        hook();
        let noted = lab.jobs(kind).len();
        // The hook has no time to flush the file. So a failing flush (fault `f`) does not stop it.
        assert_eq!(noted, usize::from(fault == "f"), "{kind}");
        lab.disk.disarm();
        hook();
        assert_eq!(lab.jobs(kind).len(), 1, "{kind}");
        lab.user.nudge(&["brain", "capture"]);
        lab.user.until("s-1", "local");
        assert_eq!(lab.branches(kind), 1, "{kind}");
    }
}
