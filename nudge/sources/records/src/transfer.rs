//! Moves records out of the database and into it: export, import, backup and recovery.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nudge_core::clock::rfc3339;
use nudge_core::context::ContextSpec;
use nudge_core::error::{Error, Result};
use nudge_core::service::DocumentPages;
use nudge_core::wire;
use nudge_storage::rusqlite::{Connection, Transaction};
use nudge_storage::{Db, TransactionFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::incoming::ReadRecord;
use crate::record::{self, Kind, Origin, Status};
use crate::rows::{self, RecordAuthor, RecordDraft};
use crate::write::{MAX_RECORDS, SeenText, SimilarRecord, WriteRules};
use crate::{meaning, project};

/// The name of the export format.
pub const FORMAT: &str = "nudge-records/1";
/// The names of the param and the members with which an export is read page by page.
pub static PAGES: DocumentPages = DocumentPages { cursor: "after", list: "records", next: "next" };
/// A page of an export ends when its texts have this many bytes.
const PAGE_BYTES: usize = 8 << 20;
/// The most bytes of texts in an export that is one answer. As JSON, most such exports stay below 128 MiB, which is the
/// longest answer that a client reads.
const MAX_WHOLE_BYTES: usize = 64 << 20;
/// The estimated bytes of a record in an export, besides its texts.
const RECORD_BYTES: usize = 200;
/// The most items in each list of an answer.
const MAX_NAMED: usize = 100;

/// Params of `nudge.records.export`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordExportParams {
    /// Absent: every project.
    #[serde(default, deserialize_with = "wire::given")]
    pub project: Option<String>,
    /// 0 for the first page, then the `next` of the last answer; a page has about 8 MiB. Absent: all in one answer,
    /// which is refused above 64 MiB.
    #[serde(default, deserialize_with = "wire::given")]
    pub after: Option<i64>,
}

/// Result of `nudge.records.export`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RecordExport {
    /// Always `nudge-records/1`.
    pub format: String,
    /// The records, the oldest first.
    pub records: Vec<MovedRecord>,
    /// The value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// A record in an export or import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedRecord {
    /// The name of the record's project.
    pub project: String,
    /// The kind.
    pub kind: Kind,
    /// The title.
    pub title: String,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// The status.
    pub status: Status,
    /// The time when the record was created.
    pub created_at: String,
    /// The time when the record was last changed.
    pub updated_at: String,
}

/// Params of `nudge.records.import`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordImportParams {
    /// An export, a backup, or the upstream plugin's `dude.db`, which is only read.
    pub file: String,
    /// The base of a relative path.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.import`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[allow(clippy::struct_field_names, reason = "it is the word for what became of them, beside `skipped`")]
pub struct RecordImport {
    /// The number of new records.
    pub imported: usize,
    /// The number of records that the database already has with the same words.
    pub skipped: usize,
    /// The new records that are similar to another record of their project and kind. With a model, the first 20 new
    /// records are compared by meaning; all others are compared by title. At most 100.
    pub similar: Vec<AlikeRecord>,
    /// The number of further new records that are similar to another.
    pub omitted: usize,
    /// The number of entries that cannot be stored as records.
    pub refused: usize,
    /// The reasons for the first 100 entries that cannot be stored. A reason names the position in the file and no
    /// text, because the text may be anything.
    pub errors: Vec<RefusedRecord>,
}

/// A new record that is similar to another record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlikeRecord {
    /// The number.
    pub id: i64,
    /// The title.
    pub title: String,
    /// The nearest other record, or the newest other record with the same title.
    pub like: SimilarRecord,
}

/// An entry that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedRecord {
    /// The position of the entry in the file, from 1.
    pub at: usize,
    /// The reason.
    pub reason: String,
}

/// Params of `nudge.records.backup`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordBackupParams {
    /// The file to write, which may not be there yet.
    pub file: String,
    /// The base of a relative path.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackedUp {
    /// The path of the backup.
    pub file: String,
    /// The size of the backup in bytes.
    pub bytes: u64,
}

