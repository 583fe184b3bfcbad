//! Runs the steps of a job: asks models, decides which files to write, commits, pushes, makes the pull request. Each
//! step is saved before the next one begins, and can be repeated. So a killed process leaves nothing half done.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nudge_capture::gate::{self, GateFacts, MAX_UNITS, RejectedProposal, UnitProposal};
use nudge_capture::prompt;
use nudge_capture::transcript::{self, Transcript};
use nudge_capture::view::{self, RenderedSession, extract_spoken, normalize_text};
use nudge_core::clock::{Clock, Millis, rfc3339};
use nudge_core::error::{Error, ErrorKind, Result};
use nudge_core::settings::SettingValues;
use nudge_core::source::StopFlag;
use nudge_os::foreign::{self, LinkPolicy};
use serde_json::{Value, json};

use super::deny::is_denied;
use super::job::{CaptureJob, JobFolder, JobState, LockedJob, MAX_TRIES, UnitDraft};
use super::near::{UnitLookup, same_draft};
use super::pull_request::{self, PullRequest};
use super::repo::{self, BrainRepo, BranchBase, CommitFile, NewCommit};
use crate::config::BrainConfig;
use crate::llm::{self, EngineResources, LanguageModel, ModelRequest};
use crate::source::BrainSource;
use crate::write::{file_of, new_id, path_of};

/// The most bytes of a transcript that are read. A longer transcript is read from its end.
const MAX_TRANSCRIPT: u64 = 64 << 20;
/// The most bytes of a unit's file.
const MAX_UNIT: u64 = 1 << 20;
/// The most names that are tried for a branch or a file.
const MAX_NAMES: usize = 100;

/// Everything that a worker needs.
pub struct CaptureWorker<'a> {
    pub jobs: &'a JobFolder,
    pub brains: &'a BrainSource,
    pub settings: &'a SettingValues,
    pub clock: &'a dyn Clock,
    pub program: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Is set when this process must end. The finished steps stay saved.
    pub stop: &'a StopFlag,
    /// The folders whose sessions are never sent to a model.
    pub denied: &'a [String],
}

/// The session in the form that is sent, or the reason why nothing is sent.
type Left = std::result::Result<RenderedSession, &'static str>;

/// The texts that a job would send to a model.
pub struct JobPreview {
    /// The requests that the model has not answered yet.
    pub requests: Vec<String>,
    /// The number of requests that the model has answered.
    pub done: usize,
    pub withheld: usize,
    /// The reason why nothing would be sent now; `None` if the requests would be sent.
    pub blocked: Option<String>,
}

/// The failure of a step. `may_pass` is true when a later try may succeed.
struct StepFailure {
    error: Error,
    may_pass: bool,
}

impl From<Error> for StepFailure {
    fn from(error: Error) -> Self {
        // Only `E_UNAVAILABLE` may pass. An error of a text or a setting would occur again.
        Self { may_pass: error.kind() == ErrorKind::Unavailable, error }
    }
}

