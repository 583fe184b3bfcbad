//! Checks that every page of a database can be read and that its contents are consistent.

use nudge_core::error::Result;
use rusqlite::{Connection, Transaction};

use crate::app::{DatabaseKind, WAIT};
use crate::db::Db;
use crate::fault::TransactionFailure;
use crate::open;

/// Largest number of problems that a check reports.
const MAX_PROBLEMS: usize = 20;

/// The result of a [check](Db::check).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseHealth {
    /// The problems in SQLite's words, which name tables and pages. There are at most 20; the list is empty for a sound
    /// database.
    pub problems: Vec<String>,
    /// The full-text indexes that were damaged and have been rebuilt.
    pub rebuilt: Vec<&'static str>,
}

impl DatabaseHealth {
    /// Returns true when no problem is left.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Db {
    /// Reads every page, compares tables with their indexes, and rebuilds damaged full-text indexes. It takes as long
    /// as reading the whole file.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the check cannot run.
    pub fn check(&self) -> Result<DatabaseHealth> {
        self.read(|_| Ok(()))?;
        let mut health = DatabaseHealth::default();
        for table in self.app.full_text {
            match self.write(|tx| is_sound(tx, table)) {
                Ok(true) => {}
                Ok(false) => {
                    self.write(|tx| Ok(rebuild_one(tx, table)?))?;
                    health.rebuilt.push(table);
                }
                // A damaged database is not an error here: the list of problems names the parts that cannot be read.
                Err(refused) if refused.data().contains_key("damaged") => {}
                Err(refused) => return Err(refused),
            }
        }
        // The check needs a new connection, because FTS5 caches data on a connection that has searched, and would
        // compare with that cache.
        let fresh = open::connect_to_read(&self.place, WAIT).and_then(|c| find_problems(&c));
        health.problems = self.place.map_failure(fresh)?;
        Ok(health)
    }
}

/// Finds problems in tables, in their indexes, and in references between rows.
fn find_problems(c: &Connection) -> Result<Vec<String>, TransactionFailure> {
    let mut problems = Vec::new();
    let mut statement = c.prepare(&format!("PRAGMA integrity_check({MAX_PROBLEMS})"))?;
    for problem in statement.query_map([], |row| row.get::<_, String>(0))? {
        match problem.map_err(TransactionFailure::from) {
            Ok(problem) => problems.extend(Some(problem).filter(|problem| problem != "ok")),
            Err(failure) if failure.is_damage() => {
                problems.push("it cannot be read to its end".into());
                break;
            }
            Err(failure) => return Err(failure),
        }
    }
    if !problems.is_empty() {
        // SQLite cannot check references when it cannot read pages.
        return Ok(problems);
    }
    let mut statement = c.prepare("PRAGMA foreign_key_check")?;
    let dangling = statement.query_map([], |row| row.get::<_, String>(0))?;
    for table in dangling.take(MAX_PROBLEMS) {
        problems.push(format!("a row of {} refers to one that is gone", table?));
    }
    Ok(problems)
}

/// Returns true when a full-text index agrees with its rows.
fn is_sound(tx: &Transaction<'_>, table: &str) -> Result<bool, TransactionFailure> {
    let checked = tx.execute(&format!("INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)"), []);
    match checked.map_err(TransactionFailure::from) {
        Ok(_) => Ok(true),
        Err(failure) if failure.is_of_an_index() => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Rebuilds every full-text index from the rows that it indexes.
pub(crate) fn rebuild_indexes(tx: &Transaction<'_>, app: &DatabaseKind) -> rusqlite::Result<()> {
    app.full_text.iter().try_for_each(|table| rebuild_one(tx, table))
}

pub(crate) fn rebuild_one(tx: &Transaction<'_>, table: &str) -> rusqlite::Result<()> {
    tx.execute(&format!("INSERT INTO {table}({table}) VALUES('rebuild')"), []).map(|_| ())
}
