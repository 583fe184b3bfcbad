//! Builds the nodes and edges of an answer. An edge is a call from one node to another. Each has the freshness of its
//! file.

use std::cell::RefCell;
use std::collections::HashMap;

use foldhash::fast::FixedState;
use nudge_code_index::{DriftRule, EdgeCertainty, IndexQueries, NodeId, NodeKind, NodeView};
use nudge_core::clock::rfc3339;
use nudge_core::error::Result;
use nudge_core::text::to_hex;
use serde::Serialize;

use crate::live::state::{Paths, RootState};
use crate::live::{AsOf, FileFreshness, LiveRoot};
use crate::root::ProjectRoot;
use crate::stamp;

/// The most times that an answer is computed. It is computed again when one of its files has changed.
const ROUNDS: usize = 3;
/// The most characters of a documentation in a list.
const DOC_CHARS: usize = 160;

/// The checked files, with their freshness.
pub type Looked = HashMap<Box<str>, FileFreshness, FixedState>;

/// A view of the index from which an answer is computed. The view collects the files that the answer is about.
pub struct AnswerView<'a> {
    /// The current state.
    pub state: &'a RootState,
    /// Answers queries about the calls in this state.
    pub(crate) calls: IndexQueries<'a>,
    root: &'a ProjectRoot,
    looked: RefCell<Looked>,
    /// The files that must be compared with the disk before the answer is given.
    unseen: RefCell<Paths>,
}

impl AnswerView<'_> {
    /// Records that the answer is about a file, and returns the freshness of this file.
    pub fn check_fresh(&self, path: &str) -> FileFreshness {
        if let Some(fresh) = self.looked.borrow().get(path) {
            return *fresh;
        }
        // Most files are unchanged, and their marks show that without a read.
        let known = self.state.files.get(path);
        if known.is_some_and(|known| stamp::read_stamp(self.root, path).is_some_and(|now| known.is_current(&now))) {
            self.looked.borrow_mut().insert(path.into(), FileFreshness::Yes);
            return FileFreshness::Yes;
        }
        self.unseen.borrow_mut().insert(path.into());
        FileFreshness::No
    }
}

/// An answer, with its freshness.
#[derive(Debug, Serialize)]
pub struct FreshAnswer<T> {
    #[serde(flatten)]
    pub said: T,
    /// The freshness of the answer.
    pub as_of: AsOf,
}

/// Computes an answer. If the answer is about files that are not checked yet, checks them and computes the answer
/// again, at most `ROUNDS` times in all. The files in `first` are checked before.
pub fn answer_fresh<T>(
    live: &LiveRoot,
    first: &[&str],
    say: impl Fn(&AnswerView<'_>) -> Result<T>,
) -> Result<FreshAnswer<T>> {
    fresh_beyond(live, live.freshen_files(first.iter().copied()), say)
}

/// Computes an answer like [`answer_fresh`], when the files in `looked` have just been checked.
pub fn fresh_beyond<T>(
    live: &LiveRoot,
    mut looked: Looked,
    say: impl Fn(&AnswerView<'_>) -> Result<T>,
) -> Result<FreshAnswer<T>> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        let (said, unseen, as_of) = {
            let state = live.state();
            let view = AnswerView {
                state: &state,
                calls: state.index.start_queries(),
                root: live.root(),
                looked: RefCell::new(looked),
                unseen: RefCell::default(),
            };
            let said = say(&view);
            looked = view.looked.into_inner();
            (said, view.unseen.into_inner(), live.as_of(&state))
        };
        if unseen.is_empty() || rounds == ROUNDS {
            return Ok(FreshAnswer { said: said?, as_of });
        }
        looked.extend(live.freshen_files(unseen.iter().map(|path| &**path)));
    }
}

