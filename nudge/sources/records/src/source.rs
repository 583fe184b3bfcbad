//! The records as a source.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nudge_core::clock::{Clock, Millis, rfc3339};
use nudge_core::error::Result;
use nudge_core::once::Once;
use nudge_core::service::Caller;
use nudge_core::settings::{Flag, Kind, Setting};
use nudge_core::source::{ChangeEvent, ChangeSink, DataDir, Fence, Host, Source, SourceSpec};
use nudge_core::suggest::{Offers, SuggestRequest};
use nudge_core::table::{Table, TableService};
use nudge_storage::{Db, Failure, Opening};
use nudge_storage::rusqlite::Transaction;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::method::{SEARCH, TABLE};
use crate::offer;
use crate::rows::{self, KEPT_DAYS};
use crate::schema::APP;
use crate::write::{Delete, Merge, Restore, Upsert, author};

/// The records, for the list of sources.
pub static SOURCE: SourceSpec = SourceSpec {
    name: "records",
    methods: || TABLE.methods(),
    guide: "What was fixed, decided or planned before: nudge_records_search before you solve it again; nudge_records_upsert when you have.",
    settings: &[Setting {
        name: "records.on",
        kind: Kind::Switch,
        default: "0",
        flag: Flag::On,
        about: "List the tools of records before there is one",
    }],
    resources: None,
    list: SEARCH,
    env: &[],
    alone: true,
    commands: &[],
    works: false,
    open: |host| Ok(Arc::new(Records::open(host))),
};

/// The source, open. Its database is opened when it is first needed, and made when something is first written.
pub struct Records {
    clock: Arc<dyn Clock>,
    fence: Arc<dyn Fence>,
    changes: Arc<dyn ChangeSink>,
    data: DataDir,
    is_on: bool,
    db: OnceLock<Db>,
    written: AtomicU64,
}

impl Records {
    fn open(host: Host<'_>) -> Self {
        let Host { clock, fence, changes, data, settings, .. } = host;
        let is_on = settings.is_on("records.on");
        Self { clock, fence, changes, data, is_on, db: OnceLock::new(), written: AtomicU64::new(0) }
    }

    fn opening(&self) -> Opening<'_> {
        let (clock, fence) = (Arc::clone(&self.clock), Arc::clone(&self.fence));
        Opening { clock, fence, ..Opening::new(&self.data, &APP) }
    }

    /// The database, which is made when it is not there.
    fn db(&self) -> Result<&Db> {
        if let Some(db) = self.db.get() {
            return Ok(db);
        }
        let db = Db::open(&self.opening())?;
        Ok(self.db.get_or_init(|| db))
    }

    /// The database, if there is one: a mere look makes none.
    pub(crate) fn existing(&self) -> Result<Option<&Db>> {
        if self.db.get().is_none() && !self.opening().path().exists() {
            return Ok(None);
        }
        self.db().map(Some)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Makes a change once, and tells of it.
    fn change<T: Serialize>(
        &self,
        by: Caller<'_>,
        what: &'static str,
        mut write: impl FnMut(&Transaction<'_>) -> Result<(T, Map<String, Value>), Failure>,
    ) -> Result<Box<RawValue>> {
        let mut detail = Map::new();
        let answer = self.db()?.write_once(by, |tx| {
            let (result, told) = write(tx)?;
            detail = told;
            Ok(result)
        })?;
        if !answer.again {
            self.written.fetch_add(1, Ordering::Relaxed);
            self.changes.tell(&[ChangeEvent {
                source: SOURCE.name,
                what,
                at: rfc3339::text(self.clock.now()),
                by: by.name.into(),
                touched: Vec::new(),
                detail,
            }]);
        }
        Ok(answer.result)
    }

    pub(crate) fn upsert(&self, by: Caller<'_>, params: Upsert) -> Result<Box<RawValue>> {
        let ready = params.ready()?;
        let author = author(by, self.clock());
        self.change(by, "upsert", |tx| {
            let done = ready.write(tx, &author, self.clock())?;
            let detail = told(&json!({"id": done.record.id, "project": done.record.project}));
            Ok((done, detail))
        })
    }

    pub(crate) fn delete(&self, by: Caller<'_>, params: Delete) -> Result<Box<RawValue>> {
        let author = author(by, self.clock());
        self.change(by, "delete", |tx| Ok((params.write(tx, &author)?, told(&json!({"id": params.id})))))
    }

    pub(crate) fn restore(&self, by: Caller<'_>, params: Restore) -> Result<Box<RawValue>> {
        let author = author(by, self.clock());
        self.change(by, "restore", |tx| {
            let record = params.write(tx, &author, self.clock())?;
            let detail = told(&json!({"id": record.id, "project": record.project}));
            Ok((record, detail))
        })
    }

    pub(crate) fn merge(&self, by: Caller<'_>, params: Merge) -> Result<Box<RawValue>> {
        let author = author(by, self.clock());
        self.change(by, "merge", |tx| {
            let record = params.write(tx, &author)?;
            let detail = told(&json!({"id": record.id, "project": record.project}));
            Ok((record, detail))
        })
    }
}

fn told(detail: &Value) -> Map<String, Value> {
    detail.as_object().cloned().unwrap_or_default()
}

impl TableService for Records {
    const TABLE: &'static Table<Self> = &TABLE;

    // Each change goes through `Db::write_once`, which looks its key up itself.
    fn once(&self) -> Option<&dyn Once> {
        self.existing().ok().flatten().map(|db| db as &dyn Once)
    }
}

impl Source for Records {
    fn offers(&self, request: &SuggestRequest) -> Offers {
        offer::offers(self, request)
    }

    fn in_use(&self) -> bool {
        self.is_on || self.db.get().is_some() || self.opening().path().exists()
    }

    fn status(&self) -> Map<String, Value> {
        if self.db.get().is_none() {
            return Map::new();
        }
        Map::from_iter([(SOURCE.name.to_owned(), json!({"written": self.written.load(Ordering::Relaxed)}))])
    }

    fn tick(&self, now: Millis) {
        let Some(db) = self.db.get() else { return };
        let limit = rfc3339::text(now - KEPT_DAYS * 24 * 3_600_000);
        // What cannot be forgotten now is forgotten later.
        let is_due = db.read(|c| {
            Ok(c.prepare_cached("SELECT 1 FROM gone WHERE at < ?1 AND into_id IS NULL AND EXISTS (SELECT 1 FROM revision v WHERE v.record_id = gone.record_id)")?.exists([&limit])?)
        });
        if is_due.unwrap_or(false) {
            let _ = db.write(|tx| rows::forget(tx, &limit));
        }
    }

    fn close(&self) {
        if let Some(db) = self.db.get() {
            let _ = db.close();
        }
    }
}
