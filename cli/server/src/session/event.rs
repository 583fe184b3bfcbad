//! `nudge.event`: an event of a coding agent, answered with the text that its hook prints.
//!
//! A hook calls this method and confirms the answer; the server does the rest. The params contain the facts that only
//! the hook's process has: the context, and the variables that scopes mention. A disk may not answer, so the server
//! reads the agent's files on separate threads. If the facts from the files come too late, the answer lacks them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge::{Caller, Context, ContextSpec, MethodSpec, Result, Service};
use nudge_app::checkout::{AgentCheckout, LineSubject, add_doubt};
use nudge_app::seed::{self, RefreshRule};
use nudge_app::wire::{parsed_as, to_raw};
use nudge_core::limit::{BoundedNumber, Limit};
use nudge_core::once::OnceByKey;
use nudge_core::patience::ThreadSlots;
use nudge_core::service::CallIdentity;
use nudge_core::suggest::{
    DigestBuilder, MAX_CONFIRM_MS, OUTCOME, OutcomeParams, SuggestAnswer, SuggestEvent, SuggestParams,
};
use nudge_core::suggest_service::SuggestService;
use nudge_core::table::{MethodTable, TableRow, TableService, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::seeds;

/// The name of the method.
pub const EVENT: &str = "nudge.event";

const ABOUT: &str = "What an agent should be told at an event of its client, as the text that a hook prints. Counts how a command ended, follows the files of the clone, and names lines that these contradict.";

/// The least bytes for which the server chooses lines. No line fits into fewer bytes.
const MIN_BYTES: usize = 200;
/// The time limit for reads of the agent's files, when the caller does not say how long it waits.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

static TABLE: MethodTable<EventService> = MethodTable(&[&TableRow {
    method: MethodSpec::new(EVENT, "Event", ABOUT, build_schema::<EventParams>).inferred().for_prompts(),
    run: |events, caller, raw| answer_typed(raw, |params| events.answer_event(caller, &params, raw)),
}]);

/// Params of `nudge.event`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventParams {
    /// The moment.
    pub event: SuggestEvent,
    /// Agent's context.
    #[serde(default, deserialize_with = "wire::object_or_default", skip_serializing)]
    pub context: ContextSpec,
    /// The user's words, for `prompt`.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The command that failed, for `failure`, or that worked, for `tool`.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The output, for `failure`.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Exit code of the command, if known: with it the command counts as an outcome.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The tool that was used or that failed, or the kind of subagent that ends, as the agent calls them.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The file that the tool was used on.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The agent's session; it is told each thing once.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub client_session: Option<String>,
    /// Forget all the session was shown, as after a compaction.
    #[serde(default, deserialize_with = "wire::given_or_default", skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// Most bytes of the text.
    #[serde(default, skip_serializing_if = "Limit::is_absent")]
    pub max_bytes: Limit<2_000, { usize::MAX }, 0>,
    /// Milliseconds in which the caller confirms by `nudge.told` that it showed the text, as for `nudge.suggest`. Looks at
    /// the agent's files end by then, too.
    #[serde(default, deserialize_with = "wire::given", skip_serializing_if = "Option::is_none")]
    pub confirm_ms: Option<BoundedNumber<1, MAX_CONFIRM_MS>>,
}

/// Result of `nudge.event`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct EventAnswer {
    /// The text for the model; empty when there is nothing to tell.
    pub text: String,
    /// The ticket by which the caller confirms with `nudge.told` that the text was shown; absent when there is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// Leaves out the texts, because they may contain secrets.
impl fmt::Debug for EventParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventParams({:?}, exit code {:?})", self.event, self.exit_code)
    }
}

impl EventParams {
    /// Makes the params of an event without any optional field.
    pub fn at_event(event: SuggestEvent) -> Self {
        Self {
            event,
            context: ContextSpec::default(),
            prompt: None,
            command: None,
            error: None,
            exit_code: None,
            tool: None,
            file: None,
            client_session: None,
            fresh: false,
            max_bytes: Limit::default(),
            confirm_ms: None,
        }
    }

    /// Returns the params of a suggestion for `event`, which is this event, or the start before a prompt.
    fn to_question(&self, event: SuggestEvent) -> SuggestParams {
        let Self { context, prompt, command, error, tool, file, client_session, fresh, confirm_ms, .. } = self.clone();
        let (fresh, limit) = (fresh && event == self.event, BoundedNumber::new(event.max_lines()));
        SuggestParams {
            event,
            context,
            prompt,
            command,
            error,
            tool,
            file,
            client_session,
            fresh,
            max_bytes: Limit::default(),
            limit,
            confirm_ms,
            ticket: None,
        }
    }

    /// Returns the outcome of the command. Returns `None` when the caller does not say the command or its exit code.
    fn to_outcome(&self) -> Option<OutcomeParams> {
        let (command, code) = (self.command.clone()?, self.exit_code?);
        let ok = self.event != SuggestEvent::Failure;
        Some(OutcomeParams {
            command,
            ok,
            exit_code: Some(code).filter(|_| !ok),
            context: self.context.clone(),
            client_session: self.client_session.clone(),
        })
    }
}

/// The service that answers events.
pub struct EventService {
    suggest: Arc<SuggestService>,
    /// Stores the hints that come from a clone's files.
    hints: Arc<dyn Service>,
    /// The id of the session.
    session: Arc<str>,
    threads: ThreadSlots,
}

/// The agent's folder, and the deadline for reads of its files.
struct FolderLook {
    cwd: PathBuf,
    end: Instant,
}

