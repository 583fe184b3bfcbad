//! Formats a node as one line that an agent reads.

use std::collections::HashSet;

use nudge_code_index::{CallerSite, FileFacts, NodeId, NodeView};
use nudge_core::text::{clip_text, one_line};
use nudge_secrets::SecretGuard;

use crate::live::state::LostDefinition;
use crate::shown::AnswerView;

/// The most characters that a line shows of a signature. `CALLEE_CHARS` limits a callee, and `DETAIL_CHARS` limits a
/// contradiction in the documentation.
const SIGNATURE_CHARS: usize = 160;
const CALLEE_CHARS: usize = 80;
const DETAIL_CHARS: usize = 120;
/// The most characters of a line.
const MAX_CHARS: usize = 400;
/// The most callers and tests that a line names. A line counts callers up to `COUNTED`.
const NAMED: usize = 2;
const COUNTED: usize = 100;

/// Describes a node in a line. Returns `None` when the line would hold a secret, or when the index differs from the
/// file.
pub fn describe_node(view: &AnswerView<'_>, id: NodeId) -> Option<String> {
    let index = &view.state.index;
    let found = index.find_node(id)?;
    let (path, node) = (found.path, found.view);
    if view.check_fresh(path) == crate::live::FileFreshness::No {
        return None;
    }
    let mut parts = vec![format!("{path}:{} {}", node.node().span.line, format_declaration(&node))];
    let called = view.calls.callers_of(id, COUNTED, false);
    let callees: Vec<_> = list_callees(view, id).collect();
    if !callees.is_empty() {
        parts.push(format!("calls {}", callees.join(", ")));
    }
    let count = called.edges.len() + called.omitted;
    if count > 0 {
        let places: Vec<_> =
            called.edges.iter().take(NAMED).map(|edge| format!("{}:{}", edge.path, edge.line)).collect();
        let more = if count > NAMED { ", .." } else { "" };
        parts.push(format!("called by {count} ({}{more})", places.join(", ")));
    }
    let tests = view.calls.tests_of(id, NAMED);
    let linked = tests.links.iter().filter_map(|link| index.find_node(link.test));
    let linked: Vec<_> = linked.map(|test| format!("{}::{}", test.path, test.view.qual())).collect();
    let named = tests.named.first().filter(|_| linked.is_empty()).map(ToString::to_string);
    let tests: Vec<_> = linked.into_iter().chain(named).collect();
    if !tests.is_empty() {
        parts.push(format!("tests: {}", tests.join(", ")));
    }
    if let Some(drift) = view.state.find_drift(path, &node).into_iter().find(|drift| drift.rule.is_outdated()) {
        parts.push(format!("doc outdated: {}", clip_text(&drift.detail, DETAIL_CHARS)));
    }
    to_safe_line(&parts.join(" | "))
}

/// Lists the definitions that a node calls, each once, as declarations.
fn list_callees<'a>(view: &'a AnswerView<'_>, id: NodeId) -> impl Iterator<Item = String> + 'a {
    let index = &view.state.index;
    let mut seen = HashSet::from([id]);
    let callees = view.calls.callees_of(id, false).into_iter().filter(move |callee| seen.insert(callee.to));
    callees.take(NAMED).filter_map(|callee| {
        let found = index.find_node(callee.to)?;
        view.check_fresh(found.path);
        let declared = clip_text(&format_declaration(&found.view), CALLEE_CHARS);
        Some(format!("{declared} in {}:{}", found.path, found.view.node().span.line))
    })
}

/// Formats the declaration of a node: `Flask.route(rule, **options) -> ..`.
pub fn format_declaration(node: &NodeView<'_>) -> String {
    let signature = node.signature();
    let after = signature.split_once(node.name()).map_or("", |(_, after)| after);
    let after = after.trim_end_matches([':', '{', ';', ' ']);
    let space = if after.is_empty() || after.starts_with(['(', '<', '[', ':', '!']) { "" } else { " " };
    clip_text(&format!("{}{space}{}", node.qual(), after.trim_start()), SIGNATURE_CHARS)
}

/// Code or documentation that is wrong after an edit elsewhere.
pub struct EditLeftover {
    /// Identifies this leftover among the leftovers of its node. So a client session gets it only once.
    pub key: String,
    /// The line that the agent reads.
    pub line: String,
}

