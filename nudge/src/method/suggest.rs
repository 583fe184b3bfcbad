//! `nudge.suggest`, `nudge.told` and `nudge.recall` for hints: selects the hints to show now, and formats their lines.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use nudge_core::clock::Millis;
use nudge_core::error::Result;
use nudge_core::explain::four_decimals;
use nudge_core::steps::Steps;
use nudge_core::suggest::{
    self, Confirmed, Moment, More, Offer, Offers, RECALL, Recall, Recalled, SUGGEST, Suggest, SuggestRequest, TOLD,
    Told,
};
use nudge_core::table::{Row, answer};
use nudge_core::text::{ago, one_line, visible};
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::query::{QueryRow, row};
use crate::cache::Nudge;
use crate::hint::{Hint, NAME, Source};
use crate::store::Filter;

/// Smallest similarity between a failed command and a hint's command.
const NEAR: f64 = 0.5;
/// Longest value in a line; `nudge.get_hint` returns all of it.
const MAX_VALUE_CHARS: usize = 300;
const MAX_REASON_CHARS: usize = 120;
/// Score at which a hint's strength among the offers of all sources is a half. It is the score of a hint of default
/// priority and confidence that was just set and has one condition on its scope.
const HALF_STRENGTH: f64 = 1.0 / 3.0;

pub(super) static ROW: Row<Nudge> =
    Row { method: SUGGEST.quick(), run: |nudge, _, params| answer(params, |params| nudge.suggest(params)) };

pub(super) static TOLD_ROW: Row<Nudge> =
    Row { method: TOLD, run: |nudge, _, params| answer(params, |params| nudge.told(&params)) };

pub(super) static RECALL_ROW: Row<Nudge> =
    Row { method: RECALL.quick(), run: |nudge, _, params| answer(params, |params| nudge.recall(params)) };

/// Result of [`Nudge::suggest`].
pub type Suggestions = suggest::Suggestions<SuggestedHint>;

/// One suggested hint.
pub type Suggestion = suggest::Suggestion<SuggestedHint>;

/// The hint of a [`Suggestion`].
#[derive(Debug, Clone, Serialize)]
pub struct SuggestedHint {
    /// The hint; never a secret.
    #[serde(serialize_with = "super::set::redacted")]
    pub hint: Arc<Hint>,
    /// The score, 0 to 1; four decimals in JSON.
    #[serde(serialize_with = "four_decimals")]
    pub score: f64,
}

impl Nudge {
    /// Returns the hints to show to an agent now (semantics section 10).
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn suggest(&self, params: Suggest) -> Result<Suggestions> {
        self.suggester.suggest(params, || self.now(), |request| (vec![(NAME, self.offer(request))], Vec::new()))
    }

    /// Confirms that the suggestions of a ticket were shown (semantics section 10). A ticket that is not known, or was
    /// confirmed before, changes nothing.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn told(&self, params: &Told) -> Result<Confirmed> {
        self.suggester.told(params, self.now())
    }

    /// Returns the hints that a question in words brings to mind. They do not count as shown.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn recall(&self, params: Recall) -> Result<Recalled<SuggestedHint>> {
        suggest::recall(params, &[NAME], self.now(), |request| (vec![(NAME, self.offer(request))], Vec::new()))
    }

    /// Returns the hints worth showing, best first, as many as there is room for.
    pub(crate) fn offer(&self, request: &SuggestRequest) -> Offers<SuggestedHint> {
        let trigger = Trigger::new(request);
        let known = request.seen(NAME);
        let only = |hint: &Hint| {
            !hint.is_secret() && trigger.why(hint).is_some() && known.is_none_or(|known| !known.contains(&*id(hint)))
        };
        let filter = Filter {
            component: None,
            keys: &[],
            tags: &[],
            context: &request.context,
            include_ineligible: false,
            only: Some(&only),
            now: request.now,
        };
        let (mut count, mut bytes) = (request.limit, request.max_bytes);
        let mut out = Offers::default();
        let (mut found, undecided) = self.store.best_first(&filter, Steps::of_a_call());
        out.omitted += undecided;
        let mut steps = Steps::of_a_call();
        // Once no hint fits any more, the rest need not be sorted. A line is never shorter than the value.
        let smallest = found.iter().map(|found| found.hint.text().len().min(MAX_VALUE_CHARS)).min().unwrap_or_default();
        while count > 0
            && bytes >= smallest
            && let Some(found) = found.pop()
        {
            let line = line(&found.hint, request.now);
            // The answer of `nudge.suggest` has the whole values, so that these count, not the lines.
            let size = if request.moment == Moment::Recall { line.len() } else { found.hint.text().len() };
            if size > bytes {
                out.omitted += 1;
                continue;
            }
            (count, bytes) = (count - 1, bytes - size);
            let why = trigger.why(&found.hint).map(|why| why.to_string()).unwrap_or_default();
            match row(found, &request.context, request.now, &mut steps) {
                Ok(found) => out.offers.push(offer(found, line, size, why)),
                // It fits, and there is no time left to say why.
                Err(_) => out.omitted += 1,
            }
        }
        out.omitted += found.len();
        out
    }
}

