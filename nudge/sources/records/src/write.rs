//! Makes the changes of records that a caller can request, each in one transaction.

use nudge_core::clock::{Clock, rfc3339};
use nudge_core::context::{Context, ContextSpec};
use nudge_core::error::{Error, Result};
use nudge_core::service::Caller;
use nudge_core::wire;
use nudge_storage::TransactionFailure;
use nudge_storage::rusqlite::Transaction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meaning;
use crate::project::{self, ProjectLocation};
use crate::record::{self, Kind, MAX_BODY_BYTES, Origin, Record, Status};
use crate::room::StoreRoom;
use crate::rows::{self, RecordAuthor, RecordDraft};

/// The most records of a project.
pub const MAX_RECORDS: i64 = 10_000;
/// The most bytes of all bodies together in an answer about near duplicates, because an agent cannot compare more. Each
/// body keeps at least `MIN_NEAR_BYTES`.
const MAX_NEAR_BYTES: usize = 16 << 10;
const MIN_NEAR_BYTES: usize = 1_000;
/// The most records that one merge takes.
const MAX_MERGED: usize = 20;
/// The beginning of the caller name that Nudge's own page uses.
const PAGE: &str = "nudge-page/";
/// The caller name that Nudge's hook uses.
const HOOK: &str = "nudge-hook";

/// The treatment of a near duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DedupChoice {
    /// Nothing is written, and the caller says which it is.
    Ask,
    /// The nearest is changed.
    Merge,
}

/// Params of `nudge.records.upsert`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordUpsertParams {
    /// The record to change; absent fields stay. Absent: a new one.
    #[serde(default, deserialize_with = "wire::given")]
    pub id: Option<i64>,
    /// issue: a bug fixed; spec: a plan; arch: a decision; update: a feature. Needed for a new one.
    #[serde(default, deserialize_with = "wire::given")]
    pub kind: Option<Kind>,
    /// A line. Needed for a new one.
    #[serde(default, deserialize_with = "wire::given")]
    pub title: Option<String>,
    /// The event, its cause and its solution; 32 KiB.
    #[serde(default, deserialize_with = "wire::given")]
    pub body: Option<String>,
    /// Absent: open.
    #[serde(default, deserialize_with = "wire::given")]
    pub status: Option<Status>,
    /// Absent: that of the context.
    #[serde(default, deserialize_with = "wire::given")]
    pub project: Option<String>,
    /// Begin the project named, which has no record yet.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub create_project: bool,
    /// It is none of those that are like it.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub distinct: bool,
    /// For a near duplicate: `ask`, or `merge` to change the nearest. Absent: the setting.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub dedup: Option<DedupChoice>,
    /// Refuse if the record has another version by now.
    #[serde(default, deserialize_with = "wire::given")]
    pub if_match_version: Option<i64>,
    /// Your context.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Result of `nudge.records.upsert`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordUpsert {
    /// The record after the change.
    pub record: Record,
    /// Is true if the record is new.
    pub created: bool,
    /// Is true when an existing record with the same text was updated instead.
    pub deduplicated: bool,
    /// The version before the change; absent for a new record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<i64>,
    /// Other records that are similar to this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub similar: Vec<SimilarRecord>,
    /// The reasons why there may be further similar records, for the user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
}

/// A record that is similar to the saved one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimilarRecord {
    /// The number.
    pub id: i64,
    /// The title.
    pub title: String,
    /// 1 minus the cosine of the two vectors; 0 for texts with the same meaning. Absent when only the titles were
    /// compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
}

/// The answer to an upsert of a near duplicate: nothing was written, and the caller chooses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnwrittenUpsert {
    /// Always false.
    pub written: bool,
    /// The sentence that tells the caller how to choose.
    pub message: &'static str,
    /// The records that say nearly the same, nearest first.
    pub near: Vec<NearRecord>,
}

