//! Code: the nodes of a project's code, and how they relate.
//!
//! `nudge_code_index` reads files and answers questions about callers. This source keeps an index of each project that is
//! asked about up to date with its files and on disk, and puts it behind methods, lines for agents and reports.
//!
//! | module | what |
//! |---|---|
//! | `root`, `rules`, `walk` | which folder is meant, what in it is not source, which files count |
//! | `stamp`, `cache` | whether a file is still what was read; what was read, on disk |
//! | `live` | a root that is kept up to date: its state, its worker, what the system tells of changes |
//! | `search`, `prompt` | nodes by the words of their names; nodes that a text brings to mind |
//! | `lookup`, `shown`, `line` | which node is meant; what answers show of one; a node in one line |
//! | `git`, `coverage`, `runner` | what differs from HEAD; which tests ran what; what runs tests |
//! | `source`, `method`, `offer`, `report` | the source, its rows, what an agent is told unasked, what people read |

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
