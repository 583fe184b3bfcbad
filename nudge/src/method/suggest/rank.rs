//! The order in which hints are worth telling (semantics section 10).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;

use nudge_core::explain::Parts;
use nudge_core::relevance::{CUT, FLOOR, Relevant, Terms};
use nudge_core::steps::Steps;
use nudge_core::suggest::{Moment, SuggestRequest};
use nudge_core::words::{Language, words};
use smallvec::SmallVec;

use super::failure::{Failure, Mends};
use super::index::ByRow;
use super::meaning::NearByRow;
use super::place::{Around, Place};
use crate::cache::Nudge;
use crate::hint::{Hint, Source};
use crate::store::{Filter, Found, Only};

/// The priority from which a hint that belongs elsewhere is told at a start.
const IMPORTANT: u8 = 8;
/// The priority up to which an unused hint from a file stays behind all others.
const BEHIND: u8 = 2;
/// The reduction for it at a start, and the share that its words count.
const BEHIND_AT_A_START: f64 = -0.2;
const BEHIND_BY_WORDS: f64 = 0.8;
/// Score at which a hint's standing is a half of the most that it can be. It is the score of a hint of default priority
/// and confidence that was just set and has one condition on its scope.
const HALF_SCORE: f64 = 1.0 / 3.0;
/// Relevance at which words count half of the most that they can.
const HALF_RELEVANCE: f64 = 0.7;
/// Strength when a prompt names a hint's component as a path or an identifier.
const SPOKEN_OF: f64 = 0.4;
/// The share that words count which may be there by chance: a single one in a prompt that says much else, and those that
/// stand in names of code alone, if they are this few.
const BY_CHANCE: f64 = 0.55;
const FEW: usize = 2;
/// Bytes of a value by which its language is told.
const LANGUAGE_BYTES: usize = 256;
/// Weight of the cosine of a hint and a prompt; then the least cosine, the least lead over the next hint, and the least
/// cosine for a question on purpose. Unasked, only the nearest hint counts: an unrelated prompt is about equally far
/// from all hints.
const MEANING: f64 = 1.2;
const NEAR: f64 = 0.335;
const NEARER: f64 = 0.05;
const NEAR_A_QUESTION: f64 = 0.25;
/// Most words that are named as the reason.
const MAX_WORDS: usize = 3;

/// A hint that is worth telling.
pub(super) struct Ranked {
    pub found: Found,
    /// The addends of its strength; `None` for those of its place.
    parts: Option<Box<Parts>>,
    pub strength: f64,
    /// [`is_behind`], where that decides.
    is_behind: bool,
    pub why: Why,
}

/// The reason why a hint is worth telling.
pub(super) enum Why {
    Place(Place),
    /// Words that it shares with the question, and the meaning if that counted.
    Words {
        moment: Moment,
        words: Vec<Box<str>>,
        cosine: Option<f64>,
        place: Place,
    },
    Mends(Mends),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // At a start that is why it is told all the same.
            Self::Place(Place::Elsewhere) => f.write_str("it applies everywhere and has a high priority"),
            Self::Place(place) => f.write_str(place.why()),
            Self::Words { moment, words, cosine, place } => {
                let who = if *moment == Moment::Recall { "question" } else { "prompt" };
                match (&words[..words.len().min(MAX_WORDS)], cosine) {
                    ([], Some(cosine)) => write!(f, "the {who} means much the same (similarity {cosine:.2})")?,
                    ([], None) => write!(f, "the {who} speaks of its component")?,
                    (words, _) => write!(f, "the {who} mentions {}", words.join(", "))?,
                }
                write!(f, "; {}", place.why())
            }
            Self::Mends(mends) => mends.fmt(f),
        }
    }
}

