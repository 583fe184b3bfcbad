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

/// The lowest relevance of a record that an agent is told unasked, from 0 to 1. A search returns less relevant records
/// too, and says how weak each is.
pub const CUT: f64 = 0.3;
/// The most results of one search.
const MAX_RESULTS: usize = 400;
/// The relevance that an archived record loses when the results are sorted. If two records are equally relevant, the
/// archived one comes second. If only the archived record matches the question, it still comes first. A record of
/// another project loses the same amount.
const ARCHIVED: f64 = 0.1;
/// The most records that are considered because of their texts' meaning, and again because of their titles' meaning.
/// Few questions have so many results, and to sort more of them takes as long as all comparisons.
const NEAREST: usize = 100;

/// The vector of a question, and the vectors of the records to compare with it.
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
    /// Cached facts about the full-text indexes, such as how often a word occurs.
    pub known: &'a TextIndexCache,
    /// The project whose records get a higher relevance.
    pub project: ProjectChoice,
    /// Only records of this project.
    pub is_only_project: bool,
    /// Only records of this kind.
    pub kind: Option<Kind>,
    /// Only records of this status.
    pub status: Option<Status>,
    /// The most results.
    pub limit: usize,
    /// The lowest relevance of a result; 0 returns the best records, however weak they are.
    pub cut: f64,
}

/// Result of `nudge.records.search`.
#[derive(Debug, Serialize)]
pub struct RecordSearch {
    /// The kind of search: `lexical` compares words, `semantic` compares meanings, and `mixed` is used while some
    /// records have no vector.
    pub mode: &'static str,
    /// The reasons why the answer may be incomplete, for the user.
    pub degraded: Vec<String>,
    /// The results, the best first.
    pub results: Vec<RecordHit>,
    /// The number of further records that are not weak.
    pub omitted: usize,
    /// Names of projects similar to the requested project, if that project has no record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects_like: Vec<String>,
}

impl RecordSearch {
    /// Makes the result of a search by words that found nothing.
    pub fn new_empty() -> Self {
        Self { mode: "lexical", degraded: Vec::new(), results: Vec::new(), omitted: 0, projects_like: Vec::new() }
    }
}

/// A result of a search.
#[derive(Debug, Clone, Serialize)]
pub struct RecordHit {
    /// The record.
    #[serde(flatten)]
    pub record: Record,
    /// The cosine of the record's nearest vector and the question's vector; null without a model.
    pub similarity: Option<f64>,
    /// The relevance, from 0 to 1.
    #[serde(serialize_with = "nudge_core::explain::four_decimals")]
    pub relevance: f64,
    /// The reason why the record may not answer the question, such as `shares one word`; absent for a relevant record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weak: Option<String>,
    /// Is true when the record belongs to another project than the caller's.
    pub elsewhere: bool,
    /// Is true if the body was cut; `nudge.records.get` returns all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The terms that make up the relevance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explain: Option<RecordExplanation>,
}

/// The reason why the search found a record.
#[derive(Debug, Clone, Serialize)]
pub struct RecordExplanation {
    /// The terms by name. The sum of the terms, limited to 1, is the relevance.
    pub parts: ScoreParts,
    /// The words of the question that occur in the record.
    pub words: Vec<String>,
    /// The number of words in the question.
    pub of: usize,
    /// The values from which the terms are computed.
    #[serde(skip)]
    pub evidence: MatchEvidence,
}

/// A record that may become a result. The text of the record is not read yet.
struct RecordCandidate {
    id: i64,
    evidence: MatchEvidence,
    score: f64,
}

impl RecordQuery<'_> {
    /// Returns true when the query allows this kind and this status.
    fn can_match(&self, kind: Kind, status: Status) -> bool {
        self.kind.is_none_or(|wanted| wanted == kind) && self.status.is_none_or(|wanted| wanted == status)
    }
}

