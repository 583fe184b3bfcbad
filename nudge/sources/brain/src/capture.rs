//! Captures sessions: turns the knowledge of a finished session into files on a branch, with a pull request that a
//! person reviews. Only knowledge that is useful next year and in another repository is captured. The brain gets the
//! files when a person merges the branch.
//!
//! At the end of a session, the hook writes a job and starts a worker process that outlives the client. The worker
//! reads the transcript, asks a model, checks the model's proposals, and commits those that pass. If there is no
//! remote, `nudge brain review` merges the branch.

mod deny;
mod job;
mod near;
pub(crate) mod pull_request;
mod repo;
mod work;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use nudge_core::error::{Error, Result};
use nudge_core::service::MethodSpec;
use nudge_core::settings::SettingValues;
use nudge_core::source::{CommandHost, SourceHost};
use nudge_core::table::build_schema;
use nudge_core::text::one_line;
use nudge_core::walk::{RuleSources, WalkEntry, WalkPlan, walk_folder};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::config::BrainConfig;
use crate::source::{BrainSource, VARIABLE, at_home};
use job::{CaptureJob, JobState};
use repo::BrainRepo;
use work::{CaptureWorker, JobPreview, PREFIX};

pub use deny::is_denied;
pub use job::{JobFolder, SessionEnd};

/// `nudge brain capture`
pub const CAPTURE: MethodSpec = MethodSpec::new(
    "nudge.brain.capture",
    "Capture sessions",
    "Make knowledge of sessions that have ended, on a branch of the brain for you to review: of one transcript, or of all that wait.",
    build_schema::<BrainCaptureParams>,
)
.command("capture-session");

/// `nudge brain jobs`
pub const JOBS: MethodSpec = MethodSpec::new(
    "nudge.brain.jobs",
    "List captures",
    "What became of captured sessions, and what each cost.",
    build_schema::<CaptureJobsParams>,
)
.read_only();

/// `nudge brain review`
pub const REVIEW: MethodSpec = MethodSpec::new(
    "nudge.brain.review",
    "Review captures",
    "Show what a captured session would bring into the brain, and with --merge bring it in.",
    build_schema::<CaptureReviewParams>,
)
.argument("branch");

/// Params of `nudge brain capture`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrainCaptureParams {
    /// File of the session. Absent: every session that waits.
    #[serde(default, deserialize_with = "wire::given")]
    transcript: Option<String>,
    /// Print the exact texts that a model would be sent; send none.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    dry_run: bool,
    /// Work in the background.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    detach: bool,
    /// Only sessions that were not tried for so many seconds.
    #[serde(default, deserialize_with = "wire::given")]
    after: Option<i64>,
}

/// Params of `nudge brain jobs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureJobsParams {
    /// List transcripts of this machine that no job is about, too.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    scan: bool,
    /// Let those that were given up be tried again.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    retry: bool,
}

/// Params of `nudge brain review`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureReviewParams {
    /// The branch. Absent: the oldest that waits.
    #[serde(default, deserialize_with = "wire::given")]
    branch: Option<String>,
    /// Merge it into the checkout.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    merge: bool,
}

/// Returns the folder of the brain that the user names, by the environment variable or by the setting.
pub fn find_brain_root(settings: &SettingValues) -> Option<PathBuf> {
    let named = std::env::var(VARIABLE).ok().filter(|root| !root.is_empty());
    let root = named.unwrap_or_else(|| settings.get_text("brain.root").to_owned());
    Some(at_home(&root)).filter(|root| root.is_absolute())
}

fn require_brain_root(settings: &SettingValues) -> Result<PathBuf> {
    let none = || Error::unavailable("There is no brain: `nudge brain use DIR` names the one that sessions go to.");
    find_brain_root(settings).ok_or_else(none)
}

