//! Makes offers for an agent without a request: units that match a prompt. A unit is offered only if the embedding
//! model confirms the match.

use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::suggest::{MoreCall, Offer, SourceItem, SourceOffers, SuggestMoment, SuggestRequest};
use nudge_core::text::one_line;
use nudge_core::wire::raw_json;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::Connection;
use nudge_storage::search::QuestionWords;
use serde_json::json;

use crate::context::{UnitRow, make_safe};
use crate::fusion::RankedUnit;
use crate::graph::IndexRelations;
use crate::method::GET;
use crate::retrieve::{BrainQuestion, FLOOR, RetrievedUnits, UnitFilter, find_units, format_reason};
use crate::source::{BrainSource, SOURCE};

/// The most units that are offered for a prompt.
const MOST: usize = 2;
/// A prompt with fewer content words gets no offers.
const MIN_WORDS: usize = 3;
/// The most characters of a title in a line; `SUMMARY_CHARS` is the limit for a summary.
const TITLE_CHARS: usize = 120;
const SUMMARY_CHARS: usize = 200;

/// Finds the offers for an event. Only a brain that the user has named makes offers. The agent is waiting, so the index
/// is updated only after the answer.
pub fn find_offers(brains: &BrainSource, request: &SuggestRequest) -> Option<SourceOffers> {
    let is_prompt = match request.moment {
        SuggestMoment::Prompt => true,
        SuggestMoment::Recall => false,
        SuggestMoment::Start | SuggestMoment::Failure | SuggestMoment::Tool | SuggestMoment::Stop => return None,
    };
    let words =
        if is_prompt { QuestionWords::from_text(&request.text) } else { QuestionWords::of_query(&request.text) };
    if is_prompt && (words.len() < MIN_WORDS || request.question_vector().is_none()) {
        return None;
    }
    let index = brains.index(&brains.find_named(&request.context)?).ok()?;
    let limit = if is_prompt { MOST } else { request.limit };
    let (model, thought) = request.question_vector().unzip();
    let offers = index.meanings.with_memory(&index.db, model, |c, memory| {
        let question = BrainQuestion {
            words: &words,
            known: &index.known,
            thought,
            memory,
            fusion: brains.fusion,
            first: &[],
            limit,
            hops: 0,
        };
        let RetrievedUnits { units, words, words_asked: word_count, is_weak, .. } =
            find_units(c, &IndexRelations(c), question, UnitFilter::default())?;
        // A unit that shares only a word or two with a prompt is not told unasked.
        let units = if is_weak && is_prompt { Vec::new() } else { units };
        let kept = units.iter().zip(words).filter(|(ranked, _)| !is_prompt || ranked.evidence.score_meaning() >= FLOOR);
        let offers = kept.map(|(ranked, words)| build_offer(c, ranked, &words, word_count, is_weak));
        offers.collect::<Result<Vec<_>, TransactionFailure>>()
    });
    brains.work_on();
    let offers = offers.ok()?.into_iter().filter(|offer| !request.is_needless(SOURCE.name, &offer.id));
    Some(SourceOffers { offers: offers.collect(), ..SourceOffers::default() })
}

fn build_offer(
    c: &Connection,
    ranked: &RankedUnit,
    words: &[String],
    word_count: usize,
    is_weak: bool,
) -> Result<Offer, TransactionFailure> {
    let UnitRow { id, path, title, summary, .. } = UnitRow::read(c, ranked.unit)?;
    let title = make_safe(&title);
    let why = ranked.chunks.first().map(|best| format_reason(best, words, word_count)).unwrap_or_default();
    let why = if is_weak { format!("weak: {why}") } else { why };
    let said = match summary {
        Some(summary) => summary,
        None => first_line(c, ranked.chunks.first().map_or(0, |best| best.chunk))?,
    };
    let said = if said.is_empty() { said } else { format!(": {}", one_line(&make_safe(&said), SUMMARY_CHARS)) };
    let line = format!("note {} ({}){said}", one_line(&title, TITLE_CHARS), one_line(&path, TITLE_CHARS));
    let score = ranked.score.clamp(0.0, 1.0);
    Ok(Offer {
        name: format!("note {title}"),
        stamp: 0,
        line,
        must: false,
        paths: Vec::new(),
        command: None,
        why: why.clone(),
        explain: MatchExplain { matched: true, score, parts: ranked.score_parts(), reasons: vec![why] },
        parts: ScoreParts::from([("relevance", score)]),
        // Plain texts always convert to JSON.
        more: MoreCall { method: GET, params: raw_json(&json!({"id": id})) },
        item: SourceItem(raw_json(&json!({"unit": {"id": id, "title": title, "path": path}}))),
        id: id.into(),
    })
}

/// Returns the first line of a chunk that is not a heading and contains words; empty without such a line.
fn first_line(c: &Connection, chunk: i64) -> Result<String, TransactionFailure> {
    let text: String =
        c.prepare_cached("SELECT text FROM chunk WHERE id = ?1")?.query_row([chunk], |row| row.get(0))?;
    // List items, rules, tables and brackets are skipped, because they say nothing alone.
    let says = |line: &&str| !line.starts_with(['#', '`', '|', '-']) && line.contains(char::is_alphanumeric);
    let line = text.lines().map(str::trim).find(says);
    Ok(line.unwrap_or_default().to_owned())
}
