//! Stores the facts of all files of one root, and answers queries across files.

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

/// The number of a node in an index. It is valid until the node's file is replaced or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    pub(crate) file: u32,
    pub(crate) node: u32,
}

/// A node of an index, with its file.
#[derive(Debug, Clone, Copy)]
pub struct IndexedNode<'a> {
    /// The id of the node.
    pub id: NodeId,
    /// The path of the node's file, relative to the root.
    pub path: &'a str,
    /// The facts of the file.
    pub facts: &'a Arc<FileFacts>,
    /// The node.
    pub view: NodeView<'a>,
}

/// The rule by which an edge, which leads from a call to its target, is known. The surest rule comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeCertainty {
    /// The call names a definition in the same file.
    Local,
    /// The call names a member of the class around it.
    #[serde(rename = "self")]
    SelfMember,
    /// The call names an import.
    Imported,
    /// The call names a member of a value whose type is known.
    Typed,
    /// The target is the only definition of the name nearby. This edge is not certain.
    Likely,
}

impl EdgeCertainty {
    /// Returns true for each rule that makes an edge certain.
    pub fn is_certain(self) -> bool {
        self != Self::Likely
    }
}

/// A call of a node, as seen from the called node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerSite {
    /// The calling node; `None` if the call is outside of all nodes.
    pub from: Option<NodeId>,
    /// The file of the call.
    pub path: Arc<str>,
    /// The line of the call.
    pub line: u32,
    /// The rule by which the target of the call is known.
    pub how: EdgeCertainty,
}

/// The callers of one node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerList {
    /// The calls. Certain calls come first; then the order is by path and line.
    pub edges: Vec<CallerSite>,
    /// The number of further callers, which exceed the limit.
    pub omitted: usize,
    /// The number of further calls with the node's name. Their target is not certain, or they were not checked.
    pub unresolved_same_name: usize,
}

/// A call that a node makes, as seen from the calling node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalleeSite {
    /// The node that is called.
    pub to: NodeId,
    /// The line of the call.
    pub line: u32,
    /// The rule by which the target of the call is known.
    pub how: EdgeCertainty,
}

/// An import, with the file that it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImport {
    /// The module, as the file writes it.
    pub module: String,
    /// The path of the imported file; `None` if that file is not in the index.
    pub path: Option<Arc<str>>,
    /// The line of the import.
    pub line: u32,
}

/// A call with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedCall {
    /// The called name.
    pub name: String,
    /// The line of the call.
    pub line: u32,
    /// The offset of the called name in the file.
    pub byte: u32,
    /// The target, and the rule by which it is known; `None` when the target is unknown.
    pub to: Option<(NodeId, EdgeCertainty)>,
}

/// The kind of link between a test and a node. The closest kind comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestHow {
    /// The test calls the node.
    Calls,
    /// The test reaches the node through other calls.
    Reaches,
    /// The test is in a file whose name follows the node's file.
    Named,
}

/// A link from a test to the tested node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestLink {
    /// The node of the test.
    pub test: NodeId,
    /// The kind of link.
    pub how: TestHow,
    /// The number of calls on the way from the test to the node; 0 for a link by name.
    pub depth: u8,
}

/// The tests of one node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestList {
    /// The tests that call or reach the node, nearest first.
    pub links: Vec<TestLink>,
    /// The test files whose names follow the node's file.
    pub named: Vec<Arc<str>>,
    /// The number of further links, which exceed the limit.
    pub omitted: usize,
}

/// The result of looking up a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeLookup {
    /// Exactly one node fits.
    One(NodeId),
    /// Several nodes fit.
    Ambiguous(Vec<NodeId>),
    /// No node fits.
    Unknown,
}

/// Returns true if the file is a manifest, which maps names to files: `Cargo.toml`, `package.json`, `tsconfig.json` and
/// its bases, `go.mod`, `pyproject.toml`.
pub fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "Cargo.toml" | "package.json" | "go.mod" | "pyproject.toml") || is_tsconfig(name)
}

/// Returns true for the file name of a TypeScript configuration, or of one that others extend, such as
/// `tsconfig.base.json`.
pub(crate) fn is_tsconfig(name: &str) -> bool {
    let is_json = Path::new(name).extension().is_some_and(|extension| extension == "json");
    is_json && (name.starts_with("tsconfig") || name.starts_with("jsconfig"))
}

/// Returns the id of a node as text, such as `node:src/flask/app.py:Flask.route`.
pub fn node_id(path: &str, view: &NodeView<'_>) -> String {
    ["node:", path, ":", view.qual()].concat()
}

/// An index of all files of one root. It finds the targets of calls only when a query needs them. So a changed file
/// costs only the extraction of its own facts, and the answers do not depend on earlier changes.
#[derive(Debug, Default)]
pub struct CodeIndex {
    store: FileStore,
}

impl CodeIndex {
    /// Makes an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the facts of a file with this path.
    pub fn put_file(&mut self, path: &str, facts: Arc<FileFacts>) {
        self.store.put_file(path, facts);
    }

    /// Adds or replaces a manifest, for which [`is_manifest`] is true. An unreadable manifest counts as empty.
    pub fn put_manifest(&mut self, path: &str, bytes: &[u8]) {
        self.store.put_manifest(path, ManifestFile::read(path, bytes));
    }

