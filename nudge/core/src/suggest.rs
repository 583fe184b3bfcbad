//! Chooses the lines that an agent is told at an event: each source makes offers, and one function chooses among them.
//!
//! An agent's hooks call `nudge.suggest` at the start of a session, at a prompt, after a failed command and, for urgent
//! lines, after every tool. An agent or a person asks a question in words with `nudge.recall`. Both methods ask every
//! source for [`SourceOffers`] at the same time, and hold no lock while they wait. Then [`merge_offers`] chooses among
//! the offers within one budget of bytes. [`Suggester`] remembers the lines that each client session was told, and
//! their outcome (semantics section 10).

mod answer;
mod counts;
mod digest;
pub mod evidence;
mod memory;
mod merge;
mod params;
mod report;
mod told;
pub mod unproven;

use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::clock::Millis;
use crate::context::Context;
use crate::embed::{ModelProvider, ModelState, QuestionVector, TextEmbedder};
use crate::error::{Error, Result};
use crate::explain::{MatchExplain, ScoreParts};
use crate::relevance::QueryTerms;
use params::MAX_TEXT_BYTES;

pub use answer::{HeldBackPart, RecallAnswer, SourceItem, SuggestAnswer, SuggestedLine, ToldAnswer};
pub use counts::{HourStats, NewCounts, SessionStats, SuggestCounts};
pub use digest::{DigestBuilder, DigestText, answer_digest};
pub use memory::Suggester;
pub use merge::{AnswerBudget, MergedOffers, merge_offers};
pub use params::{
    CLIENT_SESSIONS, DIGEST, MAX_CONFIRM_MS, OUTCOME, OutcomeParams, RECALL, RecallParams, STATS, SUGGEST,
    SuggestEvent, SuggestParams, TOLD, ToldParams,
};
pub use told::{ClientSessionTold, ClientSessions, LineOutcome, LoggedLine, SessionPlace};

/// The time in which sources answer a `nudge.suggest`. A hook has 45 ms in total, from its start to its last output.
const PATIENCE: Duration = Duration::from_millis(25);
/// The time in which sources answer a `nudge.recall`.
const RECALL_PATIENCE: Duration = Duration::from_millis(250);

/// Returns the time in which sources answer a caller who confirms the lines within `confirm_ms`. A hook sends its own
/// time limit as `confirm_ms`. If that limit is more than 45 ms, the sources get more time too.
fn choose_patience(confirm_ms: Option<u64>) -> Duration {
    confirm_ms.map_or(PATIENCE, |ms| PATIENCE.max(Duration::from_millis(ms) * 5 / 9))
}

/// The event for which lines are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuggestMoment {
    /// A session begins: tell lines that apply in this context.
    Start,
    /// The user sent a prompt: tell lines that match the words.
    Prompt,
    /// A command failed: tell lines that may work instead.
    Failure,
    /// A tool was used: tell only offers with [`Offer::must`], which cannot wait.
    Tool,
    /// The agent is about to end its turn: tell only offers with [`Offer::must`], which name things to do before the
    /// end.
    Stop,
    /// A caller asks a question in words (`nudge.recall`).
    Recall,
}

/// The request that all sources get; they share one value.
#[derive(Clone)]
pub struct SuggestRequest {
    /// The event of the request.
    pub moment: SuggestMoment,
    /// The agent's context.
    pub context: Context,
    /// The informative words of the prompt, of the query or of the error's last lines; empty at a start.
    pub terms: QueryTerms,
    /// The full prompt or query; empty at the other events.
    pub text: String,
    /// The command that failed.
    pub command: Option<String>,
    /// The output of the failed command.
    pub error: String,
    /// The tool that was used or that failed, or the kind of subagent that ends, by the agent's own name for the tool
    /// or kind.
    pub tool: Option<String>,
    /// The file that the tool worked on.
    pub file: Option<String>,
    /// The agent's session, if it has a name.
    pub client_session: Option<String>,
    /// The time by the store's clock, in milliseconds since 1970.
    pub now: Millis,
    /// The moment at which the server answers, even if a source is late.
    pub deadline: Instant,
    /// The most offers that the answer can have.
    pub limit: usize,
    /// The most bytes of lines that the answer can have.
    pub max_bytes: usize,
    /// The milliseconds in which the caller confirms the lines; `None` when they count as told at once.
    confirm_ms: Option<u64>,
    /// The ticket of an earlier answer. The caller shows that answer together with this one.
    ticket: Option<String>,
    /// The sources to ask; all when empty.
    sources: Vec<String>,
    thought: OnceLock<(Arc<dyn TextEmbedder>, QuestionVector)>,
    known: SessionKnowledge,
}

