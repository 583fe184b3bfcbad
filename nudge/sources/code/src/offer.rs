//! Offers code without a request: the nodes that a prompt or an error names, and the leftovers of an edit.

use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_code_index::NodeId;
use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::suggest::{MoreCall, Offer, SourceItem, SourceOffers, SuggestMoment, SuggestRequest};
use nudge_core::wire::raw_json;
use serde_json::json;

use crate::line;
use crate::live::state::RootState;
use crate::live::{FileFreshness, LiveRoot};
use crate::method::{FILE, NODE};
use crate::prompt::{NodeCandidate, WantedNodes, find_candidates};
use crate::search::NodeQuery;
use crate::shown::{self, AnswerView};
use crate::source::{CodeSource, SOURCE};

/// The most nodes for one prompt. For one error, the limit is `MAX_BESIDE_FAILURE`.
const MAX_NODES: usize = 6;
const MAX_BESIDE_FAILURE: usize = 3;
/// The most offers about one edit.
const MAX_EDITED: usize = 3;
const GO_BY: &str = "it was edited, and others go by what it was";
/// The share of an answer's bytes that nodes may take, in percent.
const MAX_PERCENT: usize = 60;
/// A search hit with a lower score is told as weak. `MAX_WEAK` limits such hits, because each costs a line.
const WEAK: f64 = 0.15;
const MAX_WEAK: usize = 3;
/// The words of a command line that show that it runs tests.
const RUNNERS: [&str; 10] = ["pytest", "test", "jest", "vitest", "unittest", "nextest", "mocha", "tox", "nox", "check"];
/// The names of tools that only read files.
const LOOKS: [&str; 5] = ["Read", "Grep", "Glob", "read_file", "view"];

/// Makes the offers for an event.
pub fn make_offers(code: &CodeSource, request: &SuggestRequest) -> SourceOffers {
    if !code.is_on() {
        return SourceOffers::default();
    }
    if request.moment == SuggestMoment::Start {
        code.begin_around(&request.context);
        return SourceOffers::default();
    }
    let live = match request.moment {
        SuggestMoment::Recall => code.find_for_question(&request.context),
        _ => code.alive_or_kept(&request.context),
    };
    let Some(live) = live else { return SourceOffers::default() };
    let mut left = match request.moment {
        SuggestMoment::Prompt | SuggestMoment::Failure | SuggestMoment::Tool => offer_edits(&live, request),
        SuggestMoment::Recall | SuggestMoment::Start | SuggestMoment::Stop => SourceOffers::default(),
    };
    let said = match request.moment {
        SuggestMoment::Prompt => offer_nodes(&live, request, MAX_NODES, |state| {
            find_candidates(&live, state, &request.text, &[], WantedNodes::Anything)
        }),
        SuggestMoment::Failure if is_test(request.command.as_deref()) => {
            offer_nodes(&live, request, MAX_BESIDE_FAILURE, |state| {
                find_candidates(&live, state, &request.error, &[], WantedNodes::Named)
            })
        }
        SuggestMoment::Recall => {
            live.index_texts();
            offer_nodes(&live, request, request.limit.min(MAX_NODES), |state| recall_nodes(&live, state, &request.text))
        }
        SuggestMoment::Failure | SuggestMoment::Tool | SuggestMoment::Start | SuggestMoment::Stop => {
            SourceOffers::default()
        }
    };
    left.offers.extend(said.offers);
    SourceOffers { offers: left.offers, ..said }
}

fn is_test(command: Option<&str>) -> bool {
    let mut words = command.into_iter().flat_map(|command| command.split(|c: char| !(c.is_alphanumeric() || c == '_')));
    words.any(|word| RUNNERS.contains(&word))
}