/// Finds the leftovers of an edited node: callers that did not change although the node's parameters changed, and
/// documentation that was right before the edit.
pub fn find_leftovers(view: &AnswerView<'_>, id: NodeId, before: &FileFacts) -> Vec<EditLeftover> {
    let Some(found) = view.state.index.find_node(id) else { return Vec::new() };
    let (path, node) = (found.path, found.view);
    let Some(was) = before.nodes().find(|old| old.qual() == node.qual()) else { return Vec::new() };
    let mut said = Vec::new();
    if was.params_hash() != node.params_hash() && !node.signature().is_empty() {
        let made = view.state.index.made_by(id).map(|class| view.calls.callers_of(class, usize::MAX, false).edges);
        let called = view.calls.callers_of(id, usize::MAX, false).edges;
        let called: Vec<_> = called.into_iter().chain(made.into_iter().flatten()).collect();
        let places: Vec<_> = called.iter().filter(|edge| is_as_it_was(view, edge)).collect();
        let callers = if places.len() == 1 { "1 caller was" } else { &format!("{} callers were", places.len()) };
        if let Some(places) = join_places(places.iter().map(|edge| (&*edge.path, edge.line))) {
            let text = format!("the signature has changed, and {callers} written for the old one: {places}");
            said.push((format!("takes {:08x}", node.params_hash()), text));
        }
    }
    let was_outdated = was.list_drift().any(|drift| drift.rule.is_outdated());
    let drift = view.state.find_drift(path, &node).into_iter().find(|drift| drift.rule.is_outdated());
    if let Some(drift) = drift.filter(|_| !was_outdated) {
        let text = format!("its doc is outdated now: {}", clip_text(&drift.detail, DETAIL_CHARS));
        said.push((format!("drift {}", drift.detail), text));
    }
    let begin = format!("{path}:{} {}", node.node().span.line, format_declaration(&node));
    said.into_iter()
        .filter_map(|(key, text)| Some(EditLeftover { key, line: to_safe_line(&format!("{begin}: {text}"))? }))
        .collect()
}

/// Describes a removed definition that other code still names. Returns `None` when no code names it any more.
pub fn describe_lost(view: &AnswerView<'_>, path: &str, lost: &LostDefinition) -> Option<EditLeftover> {
    let mut places = Vec::new();
    for (file, within) in &lost.callers {
        view.check_fresh(file);
        let lines = view.calls.leading_nowhere(file, within.as_deref(), &lost.name);
        places.extend(lines.into_iter().map(|line| (&**file, line)));
    }
    let callers = if places.len() == 1 { "1 caller names" } else { &format!("{} callers name", places.len()) };
    let places = join_places(places.iter().copied())?;
    let line = to_safe_line(&format!("{path} {}: it is gone, and {callers} it still: {places}", lost.qual))?;
    Some(EditLeftover { key: "gone".to_owned(), line })
}

/// Returns true if the calling node has the same text as before the edit.
fn is_as_it_was(view: &AnswerView<'_>, edge: &CallerSite) -> bool {
    view.check_fresh(&edge.path);
    let index = &view.state.index;
    let Some((before, now)) = view.state.before.get(&*edge.path).zip(index.file_facts(&edge.path)) else { return true };
    match edge.from.and_then(|from| index.find_node(from)) {
        Some(from) => {
            before.nodes().any(|old| old.qual() == from.view.qual() && old.node().hash == from.view.node().hash)
        }
        None => before.rest == now.rest,
    }
}

/// Lists the first few positions in words; `None` without a position.
fn join_places<'a>(places: impl ExactSizeIterator<Item = (&'a str, u32)>) -> Option<String> {
    let more = if places.len() > NAMED + 1 { ", .." } else { "" };
    let first: Vec<_> = places.take(NAMED + 1).map(|(path, line)| format!("{path}:{line}")).collect();
    (!first.is_empty()).then(|| format!("{}{more}", first.join(", ")))
}

/// Shortens a text to one line; returns `None` if the line holds a secret.
fn to_safe_line(line: &str) -> Option<String> {
    let line = one_line(line, MAX_CHARS);
    SecretGuard::new().check(None, &line).is_none().then_some(line)
}
