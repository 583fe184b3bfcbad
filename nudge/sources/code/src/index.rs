//! All files of one root, and how they hang together.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::facts::{FileFacts, NodeView};

/// A node of an index. Valid until its file is put or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    pub(crate) file: u32,
    pub(crate) node: u32,
}

/// A node with its place in the index.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    /// Which node.
    pub id: NodeId,
    /// Its file, relative to the root.
    pub path: &'a str,
    /// The facts of the file.
    pub facts: &'a Arc<FileFacts>,
    /// The node.
    pub view: NodeView<'a>,
}

/// How an edge is known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A name of the same file.
    Local,
    /// A member of the class around it.
    #[serde(rename = "self")]
    SelfMember,
    /// A name that an import gives.
    Imported,
    /// A member of something whose type is known.
    Typed,
    /// The only one of its name nearby: not certain.
    Likely,
}

impl How {
    /// Whether the edge is certain.
    pub fn certain(self) -> bool {
        self != Self::Likely
    }
}

/// Who calls a node, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The node that calls; none if the call stands outside of any.
    pub from: Option<NodeId>,
    /// The file of the call.
    pub path: Arc<str>,
    /// The line of the call.
    pub line: u32,
    /// How that is known.
    pub how: How,
}

/// The callers of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Callers {
    /// Certain ones first, then by path and line.
    pub edges: Vec<Caller>,
    /// How many more there are than were asked for.
    pub omitted: usize,
    /// How many more calls have its name and no certain target.
    pub unresolved_same_name: usize,
}

/// What a node calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callee {
    /// What is called.
    pub to: NodeId,
    /// The line of the call.
    pub line: u32,
    /// How that is known.
    pub how: How,
}

/// An import of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// As it is written.
    pub module: String,
    /// Which file of the index that is, if one.
    pub path: Option<Arc<str>>,
    /// Its line.
    pub line: u32,
}

/// A call with what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The name that is called.
    pub name: String,
    /// Its line.
    pub line: u32,
    /// Its column in bytes, from 0.
    pub column: u32,
    /// What is called, and how that is known.
    pub to: Option<(NodeId, How)>,
}

/// How a test is linked to a node, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestHow {
    /// It calls the node.
    Calls,
    /// It calls what calls the node.
    Reaches,
    /// Its file is named after the node's.
    Named,
}

/// A test of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestLink {
    /// The test.
    pub test: NodeId,
    /// How it is linked.
    pub how: TestHow,
    /// Over how many calls; 0 where none is known.
    pub depth: u8,
}

/// What tests a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tests {
    /// Tests that call or reach it, nearest first.
    pub links: Vec<TestLink>,
    /// Test files named after its file.
    pub named: Vec<Arc<str>>,
    /// How many more links there are than were asked for.
    pub omitted: usize,
}

/// What a node was looked up by, and did not lead to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeLookup {
    /// One node.
    One(NodeId),
    /// Several.
    Ambiguous(Vec<NodeId>),
    /// None.
    Unknown,
}

/// Whether a file is one that says how names lead to files: `Cargo.toml`, `package.json`, `tsconfig.json`, `go.mod`,
/// `pyproject.toml`.
pub fn is_manifest(path: &str) -> bool {
    matches!(
        path.rsplit('/').next().unwrap_or(path),
        "Cargo.toml" | "package.json" | "tsconfig.json" | "jsconfig.json" | "go.mod" | "pyproject.toml"
    )
}

/// All files of one root. What a call means is worked out when it is asked for, so that a changed file costs its own
/// reading and nothing else, and an index is the same after any history.
#[derive(Debug, Default)]
pub struct Index {
    files: BTreeMap<Arc<str>, Arc<FileFacts>>,
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a file, new or changed.
    pub fn put(&mut self, path: &str, facts: Arc<FileFacts>) {
        self.files.insert(path.into(), facts);
    }

    /// Puts what [`is_manifest`] knows. One that cannot be read counts as empty.
    pub fn put_manifest(&mut self, path: &str, bytes: &[u8]) {
        let _ = (path, bytes, &mut self.files);
    }

    /// Removes a file or manifest; says whether there was one.
    pub fn remove(&mut self, path: &str) -> bool {
        self.files.remove(path).is_some()
    }

    /// All files, by path.
    pub fn files(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<FileFacts>)> {
        self.files.iter()
    }

    /// The facts of a file.
    pub fn file(&self, path: &str) -> Option<&Arc<FileFacts>> {
        self.files.get(path)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<Found<'_>> {
        let _ = id;
        None
    }

    /// The id of a node, `node:src/flask/app.py:Flask.route`.
    pub fn id_of(&self, id: NodeId) -> String {
        self.node(id).map(|found| format!("node:{}:{}", found.path, found.view.qual())).unwrap_or_default()
    }

    /// A node by its id, or by `path:name` if that is not ambiguous; `node:` may be left out.
    pub fn by_id(&self, id: &str) -> NodeLookup {
        let _ = id;
        NodeLookup::Unknown
    }

    /// A node by its file and its name, qualified or not.
    pub fn by_name(&self, path: &str, name: &str) -> NodeLookup {
        let _ = (path, name);
        NodeLookup::Unknown
    }

    /// The innermost node at a line.
    pub fn by_line(&self, path: &str, line: u32) -> Option<NodeId> {
        let _ = (path, line);
        None
    }

    /// All nodes of a name.
    pub fn named(&self, name: &str) -> Vec<NodeId> {
        let _ = name;
        Vec::new()
    }

    /// All nodes, by path and order.
    pub fn nodes(&self) -> impl Iterator<Item = Found<'_>> {
        std::iter::empty()
    }

    /// Who calls a node: at most `limit`, with those that are only likely if asked for.
    pub fn callers(&self, id: NodeId, limit: usize, likely: bool) -> Callers {
        let _ = (id, limit, likely);
        Callers::default()
    }

    /// What a node calls, in the order of its lines.
    pub fn callees(&self, id: NodeId, likely: bool) -> Vec<Callee> {
        let _ = (id, likely);
        Vec::new()
    }

    /// What a file imports.
    pub fn imports(&self, path: &str) -> Vec<Imported> {
        let _ = path;
        Vec::new()
    }

    /// The files that import a file.
    pub fn imported_by(&self, path: &str) -> Vec<Arc<str>> {
        let _ = path;
        Vec::new()
    }

    /// The tests of a node, at most `limit`.
    pub fn tests(&self, id: NodeId, limit: usize) -> Tests {
        let _ = (id, limit);
        Tests::default()
    }

    /// All calls of a file with what they mean.
    pub fn sites(&self, path: &str) -> Vec<Site> {
        let _ = path;
        Vec::new()
    }

    /// The bytes it takes in memory.
    pub fn memory(&self) -> usize {
        self.files.values().map(|facts| facts.memory()).sum()
    }
}