/// Finds the most relevant records, the best first. An archived record ranks [lower](ARCHIVED) than an equally relevant
/// one, and a newer record ranks before an older one. Also returns the number of further records that are not weak.
pub fn find_records(
    c: &Connection,
    query: &RecordQuery<'_>,
    meaning: Option<QuestionMeaning<'_>>,
) -> Result<(Vec<RecordHit>, usize), TransactionFailure> {
    let mut found = search(c, &FULL_TEXT, query.words, query.known)?;
    // If only meaning counts, the search skips the weights of words and trigrams. They would take ten times as long as
    // the rest.
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
    // If the model understands nothing of the question, the question's vector says nothing.
    let is_wanted = |id: i64| !query.is_only_project || is_here.contains(&id);
    if let (Some(meaning), Some(near)) = (meaning.filter(|meaning| meaning.asked.understood > 0.0), &near) {
        let fits = |id: i64| {
            let about = meaning.memory.about.get(&id);
            is_wanted(id) && about.is_some_and(|about| query.can_match(about.kind, about.status))
        };
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
            // Both lists are sorted by the number of the record.
            trigrams: grams.next_if(|(row, _)| *row == id).map_or(0.0, |(_, weight)| weight),
            cosine: near.as_ref().and_then(|near| near.best_cosine(id)),
            understood: meaning.map_or(0.0, |meaning| meaning.asked.understood),
            is_here: is_here.contains(&id),
        };
        let score = evidence.sum();
        if score > 0.0 && score >= query.cut && is_wanted(id) {
            candidates.push(RecordCandidate { id, evidence, score });
        }
    }
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.id.cmp(&a.id)));
    let limit = query.limit.min(MAX_RESULTS);
    let mut over_the_cut = candidates.iter().filter(|candidate| candidate.score >= CUT).count();
    let (mut best, mut archived) = (Vec::new(), Vec::new());
    let mut look = c.prepare_cached("SELECT kind, status FROM record WHERE id = ?1")?;
    for candidate in candidates {
        // With a filter, the loop checks all candidates, because the number of results must be exact. Without a filter,
        // it only counts the remaining candidates.
        if best.len() >= limit && query.kind.is_none() && query.status.is_none() {
            break;
        }
        // The memory may still hold a record that another call deleted a moment ago.
        let stands = look.query_row([candidate.id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match stands.filter(|(kind, status)| query.can_match(*kind, *status)) {
            None => over_the_cut -= usize::from(candidate.score >= CUT),
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
        // A record that holds all of a question's known words, but few of its words, is weak all the same.
        let coverage = candidate.evidence.coverage * found.known_share;
        let is_weak = MatchEvidence { coverage, ..candidate.evidence }.score() < CUT;
        let weak = is_weak.then(|| format_weakness(words.len(), found.words.len(), &candidate.evidence));
        let explain = RecordExplanation { parts, words, of: found.words.len(), evidence: candidate.evidence };
        Ok(RecordHit {
            record: rows::get_record(c, candidate.id)?,
            similarity: candidate.evidence.cosine.map(round_number),
            relevance: score,
            weak,
            elsewhere: !candidate.evidence.is_here && query.project != ProjectChoice::All,
            cut: false,
            explain: Some(explain),
        })
    });
    Ok((hits.collect::<Result<_, TransactionFailure>>()?, more))
}

/// Formats the reason why a record may not answer the question.
fn format_weakness(held: usize, words: usize, evidence: &MatchEvidence) -> String {
    match held {
        0 if evidence.by_meaning() > 0.0 => "shares no word".to_owned(),
        0 => "shares parts of words".to_owned(),
        1 => "shares one word".to_owned(),
        _ => format!("shares {held} of {words} words"),
    }
}

fn words_of(found: &FoundTexts, id: i64) -> Vec<String> {
    found.rows.get(&id).into_iter().flat_map(|held| found.words_of(held)).map(str::to_owned).collect()
}
