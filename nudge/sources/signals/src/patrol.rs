//! `nudge signals deacon`: asks agents that have work but show no activity, and reports those that do not answer.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::source::CommandHost;
use nudge_core::wire;
use nudge_os::beneath::HeldFolder;
use nudge_os::lock::{FileLock, LockPatience, LockRefusal};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::AgentId;
use crate::deacon::{Deacon, DueAction, QuestionEnd as Change};
use crate::folder::{self, OldFile};
use crate::hook;
use crate::mail::EscalationMail;
use crate::method::{AGENT_ID, state_for};
use crate::news::FollowedFolders;
use crate::signal::{Signal, SignalDraft, SignalType};
use crate::stamp;
use crate::state::{StateDir, StateFolder, unusable_error};

/// The folder of the deacon in a state directory, with its state and its lock.
const DEACON: &str = "deacon";
/// The file of the deacon's state.
const KNOWN: &str = "known.json";
/// The most bytes that the deacon reads of a state file. The state of a thousand agents takes a third of them.
const MAX_BYTES: u64 = 1 << 20;
/// The shortest and the longest interval that a caller may set.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_hours(24));
/// The delay of a look, in milliseconds, above which the deacon assumes that the clock jumped or the machine slept.
const LATE_MS: Millis = 10_000;

/// Params of `nudge signals deacon`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeaconParams {
    /// Sender. Absent: `NUDGE_AGENT_ID`, else `witness`.
    #[serde(default, deserialize_with = "wire::given")]
    from: Option<String>,
    /// The mails' reader. Absent: `mayor`.
    #[serde(default, deserialize_with = "wire::given")]
    mayor: Option<String>,
    /// How long an agent may be quiet, and how long it may take to answer: `90s`, `5m`. Absent: 60s.
    #[serde(default, deserialize_with = "wire::given")]
    interval: Option<String>,
    /// Intervals of single agents: `polecat-alpha=5m`.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    agent_interval: Vec<String>,
    /// Agents' context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    context: ContextSpec,
}

/// The intervals of the agents, in milliseconds.
struct PatrolIntervals {
    usual: Millis,
    own: BTreeMap<AgentId, Millis>,
}

impl PatrolIntervals {
    fn new(usual: Option<&str>, own: &[String]) -> Result<Self> {
        let own = own.iter().map(|entry| {
            let (agent, interval) = entry.split_once('=').ok_or_else(|| {
                Error::invalid("`agent_interval` must be AGENT=INTERVAL, such as polecat-alpha=5m.")
                    .about("agent_interval")
            })?;
            Ok((AgentId::new("agent_interval", agent)?, interval_ms("agent_interval", interval)?))
        });
        Ok(Self { usual: interval_ms("interval", usual.unwrap_or("60s"))?, own: own.collect::<Result<_>>()? })
    }

    fn find_interval(&self, agent: &AgentId) -> Millis {
        self.own.get(agent).copied().unwrap_or(self.usual)
    }

    fn find_shortest(&self) -> Millis {
        self.own.values().copied().fold(self.usual, Millis::min)
    }
}

fn interval_ms(field: &str, text: &str) -> Result<Millis> {
    let read = humantime::parse_duration(text).ok().filter(|read| (INTERVALS.0..=INTERVALS.1).contains(read));
    let read = read.and_then(|read| Millis::try_from(read.as_millis()).ok());
    read.ok_or_else(|| {
        Error::invalid(format!("`{field}` must be a time from 100ms to 24h, such as 90s or 5m.")).about(field)
    })
}

/// Runs until it is stopped.
pub fn run_deacon(params: &serde_json::value::RawValue, host: &CommandHost<'_>) -> Result<()> {
    let DeaconParams { from, mayor, interval, agent_interval, context } =
        serde_json::from_str(params.get()).map_err(|error| Error::invalid(format!("{error}.")))?;
    let context = context.build()?;
    let state = state_for(&context)?;
    let own = from.as_deref().or_else(|| context.env(AGENT_ID).filter(|name| !name.is_empty())).unwrap_or("witness");
    let own = AgentId::new("from", own)?;
    let mayor = AgentId::new("mayor", mayor.as_deref().unwrap_or("mayor"))?;
    let intervals = PatrolIntervals::new(interval.as_deref(), &agent_interval)?;
    let look = Duration::from_millis(intervals.find_shortest().unsigned_abs() / 4);
    let mut news = FollowedFolders::new(&host.stop);
    let mut patrol = DeaconPatrol::open(state, own, mayor, intervals)?;
    let started =
        json!({"event": "started", "from": patrol.own, "mayor": patrol.mayor, "state_dir": patrol.state.path()});
    let line =
        format!("{} asks the agents of {}; mails go to {}", patrol.own, patrol.state.path().display(), patrol.mayor);
    (host.say)(&line, &started);
    loop {
        news.follow_folders(patrol.list_folders().iter().map(PathBuf::as_path));
        patrol.look_once(host.clock.now(), host.say);
        if news.wait_for_news(look) {
            break;
        }
    }
    (host.say)("stopped; open questions are kept for the next deacon", &json!({"event": "stopped"}));
    Ok(())
}

