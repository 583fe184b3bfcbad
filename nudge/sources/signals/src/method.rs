//! The methods: their params and results.

use std::collections::BTreeMap;
use std::path::Path;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::context::{Context, ContextSpec};
use nudge_core::error::{Error, Result};
use nudge_core::service::{Caller, Method};
use nudge_core::table::{Row, Table, answer, schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::AgentId;
use crate::hook::{self, Hook};
use crate::offer::shown;
use crate::patrol;
use crate::signal::{Draft, Signal, SignalType};
use crate::source::Signals;
use crate::stamp;
use crate::state::StateDir;

/// The variable that names the state directory.
pub const STATE_DIR: &str = "NUDGE_STATE_DIR";
/// The variable that says which agent a process is.
pub const AGENT_ID: &str = "NUDGE_AGENT_ID";

/// The method that hooks name to the model.
pub const CHECK: &str = "nudge.signals.check";

pub static TABLE: Table<Signals> = Table(&[
    &Row {
        method: Method::new(
            "nudge.signals.send",
            "Send a signal",
            "Tell another agent one urgent thing, such as stop; it replaces the signal it had.",
            schema::<Send>,
        )
        .tool()
        .destructive()
        .inferred(),
        run: |signals, by, params| answer(params, |params| signals.send(by, params)),
    },
    &Row {
        method: Method::new(
            CHECK,
            "Check for a signal",
            "The signal for you, if it is newer than the one you saw last.",
            schema::<Check>,
        )
        .tool()
        .reads()
        .inferred(),
        run: |signals, _, params| answer(params, |params: Check| params.answer(signals.now())),
    },
    &Row {
        method: Method::new(
            "nudge.signals.respond",
            "Answer a signal",
            "Answer the signal for you; due at once where it has requires_response.",
            schema::<Respond>,
        )
        .tool()
        .destructive()
        .inferred(),
        run: |signals, by, params| answer(params, |params| signals.respond(by, params)),
    },
    &Row {
        method: Method::new(
            "nudge.signals.list",
            "List signals",
            "Every agent with a signal or with work: what its signal says, what it works on, which question is open.",
            schema::<List>,
        )
        .reads()
        .inferred(),
        run: |_, _, params| answer(params, |params: List| params.answer()),
    },
]);

/// Params of `nudge.signals.send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The recipient.
    pub agent: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: SignalType,
    /// The text, at most 4 KiB. Absent: the usual words of its type.
    #[serde(default, deserialize_with = "wire::given")]
    pub message: Option<String>,
    /// The sender. Absent: `NUDGE_AGENT_ID`.
    #[serde(default, deserialize_with = "wire::given")]
    pub from: Option<String>,
    /// Wait for an answer.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub requires_response: bool,
    /// Sender's context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.signals.check`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The agent. Absent: `NUDGE_AGENT_ID`.
    #[serde(default, deserialize_with = "wire::given")]
    pub agent: Option<String>,
    /// The `last_seen` of the last answer.
    #[serde(default, deserialize_with = "wire::given")]
    pub last_seen: Option<String>,
    /// Agent's context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.signals.respond`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Respond {
    /// The agent. Absent: `NUDGE_AGENT_ID`.
    #[serde(default, deserialize_with = "wire::given")]
    pub agent: Option<String>,
    /// Your status. Absent: that it was received.
    #[serde(default, deserialize_with = "wire::given")]
    pub message: Option<String>,
    /// Agent's context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.signals.list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Caller's context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.signals.send` and `nudge.signals.respond`.
#[derive(Debug, Serialize)]
pub struct Sent {
    /// The recipient.
    pub agent: AgentId,
    /// The signal as it was written.
    pub signal: Signal,
}

/// Result of `nudge.signals.check`.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The agent.
    pub agent: AgentId,
    /// The signal; null when there is none, or none that is newer.
    pub signal: Option<Signal>,
    /// Give it to the next call; null when there was never one.
    pub last_seen: Option<String>,
    /// Why the file of the agent counts as no signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Result of `nudge.signals.list`.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// The state directory.
    pub state_dir: String,
    /// By name.
    pub agents: Vec<ListedAgent>,
    /// The number of further ones.
    pub omitted: usize,
}

