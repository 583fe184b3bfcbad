//! The source for code: it answers with the nodes of a project's code and their relations. A node is a function, a type
//! or a module.
//!
//! `nudge_code_index` extracts facts from files and answers queries about callers. This source keeps an index of each
//! project that an agent asks about. It updates the index when files change, and stores it on disk. The methods, the
//! offers for agents and the reports all read this index.
//!
//! | module | content |
//! |---|---|
//! | `root`, `rules`, `walk` | the folder of a project, the rules for files that are no source, the list of files |
//! | `stamp`, `cache` | marks that show whether a file has changed; the facts on disk |
//! | `live` | a root that is kept up to date: its state, its worker, its watch |
//! | `search`, `prompt` | search by words; the nodes that a text mentions |
//! | `lookup`, `shown`, `line` | the node that a caller names; the parts of answers; a node in one line |
//! | `git`, `coverage`, `runner` | differences from HEAD; tests by coverage; the command of the test runner |
//! | `source`, `method`, `offer`, `report` | the source, its methods, its unasked offers, its reports for people |

mod cache;
mod coverage;
mod git;
mod line;
mod live;
mod lookup;
mod method;
mod offer;
mod prompt;
mod report;
mod root;
mod rules;
mod runner;
mod search;
mod shown;
mod source;
mod stamp;
mod walk;

pub use source::SOURCE;