/// A record that says nearly the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearRecord {
    /// 1 minus the cosine of the two vectors; 0 for texts with the same meaning.
    pub distance: f64,
    /// The record.
    pub record: Record,
    /// Is true if the body was cut; `nudge.records.get` returns all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl UnwrittenUpsert {
    /// Makes the answer with these records. The first bodies stay whole while there is room, and later bodies are cut.
    pub fn new(mut near: Vec<NearRecord>) -> Self {
        let mut room = MAX_NEAR_BYTES;
        for NearRecord { record, cut, .. } in &mut near {
            *cut = record.cut_body(room.max(MIN_NEAR_BYTES));
            room = room.saturating_sub(record.body.len());
        }
        let message = "Nothing was written, as these say nearly the same. Call again with `id` to change one of them, or \
                       with `distinct: true` if this is another matter.";
        Self { written: false, message, near }
    }
}

/// The results of comparing a text with the stored records before it is saved: its vectors, and the records near it.
#[derive(Debug, Default)]
pub struct SeenText {
    /// The model, and a vector for each part of the text; `None` without a model.
    pub vectors: Option<(String, Vec<Vec<f32>>)>,
    /// The records of the same project and kind within the distance [`ALIKE`], the nearest first, with their distances.
    pub near: Vec<(i64, f64)>,
    /// The reason why there may be further similar records.
    pub degraded: Option<String>,
}

/// The greatest distance of two records that may say the same.
pub const NEARLY_THE_SAME: f64 = 0.15;
/// The greatest distance of two similar records.
pub const ALIKE: f64 = 0.3;

/// Params of `nudge.records.delete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordDeleteParams {
    /// The record.
    pub id: i64,
    /// Remove all of it and of its history; also of a deleted one.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub forever: bool,
}

/// Result of `nudge.records.delete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecordDeletion {
    /// Always true; a refused deletion is an error instead.
    #[allow(clippy::struct_field_names, reason = "the name on the wire")]
    pub deleted: bool,
    /// The number of the deleted record.
    pub id: i64,
    /// Is true if the record can no longer be restored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub forever: bool,
    /// Is true if the database file still contains the text. A later compaction removes the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// Params of `nudge.records.restore`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordRestoreParams {
    /// The record, which may be deleted.
    pub id: i64,
    /// The version that it is to be again. Absent: the last one.
    #[serde(default, deserialize_with = "wire::given")]
    pub version: Option<i64>,
}

/// Params of `nudge.records.merge`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordMergeParams {
    /// The record that stays.
    pub into: i64,
    /// Records to merge into it, at most 20.
    pub ids: Vec<i64>,
}

/// Makes the author of a change from the caller and the current time.
pub fn to_author(caller: Caller<'_>, clock: &dyn Clock) -> RecordAuthor {
    let origin = match caller.name {
        _ if caller.agent => Origin::Tool,
        name if name.starts_with(PAGE) => Origin::Web,
        name if name.starts_with(HOOK) => Origin::Hook,
        _ => Origin::Cli,
    };
    RecordAuthor {
        by: caller.name.to_owned(),
        origin,
        now: rfc3339::format_time(clock.now()),
        logged_at: clock.plausible_time(),
    }
}

/// The author of a change, the clock, and the limit of the room.
pub struct WriteRules<'a> {
    pub author: &'a RecordAuthor,
    pub clock: &'a dyn Clock,
    pub room: StoreRoom,
}

impl WriteRules<'_> {
    /// Replaces the content of a record. The change needs room only if the text grows.
    ///
    /// # Errors
    /// `E_QUOTA`.
    fn update_record(
        &self,
        tx: &Transaction<'_>,
        old: &Record,
        draft: &RecordDraft,
        why: &str,
    ) -> Result<(), TransactionFailure> {
        let more = (draft.title.len() + draft.body.len()).saturating_sub(old.title.len() + old.body.len());
        if more > 0 {
            self.room.require_room(tx, more)?;
        }
        rows::update_record(tx, old, draft, why, self.author)?;
        self.room.bound_revisions(tx, old.id)
    }
}

