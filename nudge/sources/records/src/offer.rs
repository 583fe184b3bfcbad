//! What an agent is told unasked: records that a prompt brings to mind.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::clock::rfc3339;
use nudge_core::explain::{MatchExplain, Parts};
use nudge_core::suggest::{Item, Moment, More, Offer, Offers, SuggestRequest};
use nudge_core::text::{ago, one_line};
use nudge_storage::search::Words;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::method::GET;
use crate::project::{self, Here};
use crate::search::{self, Explain, Hit, Meaning, Query};
use crate::source::{Records, SOURCE};

/// The most relevant records, which are looked at for a prompt.
const LOOKED_AT: usize = 20;
/// What a record must hold of a prompt to be told unasked, by words: three of its words that are so much of it, or so
/// much of it by words that weigh so much. Relevance is no floor: a prompt of two words that says nothing shares both
/// with some record.
const MANY_WORDS: usize = 3;
const MANY_COVERAGE: f64 = 0.4;
const FEW_COVERAGE: f64 = 0.5;
const FEW_STEMS: f64 = 0.4;
/// What meaning must say to be enough without that; and the least cosine, as far as the prompt is understood, of a record
/// that has the words: it may have them by chance. By `tests/records/`, where its figures stand: no idle prompt of the
/// half that these were tuned on draws a record.
const ENOUGH_MEANING: f64 = 0.5;
const LEAST_COSINE: f64 = 0.3;
/// Content words without which a prompt brings nothing to mind.
const MIN_WORDS: usize = 3;
/// Length to which a title and a body are cut in a line.
const TITLE_CHARS: usize = 160;
const BODY_CHARS: usize = 200;

/// The offers at this moment.
pub fn offers(records: &Records, request: &SuggestRequest) -> Offers {
    found(records, request).unwrap_or_default()
}

fn found(records: &Records, request: &SuggestRequest) -> Option<Offers> {
    let (words, cut) = match request.moment {
        Moment::Prompt => (Words::of(&request.text), search::CUT),
        Moment::Recall => (Words::of_query(&request.text), search::CUT),
        Moment::Start | Moment::Failure | Moment::Tool | Moment::Stop => return None,
    };
    if request.moment == Moment::Prompt && words.iter().count() < MIN_WORDS {
        return None;
    }
    let db = records.existing().ok()??;
    let here = Here::of(&request.context);
    let limit = if request.moment == Moment::Recall { request.limit } else { LOOKED_AT };
    let look = |by: Option<Meaning<'_>>| {
        db.read(|c| {
            let project = project::asked(c, None, here.as_ref())?;
            let query = Query { words: &words, known: records.known(), project, kind: None, status: None, limit, cut };
            search::find(c, &query, by)
        })
    };
    let found = match request.thought() {
        Some((model, asked)) => {
            records.meanings().with(db, model, |memory| look(Some(Meaning { asked, memory }))).ok()?
        }
        None => look(None),
    };
    let (mut hits, mut omitted) = found.ok()?;
    if request.moment == Moment::Prompt {
        hits.retain(|hit| hit.explain.as_ref().is_some_and(is_worth_a_word));
        let most = records.limit(&request.context);
        omitted = hits.len().saturating_sub(most);
        hits.truncate(most);
    }
    let offers = hits.into_iter().map(|hit| offer(hit, request.now));
    let offers = offers.filter(|offer| !request.is_needless(SOURCE.name, &offer.id)).collect();
    Some(Offers { offers, omitted, ..Offers::default() })
}

/// Whether a record has so much to do with a prompt that it is told unasked.
fn is_worth_a_word(why: &Explain) -> bool {
    let of = &why.evidence;
    let holds = (why.words.len() >= MANY_WORDS && of.coverage >= MANY_COVERAGE)
        || (of.coverage >= FEW_COVERAGE && of.stems() >= FEW_STEMS);
    let is_near = of.cosine.is_none_or(|cosine| cosine >= LEAST_COSINE * of.understood);
    of.meaning() >= ENOUGH_MEANING || (holds && is_near)
}

fn offer(hit: Hit, now: i64) -> Offer {
    let Hit { record, relevance, explain, elsewhere, .. } = hit;
    let parts = explain.as_ref().map(|why| why.parts.clone()).unwrap_or_default();
    let why = explain.as_ref().map(reason).unwrap_or_default();
    let at = rfc3339::parse(&record.updated_at).unwrap_or(now);
    let place = if elsewhere { format!(", in {}", record.project) } else { String::new() };
    let body = if record.body.is_empty() { String::new() } else { format!(": {}", one_line(&record.body, BODY_CHARS)) };
    let (id, kind, title) = (record.id, record.kind.as_str(), one_line(&record.title, TITLE_CHARS));
    let line = format!("record {id} ({kind}, {}, {}{place}) {title}{body}", record.status.as_str(), ago(at, now));
    // Its age is in the line, too, and is no news.
    let stamp = FixedState::default().hash_one(record.version);
    let strength = Parts::from([("relevance", relevance)]);
    Offer {
        id: id.to_string().into(),
        name: format!("record {id}"),
        line,
        stamp,
        must: false,
        paths: Vec::new(),
        why: why.clone(),
        explain: MatchExplain { matched: true, score: relevance, parts, reasons: vec![why] },
        parts: strength,
        // Numbers and strings alone: writing them cannot fail.
        more: More { method: GET, params: to_raw_value(&json!({"id": id})).unwrap_or_default() },
        item: Item(to_raw_value(&json!({"record": record})).unwrap_or_default()),
    }
}

/// Why a record is told, in words.
fn reason(why: &Explain) -> String {
    let near = why.evidence.cosine.map(|cosine| format!("similarity {cosine:.2}"));
    let held = (!why.words.is_empty() || near.is_none())
        .then(|| format!("holds {} of {} words: {}", why.words.len(), why.of, why.words.join(", ")));
    near.into_iter().chain(held).collect::<Vec<_>>().join("; ")
}
