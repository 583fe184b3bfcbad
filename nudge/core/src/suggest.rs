//! What an agent should be told now: sources offer, one place chooses.
//!
//! An agent's hooks ask at the start of a session, at a prompt and after a failed command (`nudge.suggest`); an agent
//! or a person asks in words (`nudge.recall`). Either way every source is asked for [`Offers`] at once, no lock is
//! held meanwhile, and [`merge()`] chooses among them under one budget of bytes. [`Suggester`] remembers what each
//! client session was told, and what came of it (semantics section 10).

mod answer;
mod memory;
mod merge;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock::Millis;
use crate::context::{Context, ContextSpec};
use crate::error::{Error, Result};
use crate::explain::MatchExplain;
use crate::service::Method;
use crate::table::{NoParams, schema};
use crate::wire;
use crate::words::Words;

pub use answer::{Confirmed, HeldBack, Item, Recalled, Suggestion, Suggestions};
pub use memory::{Counts, SessionStats, Suggester};
pub use merge::{Budget, Merged, merge};

/// Bytes of one answer of `nudge.suggest`, when the caller does not say.
const DEFAULT_MAX_BYTES: usize = 2_000;
/// Bytes and lines of one answer of `nudge.recall`, when the caller does not say, and the most lines it may ask for.
const DEFAULT_RECALL_BYTES: usize = 4_000;
const DEFAULT_RECALL_LIMIT: usize = 10;
const MAX_RECALL_LIMIT: usize = 100;
/// Most bytes of a prompt, command, error or query.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Most bytes of the name of a client session.
const MAX_SESSION_BYTES: usize = 1 << 10;
/// Longest `confirm_ms` of a `nudge.suggest`: one minute.
pub const MAX_CONFIRM_MS: u64 = 60_000;
/// The time that sources have to offer something. A hook has 45 ms in all, from its start to its last word.
const PATIENCE: Duration = Duration::from_millis(25);

/// The row of `nudge.suggest`.
pub const SUGGEST: Method = Method::new(
    "nudge.suggest",
    "Suggest",
    "What an agent should be told now, unasked: at the start of a session, for a prompt, or after a command failed.",
    schema::<Suggest>,
)
.inferred();

/// The row of `nudge.told`.
pub const TOLD: Method = Method::new(
    "nudge.told",
    "Confirm suggestions",
    "What nudge.suggest answered under a ticket was shown, and need not be told to this client session again.",
    schema::<Told>,
)
.idempotent()
.quick();

/// The row of `nudge.recall`.
pub const RECALL: Method = Method::new(
    "nudge.recall",
    "Recall",
    "Ask all that is remembered, in words, before you search or guess.",
    schema::<Recall>,
)
.tool()
.reads()
.inferred();

/// The row of `nudge.outcome`.
pub const OUTCOME: Method = Method::new(
    "nudge.outcome",
    "Report an outcome",
    "How a command ended: success raises the hints that say it, repeated failure puts them last.",
    schema::<Outcome>,
)
.inferred();

/// The row of `nudge.stats`.
pub const STATS: Method = Method::new(
    "nudge.stats",
    "Statistics",
    "How often hints were asked for and suggested, and what came of the suggestions.",
    schema::<NoParams>,
)
.reads()
.quick();

/// The moment of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SuggestEvent {
    /// A session begins.
    Start,
    /// The user asked for something.
    Prompt,
    /// A command failed.
    Failure,
}

