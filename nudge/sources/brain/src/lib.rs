//! Brain: the knowledge in a user's markdown files, found by words, by meaning and by relation. The knowledge of one
//! file is a *unit*.
//!
//! The files are the only truth. An index in the cache folder follows the files and can be rebuilt at any time. Only a
//! call that asks for a change writes a file; such a call changes one field or makes one file. [`SOURCE`] registers the
//! brain as a source.
//!
//! | module | what |
//! |---|---|
//! | `front`, `splice` | frontmatter: reading it, and changing one field |
//! | `outline`, `chunk` | the structure of a text; the chunks that a search finds |
//! | `unit`, `config` | the facts of a file about itself; the settings of `brain.yaml` |
//! | `folder` | decides which files are units; reads and writes them |
//! | `schema`, `rows`, `index` | the index, its rows, and its update from the files |
//! | `follow` | the changes that the system reports while a session runs |
//! | `meaning` | vectors: made in the background, stored, held in memory |
//! | `fusion`, `graph`, `retrieve` | the order of results; results by relation; the search |
//! | `bolt`, `mirror` | the user's graph server; its copy of a brain, and walks over that copy |
//! | `source`, `method`, `context`, `read`, `write` | the source, its method table, and the methods |
//! | `choose`, `git` | names a brain in the user's settings; makes it a repository |
//! | `llm` | the language models, each with its own protocol |
//! | `answer`, `rerank` | a language model answers from the results, or orders them |
//! | `capture` | turns a finished session into files on a branch, for a person to review |
//! | `offer`, `report` | the offers to an agent; the reports for a person at the command line |

mod answer;
mod bolt;
pub mod capture;
mod choose;
pub mod chunk;
mod config;
mod context;
mod folder;
mod follow;
pub mod front;
mod fusion;
mod git;
mod graph;
mod index;
mod llm;
mod meaning;
mod method;
mod mirror;
mod offer;
pub mod outline;
mod read;
mod report;
mod rerank;
mod retrieve;
mod rows;
mod schema;
mod settings;
mod source;
pub mod splice;
mod unit;
mod write;

pub use source::SOURCE;