impl CaptureWorker<'_> {
    /// Runs the remaining steps of a job, and saves the result in the job.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the job itself cannot be saved.
    pub fn run_job(&self, held: &mut LockedJob<'_>) -> Result<()> {
        held.job.tries += 1;
        held.job.tried_at = self.clock.now();
        if held.job.tries > MAX_TRIES {
            let end = given_up(held.job.state);
            return held.save_state(end, Some("It was given up: whoever worked on it was ended each time."));
        }
        held.save()?;
        let made = self.run_steps(held);
        self.jobs.remove_old();
        made
    }

    fn run_steps(&self, held: &mut LockedJob<'_>) -> Result<()> {
        while !held.job.state.is_done() && !self.stop.is_set() {
            let Err(StepFailure { error, may_pass }) = self.run_step(held) else { continue };
            if may_pass && held.job.tries < MAX_TRIES {
                held.job.note = Some(error.message().to_owned());
                return held.save();
            }
            held.save_state(given_up(held.job.state), Some(error.message()))?;
        }
        Ok(())
    }

    /// Runs the next step of a job, and saves the job.
    fn run_step(&self, held: &mut LockedJob<'_>) -> Result<(), StepFailure> {
        match held.job.state {
            JobState::Waiting => self.ask_models(held),
            JobState::Asked => self.commit_units(held),
            JobState::Committed => Self::create_branch(held),
            JobState::Branched => Self::push_branch(held),
            _ => self.create_pull_request(held),
        }
    }

    /// Returns the requests that this job would send now.
    ///
    /// # Errors
    /// The reason why the requests cannot be made.
    pub fn preview_job(&self, job: &mut CaptureJob) -> Result<JobPreview> {
        let none = |why: &str| JobPreview { requests: Vec::new(), done: 0, withheld: 0, blocked: Some(why.to_owned()) };
        if job.state != JobState::Waiting {
            return Ok(none("The model has answered already."));
        }
        let RenderedSession { parts, withheld, .. } = match self.render_session(job)? {
            Ok(view) => view,
            Err(why) => return Ok(none(why)),
        };
        let near = UnitLookup::open(self.brains, &job.brain)?;
        let engine = self.choose_engine(&job.brain);
        let text = |part: &String| {
            let ask = build_guarded_request(&near, &list_titles(job), part)?;
            Ok(engine.as_ref().map_or_else(|_| ask.to_sent_text(), |engine| engine.render_request(&ask)))
        };
        let requests = parts.iter().skip(job.parts_done).map(text).collect::<Result<_>>()?;
        let blocked = engine.as_ref().err().map(|error| error.message().to_owned());
        Ok(JobPreview { requests, done: job.parts_done, withheld, blocked })
    }

    /// Formats the session of a job for a model, or returns the reason why no model may be asked about it.
    fn render_session(&self, job: &mut CaptureJob) -> Result<Left> {
        // If the folder that the hook reported is denied, the transcript is not even read.
        let cwd = job.cwd.clone();
        if is_denied(self.denied, cwd.as_deref().map(Path::new)) {
            return Ok(Err(DENIED));
        }
        let transcript = read(job)?;
        if is_denied(self.denied, transcript.folders.iter().map(Path::new)) {
            return Ok(Err(DENIED));
        }
        if !view::is_worth_it(&transcript) {
            return Ok(Err("The session was too short to ask a model about."));
        }
        Ok(Ok(view::render_session(&transcript)))
    }

    /// Chooses the model to ask. First checks that the brain is in a repository: otherwise the answer to a paid request
    /// would be lost.
    fn choose_engine(&self, brain: &Path) -> Result<Box<dyn LanguageModel>> {
        BrainRepo::open(brain)?;
        llm::choose_engine(&EngineResources {
            settings: self.settings,
            program: self.program,
            folder: self.jobs.path(),
            stop: self.stop,
            most: Duration::MAX,
        })
    }

    fn ask_models(&self, held: &mut LockedJob<'_>) -> Result<(), StepFailure> {
        let RenderedSession { parts, withheld, left_out } = match self.render_session(&mut held.job)? {
            Ok(view) => view,
            Err(why) => return Ok(held.save_state(JobState::Skipped, Some(why))?),
        };
        held.job.withheld = withheld;
        let brain = held.job.brain.clone();
        let engine = self.choose_engine(&brain)?;
        let near = UnitLookup::open(self.brains, &brain)?;
        let most = BrainConfig::load(&brain).capture_units.unwrap_or(MAX_UNITS).min(MAX_UNITS);
        for part in parts.iter().skip(held.job.parts_done) {
            let ask = build_guarded_request(&near, &list_titles(&held.job), part)?;
            let answer = engine.complete(&ask).map_err(|fault| StepFailure {
                error: Error::unavailable(format!("No model was asked: {}.", fault.text)),
                may_pass: fault.may_pass,
            })?;
            held.job.calls.push(answer.cost);
            let Some((proposals, rejected)) = gate::read(&answer.value) else {
                held.save()?;
                let error = Error::unavailable("The model answered in another form than it was asked for.");
                return Err(StepFailure { error, may_pass: true });
            };
            held.job.rejected.extend(rejected);
            self.judge_proposals(&mut held.job, &near, part, proposals, most);
            held.job.parts_done += 1;
            held.save()?;
        }
        let note = (left_out > 0).then(|| format!("Its first {left_out} turns were not sent: it is too long."));
        let is_empty = held.job.units.is_empty() && held.job.rejected.iter().all(|proposal| proposal.text.is_none());
        let state = if is_empty { JobState::Empty } else { JobState::Asked };
        Ok(held.save_state(state, note.as_deref())?)
    }

    /// Checks each proposal, and adds it to the job as a draft or as a rejected proposal.
    fn judge_proposals(
        &self,
        job: &mut CaptureJob,
        near: &UnitLookup<'_>,
        part: &str,
        proposals: Vec<UnitProposal>,
        most: usize,
    ) {
        let (sent, project, home) =
            (normalize_text(&extract_spoken(part)), find_project_names(job.cwd.as_deref()), std::env::home_dir());
        for proposal in proposals {
            let drafts = &job.units;
            let same =
                |title: &str, body: &str| same_draft(drafts, title, body).or_else(|| near.find_same(title, body));
            let scene = GateFacts {
                sent: &sent,
                project: &project,
                home: home.as_deref(),
                has: &|id| near.has_unit(id),
                same: &same,
            };
            match gate::apply_gates(proposal, &scene) {
                Ok(proposal) if job.units.len() >= most => {
                    job.rejected.push(RejectedProposal::new(&proposal.title, "limit"));
                }
                Ok(proposal) => job.units.push(to_draft(proposal, new_id(self.clock.now()))),
                Err(mut rejected) => {
                    let unit_path = rejected.of.as_deref().and_then(|id| near.find_path(id));
                    let told = job.rejected.iter().filter(|earlier| earlier.text.is_some()).count();
                    // The job keeps the text of at most `MAX_UNITS` rejected proposals. It does not keep a text that
                    // the unit contains already.
                    let is_news = unit_path.as_ref().is_some_and(|path| {
                        let there = foreign::read_text(&job.brain.join(path), LinkPolicy::Refused, MAX_UNIT);
                        let holds = |text: &str| {
                            there.as_ref().is_ok_and(|there| normalize_text(there).contains(&normalize_text(text)))
                        };
                        told < MAX_UNITS && !rejected.text.as_deref().is_some_and(holds)
                    });
                    rejected.of = unit_path.or(rejected.of);
                    rejected.text = rejected.text.filter(|_| is_news);
                    job.rejected.push(rejected);
                }
            }
        }
    }

    fn commit_units(&self, held: &mut LockedJob<'_>) -> Result<(), StepFailure> {
        let job = &mut held.job;
        let repo = BrainRepo::open(&job.brain)?;
        let near = UnitLookup::open(self.brains, &job.brain)?;
        let config = BrainConfig::load(&job.brain);
        let BranchBase { name: target, commit: base } = repo.find_base(config.capture_base.as_deref())?;
        let mut files: Vec<CommitFile> = Vec::new();
        let time = rfc3339::format_time(job.created);
        let source = format!("session:{}", shorten_session(&job.session));
        for unit in &mut job.units {
            let file = build_addition(unit, &repo, base.as_deref(), &near, &files)
                .map_or_else(|| new(unit, &repo, base.as_deref(), &job.brain, &files, (&time, &source)), Ok)?;
            unit.path.clone_from(&file.path);
            // The new text of the file includes earlier additions to the same file, so it replaces the earlier entry.
            files.retain(|known| known.path != file.path);
            files.push(file);
        }
        // An addition to an existing file was checked as a proposal, and the rest of that file is in the repository
        // already. So only new files are checked here.
        for file in files.iter().filter(|file| !file.is_there) {
            view::refuse_secrets("A unit", &file.text)?;
        }
        let message = format!("{}\n\n{}", pull_request::format_title(job), pull_request::render_proposed_changes(job));
        view::refuse_secrets("The commit", &message)?;
        // The folder is new each time, because a killed process may have left a lock on the index in an earlier folder.
        let place = tempfile::Builder::new().prefix(".commit-").tempdir_in(self.jobs.path());
        let place = place.map_err(|error| Error::unavailable(format!("There is no room for an index ({error}).")))?;
        let index = place.path().join("index");
        let commit = NewCommit {
            base: base.as_deref(),
            files: &files,
            message: &message,
            unix_seconds: job.created / 1_000,
            index: &index,
        };
        job.commit = Some(repo.create_commit(&commit)?);
        (job.base, job.target) = (base, Some(target));
        let prefix = config.capture_prefix.filter(|prefix| repo::is_ref(&format!("{prefix}x")));
        let prefix = prefix.unwrap_or_else(|| PREFIX.to_owned());
        job.branch = Some(format!("{prefix}session-{}-{}", format_stamp(job.created), shorten_session(&job.session)));
        Ok(held.save_state(JobState::Committed, None)?)
    }

    fn create_branch(held: &mut LockedJob<'_>) -> Result<(), StepFailure> {
        let (repo, name, commit) = open_repo(&held.job)?;
        let names = (1..=MAX_NAMES).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
        for name in names {
            if repo.create_branch(&name, &commit)? {
                held.job.branch = Some(name);
                return Ok(held.save_state(JobState::Branched, None)?);
            }
        }
        Err(Error::conflict(format!("There are too many branches called {name}; remove some.")).into())
    }

    fn push_branch(held: &mut LockedJob<'_>) -> Result<(), StepFailure> {
        let (repo, name, commit) = open_repo(&held.job)?;
        if repo.remote().is_none() {
            return Ok(held.save_state(
                JobState::Local,
                Some("The brain has no remote; `nudge brain review` shows the branch."),
            )?);
        }
        repo.push_commit(&name, &commit)?;
        Ok(held.save_state(JobState::Pushed, None)?)
    }

    fn create_pull_request(&self, held: &mut LockedJob<'_>) -> Result<(), StepFailure> {
        let (repo, name, _) = open_repo(&held.job)?;
        let config = BrainConfig::load(&held.job.brain);
        let target = held.job.target.clone();
        let base = target.map_or_else(|| Ok(repo.find_base(config.capture_base.as_deref())?.name), Ok::<_, Error>)?;
        let (title, body) = (pull_request::format_title(&held.job), pull_request::render_body(&held.job));
        let request = PullRequest { repo: &repo, head: &name, base: &base, title, body };
        let made = request.create((self.program)("gh"))?;
        held.job.pull_request = Some(made);
        Ok(held.save_state(JobState::Proposed, None)?)
    }
}

