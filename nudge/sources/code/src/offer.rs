//! What an agent is told unasked: the code that a prompt or an error names, and what an edit leaves behind.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::explain::{MatchExplain, Parts};
use nudge_core::suggest::{Item, Moment, More, Offer, Offers, SuggestRequest};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::index::NodeId;
use crate::line;
use crate::live::Live;
use crate::live::state::State;
use crate::method::NODE;
use crate::prompt::{Candidate, Wanted, candidates};
use crate::search::Query;
use crate::shown::{self, View};
use crate::source::{Code, SOURCE};

/// Most nodes that one prompt or error draws.
const MAX_NODES: usize = 6;
const MAX_BESIDE_FAILURE: usize = 3;
/// Most lines about one edit.
const MAX_EDITED: usize = 3;
/// The part of all bytes that code takes at most, in percent.
const MAX_PERCENT: usize = 60;
/// What a search must say of a node to be told of when somebody asks in words.
const RECALLED: f64 = 0.6;
/// What runs tests: words of a command line.
const RUNNERS: [&str; 10] = ["pytest", "test", "jest", "vitest", "unittest", "nextest", "mocha", "tox", "nox", "check"];
/// Tools that only look.
const LOOKS: [&str; 5] = ["Read", "Grep", "Glob", "read_file", "view"];

/// The offers at this moment.
pub fn offers(code: &Code, request: &SuggestRequest) -> Offers {
    if !code.is_on() {
        return Offers::default();
    }
    if request.moment == Moment::Start {
        code.begin_around(&request.context);
        return Offers::default();
    }
    let Some(live) = code.alive(&request.context) else { return Offers::default() };
    match request.moment {
        Moment::Prompt => {
            told(&live, request, MAX_NODES, |state| candidates(&live, state, &request.text, &[], Wanted::Anything))
        }
        Moment::Failure if is_test(request.command.as_deref()) => told(&live, request, MAX_BESIDE_FAILURE, |state| {
            candidates(&live, state, &request.error, &[], Wanted::Named)
        }),
        Moment::Recall => {
            told(&live, request, request.limit.min(MAX_NODES), |state| recalled(&live, state, &request.text))
        }
        Moment::Tool => edited(&live, request),
        Moment::Failure | Moment::Start | Moment::Stop => Offers::default(),
    }
}

fn is_test(command: Option<&str>) -> bool {
    let mut words = command.unwrap_or_default().split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.any(|word| RUNNERS.contains(&word))
}

/// What somebody asks in words brings to mind, and what is found by them.
fn recalled(live: &Live, state: &State, text: &str) -> Vec<Candidate> {
    let mut found = candidates(live, state, text, &[], Wanted::Anything);
    let (hits, _) = state.names.find(&state.index, &Query { text, kind: None, path: None, limit: MAX_NODES });
    for hit in hits.into_iter().filter(|hit| hit.score >= RECALLED) {
        let crate::index::NodeLookup::One(id) = state.index.by_name(hit.path, hit.view.qual()) else { continue };
        if !found.iter().any(|one| one.id == id) {
            found.push(Candidate {
                id,
                score: hit.score,
                parts: Parts::from([("name", hit.score)]),
                reason: hit.reason,
            });
        }
    }
    found
}

fn told(live: &Live, request: &SuggestRequest, most: usize, find: impl Fn(&State) -> Vec<Candidate>) -> Offers {
    let room = request.max_bytes.saturating_mul(MAX_PERCENT) / 100;
    let answer = shown::fresh(live, &[], |view| {
        let mut offers: Vec<Offer> = Vec::new();
        let (mut bytes, mut omitted) = (0, 0);
        for candidate in find(view.state) {
            let Some(offer) = offer(view, &candidate) else { continue };
            if request.is_needless(SOURCE.name, &offer.id) {
                continue;
            }
            if offers.len() >= most || bytes + offer.line.len() > room {
                omitted += 1;
                continue;
            }
            bytes += offer.line.len();
            offers.push(offer);
        }
        Ok(Offers { offers, omitted, ..Offers::default() })
    });
    answer.map(|answer| answer.said).unwrap_or_default()
}

/// The offer of a node. What it says is part of its id: when the node changes, it is another.
fn offer(view: &View<'_>, candidate: &Candidate) -> Option<Offer> {
    let found = view.state.index.node(candidate.id)?;
    let line = line::of(view, candidate.id)?;
    let id = shown::id(found.path, &found.view);
    let stamp = FixedState::default().hash_one(found.view.node().hash);
    let (why, parts) = (candidate.reason.clone(), candidate.parts.clone());
    Some(made(view, candidate.id, format!("{id} {stamp:016x}"), line, why, parts, stamp))
}

fn made(view: &View<'_>, node: NodeId, id: String, line: String, why: String, parts: Parts, stamp: u64) -> Offer {
    let found = view.state.index.node(node);
    let (path, name) = found.map(|found| (found.path.to_owned(), found.view.qual().to_owned())).unwrap_or_default();
    let node = view.state.index.id_of(node);
    Offer {
        id: id.into(),
        name,
        line,
        stamp,
        must: false,
        paths: vec![path],
        why: why.clone(),
        explain: MatchExplain { matched: true, score: parts.sum().min(1.0), parts: parts.clone(), reasons: vec![why] },
        parts,
        // Strings alone: writing them cannot fail.
        more: More { method: NODE, params: to_raw_value(&json!({"id": node})).unwrap_or_default() },
        item: Item(to_raw_value(&json!({"node": node})).unwrap_or_default()),
    }
}

/// What an edit leaves behind: callers of what has another signature, documentation that is outdated now.
fn edited(live: &Live, request: &SuggestRequest) -> Offers {
    let looks = request.tool.as_deref().is_some_and(|tool| LOOKS.contains(&tool));
    let cwd = request.context.cwd().map(std::path::Path::new);
    let path = request.file.as_deref().filter(|_| !looks).and_then(|file| live.root().asked(file, cwd));
    let Some(path) = path else { return Offers::default() };
    let answer = shown::fresh(live, &[&path], |view| {
        view.fresh(&path);
        let mut offers = Vec::new();
        let before = view.state.before.get(&*path);
        if let Some((before, now)) = before.zip(view.state.index.file(&path)) {
            for node in now.nodes() {
                let crate::index::NodeLookup::One(id) = view.state.index.by_name(&path, node.qual()) else { continue };
                let Some(said) = line::edited(view, id, before) else { continue };
                let stamp = FixedState::default().hash_one((node.signature(), node.doc()));
                let own = format!("edited {} {stamp:016x}", shown::id(&path, &node));
                let why = "it was edited, and others go by what it was".to_owned();
                let offer = made(view, id, own, said, why, Parts::from([("edited", 1.0)]), stamp);
                let is_told = request.told(SOURCE.name).any(|(id, _)| *id == *offer.id);
                if !is_told && offers.len() < MAX_EDITED {
                    offers.push(Offer { must: true, ..offer });
                }
            }
        }
        Ok(Offers { offers, ..Offers::default() })
    });
    answer.map(|answer| answer.said).unwrap_or_default()
}
