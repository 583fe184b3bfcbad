//! Manages capture jobs. Each end of a session makes one job, which is a file in a private folder of the user. The
//! process that works on a job holds the job's lock, and rewrites the file after every step. So another process can
//! continue after a kill.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_capture::gate::{ProposedRelation, RejectedProposal};
use nudge_capture::transcript::TranscriptClient;
use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::source::DataDir;
use nudge_core::text::to_hex;
use nudge_os::beneath::{DiskSync, FileRights, HeldFolder};
use nudge_os::dir::advise_on_disk;
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::llm::ModelCost;

/// The folder of the jobs, inside the data folder of the sources.
const FOLDER: &str = "capture";
/// The most bytes of a job's file. `MAX_JOBS` is the number of jobs that are kept.
const MAX_BYTES: u64 = 4 << 20;
const MAX_JOBS: usize = 500;
/// The most tries of one job.
pub const MAX_TRIES: u32 = 3;
/// The most jobs of one session, because each end of the session makes a job.
const MAX_ENDS: usize = 100;

/// The state of a job: the last step that is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The model has not answered all requests yet.
    Waiting,
    /// The units to write are known.
    Asked,
    /// The commit exists.
    Committed,
    /// The branch exists.
    Branched,
    /// The remote has the branch.
    Pushed,
    /// The pull request exists.
    Proposed,
    /// The remote has the branch, but no pull request could be made.
    Remote,
    /// Only the local repository has the branch.
    Local,
    /// A person has merged or removed the branch.
    Reviewed,
    /// The model proposed nothing worth keeping.
    Empty,
    /// The session was too short, or named a folder that must not be captured.
    Skipped,
    /// Nudge does not try the job again.
    Failed,
}

impl JobState {
    /// Returns true when no step is left.
    pub const fn is_done(self) -> bool {
        !matches!(self, Self::Waiting | Self::Asked | Self::Committed | Self::Branched | Self::Pushed)
    }
}

/// A unit that the job will write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitDraft {
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
    pub related: Vec<ProposedRelation>,
    /// The id of the unit that this text extends; then the text gets no file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updates: Option<String>,
    /// The text. It is removed when the job ends, unless the job failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The path of the written file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
}

/// A capture job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptureJob {
    /// The id of the job: the name of the job's file without its ending.
    pub id: String,
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<TranscriptClient>,
    pub transcript: PathBuf,
    /// The range of the transcript that the job covers, in bytes: from `from` to `to`.
    pub from: u64,
    pub to: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The folder of the brain.
    pub brain: PathBuf,
    pub created: Millis,
    pub state: JobState,
    /// The state in which the job failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<JobState>,
    #[serde(default)]
    pub tries: u32,
    #[serde(default)]
    pub tried_at: Millis,
    /// The reason for the present state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The number of requests that the model has answered. `calls` holds the cost of each call.
    #[serde(default)]
    pub parts_done: usize,
    #[serde(default)]
    pub calls: Vec<ModelCost>,
    #[serde(default)]
    pub withheld: usize,
    #[serde(default)]
    pub units: Vec<UnitDraft>,
    #[serde(default)]
    pub rejected: Vec<RejectedProposal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The branch into which the pull request merges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
}

impl CaptureJob {
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
            state: JobState::Waiting,
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
            target: None,
            failed_in: None,
            commit: None,
            pull_request: None,
        }
    }
}

/// The end of a session, as the client's hook reports it.
#[derive(Debug, Clone)]
pub struct SessionEnd {
    /// The id that the client gives the session; empty when it is unknown.
    pub session: String,
    /// The file in which the client keeps the session.
    pub transcript: PathBuf,
    /// The folder in which the agent worked.
    pub cwd: Option<PathBuf>,
}

/// The folder that holds the jobs of a user.
#[derive(Debug, Clone)]
pub struct JobFolder(PathBuf);

impl JobFolder {
    /// Opens the folder of the jobs inside the data folder. Makes it if it does not exist.
    ///
    /// # Errors
    /// The errors of [`DataDir::create_folder`].
    pub fn open(data: &DataDir) -> Result<Self> {
        DataDir::new(data.path().join(FOLDER)).create_folder().map(Self)
    }