/// Params of `nudge.records.recover`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordRecoverParams {
    /// A backup: one of those in `backups`, beside the database, or one that `nudge.records.backup` has made.
    pub file: String,
    /// The base of a relative path.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.recover`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordRecovery {
    /// The path of the backup.
    pub file: String,
    /// The number of records after the recovery.
    pub records: i64,
    /// The time of the newest change in the recovered records, RFC 3339; absent without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The path where the replaced database is kept; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
}

/// Resolves a path relative to the caller's folder.
///
/// # Errors
/// `E_INVALID` for a relative path if the caller's folder is unknown.
pub fn resolve_path(file: &str, context: ContextSpec) -> Result<PathBuf> {
    let context = context.build()?;
    let path = context.cwd().map_or_else(|| PathBuf::from(file), |cwd| Path::new(cwd).join(file));
    let refused = || {
        Error::invalid("`file` must be an absolute path, or come with `context.cwd`.")
            .about("file")
            .about("context.cwd")
    };
    if path.is_absolute() && !file.is_empty() { Ok(path) } else { Err(refused()) }
}

/// Reads the records of one project or of all projects. With `after`, reads the page after that number; without
/// `after`, reads all records for one answer.
///
/// # Errors
/// `E_INVALID` when all records are too large for one answer.
pub fn export_records(
    c: &Connection,
    project: Option<i64>,
    after: Option<i64>,
) -> Result<RecordExport, TransactionFailure> {
    let mut statement = c.prepare(
        "SELECT p.name, r.kind, r.title, r.body, r.status, r.created_at, r.updated_at, r.id
         FROM record r JOIN project p ON p.id = r.project_id
         WHERE r.id > ?2 AND (?1 IS NULL OR r.project_id = ?1) ORDER BY r.id",
    )?;
    let mut rows = statement.query((project, after.unwrap_or(i64::MIN)))?;
    let (mut exported, mut bytes, mut last) = (RecordExport { format: FORMAT.into(), ..RecordExport::default() }, 0, 0);
    while let Some(row) = rows.next()? {
        if after.is_some() && bytes >= PAGE_BYTES {
            exported.next = Some(last);
            break;
        }
        let record = MovedRecord {
            project: row.get(0)?,
            kind: row.get(1)?,
            title: row.get(2)?,
            body: row.get(3)?,
            status: row.get(4)?,
            created_at: row.get(5)?,
            updated_at: row.get(6)?,
        };
        last = row.get(7)?;
        bytes += record.bytes();
        if after.is_none() && bytes > MAX_WHOLE_BYTES {
            let message = "The export has more than 64 MiB, which no single answer may have; run `nudge records export`, \
                           or ask for its pages, with `after` 0 for the first.";
            return Err(Error::invalid(message).about("after").into());
        }
        exported.records.push(record);
    }
    Ok(exported)
}

/// The records of an import that are written in one transaction.
#[derive(Clone, Copy)]
pub struct ImportBatch<'a> {
    /// The position of the batch's first record in the file, from 0.
    pub begin: usize,
    pub records: &'a [ReadRecord],
    /// The results of the comparison before the write, by the record's position in the batch.
    pub seen: &'a HashMap<usize, SeenText>,
}

/// Writes a batch of records, and adds the counts to `done`.
///
/// # Errors
/// `E_QUOTA`. Then `done` counts all records before the first record without room.
pub fn import_batch(
    tx: &Transaction<'_>,
    batch: &ImportBatch<'_>,
    rules: &WriteRules<'_>,
    done: &mut RecordImport,
) -> Result<(), TransactionFailure> {
    for (offset, record) in batch.records.iter().enumerate() {
        let refused = match record {
            Err(reason) => Some(reason.clone()),
            Ok(record) => match import_one(tx, record, rules)? {
                Ok(Some(new)) => {
                    done.imported += 1;
                    done.take_alike(tx, new, batch.seen.get(&offset))?;
                    None
                }
                Ok(None) => {
                    done.skipped += 1;
                    None
                }
                Err(error) => Some(error.message().to_owned()),
            },
        };
        if let Some(reason) = refused {
            done.refused += 1;
            if done.errors.len() < MAX_NAMED {
                done.errors.push(RefusedRecord { at: batch.begin + offset + 1, reason });
            }
        }
    }
    Ok(())
}

