//! Defines the rows and the params of `nudge.suggest`, `nudge.digest`, `nudge.told`, `nudge.recall`, `nudge.outcome`,
//! `nudge.stats` and `nudge.client_sessions`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::report_recalled;
use super::{ClientSessions, CommandOutcome};
use crate::context::{Context, ContextSpec};
use crate::error::{Error, Result};
use crate::limit::{BoundedNumber, Limit};
use crate::service::MethodSpec;
use crate::table::{NoParams, build_schema};
use crate::wire;

/// The most bytes of a prompt, command, error or query.
pub(super) const MAX_TEXT_BYTES: usize = 64 << 10;
/// The most bytes of the name of a client session.
const MAX_SESSION_BYTES: usize = 1 << 10;
/// The longest `confirm_ms` of a `nudge.suggest`: one minute.
pub const MAX_CONFIRM_MS: usize = 60_000;
/// The row of `nudge.suggest`.
pub const SUGGEST: MethodSpec = MethodSpec::new(
    "nudge.suggest",
    "Suggest",
    "What an agent should be told now, unasked: at the start of a session, for a prompt, after a command failed, or what cannot wait after a tool was used.",
    build_schema::<SuggestParams>,
)
.inferred()
.for_prompts();

/// The row of `nudge.digest`.
pub const DIGEST: MethodSpec = MethodSpec::new(
    "nudge.digest",
    "Digest",
    "What nudge.suggest tells now, as one text for a prompt.",
    build_schema::<SuggestParams>,
)
.inferred()
.for_prompts();

/// The row of `nudge.told`.
pub const TOLD: MethodSpec = MethodSpec::new(
    "nudge.told",
    "Confirm suggestions",
    "What nudge.suggest answered under a ticket was shown, and need not be told to this client session again.",
    build_schema::<ToldParams>,
)
.idempotent()
.vital();

/// The row of `nudge.recall`.
pub const RECALL: MethodSpec = MethodSpec::new(
    "nudge.recall",
    "Recall",
    "Ask all that is remembered, in words, before you search or guess.",
    build_schema::<RecallParams>,
)
.tool()
.read_only()
.inferred()
.for_prompts()
.with_report(report_recalled);

/// The row of `nudge.outcome`.
pub const OUTCOME: MethodSpec = MethodSpec::new(
    "nudge.outcome",
    "Report an outcome",
    "How a command ended: success raises the hints that say it, repeated failure puts them last.",
    build_schema::<OutcomeParams>,
)
.inferred()
.for_prompts();

/// The row of `nudge.stats`.
pub const STATS: MethodSpec = MethodSpec::new(
    "nudge.stats",
    "Statistics",
    "How often hints were asked for and suggested, and what came of the suggestions.",
    build_schema::<NoParams>,
)
.read_only()
.vital();

/// The row of `nudge.client_sessions`. Only a server has this method. A program with its own store has no use for it,
/// because it shows the lines itself.
pub const CLIENT_SESSIONS: MethodSpec = MethodSpec::new(
    "nudge.client_sessions",
    "Client sessions",
    "What each client session was told lately, line by line, and what came of it.",
    build_schema::<ClientSessions>,
)
.read_only();

/// The moment of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SuggestEvent {
    /// A session begins.
    Start,
    /// The user asked for something.
    Prompt,
    /// A command failed.
    Failure,
    /// A tool was used. It comes often: only lines that must be told are told.
    Tool,
    /// The agent is about to end its turn: only lines that must be told before are told.
    Stop,
}

/// Params of `nudge.suggest` and `nudge.digest`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuggestParams {
    /// The moment.
    pub event: SuggestEvent,
    /// Agent's context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// The user's words, for `prompt`.
    #[serde(default, deserialize_with = "wire::given")]
    pub prompt: Option<String>,
    /// The command, for `failure`.
    #[serde(default, deserialize_with = "wire::given")]
    pub command: Option<String>,
    /// The output, for `failure`.
    #[serde(default, deserialize_with = "wire::given")]
    pub error: Option<String>,
    /// The tool that was used, for `tool`, or the kind of subagent that ends, for `stop`, as the agent calls them.
    #[serde(default, deserialize_with = "wire::given")]
    pub tool: Option<String>,
    /// The file that the tool was used on, for `tool`.
    #[serde(default, deserialize_with = "wire::given")]
    pub file: Option<String>,
    /// The agent's session; it is told each thing once.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
    /// Forget all the session was shown, as after a compaction; none of it counts in the 10 minutes then.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub fresh: bool,
    /// Most bytes of the lines, in `nudge.digest` of the whole text.
    #[serde(default)]
    pub max_bytes: Limit<2_000, { usize::MAX }, 0>,
    /// Most suggestions in this answer. The rest was not shown. Absent: no limit; in `nudge.digest` 14 at a start, 6 at a
    /// prompt, 3 at a failure.
    #[serde(default, deserialize_with = "wire::given")]
    pub limit: Option<BoundedNumber<1, { usize::MAX }>>,
    /// Milliseconds in which the caller confirms by `nudge.told` that it showed the answer. Until then the session is
    /// told nothing of it by other calls; without a confirmation it was not told. Absent: it was told. Slow sources are
    /// waited for 5/9 of it, 25 ms at least.
    #[serde(default, deserialize_with = "wire::given")]
    pub confirm_ms: Option<BoundedNumber<1, MAX_CONFIRM_MS>>,
    /// The ticket of an earlier answer that is shown together with this one. The ticket then confirms both answers.
    #[serde(skip)]
    pub ticket: Option<String>,
}

