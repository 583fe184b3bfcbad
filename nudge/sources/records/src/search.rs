//! Finds the records that are most relevant to a question.

use std::collections::HashSet;

use nudge_core::embed::QuestionVector;
use nudge_core::explain::{ScoreParts, round_number};
use nudge_storage::TransactionFailure;
use nudge_storage::rank::{MatchEvidence, TextRelevance};
use nudge_storage::rusqlite::{Connection, OptionalExtension as _};
use nudge_storage::search::{FoundTexts, QuestionWords, TextIndexCache, search, trigrams};
use serde::Serialize;

use crate::meaning::RecordMemory;
use crate::project::ProjectChoice;
use crate::record::{Kind, Record, Status};
use crate::rows;
use crate::schema::{FULL_TEXT, TRIGRAMS};

/// The lowest relevance of a search result.
pub const CUT: f64 = 0.3;
/// The most results.
const MAX_RESULTS: usize = 400;
/// The relevance that is taken from an archived record when the results are sorted. Of two equal records the archived
/// one comes second; it is still the first if it alone matches the question. A record of another project loses as much.
const ARCHIVED: f64 = 0.1;
/// The records considered because of their meaning: this many by their texts and this many by their titles. Few
/// questions have so many results, and keeping more of them sorted takes as long as all comparisons.
const NEAREST: usize = 100;

/// The meaning of a question, and the vectors to compare it with.
#[derive(Clone, Copy)]
pub struct QuestionMeaning<'a> {
    /// The vector of the question.
    pub asked: &'a QuestionVector,
    /// The vectors of the records.
    pub memory: &'a RecordMemory,
}

/// A search for records.
#[derive(Debug, Clone)]
pub struct RecordQuery<'a> {
    /// The words of the question.
    pub words: &'a QuestionWords,
    /// Cached facts about the full-text indexes.
    pub known: &'a TextIndexCache,
    /// The project whose records count more.
    pub project: ProjectChoice,
    /// Only records of this kind.
    pub kind: Option<Kind>,
    /// Only records of this status.
    pub status: Option<Status>,
    /// The most results.
    pub limit: usize,
    /// The lowest relevance.
    pub cut: f64,
}

/// Result of `nudge.records.search`.
#[derive(Debug, Serialize)]
pub struct RecordSearch {
    /// The kind of search: `lexical` by words, `semantic` by meaning, `mixed` while some records have no vector.
    pub mode: &'static str,
    /// The reasons, for people, why the answer may be incomplete.
    pub degraded: Vec<String>,
    /// The results, the best first.
    pub results: Vec<RecordHit>,
    /// The number of further records with enough relevance.
    pub omitted: usize,
    /// Names similar to the project that was asked for, which has no record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects_like: Vec<String>,
}

impl RecordSearch {
    /// Makes the result of a search by words that found nothing.
    pub fn new_empty() -> Self {
        Self { mode: "lexical", degraded: Vec::new(), results: Vec::new(), omitted: 0, projects_like: Vec::new() }
    }
}

/// A record that was found.
#[derive(Debug, Clone, Serialize)]
pub struct RecordHit {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// The cosine between the meanings of record and question; null without a model.
    pub similarity: Option<f64>,
    /// The relevance, from 0 to 1.
    #[serde(serialize_with = "nudge_core::explain::four_decimals")]
    pub relevance: f64,
    /// Is true when it is of another project than the caller's.
    pub elsewhere: bool,
    /// Is true if the body was cut; `nudge.records.get` returns all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The terms of the relevance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<RecordExplanation>,
}

/// The reason why a record was found.
#[derive(Debug, Clone, Serialize)]
pub struct RecordExplanation {
    /// The named terms; their sum, limited to 1, is the relevance.
    pub parts: ScoreParts,
    /// The words of the question that the record holds.
    pub words: Vec<String>,
    /// The number of the question's words.
    pub of: usize,
    /// The values behind the terms.
    #[serde(skip)]
    pub evidence: MatchEvidence,
}

/// The evidence for a record, before its text is read.
struct RecordCandidate {
    id: i64,
    evidence: MatchEvidence,
    score: f64,
}

impl RecordQuery<'_> {
    /// Returns true when the query allows this kind and status.
    fn can_match(&self, kind: Kind, status: Status) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind) && self.status.is_none_or(|wanted| wanted == status)
    }
}

