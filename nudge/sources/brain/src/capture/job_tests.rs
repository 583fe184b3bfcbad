//! Tests the files of jobs. Each end of a session makes one job, no matter which processes write, read and lock the
//! jobs.

use super::*;

fn jobs() -> (tempfile::TempDir, JobFolder, SessionEnd) {
    let place = tempfile::tempdir().unwrap();
    let jobs = JobFolder::open(&DataDir::new(place.path().join("data"))).unwrap();
    let transcript = place.path().join("s.jsonl");
    fs::write(&transcript, "one\n").unwrap();
    let end = SessionEnd { session: "s-1".into(), transcript, cwd: None };
    (place, jobs, end)
}

#[test]
fn two_hooks_tell_of_one_end_and_a_session_may_go_on() {
    let (_place, jobs, end) = jobs();
    let note = || jobs.note_end(&end, Path::new("/brain"), 5).unwrap();
    assert_eq!(note().unwrap().id, "s-1");
    assert_eq!(note(), None);
    fs::write(&end.transcript, "one\ntwo\n").unwrap();
    let second = note().unwrap();
    assert_eq!((second.id.as_str(), second.from, second.to), ("s-1.2", 4, 8));
    assert_eq!(note(), None);
    assert_eq!(jobs.read_all().len(), 2);
    assert!(jobs.has_unfinished_since(6) && !jobs.has_unfinished_since(5));
}

#[test]
fn many_at_once_make_one() {
    let (_place, jobs, end) = jobs();
    let made = std::thread::scope(|scope| {
        let note_end = || jobs.note_end(&end, Path::new("/brain"), 5).unwrap().is_some();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(note_end)).collect();
        all.into_iter().filter(|_| true).map(|handle| handle.join().unwrap()).filter(|made| *made).count()
    });
    assert_eq!(made, 1);
    let left: Vec<_> = fs::read_dir(jobs.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["s-1.json"], "nothing else is left behind");
}

#[test]
fn one_process_holds_a_job() {
    let (_place, jobs, end) = jobs();
    jobs.note_end(&end, Path::new("/brain"), 5).unwrap();
    let mut held = jobs.lock_job("s-1").unwrap().unwrap();
    assert!(jobs.lock_job("s-1").unwrap().is_none());
    held.save_state(JobState::Empty, Some("nothing")).unwrap();
    drop(held);
    assert_eq!(jobs.lock_job("s-1").unwrap().unwrap().job.note.as_deref(), Some("nothing"));
    assert!(!jobs.has_unfinished_since(i64::MAX));
    assert!(jobs.lock_job("none").unwrap().is_none());
}

#[test]
fn names_are_those_of_files() {
    let end = |session: &str, file: &str| SessionEnd { session: session.into(), transcript: file.into(), cwd: None };
    assert_eq!(name(&end("a-B_1", "/x.jsonl")), "a-B_1");
    assert_eq!(name(&end("../a", "/rollout-1.jsonl")), "rollout-1");
    assert_eq!(name(&end("", "/a b.jsonl")).len(), 32);
}

#[test]
fn what_is_no_job_is_none() {
    let (_place, jobs, _) = jobs();
    for (id, text) in [("a", ""), ("b", "{}"), ("c", "[1"), ("d", "{\"id\":\"e\"}")] {
        fs::write(jobs.job_path(id), text).unwrap();
        assert_eq!(jobs.read(id), None, "{id}");
    }
    assert_eq!(jobs.read_all(), []);
}
