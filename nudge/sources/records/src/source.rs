//! Offers the records as a source.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nudge_core::clock::{Clock, Millis, rfc3339};
use nudge_core::context::Context;
use nudge_core::embed::{ModelProvider, ModelState, TextEmbedder};
use nudge_core::error::{Error, Result};
use nudge_core::once::OnceByKey;
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::settings::{ServeFlag, Setting, SettingKind};
use nudge_core::source::{
    ChangeEvent, ChangeSink, DataDir, Fence, LoggedChange, Source, SourceHost, SourceSpec, SourceWorker, StopFlag,
};
use nudge_core::suggest::{CommandOutcome, OutcomeEffect, SourceOffers, SuggestRequest};
use nudge_core::table::{MethodTable, TableService, serialize_result};
use nudge_storage::rusqlite::Transaction;
use nudge_storage::search::TextIndexCache;
use nudge_storage::{DatabaseOpening, Db, TransactionFailure};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::capture::{ReminderCounts, ReminderMode, TurnTracker};
use crate::join::ProjectJoinParams;
use crate::meaning::{self, RecordMeanings};
use crate::method::{DELETE, RECOVER, SEARCH, TABLE};
use crate::offer;
use crate::project::ProjectLocation;
use crate::room::{MAX_BYTES, StoreRoom};
use crate::rows::{self, KEPT_DAYS, RecordAuthor};
use crate::schema::APP;
use crate::transfer::{self, RecordRecoverParams, RecordRecovery};
use crate::write::{
    DedupChoice, NEARLY_THE_SAME, NearRecord, RecordDeleteParams, RecordDeletion, RecordMergeParams,
    RecordRestoreParams, RecordUpsertParams, UnwrittenUpsert, WriteRules, to_author,
};

/// The environment variable of the upstream specification that limits the records for a prompt.
const LIMIT_VARIABLE: &str = "DUDE_CONTEXT_LIMIT";

/// Registers the records in the list of sources.
pub static SOURCE: SourceSpec = SourceSpec {
    name: "records",
    methods: || TABLE.methods(),
    guide: "What was fixed, decided or planned before: nudge_records_search before you solve it again; nudge_records_upsert when you have.",
    settings: &[
        Setting {
            name: "records.on",
            kind: SettingKind::Switch,
            default: "0",
            flag: ServeFlag::On,
            about: "List the tools of records before there is one",
        },
        Setting {
            name: "records.dedup",
            kind: SettingKind::OneOf(&["ask", "merge"]),
            default: "ask",
            flag: ServeFlag::Value("HOW"),
            about: "A record nearly the same as another: ask the caller, or merge them",
        },
        Setting {
            name: "records.limit",
            kind: SettingKind::Count,
            default: "5",
            flag: ServeFlag::Value("N"),
            about: "Most records that one prompt draws; 0 for none",
        },
        Setting {
            name: MAX_BYTES,
            kind: SettingKind::Count,
            default: "2147483648",
            flag: ServeFlag::Value("BYTES"),
            about: "Most bytes of all records in their database; 0 takes no new one",
        },
        Setting {
            name: "records.capture",
            kind: SettingKind::OneOf(&["remind", "ask", "off"]),
            default: "remind",
            flag: ServeFlag::Value("WHEN"),
            about: "When an agent that did something and saved no record hears of it: with its next prompt, before its turn ends, or never",
        },
    ],
    resources: None,
    list: SEARCH,
    env: &[LIMIT_VARIABLE],
    alone: true,
    commands: &[],
    works: true,
    open: |host| Ok(Arc::new(RecordSource::open(host))),
};

/// The largest file that a call compacts before it answers. All writers wait during a compaction. The worker compacts a
/// larger file later.
const MAX_COMPACTED_AT_ONCE_BYTES: i64 = 64 << 20;
/// The longest time that the worker waits until the model is loaded.
const MODEL_WAIT: Duration = Duration::from_secs(30);