/// Reads the open questions of a state directory's deacon. Each item has the agent, the time of the question, and true
/// if a mail has reported the silence.
///
/// # Errors
/// `E_INVALID` for a link that leads out of the state directory.
pub fn read_questions(state: &StateDir) -> Result<Vec<(AgentId, Millis, bool)>> {
    let Some(folder) = state.open_folder(&[DEACON])? else { return Ok(Vec::new()) };
    let known = read(&folder.held);
    Ok(known
        .iter_questions()
        .map(|(agent, question)| (agent.clone(), question.asked_at, question.is_reported))
        .collect())
}

/// Reads the deacon's state file. A missing or damaged file gives an empty state; then the deacon asks each agent
/// again.
fn read(folder: &HeldFolder) -> Deacon {
    let text = folder::read_text(folder, KNOWN, MAX_BYTES).ok();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// A running deacon with its files and its state.
struct DeaconPatrol {
    state: StateDir,
    own: AgentId,
    mayor: AgentId,
    intervals: PatrolIntervals,
    folder: StateFolder,
    /// The deacon holds this lock while it runs, so that a state directory has only one deacon.
    _only_one: FileLock,
    known: Deacon,
    /// The state that the deacon last wrote to the file.
    kept: Deacon,
    last_look: Option<Millis>,
    /// The last error of each subject. The deacon reports an error only when it differs from the last one.
    troubles: HashMap<String, String>,
}

type Say<'a> = &'a (dyn Fn(&str, &Value) + Sync);

impl DeaconPatrol {
    /// Starts the deacon of a state directory.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when another deacon runs, or the folder cannot be used.
    fn open(state: StateDir, own: AgentId, mayor: AgentId, intervals: PatrolIntervals) -> Result<Self> {
        let folder = state.make_folder(&[DEACON])?;
        let lock = folder.held.take_lock(LockPatience::AtOnce).map_err(|refusal| match refusal {
            LockRefusal::Held => {
                Error::unavailable(format!("A deacon runs for {} already; end that one first.", state.path().display()))
            }
            refusal => unusable_error(&folder.path, &refusal.into()),
        })?;
        let known = read(&folder.held);
        let kept = known.clone();
        let (last_look, troubles) = (None, HashMap::new());
        Ok(Self { state, own, mayor, intervals, folder, _only_one: lock, known, kept, last_look, troubles })
    }

    /// Lists the folders that the deacon must watch for changes.
    fn list_folders(&self) -> Vec<PathBuf> {
        let hooks = self.state.open_folder(&[hook::HOOKS]);
        [hooks, self.state.of_agent(&self.own)]
            .into_iter()
            .filter_map(|found| found.ok().flatten().map(|folder| folder.path))
            .collect()
    }

    /// Reads the files once, and does the due actions.
    fn look_once(&mut self, now: Millis, say: Say<'_>) {
        self.mind_the_clock(now);
        let seen = self.observe_files(now, say);
        self.tell_trouble("state", seen, say);
        for (agent, due) in self.known.find_due(now, |agent| self.intervals.find_interval(agent)) {
            let done = match due {
                DueAction::Ask { work, active_at } => self.ask_agent(&agent, &work, active_at, now, say),
                DueAction::Report { work, asked_at, mail_at } => {
                    self.report_agent(&agent, &work, asked_at, mail_at, say)
                }
            };
            self.tell_trouble(agent.as_str(), done, say);
        }
        let kept = self.write_state();
        self.tell_trouble("known", kept, say);
    }

    /// Corrects the times if this look comes much too late, or before the last look. Then the clock jumped, and the
    /// jump is no silence of an agent.
    fn mind_the_clock(&mut self, now: Millis) {
        let passed = now - self.last_look.replace(now).unwrap_or(now);
        if !(0..=LATE_MS + self.intervals.find_shortest()).contains(&passed) {
            self.known.shift_times(passed);
        }
        self.known.drop_times_ahead(now);
    }

    fn observe_files(&mut self, now: Millis, say: Say<'_>) -> Result<()> {
        let mut hooks = hook::read_hooks(&self.state)?;
        // The deacon asks neither itself nor the mayor.
        hooks.retain(|agent, _| *agent != self.own && *agent != self.mayor);
        let inbox = self.state.inbox(&self.own).read(now)?.and_then(Result::ok);
        let news = self.known.observe(now, &hooks, inbox.as_ref());
        // Writes the state before it prints, because the program that reads the output may end this process.
        self.write_state()?;
        for (agent, change) in news {
            let (event, words) = match change {
                Change::Answered => ("answered", "has answered"),
                Change::Touched => ("active", "is active again"),
                Change::Idle => ("idle", "has no active work any more"),
            };
            say(&format!("{agent} {words}"), &json!({"event": event, "agent": agent}));
        }
        Ok(())
    }

    fn ask_agent(&mut self, agent: &AgentId, work: &str, active_at: Millis, now: Millis, say: Say<'_>) -> Result<()> {
        let order = self.ask_or_wait(agent, work, active_at, now).inspect_err(|_| self.known.not_asked(agent, now))?;
        self.known.note_asked(agent, now);
        self.write_state()?;
        match order {
            None => say(&format!("{agent} shows no activity; it is asked"), &json!({"event": "asked", "agent": agent})),
            Some(Signal { kind, from, .. }) => say(
                &format!("{agent} shows no activity; the {} from {from} still waits for it", kind.as_str()),
                &json!({"event": "waits", "agent": agent, "type": kind, "from": from}),
            ),
        }
        Ok(())
    }

    /// Asks an agent, or returns the order that the agent has not seen yet. A question must not replace an order,
    /// because an agent sees only the latest signal. The deacon reports an agent that does not react to the order in
    /// the same way.
    fn ask_or_wait(&self, agent: &AgentId, work: &str, active_at: Millis, now: Millis) -> Result<Option<Signal>> {
        let inbox = self.state.inbox(agent);
        let there = inbox.read(now)?.and_then(Result::ok);
        if let Some(order) = there.filter(|signal| is_order_since(signal, active_at, now)) {
            return Ok(Some(order));
        }
        let work = if work.is_empty() { String::new() } else { format!(" ({work})") };
        let message = format!("You have hooked work{work}. Are you working on it?");
        let kind = SignalType::HealthCheck;
        inbox.send(SignalDraft { from: self.own.clone(), kind, message, requires_response: true }, now)?;
        Ok(None)
    }

    fn report_agent(
        &mut self,
        agent: &AgentId,
        work: &str,
        asked_at: Millis,
        mail_at: Millis,
        say: Say<'_>,
    ) -> Result<()> {
        self.known.note_reported(agent, mail_at, false);
        self.write_state()?;
        EscalationMail::new(agent, &self.own, &self.mayor, work, asked_at, mail_at).send(&self.state)?;
        self.known.note_reported(agent, mail_at, true);
        self.write_state()?;
        let mayor = &self.mayor;
        say(
            &format!("{agent} does not answer; a mail went to {mayor}"),
            &json!({"event": "escalated", "agent": agent, "to": mayor, "at": rfc3339::format_time(mail_at)}),
        );
        Ok(())
    }

    /// Writes the state to its file if the state has changed.
    fn write_state(&mut self) -> Result<()> {
        if self.known == self.kept {
            return Ok(());
        }
        let text = serde_json::to_string(&self.known).map_err(|error| Error::unavailable(format!("{error}.")))?;
        folder::write(&self.folder.held, KNOWN, &(text + "\n"), OldFile::Replaced)
            .map_err(|error| unusable_error(&self.folder.path.join(KNOWN), &error))?;
        self.kept = self.known.clone();
        Ok(())
    }

    /// Reports an error if it is new for its subject. An error never ends the deacon.
    fn tell_trouble(&mut self, about: &str, done: Result<()>, say: Say<'_>) {
        let Err(error) = done else {
            self.troubles.remove(about);
            return;
        };
        if self.troubles.get(about).is_none_or(|told| told != error.message()) {
            say(error.message(), &json!({"event": "trouble", "about": about, "message": error.message()}));
            self.troubles.insert(about.to_owned(), error.message().to_owned());
        }
    }
}

/// Returns true for an order that came after the agent's last activity. An order with a time in the future does not
/// count.
fn is_order_since(signal: &Signal, active_at: Millis, now: Millis) -> bool {
    use SignalType::{Abort, HealthCheck, NudgeResponse, PriorityChange, StallWarning, SyncRequest};
    let is_order = match signal.kind {
        Abort | PriorityChange | SyncRequest => true,
        HealthCheck | StallWarning | NudgeResponse => false,
    };
    is_order && stamp::parse_past(&signal.timestamp, now).is_some_and(|sent| sent > active_at)
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