fn offer(found: QueryRow, line: String, bytes: usize, why: String) -> Offer<SuggestedHint> {
    let hint = &found.hint;
    let mut params = serde_json::json!({"component": hint.component(), "key": hint.key()});
    if !hint.variant().is_empty() {
        params["variant"] = hint.variant().into();
    }
    Offer {
        id: id(hint),
        name: name(hint),
        line,
        bytes,
        strength: found.score / (found.score + HALF_STRENGTH),
        must: false,
        why,
        explain: found.match_explain,
        // Serializing strings cannot fail.
        more: More { method: "nudge.get_hint", params: to_raw_value(&params).unwrap_or_default() },
        item: SuggestedHint { score: found.score, hint: found.hint },
    }
}

/// Returns a unique id of a hint; a line break separates its parts, as none of them contains one.
pub(crate) fn id(hint: &Hint) -> Box<str> {
    [hint.component(), hint.key(), hint.variant()].join("\n").into()
}

fn name(hint: &Hint) -> String {
    format!("{}/{}", visible(hint.component()), visible(hint.key()))
}

/// Formats a line such as `api/build: make api (set 3h ago by agent:codex; worked 4x; the default target is wrong)`.
fn line(hint: &Hint, now: Millis) -> String {
    let source = hint.added_by().or_else(|| hint.source().map(Source::as_str)).unwrap_or("somebody");
    let mut line = format!(
        "{}: {} (set {} by {}",
        name(hint),
        one_line(hint.text(), MAX_VALUE_CHARS),
        ago(hint.updated_at, now),
        one_line(source, MAX_REASON_CHARS)
    );
    if hint.failure_count() > 0 {
        let _ = write!(line, "; failed {}x since it last worked", hint.failure_count());
    } else if hint.use_count() > 0 {
        let _ = write!(line, "; worked {}x", hint.use_count());
    }
    if let Some(reason) = hint.reason() {
        let _ = write!(line, "; {}", one_line(reason, MAX_REASON_CHARS));
    }
    line.push(')');
    line
}

/// The criterion that makes a hint worth showing.
enum Trigger<'a> {
    Start,
    Words(&'a SuggestRequest),
    Failure { command: Option<Line<'a>>, error: String },
}

/// The reason why a hint is worth showing.
enum Why<'a> {
    Applies,
    Mentioned(Moment, String),
    Near,
    Fix(&'a str),
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applies => f.write_str("it applies here"),
            Self::Mentioned(Moment::Recall, word) => write!(f, "the question mentions {word}"),
            Self::Mentioned(_, word) => write!(f, "the prompt mentions {word}"),
            Self::Near => f.write_str("it is close to the command that failed"),
            Self::Fix(component) => write!(f, "it is a fix for {component}, which the error names"),
        }
    }
}

impl<'a> Trigger<'a> {
    fn new(request: &'a SuggestRequest) -> Self {
        match request.moment {
            Moment::Start => Self::Start,
            Moment::Prompt | Moment::Recall => Self::Words(request),
            Moment::Failure => Self::Failure {
                command: request.command.as_deref().map(Line::new),
                error: request.error.to_lowercase(),
            },
        }
    }

    /// Returns the reason for showing the hint now, or `None`. This runs for every hint that applies, so it copies
    /// none of its texts.
    fn why<'h>(&self, hint: &'h Hint) -> Option<Why<'h>> {
        match self {
            Self::Start => Some(Why::Applies),
            Self::Words(request) => {
                let mut texts = [hint.component(), hint.key(), hint.text()].into_iter().chain(hint.tags());
                let word = texts.find_map(|text| request.words.first_in(text))?;
                Some(Why::Mentioned(request.moment, word))
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

/// A command line that failed.
struct Line<'a> {
    words: Vec<&'a str>,
    /// Its words, sorted and without duplicates.
    distinct: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Self {
        let words: Vec<_> = command_words(line).collect();
        Self { distinct: distinct(words.clone()), words }
    }

    /// Returns true for the same program with at least half of the words in common, but not the same line.
    fn is_near(&self, other: &str) -> bool {
        let mut others = command_words(other);
        let Some(program) = others.next().filter(|program| self.words.first() == Some(program)) else { return false };
        let others: Vec<_> = std::iter::once(program).chain(others).collect();
        if others == self.words {
            return false;
        }
        let others = distinct(others);
        let common = others.iter().filter(|word| self.distinct.binary_search(word).is_ok()).count();
        // The counts are exact as `f64`: texts have at most 64 KiB.
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

/// Returns the words from the program on, without `sudo`, `time` and assignments before it.
fn command_words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().skip_while(|word| *word == "sudo" || *word == "time" || is_assignment(word))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Returns true when `text`, in lower case, contains the component as a whole word.
fn names(text: &str, component: &str) -> bool {
    let component = component.to_lowercase();
    let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(&component)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + component.len()..].chars().next()))
}

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
    fn names_in_errors() {
        let error = "error: service http-proxy not found in src/api (my app, c++)";
        for component in ["http-proxy", "HTTP-Proxy", "http", "src/api", "my app", "C++"] {
            assert!(names(error, component), "{component}");
        }
        assert!(!names(error, "servic") && !names(error, "pi"));
    }
}