/// The opened source. It opens the database on first use, and creates it on the first write.
pub struct RecordSource {
    clock: Arc<dyn Clock>,
    fence: Arc<dyn Fence>,
    changes: Arc<dyn ChangeSink>,
    data: DataDir,
    is_on: bool,
    /// The treatment of a near duplicate if the caller's params do not say it.
    dedup: DedupChoice,
    /// The most records that are offered for a prompt.
    limit: usize,
    /// The limit of the room on disk for all records together.
    room: StoreRoom,
    turns: Mutex<TurnTracker>,
    models: Arc<dyn ModelProvider>,
    db: OnceLock<Db>,
    meanings: RecordMeanings,
    known: TextIndexCache,
    /// The [epoch](Db::epoch) of the database file that `known` describes.
    epoch: AtomicU64,
    /// The worker that makes vectors and compacts the file.
    worker: SourceWorker,
    written: AtomicU64,
    /// The value of `written` when the worker last found that a compaction is due.
    written_before: AtomicU64,
}

impl RecordSource {
    fn open(host: SourceHost<'_>) -> Self {
        let SourceHost { clock, fence, changes, data, settings, models, .. } = host;
        Self {
            clock,
            fence,
            changes,
            data,
            is_on: settings.is_on("records.on"),
            dedup: if settings.get_text("records.dedup") == "merge" { DedupChoice::Merge } else { DedupChoice::Ask },
            limit: settings.get_count("records.limit"),
            room: StoreRoom::new(settings.get_count(MAX_BYTES)),
            turns: Mutex::new(TurnTracker::new(ReminderMode::from_name(settings.get_text("records.capture")))),
            models,
            db: OnceLock::new(),
            meanings: RecordMeanings::default(),
            known: TextIndexCache::default(),
            epoch: AtomicU64::new(0),
            worker: SourceWorker::default(),
            written: AtomicU64::new(0),
            written_before: AtomicU64::new(0),
        }
    }