/// Returns the last state of a job that Nudge does not try again. If the commit is on a branch, it can be reviewed even
/// when the remote refuses it.
const fn given_up(state: JobState) -> JobState {
    match state {
        JobState::Branched => JobState::Local,
        JobState::Pushed => JobState::Remote,
        _ => JobState::Failed,
    }
}

/// The default prefix of the names of capture branches.
pub const PREFIX: &str = "nugget/";

/// Opens the repository of a job. Returns the repository, and the job's branch and commit.
fn open_repo(job: &CaptureJob) -> Result<(BrainRepo, String, String), Error> {
    let lost = || Error::invalid("The job has lost its branch; `nudge brain jobs --retry` begins anew.");
    let (Some(name), Some(commit)) = (&job.branch, &job.commit) else { return Err(lost()) };
    Ok((BrainRepo::open(&job.brain)?, name.clone(), commit.clone()))
}

/// The reason for skipping a session that names a denied folder.
const DENIED: &str = "A folder that the session names is in `capture_deny`.";

/// Lists the titles of the units that earlier parts of the session have given.
fn list_titles(job: &CaptureJob) -> Vec<String> {
    job.units.iter().map(|unit| unit.title.clone()).collect()
}

/// Builds a request. The secret guard checks the whole request.
fn build_guarded_request(near: &UnitLookup<'_>, found: &[String], part: &str) -> Result<ModelRequest> {
    let mut known = near.find_near(part)?;
    // The name of a note may look like a credential. Then only this note is left out.
    known.retain(|unit| view::refuse_secrets("A note", &unit.to_line()).is_ok());
    let ask = prompt::build_request(&known, found, part);
    view::refuse_secrets("The request", &ask.to_sent_text())?;
    Ok(ask)
}

