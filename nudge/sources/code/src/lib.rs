//! Code: what the code of a project says, and how its parts hang together.
//!
//! [`extract`] reads one file: its nodes (functions, classes, ...), what they call, import and document. An [`Index`]
//! holds the facts of all files of one root and answers who calls what. Nothing is guessed: an edge follows a rule that
//! is certain, or says that it does not.
//!
//! | module | what |
//! |---|---|
//! | `facts` | what is kept of a file |
//! | `language` | the languages, and a table for each: which syntax means what |
//! | `extract` | from bytes to facts |
//! | `doc` | documentation: its text, the parameters it lists, what it says that is no longer so |
//! | `index` | all files of a root; manifests; which file an import means |
//! | `resolve` | what a call means |
//! | `tests_of` | which tests a node has |

mod doc;
mod extract;
mod facts;
mod index;
mod language;
mod resolve;
mod tests_of;

pub use extract::{EXTRACTOR, Skip, extract};
pub use facts::{Drift, DriftRule, FileFacts, Hash, Kind, Node, NodeView, Span};
pub use index::{
    Callee, Caller, Callers, Found, How, Imported, Index, NodeId, NodeLookup, Site, TestHow, TestLink, Tests,
    is_manifest,
};
pub use language::Language;
