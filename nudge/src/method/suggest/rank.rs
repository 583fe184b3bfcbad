//! Ranks the hints that are worth telling (semantics section 10).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;

use nudge_core::explain::ScoreParts;
use nudge_core::relevance::{CUT, FLOOR, QueryTerms, RelevantText};
use nudge_core::steps::StepBudget;
use nudge_core::suggest::{SuggestMoment, SuggestRequest};
use nudge_core::words::{SentenceLanguage, split_words};
use smallvec::SmallVec;

use super::failure::{CommandFailure, MendReason};
use super::index::ByRow;
use super::meaning::NearByRow;
use super::place::{HintPlace, NearbyNames};
use super::usual::choose_usual;
use crate::cache::Nudge;
use crate::hint::{Hint, HintOrigin};
use crate::store::{FittingRow, HintFilter, HintHit, Only};

/// The least priority at which a start suggests a hint that names no location.
pub(in crate::method) const IMPORTANT: u8 = 8;
/// The highest priority at which an unused hint from a file ranks behind all other hints ([`is_behind`]).
const BEHIND: u8 = 2;
/// The strength that is added at a start to a hint for which [`is_behind`] is true.
const BEHIND_AT_A_START: f64 = -0.2;
/// The factor, at a prompt, for the words of a hint for which [`is_behind`] is true.
const BEHIND_BY_WORDS: f64 = 0.7;
/// The score at which the score's part of the strength has half of its maximum. A new hint with default priority and
/// confidence, and with one condition in its scope, has this score.
const HALF_SCORE: f64 = 1.0 / 3.0;
/// The relevance at which the words' part of the strength has half of its maximum.
const HALF_RELEVANCE: f64 = 0.7;
/// The relevance that is added when a prompt has the hint's component as a path or an identifier.
const SPOKEN_OF: f64 = 0.4;
/// The factor for words that may match by chance: a single word of a long prompt, or a few words that occur only in
/// names of code.
const BY_CHANCE: f64 = 0.55;
/// The most words that count as a few.
const FEW: usize = 2;
/// The number of bytes of a value that are read to detect the language.
const LANGUAGE_BYTES: usize = 256;
/// The weight of the cosine between a hint and a prompt.
const MEANING: f64 = 1.2;
/// The least cosine at a prompt. Only the nearest hint counts there, because an unrelated prompt is about equally far
/// from all hints.
const NEAR: f64 = 0.335;
/// The least lead of the nearest hint's cosine over that of the next hint, at a prompt.
const NEARER: f64 = 0.05;
/// The least cosine at a question.
const NEAR_A_QUESTION: f64 = 0.25;
/// The most words that a reason lists.
const MAX_WORDS: usize = 3;

/// A hint that is worth telling.
pub(super) struct RankedHint {
    pub found: HintHit,
    /// The addends of the strength; `None` for a hint that was chosen by its location.
    parts: Option<Box<ScoreParts>>,
    pub strength: f64,
    /// The result of [`is_behind`] at a start; false at other events.
    is_behind: bool,
    pub why: RankReason,
}

/// The reason why a hint is worth telling.
pub(super) enum RankReason {
    Place(HintPlace),
    /// The words that the hint shares with the question, and the cosine if it counts.
    Words {
        moment: SuggestMoment,
        words: Vec<Box<str>>,
        cosine: Option<f64>,
        place: HintPlace,
    },
    Mends(MendReason),
}

impl fmt::Display for RankReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // This reason is shown only at a start.
            Self::Place(HintPlace::Elsewhere) => f.write_str("it applies everywhere and has a high priority"),
            Self::Place(place) => f.write_str(place.to_reason()),
            Self::Words { moment, words, cosine, place } => {
                let who = if *moment == SuggestMoment::Recall { "question" } else { "prompt" };
                match (&words[..words.len().min(MAX_WORDS)], cosine) {
                    ([], Some(cosine)) => write!(f, "the {who} means much the same (similarity {cosine:.2})")?,
                    ([], None) => write!(f, "the {who} speaks of its component")?,
                    (words, _) => write!(f, "the {who} mentions {}", words.join(", "))?,
                }
                write!(f, "; {}", place.to_reason())
            }
            Self::Mends(mends) => mends.fmt(f),
        }
    }
}