impl Nudge {
    /// Returns the hints that are worth telling, best first, and the number of those that take too long to compare.
    /// Doubtful hints always come last.
    pub(super) fn rank(&self, request: &SuggestRequest) -> (BinaryHeap<Ranked>, usize) {
        let around = Around::new(request);
        let failure = (request.moment == Moment::Failure).then(|| Failure::new(request));
        // Hints that are of no use here do not make words common, either.
        let may_need = failure.as_ref().map(|failure| |_: u32, hint: &Hint| failure.may_need(hint));
        let only = may_need.as_ref().map(|only| only as &Only<'_>);
        let no_unproven = failure.is_none();
        let filter = Filter { no_secrets: true, no_unproven, only, ..Filter::all(&request.context, request.now) };
        let found = |filter: &Filter<'_>| {
            let (found, undecided) = self.store.best_first(filter, Steps::of_a_call());
            (found.into_vec(), undecided)
        };
        match request.moment {
            Moment::Start => {
                let is_worth_it = |_, hint: &Hint| around.place(hint) != Place::Elsewhere || is_important(hint);
                let (found, undecided) = found(&Filter { only: Some(&is_worth_it), ..filter });
                (of_start(&around, found), undecided)
            }
            Moment::Prompt | Moment::Recall => {
                let (mut relevant, undecided) = self.relevant(&request.terms, &filter);
                let near = self.meanings.near(request);
                // A hint that is a little less near decides if the nearest one counts.
                let least = if request.moment == Moment::Recall { NEAR_A_QUESTION } else { NEAR - NEARER };
                let mut rows: Vec<_> = relevant.keys().copied().collect();
                rows.extend(near.iter().filter(|(_, cosine)| **cosine >= least).map(|(row, _)| *row));
                rows.extend(self.store.rows_of(|component| around.speak_of(component)));
                rows.sort_unstable();
                rows.dedup();
                let (found, _) = found(&Filter { rows: Some(&rows), ..filter });
                (of_words(request, &around, found, &mut relevant, &near), undecided)
            }
            Moment::Tool | Moment::Stop => (BinaryHeap::new(), 0),
            Moment::Failure => {
                let Some(failure) = &failure else { return (BinaryHeap::new(), 0) };
                let (mut relevant, undecided) = self.relevant(failure.terms(), &filter);
                let concerns = |_, hint: &Hint| failure.may_need(hint) && failure.concerns(hint);
                let (found, more) = found(&Filter { only: Some(&concerns), ..filter });
                (failure.mend(&around, found, &mut relevant), undecided.max(more))
            }
        }
    }

    /// Returns the words that a filter's hints share with the terms, and the number of hints that take too long to
    /// compare.
    fn relevant<'a>(&self, terms: &'a Terms, filter: &Filter<'_>) -> (ByRow<'a>, usize) {
        if terms.is_empty() {
            return (ByRow::default(), 0);
        }
        let (fitting, undecided) = self.store.fitting(filter, Steps::of_a_call());
        (self.words.lock().search(&self.store, &fitting, terms), undecided)
    }
}

fn is_important(hint: &Hint) -> bool {
    hint.priority().is_some_and(|priority| priority >= IMPORTANT)
}

/// Returns true when a hint stays behind the users' own: an unused command that a file names anyway, as `nudge seed`
/// stores it.
pub(super) fn is_behind(hint: &Hint) -> bool {
    hint.source() == Some(Source::FileImport)
        && hint.use_count() == 0
        && hint.priority().is_some_and(|priority| priority <= BEHIND)
}

impl Ranked {
    pub(super) fn new(found: Found, parts: Parts, why: Why) -> Self {
        Self { strength: parts.sum(), parts: Some(parts.into()), is_behind: false, found, why }
    }

    /// Makes an entry for a start: few of many are told, so the parts are computed only for those.
    fn of_place(found: Found, place: Place) -> Self {
        Self { strength: 0.0, parts: None, is_behind: is_behind(&found.hint), found, why: Why::Place(place) }
    }

    /// The addends of its strength.
    pub(super) fn parts(&self) -> Parts {
        let by_place = || {
            let place = match self.why {
                Why::Place(Place::Near) => -0.05,
                Why::Place(Place::Elsewhere) => -0.15,
                _ => 0.0,
            };
            let mut parts = Parts::from([("standing", standing(&self.found, 1.0)), ("place", place)]);
            if self.is_behind {
                parts.push("behind", BEHIND_AT_A_START);
            }
            parts
        };
        self.parts.as_deref().cloned().unwrap_or_else(by_place)
    }