/// Params of `nudge.suggest`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suggest {
    /// The moment.
    pub event: SuggestEvent,
    /// Where the agent is.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// What the user asked, for `prompt`.
    #[serde(default, deserialize_with = "wire::given")]
    pub prompt: Option<String>,
    /// What failed, for `failure`.
    #[serde(default, deserialize_with = "wire::given")]
    pub command: Option<String>,
    /// What it printed, for `failure`.
    #[serde(default, deserialize_with = "wire::given")]
    pub error: Option<String>,
    /// The agent's session; it is told each thing once.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
    /// Forget what the session was shown, as after a compaction; nothing of it counts in the 10 minutes then.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub fresh: bool,
    /// Most bytes, 2,000 when absent: of a hint its value text counts, of anything else its line.
    #[serde(default, deserialize_with = "wire::given")]
    pub max_bytes: Option<usize>,
    /// Most suggestions in this answer, 1 or more. What it holds back was not shown.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
    /// Milliseconds in which the caller confirms by `nudge.told` that it showed the answer, 1 to 60,000. Until then
    /// the session is told nothing of it by other calls; without a confirmation it was not told. Absent: it was told.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(range(min = 1, max = 60_000))]
    pub confirm_ms: Option<u64>,
}

/// Params of `nudge.told`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The agent's session, as it called itself for `nudge.suggest`.
    pub client_session: String,
    /// The `ticket` of the answer that was shown.
    pub ticket: String,
}

/// Refuses a long name of a client session: a thousand of them are remembered.
fn check_session(name: Option<&str>) -> Result<()> {
    if name.is_some_and(|name| name.len() > MAX_SESSION_BYTES) {
        return Err(Error::invalid("client_session may have 1 KiB; send a shorter name."));
    }
    Ok(())
}

/// Without the texts, which may hold secrets.
impl fmt::Debug for Suggest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Suggest({:?})", self.event)
    }
}

/// Params of `nudge.recall`.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// What you want to know.
    pub query: String,
    /// Where you are.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// Most lines, 1 to 100; 10 when absent.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(range(min = 1, max = 100))]
    #[schemars(description = "")]
    pub limit: Option<usize>,
    /// Most bytes of lines; 4,000 when absent.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(description = "")]
    pub max_bytes: Option<usize>,
    /// These sources only.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    #[schemars(description = "")]
    pub sources: Vec<String>,
}

/// Without the query, which may hold a secret.
impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recall { .. }")
    }
}

/// Params of `nudge.outcome`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The command that ran.
    pub command: String,
    /// Whether it worked.
    pub ok: bool,
    /// Its exit code, if known.
    #[serde(default, deserialize_with = "wire::given")]
    pub exit_code: Option<i64>,
    /// Where it ran.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
    /// The agent's session, as it calls itself for `nudge.suggest`.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
}

/// Without the command, which may hold a secret.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outcome(ok {}, exit code {:?})", self.ok, self.exit_code)
    }
}

impl Outcome {
    /// Checks sizes, and takes the context out.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn checked(mut self) -> Result<(Context, Self)> {
        if self.command.len() > MAX_TEXT_BYTES {
            return Err(Error::invalid("command may have 64 KiB at most."));
        }
        check_session(self.client_session.as_deref())?;
        let context = std::mem::take(&mut self.context).build()?;
        Ok((context, self))
    }

    /// The same, as every source is told of it.
    pub fn ran<'a>(&'a self, context: &'a Context) -> CommandOutcome<'a> {
        CommandOutcome { command: &self.command, ok: self.ok, exit_code: self.exit_code, context }
    }
}

/// The moment that makes something worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A session begins: what applies here.
    Start,
    /// The user asked for something: what the words bring to mind.
    Prompt,
    /// A command failed: what may work instead.
    Failure,
    /// Somebody asks in words.
    Recall,
}

/// The question to every source, made once for all of them.
pub struct SuggestRequest {
    /// The reason for asking.
    pub moment: Moment,
    /// Where the agent stands.
    pub context: Context,
    /// The words of the prompt or the query that say something; none for the other moments.
    pub words: Words,
    /// The prompt or the query as it is; empty for the other moments.
    pub text: String,
    /// The command that failed.
    pub command: Option<String>,
    /// What it printed.
    pub error: String,
    /// The agent's session, if it has a name.
    pub client_session: Option<String>,
    /// The time by the store's clock.
    pub now: Millis,
    /// When the answer is given, with or without a source that is late.
    pub deadline: Instant,
    /// Most offers that can be told; more are of no use.
    pub limit: usize,
    /// Most [`Offer::bytes`], summed, that can be told; more are of no use.
    pub max_bytes: usize,
    /// Milliseconds in which the caller confirms what it is told; `None` when it takes it as told.
    confirm_ms: Option<u64>,
    /// The sources to ask; all when empty.
    sources: Vec<String>,
    seen: Seen,
}