impl RecordImport {
    /// Returns the number of entries that were imported, skipped or refused.
    pub fn count(&self) -> usize {
        self.imported + self.skipped + self.refused
    }

    /// Stores the vectors of a new record. If another record is similar, adds the new record to the list of similar
    /// ones.
    fn take_alike(
        &mut self,
        tx: &Transaction<'_>,
        new: (i64, RecordDraft),
        seen: Option<&SeenText>,
    ) -> Result<(), TransactionFailure> {
        let (id, draft) = new;
        if let Some((model, vectors)) = seen.and_then(|seen| seen.vectors.as_ref()) {
            meaning::keep_vectors(tx, id, model, vectors)?;
        }
        let near = seen.and_then(|seen| seen.near.first());
        let near = near
            .map(|(near, distance)| Ok::<_, TransactionFailure>((rows::get_record(tx, *near)?, *distance)))
            .transpose()?;
        let like = match near {
            Some((near, distance)) => Some(SimilarRecord { id: near.id, title: near.title, distance: Some(distance) }),
            None => rows::titled_alike(tx, id, &draft)?.map(|(id, title)| SimilarRecord { id, title, distance: None }),
        };
        match like {
            Some(like) if self.similar.len() < MAX_NAMED => {
                self.similar.push(AlikeRecord { id, title: draft.title, like });
            }
            Some(_) => self.omitted += 1,
            None => {}
        }
        Ok(())
    }
}

impl MovedRecord {
    /// Estimates the record's size in an export, in bytes.
    pub fn bytes(&self) -> usize {
        self.project.len() + self.title.len() + self.body.len() + RECORD_BYTES
    }

    /// Returns a valid title. An upstream title may be too long or have several lines; then it is shortened to one
    /// line.
    pub fn to_title(&self) -> String {
        // A valid title stays unchanged.
        if record::is_title(&self.title) {
            return self.title.clone();
        }
        let line = self.title.split_whitespace().collect::<Vec<_>>().join(" ");
        nudge_core::text::clip_text(&line, record::MAX_TITLE_CHARS)
    }
}

/// Imports one record. Returns the record if it is new, or the reason why it cannot be stored.
///
/// # Errors
/// `E_QUOTA`, which ends the import.
fn import_one(
    tx: &Transaction<'_>,
    moved: &MovedRecord,
    rules: &WriteRules<'_>,
) -> Result<Result<Option<(i64, RecordDraft)>>, TransactionFailure> {
    let WriteRules { author: RecordAuthor { by: author_name, now, logged_at, .. }, room, .. } = rules;
    let MovedRecord { project, kind, body, status, created_at, updated_at, .. } = moved;
    let title = moved.to_title();
    if let Err(error) = record::check_texts(&title, Some(body)).and_then(|()| project::check_name(project).map(drop)) {
        return Ok(Err(error));
    }
    let id = match project::by_name(tx, project)? {
        Some(id) => id,
        None => project::insert_project(tx, project, now)?,
    };
    if rows::find_same(tx, id, *kind, &title, body)?.is_some() {
        return Ok(Ok(None));
    }
    if rows::count_in_project(tx, id)? >= MAX_RECORDS {
        return Ok(Err(Error::invalid("Its project has 10,000 records, which is the most.")));
    }
    room.require_room(tx, title.len() + body.len())?;
    let parse_time =
        |text: &str| rfc3339::parse(text).or_else(|| rfc3339::parse(&format!("{}Z", text.replacen(' ', "T", 1))));
    let time = |text: &str| parse_time(text).map_or_else(|| now.clone(), rfc3339::format_time);
    let draft = RecordDraft { project: id, kind: *kind, title, body: body.clone(), status: *status };
    let author =
        RecordAuthor { by: author_name.clone(), origin: Origin::Import, now: time(updated_at), logged_at: *logged_at };
    let new = rows::insert_record(tx, &draft, &author)?;
    rows::set_created(tx, new, &time(created_at))?;
    Ok(Ok(Some((new, draft))))
}

/// Writes a copy of the database to a new file.
pub fn write_backup(db: &Db, to: &Path) -> Result<BackedUp> {
    let bytes = db.backup(to)?;
    Ok(BackedUp { file: to.display().to_string(), bytes })
}
