//! Shows a node together with the strings of its file.

use super::{CodeNode, DocDrift, FileFacts, NodeKind, flag};

/// A node, with the facts of its file.
#[derive(Debug, Clone, Copy)]
pub struct NodeView<'a> {
    facts: &'a FileFacts,
    node: &'a CodeNode,
    number: u32,
}

impl<'a> NodeView<'a> {
    pub(super) fn new(facts: &'a FileFacts, node: &'a CodeNode, number: u32) -> Self {
        Self { facts, node, number }
    }

    /// Returns the number of the node in its file.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the name with its owners, such as `Flask.route`. If another node already has that name, the suffix `#2`
    /// follows.
    pub fn qual(&self) -> &'a str {
        self.facts.text_of(self.node.qual)
    }

    /// Returns the name without its owners.
    pub fn name(&self) -> &'a str {
        self.facts.text_of(self.node.name)
    }

    /// Returns the kind of the node.
    pub fn kind(&self) -> NodeKind {
        self.node.kind
    }

    /// Returns the declaration on one line of at most 300 bytes. It is empty if it was withheld because of a secret.
    pub fn signature(&self) -> &'a str {
        self.facts.text_of(self.node.signature)
    }

    /// Returns the documentation, at most 2,000 bytes; `None` if there is none.
    pub fn doc(&self) -> Option<&'a str> {
        Some(self.facts.text_of(self.node.doc)).filter(|doc| !doc.is_empty())
    }

    /// Returns the words of the comments and messages in the body of a function, in lower case, at most 400 bytes. They
    /// are for search alone.
    pub fn prose(&self) -> &'a str {
        self.facts.text_of(self.node.prose)
    }

    /// Returns the stored node itself.
    pub fn node(&self) -> &'a CodeNode {
        self.node
    }

    /// Returns a hash of the parameters, which changes when an existing call may no longer fit.
    pub fn params_hash(&self) -> u32 {
        self.node.takes
    }

    /// Returns the names of the parameters.
    pub fn params(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (from, to) = self.node.params;
        let facts = self.facts;
        facts
            .params
            .get(from.get() as usize..to.get() as usize)
            .unwrap_or_default()
            .iter()
            .map(|name| facts.text_of(*name))
    }

    /// Returns the paths of the base types and traits.
    pub fn bases(&self) -> impl Iterator<Item = String> + use<'a> {
        let facts = self.facts;
        let all = facts.bases_of(self.node);
        all.iter().map(|base| facts.exprs.dotted_path(*base, &facts.names)).filter(|path| !path.is_empty())
    }

    /// Returns true if the node is a test.
    pub fn is_test(&self) -> bool {
        self.node.flags & flag::TEST != 0
    }

    /// Returns the contradictions between the documentation and the code.
    pub fn list_drift(&self) -> impl Iterator<Item = &'a DocDrift> + use<'a> {
        let number = self.number;
        self.facts.drifts.iter().filter(move |(node, _)| *node == number).map(|(_, drift)| drift)
    }
}