impl Nudge {
    /// Returns the hints that are worth telling, best first, and the number of hints whose comparison takes too many
    /// steps. Doubtful hints always come last.
    pub(super) fn rank_hints(&self, request: &SuggestRequest) -> (BinaryHeap<RankedHint>, usize) {
        let around = NearbyNames::new(request);
        let failure = (request.moment == SuggestMoment::Failure).then(|| CommandFailure::new(request));
        // Hints that cannot help after this failure must have no effect on the rarity of a word.
        let may_need = failure.as_ref().map(|failure| |_: u32, hint: &Hint| failure.may_need(hint));
        let only = may_need.as_ref().map(|only| only as &Only<'_>);
        let no_unproven = failure.is_none();
        let filter = HintFilter {
            no_secrets: true,
            no_unproven,
            only,
            ..HintFilter::for_context(&request.context, request.now)
        };
        let found = |filter: &HintFilter<'_>| {
            let (found, undecided) = self.store.best_first(filter, StepBudget::of_a_call());
            (found.into_vec(), undecided)
        };
        match request.moment {
            SuggestMoment::Start => {
                // A caller without a folder and a repository, such as a program with its own store, gets hints of all
                // locations.
                let is_worth_it = |_, hint: &Hint| {
                    around.is_nowhere() || around.find_place(hint) != HintPlace::Elsewhere || is_important(hint)
                };
                let (found, undecided) = found(&HintFilter { only: Some(&is_worth_it), ..filter });
                (of_start(&around, found), undecided)
            }
            SuggestMoment::Prompt | SuggestMoment::Recall => {
                let (fitting, undecided) = if request.terms.is_empty() && !around.speaks_of_any() {
                    (Vec::new(), 0)
                } else {
                    self.store.find_fitting(&filter, StepBudget::of_a_call())
                };
                let mut relevant = self.find_relevant(&request.terms, &fitting);
                let near = self.meanings.find_near(request);
                // The search includes hints with a slightly lower cosine, because they decide whether the nearest hint
                // counts.
                let least = if request.moment == SuggestMoment::Recall { NEAR_A_QUESTION } else { NEAR - NEARER };
                let mut rows: Vec<_> = relevant.keys().copied().collect();
                rows.extend(near.iter().filter(|(_, cosine)| **cosine >= least).map(|(row, _)| *row));
                if around.speaks_of_any() {
                    rows.extend(self.store.rows_of(&fitting, |component| around.speaks_of(component)));
                }
                rows.sort_unstable();
                rows.dedup();
                let (found, _) = found(&HintFilter { rows: Some(&rows), ..filter });
                (of_words(request, &around, found, &mut relevant, &near), undecided)
            }
            SuggestMoment::Tool | SuggestMoment::Stop => (BinaryHeap::new(), 0),
            SuggestMoment::Failure => {
                let Some(failure) = &failure else { return (BinaryHeap::new(), 0) };
                let (fitting, undecided) = self.store.find_fitting(&filter, StepBudget::of_a_call());
                let mut relevant = self.find_relevant(failure.terms(), &fitting);
                let concerns = |_, hint: &Hint| failure.may_need(hint) && failure.may_concern(hint);
                let (found, more) = found(&HintFilter { only: Some(&concerns), ..filter });
                (failure.find_mends(&around, found, &mut relevant), undecided.max(more))
            }
        }
    }

    /// Counts the hints that fit but that a start leaves out because they apply everywhere and have a low priority.
    pub(super) fn count_weak(&self, request: &SuggestRequest) -> usize {
        let around = NearbyNames::new(request);
        let is_weak = |_, hint: &Hint| around.find_place(hint) == HintPlace::Elsewhere && !is_important(hint);
        let filter = HintFilter {
            no_secrets: true,
            no_unproven: true,
            only: Some(&is_weak),
            ..HintFilter::for_context(&request.context, request.now)
        };
        self.store.best_first(&filter, StepBudget::of_a_call()).0.len()
    }

    /// Returns the words that the fitting hints share with the terms.
    fn find_relevant<'a>(&self, terms: &'a QueryTerms, fitting: &[FittingRow]) -> ByRow<'a> {
        if terms.is_empty() { ByRow::default() } else { self.words.lock().search_terms(&self.store, fitting, terms) }
    }
}

/// Returns a sentence for a hint that a start suggests only in locations that its component names: the reason, and how
/// to change that. `None` for a hint that a start suggests wherever it fits.
pub(in crate::method) fn explain_weak(hint: &Hint) -> Option<String> {
    let is_weak = !hint.is_secret() && !hint.scope().names_a_place() && !is_important(hint);
    is_weak.then(|| {
        format!(
            "a start tells it only in a folder or repository called `{}`; priority {IMPORTANT} or a scope has it told elsewhere",
            hint.component()
        )
    })
}

