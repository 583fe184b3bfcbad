//! Orders units by the evidence of their chunks. Each way to order is a separate function, so that the ways can be
//! compared.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use foldhash::fast::RandomState;
use nudge_core::explain::ScoreParts;
use nudge_storage::rank::{MatchEvidence, OrderFusion};

/// The number of chunks of each list that a fusion of ranks uses.
const LISTED: usize = 50;

/// A way to combine the order by words and the order by meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RankFusion {
    /// The relevance that every source uses: the cosine, plus a small part for words.
    Relevance,
    /// The sum of a unit's ranks in both lists, each with a weight.
    Ranks(OrderFusion),
}

impl RankFusion {
    /// Returns the fusion with this name. An unknown name gives the default.
    pub fn from_name(name: &str) -> Self {
        match name {
            "ranks" => Self::Ranks(OrderFusion::CHOSEN),
            "seed" => Self::Ranks(OrderFusion::SPECIFIED),
            _ => Self::Relevance,
        }
    }
}

/// A chunk that may match the question.
#[derive(Debug, Clone, Copy)]
pub struct ChunkCandidate {
    pub chunk: i64,
    pub unit: i64,
    pub evidence: MatchEvidence,
    /// The share of the question's words that the chunk contains. It is set even when the score does not use it.
    pub coverage: f64,
    /// The cosine of the question and the first chunk of the same unit.
    pub first: Option<f64>,
}

/// A unit with its score and its chunks.
#[derive(Debug, Clone)]
pub struct RankedUnit {
    pub unit: i64,
    /// The chunks of the unit, the most relevant first.
    pub chunks: Vec<ChunkCandidate>,
    /// The combined evidence of all chunks.
    pub evidence: MatchEvidence,
    /// The score, from 0 to 1.
    pub score: f64,
    /// The terms of the score if units are ordered by ranks; else `None`.
    ranks: Option<ScoreParts>,
}

impl RankedUnit {
    /// Returns the terms of the score.
    pub fn score_parts(&self) -> ScoreParts {
        self.ranks.clone().unwrap_or_else(|| self.evidence.relevance().parts)
    }

    /// Returns the relevance, computed with the cosine of the nearest chunk only. The first chunk does not decide
    /// whether a unit is about the question.
    pub fn score_nearest(&self) -> f64 {
        MatchEvidence { cosine: max_cosine(&self.chunks), ..self.evidence }.score()
    }
}

/// The found units, in order.
#[derive(Debug, Default)]
pub struct UnitRanking {
    /// The found chunks, sorted so that the chunks of a unit follow each other.
    candidates: Vec<ChunkCandidate>,
    /// The scores of the units, the best first.
    places: Vec<UnitScore>,
    /// The terms of the scores if units are ordered by ranks; else `None`.
    ranks: Option<HashMap<i64, ScoreParts, RandomState>>,
}

/// The score of a unit, with the range of its chunks.
#[derive(Debug, Clone, PartialEq)]
struct UnitScore {
    unit: i64,
    score: f64,
    chunks: Range<usize>,
}

impl UnitRanking {
    /// Returns the best units, at most `count`.
    pub fn pick_best(&self, count: usize) -> Vec<RankedUnit> {
        let ranked = |place: &UnitScore| {
            let mut chunks: Vec<_> = self.candidates[place.chunks.clone()].to_vec();
            chunks.sort_by(|a, b| b.evidence.score().total_cmp(&a.evidence.score()).then(a.chunk.cmp(&b.chunk)));
            let ranks = self.ranks.as_ref().and_then(|ranks| ranks.get(&place.unit)).cloned();
            RankedUnit { unit: place.unit, evidence: combine_evidence(&chunks), chunks, score: place.score, ranks }
        };
        self.places.iter().take(count).map(ranked).collect()
    }

    /// Returns the score of each unit.
    pub fn collect_scores(&self) -> HashMap<i64, f64> {
        self.places.iter().map(|place| (place.unit, place.score)).collect()
    }
}

/// Orders the units of the given chunks. If two units have equal scores, the unit with the lower `order` comes first.
pub fn rank_units<K: Ord>(
    fusion: RankFusion,
    mut candidates: Vec<ChunkCandidate>,
    order: impl Fn(i64) -> K,
) -> UnitRanking {
    candidates.sort_unstable_by_key(|candidate| (candidate.unit, candidate.chunk));
    let ranks = match fusion {
        RankFusion::Relevance => None,
        RankFusion::Ranks(ranks) => Some(by_ranks(&candidates, ranks, &order)),
    };
    let mut places = Vec::new();
    let mut begin = 0;
    for chunks in candidates.chunk_by(|a, b| a.unit == b.unit) {
        let range = begin..begin + chunks.len();
        begin = range.end;
        let unit = chunks[0].unit;
        let score = match &ranks {
            None => Some(combine_evidence(chunks).score()),
            Some(ranks) => ranks.get(&unit).map(ScoreParts::total),
        };
        places.extend(score.map(|score| UnitScore { unit, score, chunks: range }));
    }
    places.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then_with(|| order(a.unit).cmp(&order(b.unit))));
    UnitRanking { candidates, places, ranks }
}

/// Combines the evidence of a unit's chunks: the highest values of all chunks, and the mean of two cosines. The first
/// cosine is that of the nearest chunk, the second that of the unit's first chunk. The first chunk states the subject
/// of the unit, so it counts as much as the nearest: a unit with many chunks has a chunk near to any question.
fn combine_evidence(chunks: &[ChunkCandidate]) -> MatchEvidence {
    let most = |value_of: fn(&ChunkCandidate) -> f64| chunks.iter().map(value_of).fold(0.0, f64::max);
    let Some(best) = chunks.first() else { return MatchEvidence::default() };
    let cosine = max_cosine(chunks).map(|nearest| nearest.midpoint(best.first.unwrap_or(nearest)));
    MatchEvidence {
        bm25: most(|chunk| chunk.evidence.bm25),
        coverage: most(|chunk| chunk.evidence.coverage),
        cosine,
        ..best.evidence
    }
}

