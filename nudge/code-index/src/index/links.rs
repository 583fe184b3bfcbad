//! Caches the links of queried nodes until a file changes. An agent often queries the same few nodes again.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use super::{CalleeSite, CallerList, NodeId, NodeLookup, TestList};

/// Largest number of nodes with cached links. A further node empties the cache.
const NODES_MAX: usize = 256;
/// Largest number of links of one kind that are cached for a node. A longer list is not cached.
const LINKS_MAX: usize = 64;

/// The links of one node. Each kind is found at its first query.
#[derive(Debug, Default)]
pub(super) struct NodeLinks {
    /// The callers whose calls are certain.
    callers: OnceLock<CallerList>,
    /// The callees whose calls are certain.
    callees: OnceLock<Vec<CalleeSite>>,
    /// The tests of the node.
    tests: OnceLock<TestList>,
}

/// The cached links of nodes, and the names by which nodes were queried. Every change of a file empties this cache.
#[derive(Debug, Default)]
pub(super) struct LinkCache {
    links: Mutex<HashMap<NodeId, Arc<NodeLinks>, FixedState>>,
    /// For each name, the node that the last query found.
    named: Mutex<HashMap<Box<str>, NodeId, FixedState>>,
}

impl LinkCache {
    /// Returns the cached links of a node; they are empty at first.
    pub fn links_of(&self, id: NodeId) -> Arc<NodeLinks> {
        let mut all = self.links.lock();
        if all.len() >= NODES_MAX && !all.contains_key(&id) {
            all.clear();
        }
        Arc::clone(all.entry(id).or_default())
    }

    /// Returns the node with a name in a file. Calls `find` if the cache does not have it.
    pub fn find_or_keep(&self, file: u32, name: &str, find: impl FnOnce() -> NodeLookup) -> NodeLookup {
        let known = self.named.lock().get(name).copied();
        if let Some(id) = known.filter(|id| id.file == file) {
            return NodeLookup::One(id);
        }
        let found = find();
        if let NodeLookup::One(id) = found {
            let mut named = self.named.lock();
            if named.len() >= NODES_MAX {
                named.clear();
            }
            named.insert(name.into(), id);
        }
        found
    }

    /// Empties the cache.
    pub fn clear_links(&mut self) {
        self.links.get_mut().clear();
        self.named.get_mut().clear();
    }

    /// Returns the approximate number of bytes that the cache takes, without its own struct.
    pub fn memory_bytes(&self) -> usize {
        let count_bytes = |links: &Arc<NodeLinks>| {
            let to = links.callers.get().map_or(0, |callers| size_of_val(&*callers.edges));
            let from = links.callees.get().map_or(0, |callees| size_of_val(&**callees));
            let tests = links.tests.get().map_or(0, |tests| size_of_val(&*tests.links));
            size_of::<NodeLinks>() + to + from + tests
        };
        let names: usize = self.named.lock().keys().map(|name| name.len() + size_of::<(Box<str>, NodeId)>()).sum();
        self.links.lock().values().map(count_bytes).sum::<usize>() + names
    }
}

impl NodeLinks {
    /// Returns the certain callers, at most `limit`. `find` must return all callers.
    pub fn callers_or_find(&self, limit: usize, find: impl FnOnce() -> CallerList) -> CallerList {
        let mut callers = found_once(&self.callers, |callers| callers.edges.len(), find);
        callers.omitted = callers.edges.len().saturating_sub(limit);
        callers.edges.truncate(limit);
        callers
    }

    /// Returns the certain callees. `find` must return all callees.
    pub fn callees_or_find(&self, find: impl FnOnce() -> Vec<CalleeSite>) -> Vec<CalleeSite> {
        found_once(&self.callees, Vec::len, find)
    }

    /// Returns the tests of the node, at most `limit`. `find` must return all tests.
    pub fn tests_or_find(&self, limit: usize, find: impl FnOnce() -> TestList) -> TestList {
        let mut tests = found_once(&self.tests, |tests| tests.links.len(), find);
        tests.omitted = tests.links.len().saturating_sub(limit);
        tests.links.truncate(limit);
        tests
    }
}

/// Returns the cached value. If there is none, calls `find`, and caches the result unless it is long.
fn found_once<T: Clone>(place: &OnceLock<T>, len: impl Fn(&T) -> usize, find: impl FnOnce() -> T) -> T {
    if let Some(known) = place.get() {
        return known.clone();
    }
    let found = find();
    if len(&found) <= LINKS_MAX {
        let _ = place.set(found.clone());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{TestHow, TestLink};

    fn tests(many: u32) -> TestList {
        let link = |node| TestLink { test: NodeId { file: 0, node }, how: TestHow::Calls, depth: 1 };
        TestList { links: (0..many).map(link).collect(), ..TestList::default() }
    }

    #[test]
    fn what_was_found_is_kept_until_a_file_changes() {
        let mut kept = LinkCache::default();
        let id = NodeId { file: 1, node: 2 };
        assert_eq!(kept.links_of(id).tests_or_find(2, || tests(3)), TestList { omitted: 1, ..tests(2) });
        assert_eq!(kept.links_of(id).tests_or_find(9, || unreachable!("it is kept")), tests(3), "all of it is");
        assert!(kept.memory_bytes() > 0);
        kept.clear_links();
        assert_eq!(kept.links_of(id).tests_or_find(9, || tests(1)), tests(1));
    }

    #[test]
    fn a_name_is_that_of_its_file_until_a_file_changes() {
        let mut kept = LinkCache::default();
        let in_file = |file| NodeLookup::One(NodeId { file, node: 7 });
        assert_eq!(kept.find_or_keep(1, "Store.get", || NodeLookup::Unknown), NodeLookup::Unknown);
        assert_eq!(
            kept.find_or_keep(1, "Store.get", || in_file(1)),
            in_file(1),
            "what was not found is looked for again"
        );
        assert_eq!(kept.find_or_keep(1, "Store.get", || unreachable!("it is kept")), in_file(1));
        assert_eq!(kept.find_or_keep(2, "Store.get", || in_file(2)), in_file(2));
        for many in 0..=NODES_MAX {
            kept.find_or_keep(3, &many.to_string(), || in_file(3));
        }
        assert!(kept.named.get_mut().len() <= NODES_MAX);
        kept.clear_links();
        assert_eq!(kept.find_or_keep(2, "Store.get", || NodeLookup::Unknown), NodeLookup::Unknown);
    }

    #[test]
    fn neither_much_nor_many_are_kept() {
        let kept = LinkCache::default();
        let id = |node| NodeId { file: 0, node };
        let many = u32::try_from(LINKS_MAX).unwrap() + 1;
        assert_eq!(kept.links_of(id(0)).tests_or_find(1, || tests(many)).omitted, LINKS_MAX);
        assert_eq!(kept.links_of(id(0)).tests_or_find(1, || tests(1)).omitted, 0);
        for node in 0..u32::try_from(NODES_MAX).unwrap() {
            kept.links_of(id(node));
        }
        assert_eq!(kept.links_of(id(0)).tests_or_find(9, || unreachable!("there is room for it")), tests(1));
        kept.links_of(id(u32::MAX));
        assert_eq!(kept.links_of(id(0)).tests_or_find(9, || tests(2)), tests(2), "all went for one more");
    }
}
