//! Capture: when a session ends, knowledge that is useful next year and in another repository becomes files on a
//! branch, with a request that a person reviews. The brain has none of it before a person merges the branch.
//!
//! The hook of a session's end notes a job and starts a worker that outlives the client. The worker reads the
//! transcript, asks a model, puts its proposals through the gates, and commits the rest. `nudge brain review` merges
//! the branch when there is no remote.

mod deny;
mod gate;
mod job;
mod near;
mod own;
mod prompt;
pub(crate) mod pull_request;
mod repo;
pub mod transcript;
mod view;
mod wording;
mod work;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use nudge_core::error::{Error, Result};
use nudge_core::service::Method;
use nudge_core::settings::Values;
use nudge_core::source::{CommandHost, Host};
use nudge_core::table::schema;
use nudge_core::text::one_line;
use nudge_core::walk::{Found, Plan, RuleSources, walk};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::config::Config;
use crate::source::{Brains, VARIABLE, at_home};
use job::{Job, State};
use repo::Repo;
use work::{PREFIX, Preview, Worker};

pub use deny::is_denied;
pub use job::{Jobs, SessionEnd};

/// `nudge brain capture`
pub const CAPTURE: Method = Method::new(
    "nudge.brain.capture",
    "Capture sessions",
    "Make knowledge of sessions that have ended, on a branch of the brain for you to review: of one transcript, or of all that wait.",
    schema::<Capture>,
)
.command("capture-session");

/// `nudge brain jobs`
pub const JOBS: Method = Method::new(
    "nudge.brain.jobs",
    "List captures",
    "What became of captured sessions, and what each cost.",
    schema::<List>,
)
.reads();

/// `nudge brain review`
pub const REVIEW: Method = Method::new(
    "nudge.brain.review",
    "Review captures",
    "Show what a captured session would bring into the brain, and with --merge bring it in.",
    schema::<Review>,
)
.argument("branch");

