//! Defines the methods of the signals, with their params and results.

use std::collections::BTreeMap;
use std::path::Path;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::context::{Context, ContextSpec};
use nudge_core::error::{Error, Result};
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::table::{MethodTable, TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::AgentId;
use crate::hook::{self, AgentHook};
use crate::offer::guard_signal;
use crate::patrol;
use crate::signal::{Signal, SignalDraft, SignalType};
use crate::source::SignalsSource;
use crate::stamp;
use crate::state::StateDir;

/// The environment variable that names the state directory.
pub const STATE_DIR: &str = "NUDGE_STATE_DIR";
/// The environment variable that holds the name of the agent, in the agent's own processes.
pub const AGENT_ID: &str = "NUDGE_AGENT_ID";

/// The method that hooks recommend to the model.
pub const CHECK: &str = "nudge.signals.check";

pub static TABLE: MethodTable<SignalsSource> = MethodTable(&[
    &TableRow {
        method: MethodSpec::new(
            "nudge.signals.send",
            "Send a signal",
            "Tell another agent one urgent thing, such as stop; it replaces the signal it had.",
            build_schema::<SignalSendParams>,
        )
        .tool()
        .destructive()
        .inferred(),
        run: |signals, caller, params| answer_typed(params, |params| signals.send(caller, params)),
    },
    &TableRow {
        method: MethodSpec::new(
            CHECK,
            "Check for a signal",
            "The signal for you, if it is newer than the one you saw last.",
            build_schema::<SignalCheckParams>,
        )
        .tool()
        .read_only()
        .inferred(),
        run: |signals, _, params| answer_typed(params, |params: SignalCheckParams| params.check_inbox(signals.now())),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.signals.respond",
            "Answer a signal",
            "Answer the signal for you; due at once where it has requires_response.",
            build_schema::<SignalRespondParams>,
        )
        .tool()
        .destructive()
        .inferred(),
        run: |signals, caller, params| answer_typed(params, |params| signals.respond(caller, params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.signals.list",
            "List signals",
            "Every agent with a signal or with work: what its signal says, what it works on, which question is open.",
            build_schema::<SignalListParams>,
        )
        .read_only()
        .inferred(),
        run: |signals, _, params| answer_typed(params, |params: SignalListParams| params.list_agents(signals.now())),
    },
]);

/// Params of `nudge.signals.send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalSendParams {
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
pub struct SignalCheckParams {
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
pub struct SignalRespondParams {
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
pub struct SignalListParams {
    /// Caller's context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.signals.send` and `nudge.signals.respond`.
#[derive(Debug, Serialize)]
pub struct SentSignal {
    /// The recipient.
    pub agent: AgentId,
    /// The signal as it was written.
    pub signal: Signal,
}

/// Result of `nudge.signals.check`.
#[derive(Debug, Serialize)]
pub struct SignalCheck {
    /// The agent.
    pub agent: AgentId,
    /// The signal; null when there is no signal, or none newer than `last_seen`.
    pub signal: Option<Signal>,
    /// The value of `last_seen` for the next call; null when there was never a signal.
    pub last_seen: Option<String>,
    /// The reason why the agent's file does not count as a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Result of `nudge.signals.list`.
#[derive(Debug, Serialize)]
pub struct SignalList {
    /// The state directory.
    pub state_dir: String,
    /// The agents, sorted by name.
    pub agents: Vec<ListedAgent>,
    /// The number of agents that are left out.
    pub omitted: usize,
}

/// An agent in a [`SignalList`].
#[derive(Debug, Serialize)]
pub struct ListedAgent {
    /// The name.
    pub agent: AgentId,
    /// The five fields of the agent's signal; absent when it has no signal.
    #[serde(flatten)]
    pub signal: Option<Signal>,
    /// The work of the agent's active hook, in a few words; absent without an active hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// The time when the deacon asked the agent, RFC 3339; absent without an open question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<String>,
    /// Is true when a mail told the mayor that the agent is silent; absent without an open question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_reported: Option<bool>,
    /// The reason why the agent's file does not count as a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Finds the state directory for a caller with this context.
pub fn state_for(context: &Context) -> Result<StateDir> {
    StateDir::find(context.env(STATE_DIR), context.cwd().map(Path::new))
}

/// Returns the given agent; without one, the agent that the caller's environment names.
fn agent_or_own(field: &str, given: Option<&str>, context: &Context) -> Result<AgentId> {
    match given.or_else(|| context.env(AGENT_ID)) {
        Some(name) if given.is_some() => AgentId::new(field, name),
        Some(name) if !name.is_empty() => AgentId::new(AGENT_ID, name),
        _ => {
            Err(Error::invalid(format!("Nothing says which agent you are; pass `{field}` or set {AGENT_ID}."))
                .about(field))
        }
    }
}

/// A checked signal, its recipient and its state directory.
pub struct ReadySignal {
    pub state: StateDir,
    pub to: AgentId,
    pub draft: SignalDraft,
}

impl SignalSendParams {
    pub(crate) fn prepare_signal(self) -> Result<ReadySignal> {
        let to = AgentId::new("agent", &self.agent)?;
        let context = self.context.build()?;
        let from = agent_or_own("from", self.from.as_deref(), &context)?;
        let message = self.message.unwrap_or_else(|| self.kind.usual_message().to_owned());
        let draft = SignalDraft { from, kind: self.kind, message, requires_response: self.requires_response };
        Ok(ReadySignal { state: state_for(&context)?, to, draft })
    }
}

impl SignalRespondParams {
    pub(crate) fn prepare_answer(self, now: Millis) -> Result<ReadySignal> {
        let context = self.context.build()?;
        let from = agent_or_own("agent", self.agent.as_deref(), &context)?;
        let state = state_for(&context)?;
        let asked = state.inbox(&from).read(now)?.and_then(Result::ok);
        // An answer to an answer would lead to an endless exchange.
        let asked = asked.filter(|signal| signal.kind != SignalType::NudgeResponse).ok_or_else(|| {
            Error::not_found("There is no signal to answer; `nudge.signals.send` sends one of your own.")
        })?;
        let kind = SignalType::NudgeResponse;
        let message = self.message.unwrap_or_else(|| kind.usual_message().to_owned());
        Ok(ReadySignal { state, to: asked.from, draft: SignalDraft { from, kind, message, requires_response: false } })
    }
}

impl SignalCheckParams {
    fn check_inbox(self, now: Millis) -> Result<SignalCheck> {
        let context = self.context.build()?;
        let agent = agent_or_own("agent", self.agent.as_deref(), &context)?;
        let (found, problem) = split_read(state_for(&context)?.inbox(&agent).read(now)?);
        let Some(signal) = found else {
            return Ok(SignalCheck { agent, signal: None, last_seen: self.last_seen, problem });
        };
        let is_new = self.last_seen.as_deref().is_none_or(|seen| stamp::is_newer(&signal.timestamp, seen, now));
        let last_seen = if is_new { Some(signal.timestamp.clone()) } else { self.last_seen };
        Ok(SignalCheck { agent, signal: is_new.then_some(signal), last_seen, problem })
    }
}

impl SignalListParams {
    fn list_agents(self, now: Millis) -> Result<SignalList> {
        let state = state_for(&self.context.build()?)?;
        let (mut agents, omitted) = state.list_agents()?;
        let mut hooks = hook::read_hooks(&state)?;
        hooks.retain(|_, hook| matches!(hook, AgentHook::Active(_)));
        let mut questions: BTreeMap<_, _> = patrol::read_questions(&state)?
            .into_iter()
            .map(|(agent, asked_at, is_reported)| (agent, (rfc3339::format_time(asked_at), is_reported)))
            .collect();
        agents.extend(hooks.keys().cloned());
        agents.sort();
        agents.dedup();
        let told = |agent: AgentId| {
            // An agent with an invalid folder must not hide the others.
            let (signal, problem) = match state.inbox(&agent).read(now) {
                Ok(read) => split_read(read),
                Err(error) => (None, Some(error.message().to_owned())),
            };
            let work = hooks
                .remove(&agent)
                .and_then(|hook| if let AgentHook::Active(active) = hook { Some(active.work) } else { None });
            let (asked_at, is_reported) = questions.remove(&agent).unzip();
            ListedAgent { agent, signal, work, asked_at, is_reported, problem }
        };
        // Leaves out an agent without a signal, a hook and a question: its signal was removed, and only its folder is
        // left.
        let has_any = |listed: &ListedAgent| {
            listed.signal.is_some() || listed.problem.is_some() || listed.work.is_some() || listed.asked_at.is_some()
        };
        let agents = agents.into_iter().map(told).filter(has_any).collect();
        Ok(SignalList { state_dir: state.path().to_string_lossy().into_owned(), agents, omitted })
    }
}

fn split_read(read: Option<Result<Signal, String>>) -> (Option<Signal>, Option<String>) {
    match read {
        None => (None, None),
        Some(Ok(signal)) => (Some(guard_signal(&signal)), None),
        Some(Err(problem)) => (None, Some(problem)),
    }
}

impl SignalsSource {
    fn send(&self, caller: Caller<'_>, params: SignalSendParams) -> Result<SentSignal> {
        self.deliver(caller, params.prepare_signal()?)
    }

    fn respond(&self, caller: Caller<'_>, params: SignalRespondParams) -> Result<SentSignal> {
        self.deliver(caller, params.prepare_answer(self.now())?)
    }
}
