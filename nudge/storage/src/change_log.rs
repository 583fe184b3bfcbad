//! The change log of a database: for each object one row with the last change of the object and of each of its fields.
//! The row is written in the transaction of the change, so the log never differs from the data. One row per object
//! keeps the log small: a reader learns what has changed since a time, and not each step.

use std::collections::BTreeMap;

use nudge_core::clock::Millis;
use nudge_core::number::to_column;
use nudge_core::source::{FieldChange, LoggedChange, TICKS_PER_MS};
use nudge_core::wire::raw_json;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use ulid::Ulid;

use crate::fault::TransactionFailure;

/// The migration that makes the change log. Every [`DatabaseKind`](crate::DatabaseKind) whose source calls
/// [`log_change`] needs it.
pub const CHANGE_LOG: &str = "\
CREATE TABLE change(
  object TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE, author TEXT NOT NULL, origin TEXT NOT NULL,
  clock INTEGER NOT NULL UNIQUE, fields TEXT NOT NULL, gone INTEGER NOT NULL CHECK(gone IN (0, 1))) STRICT;
CREATE TABLE change_origin(id TEXT NOT NULL) STRICT;";

/// The time for which the row of a removed object stays, in milliseconds: 180 days.
const GONE_MS: Millis = 180 * 24 * 60 * 60 * 1000;

/// A change of an object.
#[derive(Debug, Clone, Copy)]
pub struct ObjectChange<'a> {
    /// The source's name of the object. A new object with the name of a removed one counts as the same object.
    pub name: &'a str,
    /// The client that makes the change; empty when unknown.
    pub author: &'a str,
    /// The time of the change.
    pub now: Millis,
    /// The names of the changed fields. A removed object has none.
    pub fields: &'a [&'a str],
    /// True when the object is removed.
    pub is_gone: bool,
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<LoggedChange> {
    let fields: String = row.get(5)?;
    Ok(LoggedChange {
        object: row.get(0)?,
        name: row.get(1)?,
        author: row.get(2)?,
        origin: row.get(3)?,
        clock: row.get(4)?,
        // A damaged text only loses the clocks of the fields.
        fields: serde_json::from_str(&fields).unwrap_or_default(),
        is_gone: row.get::<_, i64>(6)? != 0,
    })
}

const COLUMNS: &str = "object, name, author, origin, clock, fields, gone";

/// Logs a change. The caller passes the transaction that makes the change. An object that is removed and made again
/// keeps its ULID as long as its row stays.
///
/// # Errors
/// SQLite's error when a statement fails.
pub fn log_change(c: &Connection, change: &ObjectChange<'_>) -> Result<(), TransactionFailure> {
    let last: i64 = c.prepare_cached("SELECT coalesce(max(clock), 0) FROM change")?.query_row([], |row| row.get(0))?;
    let clock = change.now.saturating_mul(TICKS_PER_MS).max(last + 1);
    let sql = format!("SELECT {COLUMNS} FROM change WHERE name = ?1");
    let known = c.prepare_cached(&sql)?.query_row([change.name], read_row).optional()?;
    let (object, mut fields) = match known {
        Some(known) => (known.object, known.fields),
        None => (new_object(c, change.now)?, BTreeMap::new()),
    };
    if change.is_gone {
        fields.clear();
    } else {
        let last = FieldChange { clock, author: change.author.to_owned() };
        fields.extend(change.fields.iter().map(|field| ((*field).to_owned(), last.clone())));
    }
    let fields = raw_json(&fields);
    c.prepare_cached(
        "INSERT INTO change(object, name, author, origin, clock, fields, gone) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT(name) DO UPDATE SET author = excluded.author, origin = excluded.origin, clock = excluded.clock,
           fields = excluded.fields, gone = excluded.gone",
    )?
    .execute(params![object, change.name, change.author, read_origin(c)?, clock, fields.get(), change.is_gone])?;
    if change.is_gone {
        let limit = change.now.saturating_sub(GONE_MS).saturating_mul(TICKS_PER_MS);
        c.prepare_cached("DELETE FROM change WHERE clock < ?1 AND gone = 1")?.execute([limit])?;
    }
    Ok(())
}

/// Makes the ULID of a new object.
fn new_object(c: &Connection, now: Millis) -> Result<String, TransactionFailure> {
    let random: [u8; 16] = c.prepare_cached("SELECT randomblob(16)")?.query_row([], |row| row.get(0))?;
    Ok(Ulid::from_parts(now.unsigned_abs(), u128::from_ne_bytes(random)).to_string())
}

