//! Jobs: one file for the end of one session, in a folder of this user's. Whoever works on one holds its lock, and
//! writes it anew after every step, so that another process goes on where one was killed.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::foreign::{self, Links};
use nudge_core::source::DataDir;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::gate::{Rejected, Related};
use super::transcript::Agent;
use crate::folder::hex;

/// The folder of the jobs, in that of the sources' files.
const FOLDER: &str = "capture";
/// Longest file of a job, and most jobs that are kept.
const MAX_BYTES: u64 = 4 << 20;
const MAX_JOBS: usize = 500;
/// How often a job is tried.
pub const MAX_TRIES: u32 = 3;
/// Most ends of one session.
const MAX_ENDS: usize = 100;

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Models are still to be asked.
    Waiting,
    /// It is known what is to be written.
    Asked,
    /// There is a commit.
    Committed,
    /// There is a branch.
    Branched,
    /// The branch is at the remote.
    Pushed,
    /// There is a pull request.
    Proposed,
    /// The branch is at the remote, and nobody could make a pull request.
    Remote,
    /// The branch is here alone.
    Local,
    /// Nothing was worth keeping.
    Empty,
    /// It was too short, or in a project that is not to be captured.
    Skipped,
    /// It was given up.
    Failed,
}

impl State {
    /// Whether nothing is left to do.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Proposed | Self::Remote | Self::Local | Self::Empty | Self::Skipped | Self::Failed)
    }
}

/// A file that is to be written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    pub id: String,
    pub title: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub domain: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The unit that it adds to, in the place of a file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<String>,
    /// Empty once it is in the repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// Where it was written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
}

/// What a call of a model cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    pub engine: String,
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The name of its file.
    pub id: String,
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    pub transcript: PathBuf,
    /// The part of the transcript that it is about, in bytes.
    pub from: u64,
    pub to: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The folder of the brain.
    pub brain: PathBuf,
    pub created: Millis,
    pub state: State,
    #[serde(default)]
    pub tries: u32,
    #[serde(default)]
    pub tried_at: Millis,
    /// Why it stands as it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Requests that were answered, and what they cost.
    #[serde(default)]
    pub parts_done: usize,
    #[serde(default)]
    pub calls: Vec<Cost>,
    #[serde(default)]
    pub withheld: usize,
    #[serde(default)]
    pub units: Vec<Draft>,
    #[serde(default)]
    pub rejected: Vec<Rejected>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
}

impl Job {
    fn new(id: String, session: &str, end: &SessionEnd, (from, to): (u64, u64), brain: &Path, now: Millis) -> Self {
        Self {
            id,
            session: session.to_owned(),
            agent: None,
            transcript: end.transcript.clone(),
            from,
            to,
            cwd: end.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
            brain: brain.to_owned(),
            created: now,
            state: State::Waiting,
            tries: 0,
            tried_at: 0,
            note: None,
            parts_done: 0,
            calls: Vec::new(),
            withheld: 0,
            units: Vec::new(),
            rejected: Vec::new(),
            branch: None,
            base: None,
            commit: None,
            pull_request: None,
        }
    }
}

/// The end of a session, as a client tells it.
#[derive(Debug, Clone)]
pub struct SessionEnd {
    /// The client's name of the session; empty when it is not known.
    pub session: String,
    /// The file that the client keeps of it.
    pub transcript: PathBuf,
    /// The folder that the agent worked in.
    pub cwd: Option<PathBuf>,
}

/// The jobs of a user.
#[derive(Debug, Clone)]
pub struct Jobs(PathBuf);

impl Jobs {
    /// Those in the folder of the sources' files, which is made.
    ///
    /// # Errors
    /// As [`DataDir::create`].
    pub fn open(data: &DataDir) -> Result<Self> {
        DataDir::new(data.path().join(FOLDER)).create().map(Self)
    }