/// Runs `nudge brain capture`.
///
/// # Errors
/// The reason why the capture cannot begin. The result of each session is in the session's job.
pub fn run_capture(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let BrainCaptureParams { transcript, dry_run, detach, after } = wire::parse_params(params)?;
    if detach && !dry_run {
        return (host.behind)(&["capture", "--after", "60"]);
    }
    let lent = (host.open)()?;
    let (settings, data) = (lent.settings.clone(), lent.data.clone());
    let jobs = JobFolder::open(&data)?;
    let brains = BrainSource::open(lent);
    let (clock, program, stop) = (&*host.clock, host.program, &host.stop);
    let denied = (host.list)("capture_deny")?;
    let worker =
        CaptureWorker { jobs: &jobs, brains: &brains, settings: &settings, clock, program, stop, denied: &denied };
    let now = host.clock.now();
    let Some(transcript) = transcript else {
        let cutoff = after.map_or(i64::MAX, |seconds| now.saturating_sub(seconds.saturating_mul(1_000)));
        let open =
            jobs.read_all().into_iter().filter(|job| !job.state.is_done() && (job.tries == 0 || job.tried_at < cutoff));
        let mut count = 0;
        for job in open {
            count += if dry_run {
                print_requests(&worker, job, host)?;
                1
            } else {
                usize::from(work_on_job(&worker, &job.id, host)?)
            };
        }
        if count == 0 {
            (host.say)("no session waits", &json!({"jobs": []}));
        }
        return Ok(());
    };
    let transcript = std::path::absolute(&transcript)
        .map_err(|_| Error::invalid("`transcript` must be a file.").about("transcript"))?;
    let end = SessionEnd { session: String::new(), transcript, cwd: None };
    let root = require_brain_root(&settings)?;
    let noted = if dry_run { jobs.would_note(&end, &root, now)? } else { jobs.note_end(&end, &root, now)? };
    let Some(job) = noted else {
        return Err(Error::conflict("This session was captured already; `nudge brain jobs` says what became of it."));
    };
    if dry_run {
        return print_requests(&worker, job, host);
    }
    work_on_job(&worker, &job.id, host)?;
    Ok(())
}

/// Works on one job and prints the result. Returns false when another process holds the job, or when the job is done.
fn work_on_job(worker: &CaptureWorker<'_>, id: &str, host: &CommandHost<'_>) -> Result<bool> {
    let Some(mut held) = worker.jobs.lock_job(id)? else { return Ok(false) };
    if held.job.state.is_done() {
        return Ok(false);
    }
    worker.run_job(&mut held)?;
    print_job(&held.job, host);
    Ok(true)
}

/// Prints the open requests of a job exactly as they would be sent, and sends none.
fn print_requests(worker: &CaptureWorker<'_>, mut job: CaptureJob, host: &CommandHost<'_>) -> Result<()> {
    let id = one_line(&job.id, 40);
    let JobPreview { requests, done, withheld, blocked } = worker.preview_job(&mut job)?;
    let total = done + requests.len();
    for (index, bytes) in requests.iter().enumerate() {
        if index > 0 {
            let line = format!("{id}: the titles of what the requests before bring are added to the next one");
            (host.say)(&line, &json!({"job": job.id, "note": line}));
        }
        let event =
            json!({"job": job.id, "request": done + index + 1, "of": total, "bytes": bytes, "withheld": withheld});
        (host.show)(bytes, &event);
    }
    if let Some(why) = blocked {
        (host.say)(&format!("{id}: nothing would be sent. {why}"), &json!({"job": job.id, "sent": false, "note": why}));
    }
    Ok(())
}

/// Prints the state of a job in one line.
fn print_job(job: &CaptureJob, host: &CommandHost<'_>) {
    let state = match job.state {
        JobState::Waiting | JobState::Asked | JobState::Committed | JobState::Branched | JobState::Pushed => "waits",
        JobState::Proposed => "proposed",
        JobState::Local | JobState::Remote => "to be reviewed",
        JobState::Reviewed => "reviewed",
        JobState::Empty => "nothing worth keeping",
        JobState::Skipped => "skipped",
        JobState::Failed => "failed",
    };
    let mut parts = vec![format!("{}: {state}", one_line(&job.id, 40))];
    if !job.units.is_empty() {
        parts.push(format_count(job.units.len(), "unit"));
    }
    if !job.rejected.is_empty() {
        let gates: std::collections::BTreeSet<_> = job.rejected.iter().map(|proposal| proposal.gate.as_str()).collect();
        let gates = gates.into_iter().collect::<Vec<_>>().join(", ");
        parts.push(format!("{} refused ({gates})", job.rejected.len()));
    }
    if !job.calls.is_empty() {
        let usd = job.calls.iter().filter_map(|call| call.usd).sum::<f64>();
        let cost = if usd > 0.0 { format!(" for {usd:.4} USD") } else { String::new() };
        parts.push(format_count(job.calls.len(), "call") + &cost);
    }
    let place = job.pull_request.as_ref().or(job.branch.as_ref());
    let more = [place, job.note.as_ref()].into_iter().flatten().cloned();
    let line = std::iter::once(parts.join(", ")).chain(more).collect::<Vec<_>>().join("; ");
    (host.say)(&line, &json!(job));
}

