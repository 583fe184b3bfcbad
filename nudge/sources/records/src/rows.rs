//! Reads and writes the rows of records. Other modules decide which changes a caller may make.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use nudge_core::clock::Millis;
use nudge_core::error::Error;
use nudge_core::number::to_column;
use nudge_storage::rusqlite::{Connection, OptionalExtension as _, Row, ToSql, Transaction, params};
use nudge_storage::{ObjectChange, TransactionFailure, forget_answers, log_change, mark_compaction};
use serde::Serialize;

use crate::meaning;
use crate::record::{Kind, Origin, Record, RecordRevision, Status};
use crate::same;

/// The columns of a [`Record`]; `r` is the table `record`, `p` the table `project`.
const COLUMNS: &str =
    "r.id, p.name, r.kind, r.title, r.body, r.status, r.version, r.by, r.origin, r.created_at, r.updated_at";
const FROM: &str = "FROM record r JOIN project p ON p.id = r.project_id";

/// The number of days in which a deleted record can be restored.
pub const KEPT_DAYS: i64 = 30;
/// The most revisions of a record. When there are more, the oldest are dropped.
const MAX_REVISIONS: i64 = 50;

fn read_record(row: &Row<'_>) -> nudge_storage::rusqlite::Result<Record> {
    Ok(Record {
        id: row.get(0)?,
        project: row.get(1)?,
        kind: row.get(2)?,
        title: row.get(3)?,
        body: row.get(4)?,
        status: row.get(5)?,
        version: row.get(6)?,
        by: row.get(7)?,
        origin: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
    })
}

/// Returns the number of records in all projects.
pub fn count_all(c: &Connection) -> Result<i64, TransactionFailure> {
    Ok(c.prepare_cached("SELECT count(*) FROM record")?.query_row([], |row| row.get(0))?)
}

/// Returns the record with this number, or `None` if it does not exist.
pub fn find_record(c: &Connection, id: i64) -> Result<Option<Record>, TransactionFailure> {
    let mut statement = c.prepare_cached(&format!("SELECT {COLUMNS} {FROM} WHERE r.id = ?1"))?;
    Ok(statement.query_row([id], read_record).optional()?)
}

/// Returns the record with this number.
///
/// # Errors
/// `E_NOT_FOUND` when the record does not exist. If the record was merged, the error names the record that holds its
/// content now.
pub fn get_record(c: &Connection, id: i64) -> Result<Record, TransactionFailure> {
    if let Some(record) = find_record(c, id)? {
        return Ok(record);
    }
    let mut statement = c.prepare_cached("SELECT into_id FROM gone WHERE record_id = ?1")?;
    let gone: Option<Option<i64>> = statement.query_row([id], |row| row.get(0)).optional()?;
    let error = match gone {
        Some(None) if !is_restorable(c, id)? => {
            Error::not_found(format!("Record {id} was deleted for ever, or too long ago; nothing is left of it."))
        }
        Some(Some(into)) => Error::not_found(format!("Record {id} was merged into record {into}; read that one."))
            .with_data("merged_into", into),
        Some(None) => Error::not_found(format!(
            "Record {id} was deleted; `nudge.records.restore` brings it back for {KEPT_DAYS} days."
        )),
        None => Error::not_found("There is no record of this number; `nudge.records.search` finds by words."),
    };
    Err(error.into())
}

/// Finds the record of the same project and kind whose text is the same except for case, spaces and punctuation.
pub fn find_same(
    c: &Connection,
    project: i64,
    kind: Kind,
    title: &str,
    body: &str,
) -> Result<Option<i64>, TransactionFailure> {
    let mut statement = c.prepare_cached(
        "SELECT id FROM record WHERE project_id = ?1 AND kind = ?2 AND same = ?3 ORDER BY id DESC LIMIT 1",
    )?;
    Ok(statement.query_row(params![project, kind, same::of_record(title, body)], |row| row.get(0)).optional()?)
}

/// Finds the newest other record with the same project, kind and title. Returns its number and title.
pub fn titled_alike(c: &Connection, id: i64, draft: &RecordDraft) -> Result<Option<(i64, String)>, TransactionFailure> {
    let title = same::fold_text(&draft.title);
    // The column `same` holds the folded title, a line break, and the folded body.
    let mut statement = c.prepare_cached(
        "SELECT id, title FROM record WHERE project_id = ?1 AND kind = ?2 AND same >= ?3 || char(10)
           AND same < ?3 || char(11) AND id <> ?4 ORDER BY id DESC LIMIT 1",
    )?;
    let row = statement.query_row(params![draft.project, draft.kind, title, id], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(row.optional()?)
}

/// The filters of a list; `None` means no filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordFilter {
    /// The project.
    pub project: Option<i64>,
    /// The kind.
    pub kind: Option<Kind>,
    /// The status.
    pub status: Option<Status>,
}