/// Reads the transcript of a job, and stores the client and the folder of the session in the job.
fn read(job: &mut CaptureJob) -> Result<Transcript> {
    let unreadable = |what: &str| Error::invalid(format!("The transcript {} {what}.", job.transcript.display()));
    let failed = |error: std::io::Error| unreadable(&format!("cannot be read ({error})"));
    let (mut file, _) = foreign::open_file(&job.transcript, LinkPolicy::Followed).map_err(failed)?;
    let from = job.from.max(job.to.saturating_sub(MAX_TRANSCRIPT));
    let bytes = read_bytes(&mut file, from, job.to - from.min(job.to)).map_err(failed)?;
    let transcript = transcript::read(&bytes).ok_or_else(|| unreadable("has no line that is known"))?;
    job.agent = Some(transcript.agent);
    if job.cwd.is_none() {
        job.cwd.clone_from(&transcript.cwd);
    }
    Ok(transcript)
}

fn read_bytes(file: &mut File, from: u64, count: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the names of a session's project: the name of its folder, and the name of the repository around it.
fn find_project_names(cwd: Option<&str>) -> Vec<String> {
    let Some(cwd) = cwd.map(Path::new) else { return Vec::new() };
    let top = cwd.ancestors().find(|folder| folder.join(".git").exists());
    let home = std::env::home_dir();
    let folders = [Some(cwd), top].into_iter().flatten().filter(|folder| home.as_deref() != Some(*folder));
    let mut names: Vec<_> = folders.filter_map(|folder| Some(folder.file_name()?.to_str()?.to_owned())).collect();
    names.dedup();
    names
}

fn to_draft(proposal: UnitProposal, id: String) -> UnitDraft {
    let UnitProposal { kind, title, body, domain, tags, confidence, related, updates, .. } = proposal;
    UnitDraft { id, title, kind, domain, tags, confidence, related, updates, body, path: String::new() }
}

/// Builds the file of the unit that a draft extends, with the addition at the end. Returns `None` when the draft does
/// not extend a unit.
fn build_addition(
    unit: &UnitDraft,
    repo: &BrainRepo,
    base: Option<&str>,
    near: &UnitLookup<'_>,
    files: &[CommitFile],
) -> Option<CommitFile> {
    let path = near.find_path(unit.updates.as_deref()?)?;
    let known = files.iter().find(|file| file.path == path).map(|file| file.text.clone());
    let text = known.or_else(|| repo.read_file(base?, &path))?;
    Some(CommitFile {
        text: format!("{}\n\n## {}\n\n{}\n", text.trim_end(), unit.title, unit.body),
        path,
        is_there: true,
    })
}

/// Builds a new file for a unit.
fn new(
    unit: &UnitDraft,
    repo: &BrainRepo,
    base: Option<&str>,
    root: &Path,
    files: &[CommitFile],
    (time, source): (&str, &str),
) -> Result<CommitFile> {
    let usual = path_of(&unit.domain, &unit.title, true);
    let is_free = |path: &String| {
        !files.iter().any(|file| file.path == *path)
            && !base.is_some_and(|base| repo.has_file(base, path))
            && root.join(path).symlink_metadata().is_err()
    };
    let stem = usual.strip_suffix(".md").unwrap_or(&usual);
    let mut names =
        (1..=MAX_NAMES).map(|number| if number == 1 { usual.clone() } else { format!("{stem}-{number}.md") });
    let path = names.find(is_free).ok_or_else(|| Error::conflict(format!("There are too many files like {usual}.")))?;
    let mut fields: Vec<(&str, Value)> = vec![
        ("id", json!(unit.id)),
        ("title", json!(unit.title)),
        ("type", json!(unit.kind)),
        ("domain", json!(unit.domain)),
    ];
    if !unit.tags.is_empty() {
        fields.push(("tags", json!(unit.tags)));
    }
    fields.extend(unit.confidence.map(|confidence| ("confidence", json!(confidence))));
    fields.push(("source", json!(source)));
    if !unit.related.is_empty() {
        fields.push(("related", json!(unit.related)));
    }
    fields.extend([("created", json!(time)), ("last_modified", json!(time))]);
    Ok(CommitFile { path, text: file_of(&unit.body, fields)?, is_there: false })
}

/// Returns the first letters and digits of a session's id.
fn shorten_session(session: &str) -> String {
    session.chars().filter(char::is_ascii_alphanumeric).take(8).collect::<String>().to_lowercase()
}

/// Formats a time for the name of a branch, such as `20261122T134329Z`.
fn format_stamp(time: Millis) -> String {
    let text = rfc3339::format_time(time);
    let digits: String = text.get(..19).unwrap_or(&text).chars().filter(|c| !matches!(c, '-' | ':')).collect();
    format!("{digits}Z")
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