    /// Removes a file or manifest. Returns true if the index had it.
    pub fn remove_file(&mut self, path: &str) -> bool {
        self.store.remove_file(path)
    }

    /// Iterates over all files with their facts, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<FileFacts>)> {
        self.store.paths.values().filter_map(|slot| self.store.file_at(*slot)).map(|file| (&file.path, &file.facts))
    }

    /// Returns the facts of a file; `None` if the index does not have the file.
    pub fn file_facts(&self, path: &str) -> Option<&Arc<FileFacts>> {
        Some(&self.store.file_at(self.store.slot_of(path)?)?.facts)
    }

    /// Returns the node with this id; `None` if there is none.
    pub fn find_node(&self, id: NodeId) -> Option<IndexedNode<'_>> {
        let file = self.store.file_at(id.file)?;
        let view = file.facts.node_by_number(id.node)?;
        Some(IndexedNode { id, path: &file.path, facts: &file.facts, view })
    }

    /// Returns the id of a node as text; empty if there is no such node.
    pub fn id_of(&self, id: NodeId) -> String {
        self.find_node(id).map(|found| node_id(found.path, &found.view)).unwrap_or_default()
    }

    /// Finds a node by its id. `path:name` is enough if only one node of the file has the name, and the prefix `node:`
    /// may be missing.
    pub fn by_id(&self, id: &str) -> NodeLookup {
        let id = id.strip_prefix("node:").unwrap_or(id);
        // A path and the title of a test may contain colons. So the id is split at the first colon that follows a known
        // path.
        let colon =
            id.match_indices(':').map(|(offset, _)| offset).find(|offset| self.store.slot_of(&id[..*offset]).is_some());
        colon.map_or(NodeLookup::Unknown, |colon| self.by_name(&id[..colon], &id[colon + 1..]))
    }

    /// Finds a node by its file and its name. The name may include the names of its owners.
    pub fn by_name(&self, path: &str, name: &str) -> NodeLookup {
        let Some(slot) = self.store.slot_of(path) else { return NodeLookup::Unknown };
        self.store.kept.find_or_keep(slot, name, || self.find_named(slot, name))
    }

    fn find_named(&self, slot: u32, name: &str) -> NodeLookup {
        let Some(facts) = self.store.facts_at(slot) else { return NodeLookup::Unknown };
        // A file stores each text once, so equal numbers mean equal texts within the file.
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

    /// Finds the innermost node that contains the line.
    pub fn by_line(&self, path: &str, line: u32) -> Option<NodeId> {
        let slot = self.store.slot_of(path)?;
        let facts = self.store.facts_at(slot)?;
        let spans = (0..).zip(facts.nodes.iter().map(|node| node.span));
        let inside = spans.filter(|(_, span)| span.line <= line && line <= span.end_line);
        let (node, _) = inside.max_by_key(|(_, span)| span.byte)?;
        Some(NodeId { file: slot, node })
    }

    /// Returns all nodes with this name, sorted by path.
    pub fn nodes_by_name(&self, name: &str) -> Vec<NodeId> {
        self.store.nodes_named(name).into_iter().map(|(file, node)| NodeId { file, node }).collect()
    }

    /// Returns the nodes without those that only declare another node of the list, such as a prototype in C.
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

    /// Iterates over all nodes, sorted by path and then in the order of the file.
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

    /// Returns the class that this node constructs, if the node is a constructor.
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

    /// Returns the test files whose names follow the stem, which is in lower case, sorted by path.
    pub(crate) fn find_test_files(&self, stem: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<FileFacts>)> {
        let files = self.store.find_test_files(stem).into_iter().filter_map(|slot| self.store.file_at(slot));
        files.map(|file| (&file.path, &file.facts))
    }

    /// Starts a group of queries, which share their intermediate results.
    pub fn start_queries(&self) -> IndexQueries<'_> {
        IndexQueries::new(self)
    }

    /// Finds the callers of a node, at most `limit`. With `likely`, the result also has callers that are not certain.
    pub fn find_callers(&self, id: NodeId, limit: usize, likely: bool) -> CallerList {
        self.start_queries().callers_of(id, limit, likely)
    }

    /// Finds the calls that a node makes, sorted by line. With `likely`, the result also has calls whose target is not
    /// certain.
    pub fn find_callees(&self, id: NodeId, likely: bool) -> Vec<CalleeSite> {
        self.start_queries().callees_of(id, likely)
    }

    /// Finds the tests of a node. The result has at most `limit` links.
    pub fn find_tests(&self, id: NodeId, limit: usize) -> TestList {
        self.start_queries().tests_of(id, limit)
    }

    /// Lists the imports of a file, with the files that they mean.
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

    /// Returns the paths of the files that import this file.
    pub fn imported_by(&self, path: &str) -> Vec<Arc<str>> {
        let Some(slot) = self.store.slot_of(path) else { return Vec::new() };
        let resolver = CallResolver::new(&self.store);
        let files = self.store.paths.iter().filter(|(_, other)| **other != slot);
        files
            .filter(|(_, other)| resolver.imported_files(**other).contains(&slot))
            .map(|(path, _)| path.clone())
            .collect()
    }

    /// Lists all calls in a file with their targets.
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

    /// Returns the number of bytes that the index takes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes()
    }
}
