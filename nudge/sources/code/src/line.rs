//! A node in one line, as an agent reads it.

use std::collections::HashSet;

use nudge_core::safety::secrets::SecretGuard;
use nudge_core::text::{clipped, one_line};

use crate::facts::{FileFacts, NodeView};
use crate::index::NodeId;
use crate::shown::View;

/// Length to which a signature and what is wrong with a documentation are cut.
const SIGNATURE_CHARS: usize = 160;
const CALLEE_CHARS: usize = 80;
const DETAIL_CHARS: usize = 120;
/// Longest line.
const MAX_CHARS: usize = 400;
/// Callers and tests that are named, and callers that are counted.
const NAMED: usize = 2;
const COUNTED: usize = 100;

/// The line of a node; `None` when it cannot be told, or is not what stands in the file.
pub fn of(view: &View<'_>, id: NodeId) -> Option<String> {
    let index = &view.state.index;
    let found = index.node(id)?;
    let (path, node) = (found.path, found.view);
    if view.fresh(path) == crate::live::Fresh::No {
        return None;
    }
    let mut parts = vec![format!("{path}:{} {}", node.node().span.line, declared(&node))];
    let called = view.calls.callers(id, COUNTED, false);
    let callees: Vec<_> = callees(view, id).collect();
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
    let tests = view.calls.tests(id, NAMED);
    let linked = tests.links.iter().filter_map(|link| index.node(link.test));
    let linked: Vec<_> = linked.map(|test| format!("{}::{}", test.path, test.view.qual())).collect();
    let named = tests.named.first().filter(|_| linked.is_empty()).map(ToString::to_string);
    let tests: Vec<_> = linked.into_iter().chain(named).collect();
    if !tests.is_empty() {
        parts.push(format!("tests: {}", tests.join(", ")));
    }
    if let Some(drift) = node.drift().find(|drift| drift.rule.outdated()) {
        parts.push(format!("doc outdated: {}", clipped(&drift.detail, DETAIL_CHARS)));
    }
    tellable(&parts.join(" | "))
}

/// The first things that a node calls, each once, as they are declared.
fn callees<'a>(view: &'a View<'_>, id: NodeId) -> impl Iterator<Item = String> + 'a {
    let index = &view.state.index;
    let mut seen = HashSet::from([id]);
    let callees = view.calls.callees(id, false).into_iter().filter(move |callee| seen.insert(callee.to));
    callees.take(NAMED).filter_map(|callee| {
        let found = index.node(callee.to)?;
        view.fresh(found.path);
        let declared = clipped(&declared(&found.view), CALLEE_CHARS);
        Some(format!("{declared} in {}:{}", found.path, found.view.node().span.line))
    })
}

/// The name of a node as it is declared: `Flask.route(rule, **options) -> ..`.
pub fn declared(node: &NodeView<'_>) -> String {
    let signature = node.signature();
    let after = signature.find(node.name()).and_then(|at| signature.get(at + node.name().len()..)).unwrap_or_default();
    let after = after.trim_end_matches([':', '{', ';', ' ']);
    let space = if after.is_empty() || after.starts_with(['(', '<', '[', ':', '!']) { "" } else { " " };
    clipped(&format!("{}{space}{}", node.qual(), after.trim_start()), SIGNATURE_CHARS)
}

/// The line about a node that was edited, if there is something to say: who calls it as it was declared before, and
/// what its documentation says that was so before. `None` where its declaration is what it was.
pub fn edited(view: &View<'_>, id: NodeId, before: &FileFacts) -> Option<String> {
    let index = &view.state.index;
    let found = index.node(id)?;
    let (path, node) = (found.path, found.view);
    let was = before.nodes().find(|old| old.qual() == node.qual())?;
    let place = || format!("{path}:{}", node.node().span.line);
    let mut said = Vec::new();
    if was.signature() != node.signature() && !node.signature().is_empty() {
        let called = view.calls.callers(id, COUNTED, false);
        let count = called.edges.len() + called.omitted;
        let places: Vec<_> =
            called.edges.iter().take(NAMED + 1).map(|edge| format!("{}:{}", edge.path, edge.line)).collect();
        if count > 0 {
            let more = if count > places.len() { ", .." } else { "" };
            let callers = if count == 1 { "1 caller was" } else { &format!("{count} callers were") };
            said.push(format!(
                "the signature has changed, and {callers} written for the old one: {}{more}",
                places.join(", ")
            ));
        }
    }
    let was_outdated = was.drift().any(|drift| drift.rule.outdated());
    if let Some(drift) = node.drift().find(|drift| drift.rule.outdated() && !was_outdated) {
        said.push(format!("its doc is outdated now: {}", clipped(&drift.detail, DETAIL_CHARS)));
    }
    if said.is_empty() {
        return None;
    }
    tellable(&format!("{} {}: {}", place(), declared(&node), said.join("; ")))
}

/// A line that is safe to show; `None` for one that holds a secret.
fn tellable(line: &str) -> Option<String> {
    let line = one_line(line, MAX_CHARS);
    SecretGuard::new().check(None, &line).is_none().then_some(line)
}
