//! Brain: knowledge in markdown files that people own, found by words, by meaning and by relation.
//!
//! The files are the only truth: an index of them lies in the folder for caches, follows them, and can be made again at
//! any time. Nothing but a call that says so ever writes a file, and then one field or one new file. [`SOURCE`] brings
//! it to the surfaces.
//!
//! | module | what |
//! |---|---|
//! | `front`, `splice` | frontmatter: reading it, changing one field of it |
//! | `outline`, `chunk` | what a text is made of; the pieces that are found |
//! | `unit`, `config` | what a file says of itself, and `brain.yaml` of all |
//! | `folder` | which files are units; reading and writing them |
//! | `schema`, `rows`, `index` | the index; its rows; how it is brought in step with the files |
//! | `follow` | what the system tells of changes, while a session runs |
//! | `meaning` | vectors: made in the background, kept, held in memory |
//! | `fusion`, `graph`, `retrieve` | the order of what is found; what is found by relation; finding |
//! | `bolt`, `mirror` | a graph server of the user's; what it has of a brain, and relations by it |
//! | `source`, `method`, `context`, `read`, `write` | the source, its rows, and what answers them |
//! | `choose`, `git` | naming a brain in the user's settings; making it a repository |
//! | `llm` | the language models that can be asked, each in its own way |
//! | `answer`, `rerank` | a language model answers from what was found, or puts it in order |
//! | `capture` | a session that has ended becomes files on a branch, for a person to review |
//! | `offer`, `report` | what an agent is told unasked; what the command line tells a person |

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
