//! `nudge.suggest`

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::query::row;
use super::{Counts, QueryRow, Row, answer, schema};
use crate::cache::Nudge;
use crate::clock::Millis;
use crate::context::ContextSpec;
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::service::{ContextUse, Method};
use crate::store::Filter;
use crate::wire;

/// Bytes of value text in one answer, when the caller does not say.
const DEFAULT_MAX_BYTES: usize = 2_000;
/// The span in which the number of suggestions to one client session is limited.
const WINDOW_MS: Millis = 10 * 60_000;
/// Client sessions remembered; the one idle longest goes first.
const MAX_SESSIONS: usize = 1024;
/// How alike a failed command and a hint's command must be.
const NEAR: f64 = 0.5;
/// Longest text looked at for words.
const MAX_TEXT_BYTES: usize = 64 << 10;

pub(super) static ROW: Row = Row {
    method: Method {
        name: "nudge.suggest",
        title: "Suggest hints",
        description: "What an agent should be told now, unasked: at the start of a session, for a prompt, or after a command failed.",
        tool: false,
        frequent: false,
        read_only: false,
        destructive: false,
        idempotent: false,
        context: ContextUse::Inferred,
        params: schema::<Suggest>,
    },
    run: |nudge, _, params| answer(params, |params| nudge.suggest(params)),
};

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

/// Params of [`Nudge::suggest`].
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
    /// The agent's session; a hint is shown to it once.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
    /// Forget what the session was shown, as after a compaction.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub fresh: bool,
    /// Most bytes of value text; 2,000 when absent.
    #[serde(default, deserialize_with = "wire::given")]
    pub max_bytes: Option<usize>,
}

/// Without the texts, which may hold secrets.
impl fmt::Debug for Suggest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Suggest({:?})", self.event)
    }
}

/// Result of [`Nudge::suggest`].
#[derive(Debug, Clone, Serialize)]
pub struct Suggestions {
    /// Best first; never a secret.
    pub suggestions: Vec<Suggestion>,
    /// How many more the limits held back.
    pub omitted: usize,
    /// Whether the client session had been told a `start` before; false without one.
    pub started: bool,
}

/// One hint worth telling.
#[derive(Debug, Clone, Serialize)]
pub struct Suggestion {
    /// The hint, its score and reasons.
    #[serde(flatten)]
    pub row: QueryRow,
    /// Why now.
    pub why: String,
}

/// What each client session was shown, and what came of it.
#[derive(Default)]
pub(crate) struct Shown {
    sessions: HashMap<String, Session>,
    /// Of suggestions to nobody in particular, and of sessions that are forgotten.
    pub gone: Counts,
}

#[derive(Default)]
pub(crate) struct Session {
    hints: HashSet<(Arc<str>, Box<str>, Box<str>)>,
    /// When suggestions were made, within the window.
    times: VecDeque<Millis>,
    /// Was told a `start`.
    started: bool,
    pub counts: Counts,
    pub last: Millis,
}

impl Shown {
    fn session(&mut self, name: &str, fresh: bool, now: Millis) -> &mut Session {
        if !self.sessions.contains_key(name) && self.sessions.len() >= MAX_SESSIONS {
            let idle = self.sessions.iter().min_by_key(|(_, session)| session.last).map(|(name, _)| name.clone());
            if let Some(idle) = idle.and_then(|name| self.sessions.remove(&name)) {
                self.gone.add(idle.counts);
            }
        }
        let session = self.sessions.entry(name.to_owned()).or_default();
        if fresh {
            session.hints.clear();
        }
        session.last = now;
        while session.times.front().is_some_and(|&at| now - at >= WINDOW_MS) {
            session.times.pop_front();
        }
        session
    }

    pub fn sessions(&self) -> impl Iterator<Item = (&str, &Session)> {
        self.sessions.iter().map(|(name, session)| (name.as_str(), session))
    }

    /// Counts how a command ended, if one of the hints that say it had been shown to the session.
    pub fn ended(&mut self, name: &str, hints: &[&Hint], ok: bool, now: Millis) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        session.last = now;
        if hints.iter().any(|hint| session.hints.contains(&identity(hint))) {
            *(if ok { &mut session.counts.followed } else { &mut session.counts.failed }) += 1;
        }
    }
}

fn identity(hint: &Hint) -> (Arc<str>, Box<str>, Box<str>) {
    (Arc::clone(&hint.component), hint.key.clone(), hint.variant().into())
}

impl Nudge {
    /// Says what to tell an agent now (contract section 10).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn suggest(&self, params: Suggest) -> Result<Suggestions> {
        let texts = [&params.prompt, &params.command, &params.error, &params.client_session];
        if texts.into_iter().flatten().any(|text| text.len() > MAX_TEXT_BYTES) {
            return Err(Error::invalid(
                "prompt, command, error and client_session may have 64 KiB each; send the end of a long text.",
            ));
        }
        let context = params.context.build()?;
        let now = self.now();
        let trigger =
            Trigger::new(params.event, params.prompt.as_deref(), params.command.as_deref(), params.error.as_deref());
        let filter =
            Filter { component: None, keys: &[], tags: &[], context: &context, include_ineligible: false, now };
        let found = self.search(&filter, usize::MAX, |hint| !hint.is_secret() && trigger.why(hint).is_some());
        let mut shown = self.shown.lock();
        let mut session = params.client_session.as_deref().map(|name| shown.session(name, params.fresh, now));
        let used = session.as_ref().map_or(0, |session| session.times.len());
        let (mut count, mut bytes) =
            (self.config().suggest_max.saturating_sub(used), params.max_bytes.unwrap_or(DEFAULT_MAX_BYTES));
        let started = session.as_ref().is_some_and(|session| session.started);
        let mut out = Suggestions { suggestions: Vec::new(), omitted: 0, started };
        let mut told = Counts::default();
        for found in found {
            if session.as_ref().is_some_and(|session| session.hints.contains(&identity(&found.hint))) {
                continue;
            }
            let size = found.hint.text().len();
            if count == 0 || size > bytes {
                out.omitted += 1;
                continue;
            }
            (count, bytes) = (count - 1, bytes - size);
            told.add(Counts { suggestions: 1, bytes: size as u64, ..Counts::default() });
            if let Some(session) = &mut session {
                session.hints.insert(identity(&found.hint));
                session.times.push_back(now);
            }
            let why = trigger.why(&found.hint).unwrap_or_default();
            out.suggestions.push(Suggestion { row: row(found, &context, now), why });
        }
        match session {
            Some(session) => {
                session.started |= params.event == SuggestEvent::Start;
                session.counts.add(told);
            }
            None => shown.gone.add(told),
        }
        Ok(out)
    }
}

