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
use crate::rank::SHARE;
use crate::search::{self, Explain, Hit, Query};
use crate::source::{Records, SOURCE};

/// Most records that a prompt brings to mind.
const LIMIT: usize = 5;
/// What a record must hold of a prompt to be told unasked, by words alone: three of its words that are so much of it, or
/// so much of it by words that weigh so much. Relevance is no floor: a prompt of two words that says nothing shares both
/// with some record. By `tests/records/`: 0 of 30 idle prompts of the half it was tuned on draw a record, 2 of 30 of the
/// other.
const MANY_WORDS: usize = 3;
const MANY_COVERAGE: f64 = 0.3;
const FEW_COVERAGE: f64 = 0.45;
const FEW_STEMS: f64 = 0.35;
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
    let limit = if request.moment == Moment::Recall { request.limit } else { LIMIT };
    let found = db.read(|c| {
        let project = project::asked(c, None, here.as_ref())?;
        let query = Query { words: &words, project, kind: None, status: None, limit, cut };
        search::find(c, &query, None)
    });
    let (hits, omitted) = found.ok()?;
    let says_enough = |hit: &Hit| request.moment == Moment::Recall || hit.explain.as_ref().is_some_and(is_worth_a_word);
    let offers = hits.into_iter().filter(says_enough).map(|hit| offer(hit, request.now));
    let offers = offers.filter(|offer| !request.is_needless(SOURCE.name, &offer.id)).collect();
    Some(Offers { offers, omitted, ..Offers::default() })
}

/// Whether a record holds so much of a prompt that it is told unasked.
fn is_worth_a_word(why: &Explain) -> bool {
    let coverage = why.parts.get("words").unwrap_or_default() / SHARE;
    let stems = why.parts.get("stems").unwrap_or_default();
    (why.words.len() >= MANY_WORDS && coverage >= MANY_COVERAGE) || (coverage >= FEW_COVERAGE && stems >= FEW_STEMS)
}

fn offer(hit: Hit, now: i64) -> Offer {
    let Hit { record, relevance, explain, elsewhere, .. } = hit;
    let parts = explain.as_ref().map(|why| why.parts.clone()).unwrap_or_default();
    let why = explain.map_or_else(String::new, |why| {
        format!("holds {} of {} words: {}", why.words.len(), why.of, why.words.join(", "))
    });
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
