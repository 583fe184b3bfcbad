//! Holds the facts of all files of one root and answers queries across files.

mod asking;
mod links;
mod manifest;
mod store;
mod targets;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::facts::{FileFacts, NodeOwner, NodeView};
use crate::language::CodeLanguage;
use crate::resolve::CallResolver;

pub use asking::IndexQueries;
pub(crate) use manifest::{CargoManifest, ManifestFile};
pub(crate) use store::{FileStore, last_name, module_stem, of_file};

/// The number of a node in an index. It is valid until its file is put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    pub(crate) file: u32,
    pub(crate) node: u32,
}

/// A node with its file.
#[derive(Debug, Clone, Copy)]
pub struct IndexedNode<'a> {
    /// The id of the node.
    pub id: NodeId,
    /// The path of its file, relative to the root.
    pub path: &'a str,
    /// The facts of the file.
    pub facts: &'a Arc<FileFacts>,
    /// The node.
    pub view: NodeView<'a>,
}

/// The rule by which an edge is known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeCertainty {
    /// A name that the same file defines.
    Local,
    /// A member of the class around the call.
    #[serde(rename = "self")]
    SelfMember,
    /// A name that an import gives.
    Imported,
    /// A member of a value of a known type.
    Typed,
    /// The only definition of the name nearby: not certain.
    Likely,
}

impl EdgeCertainty {
    /// Returns true if the edge is certain.
    pub fn is_certain(self) -> bool {
        self != Self::Likely
    }
}

/// A call of a node: the caller and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerSite {
    /// The node that calls; none if the call is outside of all nodes.
    pub from: Option<NodeId>,
    /// The file of the call.
    pub path: Arc<str>,
    /// The line of the call.
    pub line: u32,
    /// The rule by which the edge is known.
    pub how: EdgeCertainty,
}

/// The callers of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerList {
    /// The calls: certain ones first, then by path and line.
    pub edges: Vec<CallerSite>,
    /// The number of callers beyond the limit.
    pub omitted: usize,
    /// The number of further calls of its name that have no certain target or that were not checked.
    pub unresolved_same_name: usize,
}

/// A call that a node makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalleeSite {
    /// The callee.
    pub to: NodeId,
    /// The line of the call.
    pub line: u32,
    /// The rule by which the edge is known.
    pub how: EdgeCertainty,
}

/// An import of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImport {
    /// The module, as written.
    pub module: String,
    /// The imported file, if it is in the index.
    pub path: Option<Arc<str>>,
    /// The line of the import.
    pub line: u32,
}

/// A call with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCall {
    /// The name that is called.
    pub name: String,
    /// The line of the call.
    pub line: u32,
    /// The byte of the file where its name begins.
    pub byte: u32,
    /// The callee and the rule by which it is known; `None` when the target is unknown.
    pub to: Option<(NodeId, EdgeCertainty)>,
}

/// The kind of link between a test and a node, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestHow {
    /// The test calls the node.
    Calls,
    /// The test calls a caller of the node.
    Reaches,
    /// The test is in a file that is named after the node's file.
    Named,
}

/// A test of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestLink {
    /// The test.
    pub test: NodeId,
    /// The kind of link.
    pub how: TestHow,
    /// The number of calls from the test to the node; 0 when no path of calls is known.
    pub depth: u8,
}

/// The tests of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestList {
    /// Tests that call or reach the node, nearest first.
    pub links: Vec<TestLink>,
    /// Test files that are named after its file.
    pub named: Vec<Arc<str>>,
    /// The number of links beyond the limit.
    pub omitted: usize,
}

/// The result of looking up a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeLookup {
    /// A single node.
    One(NodeId),
    /// Several nodes fit.
    Ambiguous(Vec<NodeId>),
    /// No node fits.
    Unknown,
}

/// Returns true if a file maps names to files: `Cargo.toml`, `package.json`, `tsconfig.json` and its bases, `go.mod`,
/// `pyproject.toml`.
pub fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "Cargo.toml" | "package.json" | "go.mod" | "pyproject.toml") || is_tsconfig(name)
}

/// Returns true for the name of a TypeScript configuration, or of a base of one: `tsconfig.base.json`.
pub(crate) fn is_tsconfig(name: &str) -> bool {
    let is_json = Path::new(name).extension().is_some_and(|extension| extension == "json");
    is_json && (name.starts_with("tsconfig") || name.starts_with("jsconfig"))
}

/// Returns the id of a node: `node:src/flask/app.py:Flask.route`.
pub fn node_id(path: &str, view: &NodeView<'_>) -> String {
    ["node:", path, ":", view.qual()].concat()
}

/// Holds all files of one root. A query resolves the targets of calls on demand. So a changed file costs only its own
/// reading, and the index is the same after any history.
#[derive(Debug, Default)]
pub struct CodeIndex {
    store: FileStore,
}