    /// Returns the path of the folder. The folder also holds temporary files of the captures.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a job for the end of a session. Returns `None` when earlier jobs cover the whole transcript already.
    ///
    /// # Errors
    /// `E_NOT_FOUND` without a transcript; `E_UNAVAILABLE` when the job's file cannot be written.
    pub fn note_end(&self, end: &SessionEnd, brain: &Path, now: Millis) -> Result<Option<CaptureJob>> {
        self.with_next(end, brain, now, |job| self.write(job, true))
    }

    /// Returns the job that [`note_end`](Self::note_end) would write, without writing it.
    ///
    /// # Errors
    /// The errors of [`note_end`](Self::note_end).
    pub fn would_note(&self, end: &SessionEnd, brain: &Path, now: Millis) -> Result<Option<CaptureJob>> {
        self.with_next(end, brain, now, |_| Ok(()))
    }

    fn with_next(
        &self,
        end: &SessionEnd,
        brain: &Path,
        now: Millis,
        keep: impl Fn(&CaptureJob) -> io::Result<()>,
    ) -> Result<Option<CaptureJob>> {
        let to = file_length(&end.transcript)?;
        let session = name(end);
        let (mut from, mut number) = (0, 1);
        while number <= MAX_ENDS {
            let id = if number == 1 { session.clone() } else { format!("{session}.{number}") };
            if let Some(known) = self.read(&id) {
                // Two hooks may report the same end of a session.
                if known.to >= to {
                    return Ok(None);
                }
                (from, number) = (known.to, number + 1);
                continue;
            }
            let job = CaptureJob::new(id, &session, end, (from, to), brain, now);
            match keep(&job) {
                Ok(()) => return Ok(Some(job)),
                // Another hook wrote this job first; the loop reads the job next. If the file is not a job, the loop
                // tries the next number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number += usize::from(self.read(&job.id).is_none());
                }
                Err(error) => return Err(self.write_error(&error)),
            }
        }
        Err(Error::unavailable("This session has ended too often to be captured again."))
    }

    /// Reads a job; `None` if it does not exist or cannot be read.
    pub fn read(&self, id: &str) -> Option<CaptureJob> {
        let text = foreign::read_text(&self.job_path(id), LinkPolicy::Refused, MAX_BYTES).ok()?;
        serde_json::from_str(&text).ok().filter(|job: &CaptureJob| job.id == id)
    }

    /// Returns all jobs, the oldest first.
    pub fn read_all(&self) -> Vec<CaptureJob> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let ids = names.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned()));
        let mut jobs: Vec<_> = ids.filter_map(|id| self.read(&id)).collect();
        jobs.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.id.cmp(&b.id)));
        jobs
    }

    /// Returns true when there is an unfinished job that no process has touched since `since`.
    pub fn has_unfinished_since(&self, since: Millis) -> bool {
        self.read_all().iter().any(|job| !job.state.is_done() && job.created.max(job.tried_at) < since)
    }

    /// Locks a job for this process and reads it. Returns `None` when another process holds the lock, or when the job
    /// cannot be read.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the job's lock cannot be opened.
    pub fn lock_job(&self, id: &str) -> Result<Option<LockedJob<'_>>> {
        match FileLock::take(&self.lock_path(id), LockKind::Exclusive, LockPatience::AtOnce) {
            Ok(lock) => Ok(self.read(id).map(|job| LockedJob { jobs: self, job, _lock: lock })),
            Err(LockRefusal::Held) => Ok(None),
            Err(refusal) => Err(self.write_error(&refusal.into())),
        }
    }

    /// Removes the oldest finished jobs when there are too many. Also removes the temporary files of killed processes.
    pub fn remove_old(&self) {
        self.remove_leftovers();
        let all = self.read_all();
        let done = all.iter().filter(|job| job.state.is_done());
        for job in done.take(all.len().saturating_sub(MAX_JOBS)) {
            if matches!(self.lock_job(&job.id), Ok(Some(_))) {
                let _ = fs::remove_file(self.job_path(&job.id));
                let _ = fs::remove_file(self.lock_path(&job.id));
            }
        }
    }

    /// Removes old temporary files, whose names begin with a dot. No engine runs longer than half of `OLD`, so these
    /// files are not in use.
    fn remove_leftovers(&self) {
        const OLD: Duration = Duration::from_hours(2);
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let is_old = |meta: &fs::Metadata| meta.modified().ok()?.elapsed().ok().map(|age| age > OLD);
            let Ok(meta) = entry.metadata() else { continue };
            if entry.file_name().to_string_lossy().starts_with('.') && is_old(&meta) == Some(true) {
                let path = entry.path();
                let _ = if meta.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            }
        }
    }

    fn job_path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    fn lock_path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.lock"))
    }

    /// Writes the whole file of a job. A reader never sees a part of it.
    fn write(&self, job: &CaptureJob, is_new: bool) -> io::Result<()> {
        let (text, name) = (serde_json::to_vec(job)?, format!("{}.json", job.id));
        // A new job is not flushed to the disk, because the hook must not wait for the disk. Later steps are flushed,
        // because to repeat them costs money or time.
        let sync = if is_new { DiskSync::Unflushed } else { DiskSync::Flushed };
        let folder = HeldFolder::open(&self.0)?;
        let fresh = folder.write_fresh(&text, FileRights::Private, sync)?;
        if is_new { fresh.take_free_name(&name) } else { fresh.replace_file(&name) }
    }

    fn write_error(&self, error: &io::Error) -> Error {
        let advice = advise_on_disk(error).unwrap_or("look at its disk");
        Error::unavailable(format!("The jobs in {} cannot be written ({error}); {advice}.", self.0.display()))
    }
}

