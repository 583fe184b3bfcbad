//! Answers `nudge.code.tests`: the tests that a caller should run after a change.

use std::collections::{BTreeMap, BTreeSet};

use nudge_code_index::{NodeId, NodeLookup, TestHow};
use nudge_core::error::{Error, Result};
use serde::Serialize;

use super::look::no_file;
use super::{CallRoot, CodeTestsParams};
use crate::coverage::{self, CoverageAnswer, CoverageRange};
use crate::git;
use crate::live::{FileFreshness, LiveRoot};
use crate::runner;
use crate::shown::{self, AnswerView, FreshAnswer};
use crate::source::CodeSource;

/// The most nodes for which one call finds tests.
const MAX_NODES: usize = 500;
/// The most nodes for which one call reads coverage.
const MAX_COVERED: usize = 20;
/// The most tests that are found for each node.
const OF_EACH: usize = 10;

/// The tests of a node, a file or all changes.
#[derive(Debug, Serialize)]
pub struct Tested {
    /// The tests that call the code, directly or over other calls, the best first.
    pub links: Vec<Link>,
    /// The test files whose name contains the name of the tested file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// The number of further tests.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// The command that runs the tests; absent if the runner is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Says that no test was found, or that coverage could not be read in time. It never claims that there is no test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Is true if the code ran at all, according to the project's coverage; absent if coverage does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered: Option<bool>,
    /// The files that differ from HEAD; absent unless the caller asked for its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<Vec<String>>,
}

/// A test, and how it is linked to the node.
#[derive(Debug, Serialize)]
pub struct Link {
    /// The id of the test.
    pub id: String,
    /// The kind of the link.
    pub how: LinkHow,
    /// The number of calls on the way from the test to the node.
    pub depth: u8,
    /// The freshness of the test's file.
    pub fresh: FileFreshness,
}

/// The kind of link between a test and a node, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkHow {
    /// The project's coverage says that the test ran the node.
    Ran,
    /// The node is itself a test.
    Itself,
    /// The calls or names in the code link the test to the node.
    #[serde(untagged)]
    Said(TestHow),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Tested {
    /// Finds the tests of several nodes, the best first, at most `most`.
    pub fn of(live: &LiveRoot, view: &AnswerView<'_>, nodes: &[NodeId], covered: &CoverageAnswer, most: usize) -> Self {
        let index = &view.state.index;
        let mut best: BTreeMap<NodeId, (LinkHow, u8)> = BTreeMap::new();
        let is_late = covered.is_late;
        let covered = ran(view, nodes, covered, &mut best);
        let (mut named, mut omitted) = (Vec::new(), nodes.len().saturating_sub(MAX_NODES));
        for node in nodes.iter().take(MAX_NODES) {
            // If the node itself is a test, this test is the one to run.
            if index.find_node(*node).is_some_and(|found| found.view.is_test()) {
                best.insert(*node, (LinkHow::Itself, 0));
                continue;
            }
            let tests = view.calls.tests_of(*node, OF_EACH.max(most));
            omitted += tests.omitted;
            for link in tests.links {
                let rank = (LinkHow::Said(link.how), link.depth);
                best.entry(link.test).and_modify(|own| *own = rank.min(*own)).or_insert(rank);
            }
            for path in tests.named {
                if !named.iter().any(|own: &String| **own == *path) {
                    named.push(path.to_string());
                }
            }
        }
        let mut ranked: Vec<_> = best.into_iter().map(|(test, rank)| (rank, test)).collect();
        ranked.sort_unstable();
        omitted += ranked.len().saturating_sub(most);
        ranked.truncate(most);
        let link = |((how, depth), test): &((LinkHow, u8), NodeId)| {
            let found = index.find_node(*test)?;
            Some(Link {
                id: shown::to_node_id(found.path, &found.view),
                how: *how,
                depth: *depth,
                fresh: view.check_fresh(found.path),
            })
        };
        let links: Vec<_> = ranked.iter().filter_map(link).collect();
        let tests = ranked.iter().filter_map(|(_, test)| index.find_node(*test));
        let tests = tests.map(|found| (found.path.to_owned(), found.view.qual().to_owned())).collect::<Vec<_>>();
        let command = runner::test_command(live.root(), &tests, &named);
        let note = match (links.is_empty() && named.is_empty(), is_late) {
            (true, false) => Some("none found by name or call"),
            (true, true) => Some("none found by name or call; the project's coverage could not be read in time"),
            (false, true) => Some("the project's coverage could not be read in time"),
            (false, false) => None,
        };
        Self { links, named, omitted, command, note, covered, changed: None }
    }
}

