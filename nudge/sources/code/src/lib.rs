//! Code: the nodes of a project's code, and how they relate.
//!
//! [`extract`] reads one file: its nodes (functions, classes, ...), their calls, imports and documentation. An
//! [`CodeIndex`] holds the facts of all files of one root and answers questions about callers. Nothing is guessed: an edge
//! follows a rule that is certain, or is marked as likely.
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
//! | `root`, `rules`, `walk` | which folder is meant, what in it is not source, which files count |
//! | `stamp`, `cache` | whether a file is still what was read; what was read, on disk |
//! | `live` | a root that is kept up to date: its state, its worker, what the system tells of changes |
//! | `search`, `prompt` | nodes by the words of their names; nodes that a text brings to mind |
//! | `lookup`, `shown`, `line` | which node is meant; what answers show of one; a node in one line |
//! | `git`, `coverage`, `runner` | what differs from HEAD; which tests ran what; what runs tests |
//! | `source`, `method`, `offer`, `report` | the source, its rows, what an agent is told unasked, what people read |

mod cache;
mod coverage;
mod doc;
mod extract;
mod facts;
mod git;
mod index;
mod language;
mod line;
mod live;
mod lookup;
mod method;
mod offer;
mod prompt;
mod report;
mod resolve;
mod root;
mod rules;
mod runner;
mod search;
mod shown;
mod source;
mod stamp;
mod tests_of;
mod walk;
mod worked;

pub use extract::{EXTRACTOR, Skip, extract};
pub use facts::{CodeNode, DocDrift, DriftRule, FileFacts, Hash, NodeKind, NodeSpan, NodeView};
pub use index::{
    CalleeSite, CallerList, CallerSite, CodeIndex, EdgeCertainty, IndexedNode, NodeId, NodeLookup, ResolvedCall,
    ResolvedImport, TestHow, TestLink, TestList, is_manifest,
};
pub use language::CodeLanguage;
pub use source::SOURCE;