/// A record in a list, without its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordEntry {
    /// The number.
    pub id: i64,
    /// The name of the record's project.
    pub project: String,
    /// The kind.
    pub kind: Kind,
    /// The title.
    pub title: String,
    /// The status.
    pub status: Status,
    /// The time of the last change, RFC 3339.
    pub updated_at: String,
}

/// Lists records by their last change, the newest first. With `before`, the list begins after that record. Also returns
/// the number of all matching records.
pub fn list_records(
    c: &Connection,
    filter: RecordFilter,
    limit: usize,
    before: Option<(&str, i64)>,
) -> Result<(Vec<RecordEntry>, i64), TransactionFailure> {
    let (mut wheres, mut values): (Vec<&str>, Vec<&dyn ToSql>) = (vec!["1"], Vec::new());
    if let Some(project) = &filter.project {
        wheres.push("r.project_id = ?");
        values.push(project);
    }
    if let Some(kind) = &filter.kind {
        wheres.push("r.kind = ?");
        values.push(kind);
    }
    if let Some(status) = &filter.status {
        wheres.push("r.status = ?");
        values.push(status);
    }
    let total: i64 = c
        .prepare_cached(&format!("SELECT count(*) {FROM} WHERE {}", wheres.join(" AND ")))?
        .query_row(&values[..], |row| row.get(0))?;
    if let Some((time, id)) = &before {
        wheres.push("(r.updated_at, r.id) < (?, ?)");
        values.extend([time as &dyn ToSql, id]);
    }
    let limit = to_column(limit);
    values.push(&limit);
    let sql = format!(
        "SELECT r.id, p.name, r.kind, r.title, r.status, r.updated_at {FROM} WHERE {} ORDER BY r.updated_at DESC, r.id DESC LIMIT ?",
        wheres.join(" AND ")
    );
    let mut statement = c.prepare_cached(&sql)?;
    let entries = statement.query_map(&values[..], |row| {
        Ok(RecordEntry {
            id: row.get(0)?,
            project: row.get(1)?,
            kind: row.get(2)?,
            title: row.get(3)?,
            status: row.get(4)?,
            updated_at: row.get(5)?,
        })
    })?;
    Ok((entries.collect::<Result<_, _>>()?, total))
}

/// The content of a record to write.
#[derive(Debug, Clone)]
pub struct RecordDraft {
    /// The project.
    pub project: i64,
    /// The kind.
    pub kind: Kind,
    /// The title.
    pub title: String,
    /// The body.
    pub body: String,
    /// The status.
    pub status: Status,
}

/// Says who makes a change, in which way and when.
#[derive(Debug, Clone)]
pub struct RecordAuthor {
    /// The client's name; may be empty.
    pub by: String,
    /// The way by which the client makes the change.
    pub origin: Origin,
    /// The time of the change, RFC 3339.
    pub now: String,
    /// The time by the clock of this machine, for the change log. An imported record brings its own time in `now`.
    pub logged_at: Millis,
}

