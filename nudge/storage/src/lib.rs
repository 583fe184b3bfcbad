//! Keeps the data of Nudge's sources.
//!
//! Each source with stored data has one SQLite file, in a folder that only this user can read. A [`Db`] opens the file,
//! brings its schema up to date, and serves any number of threads. Several processes of different versions may open the
//! same file. An acknowledged change survives every death of a process and every loss of power. If SQLite fails, the
//! call changes nothing and returns `E_UNAVAILABLE` with a plain sentence ([`TransactionFailure`]).
//!
//! | item | purpose |
//! |---|---|
//! | [`DatabaseKind`], [`DatabaseOpening`], [`Db`] | kinds of databases; opening, reading, writing, repair, copies |
//! | [`KEYS`], [`Db::write_once`] | carrying out a call with a key only once |
//! | [`CHANGE_LOG`], [`log_change`] | the last change of each object: who, when, where, which fields |
//! | [`COMPACTION`], [`Db::compact`] | rewriting a file, so that no deleted text is left in it |
//! | [`restore_copy`], [`find_newest_copy`] | restoring a copy |
//! | [`move_damaged_aside`], [`remove_database`], [`list_set_aside`] | moving or removing a database; the files that then stay |
//! | [`foreign`] | the only opener of databases that other programs or users may have made |
//! | [`search`] | full-text search |
//! | [`rank`] | the relevance of a text to a question |
//! | [`root_caches`] | a cache folder for each root, and the removal of caches whose root is missing |
//! | [`vectors`] | vectors as bytes, and exact search in memory |
//!
//! **Architecture invariant:** in this crate only SQLite opens the file of a database. Closing any other descriptor of
//! the file would drop the locks of the whole process.

#![allow(clippy::doc_markdown, reason = "SQLite is a name, not code")]

mod app;
mod backup;
mod change_log;
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
mod session;
pub mod vectors;

pub use app::{APPLICATION_ID, DataRetention, DatabaseKind, DatabaseOpening, GENERATION, WAIT, read_generation};
pub use backup::{find_newest_copy, list_set_aside, move_damaged_aside, remove_database};
pub use change_log::{CHANGE_LOG, ObjectChange, log_change, read_changes};
pub use check::DatabaseHealth;
pub use compaction::{COMPACTION, mark_compaction, used_bytes};
pub use db::Db;
pub use fault::TransactionFailure;
pub use keyed::{KEYS, KEYS_IN_ORDER, KeyedAnswer, forget_answers};
pub use recover::restore_copy;
/// Re-exports the bindings of SQLite, because callers write statements with their types.
pub use rusqlite;
pub use session::{RestoredRows, SessionDb};
