//! Reads the code of a project. Finds the definition that a call means, the callers of a definition, and its tests.
//!
//! [`extract`] reads one file: its nodes (functions, classes, ...), their calls, imports and documentation. A
//! [`CodeIndex`] stores the facts of all files of one root, and answers queries across files. The crate does not guess:
//! the link from a call to its target is certain by a rule, or is marked as likely.
//!
//! The crate opens no files. The caller passes paths and bytes, and decides which files belong to the project.
//!
//! ```
//! use std::sync::Arc;
//!
//! use nudge_code_index::{CodeIndex, NodeLookup, extract};
//!
//! let mut index = CodeIndex::new();
//! for (path, text) in [
//!     ("shop/__init__.py", ""),
//!     ("shop/pay.py", "def round_up(amount):\n    return amount\n"),
//!     ("shop/web.py", "from shop.pay import round_up\n\ndef order(total):\n    return round_up(total)\n"),
//! ] {
//!     index.put_file(path, Arc::new(extract(path, text.as_bytes()).unwrap()));
//! }
//! let NodeLookup::One(node) = index.by_id("node:shop/pay.py:round_up") else { panic!("it is there once") };
//! let callers = index.find_callers(node, 10, false);
//! assert_eq!((&*callers.edges[0].path, callers.edges[0].line), ("shop/web.py", 4));
//! ```
//!
//! The example `judge` prints the calls of a folder with their targets.
//!
//! | module | content |
//! |---|---|
//! | `facts` | the facts about a file |
//! | `language` | the languages, each with a table that says how to read its syntax |
//! | `extract` | the reader that turns bytes into facts |
//! | `doc` | contradictions between documentation and code |
//! | `index` | all files of a root, manifests, and the files that imports mean |
//! | `resolve` | the target of a call |
//! | `tests_of` | the tests of a node |

mod doc;
mod extract;
mod facts;
mod index;
mod language;
mod resolve;
mod tests_of;

pub use doc::drift_since;
pub use extract::{EXTRACTOR, Skip, extract, is_test_path};
pub use facts::{CodeNode, DocDrift, DriftRule, FileFacts, Hash, NodeKind, NodeSpan, NodeView, hash};
pub use index::{
    CalleeSite, CallerList, CallerSite, CodeIndex, EdgeCertainty, IndexQueries, IndexedNode, NodeId, NodeLookup,
    ResolvedCall, ResolvedImport, TestHow, TestLink, TestList, is_manifest, node_id,
};
pub use language::CodeLanguage;