/// Params of `nudge.told`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToldParams {
    /// The agent's session, as it called itself for `nudge.suggest`.
    pub client_session: String,
    /// The `ticket` of the answer that was shown.
    pub ticket: String,
}

/// Refuses a long name of a client session, because the server remembers about a thousand names.
pub(super) fn check_session(name: Option<&str>) -> Result<()> {
    if name.is_some_and(|name| name.len() > MAX_SESSION_BYTES) {
        return Err(Error::invalid("`client_session` may have 1 KiB; send a shorter name.").about("client_session"));
    }
    Ok(())
}

/// Prints only the event: the texts may hold secrets.
impl fmt::Debug for SuggestParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SuggestParams({:?})", self.event)
    }
}

/// Params of `nudge.recall`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallParams {
    /// Your question.
    pub query: String,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// Most lines.
    #[serde(default)]
    #[schemars(description = "")]
    pub limit: Limit<10, 100>,
    /// Most bytes of lines.
    #[serde(default)]
    #[schemars(description = "")]
    pub max_bytes: Limit<4_000, { usize::MAX }, 0>,
    /// These sources only.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    #[schemars(description = "")]
    pub sources: Vec<String>,
}

/// Prints no field: the query may hold a secret.
impl fmt::Debug for RecallParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecallParams { .. }")
    }
}

/// Params of `nudge.outcome`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeParams {
    /// The command that ran.
    pub command: String,
    /// True if it worked.
    pub ok: bool,
    /// Exit code, if known.
    #[serde(default, deserialize_with = "wire::given")]
    pub exit_code: Option<i64>,
    /// The context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// The agent's session, as it calls itself for `nudge.suggest`.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
}

/// Prints no command: it may hold a secret.
impl fmt::Debug for OutcomeParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutcomeParams(ok {}, exit code {:?})", self.ok, self.exit_code)
    }
}

impl OutcomeParams {
    /// Checks the sizes, and separates the context from the other params.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn into_checked(mut self) -> Result<(Context, Self)> {
        if self.command.len() > MAX_TEXT_BYTES {
            return Err(Error::invalid("`command` may have 64 KiB at most.").about("command"));
        }
        check_session(self.client_session.as_deref())?;
        let context = std::mem::take(&mut self.context).build()?;
        Ok((context, self))
    }

    /// Returns the outcome in the form that sources receive.
    pub fn to_outcome<'a>(&'a self, context: &'a Context) -> CommandOutcome<'a> {
        let client_session = self.client_session.as_deref();
        CommandOutcome { command: &self.command, ok: self.ok, exit_code: self.exit_code, context, client_session }
    }
}

impl SuggestParams {
    /// Makes the params for an event, with an empty context and the defaults for all other fields.
    pub fn at_event(event: SuggestEvent) -> Self {
        Self {
            event,
            context: ContextSpec::default(),
            prompt: None,
            command: None,
            error: None,
            tool: None,
            file: None,
            client_session: None,
            fresh: false,
            max_bytes: Limit::default(),
            limit: None,
            confirm_ms: None,
            ticket: None,
        }
    }

    /// Checks sizes and ranges.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn check_sizes(&self) -> Result<()> {
        check_session(self.client_session.as_deref())?;
        let texts = [&self.prompt, &self.command, &self.error, &self.tool, &self.file];
        if texts.into_iter().flatten().any(|text| text.len() > MAX_TEXT_BYTES) {
            return Err(Error::invalid(
                "`prompt`, `command`, `error`, `tool` and `file` may have 64 KiB each; send the end of a long text.",
            )
            .about("prompt")
            .about("command")
            .about("error")
            .about("tool")
            .about("file"));
        }
        Ok(())
    }
}