/// An upsert whose params were checked as far as that is possible without the database.
#[derive(Debug)]
pub struct CheckedUpsert {
    pub params: RecordUpsertParams,
    pub here: Option<ProjectLocation>,
    /// The reason that the revision stores: `update` or `dedup`.
    why: &'static str,
}

impl RecordUpsertParams {
    /// Checks all params that can be checked without the database.
    ///
    /// # Errors
    /// `E_INVALID`, `E_SECRET_REJECTED`.
    pub fn into_checked(mut self) -> Result<CheckedUpsert> {
        let context: Context = std::mem::take(&mut self.context).build()?;
        let missing = |field: &str| {
            Error::invalid(format!("A new record needs `{field}`; give it, or `id` of the one to change."))
                .about(field)
                .about("id")
        };
        if self.id.is_none() {
            if self.kind.is_none() {
                return Err(missing("kind"));
            }
            let title = self.title.as_deref().ok_or_else(|| missing("title"))?;
            record::check_texts(title, self.body.as_deref())?;
            if self.if_match_version.is_some() {
                return Err(Error::invalid(
                    "`if_match_version` says something of the record of an `id`; give that too.",
                )
                .about("if_match_version")
                .about("id"));
            }
        } else {
            // An absent field keeps its old value, which is valid.
            record::check_texts(self.title.as_deref().unwrap_or("x"), self.body.as_deref())?;
        }
        Ok(CheckedUpsert { here: ProjectLocation::from_context(&context), params: self, why: "update" })
    }
}

impl CheckedUpsert {
    /// Writes the record.
    ///
    /// # Errors
    /// `E_NOT_FOUND`, `E_CONFLICT`, `E_QUOTA`, or `E_INVALID` for an unknown project.
    pub fn write(
        &self,
        tx: &Transaction<'_>,
        seen: &SeenText,
        rules: &WriteRules<'_>,
    ) -> Result<RecordUpsert, TransactionFailure> {
        let mut done = match self.params.id {
            Some(id) => self.change_record(tx, id, rules)?,
            None => self.insert_record(tx, rules)?,
        };
        if let Some((model, vectors)) = &seen.vectors {
            meaning::keep_vectors(tx, done.record.id, model, vectors)?;
        }
        // `write` found the existing record without a model, so a missing model needs no note.
        if done.created {
            done.degraded.extend(seen.degraded.clone());
        }
        for (id, distance) in seen.near.iter().filter(|(id, _)| *id != done.record.id) {
            let found = rows::find_record(tx, *id)?;
            done.similar.extend(found.map(|other| SimilarRecord {
                id: *id,
                title: other.title,
                distance: Some(*distance),
            }));
        }
        Ok(done)
    }

    /// Turns this upsert into a change of an existing record that says nearly the same.
    pub fn into_change_of(mut self, id: i64) -> Self {
        self.params.id = Some(id);
        self.why = "dedup";
        self
    }

    fn change_record(
        &self,
        tx: &Transaction<'_>,
        id: i64,
        rules: &WriteRules<'_>,
    ) -> Result<RecordUpsert, TransactionFailure> {
        let RecordUpsertParams { kind, title, body, status, project, create_project, if_match_version, .. } =
            &self.params;
        let old = rows::get_record(tx, id)?;
        if let Some(wanted) = if_match_version.filter(|wanted| *wanted != old.version) {
            let message = format!("Record {id} has version {} by now, not {wanted}; read it again.", old.version);
            return Err(Error::conflict(message).with_data("current_version", old.version).into());
        }
        let project = match project {
            Some(name) => project::for_write(tx, Some(name), *create_project, self.here.as_ref(), rules.clock)?.0,
            None => project_of(tx, &old)?,
        };
        let draft = RecordDraft {
            project,
            kind: kind.unwrap_or(old.kind),
            title: title.clone().unwrap_or_else(|| old.title.clone()),
            body: body.clone().unwrap_or_else(|| old.body.clone()),
            status: status.unwrap_or(old.status),
        };
        let is_in_place = project == project_of(tx, &old)?;
        if !is_in_place {
            need_room(tx, project)?;
            // A change that may also create a project needs room.
            rules.room.require_room(tx, 1)?;
        }
        if is_as(&old, &draft, is_in_place) {
            let previous_version = Some(old.version);
            let deduplicated = self.why == "dedup";
            return Ok(RecordUpsert {
                record: old,
                created: false,
                deduplicated,
                previous_version,
                similar: Vec::new(),
                degraded: Vec::new(),
            });
        }
        rules.update_record(tx, &old, &draft, self.why)?;
        let (record, deduplicated, previous_version) =
            (rows::get_record(tx, id)?, self.why == "dedup", Some(old.version));
        Ok(RecordUpsert {
            record,
            created: false,
            deduplicated,
            previous_version,
            similar: Vec::new(),
            degraded: Vec::new(),
        })
    }

