//! Whether all of a database can be read and agrees with itself.

use nudge_core::error::Result;
use rusqlite::{Connection, Transaction};

use crate::app::App;
use crate::db::Db;
use crate::fault::Failure;

/// Most problems that are told of.
const MAX_PROBLEMS: usize = 20;

/// What a [check](Db::check) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// What is wrong, in SQLite's words, which name tables and pages; empty when nothing is. At most 20.
    pub problems: Vec<String>,
    /// The full-text indexes that were damaged and have been made anew.
    pub rebuilt: Vec<&'static str>,
}

impl Health {
    /// Whether nothing is wrong now.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Db {
    /// Reads every page, compares tables with their indexes, and makes full-text indexes anew that are damaged. It takes
    /// about a second for each 100 MB.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when that cannot be found out.
    pub fn check(&self) -> Result<Health> {
        let mut health = Health::default();
        for table in self.app.full_text {
            if self.write(|tx| is_sound(tx, table)).is_ok_and(|sound| !sound) {
                self.write(|tx| Ok(rebuild_one(tx, table)?))?;
                health.rebuilt.push(table);
            }
        }
        health.problems = self.read(|c| Ok(problems(c)?))?;
        Ok(health)
    }
}

/// What is wrong with tables, their indexes, and what refers to what.
fn problems(c: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = c.prepare(&format!("PRAGMA integrity_check({MAX_PROBLEMS})"))?;
    let mut problems = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    problems.retain(|problem| problem != "ok");
    let mut statement = c.prepare("PRAGMA foreign_key_check")?;
    let dangling = statement.query_map([], |row| row.get::<_, String>(0))?;
    for table in dangling.take(MAX_PROBLEMS.saturating_sub(problems.len())) {
        problems.push(format!("a row of {} refers to one that is gone", table?));
    }
    Ok(problems)
}

/// Whether a full-text index holds what it should.
fn is_sound(tx: &Transaction<'_>, table: &str) -> Result<bool, Failure> {
    let checked = tx.execute(&format!("INSERT INTO {table}({table}, rank) VALUES('integrity-check', 1)"), []);
    match checked.map_err(Failure::from) {
        Ok(_) => Ok(true),
        Err(failure) if failure.is_of_an_index() => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Makes every full-text index anew from what it indexes.
pub(crate) fn rebuild(tx: &Transaction<'_>, app: &App) -> rusqlite::Result<()> {
    app.full_text.iter().try_for_each(|table| rebuild_one(tx, table))
}

fn rebuild_one(tx: &Transaction<'_>, table: &str) -> rusqlite::Result<()> {
    tx.execute(&format!("INSERT INTO {table}({table}) VALUES('rebuild')"), []).map(|_| ())
}