fn is_important(hint: &Hint) -> bool {
    hint.priority().is_some_and(|priority| priority >= IMPORTANT)
}

/// Returns true when a hint ranks behind the users' own hints. Such a hint is an unused command from a file of the
/// repository, as `nudge seed` stores it.
pub(super) fn is_behind(hint: &Hint) -> bool {
    hint.source() == Some(HintOrigin::FileImport)
        && hint.use_count() == 0
        && hint.priority().is_some_and(|priority| priority <= BEHIND)
}

impl RankedHint {
    pub(super) fn new(found: HintHit, parts: ScoreParts, why: RankReason) -> Self {
        Self { strength: parts.total(), parts: Some(parts.into()), is_behind: false, found, why }
    }

    /// Makes an entry for a start. The parts are computed only on demand, because a start suggests only a few of many
    /// hints.
    fn of_place(found: HintHit, place: HintPlace) -> Self {
        Self { strength: 0.0, parts: None, is_behind: is_behind(&found.hint), found, why: RankReason::Place(place) }
    }

    /// Returns the addends of the strength.
    pub(super) fn to_parts(&self) -> ScoreParts {
        let by_place = || {
            let place = match self.why {
                RankReason::Place(HintPlace::Near) => -0.05,
                RankReason::Place(HintPlace::Elsewhere) => -0.15,
                _ => 0.0,
            };
            let mut parts = ScoreParts::from([("standing", weigh_score(&self.found, 1.0)), ("place", place)]);
            if self.is_behind {
                parts.push("behind", BEHIND_AT_A_START);
            }
            parts
        };
        self.parts.as_deref().cloned().unwrap_or_else(by_place)
    }

    /// Returns the reason as a text.
    pub(super) fn explain(&self) -> String {
        match self.why {
            RankReason::Place(HintPlace::Elsewhere) if !is_important(&self.found.hint) => {
                "it applies everywhere, and your place is not known".to_owned()
            }
            _ => self.why.to_string(),
        }
    }

    /// Compares two hints; the greater one is better. At a start, hints for which [`is_behind`] is true come last, and
    /// then the location decides. At other events the strength decides. Between equal hints, the order of semantics
    /// section 3 decides.
    fn compare(&self, other: &Self) -> Ordering {
        (other.found.rank.doubtful.cmp(&self.found.rank.doubtful))
            .then_with(|| match (&self.why, &other.why) {
                (RankReason::Place(place), RankReason::Place(other_place)) => {
                    other.is_behind.cmp(&self.is_behind).then_with(|| place.cmp(other_place))
                }
                _ => self.strength.total_cmp(&other.strength),
            })
            .then_with(|| self.found.cmp(&other.found))
    }
}

