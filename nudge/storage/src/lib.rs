//! Keeps the data of Nudge's sources.
//!
//! Each source that keeps something has one SQLite file, in a folder of this user's alone. A [`Db`] opens it, brings
//! its schema up to date, and answers to any number of threads; several processes of several versions may have it open.
//! An acknowledged change survives every death of a process and every loss of power. SQLite's refusals are told in
//! plain words ([`TransactionFailure`]), as `E_UNAVAILABLE`, and have changed nothing.
//!
//! | | what |
//! |---|---|
//! | [`DatabaseKind`], [`DatabaseOpening`], [`Db`] | what a database is for; how it is opened; reading, writing, damage, copies |
//! | [`KEYS`], [`Db::write_once`] | calls made once by key, with the key in the transaction of the change |
//! | [`COMPACTION`], [`Db::compact`] | writing a file anew, so that no deleted text is left in it |
//! | [`restore_copy`] | a copy put back |
//! | [`foreign`] | the one opener of databases that somebody else may have made |
//! | [`search`] | full-text search |
//! | [`rank`] | how relevant a text is to a question |
//! | [`root_caches`] | caches of folders, and removing those whose folder is gone |
//! | [`vectors`] | vectors as bytes, and exact search in memory |
//!
//! **Architecture invariant:** nothing here opens the file of a database but SQLite does. Closing any other descriptor
//! of it would drop the locks of the whole process.

#![allow(clippy::doc_markdown, reason = "SQLite is a name, not code")]

mod app;
mod backup;
mod check;
mod compaction;
mod day;
mod db;
mod fault;
mod files;
pub mod foreign;
mod keyed;
mod log_owner;
mod open;
mod pool;
pub mod rank;
mod recover;
pub mod root_caches;
pub mod search;
pub mod vectors;

pub use app::{APPLICATION_ID, DataRetention, DatabaseKind, DatabaseOpening, GENERATION, WAIT, read_generation};
pub use check::DatabaseHealth;
pub use compaction::{COMPACTION, mark_compaction, used_bytes};
pub use db::Db;
pub use fault::TransactionFailure;
pub use keyed::{KEYS, KEYS_IN_ORDER, KeyedAnswer, forget_answers};
pub use recover::restore_copy;
/// The bindings of SQLite, in whose terms statements are written.
pub use rusqlite;
