//! `nudge.suggest`

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::Equivalent;
use nudge_core::clock::Millis;
use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::service::Method;
use nudge_core::table::{Row, answer, schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::query::row;
use super::{Counts, QueryRow};
use crate::cache::Nudge;
use crate::hint::Hint;
use crate::store::Filter;

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

const ABOUT: &str = "\
What an agent should be told now, unasked: at the start of a session, for a prompt, or after a command failed.";

pub(super) static ROW: Row<Nudge> = Row {
    method: Method::new("nudge.suggest", "Suggest hints", ABOUT, schema::<Suggest>).inferred().quick(),
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
    /// Forget what the session was shown, as after a compaction; nothing of it counts in the 10 minutes then.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub fresh: bool,
    /// Most bytes of value text; 2,000 when absent.
    #[serde(default, deserialize_with = "wire::given")]
    pub max_bytes: Option<usize>,
    /// Most suggestions in this answer, 1 or more. What it holds back was not shown.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
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
    /// Whether a `start` had told the client session something before, or had been asked for twice; false
    /// without one.
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
    hints: hashbrown::HashSet<Name, RandomState>,
    /// When suggestions were made, within the window.
    times: VecDeque<Millis>,
    /// A `start` was asked for: it may have come too early, with nothing to tell yet.
    asked: bool,
    /// A `start` told something, or was asked for twice.
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
            session.times.clear();
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
        if hints.iter().any(|hint| session.hints.contains(&Named::of(hint))) {
            *(if ok { &mut session.counts.followed } else { &mut session.counts.failed }) += 1;
        }
    }
}

/// Component, key and variant of a hint that was shown.
type Name = (Arc<str>, Box<str>, Box<str>);

/// The same, to look it up without a copy.
#[derive(Hash)]
struct Named<'a>(&'a str, &'a str, &'a str);

impl<'a> Named<'a> {
    fn of(hint: &'a Hint) -> Self {
        Self(hint.component(), hint.key(), hint.variant())
    }
}

impl Equivalent<Name> for Named<'_> {
    fn equivalent(&self, name: &Name) -> bool {
        (self.0, self.1, self.2) == (&*name.0, &*name.1, &*name.2)
    }
}

impl Nudge {
    /// Says what to tell an agent now (semantics section 10).
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
        if params.limit == Some(0) {
            return Err(Error::invalid("limit must be a whole number of 1 or more."));
        }
        let context = params.context.build()?;
        let now = self.now();
        let trigger =
            Trigger::new(params.event, params.prompt.as_deref(), params.command.as_deref(), params.error.as_deref());
        let mut shown = self.shown.lock();
        let mut session = params.client_session.as_deref().map(|name| shown.session(name, params.fresh, now));
        let known = session.as_ref().map(|session| &session.hints);
        let only = |hint: &Hint| {
            !hint.is_secret()
                && trigger.why(hint).is_some()
                && known.is_none_or(|known| !known.contains(&Named::of(hint)))
        };
        let filter = Filter {
            component: None,
            keys: &[],
            tags: &[],
            context: &context,
            include_ineligible: false,
            only: Some(&only),
            now,
        };
        let mut found = self.store.best_first(&filter);
        let used = session.as_ref().map_or(0, |session| session.times.len());
        let allowed = self.config().suggest_max.saturating_sub(used);
        let mut count = params.limit.map_or(allowed, |limit| limit.min(allowed));
        let mut bytes = params.max_bytes.unwrap_or(DEFAULT_MAX_BYTES);
        let started = session.as_ref().is_some_and(|session| session.started);
        let mut out = Suggestions { suggestions: Vec::new(), omitted: 0, started };
        let mut told = Counts::default();
        // When none fits any more, the rest need not be put in order.
        let smallest = found.iter().map(|found| found.hint.text().len()).min().unwrap_or_default();
        while count > 0
            && bytes >= smallest
            && let Some(found) = found.pop()
        {
            let hint = &found.hint;
            let size = hint.text().len();
            if size > bytes {
                out.omitted += 1;
                continue;
            }
            (count, bytes) = (count - 1, bytes - size);
            told.add(Counts { suggestions: 1, bytes: size as u64, ..Counts::default() });
            if let Some(session) = &mut session {
                session.hints.insert((Arc::clone(&hint.component), hint.key.clone(), hint.variant().into()));
                session.times.push_back(now);
            }
            let why = trigger.why(hint).map(|why| why.to_string()).unwrap_or_default();
            out.suggestions.push(Suggestion { row: row(found, &context, now), why });
        }
        out.omitted += found.len();
        match session {
            Some(session) => {
                if params.event == SuggestEvent::Start {
                    session.started |= session.asked || told.suggestions > 0;
                    session.asked = true;
                }
                session.counts.add(told);
            }
            None => shown.gone.add(told),
        }
        Ok(out)
    }
}

/// What makes a hint worth telling.
enum Trigger<'a> {
    Start,
    Prompt(Words),
    Failure { command: Option<Line<'a>>, error: String },
}

/// Why a hint is worth telling.
enum Why<'a> {
    Applies,
    Mentioned(String),
    Near,
    Fix(&'a str),
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applies => f.write_str("it applies here"),
            Self::Mentioned(word) => write!(f, "the prompt mentions {word}"),
            Self::Near => f.write_str("it is close to the command that failed"),
            Self::Fix(component) => write!(f, "it is a fix for {component}, which the error names"),
        }
    }
}