fn format_count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Runs `nudge brain jobs`.
///
/// # Errors
/// The reason why the jobs cannot be read.
pub fn run_jobs(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let CaptureJobsParams { scan, retry } = wire::parse_params(params)?;
    let lent = (host.open)()?;
    let jobs = JobFolder::open(&lent.data)?;
    let mut repos = BTreeMap::new();
    for job in jobs.read_all() {
        let end = review_of(&job, &mut repos);
        if (retry || end.is_some())
            && let Some(mut held) = jobs.lock_job(&job.id)?
        {
            match end {
                Some(note) => held.save_state(JobState::Reviewed, Some(note))?,
                None => held.allow_retry()?,
            }
        }
    }
    let all = jobs.read_all();
    for job in &all {
        print_job(job, host);
    }
    if scan {
        for transcript in find_transcripts() {
            if !all.iter().any(|job| job.transcript == transcript) {
                let path = transcript.to_string_lossy();
                let line = format!("no job: {path}; `nudge brain capture --transcript` makes one");
                (host.say)(&line, &json!({"transcript": path}));
            }
        }
    } else if all.is_empty() {
        (host.say)("no session was captured; `nudge init --capture` switches it on", &json!({"jobs": []}));
    }
    Ok(())
}

/// Returns how the review of a job's branch ended; `None` while it has not ended.
fn review_of(job: &CaptureJob, repos: &mut BTreeMap<PathBuf, Option<BrainRepo>>) -> Option<&'static str> {
    let (branch, commit) = (job.branch.as_deref()?, job.commit.as_deref()?);
    if !matches!(job.state, JobState::Local | JobState::Remote | JobState::Proposed) {
        return None;
    }
    let repo = repos.entry(job.brain.clone()).or_insert_with(|| BrainRepo::open(&job.brain).ok()).as_ref()?;
    if repo.is_merged(commit, job.target.as_deref()) {
        return Some("Its branch is merged.");
    }
    repo.commit_of(&format!("refs/heads/{branch}")).is_none().then_some("Its branch was removed.")
}

/// Finds the transcripts that coding agents keep on this machine.
fn find_transcripts() -> Vec<PathBuf> {
    const MAX: usize = 10_000;
    // Without a home directory there is no default folder. The current folder must not be used instead, because it may
    // belong to a stranger.
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let folder_of = |variable: &str, usual: &str| {
        std::env::var_os(variable).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(usual)))
    };
    let folders = [("CLAUDE_CONFIG_DIR", ".claude", "projects"), ("CODEX_HOME", ".codex", "sessions")];
    let folders =
        folders.into_iter().filter_map(|(variable, usual, inner)| Some(folder_of(variable, usual)?.join(inner)));
    let counts = |path: &Path, is_folder: bool| is_folder || path.extension().is_some_and(|ending| ending == "jsonl");
    let plan = WalkPlan { reads_rules: false, max_depth: 4, counts: &counts, ..WalkPlan::default() };
    let mut found = Vec::new();
    for folder in folders {
        walk_folder(&folder, &RuleSources::default(), &plan, &mut |entry| {
            if let WalkEntry::File(file) = entry
                && file.kind.is_file()
            {
                found.push(file.path.to_owned());
            }
            if found.len() < MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    found.sort();
    found
}

/// Runs `nudge brain review`.
///
/// # Errors
/// `E_NOT_FOUND` when no branch waits for a review; else the reason why the branch cannot be shown or merged.
pub fn run_review(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let CaptureReviewParams { branch, merge } = wire::parse_params(params)?;
    let SourceHost { settings, .. } = (host.open)()?;
    let root = require_brain_root(&settings)?;
    let repo = BrainRepo::open(&root)?;
    let prefix = BrainConfig::load(&root).capture_prefix.filter(|prefix| repo::is_ref(&format!("{prefix}x")));
    let waiting = repo.list_unmerged(&prefix.unwrap_or_else(|| PREFIX.to_owned()))?;
    let none = || Error::not_found("No captured session waits to be reviewed.");
    let branch = match branch {
        Some(name) => waiting.iter().find(|known| **known == name).ok_or_else(|| {
            nudge_core::near::refuse_unknown("branch", &name, &waiting.iter().map(String::as_str).collect::<Vec<_>>())
        })?,
        None => waiting.first().ok_or_else(none)?,
    };
    if merge {
        repo.merge_branch(branch)?;
        (host.say)(&format!("✔ {branch} is merged"), &json!({"branch": branch, "merged": true}));
        return Ok(());
    }
    let diff = repo.diff_branch(branch)?;
    (host.show)(&diff, &json!({"branch": branch, "diff": diff}));
    let more = if waiting.len() > 1 { format!("; {} wait", waiting.len()) } else { String::new() };
    let next = format!("{branch}: `nudge brain review {branch} --merge` brings it in{more}");
    (host.say)(&next, &json!({"branches": waiting}));
    Ok(())
}