    /// Greater is better: at a start hints that stay behind come last, then the place decides, then the order of
    /// semantics section 3; else the strength.
    fn compare(&self, other: &Self) -> Ordering {
        (other.found.rank.doubtful.cmp(&self.found.rank.doubtful))
            .then_with(|| match (&self.why, &other.why) {
                (Why::Place(place), Why::Place(other_place)) => {
                    other.is_behind.cmp(&self.is_behind).then_with(|| place.cmp(other_place))
                }
                _ => self.strength.total_cmp(&other.strength),
            })
            .then_with(|| self.found.cmp(&other.found))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

/// Returns the part of the score, at most `most`.
pub(super) fn standing(found: &Found, most: f64) -> f64 {
    most * found.rank.score / (found.rank.score + HALF_SCORE)
}

/// Returns the words' part, at most `most`.
pub(super) fn counted(relevance: f64, most: f64) -> f64 {
    most * relevance / (relevance + HALF_RELEVANCE)
}

fn of_start(around: &Around, found: Vec<Found>) -> BinaryHeap<Ranked> {
    let placed = found.into_iter().map(|found| {
        let place = around.place(&found.hint);
        Ranked::of_place(found, place)
    });
    placed.collect()
}

fn of_words(
    request: &SuggestRequest,
    around: &Around,
    found: Vec<Found>,
    relevant: &mut ByRow<'_>,
    near: &NearByRow,
) -> BinaryHeap<Ranked> {
    let moment = request.moment;
    let nearest = nearest(moment, &found, near);
    let says_much = moment == Moment::Prompt && request.terms.say_much();
    let weighed = found.into_iter().map(|found| {
        let Relevant { relevance, words, in_code, .. } = relevant.remove(&found.row).unwrap_or_default();
        let spoken_of = if around.speak_of(found.hint.component()) { SPOKEN_OF } else { 0.0 };
        let place = around.place(&found.hint);
        let share = around.share(place, moment);
        let cosine = near.get(&found.row).copied().filter(|_| nearest.is_none_or(|row| row == found.row));
        let is_lone = says_much && words.len() == 1 && !is_in_another_language(&found.hint);
        let accidental = is_lone || moment == Moment::Prompt && in_code && words.len() <= FEW;
        let chance = if accidental && spoken_of == 0.0 { BY_CHANCE } else { 1.0 };
        let behind = if is_behind(&found.hint) && moment == Moment::Prompt { BEHIND_BY_WORDS } else { 1.0 };
        let by_words = (relevance + spoken_of) * chance * share * behind;
        Weighed {
            by_words,
            by_meaning: MEANING * cosine.unwrap_or_default().max(0.0) * share,
            found,
            place,
            words,
            cosine,
        }
    });
    let weighed: Vec<_> = weighed.collect();
    let best = weighed.iter().map(Weighed::sum).fold(0.0, f64::max);
    let least = if moment == Moment::Recall { 0.0 } else { FLOOR.max(CUT * best) };
    let told = weighed.into_iter().filter(|weighed| weighed.sum() >= least);
    told.map(|weighed| {
        let sum = weighed.sum();
        let Weighed { by_words, by_meaning, found, place, words, cosine } = weighed;
        let place_part = match place {
            Place::Here => 0.1,
            Place::Near => 0.08,
            Place::Elsewhere => 0.0,
        };
        let all = counted(sum, 0.7);
        let of_words = if sum > 0.0 { all * by_words / sum } else { 0.0 };
        let mut parts = Parts::from([("words", of_words), ("place", place_part), ("standing", standing(&found, 0.1))]);
        if by_meaning > 0.0 {
            parts.push("meaning", all - of_words);
        }
        let cosine = cosine.filter(|_| by_meaning > 0.0);
        let words = words.into_iter().map(Box::from).collect();
        Ranked::new(found, parts, Why::Words { moment, words, cosine, place })
    })
    .collect()
}

/// Returns true for a hint that is not in English: it cannot have more than one word of an English prompt.
fn is_in_another_language(hint: &Hint) -> bool {
    let mut language = Language::default();
    let text = hint.text();
    let text = &text[..text.floor_char_boundary(LANGUAGE_BYTES.min(text.len()))];
    let told = [text, hint.reason().unwrap_or_default()];
    told.iter().flat_map(|text| words(text)).for_each(|word| language.hear(&word));
    language.is_english() == Some(false)
}

/// A hint with its strength by words and by meaning.
struct Weighed<'a> {
    by_words: f64,
    by_meaning: f64,
    found: Found,
    place: Place,
    words: SmallVec<[&'a str; 4]>,
    cosine: Option<f64>,
}

impl Weighed<'_> {
    fn sum(&self) -> f64 {
        self.by_words + self.by_meaning
    }
}

/// Returns the row whose meaning alone counts; `None` when that of all counts. Variants of one key count as one.
fn nearest(moment: Moment, found: &[Found], near: &NearByRow) -> Option<u32> {
    if moment == Moment::Recall {
        return None;
    }
    let nobody = Some(u32::MAX);
    if near.is_empty() {
        return nobody;
    }
    let cosine = |found: &Found| near.get(&found.row).copied().unwrap_or_default();
    let Some(first) = found.iter().max_by(|a, b| cosine(a).total_cmp(&cosine(b))) else { return nobody };
    let is_other =
        |other: &&Found| (other.hint.component(), other.hint.key()) != (first.hint.component(), first.hint.key());
    let next = found.iter().filter(is_other).map(cosine).fold(0.0, f64::max);
    (cosine(first) >= NEAR && cosine(first) - next >= NEARER).then_some(first.row).or(nobody)
}
