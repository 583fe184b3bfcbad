//! Answers queries about callers, callees and tests. The index does not change during a group of queries, so the
//! queries share their intermediate results.

use std::cmp::Reverse;

use super::{CalleeSite, CallerList, CallerSite, CodeIndex, EdgeCertainty, NodeId, TestList};
use crate::facts::CompactNumber;
use crate::resolve::CallResolver;

/// Largest number of calls of one name that a query checks.
const SITES_MAX: usize = 4_000;

/// A group of queries about an index that does not change meanwhile.
pub struct IndexQueries<'a> {
    /// The index that the queries read.
    pub index: &'a CodeIndex,
    resolver: CallResolver<'a>,
}

impl<'a> IndexQueries<'a> {
    pub(crate) fn new(index: &'a CodeIndex) -> Self {
        Self { index, resolver: CallResolver::new(&index.store) }
    }

    /// Finds the callers of a node, at most `limit`. With `likely`, the result also has callers that are not certain.
    pub fn callers_of(&self, id: NodeId, limit: usize, likely: bool) -> CallerList {
        let find = |limit| self.callers_within(id, limit, likely, &mut { SITES_MAX });
        if likely {
            find(limit)
        } else {
            self.index.store.kept.links_of(id).callers_or_find(limit, || find(usize::MAX))
        }
    }

    /// Finds callers as [`Self::callers_of`] does. Checks at most `budget` calls, and subtracts the checked ones from
    /// `budget`.
    pub fn callers_within(&self, id: NodeId, limit: usize, likely: bool, budget: &mut usize) -> CallerList {
        let Some(found) = self.index.find_node(id) else { return CallerList::default() };
        let name = found.view.name();
        let mut out = CallerList::default();
        for slot in self.callers_files(id, found.path, name) {
            let Some(file) = self.index.store.file_at(slot) else { continue };
            if !file.facts.language.can_use(found.facts.language) {
                continue;
            }
            let aliases = file.facts.names_for(name);
            let calls = file.facts.calls.iter().enumerate();
            for (number, call) in calls.filter(|(_, call)| aliases.contains(&file.facts.called_name(call))) {
                let same = file.facts.text_of(file.facts.called_name(call)) == name;
                if *budget == 0 {
                    out.unresolved_same_name += usize::from(same);
                    continue;
                }
                *budget -= 1;
                let how = match self.index.store.target_or_find(file, number, || self.resolver.call(slot, call)) {
                    Some((to, how)) if to == id => Some(how),
                    Some(_) => continue,
                    None => {
                        out.unresolved_same_name += usize::from(same);
                        (likely && self.resolver.find_likely(slot, call) == Some(id)).then_some(EdgeCertainty::Likely)
                    }
                };
                if let Some(how) = how {
                    let from =
                        (call.within != CompactNumber::NONE).then(|| NodeId { file: slot, node: call.within.get() });
                    out.edges.push(CallerSite { from, path: file.path.clone(), line: call.line.get(), how });
                }
            }
        }
        out.edges.sort_by(|a, b| (!a.how.is_certain(), &a.path, a.line).cmp(&(!b.how.is_certain(), &b.path, b.line)));
        out.omitted = out.edges.len().saturating_sub(limit);
        out.edges.truncate(limit);
        out
    }

    /// Returns the files that may call a node, nearest first. The order matters, because a query checks a limited
    /// number of calls.
    fn callers_files(&self, id: NodeId, path: &str, name: &str) -> Vec<u32> {
        let mut files = self.index.store.files_using(name);
        files.extend(self.default_users(id));
        if files.len() <= 1 {
            return files;
        }
        files.sort_unstable();
        files.dedup();
        files.sort_by_cached_key(|slot| {
            let other = self.index.store.file_at(*slot).map(|file| file.path.clone());
            let shared =
                other.as_deref().map_or(0, |other| other.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count());
            (Reverse(shared), other)
        });
        files
    }

    /// Returns the files that may import a node as the default export of the node's file.
    fn default_users(&self, id: NodeId) -> Vec<u32> {
        let default =
            self.index.find_node(id).is_some_and(|found| found.view.node().flags & crate::facts::flag::DEFAULT != 0);
        if default { self.index.store.files_using("default") } else { Vec::new() }
    }

    /// Finds the calls that a node makes, sorted by line.
    pub fn callees_of(&self, id: NodeId, likely: bool) -> Vec<CalleeSite> {
        let find = || self.find_callees(id, likely);
        if likely { find() } else { self.index.store.kept.links_of(id).callees_or_find(find) }
    }

    fn find_callees(&self, id: NodeId, likely: bool) -> Vec<CalleeSite> {
        let Some(file) = self.index.store.file_at(id.file) else { return Vec::new() };
        let mut out = Vec::new();
        for (number, call) in file.facts.calls.iter().enumerate().filter(|(_, call)| call.within.get() == id.node) {
            let to =
                self.index.store.target_or_find(file, number, || self.resolver.call(id.file, call)).or_else(|| {
                    let to = if likely { self.resolver.find_likely(id.file, call)? } else { return None };
                    Some((to, EdgeCertainty::Likely))
                });
            if let Some((to, how)) = to {
                out.push(CalleeSite { to, line: call.line.get(), how });
            }
        }
        out
    }

    /// Returns the lines on which a part of a file calls this name without a known target. `within` names the part.
    pub fn leading_nowhere(&self, path: &str, within: Option<&str>, name: &str) -> Vec<u32> {
        let slot = self.index.store.slot_of(path);
        let Some((slot, file)) = slot.and_then(|slot| Some((slot, self.index.store.file_at(slot)?))) else {
            return Vec::new();
        };
        let aliases = file.facts.names_for(name);
        let is_meant = |number: u32| file.facts.node_by_number(number).map(|view| view.qual()) == within;
        let calls = file.facts.calls.iter().enumerate();
        let calls =
            calls.filter(|(_, call)| aliases.contains(&file.facts.called_name(call)) && is_meant(call.within.get()));
        let nowhere = calls.filter(|(number, call)| {
            self.index.store.target_or_find(file, *number, || self.resolver.call(slot, call)).is_none()
        });
        nowhere.map(|(_, call)| call.line.get()).collect()
    }

    /// Finds the tests of a node. The result has at most `limit` links.
    pub fn tests_of(&self, id: NodeId, limit: usize) -> TestList {
        self.index.store.kept.links_of(id).tests_or_find(limit, || crate::tests_of::find_tests(self, id))
    }

    /// Finds the tests and fixtures that use a fixture, because they have a parameter with its name.
    pub(crate) fn asking_for(&self, id: NodeId) -> Vec<NodeId> {
        let Some(found) = self.index.find_node(id) else { return Vec::new() };
        let name = found.view.name();
        let mut out = Vec::new();
        for (path, slot) in &self.index.store.paths {
            let Some(facts) = self.index.store.facts_at(*slot).filter(|facts| facts.names.find(name).is_some()) else {
                continue;
            };
            // A user of the fixture is in the same file, or below the folder of the fixture's `conftest.py`.
            let folder = found.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            if !path.starts_with(folder) {
                continue;
            }
            for view in facts.nodes().filter(|view| view.params().any(|param| param == name)) {
                let node = NodeId { file: *slot, node: view.number() };
                if self.resolver.fixture_node(node.file, node.node, name) == Some(id) {
                    out.push(node);
                }
            }
        }
        out
    }
}
