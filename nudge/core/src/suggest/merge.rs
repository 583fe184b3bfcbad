//! Chooses the offers that are told, by one pure function with a total order.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::{HeldBackPart, Offer, SourceOffers};

/// The limits of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerBudget {
    /// The most offers.
    pub count: usize,
    /// The most bytes of all lines together.
    pub bytes: usize,
}

/// The result of [`merge_offers()`].
#[derive(Debug)]
pub struct MergedOffers<I> {
    /// The chosen offers, in the order in which they are told.
    pub chosen: Vec<(&'static str, Offer<I>)>,
    /// The number of offers of each source that were not chosen. Sources without such offers are left out.
    pub held_back: Vec<HeldBackPart>,
    /// The notes of the sources.
    pub notes: Vec<String>,
}

struct OfferQueue<I> {
    source: &'static str,
    offers: VecDeque<Offer<I>>,
    floor: f64,
    omitted: usize,
    used: usize,
    /// Is true until the first offer of the source is chosen.
    is_new: bool,
}

/// Chooses among the offers of all sources. The sources come in the order of the method table.
///
/// The order:
///
/// - Offers that must be told come first.
/// - Then comes the best offer of each source, if its strength reaches the source's floor.
/// - Then the stronger offer comes first. Among equally strong offers, the offer of the earlier source comes first.
///
/// Offers of one source keep their own order, except that offers that must be told move to the front.
///
/// The limits: no source gets more than half of the bytes while another source has an offer that fits within its own
/// half. An offer that does not fit is skipped, and the next one may fit. Offers that must be told are bound only by
/// the limit of bytes.
pub fn merge_offers<I>(mut offered: Vec<(&'static str, SourceOffers<I>)>, budget: AnswerBudget) -> MergedOffers<I> {
    let notes = offered.iter_mut().filter_map(|(_, offers)| offers.note.take()).collect();
    let mut queues: Vec<_> = offered.into_iter().map(OfferQueue::new).collect();
    let AnswerBudget { mut count, mut bytes } = budget;
    let half = bytes / 2;
    let mut chosen = Vec::new();
    loop {
        for queue in &mut queues {
            queue.pass_over(bytes);
        }
        let Some(index) = next(&queues, half) else { break };
        let queue = &mut queues[index];
        let Some(offer) = queue.offers.pop_front_if(|offer| count > 0 || offer.must) else { break };
        (count, bytes) = (count.saturating_sub(1), bytes - offer.line.len());
        queue.used += offer.line.len();
        queue.is_new = false;
        chosen.push((queue.source, offer));
    }
    let held_back = queues.into_iter().map(|queue| (queue.source, queue.omitted + queue.offers.len()));
    let held_back = held_back.filter(|(_, count)| *count > 0);
    let held_back = held_back.map(|(source, count)| HeldBackPart { source, count }).collect();
    MergedOffers { chosen, held_back, notes }
}

impl<I> OfferQueue<I> {
    fn new((source, offered): (&'static str, SourceOffers<I>)) -> Self {
        let SourceOffers { mut offers, omitted, floor, .. } = offered;
        // The sort is stable: offers that must be told keep the source's order, and so do the other offers.
        offers.sort_by_key(|offer| !offer.must);
        Self { source, offers: offers.into(), floor, omitted, used: 0, is_new: true }
    }

    /// Drops offers from the front until one fits into `bytes`.
    fn pass_over(&mut self, bytes: usize) {
        while self.offers.front().is_some_and(|offer| offer.line.len() > bytes) {
            self.offers.pop_front();
            self.omitted += 1;
        }
    }
}

/// Finds the queue from which the next offer is chosen.
fn next<I>(queues: &[OfferQueue<I>], half: usize) -> Option<usize> {
    let open: Vec<_> =
        queues.iter().enumerate().filter_map(|(index, queue)| Some((index, queue, queue.offers.front()?))).collect();
    let is_fair = |queue: &OfferQueue<I>, offer: &Offer<I>| offer.must || queue.used + offer.line.len() <= half;
    let anybody_fair = open.len() > 1 && open.iter().any(|(_, queue, offer)| is_fair(queue, offer));
    open.into_iter()
        .filter(|(_, queue, offer)| !anybody_fair || is_fair(queue, offer))
        .max_by(|(at_a, a, first_a), (at_b, b, first_b)| {
            let is_best = |queue: &OfferQueue<I>, offer: &Offer<I>| queue.is_new && offer.strength() >= queue.floor;
            (first_a.must.cmp(&first_b.must))
                .then_with(|| is_best(a, first_a).cmp(&is_best(b, first_b)))
                .then_with(|| first_a.strength().total_cmp(&first_b.strength()))
                .then_with(|| match at_a.cmp(at_b) {
                    Ordering::Less => Ordering::Greater,
                    _ => Ordering::Less,
                })
        })
        .map(|(index, ..)| index)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::super::MoreCall;
    use super::*;
    use crate::explain::{MatchExplain, ScoreParts};

    /// Makes an offer: `a3!` has strength 0.3, must be told and has 10 bytes; `a3*40` has 40 bytes.
    fn offer(text: &str) -> Offer<()> {
        let (name, bytes) = text.split_once('*').map_or((text, 10), |(name, bytes)| (name, bytes.parse().unwrap()));
        let digit = name.trim_end_matches('!').chars().last().unwrap();
        Offer {
            id: name.into(),
            name: name.into(),
            line: "x".repeat(bytes),
            parts: ScoreParts::from([("x", f64::from(digit.to_digit(10).unwrap()) / 10.0)]),
            stamp: 0,
            paths: Vec::new(),
            command: None,
            must: name.ends_with('!'),
            why: String::new(),
            explain: MatchExplain { matched: true, score: 0.0, parts: ScoreParts::default(), reasons: Vec::new() },
            more: MoreCall { method: "nudge.x", params: RawValue::NULL.to_owned() },
            item: (),
        }
    }

    fn merged(sources: &[&str], count: usize, bytes: usize) -> (String, Vec<(&'static str, usize)>) {
        let names = ["one", "two", "three"];
        let offered = names.into_iter().zip(sources).map(|(name, offers)| {
            (name, SourceOffers { offers: offers.split_whitespace().map(offer).collect(), ..SourceOffers::default() })
        });
        let merged = merge_offers(offered.collect(), AnswerBudget { count, bytes });
        let told: Vec<_> = merged.chosen.iter().map(|(_, offer)| offer.name.as_str()).collect();
        (told.join(" "), merged.held_back.iter().map(|held| (held.source, held.count)).collect())
    }

    /// Promise (hints): The merge of offers has a total order and keeps to its limit of bytes and lines.
    #[test]
    fn the_order() {
        for (sources, told) in [
            // A single source keeps its own order, even if it contradicts the strengths.
            (&["a1 b9 c5"][..], "a1 b9 c5"),
            // The best offer of each source comes first. Then the strength decides.
            (&["a9 b8 c7", "d6 e5", "f3"], "a9 d6 f3 b8 c7 e5"),
            // The best offer of a source has no precedence if its strength is below the floor.
            (&["a9 b8", "d2 e1"], "a9 b8 d2 e1"),
            // Among equal offers, the one of the first source comes first.
            (&["a5 b4", "c5 d4"], "a5 c5 b4 d4"),
            // An offer that must be told comes first, even if it is weak and the last of its source.
            (&["a9 b8", "c7 d1!"], "d1! a9 b8 c7"),
            (&["", "a5", ""], "a5"),
            (&[], ""),
        ] {
            assert_eq!(merged(sources, 100, 10_000), (told.into(), vec![]), "{sources:?}");
        }
    }

    /// Promise: see `the_order`.
    #[test]
    fn the_room() {
        for (sources, count, bytes, told, held_back) in [
            (&["a9 b8 c7"][..], 2, 1_000, "a9 b8", vec![("one", 1)]),
            // An offer that does not fit is skipped.
            (&["a9*50 b8*60 c7*40"], 9, 90, "a9*50 c7*40", vec![("one", 1)]),
            // No source gets more than half while another source has an offer. Afterwards the first source may use the
            // rest.
            (&["a9*20 b9*20 c9*20 d9*20", "e1*20 f1*20"], 9, 80, "a9*20 b9*20 e1*20 f1*20", vec![("one", 2)]),
            (&["a9*20 b9*20 c9*20 d9*20", "e1*20"], 9, 80, "a9*20 b9*20 e1*20 c9*20", vec![("one", 1)]),
            // Offers that must be told may take more than half.
            (&["a9!*60", "b8*20"], 9, 80, "a9!*60 b8*20", vec![]),
            // If no source has an offer that fits within half, only the order decides.
            (&["a9*60", "b8*60"], 9, 80, "a9*60", vec![("two", 1)]),
            (&["a9", "b8"], 0, 80, "", vec![("one", 1), ("two", 1)]),
            // Offers that must be told ignore the limit of the count.
            (&["a9", "b8! c7!"], 0, 80, "b8! c7!", vec![("one", 1)]),
            (&["a9", "b8! c7!"], 1, 10, "b8!", vec![("one", 1), ("two", 1)]),
            (&["a9", "b8"], 9, 0, "", vec![("one", 1), ("two", 1)]),
        ] {
            let told: Vec<_> = told.split_whitespace().map(|word| word.split('*').next().unwrap()).collect();
            assert_eq!(merged(sources, count, bytes), (told.join(" "), held_back), "{sources:?}");
        }
    }

    #[test]
    fn a_strength_that_is_no_number_counts_as_nothing() {
        let mut broken = offer("a9");
        broken.parts = ScoreParts::from([("x", f64::NAN)]);
        let mut loud = offer("b9");
        loud.parts = ScoreParts::from([("x", 7.0)]);
        let wrap_offer = |offer| SourceOffers { offers: vec![offer], ..SourceOffers::default() };
        let merged = merge_offers(
            vec![("one", wrap_offer(broken)), ("two", wrap_offer(loud))],
            AnswerBudget { count: 9, bytes: 100 },
        );
        assert_eq!(merged.chosen.iter().map(|(source, _)| *source).collect::<Vec<_>>(), ["two", "one"]);
    }
}