/// For each source, the ids of its offers. Each id has the stamp with which the offer was told.
type Ids = Arc<HashMap<&'static str, HashMap<Box<str>, u64, RandomState>>>;

/// The offers that one client session was told or need not be told.
#[derive(Debug, Clone, Default)]
struct SessionKnowledge {
    /// The offers that the client session was told.
    told: Ids,
    /// The offers that the client session need not be told now, because they were told or another call is about to tell
    /// them. After a failed command, only the offers that were told after the same failure count.
    needless: Ids,
}

impl SuggestRequest {
    /// Returns true when the client session need not be told the offer of `source` with this id.
    pub fn is_needless(&self, source: &str, id: &str) -> bool {
        self.known.needless.get(source).is_some_and(|ids| ids.contains_key(id))
    }

    /// Returns true when `source` has at least one offer that need not be told.
    pub fn is_any_needless(&self, source: &str) -> bool {
        self.known.needless.get(source).is_some_and(|ids| !ids.is_empty())
    }

    /// Returns the ids of the offers of `source` that the client session was told. Each id comes with the stamp with
    /// which the offer was told. A source reports a changed offer as an [`OfferChange`].
    pub fn told_offers(&self, source: &str) -> impl Iterator<Item = (&str, u64)> {
        self.known.told.get(source).into_iter().flatten().map(|(id, stamp)| (&**id, *stamp))
    }

    /// Returns the loaded model and the vector of the prompt or question. `None` when no model is loaded, or when the
    /// vector was not ready in time. The vector is computed once for all sources.
    pub fn question_vector(&self) -> Option<(&dyn TextEmbedder, &QuestionVector)> {
        self.thought.get().map(|(model, thought)| (&**model, thought))
    }

    /// Computes the vector of the prompt or the question if a model is loaded, and waits for it at most `patience`. A
    /// caller does this before it asks the sources. A model that is not in memory is loaded in the background for the
    /// next call, so no prompt waits for it.
    pub fn embed_question(&self, models: &dyn ModelProvider, patience: Duration) {
        if self.moment == SuggestMoment::Start {
            models.get(Duration::ZERO);
        }
        if !matches!(self.moment, SuggestMoment::Prompt | SuggestMoment::Recall) || self.text.trim().is_empty() {
            return;
        }
        let ModelState::Ready(model) = models.get(Duration::ZERO) else { return };
        let text = self.text.clone();
        let (sender, understood) = channel();
        let work = move || {
            let thought = QuestionVector::of_prompt(&text, &*model).ok();
            // The receiver no longer exists if the wait has ended.
            let _ = sender.send(thought.map(|thought| (model, thought)));
        };
        if std::thread::Builder::new().name("nudge-thought".into()).spawn(work).is_ok()
            && let Ok(Some(thought)) = understood.recv_timeout(patience)
        {
            let _ = self.thought.set(thought);
        }
    }

    /// Returns the time until the answer is given.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns true when the request is for this source.
    pub fn asks_source(&self, source: &str) -> bool {
        self.sources.is_empty() || self.sources.iter().any(|name| name == source)
    }

    /// Makes the request of a `nudge.recall`. No client session remembers its lines.
    fn from_recall(params: RecallParams, sources: &[&str], now: Millis) -> Result<Self> {
        if params.sources.iter().any(|name| !sources.contains(&&**name)) {
            // The message does not repeat the name, which may hold any text.
            return Err(Error::invalid(format!("There is no such source; there are {}.", sources.join(", "))));
        }
        if params.query.len() > MAX_TEXT_BYTES {
            return Err(Error::invalid("`query` may have 64 KiB; ask in fewer words.").about("query"));
        }
        Ok(Self {
            moment: SuggestMoment::Recall,
            context: params.context.build()?,
            terms: QueryTerms::of_query(&params.query),
            text: params.query,
            command: None,
            error: String::new(),
            tool: None,
            file: None,
            client_session: None,
            now,
            deadline: Instant::now() + RECALL_PATIENCE,
            limit: params.limit.get(),
            max_bytes: params.max_bytes.get(),
            confirm_ms: None,
            ticket: None,
            sources: params.sources,
            thought: OnceLock::new(),
            known: SessionKnowledge::default(),
        })
    }

