//! Finds units by words and by meaning. A few more units are found by relation; they get separate slots in the answer.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use nudge_core::embed::QuestionVector;
use nudge_core::explain::ScoreParts;
use nudge_storage::TransactionFailure;
use nudge_storage::rank::MatchEvidence;
use nudge_storage::rusqlite::{Connection, params};
use nudge_storage::search::{FoundTexts, HeldWords, QuestionWords, TextIndexCache, search};
use nudge_storage::vectors::VectorCosines;

use crate::fusion::{ChunkCandidate, RankFusion, RankedUnit, rank_units};
use crate::graph::{ReachedUnit, UnitGraph, find_related, sort_reached};
use crate::meaning::IndexMemory;
use crate::rerank;
use crate::schema::FULL_TEXT;

/// The number of chunks nearest in meaning that are examined.
const NEAREST: usize = 50;
/// The share of a question that a model must understand so that meaning decides alone, except for a small part for
/// words. The value was measured on the tuning half of `tests/brain/`: such questions are prose, and for prose a larger
/// part for words makes the order worse.
const MOSTLY: f64 = 0.5;
/// The number of chunks with the highest weight of words that are examined when there is no model.
const HEAVIEST: usize = 512;
/// A weight of words below this value counts as zero.
const LIGHT: f64 = 1e-3;
/// Relations are followed from this many of the best units.
const SEEDS: usize = 5;
/// At most one in this many results is a unit that was found by relation.
const SLOTS: usize = 5;
/// The factor by which relevance increases the score of a related unit. The value was measured on the same half. Most
/// related units have nearly equal scores, and only relevance puts them in order.
const RELEVANT: f64 = 2.0;
/// The relevance that the nearest section must have, or else the answer is weak. Without vectors, `WORDS_FLOOR` is
/// used: the share of the question's words that the section must contain. The values were measured on the tuning half
/// of `tests/brain/`. Among the questions that only another manual answers, 1 in 8 exceeds the limit; among the
/// questions that have an answer, 9 in 10 do. All values from .575 to .585 gave the same result, so `FLOOR` is the
/// middle.
pub const FLOOR: f64 = 0.58;
const WORDS_FLOOR: f64 = 0.7;

/// A question to the index.
#[derive(Clone, Copy)]
pub struct BrainQuestion<'a> {
    pub words: &'a QuestionWords,
    pub known: &'a TextIndexCache,
    /// The vector of the question; `None` without a model.
    pub thought: Option<&'a QuestionVector>,
    pub memory: &'a IndexMemory,
    pub fusion: RankFusion,
    /// The units that come before all others, in this order, if they are among the best `MOST`.
    pub first: &'a [i64],
    /// The most results, counting units found by relation too.
    pub limit: usize,
    /// The most hops along relations.
    pub hops: usize,
}

/// Limits a search to some units.
#[derive(Debug, Clone, Copy, Default)]
pub struct UnitFilter<'a> {
    pub domain: Option<&'a str>,
    /// The unit must have all of these tags.
    pub tags: &'a [String],
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct RetrievedUnits {
    /// The units that were found by words and by meaning, the best first.
    pub units: Vec<RankedUnit>,
    /// The units that are related to the found units, the best first.
    pub related: Vec<ReachedUnit>,
    /// For each unit, the question's words that its best chunk contains. `words_asked` is the number of words in the
    /// question.
    pub words: Vec<Vec<String>>,
    pub words_asked: usize,
    /// Is true when it is uncertain whether even the best unit is about the question.
    pub is_weak: bool,
}

impl UnitFilter<'_> {
    /// Returns the units that the filter allows; `None` when it allows all.
    fn find_allowed(&self, c: &Connection) -> Result<Option<HashSet<i64, RandomState>>, TransactionFailure> {
        if self.domain.is_none() && self.tags.is_empty() {
            return Ok(None);
        }
        let sql =
            "SELECT id FROM unit u WHERE (?1 IS NULL OR domain = ?1) AND NOT EXISTS (SELECT 1 FROM json_each(?2) w
                   WHERE NOT EXISTS (SELECT 1 FROM json_each(u.tags) t WHERE lower(t.value) = lower(w.value)))";
        let tags = serde_json::Value::from(self.tags).to_string();
        let mut statement = c.prepare_cached(sql)?;
        let rows = statement.query_map(params![self.domain, tags], |row| row.get(0))?;
        Ok(Some(rows.collect::<Result<_, _>>()?))
    }
}