    fn insert_record(&self, tx: &Transaction<'_>, rules: &WriteRules<'_>) -> Result<RecordUpsert, TransactionFailure> {
        let RecordUpsertParams { kind, title, body, status, project, create_project, distinct, .. } = &self.params;
        let (Some(kind), Some(title)) = (*kind, title.clone()) else {
            return Err(Error::invalid("A new record needs `kind` and `title`.").about("kind").about("title").into());
        };
        let (project, _) =
            project::for_write(tx, project.as_deref(), *create_project, self.here.as_ref(), rules.clock)?;
        let body = body.clone().unwrap_or_default();
        let same = if *distinct { None } else { rows::find_same(tx, project, kind, &title, &body)? };
        if let Some(id) = same {
            // The two texts differ only in case, spaces and punctuation, so the new text loses nothing.
            let old = rows::get_record(tx, id)?;
            let draft = RecordDraft { project, kind, title, body, status: status.unwrap_or(old.status) };
            if !is_as(&old, &draft, true) {
                rules.update_record(tx, &old, &draft, "dedup")?;
            }
            let record = rows::get_record(tx, id)?;
            let previous_version = Some(old.version);
            return Ok(RecordUpsert {
                record,
                created: false,
                deduplicated: true,
                previous_version,
                similar: Vec::new(),
                degraded: Vec::new(),
            });
        }
        need_room(tx, project)?;
        let draft = RecordDraft { project, kind, title, body, status: status.unwrap_or(Status::Open) };
        rules.room.require_room(tx, draft.title.len() + draft.body.len())?;
        let record = rows::get_record(tx, rows::insert_record(tx, &draft, rules.author)?)?;
        Ok(RecordUpsert {
            record,
            created: true,
            deduplicated: false,
            previous_version: None,
            similar: Vec::new(),
            degraded: Vec::new(),
        })
    }
}

/// Refuses a new record if its project has `MAX_RECORDS` records already.
fn need_room(tx: &Transaction<'_>, project: i64) -> Result<(), TransactionFailure> {
    if rows::count_in_project(tx, project)? < MAX_RECORDS {
        return Ok(());
    }
    let message = "This project has 10,000 records, which is the most; merge or delete some.";
    Err(Error::quota("records", 10_000, message).into())
}

fn project_of(tx: &Transaction<'_>, old: &Record) -> Result<i64, TransactionFailure> {
    let gone =
        || Error::unavailable("The project of this record is gone; run `nudge records backup`, and report this.");
    Ok(project::by_name(tx, &old.project)?.ok_or_else(gone)?)
}

fn is_as(old: &Record, draft: &RecordDraft, in_its_project: bool) -> bool {
    in_its_project
        && old.kind == draft.kind
        && old.status == draft.status
        && old.title == draft.title
        && old.body == draft.body
}

impl RecordDeleteParams {
    /// Deletes the record.
    pub fn write(&self, tx: &Transaction<'_>, author: &RecordAuthor) -> Result<RecordDeletion, TransactionFailure> {
        let there = rows::find_record(tx, self.id)?;
        if there.is_none() && !(self.forever && rows::is_restorable(tx, self.id)?) {
            // This call makes the error: it says into which record the record was merged, or that the record never
            // existed.
            rows::get_record(tx, self.id)?;
        }
        if let Some(record) = there {
            rows::delete_record(tx, &record, None, author)?;
        }
        if self.forever {
            rows::forget_one(tx, self.id)?;
        }
        Ok(RecordDeletion { deleted: true, id: self.id, forever: self.forever, pending: false })
    }
}