/// Returns the highest cosine of the chunks; `None` without a cosine.
fn max_cosine(chunks: &[ChunkCandidate]) -> Option<f64> {
    chunks.iter().filter_map(|chunk| chunk.evidence.cosine).reduce(f64::max)
}

/// Scores each unit by the rank of its best chunk in the list by words and in the list by meaning.
fn by_ranks<K: Ord>(
    candidates: &[ChunkCandidate],
    ranks: OrderFusion,
    order: &impl Fn(i64) -> K,
) -> HashMap<i64, ScoreParts, RandomState> {
    let words = |candidate: &ChunkCandidate| Some(candidate.evidence.bm25).filter(|weight| *weight > 0.0);
    let meaning =
        |candidate: &ChunkCandidate| candidate.evidence.cosine.filter(|_| candidate.evidence.understood > 0.0);
    ranks.fuse(&rank_by(candidates, words, order), &rank_by(candidates, meaning, order))
}

/// Lists the units of the `LISTED` best chunks by `score_of`, the best first.
fn rank_by<K: Ord>(
    candidates: &[ChunkCandidate],
    score_of: impl Fn(&ChunkCandidate) -> Option<f64>,
    order: &impl Fn(i64) -> K,
) -> Vec<i64> {
    let mut list: Vec<_> =
        candidates.iter().filter_map(|candidate| Some((score_of(candidate)?, candidate.unit))).collect();
    list.sort_by(|(a, unit), (b, other)| b.total_cmp(a).then_with(|| order(*unit).cmp(&order(*other))));
    let mut known = HashSet::new();
    list.into_iter().take(LISTED).map(|(_, unit)| unit).filter(|unit| known.insert(*unit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(chunk: i64, unit: i64, bm25: f64, cosine: f64) -> ChunkCandidate {
        let evidence = MatchEvidence {
            bm25,
            coverage: bm25 / 10.0,
            cosine: Some(cosine),
            understood: 1.0,
            ..MatchEvidence::default()
        };
        ChunkCandidate { chunk, unit, evidence, coverage: 0.0, first: None }
    }

    fn order(fusion: RankFusion, candidates: &[ChunkCandidate]) -> Vec<(i64, i64)> {
        let ranked = rank_units(fusion, candidates.to_vec(), |unit| unit).pick_best(candidates.len());
        ranked.iter().map(|unit| (unit.unit, unit.chunks[0].chunk)).collect()
    }

    #[test]
    fn a_unit_is_as_good_as_its_best_chunk() {
        let candidates = [
            candidate(1, 1, 1.0, 0.2),
            candidate(2, 1, 1.0, 0.3),
            candidate(3, 1, 1.0, 0.3),
            candidate(4, 2, 0.0, 0.6),
        ];
        for name in ["relevance", "ranks", "seed"] {
            let best = order(RankFusion::from_name(name), &candidates)[0];
            assert_eq!(best, if name == "relevance" { (2, 4) } else { (1, 2) }, "{name}");
        }
    }

    #[test]
    fn the_beginning_of_a_unit_counts_as_much_as_its_best_chunk() {
        let begins = |first, chunk: ChunkCandidate| ChunkCandidate { first: Some(first), ..chunk };
        let candidates = [begins(0.2, candidate(1, 1, 0.0, 0.6)), begins(0.5, candidate(2, 2, 0.0, 0.5))];
        assert_eq!(order(RankFusion::Relevance, &candidates), [(2, 2), (1, 1)]);
        let ranked = rank_units(RankFusion::Relevance, candidates.to_vec(), |unit| unit).pick_best(2);
        assert!((ranked[1].score - 0.4).abs() < 1e-9);
        // Only the nearest chunk decides whether the unit is about the question.
        assert!((ranked[1].score_nearest() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn ranks_are_summed_and_shown_as_a_share() {
        let candidates = [candidate(1, 1, 9.0, 0.1), candidate(2, 2, 5.0, 0.9), candidate(3, 3, 0.0, 0.5)];
        let ranked = rank_units(RankFusion::from_name("ranks"), candidates.to_vec(), |unit| unit).pick_best(9);
        assert_eq!(ranked.iter().map(|hit| hit.unit).collect::<Vec<_>>(), [2, 1, 3]);
        let expected = (0.3 / 12.0 + 1.0 / 11.0) / (1.3 / 11.0);
        assert!((ranked[0].score - expected).abs() < 1e-9, "{}", ranked[0].score);
        // If one list is missing, only the other list decides.
        let by_words: Vec<_> = candidates
            .iter()
            .map(|chunk| ChunkCandidate { evidence: MatchEvidence { cosine: None, ..chunk.evidence }, ..*chunk })
            .collect();
        let ranked = rank_units(RankFusion::from_name("seed"), by_words, |unit| unit).pick_best(9);
        assert!((ranked[0].score - 1.0).abs() < 1e-9 && ranked.len() == 2);
    }

    #[test]
    fn of_equals_the_order_decides() {
        let candidates = [candidate(2, 7, 1.0, 0.5), candidate(1, 3, 1.0, 0.5)];
        assert_eq!(order(RankFusion::Relevance, &candidates), [(3, 1), (7, 2)]);
    }
}
