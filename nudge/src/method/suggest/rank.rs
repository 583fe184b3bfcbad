//! The order in which hints are worth telling (semantics section 10).

use std::cmp::Ordering;
use std::fmt;

use nudge_core::explain::Parts;
use nudge_core::relevance::{CUT, FLOOR, Relevant};
use nudge_core::suggest::{Moment, SuggestRequest};

use super::failure::{Failure, Mends};
use super::place::{Around, Place};
use crate::cache::Nudge;
use crate::store::Found;

/// The priority from which a hint that belongs elsewhere is told at a start.
const IMPORTANT: u8 = 8;
/// Score at which a hint's standing is a half of the most that it can be. It is the score of a hint of default priority
/// and confidence that was just set and has one condition on its scope.
const HALF_SCORE: f64 = 1.0 / 3.0;
/// Relevance at which words count half of the most that they can.
const HALF_RELEVANCE: f64 = 0.7;
/// What it counts that a prompt speaks of a hint's component as of a path or an identifier.
const SPOKEN_OF: f64 = 0.4;
/// Most words that are named as the reason.
const MAX_WORDS: usize = 3;

/// A hint that is worth telling.
pub(super) struct Ranked {
    pub found: Found,
    /// The addends of its strength.
    pub parts: Parts,
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
    /// Returns those of the eligible hints that are worth telling, best first.
    pub(super) fn rank(&self, request: &SuggestRequest, eligible: Vec<Found>) -> Vec<Ranked> {
        let around = Around::new(request);
        let mut ranked = match request.moment {
            Moment::Start => of_start(&around, eligible),
            Moment::Prompt | Moment::Recall => {
                let relevant = self.words.lock().search(&eligible, &request.terms);
                of_words(request.moment, &around, eligible, relevant)
            }
            Moment::Failure => {
                let failure = Failure::new(request);
                let relevant = self.words.lock().search(&eligible, failure.terms());
                failure.mend(&around, eligible, relevant)
            }
        };
        // What is doubtful comes last, whatever speaks for it.
        ranked.sort_by(|a, b| a.found.rank.doubtful.cmp(&b.found.rank.doubtful).then_with(|| b.compare(a)));
        ranked
    }
}

impl Ranked {
    /// Greater is better: at a start the place decides, then the order of semantics section 3; else the strength.
    fn compare(&self, other: &Self) -> Ordering {
        match (&self.why, &other.why) {
            (Why::Place(place), Why::Place(other_place)) => place.cmp(other_place),
            _ => self.parts.sum().total_cmp(&other.parts.sum()),
        }
        .then_with(|| self.found.cmp(&other.found))
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

fn of_start(around: &Around, eligible: Vec<Found>) -> Vec<Ranked> {
    let worth_telling = |found: Found| {
        let place = around.place(&found.hint);
        let part = match place {
            Place::Here => 0.0,
            Place::Near => -0.05,
            Place::Elsewhere if found.hint.priority().is_some_and(|priority| priority >= IMPORTANT) => -0.15,
            Place::Elsewhere => return None,
        };
        let parts = Parts::from([("standing", standing(&found, 1.0)), ("place", part)]);
        Some(Ranked { found, parts, why: Why::Place(place) })
    };
    eligible.into_iter().filter_map(worth_telling).collect()
}

fn of_words(moment: Moment, around: &Around, eligible: Vec<Found>, relevant: Vec<Relevant>) -> Vec<Ranked> {
    let weighed = with_relevance(eligible, relevant).filter_map(|(found, relevant)| {
        let spoken_of = if around.speak_of(&found.hint) { SPOKEN_OF } else { 0.0 };
        if relevant.is_none() && spoken_of == 0.0 {
            return None;
        }
        let Relevant { relevance, words, .. } = relevant.unwrap_or_default();
        let place = around.place(&found.hint);
        Some(((relevance + spoken_of) * around.share(place, moment), found, place, words))
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
        Ranked { found, parts, why: Why::Words(moment, words, place) }
    })
    .collect()
}

/// The eligible hints, each with what its words have in common with those that were looked for.
pub(super) fn with_relevance(
    eligible: Vec<Found>,
    relevant: Vec<Relevant>,
) -> impl Iterator<Item = (Found, Option<Relevant>)> {
    let mut relevant = relevant.into_iter().peekable();
    (0..).zip(eligible).map(move |(at, found)| (found, relevant.next_if(|relevant| relevant.text == at)))
}