impl EventService {
    /// Makes the service of a session: `suggest` chooses the lines, `hints` stores the hints of clones.
    pub fn new(suggest: Arc<SuggestService>, hints: Arc<dyn Service>, session: &str) -> Self {
        Self { suggest, hints, session: session.into(), threads: ThreadSlots::default() }
    }

    fn answer_event(&self, caller: Caller<'_>, params: &EventParams, raw: &RawValue) -> Result<EventAnswer> {
        let context = params.context.clone().build()?;
        let question = params.to_question(params.event);
        question.check_sizes()?;
        let patience = params.confirm_ms.map_or(LOOK_PATIENCE, |ms| Duration::from_millis(ms.get() as u64));
        let cwd = params.context.cwd.as_deref().map(PathBuf::from).filter(|cwd| cwd.is_absolute());
        let look = cwd.map(|cwd| FolderLook { cwd, end: Instant::now() + patience });
        let tells_lines = params.max_bytes.get() >= MIN_BYTES;
        let follows = matches!(params.event, SuggestEvent::Start | SuggestEvent::Prompt | SuggestEvent::Failure);
        if let Some(look) = look.as_ref().filter(|_| follows && tells_lines) {
            self.follow_clone(caller, params.event, look, &context);
        }
        // The hints from the files may have scopes that mention more variables.
        if caller.env {
            self.suggest.ask_env(&TABLE.0[0].method, raw)?;
        }
        if let Some(outcome) = params.to_outcome() {
            // The hooks of the user and of a project may both report the same command, and each may say more than the
            // other. The identity of the call therefore covers only the command.
            let mut caller = caller;
            caller.call = caller.key.map(|_| CallIdentity::new(OUTCOME.name, &outcome.command));
            // A refused outcome must not suppress the text, so its error is ignored.
            let _ = self.suggest.answer_outcome(caller, outcome);
        }
        if tells_lines { self.compose_text(params, question, look.as_ref()) } else { Ok(EventAnswer::default()) }
    }

    /// Chooses the lines for `question`. If the client session has not been told the lines of the start, adds those
    /// too.
    fn compose_text(
        &self,
        params: &EventParams,
        question: SuggestParams,
        look: Option<&FolderLook>,
    ) -> Result<EventAnswer> {
        let mut digest = DigestBuilder::new(params.max_bytes.get(), |source| self.suggest.find_list(source));
        let mut ticket = None;
        let mut add_lines = |question: SuggestParams| -> Result<bool> {
            let (event, max_bytes) =
                (question.event, Limit::new(digest.room_left()).expect("any number is in the range"));
            let question = SuggestParams { max_bytes, ticket: ticket.clone(), ..question };
            let mut answer = self.suggest.answer_suggest(question)?;
            if let Some(look) = look {
                self.mark_doubts(&mut answer, look);
            }
            ticket = answer.ticket.take().or(ticket.take());
            let started = answer.started;
            digest.add_answer(event.heading(), answer);
            Ok(started)
        };
        let started = add_lines(question)?;
        // At the start of the client session, perhaps no server ran, or there were no hints. An error here must not
        // lose the lines for the prompt, so it is ignored.
        if params.event == SuggestEvent::Prompt && params.client_session.is_some() && !started {
            let _ = add_lines(params.to_question(SuggestEvent::Start));
        }
        Ok(EventAnswer { text: digest.finish(), ticket })
    }

    /// Updates the hints from the clone's files, if the user follows these files. A start checks all files of the
    /// clone. The frequent events check only the files whose commands can be told in the agent's folder.
    fn follow_clone(&self, caller: Caller<'_>, event: SuggestEvent, look: &FolderLook, context: &Context) {
        if !seeds::may_follow(&look.cwd) {
            return;
        }
        let (hints, name) = (Arc::clone(&self.hints), caller.name.to_owned());
        let (cwd, repo, session) = (look.cwd.clone(), context.repo(), Arc::clone(&self.session));
        self.run_look("nudge-clone", look, move || {
            let call = |method: &str, params: &Map<String, Value>| {
                parsed_as(&hints.call_by(Caller::with_name(&name), method, &to_raw(params)?)?)
            };
            if let Some(top) = seed::top_of(&cwd) {
                let rule = match event {
                    SuggestEvent::Start => RefreshRule::IfChanged,
                    _ => RefreshRule::IfChangedFor(&cwd),
                };
                seeds::follow_clone(&top, rule, || repo, &session, &call);
            }
        });
    }

    /// Adds a note to each line that the agent's files contradict.
    fn mark_doubts<I>(&self, answer: &mut SuggestAnswer<I>, look: &FolderLook) {
        let lines: Vec<_> = answer
            .suggestions
            .iter()
            .map(|told| LineSubject {
                name: told.name.clone(),
                paths: told.paths.clone(),
                command: told.command.clone(),
            })
            .collect();
        if lines.is_empty() {
            return;
        }
        let cwd = look.cwd.clone();
        let doubts =
            self.run_look("nudge-doubts", look, move || AgentCheckout::from_cwd(Some(&cwd)).find_doubts(&lines));
        for (told, doubt) in answer.suggestions.iter_mut().zip(doubts.into_iter().flatten()) {
            if let Some(doubt) = doubt {
                told.line = add_doubt(&told.line, &doubt);
            }
        }
    }

    /// Reads the agent's files on another thread. Returns `None` when the disk does not answer in time, or when an
    /// earlier read still waits for the disk.
    fn run_look<T: Send + 'static>(
        &self,
        name: &str,
        look: &FolderLook,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let found = self.threads.start(name, look.end, work)?;
        found.recv_timeout(look.end.saturating_duration_since(Instant::now())).ok()
    }
}

impl TableService for EventService {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // The outcome passes its key on to each source. The rest of a call only changes the record of the told lines.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}
