//! Makes offers for an agent without a request: records that match a prompt.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::clock::rfc3339;
use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::suggest::{MoreCall, Offer, SourceItem, SourceOffers, SuggestMoment, SuggestRequest};
use nudge_core::text::{format_ago, one_line};
use nudge_core::wire::raw_json;
use nudge_storage::rank::MatchEvidence;
use nudge_storage::search::QuestionWords;
use serde_json::json;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::method::GET;
use crate::project::{self, ProjectLocation};
use crate::search::{self, QuestionMeaning, RecordExplanation, RecordHit, RecordQuery};
use crate::source::{RecordSource, SOURCE};

/// The number of the best search results from which the offers for a prompt are chosen.
const LOOKED_AT: usize = 20;
/// The relevance that a record needs for an offer: `BY_WORDS` if the prompt is compared by words alone, `BY_MEANING` if
/// the model understands the whole prompt. For a prompt that the model understands in part, the limit lies between the
/// two. A record of the caller's own project has a higher relevance. The other projects have more and more records, so
/// more and more of these records share two words with a prompt by chance.
///
/// The values were measured with `tests/records/`, which has the figures.
const BY_WORDS: f64 = 0.9;
const BY_MEANING: f64 = 0.6;
/// A record below this relevance is offered too if it holds at least `MANY_WORDS` words and the share `MUCH` of the
/// prompt, and if its meaning is near enough (`LEAST_COSINE`). The rule helps a user with few records: no word is rare
/// there, so words alone do not reach the relevance.
const MANY_WORDS: usize = 3;
const MUCH: f64 = 0.45;
const LEAST_COSINE: f64 = 0.35;
/// A prompt with fewer content words gets no offers.
const MIN_WORDS: usize = 3;
/// The most sentences of a prompt that are judged one by one. The last ones are taken, because a prompt ends with its
/// request.
const MAX_SENTENCES: usize = 8;
/// The most characters of a title in a line; `BODY_CHARS` is the limit for a body.
const TITLE_CHARS: usize = 160;
const BODY_CHARS: usize = 200;

/// Finds the offers for an event. An error gives no offers.
pub fn find_offers(records: &RecordSource, request: &SuggestRequest) -> SourceOffers {
    try_find_offers(records, request).unwrap_or_default()
}

fn try_find_offers(records: &RecordSource, request: &SuggestRequest) -> Option<SourceOffers> {
    match request.moment {
        SuggestMoment::Prompt => offer_for_prompt(records, request),
        SuggestMoment::Recall => {
            let words = QuestionWords::of_query(&request.text);
            let query = OfferQuery { words, limit: request.limit, cut: 0.0, is_by_meaning: true };
            let (hits, omitted) = find_hits(records, request, &query)?;
            Some(build_offers(hits, omitted, request))
        }
        SuggestMoment::Start | SuggestMoment::Failure | SuggestMoment::Tool | SuggestMoment::Stop => None,
    }
}

/// Finds the offers for a prompt. The prompt is judged as a whole, and sentence by sentence: further sentences about
/// other things would hide the sentence that a record answers.
fn offer_for_prompt(records: &RecordSource, request: &SuggestRequest) -> Option<SourceOffers> {
    let mut hits: Vec<RecordHit> = Vec::new();
    let sentences: Vec<_> = request.text.unicode_sentences().collect();
    let parts = sentences.iter().rev().take(if sentences.len() > 1 { MAX_SENTENCES } else { 0 });
    for text in std::iter::once(&&*request.text).chain(parts) {
        let words = QuestionWords::from_text(text);
        if words.len() < MIN_WORDS {
            continue;
        }
        // The request has only the vector of the whole prompt.
        let is_by_meaning = text.len() == request.text.len();
        let query = OfferQuery { words, limit: LOOKED_AT, cut: search::CUT, is_by_meaning };
        let (found, _) = find_hits(records, request, &query)?;
        for hit in found.into_iter().filter(is_worth_a_word) {
            if hits.iter().all(|known| known.record.id != hit.record.id) {
                hits.push(hit);
            }
        }
    }
    let most = records.prompt_limit(&request.context);
    let omitted = hits.len().saturating_sub(most);
    hits.truncate(most);
    Some(build_offers(hits, omitted, request))
}

/// A search for offers.
struct OfferQuery {
    words: QuestionWords,
    limit: usize,
    cut: f64,
    /// True when the vector of the request is that of the words.
    is_by_meaning: bool,
}