    /// The folder, for files that last as long as some work.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Notes the end of a session. `None` where its transcript has nothing that no job is about.
    ///
    /// # Errors
    /// `E_NOT_FOUND` without a transcript; `E_UNAVAILABLE` when the file cannot be written.
    pub fn note(&self, end: &SessionEnd, brain: &Path, now: Millis) -> Result<Option<Job>> {
        let to = length(&end.transcript)?;
        let session = name(end);
        let (mut from, mut number) = (0, 1);
        while number <= MAX_ENDS {
            let id = if number == 1 { session.clone() } else { format!("{session}.{number}") };
            if let Some(known) = self.read(&id) {
                // Two hooks may tell of one end.
                if known.to >= to {
                    return Ok(None);
                }
                (from, number) = (known.to, number + 1);
                continue;
            }
            let job = Job::new(id, &session, end, (from, to), brain, now);
            match self.write(&job, true) {
                Ok(()) => return Ok(Some(job)),
                // Another hook was faster, and what it wrote is read next; a file that is no job stays where it is.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number += usize::from(self.read(&job.id).is_none());
                }
                Err(error) => return Err(self.unwritable(&error)),
            }
        }
        Err(Error::unavailable("This session has ended too often to be captured again."))
    }

    /// Reads a job.
    pub fn read(&self, id: &str) -> Option<Job> {
        let text = foreign::read_text(&self.file(id), Links::Refused, MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok().filter(|job: &Job| job.id == id)
    }

    /// Every job, the oldest first.
    pub fn all(&self) -> Vec<Job> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let ids = names.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()));
        let mut jobs: Vec<_> = ids.filter_map(|id| self.read(&id)).collect();
        jobs.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.id.cmp(&b.id)));
        jobs
    }

    /// Whether there is anything to do that nobody has touched since then.
    pub fn are_left(&self, since: Millis) -> bool {
        self.all().iter().any(|job| !job.state.is_done() && job.created.max(job.tried_at) < since)
    }

    /// Takes a job for this process, as it stands now. `None` when another one has it.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when its lock cannot be opened.
    pub fn take(&self, id: &str) -> Result<Option<Held<'_>>> {
        let lock = File::options().create(true).truncate(false).write(true).open(self.0.join(format!("{id}.lock")));
        let lock = lock.map_err(|error| self.unwritable(&error))?;
        match lock.try_lock() {
            Ok(()) => Ok(self.read(id).map(|job| Held { jobs: self, job, _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(self.unwritable(&error)),
        }
    }

    /// Forgets the oldest jobs that are done, where there are many.
    pub fn tidy(&self) {
        let all = self.all();
        let done = all.iter().filter(|job| job.state.is_done());
        for job in done.take(all.len().saturating_sub(MAX_JOBS)) {
            if matches!(self.take(&job.id), Ok(Some(_))) {
                let _ = fs::remove_file(self.file(&job.id));
                let _ = fs::remove_file(self.0.join(format!("{}.lock", job.id)));
            }
        }
    }

    fn file(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    /// Writes a job whole, or not at all.
    fn write(&self, job: &Job, is_new: bool) -> io::Result<()> {
        let temporary = self.0.join(format!(".{}.tmp", uuid::Uuid::now_v7().simple()));
        let write = || {
            let mut options = File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&temporary)?;
            serde_json::to_writer(&mut file, job)?;
            file.flush()?;
            // The hook of a session's end does not wait for a disk: only the steps that cost something do.
            if !is_new {
                file.sync_all()?;
            }
            let place = self.file(&job.id);
            if is_new { fs::hard_link(&temporary, place) } else { fs::rename(&temporary, place) }
        };
        let written = write();
        if is_new || written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn unwritable(&self, error: &io::Error) -> Error {
        Error::unavailable(format!("The jobs in {} cannot be written ({error}); make room there.", self.0.display()))
    }
}

/// A job that this process works on.
pub struct Held<'a> {
    jobs: &'a Jobs,
    pub job: Job,
    _lock: File,
}

impl Held<'_> {
    /// Keeps it as it stands.
    ///
    /// # Errors
    /// `E_UNAVAILABLE`.
    pub fn keep(&self) -> Result<()> {
        self.jobs.write(&self.job, false).map_err(|error| self.jobs.unwritable(&error))
    }

    /// Lets a job that was given up be tried again, from where it was. One that is done stays so.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn again(&mut self) -> Result<()> {
        let job = &mut self.job;
        job.state = match job.state {
            State::Failed if job.commit.is_some() => State::Committed,
            State::Failed => {
                job.units.clear();
                job.rejected.clear();
                job.parts_done = 0;
                State::Waiting
            }
            State::Local => State::Branched,
            State::Remote => State::Pushed,
            state if state.is_done() => return Ok(()),
            state => state,
        };
        (job.tries, job.tried_at) = (0, 0);
        self.keep()
    }

    /// Keeps it in a state that it has come to.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn step(&mut self, state: State, note: Option<&str>) -> Result<()> {
        self.job.state = state;
        self.job.note = note.map(str::to_owned);
        if state.is_done() {
            // What is in the repository, or was not wanted, need not lie here too.
            self.job.units.iter_mut().for_each(|unit| unit.body.clear());
        }
        self.keep()
    }
}

