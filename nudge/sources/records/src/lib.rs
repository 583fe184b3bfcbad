//! Records: fixes, decisions and plans across projects, found again by words and by meaning.
//!
//! A record is a fixed issue, a specification, a decision of architecture, or an update. All projects of a user share
//! one database, so that a lesson from one project helps in another. [`SOURCE`] registers the records as a source.
//!
//! | module | what |
//! |---|---|
//! | `record`, `project` | a record and its fields; the project of a caller's folder or repository |
//! | `schema`, `rows` | the database; reads and writes its rows |
//! | `meaning` | vectors: made in the background, stored, searched in memory |
//! | `duplicates` | pairs of records that may say the same |
//! | `search` | finds the most relevant records for a question |
//! | `write`, `join` | changes records; joins two projects |
//! | `transfer`, `incoming`, `import` | exports and backups; reads the file of an import; writes its records in
//! batches |
//! | `same`, `seen` | compares the texts of two records; finds similar records before a write |
//! | `source`, `method`, `offer` | the source, its method table, its unasked offers to an agent |
//! | `report` | reports of the answers for a person at the command line |
//! | `capture` | the work of an agent's turn, and whether it is worth a record |

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