/// Params of `nudge brain capture`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
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
pub struct List {
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
pub struct Review {
    /// The branch. Absent: the oldest that waits.
    #[serde(default, deserialize_with = "wire::given")]
    branch: Option<String>,
    /// Merge it into the checkout.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    merge: bool,
}

/// The brain that this process's user has named.
pub fn root(settings: &Values) -> Option<PathBuf> {
    let named = std::env::var(VARIABLE).ok().filter(|root| !root.is_empty());
    let root = named.unwrap_or_else(|| settings.text("brain.root").to_owned());
    Some(at_home(&root)).filter(|root| root.is_absolute())
}

fn named(settings: &Values) -> Result<PathBuf> {
    let none = || Error::unavailable("There is no brain: `nudge brain use DIR` names the one that sessions go to.");
    root(settings).ok_or_else(none)
}

/// Runs `nudge brain capture`.
///
/// # Errors
/// The reason why the capture cannot begin; the result of each session stands in its job.
pub fn capture(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let Capture { transcript, dry_run, detach, after } = wire::params(params)?;
    if detach && !dry_run {
        return (host.behind)(&["capture", "--after", "60"]);
    }
    let lent = (host.open)()?;
    let (settings, data) = (lent.settings.clone(), lent.data.clone());
    let jobs = Jobs::open(&data)?;
    let brains = Brains::open(lent);
    let (clock, program, stop) = (&*host.clock, host.program, &host.stop);
    let denied = (host.list)("capture_deny")?;
    let worker = Worker { jobs: &jobs, brains: &brains, settings: &settings, clock, program, stop, denied: &denied };
    let now = host.clock.now();
    let Some(transcript) = transcript else {
        let cutoff = after.map_or(i64::MAX, |seconds| now.saturating_sub(seconds.saturating_mul(1_000)));
        let open =
            jobs.all().into_iter().filter(|job| !job.state.is_done() && (job.tries == 0 || job.tried_at < cutoff));
        let mut count = 0;
        for job in open {
            count += if dry_run {
                show(&worker, job, host)?;
                1
            } else {
                usize::from(one(&worker, &job.id, host)?)
            };
        }
        if count == 0 {
            (host.say)("no session waits", &json!({"jobs": []}));
        }
        return Ok(());
    };
    let transcript = std::path::absolute(&transcript).map_err(|_| Error::invalid("`transcript` must be a file."))?;
    let end = SessionEnd { session: String::new(), transcript, cwd: None };
    let root = named(&settings)?;
    let noted = if dry_run { jobs.would_note(&end, &root, now)? } else { jobs.note(&end, &root, now)? };
    let Some(job) = noted else {
        return Err(Error::conflict("This session was captured already; `nudge brain jobs` says what became of it."));
    };
    if dry_run {
        return show(&worker, job, host);
    }
    one(&worker, &job.id, host)?;
    Ok(())
}

/// Works on one job, and says how it went; whether this process had it.
fn one(worker: &Worker<'_>, id: &str, host: &CommandHost<'_>) -> Result<bool> {
    let Some(mut held) = worker.jobs.take(id)? else { return Ok(false) };
    if held.job.state.is_done() {
        return Ok(false);
    }
    worker.work(&mut held)?;
    tell(&held.job, host);
    Ok(true)
}

/// Prints the requests of a job, byte for byte, and sends none.
fn show(worker: &Worker<'_>, mut job: Job, host: &CommandHost<'_>) -> Result<()> {
    let id = one_line(&job.id, 40);
    let Preview { requests, done, withheld, blocked } = worker.preview(&mut job)?;
    let of = done + requests.len();
    for (at, bytes) in requests.iter().enumerate() {
        if at > 0 {
            let line = format!("{id}: the titles of what the requests before bring are added to the next one");
            (host.say)(&line, &json!({"job": job.id, "note": line}));
        }
        let event = json!({"job": job.id, "request": done + at + 1, "of": of, "bytes": bytes, "withheld": withheld});
        (host.show)(bytes, &event);
    }
    if let Some(why) = blocked {
        (host.say)(&format!("{id}: nothing would be sent. {why}"), &json!({"job": job.id, "sent": false, "note": why}));
    }
    Ok(())
}

/// Prints the state of a job.
fn tell(job: &Job, host: &CommandHost<'_>) {
    let state = match job.state {
        State::Waiting | State::Asked | State::Committed | State::Branched | State::Pushed => "waits",
        State::Proposed => "proposed",
        State::Local | State::Remote => "to be reviewed",
        State::Reviewed => "reviewed",
        State::Empty => "nothing worth keeping",
        State::Skipped => "skipped",
        State::Failed => "failed",
    };
    let mut parts = vec![format!("{}: {state}", one_line(&job.id, 40))];
    if !job.units.is_empty() {
        parts.push(counted(job.units.len(), "unit"));
    }
    if !job.rejected.is_empty() {
        let gates: std::collections::BTreeSet<_> = job.rejected.iter().map(|one| one.gate.as_str()).collect();
        let gates = gates.into_iter().collect::<Vec<_>>().join(", ");
        parts.push(format!("{} refused ({gates})", job.rejected.len()));
    }
    if !job.calls.is_empty() {
        let usd = job.calls.iter().filter_map(|call| call.usd).sum::<f64>();
        let cost = if usd > 0.0 { format!(" for {usd:.4} USD") } else { String::new() };
        parts.push(counted(job.calls.len(), "call") + &cost);
    }
    let place = job.pull_request.as_ref().or(job.branch.as_ref());
    let more = [place, job.note.as_ref()].into_iter().flatten().cloned();
    let line = std::iter::once(parts.join(", ")).chain(more).collect::<Vec<_>>().join("; ");
    (host.say)(&line, &json!(job));
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Runs `nudge brain jobs`.
///
/// # Errors
/// The reason why the jobs cannot be read.
pub fn jobs(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let List { scan, retry } = wire::params(params)?;
    let lent = (host.open)()?;
    let jobs = Jobs::open(&lent.data)?;
    let mut repos = BTreeMap::new();
    for job in jobs.all() {
        let end = review_of(&job, &mut repos);
        if (retry || end.is_some())
            && let Some(mut held) = jobs.take(&job.id)?
        {
            match end {
                Some(note) => held.step(State::Reviewed, Some(note))?,
                None => held.again()?,
            }
        }
    }
    let all = jobs.all();
    for job in &all {
        tell(job, host);
    }
    if scan {
        for transcript in transcripts() {
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

/// How the review of a branch has ended, where it has.
fn review_of(job: &Job, repos: &mut BTreeMap<PathBuf, Option<Repo>>) -> Option<&'static str> {
    let (branch, commit) = (job.branch.as_deref()?, job.commit.as_deref()?);
    if !matches!(job.state, State::Local | State::Remote | State::Proposed) {
        return None;
    }
    let repo = repos.entry(job.brain.clone()).or_insert_with(|| Repo::open(&job.brain).ok()).as_ref()?;
    if repo.is_merged(commit, job.target.as_deref()) {
        return Some("Its branch is merged.");
    }
    repo.commit_of(&format!("refs/heads/{branch}")).is_none().then_some("Its branch was removed.")
}

/// The transcripts that clients keep on this machine.
fn transcripts() -> Vec<PathBuf> {
    const MAX: usize = 10_000;
    let home = std::env::home_dir().unwrap_or_default();
    let at = |variable: &str, usual: &str| std::env::var_os(variable).map_or_else(|| home.join(usual), PathBuf::from);
    let folders = [at("CLAUDE_CONFIG_DIR", ".claude").join("projects"), at("CODEX_HOME", ".codex").join("sessions")];
    let counts = |path: &Path, is_folder: bool| is_folder || path.extension().is_some_and(|ending| ending == "jsonl");
    let plan = Plan { reads_rules: false, max_depth: 4, counts: &counts, ..Plan::default() };
    let mut found = Vec::new();
    for folder in folders {
        walk(&folder, &RuleSources::default(), &plan, &mut |entry| {
            if let Found::File(file) = entry
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
/// `E_NOT_FOUND` when no branch waits; else the reason why a branch cannot be shown or merged.
pub fn review(params: &RawValue, host: &CommandHost<'_>) -> Result<()> {
    let Review { branch, merge } = wire::params(params)?;
    let Host { settings, .. } = (host.open)()?;
    let root = named(&settings)?;
    let repo = Repo::open(&root)?;
    let prefix = Config::of(&root).capture_prefix.filter(|prefix| repo::is_ref(&format!("{prefix}x")));
    let waiting = repo.branches(&prefix.unwrap_or_else(|| PREFIX.to_owned()))?;
    let none = || Error::not_found("No captured session waits to be reviewed.");
    let branch = match branch {
        Some(name) => waiting.iter().find(|known| **known == name).ok_or_else(|| {
            nudge_core::near::unknown("branch", &name, &waiting.iter().map(String::as_str).collect::<Vec<_>>())
        })?,
        None => waiting.first().ok_or_else(none)?,
    };
    if merge {
        repo.merge(branch)?;
        (host.say)(&format!("✔ {branch} is merged"), &json!({"branch": branch, "merged": true}));
        return Ok(());
    }
    let diff = repo.diff(branch)?;
    (host.show)(&diff, &json!({"branch": branch, "diff": diff}));
    let more = if waiting.len() > 1 { format!("; {} wait", waiting.len()) } else { String::new() };
    let next = format!("{branch}: `nudge brain review {branch} --merge` brings it in{more}");
    (host.say)(&next, &json!({"branches": waiting}));
    Ok(())
}