/// A node in an answer.
#[derive(Debug, Serialize)]
pub struct ShownNode {
    /// The id of the node.
    pub id: String,
    /// The kind.
    pub kind: NodeKind,
    /// The line that has the node's name.
    pub line: u32,
    /// The last line of the node.
    pub end_line: u32,
    /// The declaration.
    pub signature: String,
    /// The documentation; in a list, only its first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// The complexity: 1, plus 1 for each branch.
    pub complexity: u32,
    /// The hash of the node's text.
    pub source_hash: String,
    /// The base classes and interfaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<String>,
    /// Is true if the node is a test.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub test: bool,
    /// Is true when the documentation contradicts the code.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub docstring_outdated: bool,
    /// Is true when the documentation does not describe everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub docstring_incomplete: bool,
    /// The contradictions between documentation and code, each with its rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<ShownDrift>,
    /// The time when the node appeared; absent if the server did not see that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<String>,
    /// The time when the node's text last changed; absent if the server did not see that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_changed: Option<String>,
    /// The freshness of the node's file.
    pub fresh: FileFreshness,
}

/// A contradiction between documentation and code.
#[derive(Debug, Serialize)]
pub struct ShownDrift {
    /// The rule that the documentation breaks.
    pub rule: DriftRule,
    /// A description of the contradiction.
    pub detail: String,
}

/// A node in a list.
#[derive(Debug, Serialize)]
pub struct BriefNode {
    /// The id of the node.
    pub id: String,
    /// The kind.
    pub kind: NodeKind,
    /// The line that has the node's name.
    pub line: u32,
    /// The declaration.
    pub signature: String,
    /// The complexity: 1, plus 1 for each branch.
    pub complexity: u32,
}

/// A call between two nodes.
#[derive(Debug, Serialize)]
pub struct ShownCall {
    /// The node at the other end of the call; absent for a call outside of all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// For a caller, the file that contains the call; for a callee, the file that defines it.
    pub path: String,
    /// For a caller, the line of the call; for a callee, the line of its name.
    pub line: u32,
    /// The rule by which the target of the call was found.
    pub how: EdgeCertainty,
    /// Is true if the target of the call is certain.
    pub certain: bool,
    /// The freshness of the file in `path`.
    pub fresh: FileFreshness,
}

/// Returns the id of a node.
pub fn to_node_id(path: &str, view: &NodeView<'_>) -> String {
    nudge_code_index::node_id(path, view)
}

impl ShownNode {
    /// Collects everything that an answer shows about one node.
    pub fn from_id(view: &AnswerView<'_>, id: NodeId) -> Option<Self> {
        let found = view.state.index.find_node(id)?;
        let (path, node) = (found.path, found.view);
        let drift: Vec<_> = view
            .state
            .find_drift(path, &node)
            .into_iter()
            .map(|drift| ShownDrift { rule: drift.rule, detail: drift.detail })
            .collect();
        let seen = view.state.history_of(path, node.qual());
        Some(Self {
            id: self::to_node_id(path, &node),
            kind: node.kind(),
            line: node.node().span.line,
            end_line: node.node().span.end_line,
            signature: node.signature().to_owned(),
            doc: node.doc().map(str::to_owned),
            complexity: node.node().complexity,
            source_hash: to_hex(&node.node().hash),
            bases: node.bases().collect(),
            test: node.is_test(),
            docstring_outdated: drift.iter().any(|drift| drift.rule.is_outdated()),
            docstring_incomplete: drift.iter().any(|drift| !drift.rule.is_outdated()),
            drift,
            first_seen: seen.first.map(rfc3339::format_time),
            last_changed: seen.changed.map(rfc3339::format_time),
            fresh: view.check_fresh(path),
        })
    }
}

impl BriefNode {
    /// Makes the entry of a node in a list.
    pub fn from_view(path: &str, node: &NodeView<'_>) -> Self {
        Self {
            id: self::to_node_id(path, node),
            kind: node.kind(),
            line: node.node().span.line,
            signature: node.signature().to_owned(),
            complexity: node.node().complexity,
        }
    }
}

/// Returns the first line of a documentation that is not empty, shortened for a list.
pub fn first_line(doc: &str) -> String {
    nudge_core::text::clip_text(doc.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(""), DOC_CHARS)
}