    /// Makes the request of a `nudge.suggest` for a client session with the told lines `known`.
    fn from_suggest(
        params: SuggestParams,
        context: Context,
        now: Millis,
        limit: usize,
        known: SessionKnowledge,
    ) -> Self {
        let text = match params.event {
            SuggestEvent::Prompt => params.prompt.unwrap_or_default(),
            SuggestEvent::Start | SuggestEvent::Failure | SuggestEvent::Tool | SuggestEvent::Stop => String::new(),
        };
        let error = params.error.unwrap_or_default();
        let confirm_ms = params.confirm_ms.map(|ms| ms.get() as u64);
        Self {
            moment: match params.event {
                SuggestEvent::Start => SuggestMoment::Start,
                SuggestEvent::Prompt => SuggestMoment::Prompt,
                SuggestEvent::Failure => SuggestMoment::Failure,
                SuggestEvent::Tool => SuggestMoment::Tool,
                SuggestEvent::Stop => SuggestMoment::Stop,
            },
            context,
            terms: match params.event {
                SuggestEvent::Start | SuggestEvent::Tool | SuggestEvent::Stop => QueryTerms::default(),
                SuggestEvent::Prompt => QueryTerms::of_prompt(&text),
                SuggestEvent::Failure => QueryTerms::of_error(&error),
            },
            text,
            command: params.command,
            error,
            tool: params.tool,
            file: params.file,
            client_session: params.client_session,
            now,
            deadline: Instant::now() + choose_patience(confirm_ms),
            limit,
            max_bytes: params.max_bytes.get(),
            confirm_ms,
            ticket: params.ticket,
            sources: Vec::new(),
            thought: OnceLock::new(),
            known,
        }
    }
}

/// Answers `nudge.recall`: asks for offers, chooses among them, and stores nothing. `sources` lists the names of all
/// sources.
///
/// # Errors
/// `E_INVALID` for params out of range, or for a source that does not exist.
pub fn answer_recall<I>(
    params: RecallParams,
    sources: &[&str],
    now: Millis,
    ask: impl FnOnce(&Arc<SuggestRequest>) -> Offered<I>,
) -> Result<RecallAnswer<I>> {
    let request = Arc::new(SuggestRequest::from_recall(params, sources, now)?);
    let (offered, late) = ask(&request);
    let budget = AnswerBudget { count: request.limit, bytes: request.max_bytes };
    Ok(RecallAnswer::new(merge_offers(offered, budget), late))
}

/// Prints only the event: the texts may hold secrets.
impl fmt::Debug for SuggestRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SuggestRequest({:?})", self.moment)
    }
}

/// A line that a source offers. `I` is the type of the item that the line is about.
#[derive(Debug, Clone)]
pub struct Offer<I = SourceItem> {
    /// Identifies the offer within its source, so that each client session is told the offer once.
    pub id: Box<str>,
    /// The name in a list of names, such as `api/build`.
    pub name: String,
    /// The line that the model reads. The secret guard has checked it.
    pub line: String,
    /// The named addends of the offer's strength.
    pub parts: ScoreParts,
    /// A number that changes when the line changes. A line with a new number is told again.
    pub stamp: u64,
    /// Is true for a line that comes before all lines for which this is false, such as an escalated signal.
    pub must: bool,
    /// The files and folders that the line names, relative to the repository or to a folder of it. The program that
    /// shows the line can check whether the paths exist.
    pub paths: Vec<String>,
    /// The command line that the line tells the agent to run. The program that shows the line can check its target too.
    pub command: Option<String>,
    /// The reason for telling the line now, in a few words.
    pub why: String,
    /// The numbers that explain the choice.
    pub explain: MatchExplain,
    /// The call that returns the full content.
    pub more: MoreCall,
    /// The item that the line is about: a JSON object. The answer has the members of this object beside the other
    /// members of the line.
    pub item: I,
}

