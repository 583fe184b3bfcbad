//! The order in which hints are worth telling (semantics section 10).

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;

use nudge_core::explain::Parts;
use nudge_core::relevance::{CUT, FLOOR, Relevant, Terms};
use nudge_core::steps::Steps;
use nudge_core::suggest::{Moment, SuggestRequest};

use super::failure::{Failure, Mends};
use super::index::ByRow;
use super::meaning::NearByRow;
use super::place::{Around, Place};
use crate::cache::Nudge;
use crate::hint::Hint;
use crate::store::{Filter, Found};

/// The priority from which a hint that belongs elsewhere is told at a start.
const IMPORTANT: u8 = 8;
/// Score at which a hint's standing is a half of the most that it can be. It is the score of a hint of default priority
/// and confidence that was just set and has one condition on its scope.
const HALF_SCORE: f64 = 1.0 / 3.0;
/// Relevance at which words count half of the most that they can.
const HALF_RELEVANCE: f64 = 0.7;
/// What it counts that a prompt speaks of a hint's component as of a path or an identifier.
const SPOKEN_OF: f64 = 0.4;
/// Cosines up to which two texts have nothing to do with each other, and what more of it counts.
const NO_MEANING: f64 = 0.25;
const MEANING: f64 = 1.5;
/// Most words that are named as the reason.
const MAX_WORDS: usize = 3;

/// A hint that is worth telling.
pub(super) struct Ranked {
    pub found: Found,
    /// The addends of its strength.
    pub parts: Parts,
    strength: f64,
    pub why: Why,
}

/// The reason why a hint is worth telling.
pub(super) enum Why {
    Place(Place),
    Words(Moment, Vec<Box<str>>, Place),
    Mends(Mends),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // At a start that is why it is told all the same.
            Self::Place(Place::Elsewhere) => f.write_str("it applies everywhere and has a high priority"),
            Self::Place(place) => f.write_str(place.why()),
            Self::Words(moment, words, place) => {
                let who = if *moment == Moment::Recall { "question" } else { "prompt" };
                match &words[..words.len().min(MAX_WORDS)] {
                    [] => write!(f, "the {who} speaks of its component; {}", place.why()),
                    words => write!(f, "the {who} mentions {}; {}", words.join(", "), place.why()),
                }
            }
            Self::Mends(mends) => mends.fmt(f),
        }
    }
}

impl Nudge {
    /// Returns the hints that are worth telling, best first, and the number of those that take too long to compare. What
    /// is doubtful comes last, whatever speaks for it.
    pub(super) fn rank(&self, request: &SuggestRequest) -> (BinaryHeap<Ranked>, usize) {
        let around = Around::new(request);
        let told = |_, hint: &Hint| !hint.is_secret();
        let filter = Filter { only: Some(&told), ..Filter::all(&request.context, request.now) };
        let found = |only: &dyn Fn(u32, &Hint) -> bool| {
            let worth_it = |row, hint: &Hint| !hint.is_secret() && only(row, hint);
            let (found, undecided) =
                self.store.best_first(&Filter { only: Some(&worth_it), ..filter }, Steps::of_a_call());
            (found.into_vec(), undecided)
        };
        let relevant = |terms: &Terms| {
            if terms.is_empty() {
                return (ByRow::default(), 0);
            }
            let (fitting, undecided) = self.store.fitting(&filter, Steps::of_a_call());
            (self.words.lock().search(&self.store, &fitting, terms), undecided)
        };
        match request.moment {
            Moment::Start => {
                let (found, undecided) = found(&|_, hint| around.place(hint) != Place::Elsewhere || is_important(hint));
                (of_start(&around, found), undecided)
            }
            Moment::Prompt | Moment::Recall => {
                let (mut relevant, undecided) = relevant(&request.terms);
                let near = self.meanings.near(request);
                let is_near = |row: &u32| near.get(row).is_some_and(|cosine| *cosine > NO_MEANING);
                let worth = |row, hint: &Hint| relevant.contains_key(&row) || around.speak_of(hint) || is_near(&row);
                let (found, _) = found(&worth);
                (of_words(request.moment, &around, found, &mut relevant, &near), undecided)
            }
            Moment::Tool | Moment::Stop => (BinaryHeap::new(), 0),
            Moment::Failure => {
                let failure = Failure::new(request);
                let (mut relevant, undecided) = relevant(failure.terms());
                let (found, more) = found(&|_, hint| failure.concerns(hint));
                (failure.mend(&around, found, &mut relevant), undecided.max(more))
            }
        }
    }
}

fn is_important(hint: &Hint) -> bool {
    hint.priority().is_some_and(|priority| priority >= IMPORTANT)
}

impl Ranked {
    pub(super) fn new(found: Found, parts: Parts, why: Why) -> Self {
        Self { strength: parts.sum(), parts, found, why }
    }

    /// Greater is better: at a start the place decides, then the order of semantics section 3; else the strength.
    fn compare(&self, other: &Self) -> Ordering {
        (other.found.rank.doubtful.cmp(&self.found.rank.doubtful))
            .then_with(|| match (&self.why, &other.why) {
                (Why::Place(place), Why::Place(other_place)) => place.cmp(other_place),
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

/// What a hint's own score counts, at most `most`.
pub(super) fn standing(found: &Found, most: f64) -> f64 {
    most * found.rank.score / (found.rank.score + HALF_SCORE)
}

/// What words count, at most `most`.
pub(super) fn counted(relevance: f64, most: f64) -> f64 {
    most * relevance / (relevance + HALF_RELEVANCE)
}

fn of_start(around: &Around, found: Vec<Found>) -> BinaryHeap<Ranked> {
    let ranked = found.into_iter().map(|found| {
        let place = around.place(&found.hint);
        let part = match place {
            Place::Here => 0.0,
            Place::Near => -0.05,
            Place::Elsewhere => -0.15,
        };
        let parts = Parts::from([("standing", standing(&found, 1.0)), ("place", part)]);
        Ranked::new(found, parts, Why::Place(place))
    });
    ranked.collect()
}

fn of_words(
    moment: Moment,
    around: &Around,
    found: Vec<Found>,
    relevant: &mut ByRow,
    near: &NearByRow,
) -> BinaryHeap<Ranked> {
    let weighed = found.into_iter().map(|found| {
        let Relevant { relevance, words, .. } = relevant.remove(&found.row).unwrap_or_default();
        let spoken_of = if around.speak_of(&found.hint) { SPOKEN_OF } else { 0.0 };
        let place = around.place(&found.hint);
        let cosine = near.get(&found.row).copied().unwrap_or_default();
        let meant = MEANING * (cosine - NO_MEANING).max(0.0);
        ((relevance + spoken_of + meant) * around.share(place, moment), found, place, words)
    });
    let weighed: Vec<_> = weighed.collect();
    let best = weighed.iter().map(|(relevance, ..)| *relevance).fold(0.0, f64::max);
    let least = if moment == Moment::Recall { 0.0 } else { FLOOR.max(CUT * best) };
    let told = weighed.into_iter().filter(|(relevance, ..)| *relevance >= least);
    told.map(|(relevance, found, place, words)| {
        let place_part = match place {
            Place::Here => 0.1,
            Place::Near => 0.08,
            Place::Elsewhere => 0.0,
        };
        let parts = Parts::from([
            ("words", counted(relevance, 0.7)),
            ("place", place_part),
            ("standing", standing(&found, 0.1)),
        ]);
        Ranked::new(found, parts, Why::Words(moment, words, place))
    })
    .collect()
}
