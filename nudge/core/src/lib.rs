//! The ground floor of Nudge: the parts that every source is built from, for hints, signals, records, code or
//! knowledge.
//!
//! A *source* knows something that an agent should be told. It answers methods (a [`MethodTable`](table::MethodTable) of rows), it
//! [offers](suggest) lines when something happens, and it lives as long as the server that opened it
//! ([`Source`](source::Source)). This crate defines a source, and has the parts that all of them need:
//!
//! | module | what |
//! |---|---|
//! | [`error`], [`clock`], [`wire`] | refusals, time, the rules of JSON at every edge |
//! | [`place`], [`context`], [`scope`] | repositories, globs and systems; where a caller stands; where something holds |
//! | [`safety`], [`foreign`] | the refusal of secrets and the rules for paths; the reader of files of others |
//! | `walk` | the one walk through a folder of others, and the rules in it for what is not looked at (feature `walk`) |
//! | `watch` | what the system tells of changes in folders (feature `watch`) |
//! | [`service`], [`table`], [`once`] | what answers calls by name, from a table of rows; calls made once by key |
//! | [`explain`], [`words`], [`near`], [`text`] | why something was chosen, as named addends of a score; relevance of words; did you mean; lines that are safe to show |
//! | [`number`] | lengths, columns and times as other numbers |
//! | [`embed`] | texts as vectors: what a model is, to those who ask one |
//! | [`shell`] | the simple commands of a command line, and what its exit code says of each |
//! | [`steps`], [`held`] | what judging scopes costs, and what is held in memory, counted, so that both have limits |
//! | [`patience`] | how long somebody waits for a call, and whether they still do |
//! | [`sync`] | locks whose order a test can choose |
//! | [`source`], [`settings`] | the life of a source, what the server lends it, and what can be set |
//! | [`suggest`], [`suggest_service`] | offers, the one merge, what each client session was told; all sources asked at once |
//!
//! **Architecture invariant:** this crate knows no hint, no process, no socket, and opens no file but by [`foreign`] and `nudge_os`.
//! It depends on no crate of Nudge but that one, without its processes, and on the secret guard (`nudge_secrets`).

pub mod clock;
pub mod context;
pub mod embed;
pub mod error;
pub mod explain;
pub mod foreign;
pub mod held;
pub mod limit;
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