impl<I> Offer<I> {
    /// Converts the item to another form.
    pub fn map<J>(self, item: impl FnOnce(I) -> J) -> Offer<J> {
        let Self { id, name, line, parts, stamp, must, paths, command, why, explain, more, item: old } = self;
        Offer { id, name, line, parts, stamp, must, paths, command, why, explain, more, item: item(old) }
    }

    /// Returns the strength of the offer, 0 to 1. A hint of default priority has 0.5 if its scope fits the agent's
    /// context. A sum that is not a number counts as 0.
    pub fn strength(&self) -> f64 {
        let sum = self.parts.total();
        if sum.is_nan() { 0.0 } else { sum.clamp(0.0, 1.0) }
    }
}

/// A change of an offer that the client session was told earlier.
#[derive(Debug, Clone)]
pub struct OfferChange {
    /// The id of the offer that was told.
    pub id: Box<str>,
    /// The name of the offer in a list of names.
    pub name: String,
    /// The line that the model reads. The secret guard has checked it. The line has the new content, or says that the
    /// item is gone.
    pub line: String,
    /// The stamp of the new content. `None` when the item is gone; if it comes back, it can be told again.
    pub stamp: Option<u64>,
}

/// The call that returns the full content of an offer.
#[derive(Debug, Clone, Serialize)]
pub struct MoreCall {
    /// The method, such as `nudge.get_hint`.
    pub method: &'static str,
    /// The params.
    pub params: Box<RawValue>,
}

/// The offers of one source.
#[derive(Debug)]
pub struct SourceOffers<I = SourceItem> {
    /// The offers, best first.
    pub offers: Vec<Offer<I>>,
    /// The changes of offers that the client session was told earlier.
    pub changes: Vec<OfferChange>,
    /// The number of further offers that did not fit within the limits of the request.
    pub omitted: usize,
    /// The least strength at which the best offer of this source comes before stronger offers of other sources.
    pub floor: f64,
    /// Says which other lines could be offered and on which conditions. The note is for people, never for a model.
    pub note: Option<String>,
}

impl<I> Default for SourceOffers<I> {
    fn default() -> Self {
        Self { offers: Vec::new(), changes: Vec::new(), omitted: 0, floor: 0.25, note: None }
    }
}

/// The offers of all sources, each with the source's name, and the names of the sources that did not answer in time.
pub type Offered<I = SourceItem> = (Vec<(&'static str, SourceOffers<I>)>, Vec<&'static str>);

/// The outcome of a command, as each source receives it.
#[derive(Debug, Clone, Copy)]
pub struct CommandOutcome<'a> {
    /// The command line that ran.
    pub command: &'a str,
    /// Is true if the command worked.
    pub ok: bool,
    /// The exit code, if known.
    pub exit_code: Option<i64>,
    /// The agent's context.
    pub context: &'a Context,
    /// The agent's session, if it has a name.
    pub client_session: Option<&'a str>,
}

/// The effect of a command's outcome on a source.
#[derive(Debug, Default)]
pub struct OutcomeEffect {
    /// The ids of the source's offers that name this command. Empty when the same call was made before.
    pub ids: Vec<Box<str>>,
    /// The changed items of the source, in the form of the answer.
    pub matched: Vec<Box<RawValue>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_longer_has_later_deadlines() {
        let begun = Instant::now();
        let suggest = |confirm_ms: Option<u64>| {
            let params =
                serde_json::from_value(serde_json::json!({"event": "start", "confirm_ms": confirm_ms})).unwrap();
            let known = SessionKnowledge::default();
            SuggestRequest::from_suggest(params, Context::default(), 0, 1, known).deadline
        };
        for confirm_ms in [None, Some(1), Some(45)] {
            let deadline = suggest(confirm_ms);
            assert!(begun + PATIENCE <= deadline && deadline <= Instant::now() + PATIENCE, "{confirm_ms:?}");
        }
        assert!(suggest(Some(450)) >= begun + 10 * PATIENCE);
        let params = serde_json::from_value(serde_json::json!({"query": "x"})).unwrap();
        assert!(SuggestRequest::from_recall(params, &[], 0).unwrap().deadline >= begun + RECALL_PATIENCE);
    }
}