    fn new_opening(&self) -> DatabaseOpening<'_> {
        let (clock, fence) = (Arc::clone(&self.clock), Arc::clone(&self.fence));
        DatabaseOpening { clock, fence, ..DatabaseOpening::new(&self.data, &APP) }
    }

    /// Returns the database. Creates it if it does not exist.
    pub(crate) fn open_db(&self) -> Result<&Db> {
        let db = if let Some(db) = self.db.get() {
            db
        } else {
            let db = Db::open(&self.new_opening())?;
            self.db.get_or_init(|| db)
        };
        // A process without a worker may end right after this call, so it makes no backup in the background.
        db.copy_in_background(self.worker.is_running());
        Ok(db)
    }

    /// Returns the database, or `None` if there is no database yet. A read does not create one.
    pub(crate) fn find_db(&self) -> Result<Option<&Db>> {
        if self.db.get().is_none() && !self.new_opening().path().exists() {
            return Ok(None);
        }
        self.open_db().map(Some)
    }

    /// Returns the database for a call that names a record. If there is no database, returns an error and creates none.
    pub(crate) fn with_a_record(&self) -> Result<&Db> {
        let none = || Error::not_found("There is no record of this number; there is none at all yet.");
        self.find_db()?.ok_or_else(none)
    }

    /// Returns the most records that are offered for a prompt. The agent's environment has precedence over the setting.
    pub(crate) fn prompt_limit(&self, context: &Context) -> usize {
        context.env(LIMIT_VARIABLE).and_then(|limit| limit.trim().parse().ok()).unwrap_or(self.limit)
    }

    pub(crate) fn models(&self) -> &dyn ModelProvider {
        &*self.models
    }

    pub(crate) fn meanings(&self) -> &RecordMeanings {
        &self.meanings
    }

    /// Returns the cached facts about the full-text indexes of the open file. Clears the cache first if its facts are
    /// about another file.
    pub(crate) fn known_indexes(&self) -> &TextIndexCache {
        let epoch = self.db.get().map_or(0, Db::epoch);
        if self.epoch.swap(epoch, Ordering::Relaxed) != epoch {
            self.known.forget();
        }
        &self.known
    }

    /// Wakes the worker, which makes vectors.
    pub(crate) fn work_on(&self) {
        self.worker.wake();
    }

    /// Makes the missing vectors. Returns true when no vector is missing any more.
    fn make_vectors(&self, stop: &StopFlag) -> Result<bool> {
        let Some(db) = self.find_db()? else { return Ok(true) };
        let model = match self.models.for_work(MODEL_WAIT, || db.read(meaning::is_any_without))? {
            None => return Ok(true),
            Some(ModelState::Ready(model)) => model,
            Some(_) => return Ok(false),
        };
        while !stop.is_set() {
            if meaning::make_some(db, &*model)? == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes some missing vectors, in a process that has no worker.
    pub(crate) fn make_up_alone(&self, db: &Db, model: &dyn TextEmbedder) -> Result<()> {
        self.worker.stand_in(|| Ok(meaning::make_some(db, model)? == 0))
    }

    /// Returns the part of `nudge.status` that describes the records.
    fn read_status(&self, db: &Db) -> Result<Value> {
        let (stored, unread, full) =
            db.read(|c| Ok((rows::count_all(c)?, meaning::count_without(c)?, self.room.warn_if_full(c)?)))?;
        let ReminderCounts { asked, skipped } = self.turns.lock().tally();
        let mut told = json!({
            "stored": stored,
            "written": self.written.load(Ordering::Relaxed),
            "asked": asked,
            "skipped": skipped,
            "model": self.models.get_loaded().state(),
        });
        if unread > 0 {
            told["without_meaning"] = unread.into();
        }
        if let Some(full) = full {
            told["full"] = full.into();
        }
        // A failed backup makes no call fail, so only the status reports the failure.
        if let Some(failed) = db.backup_failed() {
            told["backup_failed"] = failed.message().into();
        }
        told["file"] = db.path().to_string_lossy().into();
        Ok(told)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Makes a change once for each key, and reports the change.
    fn make_change<T: Serialize>(
        &self,
        caller: Caller<'_>,
        what: &'static str,
        mut write: impl FnMut(&Transaction<'_>) -> Result<(T, Map<String, Value>), TransactionFailure>,
    ) -> Result<Box<RawValue>> {
        let mut detail = Map::new();
        let answer = self.open_db()?.write_once(caller, |tx| {
            let (result, told) = write(tx)?;
            detail = told;
            Ok(result)
        })?;
        if !answer.again {
            self.note_written();
            self.tell_change(caller, what, detail);
        }
        Ok(answer.result)
    }

    /// Counts a change, and wakes the worker, which makes the vectors.
    pub(crate) fn note_written(&self) {
        // The number grows before the worker wakes: the worker does not compact the file while this number grows.
        self.written.fetch_add(1, Ordering::Relaxed);
        self.work_on();
    }

    pub(crate) fn new_rules<'a>(&'a self, author: &'a RecordAuthor) -> WriteRules<'a> {
        WriteRules { author, clock: self.clock(), room: self.room }
    }

    pub(crate) fn tell_change(&self, caller: Caller<'_>, what: &'static str, detail: Map<String, Value>) {
        self.changes.tell_changes(&[ChangeEvent {
            source: SOURCE.name,
            what,
            at: rfc3339::format_time(self.clock.now()),
            by: caller.name.into(),
            touched: Vec::new(),
            detail,
        }]);
    }

    pub(crate) fn upsert_record(&self, caller: Caller<'_>, params: RecordUpsertParams) -> Result<Box<RawValue>> {
        let mut ready = params.into_checked()?;
        if ready.params.id.is_some() {
            self.with_a_record()?;
        }
        let seen = self.compare_upsert(&ready)?;
        if let Some((nearest, _)) = seen.near.first().filter(|(_, distance)| *distance <= NEARLY_THE_SAME) {
            if ready.params.dedup.unwrap_or(self.dedup) == DedupChoice::Ask {
                return self.ask_caller(&seen.near);
            }
            ready = ready.into_change_of(*nearest);
        }
        let author = to_author(caller, self.clock());
        self.make_change(caller, "upsert", |tx| {
            let done = ready.write(tx, &seen, &self.new_rules(&author))?;
            let detail = to_detail(json!({"id": done.record.id, "project": done.record.project}));
            Ok((done, detail))
        })
    }

    /// Makes the answer which says that nearly the same records exist, and that the caller must choose.
    fn ask_caller(&self, near: &[(i64, f64)]) -> Result<Box<RawValue>> {
        let near = near.iter().filter(|(_, distance)| *distance <= NEARLY_THE_SAME);
        let near = self.open_db()?.read(|c| {
            let read = |(id, distance): &(i64, f64)| {
                Ok(NearRecord { distance: *distance, record: rows::get_record(c, *id)?, cut: false })
            };
            near.clone().map(read).collect::<Result<Vec<_>, TransactionFailure>>()
        })?;
        serialize_result(&UnwrittenUpsert::new(near))
    }

    /// Replaces the database, which may be damaged, with a backup.
    pub(crate) fn recover_db(&self, caller: Caller<'_>, params: RecordRecoverParams) -> Result<RecordRecovery> {
        let file = transfer::resolve_path(&params.file, params.context)?;
        let mut replaced = None;
        self.fence.commit(&mut || {
            replaced = nudge_storage::restore_copy(&self.new_opening(), &file)?;
            Ok(())
        })?;
        self.meanings.drop_memory();
        self.known.forget();
        let (records, newest) = self.open_db()?.read(|c| {
            let sql = "SELECT count(*), max(updated_at) FROM record";
            Ok(c.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
        })?;
        self.work_on();
        self.tell_change(caller, "recover", to_detail(json!({"records": records})));
        let replaced = replaced.map(|path| path.display().to_string());
        Ok(RecordRecovery { file: file.display().to_string(), records, newest, replaced })
    }

    pub(crate) fn delete_record(&self, caller: Caller<'_>, params: &RecordDeleteParams) -> Result<Box<RawValue>> {
        self.with_a_record()?;
        let author = to_author(caller, self.clock());
        let done = self
            .make_change(caller, "delete", |tx| Ok((params.write(tx, &author)?, to_detail(json!({"id": params.id})))));
        // A refused deletion compacts too, because its answer says that nothing is left of the record.
        let is_pending = params.forever && self.compact_now()?;
        if is_pending && done.is_ok() {
            return serialize_result(&RecordDeletion { deleted: true, id: params.id, forever: true, pending: true });
        }
        done
    }

    /// Compacts the file if a deletion for ever requires that. Returns true when the file is too large to compact now;
    /// then the worker compacts it later.
    fn compact_now(&self) -> Result<bool> {
        let db = self.open_db()?;
        if !db.is_compaction_due()? {
            return Ok(false);
        }
        if self.worker.is_running() && db.file_bytes()? > MAX_COMPACTED_AT_ONCE_BYTES {
            self.work_on();
            return Ok(true);
        }
        db.compact().map(|()| false)
    }

    /// Compacts the file if that is due and no record was written since the worker's last round. Returns true when no
    /// compaction is due any more.
    fn compact_when_quiet(&self) -> Result<bool> {
        let Some(db) = self.find_db()? else { return Ok(true) };
        if !db.is_compaction_due()? {
            return Ok(true);
        }
        let written = self.written.load(Ordering::Relaxed);
        if self.written_before.swap(written, Ordering::Relaxed) != written {
            return Ok(false);
        }
        db.compact().map(|()| true)
    }

    pub(crate) fn restore_record(&self, caller: Caller<'_>, params: &RecordRestoreParams) -> Result<Box<RawValue>> {
        self.with_a_record()?;
        let author = to_author(caller, self.clock());
        self.make_change(caller, "restore", |tx| {
            let record = params.write(tx, &self.new_rules(&author))?;
            let detail = to_detail(json!({"id": record.id, "project": record.project}));
            Ok((record, detail))
        })
    }

    pub(crate) fn join_projects(&self, caller: Caller<'_>, mut params: ProjectJoinParams) -> Result<Box<RawValue>> {
        let here = ProjectLocation::from_context(&std::mem::take(&mut params.context).build()?);
        self.find_db()?.ok_or_else(|| Error::not_found("There is no record yet, so there is no project."))?;
        self.make_change(caller, "join", |tx| {
            let done = params.write(tx, here.as_ref(), self.clock())?;
            let detail = to_detail(json!({"project": done.project}));
            Ok((done, detail))
        })
    }

    pub(crate) fn merge_records(&self, caller: Caller<'_>, params: &RecordMergeParams) -> Result<Box<RawValue>> {
        params.list_others()?;
        self.with_a_record()?;
        let author = to_author(caller, self.clock());
        self.make_change(caller, "merge", |tx| {
            let record = params.write(tx, &self.new_rules(&author))?;
            let detail = to_detail(json!({"id": record.id, "project": record.project}));
            Ok((record, detail))
        })
    }
}

/// Returns the members of an object that [`json!`] made, for the report of a change.
pub fn to_detail(detail: Value) -> Map<String, Value> {
    let Value::Object(members) = detail else { unreachable!("each caller makes an object") };
    members
}

impl TableService for RecordSource {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // Each change uses `Db::write_once`, which itself finds a key that was used before.
    fn once_by_key(&self, method: &MethodSpec) -> Option<&dyn OnceByKey> {
        // A damaged file holds no keys, and a recovery that is repeated has the same result. A deletion for ever has
        // more work after its transaction. A repeated call must compact the file before it answers, because the first
        // call may have been killed before its compaction.
        if method.name == RECOVER || method.name == DELETE {
            return None;
        }
        self.find_db().ok().flatten().map(|db| db as &dyn OnceByKey)
    }
}

impl Source for RecordSource {
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        let mut offers = offer::find_offers(self, request);
        let name = request.client_session.as_deref();
        let word = name.and_then(|name| {
            let written = self.written.load(Ordering::Relaxed);
            self.turns.lock().note_moment(name, request.moment, request.tool.as_deref(), written, request.now)
        });
        // If records are not in use, the agent has no tool to save one, so it gets no reminder.
        offers.offers.extend(word.filter(|_| self.in_use()).map(|word| word.to_offer(request)));
        offers
    }

    fn note_outcome(&self, _: Caller<'_>, ran: &CommandOutcome<'_>) -> Result<OutcomeEffect> {
        self.turns.lock().note_command(ran, self.clock.now());
        Ok(OutcomeEffect::default())
    }

    fn in_use(&self) -> bool {
        self.is_on || self.db.get().is_some() || self.new_opening().path().exists()
    }

    fn report_status(&self) -> Map<String, Value> {
        let stands = match self.find_db() {
            Ok(None) => return Map::new(),
            Ok(Some(db)) => self.read_status(db),
            Err(error) => Err(error),
        };
        let stands = stands.unwrap_or_else(|error| json!({"error": error.message()}));
        Map::from_iter([(SOURCE.name.to_owned(), stands)])
    }

    fn read_changes(&self, since: Millis, limit: usize) -> Result<Vec<LoggedChange>> {
        let Some(db) = self.find_db()? else { return Ok(Vec::new()) };
        db.read(|c| nudge_storage::read_changes(c, since, limit))
    }

    fn work(&self, stop: &StopFlag) {
        self.worker.run(stop, || {
            // A failed compaction is tried again later, and does not keep the worker from making vectors.
            let is_compact = self.compact_when_quiet().unwrap_or(false);
            Ok(self.make_vectors(stop)? && is_compact)
        });
    }

    fn tick(&self, _: Millis) {
        if !matches!(self.models.get_loaded(), ModelState::Ready(_)) {
            self.meanings.drop_memory();
        }
        let Some(db) = self.db.get() else { return };
        // A jump of the clock does not shorten the time in which a record can be restored.
        let limit = rfc3339::format_time(self.clock.plausible_time() - KEPT_DAYS * 24 * 3_600_000);
        // A revision that cannot be dropped now is dropped in a later tick.
        let is_due = db.read(|c| {
            Ok(c.prepare_cached("SELECT 1 FROM gone WHERE at < ?1 AND into_id IS NULL AND EXISTS (SELECT 1 FROM revision v WHERE v.record_id = gone.record_id)")?.exists([&limit])?)
        });
        if is_due.unwrap_or(false) {
            let _ = db.write(|tx| rows::forget_deleted(tx, &limit));
        }
    }

    fn close(&self) {
        if let Some(db) = self.db.get() {
            let _ = db.close();
        }
    }
}
