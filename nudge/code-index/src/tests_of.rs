//! Finds the tests of a node: tests that call it, tests that reach it through other calls, and test files named after
//! its file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::extract::is_test_path;
use crate::facts::flag;
use crate::index::{CodeIndex, IndexQueries, NodeId, TestHow, TestLink, TestList, module_stem};

/// Largest number of calls on the way from a test to the tested node.
const DEPTH_MAX: u8 = 3;
/// Largest number of callers of one node that are followed, and of callers in all. Code that everything uses says
/// nothing about its tests.
const CALLERS_MAX: usize = 50;
const REACHED_MAX: usize = 400;
/// Largest number of calls that one search checks.
const SITES_MAX: usize = 8_000;

/// Finds the tests of a node through certain calls.
pub(crate) fn find_tests(asking: &IndexQueries<'_>, id: NodeId) -> TestList {
    let index = asking.index;
    let mut depths: BTreeMap<NodeId, u8> = BTreeMap::from([(id, 0)]);
    let mut links: Vec<TestLink> = Vec::new();
    let mut edge = vec![id];
    let mut budget = SITES_MAX;
    for depth in 1..=DEPTH_MAX {
        let mut next: Vec<NodeId> = Vec::new();
        for node in edge {
            for caller in list_callers(asking, node, &mut budget) {
                if depths.len() >= REACHED_MAX || depths.contains_key(&caller) {
                    continue;
                }
                depths.insert(caller, depth);
                if is_test(index, caller) {
                    let how = if depth == 1 { TestHow::Calls } else { TestHow::Reaches };
                    links.push(TestLink { test: caller, how, depth });
                } else {
                    next.push(caller);
                }
            }
        }
        edge = next;
    }
    let place =
        |link: &TestLink| index.find_node(link.test).map(|found| (found.path.to_owned(), found.view.node().span.line));
    links.sort_by_cached_key(|link| (link.depth, place(link)));
    TestList { links, named: find_named_tests(index, id), omitted: 0 }
}

/// Lists the nodes that call a node, or that use it as a fixture. Subtracts the number of checked calls from `budget`.
fn list_callers(asking: &IndexQueries<'_>, id: NodeId, budget: &mut usize) -> Vec<NodeId> {
    let mut out: Vec<NodeId> = asking
        .callers_within(id, CALLERS_MAX, false, budget)
        .edges
        .into_iter()
        .filter_map(|caller| caller.from)
        .collect();
    let fixture = asking.index.find_node(id).is_some_and(|found| found.view.node().flags & flag::FIXTURE != 0);
    if fixture {
        out.extend(asking.asking_for(id));
    }
    out
}

fn is_test(index: &CodeIndex, id: NodeId) -> bool {
    index.find_node(id).is_some_and(|found| found.view.is_test() && found.view.kind() != crate::NodeKind::Class)
}

/// Finds the test files that are named after the node's file. For `app`, they are `test_app.py`, `app_test.go`,
/// `app.test.ts` or `AppTest.java`.
fn find_named_tests(index: &CodeIndex, id: NodeId) -> Vec<Arc<str>> {
    let Some(found) = index.find_node(id) else { return Vec::new() };
    let own = module_stem(found.path).to_ascii_lowercase();
    if own.is_empty() || is_test_path(found.path) {
        return Vec::new();
    }
    let language = found.facts.language;
    let is_one = |path: &str| tested_stem(path).is_some_and(|stem| stem == own);
    let files = index.find_test_files(&own).filter(|(path, facts)| facts.language.can_use(language) && is_one(path));
    files.map(|(path, _)| path.clone()).take(5).collect()
}

/// Returns the stem of the file after which a test file is named, in lower case: `app` for `tests/test_app.py`. Returns
/// `None` if the path is not that of a test file.
pub(crate) fn tested_stem(path: &str) -> Option<String> {
    if !is_test_path(path) {
        return None;
    }
    let file = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let stem = file.split('.').next().unwrap_or(&file);
    let bare = stem.strip_prefix("test_").or_else(|| stem.strip_suffix("_test"));
    let bare = bare.or_else(|| stem.strip_suffix("_spec")).or_else(|| stem.strip_suffix("tests"));
    Some(bare.or_else(|| stem.strip_suffix("test")).unwrap_or(stem).to_owned())
}