fn length(path: &Path) -> Result<u64> {
    let there = path.metadata().ok().filter(fs::Metadata::is_file).map(|meta| meta.len());
    let none = || Error::not_found(format!("There is no transcript {}; name the file of a session.", path.display()));
    there.ok_or_else(none)
}

/// The name of a session's jobs: the client's, where it can be the name of a file.
fn name(end: &SessionEnd) -> String {
    let is_name = |text: &str| {
        (1..=80).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let file = end.transcript.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match [end.session.as_str(), file].into_iter().find(|text| is_name(text)) {
        Some(name) => name.to_owned(),
        None => hex(&Sha256::digest(end.transcript.to_string_lossy().as_bytes()))[..32].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs() -> (tempfile::TempDir, Jobs, SessionEnd) {
        let place = tempfile::tempdir().unwrap();
        let jobs = Jobs::open(&DataDir::new(place.path().join("data"))).unwrap();
        let transcript = place.path().join("s.jsonl");
        fs::write(&transcript, "one\n").unwrap();
        let end = SessionEnd { session: "s-1".into(), transcript, cwd: None };
        (place, jobs, end)
    }

    #[test]
    fn two_hooks_tell_of_one_end_and_a_session_may_go_on() {
        let (_place, jobs, end) = jobs();
        let note = || jobs.note(&end, Path::new("/brain"), 5).unwrap();
        assert_eq!(note().unwrap().id, "s-1");
        assert_eq!(note(), None);
        fs::write(&end.transcript, "one\ntwo\n").unwrap();
        let second = note().unwrap();
        assert_eq!((second.id.as_str(), second.from, second.to), ("s-1.2", 4, 8));
        assert_eq!(note(), None);
        assert_eq!(jobs.all().len(), 2);
        assert!(jobs.are_left(6) && !jobs.are_left(5));
    }

    #[test]
    fn many_at_once_make_one() {
        let (_place, jobs, end) = jobs();
        let made = std::thread::scope(|scope| {
            let one = || jobs.note(&end, Path::new("/brain"), 5).unwrap().is_some();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().filter(|_| true).map(|one| one.join().unwrap()).filter(|made| *made).count()
        });
        assert_eq!(made, 1);
        let left: Vec<_> = fs::read_dir(jobs.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["s-1.json"], "nothing else is left behind");
    }

    #[test]
    fn one_process_holds_a_job() {
        let (_place, jobs, end) = jobs();
        jobs.note(&end, Path::new("/brain"), 5).unwrap();
        let mut held = jobs.take("s-1").unwrap().unwrap();
        assert!(jobs.take("s-1").unwrap().is_none());
        held.step(State::Empty, Some("nothing")).unwrap();
        drop(held);
        assert_eq!(jobs.take("s-1").unwrap().unwrap().job.note.as_deref(), Some("nothing"));
        assert!(!jobs.are_left(i64::MAX));
        assert!(jobs.take("none").unwrap().is_none());
    }

    #[test]
    fn names_are_those_of_files() {
        let end =
            |session: &str, file: &str| SessionEnd { session: session.into(), transcript: file.into(), cwd: None };
        assert_eq!(name(&end("a-B_1", "/x.jsonl")), "a-B_1");
        assert_eq!(name(&end("../a", "/rollout-1.jsonl")), "rollout-1");
        assert_eq!(name(&end("", "/a b.jsonl")).len(), 32);
    }

    #[test]
    fn what_is_no_job_is_none() {
        let (_place, jobs, _) = jobs();
        for (id, text) in [("a", ""), ("b", "{}"), ("c", "[1"), ("d", "{\"id\":\"e\"}")] {
            fs::write(jobs.file(id), text).unwrap();
            assert_eq!(jobs.read(id), None, "{id}");
        }
        assert_eq!(jobs.all(), []);
    }
}