impl CodeSource {
    pub(super) fn tests(&self, params: CodeTestsParams) -> Result<FreshAnswer<Tested>> {
        let CodeTestsParams { id, path, changed, limit: most, root, context } = params;
        let most = most.get();
        let here = CallRoot::resolve_root(self, root.as_deref(), context)?;
        match (id, path, changed) {
            (Some(id), None, false) => {
                let meant = here.read_node_ref(Some(&id), None, None, None)?;
                let covered = covered(&here.live, || {
                    Ok(meant
                        .answer_fresh(&here.live, |view| Ok(lines(view, &[meant.find_node(&here.live, view.state)?])))?
                        .said)
                })?;
                meant.answer_fresh(&here.live, |view| {
                    let id = meant.find_node(&here.live, view.state)?;
                    Ok(Tested::of(&here.live, view, &[id], &covered, most))
                })
            }
            (None, Some(path), false) => {
                let path = here.resolve_path(&path)?;
                let nodes = |view: &AnswerView<'_>| {
                    view.check_fresh(&path);
                    all(view, &path).ok_or_else(|| no_file(view.state, &path))
                };
                let covered = covered(&here.live, || {
                    Ok(shown::answer_fresh(&here.live, &[&path], |view| Ok(lines(view, &nodes(view)?)))?.said)
                })?;
                shown::answer_fresh(&here.live, &[&path], |view| {
                    Ok(Tested::of(&here.live, view, &nodes(view)?, &covered, most))
                })
            }
            (None, None, true) => {
                let differing = git::list_changed_files(here.live.root())?;
                let paths: Vec<_> = differing.iter().map(|change| &*change.path).collect();
                let nodes = |view: &AnswerView<'_>| -> Vec<_> {
                    differing.iter().flat_map(|change| changed_nodes(view, change)).collect()
                };
                let covered = covered(&here.live, || {
                    Ok(shown::answer_fresh(&here.live, &paths, |view| Ok(lines(view, &nodes(view))))?.said)
                })?;
                shown::answer_fresh(&here.live, &paths, |view| {
                    let changed = Some(paths.iter().map(|path| (*path).to_owned()).collect());
                    Ok(Tested { changed, ..Tested::of(&here.live, view, &nodes(view), &covered, most) })
                })
            }
            _ => Err(Error::invalid("Give one of `id`, `path` and `changed`.")
                .about("id")
                .about("path")
                .about("changed")),
        }
    }
}

/// Reads the coverage for an answer, if the project has coverage. The index is not locked during the read, so `lines`
/// reads the wanted lines from the index first.
///
/// # Errors
/// The errors that `lines` returns.
pub fn covered(live: &LiveRoot, lines: impl FnOnce() -> Result<BTreeSet<CoverageRange>>) -> Result<CoverageAnswer> {
    if !live.coverage.is_there(live.root()) {
        return Ok(CoverageAnswer::default());
    }
    Ok(live.coverage.read(live.root(), &lines()?))
}

/// Lists the lines of the nodes whose coverage is wanted.
pub fn lines(view: &AnswerView<'_>, nodes: &[NodeId]) -> BTreeSet<CoverageRange> {
    nodes.iter().take(MAX_COVERED).filter_map(|node| lines_of(view, *node)).collect()
}

fn lines_of(view: &AnswerView<'_>, node: NodeId) -> Option<CoverageRange> {
    let found = view.state.index.find_node(node)?;
    let span = found.view.node().span;
    Some(CoverageRange { path: found.path.to_owned(), first: span.line, last: span.end_line })
}

/// Adds the tests that ran some nodes to `best`. Returns true if anything ran the nodes; `None` if coverage does not
/// say it.
fn ran(
    view: &AnswerView<'_>,
    nodes: &[NodeId],
    covered: &CoverageAnswer,
    best: &mut BTreeMap<NodeId, (LinkHow, u8)>,
) -> Option<bool> {
    let mut at_all = None;
    for lines in nodes.iter().take(MAX_COVERED).filter_map(|node| lines_of(view, *node)) {
        // Coverage is missing for a file that has changed since the coverage was written.
        let Some(ran) = covered.find_range(&lines) else { continue };
        at_all = ran.at_all.map_or(at_all, |ran| Some(ran || at_all == Some(true)));
        for test in ran.tests.iter().filter_map(|test| test_of(view, test)) {
            best.insert(test, (LinkHow::Ran, 0));
        }
    }
    at_all
}

/// Finds the node of a test that the coverage names.
fn test_of(view: &AnswerView<'_>, context: &str) -> Option<NodeId> {
    let index = &view.state.index;
    let (path, name) = coverage::test(context);
    if let Some(path) = path {
        return match index.by_name(&path, &name) {
            NodeLookup::One(id) => Some(id),
            _ => None,
        };
    }
    let is_it = |id: &NodeId| {
        index.find_node(*id).filter(|found| found.view.is_test()).is_some_and(|found| {
            let module = found.path.rsplit_once('.').map_or(found.path, |(module, _)| module).replace('/', ".");
            let whole = format!("{module}.{}", found.view.qual());
            whole.strip_suffix(&*name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    };
    let mut found = index.nodes_by_name(name.rsplit('.').next()?).into_iter().filter(is_it);
    found.next().filter(|_| found.next().is_none())
}

/// Lists the nodes of a file; `None` if the file is not indexed.
fn all(view: &AnswerView<'_>, path: &str) -> Option<Vec<NodeId>> {
    let facts = view.state.index.file_facts(path)?;
    let id = |qual: &str| match view.state.index.by_name(path, qual) {
        NodeLookup::One(id) => Some(id),
        _ => None,
    };
    Some(facts.nodes().filter_map(|node| id(node.qual())).collect())
}

/// Lists the nodes of a file whose text differs from the text in HEAD.
fn changed_nodes(view: &AnswerView<'_>, change: &git::ChangedFile) -> Vec<NodeId> {
    view.check_fresh(&change.path);
    let Some(nodes) = all(view, &change.path) else { return Vec::new() };
    let Some(before) = &change.before else { return nodes };
    let is_same = |id: &NodeId| {
        let now = view.state.index.find_node(*id).map(|found| found.view);
        now.is_some_and(|now| {
            before.nodes().any(|node| node.qual() == now.qual() && node.node().hash == now.node().hash)
        })
    };
    nodes.into_iter().filter(|id| !is_same(id)).collect()
}