/// Returns true when an answer has slots for units that are found by relation.
pub fn takes_related(limit: usize, hops: usize) -> bool {
    limit >= SLOTS && hops > 0
}

/// Finds the units that are about a question.
///
/// # Errors
/// The errors of the database and of the graph.
pub fn find_units(
    c: &Connection,
    graph: &dyn UnitGraph,
    question: BrainQuestion<'_>,
    filter: UnitFilter<'_>,
) -> Result<RetrievedUnits, TransactionFailure> {
    let BrainQuestion { memory, limit, first, .. } = question;
    let allowed = filter.find_allowed(c)?;
    let is_allowed = |unit: &i64| allowed.as_ref().is_none_or(|allowed| allowed.contains(unit));
    let order = |unit: i64| memory.paths.get(&unit);
    let evidence = ChunkEvidence::gather(c, &question)?;
    let ranking = rank_units(question.fusion, evidence.find_candidates(is_allowed), order);
    let mut units = ranking.pick_best(limit.max(SEEDS).max(if first.is_empty() { 0 } else { rerank::MOST }));
    units.sort_by_key(|ranked| first.iter().position(|unit| *unit == ranked.unit).unwrap_or(first.len()));
    let seeds: Vec<_> = units.iter().take(SEEDS).map(|ranked| (ranked.unit, ranked.score)).collect();
    let mut related = Vec::new();
    if takes_related(limit, question.hops) {
        related = find_related(graph, &seeds, question.hops, order)?;
        // A unit that the question itself finds needs no slot.
        let shown: HashSet<i64> = units.iter().take(limit).map(|ranked| ranked.unit).collect();
        related.retain(|reached| {
            !shown.contains(&reached.unit) && is_allowed(&reached.unit) && order(reached.unit).is_some()
        });
        let relevance = evidence.score_units(&related.iter().map(|reached| reached.unit).collect());
        for reached in &mut related {
            if let Some(relevance) = relevance.get(&reached.unit) {
                reached.score *= 1.0 + RELEVANT * relevance;
            }
        }
        sort_reached(&mut related, &order);
        related.truncate(limit / SLOTS);
    }
    units.truncate(limit - related.len());
    // The best unit is taken by score, because a language model may have put another unit first.
    let best = units.iter().max_by(|a, b| a.score.total_cmp(&b.score));
    let is_weak = best.is_none_or(|best| match best.evidence.cosine {
        Some(_) if best.evidence.understood > 0.0 => units.iter().all(|ranked| ranked.score_nearest() < FLOOR),
        _ => best.chunks.iter().all(|chunk| chunk.coverage * evidence.found.known_share < WORDS_FLOOR),
    });
    let best: Vec<_> = units.iter().filter_map(|ranked| ranked.chunks.first()).collect();
    let found = evidence.found;
    let word_count = found.words.len();
    let words_of = |candidate: &&ChunkCandidate| {
        found.rows.get(&candidate.chunk).into_iter().flat_map(|held| found.words_of(held)).map(str::to_owned).collect()
    };
    let words = best.iter().map(words_of).collect();
    Ok(RetrievedUnits { units, related, words, words_asked: word_count, is_weak })
}

/// The evidence for the chunks of one question.
struct ChunkEvidence<'a> {
    memory: &'a IndexMemory,
    found: FoundTexts,
    cosines: Option<VectorCosines<'a>>,
    understood: f64,
    /// Is true when words count by the share of the question that the chunk contains; false when they count by their
    /// weights. Without a model only the weights count, because the share makes the order worse.
    by_share: bool,
}