/// Returns the next number of a change. Each change of any record gets a higher number.
fn next_seq(c: &Connection) -> Result<i64, TransactionFailure> {
    let sql = "SELECT 1 + max((SELECT coalesce(max(seq), 0) FROM record), (SELECT coalesce(max(seq), 0) FROM gone))";
    Ok(c.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Inserts a record and returns its number.
pub fn insert_record(c: &Connection, draft: &RecordDraft, author: &RecordAuthor) -> Result<i64, TransactionFailure> {
    let RecordDraft { project, kind, title, body, status } = draft;
    let mut statement = c.prepare_cached(
        "INSERT INTO record(project_id, kind, title, body, same, status, by, origin, created_at, updated_at, seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)",
    )?;
    let same = same::of_record(title, body);
    let RecordAuthor { by: author_name, origin, now, .. } = author;
    let id =
        statement.insert(params![project, kind, title, body, same, status, author_name, origin, now, next_seq(c)?])?;
    log_record(c, id, &FIELDS, author)?;
    Ok(id)
}

/// The fields of a record in the change log. The objects are the records, named by their numbers.
const FIELDS: [&str; 5] = ["project", "kind", "title", "body", "status"];

/// Logs a change of these fields; without fields, that the record was deleted.
fn log_record(c: &Connection, id: i64, fields: &[&str], author: &RecordAuthor) -> Result<(), TransactionFailure> {
    let change = ObjectChange {
        name: &id.to_string(),
        author: &author.by,
        now: author.logged_at,
        fields,
        is_gone: fields.is_empty(),
    };
    log_change(c, &change)
}

/// Lists the fields in which a draft differs from the stored record.
fn list_changed(c: &Connection, old: &Record, draft: &RecordDraft) -> Result<Vec<&'static str>, TransactionFailure> {
    let sql = "SELECT name FROM project WHERE id = ?1";
    let project: String = c.prepare_cached(sql)?.query_row([draft.project], |row| row.get(0))?;
    let differs = [
        project != old.project,
        draft.kind != old.kind,
        draft.title != old.title,
        draft.body != old.body,
        draft.status != old.status,
    ];
    Ok(FIELDS.into_iter().zip(differs).filter_map(|(field, differs)| differs.then_some(field)).collect())
}

/// Sets the time when an imported record was created.
pub fn set_created(c: &Connection, id: i64, time: &str) -> Result<(), TransactionFailure> {
    c.prepare_cached("UPDATE record SET created_at = ?2 WHERE id = ?1")?.execute(params![id, time])?;
    Ok(())
}

/// Stores the content of a record before a change as a revision. `why` is `update`, `dedup`, `merge` or `delete`.
fn keep_revision(c: &Connection, old: &Record, why: &str, author: &RecordAuthor) -> Result<(), TransactionFailure> {
    let Record { id, project, kind, title, body, status, version, origin, created_at, .. } = old;
    c.prepare_cached(
        "INSERT OR REPLACE INTO revision(record_id, version, at, by, why, project, kind, title, body, status, origin, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![id, version, author.now, author.by, why, project, kind, title, body, status, origin, created_at])?;
    let oldest = version - MAX_REVISIONS;
    c.prepare_cached("DELETE FROM revision WHERE record_id = ?1 AND version <= ?2")?.execute([id, &oldest])?;
    Ok(())
}

/// Drops the oldest revision of a record, but never the only one.
pub fn drop_oldest_revision(c: &Connection, id: i64) -> Result<(), TransactionFailure> {
    let sql = "DELETE FROM revision WHERE record_id = ?1 AND version = (SELECT min(version) FROM revision WHERE record_id = ?1)
               AND version < (SELECT max(version) FROM revision WHERE record_id = ?1)";
    c.prepare_cached(sql)?.execute([id])?;
    Ok(())
}

/// Replaces the content of a record, and keeps the old content as a revision.
pub fn update_record(
    c: &Connection,
    old: &Record,
    draft: &RecordDraft,
    why: &str,
    author: &RecordAuthor,
) -> Result<(), TransactionFailure> {
    keep_revision(c, old, why, author)?;
    let RecordDraft { project, kind, title, body, status } = draft;
    let same = same::of_record(title, body);
    c.prepare_cached(
        "UPDATE record SET project_id = ?2, kind = ?3, title = ?4, body = ?5, same = ?6, status = ?7, version = version + 1,
           by = ?8, updated_at = ?9, seq = ?10 WHERE id = ?1",
    )?
    .execute(params![old.id, project, kind, title, body, same, status, author.by, author.now, next_seq(c)?])?;
    if old.title != *title || old.body != *body {
        meaning::drop_of(c, old.id)?;
    }
    let changed = list_changed(c, old, draft)?;
    if changed.is_empty() { Ok(()) } else { log_record(c, old.id, &changed, author) }
}

/// Deletes a record; its content stays as a revision for 30 days. `into` is the record that it was merged into.
pub fn delete_record(
    c: &Connection,
    old: &Record,
    into: Option<i64>,
    author: &RecordAuthor,
) -> Result<(), TransactionFailure> {
    keep_revision(c, old, if into.is_some() { "merge" } else { "delete" }, author)?;
    let seq = next_seq(c)?;
    c.prepare_cached("DELETE FROM record WHERE id = ?1")?.execute([old.id])?;
    c.prepare_cached("INSERT OR REPLACE INTO gone(seq, record_id, into_id, at) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![seq, old.id, into, author.now])?;
    log_record(c, old.id, &[], author)
}

/// Returns true when a record was deleted, was not merged, and can be restored.
pub fn is_restorable(c: &Connection, id: i64) -> Result<bool, TransactionFailure> {
    let sql = "SELECT 1 FROM gone WHERE record_id = ?1 AND into_id IS NULL
               AND EXISTS (SELECT 1 FROM revision WHERE record_id = ?1)";
    Ok(c.prepare_cached(sql)?.exists([id])?)
}

/// Deletes the revisions of a deleted record at once. Marks the file for compaction, which removes the bytes from the
/// disk.
pub fn forget_one(tx: &Transaction<'_>, id: i64) -> Result<(), TransactionFailure> {
    tx.prepare_cached("DELETE FROM revision WHERE record_id = ?1")?.execute([id])?;
    forget_answers(tx, id)?;
    mark_compaction(tx)
}

/// Returns the revisions of a record, the newest first.
pub fn read_revisions(c: &Connection, id: i64) -> Result<Vec<RecordRevision>, TransactionFailure> {
    let mut statement = c.prepare_cached(
        "SELECT version, at, by, why, project, kind, title, body, status FROM revision WHERE record_id = ?1
         ORDER BY version DESC",
    )?;
    let rows = statement.query_map([id], |row| {
        Ok(RecordRevision {
            version: row.get(0)?,
            at: row.get(1)?,
            by: row.get(2)?,
            why: row.get(3)?,
            project: row.get(4)?,
            kind: row.get(5)?,
            title: row.get(6)?,
            body: row.get(7)?,
            status: row.get(8)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Restores a deleted record under its old number, with the content of its newest revision.
pub fn revive_record(
    c: &Connection,
    id: i64,
    project: i64,
    revision: &RecordRevision,
    author: &RecordAuthor,
) -> Result<(), TransactionFailure> {
    let RecordRevision { version, kind, title, body, status, .. } = revision;
    // No version number is ever used twice, so the restored record gets a new one.
    let (origin, created_at, last): (Origin, String, i64) = c
        .prepare_cached(
            "SELECT origin, created_at, (SELECT max(version) FROM revision WHERE record_id = ?1) FROM revision
             WHERE record_id = ?1 AND version = ?2",
        )?
        .query_row([id, *version], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (same, seq) = (same::of_record(title, body), next_seq(c)?);
    c.prepare_cached(
        "INSERT INTO record(id, project_id, kind, title, body, same, status, version, by, origin, created_at, updated_at, seq)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        id,
        project,
        kind,
        title,
        body,
        same,
        status,
        last + 1,
        author.by,
        origin,
        created_at,
        author.now,
        seq
    ])?;
    c.prepare_cached("DELETE FROM gone WHERE record_id = ?1")?.execute([id])?;
    log_record(c, id, &FIELDS, author)
}

/// Deletes the revisions of records that were deleted before `limit`, the time 30 days ago.
pub fn forget_deleted(c: &Connection, limit: &str) -> Result<usize, TransactionFailure> {
    c.prepare_cached(
        "DELETE FROM revision WHERE record_id IN (SELECT record_id FROM gone WHERE at < ?1 AND into_id IS NULL)",
    )?
    .execute([limit])
    .map_err(TransactionFailure::from)
}

/// Returns the numbers of a project's records. The query names the small index `record_list`, because `SQLite` might
/// choose the other index by project, which contains the texts.
pub fn of_project(c: &Connection, project: i64) -> Result<HashSet<i64, RandomState>, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT id FROM record INDEXED BY record_list WHERE project_id = ?1")?;
    Ok(statement.query_map([project], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Moves all records of a project to another project, and returns their number. The content of the records is the same,
/// so their versions stay.
pub fn move_all(c: &Connection, from: i64, into: i64) -> Result<usize, TransactionFailure> {
    let last = next_seq(c)? - 1;
    // The same number is added to each change number. So the change numbers stay unique, and become higher than all
    // others.
    let sql = "UPDATE record SET project_id = ?2, seq = seq + ?3 WHERE project_id = ?1";
    Ok(c.prepare_cached(sql)?.execute([from, into, last])?)
}

/// Counts the records of a project. The query names the small index for the reason given at `of_project`.
pub fn count_in_project(c: &Connection, project: i64) -> Result<i64, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT count(*) FROM record INDEXED BY record_list WHERE project_id = ?1")?;
    Ok(statement.query_row([project], |row| row.get(0))?)
}
