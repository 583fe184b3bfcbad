//! The base crate of Nudge: the parts that all sources share.
//!
//! A *source* holds knowledge of one kind: hints, signals, records, code or notes. It answers the methods of a
//! [`MethodTable`](table::MethodTable), [offers](suggest) lines when an event happens, and stays open as long as the
//! server that opened it. [`Source`](source::Source) defines a source; the other modules hold the shared parts:
//!
//! | module | content |
//! |---|---|
//! | [`error`], [`clock`], [`wire`] | refusals; time; the rules for JSON that comes in or goes out |
//! | [`place`], [`context`], [`scope`] | repositories, globs and systems; a caller's context; the scope of a hint |
//! | [`safety`] | the refusal of secrets and the rules for paths |
//! | `walk` | the one walk through a foreign folder, and its rules for skipped files (feature `walk`) |
//! | `watch` | the system's reports of changes in folders (feature `watch`) |
//! | [`service`], [`table`], [`once`] | calls by name, from a table of rows; calls that are made once by key |
//! | [`explain`], [`words`] | the named addends of a score; the relevance of words |
//! | [`near`], [`text`] | "did you mean"; lines that are safe to show |
//! | [`number`] | conversions of lengths, columns and times |
//! | [`embed`] | texts as vectors, and the interface of an embedding model |
//! | [`shell`] | the simple commands of a command line, and the outcome of each by the exit code |
//! | [`steps`], [`held`] | counters for the cost of judging scopes and for bytes in memory, so that both have limits |
//! | [`patience`] | the time limit of a call, and whether its caller still waits |
//! | [`sync`] | locks whose order a test can choose |
//! | [`source`], [`settings`] | the life of a source, the things that the server gives it, and its settings |
//! | [`suggest`] | offers, the one merge of them, and the told lines of each client session |
//! | [`suggest_service`] | the question to all sources at once |
//!
//! **Architecture invariant:** this crate has no code about hints, processes or sockets, and opens files only through
//! `nudge_os` and `nudge_git_files`. It depends on three crates of Nudge: `nudge_os` (without its feature `process`),
//! `nudge_git_files` and the secret guard (`nudge_secrets`).

pub mod clock;
pub mod context;
pub mod embed;
pub mod error;
pub mod explain;
pub mod held;
pub mod limit;
pub mod marks;
pub mod near;
pub mod number;
pub mod once;
pub mod patience;
pub mod place;
pub mod relevance;
pub mod report;
pub mod safety;
pub mod scope;
pub mod service;
pub mod settings;
pub mod shell;
pub mod source;
pub mod steps;
pub mod suggest;
pub mod suggest_service;
pub mod sync;
pub mod table;
pub mod text;
#[cfg(feature = "walk")]
pub mod walk;
#[cfg(feature = "watch")]
pub mod watch;
pub mod wire;
pub mod words;
