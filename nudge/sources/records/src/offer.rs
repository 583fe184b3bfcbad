//! Offers for an agent that did not ask: records that match a prompt.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::clock::rfc3339;
use nudge_core::explain::{MatchExplain, Parts};
use nudge_core::suggest::{Item, Moment, More, Offer, Offers, SuggestRequest};
use nudge_core::text::{ago, one_line};
use nudge_storage::rank::Evidence;
use nudge_storage::search::Words;
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::method::GET;
use crate::project::{self, Here};
use crate::search::{self, Explain, Hit, Meaning, Query};
use crate::source::{Records, SOURCE};

/// The most relevant records, which are looked at for a prompt.
const LOOKED_AT: usize = 20;
/// The relevance from which a record is told unasked: by words alone, and by meaning; a value between them for a prompt
/// that is understood in part. As in the relevance, records of this project count more: the records of all others grow
/// without end, and so does the chance that one of them shares two words with a prompt.
///
/// By `tests/records/`, where the figures stand.
const BY_WORDS: f64 = 0.9;
const BY_MEANING: f64 = 0.6;
/// Enough without that relevance, which words cannot reach among the first few records, because no word is rare there:
/// so many words, and so much of the prompt, in a record whose meaning is not far from it, as far as that is
/// understood.
const MANY_WORDS: usize = 3;
const MUCH: f64 = 0.45;
const LEAST_COSINE: f64 = 0.35;
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
        hits.retain(is_worth_a_word);
        let most = records.limit(&request.context);
        omitted = hits.len().saturating_sub(most);
        hits.truncate(most);
    }
    let offers = hits.into_iter().map(|hit| offer(hit, request.now));
    let offers = offers.filter(|offer| !request.is_needless(SOURCE.name, &offer.id)).collect();
    Some(Offers { offers, omitted, ..Offers::default() })
}

/// Returns true when a record fits a prompt so well that it is told unasked.
fn is_worth_a_word(hit: &Hit) -> bool {
    let Some(why) = &hit.explain else { return false };
    let of = &why.evidence;
    let by_meaning = of.by_meaning();
    let floor = by_meaning * BY_MEANING + (1.0 - by_meaning) * BY_WORDS;
    let is_near = of.cosine.is_none_or(|cosine| cosine >= LEAST_COSINE * of.understood);
    // Many a prompt that wants nothing names a file that some record names.
    let relevance = Evidence { names: 0.0, ..*of }.score();
    relevance >= floor || (why.words.len() >= MANY_WORDS && of.coverage >= MUCH && is_near)
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
    // The line also holds the age, which is no news.
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