impl PartialEq for RankedHint {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl Eq for RankedHint {}

impl PartialOrd for RankedHint {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedHint {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

/// Returns the part of the strength that comes from the score, at most `most`.
pub(super) fn weigh_score(found: &HintHit, most: f64) -> f64 {
    most * found.rank.score / (found.rank.score + HALF_SCORE)
}

/// Returns the part of the strength that comes from the words, at most `most`.
pub(super) fn weigh_relevance(relevance: f64, most: f64) -> f64 {
    most * relevance / (relevance + HALF_RELEVANCE)
}

fn of_start(around: &NearbyNames, found: Vec<HintHit>) -> BinaryHeap<RankedHint> {
    let (behind, ahead): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| is_behind(&found.hint));
    let placed = ahead.into_iter().chain(choose_usual(behind)).map(|found| {
        let place = around.find_place(&found.hint);
        RankedHint::of_place(found, place)
    });
    placed.collect()
}

fn of_words(
    request: &SuggestRequest,
    around: &NearbyNames,
    found: Vec<HintHit>,
    relevant: &mut ByRow<'_>,
    near: &NearByRow,
) -> BinaryHeap<RankedHint> {
    let moment = request.moment;
    let nearest = find_nearest(moment, &found, near);
    let says_much = moment == SuggestMoment::Prompt && request.terms.say_much();
    let weighed = found.into_iter().map(|found| {
        let RelevantText { relevance, words, in_code, .. } = relevant.remove(&found.row).unwrap_or_default();
        let waits = moment == SuggestMoment::Prompt && is_behind(&found.hint);
        // Most commands of a repository's files have a component that is part of a path in the repository, so a path in
        // the prompt does not point to any of them.
        let spoken_of = if around.speaks_of(found.hint.component()) && !waits { SPOKEN_OF } else { 0.0 };
        let place = around.find_place(&found.hint);
        let share = around.weigh_words(place, moment);
        let cosine = near.get(&found.row).copied().filter(|_| nearest.is_none_or(|row| row == found.row));
        let is_lone = says_much && words.len() == 1 && !is_in_another_language(&found.hint);
        let accidental = is_lone || moment == SuggestMoment::Prompt && in_code && words.len() <= FEW;
        let chance = if accidental && spoken_of == 0.0 { BY_CHANCE } else { 1.0 };
        let behind = if waits { BEHIND_BY_WORDS } else { 1.0 };
        let by_words = (relevance + spoken_of) * chance * share * behind;
        WeighedHint {
            by_words,
            by_meaning: MEANING * cosine.unwrap_or_default().max(0.0) * share,
            found,
            place,
            words,
            cosine,
        }
    });
    let weighed: Vec<_> = weighed.collect();
    let best = weighed.iter().map(WeighedHint::sum).fold(0.0, f64::max);
    let least = if moment == SuggestMoment::Recall { 0.0 } else { FLOOR.max(CUT * best) };
    let told = weighed.into_iter().filter(|weighed| weighed.sum() >= least);
    told.map(|weighed| {
        let sum = weighed.sum();
        let WeighedHint { by_words, by_meaning, found, place, words, cosine } = weighed;
        let place_part = match place {
            HintPlace::Here => 0.1,
            HintPlace::Near => 0.08,
            HintPlace::Elsewhere => 0.0,
        };
        let all = weigh_relevance(sum, 0.7);
        let of_words = if sum > 0.0 { all * by_words / sum } else { 0.0 };
        let mut parts =
            ScoreParts::from([("words", of_words), ("place", place_part), ("standing", weigh_score(&found, 0.1))]);
        if by_meaning > 0.0 {
            parts.push("meaning", all - of_words);
        }
        let cosine = cosine.filter(|_| by_meaning > 0.0);
        let words = words.into_iter().map(Box::from).collect();
        RankedHint::new(found, parts, RankReason::Words { moment, words, cosine, place })
    })
    .collect()
}

/// Returns true for a hint that is not in English. Such a hint can hardly share more than one word with an English
/// prompt.
fn is_in_another_language(hint: &Hint) -> bool {
    let mut language = SentenceLanguage::default();
    let text = hint.text();
    let text = &text[..text.floor_char_boundary(LANGUAGE_BYTES.min(text.len()))];
    let told = [Some(text), hint.reason()];
    told.iter().flatten().flat_map(|text| split_words(text)).for_each(|word| language.hear_word(&word));
    language.is_english() == Some(false)
}

/// A hint with the parts of its strength that come from words and from meaning.
struct WeighedHint<'a> {
    by_words: f64,
    by_meaning: f64,
    found: HintHit,
    place: HintPlace,
    words: SmallVec<[&'a str; 4]>,
    cosine: Option<f64>,
}

impl WeighedHint<'_> {
    fn sum(&self) -> f64 {
        self.by_words + self.by_meaning
    }
}

/// Returns the row of the nearest hint. At a prompt, only the cosine of this hint counts; when no hint is near enough,
/// the returned row does not exist. Returns `None` at a question, because all cosines count there. Variants of one key
/// count as one hint.
fn find_nearest(moment: SuggestMoment, found: &[HintHit], near: &NearByRow) -> Option<u32> {
    if moment == SuggestMoment::Recall {
        return None;
    }
    let nobody = Some(u32::MAX);
    if near.is_empty() {
        return nobody;
    }
    let cosine = |found: &HintHit| near.get(&found.row).copied().unwrap_or_default();
    let Some(first) = found.iter().max_by(|a, b| cosine(a).total_cmp(&cosine(b))) else { return nobody };
    let is_other =
        |other: &&HintHit| (other.hint.component(), other.hint.key()) != (first.hint.component(), first.hint.key());
    let next = found.iter().filter(is_other).map(cosine).fold(0.0, f64::max);
    (cosine(first) >= NEAR && cosine(first) - next >= NEARER).then_some(first.row).or(nobody)
}