impl CodeIndex {
    /// Makes an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a file.
    pub fn put_file(&mut self, path: &str, facts: Arc<FileFacts>) {
        self.store.put_file(path, facts);
    }

    /// Adds or replaces a file for which [`is_manifest`] is true. An unreadable manifest counts as empty.
    pub fn put_manifest(&mut self, path: &str, bytes: &[u8]) {
        self.store.put_manifest(path, ManifestFile::read(path, bytes));
    }

    /// Removes a file or manifest; returns true if there was one.
    pub fn remove_file(&mut self, path: &str) -> bool {
        self.store.remove_file(path)
    }

    /// Iterates over all files, by path.
    pub fn files(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<FileFacts>)> {
        self.store.paths.values().filter_map(|slot| self.store.file_at(*slot)).map(|file| (&file.path, &file.facts))
    }

    /// Returns the facts of a file.
    pub fn file_facts(&self, path: &str) -> Option<&Arc<FileFacts>> {
        Some(&self.store.file_at(self.store.slot_of(path)?)?.facts)
    }

    /// Returns a node with its file.
    pub fn find_node(&self, id: NodeId) -> Option<IndexedNode<'_>> {
        let file = self.store.file_at(id.file)?;
        let view = file.facts.node_by_number(id.node)?;
        Some(IndexedNode { id, path: &file.path, facts: &file.facts, view })
    }

    /// Returns the id of a node as text.
    pub fn id_of(&self, id: NodeId) -> String {
        self.find_node(id).map(|found| node_id(found.path, &found.view)).unwrap_or_default()
    }

    /// Finds a node by its id, or by `path:name` if that is unambiguous; `node:` may be left out.
    pub fn by_id(&self, id: &str) -> NodeLookup {
        let id = id.strip_prefix("node:").unwrap_or(id);
        // A path and the title of a test may hold colons, so the first colon after a known path splits the id.
        let colon =
            id.match_indices(':').map(|(offset, _)| offset).find(|offset| self.store.slot_of(&id[..*offset]).is_some());
        colon.map_or(NodeLookup::Unknown, |colon| self.by_name(&id[..colon], &id[colon + 1..]))
    }

    /// Finds a node by its file and its name, with or without owners.
    pub fn by_name(&self, path: &str, name: &str) -> NodeLookup {
        let Some(slot) = self.store.slot_of(path) else { return NodeLookup::Unknown };
        self.store.kept.find_or_keep(slot, name, || self.find_named(slot, name))
    }

    fn find_named(&self, slot: u32, name: &str) -> NodeLookup {
        let Some(facts) = self.store.facts_at(slot) else { return NodeLookup::Unknown };
        // A file stores each text once, so equal numbers mean equal texts.
        let Some(name) = facts.names.find(name) else { return NodeLookup::Unknown };
        let all = |fits: &dyn Fn(&NodeView<'_>) -> bool| -> Vec<NodeId> {
            facts.nodes().filter(fits).map(|view| NodeId { file: slot, node: view.number() }).collect()
        };
        let mut found = all(&|view| view.node().qual == name);
        if found.is_empty() {
            found = all(&|view| view.node().name == name);
        }
        match found.as_slice() {
            [] => NodeLookup::Unknown,
            [node] => NodeLookup::One(*node),
            _ => NodeLookup::Ambiguous(found),
        }
    }

    /// Finds the innermost node at a line.
    pub fn by_line(&self, path: &str, line: u32) -> Option<NodeId> {
        let slot = self.store.slot_of(path)?;
        let facts = self.store.facts_at(slot)?;
        let spans = (0..).zip(facts.nodes.iter().map(|node| node.span));
        let inside = spans.filter(|(_, span)| span.line <= line && line <= span.end_line);
        let (node, _) = inside.max_by_key(|(_, span)| span.byte)?;
        Some(NodeId { file: slot, node })
    }

    /// Returns all nodes of a name, by path.
    pub fn nodes_by_name(&self, name: &str) -> Vec<NodeId> {
        self.store.nodes_named(name).into_iter().map(|(file, node)| NodeId { file, node }).collect()
    }

    /// Leaves out nodes that only declare another node of the list, such as a prototype in C.
    pub fn keep_definitions(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let found = |id: &NodeId| self.find_node(*id);
        let is_bodiless = |found: &IndexedNode<'_>| found.view.node().flags & crate::facts::flag::BODILESS != 0;
        let defined: Vec<_> = nodes.iter().filter_map(found).filter(|found| !is_bodiless(found)).collect();
        let is_defined = |declared: &IndexedNode<'_>| {
            defined.iter().any(|other| {
                other.view.qual() == declared.view.qual() && other.facts.language.can_use(declared.facts.language)
            })
        };
        let stays = |id: &NodeId| !found(id).is_some_and(|found| is_bodiless(&found) && is_defined(&found));
        nodes.iter().copied().filter(stays).collect()
    }

    /// Iterates over all nodes, by path and order.
    pub fn nodes(&self) -> impl Iterator<Item = IndexedNode<'_>> {
        self.store.paths.values().filter_map(|slot| Some((*slot, self.store.file_at(*slot)?))).flat_map(
            |(slot, file)| {
                file.facts.nodes().map(move |view| {
                    let id = NodeId { file: slot, node: view.number() };
                    IndexedNode { id, path: &file.path, facts: &file.facts, view }
                })
            },
        )
    }

    /// Returns the class whose constructor this node is.
    pub fn made_by(&self, id: NodeId) -> Option<NodeId> {
        let found = self.find_node(id)?;
        let NodeOwner::Node(class) = found.view.node().owner else { return None };
        let makes = match found.view.name() {
            "__init__" | "__new__" => found.facts.language == CodeLanguage::Python,
            "constructor" => found.facts.language.is_ecma(),
            "__construct" => found.facts.language == CodeLanguage::Php,
            name => {
                let is_named_after_it =
                    found.facts.node_by_number(class.get()).is_some_and(|class| class.name() == name);
                is_named_after_it && matches!(found.facts.language, CodeLanguage::Java | CodeLanguage::CSharp)
            }
        };
        makes.then_some(NodeId { file: id.file, node: class.get() })
    }

    /// Returns the test files that are named after a stem in lower case, by path.
    pub(crate) fn find_test_files(&self, stem: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<FileFacts>)> {
        let files = self.store.find_test_files(stem).into_iter().filter_map(|slot| self.store.file_at(slot));
        files.map(|file| (&file.path, &file.facts))
    }

    /// Starts queries about callers and callees that share their intermediate results.
    pub fn start_queries(&self) -> IndexQueries<'_> {
        IndexQueries::new(self)
    }

    /// Finds the callers of a node, at most `limit`; `likely` adds callers that are not certain.
    pub fn find_callers(&self, id: NodeId, limit: usize, likely: bool) -> CallerList {
        self.start_queries().callers_of(id, limit, likely)
    }

    /// Finds the calls of a node, in the order of its lines.
    pub fn find_callees(&self, id: NodeId, likely: bool) -> Vec<CalleeSite> {
        self.start_queries().callees_of(id, likely)
    }

    /// Finds the tests of a node, at most `limit`.
    pub fn find_tests(&self, id: NodeId, limit: usize) -> TestList {
        self.start_queries().tests_of(id, limit)
    }

    /// Lists the imports of a file.
    pub fn list_imports(&self, path: &str) -> Vec<ResolvedImport> {
        let Some(slot) = self.store.slot_of(path) else { return Vec::new() };
        let Some(facts) = self.store.facts_at(slot) else { return Vec::new() };
        let resolver = CallResolver::new(&self.store);
        let mut out: Vec<ResolvedImport> = Vec::new();
        for (number, import) in (0..).zip(&facts.imports) {
            let target = resolver.import_file(slot, number).and_then(|file| self.store.file_at(file));
            let path = target.map(|file| file.path.clone()).filter(|target| &**target != path);
            let imported =
                ResolvedImport { module: facts.text_of(import.module).to_owned(), path, line: import.line.get() };
            if !imported.module.is_empty() && !out.contains(&imported) {
                out.push(imported);
            }
        }
        out
    }

    /// Returns the files that import a file.
    pub fn imported_by(&self, path: &str) -> Vec<Arc<str>> {
        let Some(slot) = self.store.slot_of(path) else { return Vec::new() };
        let resolver = CallResolver::new(&self.store);
        let files = self.store.paths.iter().filter(|(_, other)| **other != slot);
        files
            .filter(|(_, other)| resolver.imported_files(**other).contains(&slot))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Lists all calls of a file with their targets.
    pub fn list_calls(&self, path: &str) -> Vec<ResolvedCall> {
        let Some(slot) = self.store.slot_of(path) else { return Vec::new() };
        let Some(facts) = self.store.facts_at(slot) else { return Vec::new() };
        let resolver = CallResolver::new(&self.store);
        let mut out = Vec::new();
        for call in &facts.calls {
            let to =
                resolver.call(slot, call).or_else(|| Some((resolver.find_likely(slot, call)?, EdgeCertainty::Likely)));
            let name = facts.text_of(facts.called_name(call)).to_owned();
            out.push(ResolvedCall { name, line: call.line.get(), byte: call.byte.get(), to });
        }
        out
    }

    /// Returns the bytes that the index takes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }
}