impl RecordRestoreParams {
    /// Restores a deleted record, or an earlier version of an existing record.
    pub fn write(&self, tx: &Transaction<'_>, rules: &WriteRules<'_>) -> Result<Record, TransactionFailure> {
        let there = rows::find_record(tx, self.id)?;
        if there.is_some() && self.version.is_none() {
            let message =
                format!("Record {} is not deleted; give `version` to bring back what it said before.", self.id);
            return Err(Error::invalid(message).about("version").into());
        }
        let revisions = rows::read_revisions(tx, self.id)?;
        let wanted = revisions.iter().find(|revision| self.version.is_none_or(|version| version == revision.version));
        let Some(wanted) = wanted else {
            // This call makes the error: it says into which record the record was merged, or that the record never
            // existed.
            let there = there.map_or_else(|| rows::get_record(tx, self.id), Ok)?;
            let message =
                format!("Record {} has no such earlier version; `get` with `revisions` lists them.", there.id);
            return Err(Error::not_found(message).into());
        };
        let project = match project::by_name(tx, &wanted.project)? {
            Some(id) => id,
            None => project::insert_project(tx, &wanted.project, &rfc3339::format_time(rules.clock.now()))?,
        };
        if there.as_ref().is_none_or(|old| old.project != wanted.project) {
            need_room(tx, project)?;
        }
        if let Some(old) = there {
            let (kind, status) = (wanted.kind, wanted.status);
            let draft = RecordDraft { project, kind, title: wanted.title.clone(), body: wanted.body.clone(), status };
            rules.update_record(tx, &old, &draft, "update")?;
        } else {
            rules.room.require_room(tx, wanted.title.len() + wanted.body.len())?;
            rows::revive_record(tx, self.id, project, wanted, rules.author)?;
        }
        rows::get_record(tx, self.id)
    }
}

impl RecordMergeParams {
    /// Returns the numbers of the records to merge, each once. Refuses an invalid list.
    pub(crate) fn list_others(&self) -> Result<Vec<i64>> {
        let mut ids = self.ids.clone();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() || ids.len() > MAX_MERGED || ids.contains(&self.into) {
            return Err(Error::invalid("`ids` must name 1 to 20 other records than `into`.")
                .about("ids")
                .about("into"));
        }
        Ok(ids)
    }

    /// Appends the text of each other record to the first record, under the other record's title, and deletes the other
    /// records.
    pub fn write(&self, tx: &Transaction<'_>, rules: &WriteRules<'_>) -> Result<Record, TransactionFailure> {
        let ids = self.list_others()?;
        let old = rows::get_record(tx, self.into)?;
        let others = ids.iter().map(|id| rows::get_record(tx, *id)).collect::<Result<Vec<_>, _>>()?;
        let mut body = old.body.clone();
        for other in &others {
            for part in [&other.title, &other.body].into_iter().filter(|part| !part.is_empty()) {
                if !body.is_empty() {
                    body.push_str("\n\n");
                }
                body.push_str(part);
            }
        }
        if body.len() > MAX_BODY_BYTES {
            return Err(Error::invalid("Together they have more than 32 KiB; shorten one, or merge fewer.").into());
        }
        let gone = || Error::unavailable("The project of this record is gone; report this.");
        let project = project::by_name(tx, &old.project)?.ok_or_else(gone)?;
        let draft = RecordDraft { project, kind: old.kind, title: old.title.clone(), body, status: old.status };
        // The texts only move from the other records to the first, so the change needs no room.
        rows::update_record(tx, &old, &draft, "merge", rules.author)?;
        rules.room.bound_revisions(tx, old.id)?;
        for other in &others {
            rows::delete_record(tx, other, Some(old.id), rules.author)?;
        }
        rows::get_record(tx, old.id)
    }
}