/// Finds the most relevant records, the best first. Archived records rank [lower](ARCHIVED) than equally relevant
/// ones, and newer before older ones. Returns also the number of further records over the cut.
pub fn find_records(
    c: &Connection,
    query: &RecordQuery<'_>,
    meaning: Option<QuestionMeaning<'_>>,
) -> Result<(Vec<RecordHit>, usize), TransactionFailure> {
    let mut found = search(c, &FULL_TEXT, query.words, query.known)?;
    // If only meaning counts, the weights of words and trigrams are skipped: they would take ten times as long as the
    // rest.
    let is_by_meaning = meaning.is_some_and(|meaning| meaning.asked.understood >= 1.0 && !meaning.memory.is_partial());
    let mut grams = Vec::new();
    if !is_by_meaning {
        found.weigh_all(c, &FULL_TEXT, query.known)?;
        grams = trigrams(c, TRIGRAMS, query.words, query.known)?;
    }
    let is_here = match query.project {
        ProjectChoice::One(id) => rows::of_project(c, id)?,
        ProjectChoice::All | ProjectChoice::None(_) => HashSet::default(),
    };
    let mut ids: Vec<i64> = found.rows.keys().copied().chain(grams.iter().map(|(id, _)| *id)).collect();
    let near = meaning.map(|meaning| meaning.memory.compare_vector(&meaning.asked.vector));
    // If the model understands nothing of the question, its vector finds nothing.
    if let (Some(meaning), Some(near)) = (meaning.filter(|meaning| meaning.asked.understood > 0.0), &near) {
        let fits =
            |id: i64| meaning.memory.about.get(&id).is_some_and(|about| query.can_match(about.kind, about.status));
        ids.extend(near.find_nearest(NEAREST, fits));
    }
    ids.sort_unstable();
    ids.dedup();
    let mut candidates = Vec::new();
    let mut grams = grams.into_iter().peekable();
    for id in ids {
        let held = found.held_words(id);
        let evidence = MatchEvidence {
            bm25: held.bm25,
            coverage: held.coverage,
            names: held.names,
            // Both lists are sorted by the number of the row.
            trigrams: grams.next_if(|(row, _)| *row == id).map_or(0.0, |(_, weight)| weight),
            cosine: near.as_ref().and_then(|near| near.best_cosine(id)),
            understood: meaning.map_or(0.0, |meaning| meaning.asked.understood),
            is_here: is_here.contains(&id),
        };
        let score = evidence.sum();
        if score >= query.cut {
            candidates.push(RecordCandidate { id, evidence, score });
        }
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
    let limit = query.limit.min(MAX_RESULTS);
    let mut over_the_cut = candidates.len();
    let (mut best, mut archived) = (Vec::new(), Vec::new());
    let mut look = c.prepare_cached("SELECT kind, status FROM record WHERE id = ?1")?;
    for candidate in candidates {
        // With a filter all candidates are checked, because the number of results must be exact. Without a filter, the
        // remaining candidates are only counted.
        if best.len() >= limit && query.kind.is_none() && query.status.is_none() {
            break;
        }
        // The memory may still have a record that was deleted a moment ago.
        let stands = look.query_row([candidate.id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match stands.filter(|(kind, status)| query.can_match(*kind, *status)) {
            None => over_the_cut -= 1,
            Some((_, Status::Archived)) => {
                archived.push(RecordCandidate { score: candidate.score - ARCHIVED, ..candidate });
            }
            Some(_) => best.push(candidate),
        }
    }
    best.extend(archived);
    best.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
    best.truncate(limit);
    let more = over_the_cut.saturating_sub(query.limit);
    let hits = best.into_iter().map(|candidate| {
        let words = words_of(&found, candidate.id);
        let TextRelevance { score, parts } = candidate.evidence.relevance();
        let explain = RecordExplanation { parts, words, of: found.words.len(), evidence: candidate.evidence };
        Ok(RecordHit {
            record: rows::get_record(c, candidate.id)?,
            similarity: candidate.evidence.cosine.map(round_number),
            relevance: score,
            elsewhere: !candidate.evidence.is_here && query.project != ProjectChoice::All,
            cut: false,
            explain: Some(explain),
        })
    });
    Ok((hits.collect::<Result<_, TransactionFailure>>()?, more))
}

fn words_of(found: &FoundTexts, id: i64) -> Vec<String> {
    found.rows.get(&id).into_iter().flat_map(|held| found.words_of(held)).map(str::to_owned).collect()
}