/// Returns the name of this database as an origin. The first change makes the name.
fn read_origin(c: &Connection) -> Result<String, TransactionFailure> {
    let read = "SELECT id FROM change_origin";
    if let Some(origin) = c.prepare_cached(read)?.query_row([], |row| row.get(0)).optional()? {
        return Ok(origin);
    }
    c.execute("INSERT INTO change_origin(id) VALUES (lower(hex(randomblob(8))))", [])?;
    Ok(c.query_row(read, [], |row| row.get(0))?)
}

/// Returns the changes since a time, oldest first; when there are more than `limit`, the latest ones.
///
/// # Errors
/// SQLite's error when a statement fails.
pub fn read_changes(c: &Connection, since: Millis, limit: usize) -> Result<Vec<LoggedChange>, TransactionFailure> {
    let sql = format!("SELECT {COLUMNS} FROM change WHERE clock >= ?1 ORDER BY clock DESC LIMIT ?2");
    let mut statement = c.prepare_cached(&sql)?;
    let rows = statement.query_map(params![since.saturating_mul(TICKS_PER_MS), to_column(limit)], read_row)?;
    let mut changes = rows.collect::<Result<Vec<_>, _>>()?;
    changes.reverse();
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Connection {
        let c = Connection::open_in_memory().unwrap();
        c.execute_batch(CHANGE_LOG).unwrap();
        c
    }

    fn log(c: &mut Connection, name: &str, author: &str, now: Millis, fields: Option<&[&str]>) {
        let change = ObjectChange { name, author, now, fields: fields.unwrap_or_default(), is_gone: fields.is_none() };
        let tx = c.transaction().unwrap();
        log_change(&tx, &change).unwrap();
        tx.commit().unwrap();
    }

    fn read(c: &Connection, since: Millis) -> Vec<LoggedChange> {
        read_changes(c, since, 100).unwrap()
    }

    #[test]
    fn an_object_has_one_row_with_the_last_writer_of_each_field() {
        let mut c = open();
        log(&mut c, "a", "ann", 1_000, Some(&["title", "body"]));
        log(&mut c, "a", "bob", 2_000, Some(&["title"]));
        let all = read(&c, 0);
        assert_eq!(all.len(), 1);
        let change = &all[0];
        assert_eq!((change.time(), change.author.as_str(), change.is_gone), (2_000, "bob", false));
        assert_eq!(change.list_changed().collect::<Vec<_>>(), ["title"]);
        assert_eq!((change.fields["body"].author.as_str(), change.fields["title"].author.as_str()), ("ann", "bob"));
        assert!(Ulid::from_string(&change.object).is_ok_and(|object| object.timestamp_ms() == 1_000));
        assert_eq!(change.origin.len(), 16);
        log(&mut c, "b", "", 3_000, Some(&["title"]));
        assert_eq!(read(&c, 0)[1].origin, change.origin, "one database is one origin");
    }

    #[test]
    fn the_clock_rises_when_the_time_stands_still_or_goes_back() {
        let mut c = open();
        for (name, now) in [("a", 5_000), ("b", 5_000), ("c", 1_000), ("d", 6_000)] {
            log(&mut c, name, "", now, Some(&["value"]));
        }
        let all = read(&c, 0);
        assert_eq!(all.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert_eq!(all.iter().map(LoggedChange::time).collect::<Vec<_>>(), [5_000, 5_000, 5_000, 6_000]);
        assert_eq!(read(&c, 5_001).len(), 1);
        assert_eq!(read_changes(&c, 0, 2).unwrap()[0].name, "c", "the latest are returned");
    }

    #[test]
    fn a_removed_object_leaves_a_row_for_180_days_and_keeps_its_identity() {
        let mut c = open();
        log(&mut c, "a", "ann", 1_000, Some(&["value"]));
        log(&mut c, "b", "ann", 1_000, Some(&["value"]));
        let object = read(&c, 0)[0].object.clone();
        log(&mut c, "a", "bob", 2_000, None);
        let gone = &read(&c, 0)[1];
        assert_eq!((gone.is_gone, gone.fields.len(), &gone.object), (true, 0, &object));
        log(&mut c, "a", "bob", 3_000, Some(&["value"]));
        assert_eq!((read(&c, 0)[1].is_gone, &read(&c, 0)[1].object), (false, &object), "made again");
        log(&mut c, "a", "bob", 4_000, None);
        log(&mut c, "b", "bob", 4_001 + GONE_MS, None);
        let names: Vec<_> = read(&c, 0).into_iter().map(|change| change.name).collect();
        assert_eq!(names, ["b"], "the row of `a` is too old");
    }
}