/// An agent in a [`Listed`].
#[derive(Debug, Serialize)]
pub struct ListedAgent {
    /// The name.
    pub agent: AgentId,
    /// The five fields of its signal; absent when it has none.
    #[serde(flatten)]
    pub signal: Option<Signal>,
    /// The work of its active hook, in a few words; absent when it has no active hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// When the deacon asked it, RFC 3339; absent without an open question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<String>,
    /// True when a mail has told the mayor of its silence; absent without an open question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_reported: Option<bool>,
    /// Why its file counts as no signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The state directory for somebody in this place.
pub fn state_for(context: &Context) -> Result<StateDir> {
    StateDir::find(context.env(STATE_DIR), context.cwd().map(Path::new))
}

/// The agent that is given, else the one that the caller's environment names.
fn agent_or_own(field: &str, given: Option<&str>, context: &Context) -> Result<AgentId> {
    match given.or_else(|| context.env(AGENT_ID)) {
        Some(name) if given.is_some() => AgentId::new(field, name),
        Some(name) if !name.is_empty() => AgentId::new(AGENT_ID, name),
        _ => Err(Error::invalid(format!("Nothing says which agent you are; pass `{field}` or set {AGENT_ID}."))),
    }
}

/// A signal that is ready to be sent, and where to.
pub struct Ready {
    pub state: StateDir,
    pub to: AgentId,
    pub draft: Draft,
}

impl Send {
    pub(crate) fn ready(self) -> Result<Ready> {
        let to = AgentId::new("agent", &self.agent)?;
        let context = self.context.build()?;
        let from = agent_or_own("from", self.from.as_deref(), &context)?;
        let message = self.message.unwrap_or_else(|| self.kind.usual_message().to_owned());
        let draft = Draft { from, kind: self.kind, message, requires_response: self.requires_response };
        Ok(Ready { state: state_for(&context)?, to, draft })
    }
}

impl Respond {
    pub(crate) fn ready(self) -> Result<Ready> {
        let context = self.context.build()?;
        let from = agent_or_own("agent", self.agent.as_deref(), &context)?;
        let state = state_for(&context)?;
        let asked = state.inbox(&from).read()?.and_then(Result::ok);
        // An answer to an answer would go on without end.
        let asked = asked.filter(|signal| signal.kind != SignalType::NudgeResponse).ok_or_else(|| {
            Error::not_found("There is no signal to answer; `nudge.signals.send` sends one of your own.")
        })?;
        let kind = SignalType::NudgeResponse;
        let message = self.message.unwrap_or_else(|| kind.usual_message().to_owned());
        Ok(Ready { state, to: asked.from, draft: Draft { from, kind, message, requires_response: false } })
    }
}

impl Check {
    fn answer(self, now: Millis) -> Result<Checked> {
        let context = self.context.build()?;
        let agent = agent_or_own("agent", self.agent.as_deref(), &context)?;
        let (found, problem) = split(state_for(&context)?.inbox(&agent).read()?);
        let Some(signal) = found else {
            return Ok(Checked { agent, signal: None, last_seen: self.last_seen, problem });
        };
        let is_new = self.last_seen.as_deref().is_none_or(|seen| stamp::is_newer(&signal.timestamp, seen, now));
        let last_seen = if is_new { Some(signal.timestamp.clone()) } else { self.last_seen };
        Ok(Checked { agent, signal: is_new.then_some(signal), last_seen, problem })
    }
}

impl List {
    fn answer(self) -> Result<Listed> {
        let state = state_for(&self.context.build()?)?;
        let (mut agents, omitted) = state.agents()?;
        let mut hooks = hook::all(&state)?;
        hooks.retain(|_, hook| matches!(hook, Hook::Active(_)));
        let mut questions: BTreeMap<_, _> = patrol::questions(&state)?
            .into_iter()
            .map(|(agent, at, is_reported)| (agent, (rfc3339::text(at), is_reported)))
            .collect();
        agents.extend(hooks.keys().cloned());
        agents.sort();
        agents.dedup();
        let told = |agent: AgentId| {
            // An agent whose folder is a link does not hide the others.
            let (signal, problem) = match state.inbox(&agent).read() {
                Ok(read) => split(read),
                Err(error) => (None, Some(error.message().to_owned())),
            };
            let work =
                hooks.remove(&agent).and_then(|hook| if let Hook::Active(one) = hook { Some(one.work) } else { None });
            let (asked_at, is_reported) = questions.remove(&agent).unzip();
            ListedAgent { agent, signal, work, asked_at, is_reported, problem }
        };
        // The folder stays when the agent's signal is removed.
        let has_any = |one: &ListedAgent| {
            one.signal.is_some() || one.problem.is_some() || one.work.is_some() || one.asked_at.is_some()
        };
        let agents = agents.into_iter().map(told).filter(has_any).collect();
        Ok(Listed { state_dir: state.path().to_string_lossy().into_owned(), agents, omitted })
    }
}

fn split(read: Option<Result<Signal, String>>) -> (Option<Signal>, Option<String>) {
    match read {
        None => (None, None),
        Some(Ok(signal)) => (Some(shown(&signal)), None),
        Some(Err(problem)) => (None, Some(problem)),
    }
}

impl Signals {
    fn send(&self, by: Caller<'_>, params: Send) -> Result<Sent> {
        self.deliver(by, params.ready()?)
    }

    fn respond(&self, by: Caller<'_>, params: Respond) -> Result<Sent> {
        self.deliver(by, params.ready()?)
    }
}
