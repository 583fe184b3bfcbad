//! A store whose changes are stored as rows, as in a session. The tests can simulate the death of its process at any time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nudge::{
    Caller, ChangeLog, Clock, Config, ExportHints, LogEntry, ManualClock, Nudge, Result, RowChange, Service, SessionRow,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

pub const START_MS: i64 = 1_767_225_600_000;

/// A log that keeps its rows in memory.
#[derive(Default)]
pub struct StoredRows {
    /// The body of each row, by its kind and name.
    pub all: Mutex<BTreeMap<(String, String), String>>,
    /// The number of writes after which another program removes the rows; 0 for never.
    limit: usize,
    writes: AtomicUsize,
}

impl StoredRows {
    #[allow(clippy::unnecessary_wraps, reason = "it takes the rows of a feed")]
    fn store_change(&self, RowChange { kind, name, body }: &RowChange) -> Result<()> {
        let (place, mut all) = (((*kind).to_owned(), name.clone()), self.all.lock().unwrap());
        match body {
            Some(body) => all.insert(place, body.clone()),
            None => all.remove(&place),
        };
        Ok(())
    }

    pub fn list(&self) -> Vec<SessionRow> {
        let all = self.all.lock().unwrap();
        all.iter()
            .map(|((kind, name), body)| SessionRow { kind: kind.clone(), name: name.clone(), body: body.clone() })
            .collect()
    }
}

impl ChangeLog for StoredRows {
    fn append(&self, entry: &LogEntry<'_>) -> Result<()> {
        if self.limit > 0 && self.writes.fetch_add(1, Ordering::SeqCst) % self.limit == self.limit - 1 {
            self.all.lock().unwrap().clear();
            entry.feed_all(&mut |row| self.store_change(row))?;
        }
        entry.feed_rows(&mut |row| self.store_change(row))
    }
}

pub struct RecordedStore {
    pub store: Nudge,
    pub clock: Arc<ManualClock>,
    pub rows: Arc<StoredRows>,
    config: Config,
}

impl RecordedStore {
    pub fn new(limit: usize) -> Self {
        Self::with(limit, Config::default())
    }

    pub fn with(limit: usize, config: Config) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let rows = Arc::new(StoredRows { limit, ..StoredRows::default() });
        let store = Nudge::with_log(config.clone(), clock.clone(), Box::new(Arc::clone(&rows)));
        Self { store, clock, rows, config }
    }

    /// Simulates the death of the process: restores a new store from the rows.
    pub fn promoted(self) -> Self {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let store = Nudge::with_log(self.config.clone(), clock, Box::new(Arc::clone(&self.rows)));
        assert_eq!(store.restore(self.rows.list()), 0);
        Self { store, ..self }
    }

    pub fn call(&self, method: &str, params: &Value) -> Result<Value> {
        self.keyed(None, method, params)
    }

    pub fn keyed(&self, key: Option<&str>, method: &str, params: &Value) -> Result<Value> {
        self.by(Caller::with_name("tester/1").with_key(key), method, params)
    }

    pub fn by(&self, caller: Caller<'_>, method: &str, params: &Value) -> Result<Value> {
        let answer = self.store.call_by(caller, &format!("nudge.{method}"), &to_raw_value(params).unwrap())?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    /// Returns all rows as text.
    pub fn recorded(&self) -> String {
        self.rows.list().into_iter().map(|row| [row.kind, row.name, row.body].join(" ") + "\n").collect()
    }

    /// Returns everything that a caller can see, except data about the process.
    pub fn seen(&self) -> (Value, Value) {
        let mut export = serde_json::to_value(self.store.export(&ExportHints::default()).unwrap()).unwrap();
        let payload = export["payload"].as_object_mut().unwrap();
        payload.remove("session_id");
        payload.remove("created_at");
        (export, self.call("deletions", &json!({})).unwrap())
    }
}