/// Finds the records for a query, and the number of further ones.
fn find_hits(records: &RecordSource, request: &SuggestRequest, query: &OfferQuery) -> Option<(Vec<RecordHit>, usize)> {
    let db = records.find_db().ok()??;
    let here = ProjectLocation::from_context(&request.context);
    let look = |meaning: Option<QuestionMeaning<'_>>| {
        db.read(|c| {
            let project = project::choose_project(c, None, here.as_ref())?;
            let query = RecordQuery {
                words: &query.words,
                known: records.known_indexes(),
                project,
                is_only_project: false,
                kind: None,
                status: None,
                limit: query.limit,
                cut: query.cut,
            };
            search::find_records(c, &query, meaning)
        })
    };
    let found = match request.question_vector().filter(|_| query.is_by_meaning) {
        Some((model, asked)) => {
            records.meanings().with_memory(db, model, |memory| look(Some(QuestionMeaning { asked, memory }))).ok()?
        }
        None => look(None),
    };
    found.ok()
}

fn build_offers(hits: Vec<RecordHit>, omitted: usize, request: &SuggestRequest) -> SourceOffers {
    let offers = hits.into_iter().map(|hit| build_offer(hit, request.now));
    let offers = offers.filter(|offer| !request.is_needless(SOURCE.name, &offer.id)).collect();
    SourceOffers { offers, omitted, ..SourceOffers::default() }
}

/// Returns true when a record matches a prompt well enough to be offered.
fn is_worth_a_word(hit: &RecordHit) -> bool {
    let Some(why) = &hit.explain else { return false };
    let evidence = &why.evidence;
    let by_meaning = evidence.by_meaning();
    let floor = by_meaning * BY_MEANING + (1.0 - by_meaning) * BY_WORDS;
    let is_near = evidence.cosine.is_none_or(|cosine| cosine >= LEAST_COSINE * evidence.understood);
    // The names of files do not count here: many prompts name a file that is also in some record.
    let relevance = MatchEvidence { names: 0.0, ..*evidence }.score();
    relevance >= floor || (why.words.len() >= MANY_WORDS && evidence.coverage >= MUCH && is_near)
}

fn build_offer(hit: RecordHit, now: i64) -> Offer {
    let RecordHit { record, relevance, weak, explain, elsewhere, .. } = hit;
    let (why, parts) = explain.map(|why| (format_reason(&why), why.parts)).unwrap_or_default();
    let why = match weak {
        Some(weak) => format!("weak: {weak}; {why}"),
        None => why,
    };
    let updated_at = rfc3339::parse(&record.updated_at).unwrap_or(now);
    let place = if elsewhere { format!(", in {}", record.project) } else { String::new() };
    let body = if record.body.is_empty() { String::new() } else { format!(": {}", one_line(&record.body, BODY_CHARS)) };
    let (id, kind, title) = (record.id, record.kind.as_str(), one_line(&record.title, TITLE_CHARS));
    let line = format!(
        "record {id} ({kind}, {}, {}{place}) {title}{body}",
        record.status.as_str(),
        format_ago(updated_at, now)
    );
    // The stamp is made from the version only. The line also shows the record's age, and a new age must not make the
    // offer new.
    let stamp = FixedState::default().hash_one(record.version);
    let strength = ScoreParts::from([("relevance", relevance)]);
    Offer {
        id: id.to_string().into(),
        name: format!("record {id}"),
        line,
        stamp,
        must: false,
        paths: Vec::new(),
        command: None,
        why: why.clone(),
        explain: MatchExplain { matched: true, score: relevance, parts, reasons: vec![why] },
        parts: strength,
        // Plain numbers and strings always convert to JSON.
        more: MoreCall { method: GET, params: raw_json(&json!({"id": id})) },
        item: SourceItem(raw_json(&json!({"record": record}))),
    }
}

/// Formats the reason why a record is offered.
fn format_reason(why: &RecordExplanation) -> String {
    let near = why.evidence.cosine.map(|cosine| format!("similarity {cosine:.2}"));
    let held = (!why.words.is_empty() || near.is_none())
        .then(|| format!("holds {} of {} words: {}", why.words.len(), why.of, why.words.join(", ")));
    near.into_iter().chain(held).collect::<Vec<_>>().join("; ")
}