/// A job that this process has locked and works on.
pub struct LockedJob<'a> {
    jobs: &'a JobFolder,
    pub job: CaptureJob,
    _lock: FileLock,
}

impl LockedJob<'_> {
    /// Saves the present state of the job.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be written.
    pub fn save(&self) -> Result<()> {
        self.jobs.write(&self.job, false).map_err(|error| self.jobs.write_error(&error))
    }

    /// Lets a job be tried again from the last step that worked, if the job failed, or if its branch was not pushed or
    /// has no pull request. A job that has finished in any other way stays finished.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn allow_retry(&mut self) -> Result<()> {
        let job = &mut self.job;
        job.state = match job.state {
            // The job keeps the answers that it has, so these requests are not sent again.
            JobState::Failed => job.failed_in.take().unwrap_or(JobState::Waiting),
            JobState::Local => JobState::Branched,
            JobState::Remote => JobState::Pushed,
            state if state.is_done() => return Ok(()),
            state => state,
        };
        (job.tries, job.tried_at) = (0, 0);
        self.save()
    }

    /// Sets a new state and saves the job.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn save_state(&mut self, state: JobState, note: Option<&str>) -> Result<()> {
        if state == JobState::Failed {
            self.job.failed_in = Some(self.job.state);
        }
        self.job.state = state;
        self.job.note = note.map(str::to_owned);
        if state.is_done() && state != JobState::Failed {
            // The texts are in the repository or were not wanted, so the job keeps no copy.
            self.job.units.iter_mut().for_each(|unit| unit.body.clear());
        }
        self.save()
    }
}

fn file_length(path: &Path) -> Result<u64> {
    let there = path.metadata().ok().filter(fs::Metadata::is_file).map(|meta| meta.len());
    let none = || Error::not_found(format!("There is no transcript {}; name the file of a session.", path.display()));
    there.ok_or_else(none)
}

/// Returns the name for the jobs of a session: the client's id of the session, if that is valid as a file name.
fn name(end: &SessionEnd) -> String {
    let is_name = |text: &str| {
        (1..=80).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let file = end.transcript.file_stem().and_then(|stem| stem.to_str());
    match [Some(end.session.as_str()), file].into_iter().flatten().find(|text| is_name(text)) {
        Some(name) => name.to_owned(),
        None => to_hex(&Sha256::digest(end.transcript.to_string_lossy().as_bytes()))[..32].to_owned(),
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