impl<'a> Trigger<'a> {
    fn new(event: SuggestEvent, prompt: Option<&str>, command: Option<&'a str>, error: Option<&str>) -> Self {
        match event {
            SuggestEvent::Start => Self::Start,
            SuggestEvent::Prompt => Self::Prompt(Words::of(prompt.unwrap_or_default())),
            SuggestEvent::Failure => {
                Self::Failure { command: command.map(Line::new), error: error.unwrap_or_default().to_lowercase() }
            }
        }
    }

    /// Why the hint is worth telling now, or `None`. Asked of every hint that applies, so without a copy of
    /// its texts.
    fn why<'h>(&self, hint: &'h Hint) -> Option<Why<'h>> {
        match self {
            Self::Start => Some(Why::Applies),
            Self::Prompt(wanted) => {
                let mut texts = [hint.component(), hint.key(), hint.text()].into_iter().chain(hint.tags());
                texts.find_map(|text| wanted.first_in(text)).map(Why::Mentioned)
            }
            Self::Failure { command, error } => {
                let line = || hint.value().command_line();
                if command.as_ref().is_some_and(|failed| line().is_some_and(|line| failed.is_near(line))) {
                    return Some(Why::Near);
                }
                let named = hint.tags().any(|tag| tag == "fix") && names(error, hint.component());
                named.then(|| Why::Fix(hint.component()))
            }
        }
    }
}

/// The words of a prompt that say something.
struct Words {
    words: HashSet<String>,
    /// A bit for each: few words of hints have one, and only those are copied and looked up.
    marks: [u64; MARKS / 64],
}

const MARKS: usize = 1024;

impl Words {
    fn of(prompt: &str) -> Self {
        let words: HashSet<_> = (words(prompt).map(str::to_lowercase))
            .filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() >= 3)
            .filter(|word| !COMMON.contains(&word.as_str()))
            .collect();
        let mut marks = [0; MARKS / 64];
        for word in &words {
            let mark = mark(word.as_bytes());
            marks[mark / 64] |= 1 << (mark % 64);
        }
        Self { words, marks }
    }

    /// The first word of `text` that is one of these, in lower case.
    fn first_in(&self, text: &str) -> Option<String> {
        let known = |word: &str| Some(word.to_lowercase()).filter(|word| self.words.contains(word));
        if !text.is_ascii() {
            return words(text).find_map(known);
        }
        // Nearly every text of every hint comes by here.
        let mut words = text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
        words.find_map(|word| {
            let mark = mark(word);
            let may_be = self.marks[mark / 64] & 1 << (mark % 64) != 0;
            str::from_utf8(word).ok().filter(|_| may_be).and_then(known)
        })
    }
}

/// The same for a word in upper and in lower case.
fn mark(word: &[u8]) -> usize {
    let folded = |at: usize| word.get(at).map_or(0, |byte| usize::from(byte | 0x20));
    (folded(0) + 31 * folded(1) + 7 * folded(2) + word.len()) % MARKS
}

/// What stands between characters that are no letters or digits.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= 3)
}

/// A command line that failed.
struct Line<'a> {
    words: Vec<&'a str>,
    /// Its words in order, each once.
    distinct: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Self {
        let words: Vec<_> = command_words(line).collect();
        Self { distinct: distinct(words.clone()), words }
    }

    /// Same program, at least half of the words in common, and not the same line.
    fn is_near(&self, other: &str) -> bool {
        let mut others = command_words(other);
        let Some(program) = others.next().filter(|program| self.words.first() == Some(program)) else { return false };
        let others: Vec<_> = std::iter::once(program).chain(others).collect();
        if others == self.words {
            return false;
        }
        let others = distinct(others);
        let common = others.iter().filter(|word| self.distinct.binary_search(word).is_ok()).count();
        // Word counts of texts of at most 64 KiB.
        #[allow(clippy::cast_precision_loss)]
        let share = common as f64 / (self.distinct.len() + others.len() - common) as f64;
        share >= NEAR
    }
}

fn distinct(mut words: Vec<&str>) -> Vec<&str> {
    words.sort_unstable();
    words.dedup();
    words
}

/// From the program on: what stands before it changes nothing about what is run.
fn command_words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().skip_while(|word| *word == "sudo" || *word == "time" || is_assignment(word))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
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
        let near = |a: &str, b: &str| Line::new(a).is_near(b);
        assert!(near("docker compose build proxy", "docker compose build router"));
        assert!(near("sudo docker compose build proxy", "FOO=1 time docker compose build router"));
        assert!(!near("docker compose build", "docker  compose build"));
        assert!(!near("docker ps", "podman ps"));
        assert!(!near("make a b c", "make d e f"));
        assert!(!near("", ""));
        assert!(!near("sudo", "sudo"));
    }

    #[test]
    fn words_of_a_prompt() {
        let prompt = Words::of("Please run the API-tests of StraßE 42abc, İstanbul, x1y2 and the a1b2c3");
        let found = |text: &str| prompt.first_in(text);
        for (text, word) in [
            ("docker run x", "run"),
            ("RUN", "run"),
            ("the:api", "api"),
            ("42ABC", "42abc"),
            ("STRASSE straße", "straße"),
            ("A1B2C3", "a1b2c3"),
            ("(İSTANBUL)", "i\u{307}stanbul"),
        ] {
            assert_eq!(found(text).as_deref(), Some(word), "{text}");
        }
        for text in ["", "the please and", "runs", "apis test", "x1y2", "42"] {
            assert_eq!(found(text), None, "{text}");
        }
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