/// What makes a hint worth telling.
enum Trigger {
    Start,
    Prompt(HashSet<String>),
    Failure { command: Option<Line>, error: String },
}

impl Trigger {
    fn new(event: SuggestEvent, prompt: Option<&str>, command: Option<&str>, error: Option<&str>) -> Self {
        match event {
            SuggestEvent::Start => Self::Start,
            SuggestEvent::Prompt => Self::Prompt(
                words(prompt.unwrap_or_default()).filter(|word| !COMMON.contains(&word.as_str())).collect(),
            ),
            SuggestEvent::Failure => {
                Self::Failure { command: command.map(Line::new), error: error.unwrap_or_default().to_lowercase() }
            }
        }
    }

    /// Why the hint is worth telling now, or `None`.
    fn why(&self, hint: &Hint) -> Option<String> {
        match self {
            Self::Start => Some("it applies here".into()),
            Self::Prompt(wanted) => {
                let texts = [hint.component(), hint.key(), hint.text()].into_iter().chain(hint.tags());
                let word = texts.flat_map(words).find(|word| wanted.contains(word))?;
                Some(format!("the prompt mentions {word}"))
            }
            Self::Failure { command, error } => {
                let near = command.as_ref().is_some_and(|failed| {
                    hint.value().command_line().is_some_and(|line| failed.is_near(&Line::new(line)))
                });
                if near {
                    return Some("it is close to the command that failed".into());
                }
                let named = hint.tags().any(|tag| tag == "fix") && names(error, hint.component());
                named.then(|| format!("it is a fix for {}, which the error names", hint.component()))
            }
        }
    }
}

/// A command line in words.
struct Line {
    words: Vec<String>,
}

impl Line {
    fn new(line: &str) -> Self {
        let mut words = line.split_whitespace().map(str::to_owned).peekable();
        // What stands before the program changes nothing about what is run.
        while words.next_if(|word| word == "sudo" || word == "time" || is_assignment(word)).is_some() {}
        Self { words: words.collect() }
    }

    /// Same program, at least half of the words in common, and not the same line.
    fn is_near(&self, other: &Self) -> bool {
        if self.words.is_empty() || self.words.first() != other.words.first() || self.words == other.words {
            return false;
        }
        let (a, b): (HashSet<_>, HashSet<_>) = (self.words.iter().collect(), other.words.iter().collect());
        // Word counts of texts of at most 64 KiB.
        #[allow(clippy::cast_precision_loss)]
        let share = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
        share >= NEAR
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Lower-case words of three letters or more.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() >= 3)
}

/// Whether `text`, in lower case, names the component: not as a part of a longer word.
fn names(text: &str, component: &str) -> bool {
    let component = component.to_lowercase();
    let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(&component)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + component.len()..].chars().next()))
}

/// English words too common to say anything about a prompt.
const COMMON: &[&str] = &[
    "about", "add", "after", "again", "all", "also", "and", "any", "are", "back", "because", "been", "before", "being",
    "but", "can", "change", "could", "did", "does", "doing", "done", "down", "each", "even", "every", "few", "first",
    "for", "from", "get", "give", "had", "has", "have", "having", "help", "her", "here", "him", "his", "how", "into",
    "its", "just", "know", "let", "like", "look", "made", "make", "many", "may", "more", "most", "much", "must",
    "need", "new", "not", "now", "off", "one", "only", "other", "our", "out", "over", "own", "please", "put", "same",
    "see", "set", "she", "should", "show", "some", "such", "take", "tell", "than", "thank", "thanks", "that", "the",
    "their", "them", "then", "there", "these", "they", "thing", "things", "think", "this", "those", "through", "too",
    "two", "under", "until", "use", "used", "using", "very", "want", "was", "way", "well", "were", "what", "when",
    "where", "which", "while", "who", "why", "will", "with", "without", "work", "would", "yes", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_commands() {
        let near = |a: &str, b: &str| Line::new(a).is_near(&Line::new(b));
        assert!(near("docker compose build proxy", "docker compose build router"));
        assert!(near("sudo docker compose build proxy", "FOO=1 time docker compose build router"));
        assert!(!near("docker compose build", "docker  compose build"));
        assert!(!near("docker ps", "podman ps"));
        assert!(!near("make a b c", "make d e f"));
        assert!(!near("", ""));
        assert!(!near("sudo", "sudo"));
    }

    #[test]
    fn names_in_errors() {
        let error = "error: service http-proxy not found in src/api (my app, c++)";
        for component in ["http-proxy", "HTTP-Proxy", "http", "src/api", "my app", "C++"] {
            assert!(names(error, component), "{component}");
        }
        assert!(!names(error, "servic") && !names(error, "pi"));
    }
}