impl<'a> ChunkEvidence<'a> {
    fn gather(c: &Connection, question: &BrainQuestion<'a>) -> Result<Self, TransactionFailure> {
        let BrainQuestion { memory, thought, known, .. } = *question;
        let mut found = search(c, &FULL_TEXT, question.words, known)?;
        let thought = thought.filter(|thought| thought.understood > 0.0);
        let understood =
            thought.map_or(0.0, |thought| if thought.understood >= MOSTLY { 1.0 } else { thought.understood });
        // If only meaning counts, the weights of words are skipped. They would take twice as long as the rest.
        let is_by_meaning =
            question.fusion == RankFusion::Relevance && memory.count_without_vector() == 0 && understood >= 1.0;
        if !is_by_meaning {
            found.weigh_all(c, &FULL_TEXT, known)?;
        }
        let cosines =
            memory.vectors.as_ref().zip(thought).map(|(vectors, thought)| vectors.compute_cosines(&thought.vector));
        // In a brain of a few notes every word is common, so all weights are nearly zero. Then the share counts.
        let by_share = thought.is_some() || found.rows.values().all(|held| held.bm25 < LIGHT);
        Ok(Self { memory, found, cosines, understood, by_share })
    }

    /// Returns the chunks that contain words of the question, and the chunks that are near to its meaning.
    fn find_candidates(&self, is_allowed: impl Fn(&i64) -> bool) -> Vec<ChunkCandidate> {
        let unit_of = |chunk: i64| self.memory.chunks.get(&chunk).copied().filter(&is_allowed);
        let near = self.cosines.as_ref().map(|cosines| cosines.top(NEAREST, |chunk| unit_of(chunk).is_some()));
        let near = near.into_iter().flatten().map(|(chunk, _)| chunk);
        let near = near.filter(|chunk| !self.found.rows.contains_key(chunk));
        let weight = |held: &HeldWords| if self.by_share { held.coverage } else { held.bm25 };
        let rows = self.found.rows.iter().filter(|(chunk, _)| unit_of(**chunk).is_some());
        let mut held: Vec<(f64, i64)> = rows.map(|(chunk, held)| (weight(held), *chunk)).collect();
        // Without vectors, the score of a unit is the score of its best chunk. So the best chunks belong to the best
        // units.
        if self.cosines.is_none() && held.len() > HEAVIEST {
            held.select_nth_unstable_by(HEAVIEST, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            held.truncate(HEAVIEST);
        }
        let chunks = held.into_iter().map(|(_, chunk)| chunk).chain(near);
        chunks.filter_map(|chunk| Some(self.build_candidate(chunk, unit_of(chunk)?))).collect()
    }

    fn build_candidate(&self, chunk: i64, unit: i64) -> ChunkCandidate {
        let cosine = |chunk: i64| self.cosines.as_ref()?.get_best(chunk).map(f64::from);
        let held = self.found.held_words(chunk);
        let evidence = MatchEvidence {
            bm25: held.bm25,
            coverage: if self.by_share { held.coverage } else { 0.0 },
            cosine: cosine(chunk),
            understood: self.understood,
            ..MatchEvidence::default()
        };
        let first = self.memory.firsts.get(&unit).and_then(|first| cosine(*first));
        ChunkCandidate { chunk, unit, evidence, coverage: held.coverage, first }
    }

    /// Returns the relevance of units, even of units that the question did not find.
    fn score_units(&self, units: &HashSet<i64>) -> HashMap<i64, f64> {
        let chunks = self.memory.chunks.iter().filter(|(_, unit)| units.contains(unit));
        let candidates = chunks.map(|(chunk, unit)| self.build_candidate(*chunk, *unit)).collect();
        rank_units(RankFusion::Relevance, candidates, |unit| unit).collect_scores()
    }
}

/// Formats the reason why a unit was found.
pub fn format_reason(best: &ChunkCandidate, words: &[String], word_count: usize) -> String {
    let near = best.evidence.cosine.map(|cosine| format!("similarity {cosine:.2}"));
    let held = (!words.is_empty() || near.is_none())
        .then(|| format!("holds {} of {word_count} words: {}", words.len(), words.join(", ")));
    near.into_iter().chain(held).collect::<Vec<_>>().join("; ")
}

/// The terms of a score, and the values from which they are computed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ScoreExplanation {
    /// The terms by name. The sum of the terms is the score.
    pub parts: ScoreParts,
    /// The words of the question that occur in the best chunk.
    pub words: Vec<String>,
    /// The number of words in the question.
    pub of: usize,
    /// The cosine of the chunk's vector and the question's vector; absent without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}