/// Finds the nodes that a question mentions, and the nodes that a search finds for it.
fn recall_nodes(live: &LiveRoot, state: &RootState, text: &str) -> Vec<NodeCandidate> {
    let mut found = find_candidates(live, state, text, &[], WantedNodes::Anything);
    let (hits, _) = state.words.find(&state.index, &NodeQuery { text, kind: None, path: None, limit: MAX_NODES });
    let mut weak = 0;
    for hit in hits {
        if hit.score < WEAK {
            weak += 1;
            if weak > MAX_WEAK {
                break;
            }
        }
        let nudge_code_index::NodeLookup::One(id) = state.index.by_name(hit.path, hit.view.qual()) else { continue };
        if !found.iter().any(|candidate| candidate.id == id) {
            found.push(NodeCandidate {
                id,
                score: hit.score,
                parts: ScoreParts::from([("words", hit.score)]),
                reason: if hit.score < WEAK { format!("weak: {}", hit.reason) } else { hit.reason },
            });
        }
    }
    found.sort_by(|candidate, other| other.score.total_cmp(&candidate.score));
    found
}

fn offer_nodes(
    live: &LiveRoot,
    request: &SuggestRequest,
    most: usize,
    find: impl Fn(&RootState) -> Vec<NodeCandidate>,
) -> SourceOffers {
    let room = request.max_bytes.saturating_mul(MAX_PERCENT) / 100;
    let answer = shown::answer_fresh(live, &[], |view| {
        let mut offers: Vec<Offer> = Vec::new();
        let (mut bytes, mut omitted) = (0, 0);
        for candidate in find(view.state) {
            let Some(offer) = offer_node(view, &candidate) else { continue };
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
        Ok(SourceOffers { offers, omitted, ..SourceOffers::default() })
    });
    answer.map(|answer| answer.said).unwrap_or_default()
}

/// Offers a node. The id of the offer contains a hash of the node's text, so a changed node is a new offer.
fn offer_node(view: &AnswerView<'_>, candidate: &NodeCandidate) -> Option<Offer> {
    let found = view.state.index.find_node(candidate.id)?;
    let line = line::describe_node(view, candidate.id)?;
    let id = shown::to_node_id(found.path, &found.view);
    let stamp = FixedState::default().hash_one(found.view.node().hash);
    let (why, parts) = (candidate.reason.clone(), candidate.parts.clone());
    Some(build_offer(view, candidate.id, format!("{id} {stamp:016x}"), line, why, parts, stamp))
}

fn build_offer(
    view: &AnswerView<'_>,
    node: NodeId,
    id: String,
    line: String,
    why: String,
    parts: ScoreParts,
    stamp: u64,
) -> Offer {
    let found = view.state.index.find_node(node);
    let (path, name) = found.map(|found| (found.path.to_owned(), found.view.qual().to_owned())).unwrap_or_default();
    let node = view.state.index.id_of(node);
    Offer {
        id: id.into(),
        name,
        line,
        stamp,
        must: false,
        paths: vec![path],
        command: None,
        why: why.clone(),
        explain: MatchExplain {
            matched: true,
            score: parts.total().min(1.0),
            parts: parts.clone(),
            reasons: vec![why],
        },
        parts,
        // An object of strings always converts to JSON.
        more: MoreCall { method: NODE, params: raw_json(&json!({"id": node})) },
        item: SourceItem(raw_json(&json!({"node": node}))),
    }
}

/// Offers the leftovers of edits: callers of changed or removed definitions, and documentation that is wrong now. A
/// file that is too large to be read at once is kept for the next event.
fn offer_edits(live: &LiveRoot, request: &SuggestRequest) -> SourceOffers {
    let is_edit =
        request.moment == SuggestMoment::Tool && request.tool.as_deref().is_none_or(|tool| !LOOKS.contains(&tool));
    let cwd = request.context.cwd().map(std::path::Path::new);
    let file = request.file.as_deref().filter(|_| is_edit).and_then(|file| live.root().resolve_path(file, cwd));
    let client_session = request.client_session.as_deref();
    let mut paths = live.take_owed(client_session);
    if let Some(file) = file.map(Box::<str>::from).filter(|file| !paths.contains(file)) {
        paths.push(file);
    }
    if paths.is_empty() {
        return SourceOffers::default();
    }
    let first: Vec<&str> = paths.iter().map(|path| &**path).collect();
    let answer = shown::answer_fresh(live, &first, |view| {
        let (mut offers, mut owed) = (Vec::new(), Vec::new());
        for path in &paths {
            let gone = if view.check_fresh(path) == FileFreshness::No {
                None
            } else {
                offers.extend(left_behind(view, path));
                all_gone(live, view, path)
            };
            match gone {
                Some(gone) => offers.extend(gone),
                None => owed.push(path),
            }
        }
        offers.retain(|offer| request.told_offers(SOURCE.name).all(|(id, _)| *id != *offer.id));
        offers.truncate(MAX_EDITED);
        Ok((SourceOffers { offers, ..SourceOffers::default() }, owed))
    });
    let Ok((offers, owed)) = answer.map(|answer| answer.said) else { return SourceOffers::default() };
    for path in owed {
        live.note_owed(client_session, path);
    }
    offers
}

/// Offers the leftovers of all edited nodes of a file.
fn left_behind(view: &AnswerView<'_>, path: &str) -> Vec<Offer> {
    let index = &view.state.index;
    let Some((before, now)) = view.state.before.get(path).zip(index.file_facts(path)) else { return Vec::new() };
    let mut offers = Vec::new();
    for node in now.nodes() {
        let nudge_code_index::NodeLookup::One(id) = index.by_name(path, node.qual()) else { continue };
        for left in line::find_leftovers(view, id, before) {
            let (key, stamp) = make_edit_id(path, node.qual(), &left.key);
            let offer = build_offer(view, id, key, left.line, GO_BY.into(), ScoreParts::from([("edited", 1.0)]), stamp);
            offers.push(Offer { must: true, ..offer });
        }
    }
    offers
}

/// Offers the removed definitions of a file that other code still names. Returns `None` while an unread file may define
/// them.
fn all_gone(live: &LiveRoot, view: &AnswerView<'_>, path: &str) -> Option<Vec<Offer>> {
    let Some((before, now)) = view.state.before.get(path).zip(view.state.index.file_facts(path)) else {
        return Some(Vec::new());
    };
    let is_there = |qual: &str| now.nodes().any(|node| node.qual() == qual);
    // The next edit of a file with syntax errors may define the name again, so the definition does not count as removed
    // yet.
    let lost = view.state.lost.get(path).filter(|_| !now.parse_errors || before.parse_errors);
    let lost: Vec<_> = lost.into_iter().flatten().filter(|lost| !is_there(&lost.qual)).collect();
    if lost.is_empty() {
        return Some(Vec::new());
    }
    let is_read = |path: &str| view.check_fresh(path) != FileFreshness::No;
    // `count` looks at every file, so all unread files are read here.
    let unread = live.list_unread(view.state, path)?.iter().filter(|path| !is_read(path)).count();
    if unread > 0 {
        return None;
    }
    let told = lost.into_iter().filter_map(|lost| {
        let left = line::describe_lost(view, path, lost)?;
        let (key, stamp) = make_edit_id(path, &lost.qual, &left.key);
        Some(offer_gone(path, &lost.qual, key, left.line, stamp))
    });
    Some(told.collect())
}

/// Makes the id and the stamp of the offer about a leftover.
fn make_edit_id(path: &str, qual: &str, key: &str) -> (String, u64) {
    let stamp = FixedState::default().hash_one(key);
    (format!("edited node:{path}:{qual} {stamp:016x}"), stamp)
}

/// Makes the offer about a removed definition.
fn offer_gone(path: &str, qual: &str, id: String, line: String, stamp: u64) -> Offer {
    let parts = ScoreParts::from([("edited", 1.0)]);
    let reasons = vec![GO_BY.to_owned()];
    Offer {
        id: id.into(),
        name: qual.to_owned(),
        line,
        stamp,
        must: true,
        paths: vec![path.to_owned()],
        command: None,
        why: GO_BY.to_owned(),
        explain: MatchExplain { matched: true, score: 1.0, parts: parts.clone(), reasons },
        parts,
        more: MoreCall { method: FILE, params: raw_json(&json!({"path": path})) },
        item: SourceItem(raw_json(&json!({"file": path}))),
    }
}