/// The ids of the offers that a client session was told, by source.
type Seen = Arc<std::collections::HashMap<&'static str, HashSet<Box<str>, foldhash::fast::RandomState>>>;

impl SuggestRequest {
    /// The ids of the offers of `source` that the client session was told, and so need no telling; `None` when there
    /// are none.
    pub fn seen(&self, source: &str) -> Option<&HashSet<Box<str>, foldhash::fast::RandomState>> {
        self.seen.get(source).filter(|ids| !ids.is_empty())
    }

    /// Returns true when a source is asked.
    pub fn asks(&self, source: &str) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|name| name == source)
    }

    /// The request of a `nudge.recall`, which no session remembers.
    fn recall(params: Recall, sources: &[&str], now: Millis) -> Result<Self> {
        if params.sources.iter().any(|name| !sources.contains(&&**name)) {
            // It is not repeated: it may be anything.
            return Err(Error::invalid(format!("There is no such source; there are {}.", sources.join(", "))));
        }
        if params.query.len() > MAX_TEXT_BYTES {
            return Err(Error::invalid("query may have 64 KiB; ask in fewer words."));
        }
        let limit = params.limit.unwrap_or(DEFAULT_RECALL_LIMIT);
        if !(1..=MAX_RECALL_LIMIT).contains(&limit) {
            return Err(Error::invalid("limit must be a whole number from 1 to 100."));
        }
        Ok(Self {
            moment: Moment::Recall,
            context: params.context.build()?,
            words: Words::of_query(&params.query),
            text: params.query,
            command: None,
            error: String::new(),
            client_session: None,
            now,
            deadline: Instant::now() + PATIENCE,
            limit,
            max_bytes: params.max_bytes.unwrap_or(DEFAULT_RECALL_BYTES),
            confirm_ms: None,
            sources: params.sources,
            seen: Seen::default(),
        })
    }

    /// The request of a `nudge.suggest`, by a client session that was told `seen`.
    fn suggest(params: Suggest, context: Context, now: Millis, limit: usize, seen: Seen) -> Self {
        let text = match params.event {
            SuggestEvent::Prompt => params.prompt.unwrap_or_default(),
            SuggestEvent::Start | SuggestEvent::Failure => String::new(),
        };
        Self {
            moment: match params.event {
                SuggestEvent::Start => Moment::Start,
                SuggestEvent::Prompt => Moment::Prompt,
                SuggestEvent::Failure => Moment::Failure,
            },
            context,
            words: Words::of(&text),
            text,
            command: params.command,
            error: params.error.unwrap_or_default(),
            client_session: params.client_session,
            now,
            deadline: Instant::now() + PATIENCE,
            limit,
            max_bytes: params.max_bytes.unwrap_or(DEFAULT_MAX_BYTES),
            confirm_ms: params.confirm_ms,
            sources: Vec::new(),
            seen,
        }
    }
}

/// Answers `nudge.recall`: asks for offers, chooses among them, and notes nothing. `sources` names those there are.
///
/// # Errors
/// `E_INVALID` for params out of range, or a source that is not there.
pub fn recall<I>(
    params: Recall,
    sources: &[&str],
    now: Millis,
    ask: impl FnOnce(&Arc<SuggestRequest>) -> Offered<I>,
) -> Result<Recalled<I>> {
    let request = Arc::new(SuggestRequest::recall(params, sources, now)?);
    let (offered, late) = ask(&request);
    let budget = Budget { count: request.limit, bytes: request.max_bytes };
    Ok(Recalled::new(merge(offered, budget), late))
}

