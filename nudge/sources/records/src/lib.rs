//! Records: fixes, decisions and plans across projects, found again by words and by meaning.
//!
//! A record is an issue that was fixed, a specification, a decision of architecture, or an update. All of a user's
//! projects share one database, so that a lesson of one helps another. [`SOURCE`] brings it to the surfaces.
//!
//! | module | what |
//! |---|---|
//! | `record`, `project` | a record and its fields; which project a place belongs to |
//! | `schema`, `rows` | the database, and reading and writing its rows |
//! | `meaning` | vectors: made in the background, kept, searched in memory |
//! | `duplicates` | pairs of records that may say the same |
//! | `search` | finding the records that are most relevant to a question |
//! | `write`, `join` | changing records; making two projects one |
//! | `transfer`, `incoming`, `import` | exports and backups; reading the file of an import, and writing its records in batches |
//! | `same`, `seen` | whether two records say the same; what is near one before it is written |
//! | `source`, `method`, `offer` | the source, its rows, what it tells an agent unasked |
//! | `report` | what the command line tells a person of the answers |
//! | `capture` | what a turn of an agent did, and whether it is worth a record |

mod capture;
mod duplicates;
mod import;
mod incoming;
mod join;
mod meaning;
mod method;
mod offer;
mod project;
mod record;
mod report;
mod room;
mod rows;
mod same;
mod schema;
mod search;
mod seen;
mod source;
mod transfer;
mod write;

pub use project::project_name;
pub use record::{Kind, Origin, Record, RecordRevision, Status};
pub use source::SOURCE;