impl Suggest {
    /// Checks sizes and ranges.
    fn check(&self) -> Result<()> {
        check_session(self.client_session.as_deref())?;
        let texts = [&self.prompt, &self.command, &self.error];
        if texts.into_iter().flatten().any(|text| text.len() > MAX_TEXT_BYTES) {
            return Err(Error::invalid("prompt, command and error may have 64 KiB each; send the end of a long text."));
        }
        if self.limit == Some(0) {
            return Err(Error::invalid("limit must be a whole number of 1 or more."));
        }
        if self.confirm_ms.is_some_and(|ms| !(1..=MAX_CONFIRM_MS).contains(&ms)) {
            return Err(Error::invalid("confirm_ms must be a whole number from 1 to 60000."));
        }
        Ok(())
    }
}

/// Without the texts, which may hold secrets.
impl fmt::Debug for SuggestRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SuggestRequest({:?})", self.moment)
    }
}

/// One line that a source would tell. `I` is the form in which it has the thing itself.
#[derive(Debug, Clone)]
pub struct Offer<I = Item> {
    /// Names it among the offers of its source, so that a session is told once.
    pub id: Box<str>,
    /// Its name in a list of names, such as `api/build`.
    pub name: String,
    /// The line that the model reads, guarded, without a secret.
    pub line: String,
    /// The number of bytes of the budget that it takes.
    pub bytes: usize,
    /// 0 to 1; 0.5 is a hint of default priority that is scoped to where the agent stands.
    pub strength: f64,
    /// Comes before everything else, such as a signal that was escalated.
    pub must: bool,
    /// The reason for telling it now, in a few words.
    pub why: String,
    /// The numbers by which it was chosen.
    pub explain: MatchExplain,
    /// The call that gets the whole of it.
    pub more: More,
    /// The thing itself, a JSON object; its members stand beside the others in the answer.
    pub item: I,
}

impl<I> Offer<I> {
    /// The same with its item in another form.
    pub fn map<J>(self, item: impl FnOnce(I) -> J) -> Offer<J> {
        let Self { id, name, line, bytes, strength, must, why, explain, more, item: old } = self;
        Offer { id, name, line, bytes, strength, must, why, explain, more, item: item(old) }
    }
}

/// The call that gets the whole of something.
#[derive(Debug, Clone, Serialize)]
pub struct More {
    /// The method, such as `nudge.get_hint`.
    pub method: &'static str,
    /// Its params.
    pub params: Box<RawValue>,
}

/// The offers of one source.
#[derive(Debug)]
pub struct Offers<I = Item> {
    /// Best first.
    pub offers: Vec<Offer<I>>,
    /// The number of further ones that it would have offered but for the limits of the request.
    pub omitted: usize,
    /// The least strength at which the best of these comes before the stronger ones of other sources.
    pub floor: f64,
}

impl<I> Default for Offers<I> {
    fn default() -> Self {
        Self { offers: Vec::new(), omitted: 0, floor: 0.25 }
    }
}

/// The offers of all sources, by name, and the names of those that did not answer in time.
pub type Offered<I = Item> = (Vec<(&'static str, Offers<I>)>, Vec<&'static str>);

/// The end of a command, as every source is told.
#[derive(Debug, Clone, Copy)]
pub struct CommandOutcome<'a> {
    /// The line that ran.
    pub command: &'a str,
    /// Whether it worked.
    pub ok: bool,
    /// Its exit code, if known.
    pub exit_code: Option<i64>,
    /// Where it ran.
    pub context: &'a Context,
}

/// The effect of an outcome on a source.
#[derive(Debug, Default)]
pub struct Counted {
    /// The ids of its offers that say the command; none when the call was made before.
    pub ids: Vec<Box<str>>,
    /// The changed things, as the answer tells them.
    pub matched: Vec<Box<RawValue>>,
}
