//! A store with a log of records, as a session has it. The tests can simulate the death of its process at any time.

use std::sync::{Arc, Mutex};

use nudge::{Caller, ChangeLog, Clock, Config, ExportHints, LogEntry, ManualClock, Nudge, Result, Service};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

pub const START_MS: i64 = 1_767_225_600_000;

/// A log that keeps its records in memory, and begins anew when there are more than the limit.
#[derive(Default)]
pub struct Records {
    pub all: Mutex<Vec<Vec<u8>>>,
    /// The number of records after which the log begins anew; 0 for never.
    pub limit: usize,
}

impl ChangeLog for Records {
    fn append(&self, entry: &LogEntry<'_>) -> Result<()> {
        self.all.lock().unwrap().push(entry.to_json());
        Ok(())
    }

    fn is_long(&self) -> bool {
        self.limit > 0 && self.all.lock().unwrap().len() > self.limit
    }

    fn begin_anew(&self, records: &[Vec<u8>]) {
        *self.all.lock().unwrap() = records.to_vec();
    }
}

pub struct RecordedStore {
    pub store: Nudge,
    pub clock: Arc<ManualClock>,
    pub records: Arc<Records>,
    config: Config,
}

impl RecordedStore {
    pub fn new(limit: usize) -> Self {
        Self::with(limit, Config::default())
    }

    pub fn with(limit: usize, config: Config) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let records = Arc::new(Records { limit, ..Records::default() });
        let store = Nudge::with_log(config.clone(), clock.clone(), Box::new(Arc::clone(&records)));
        Self { store, clock, records, config }
    }

    /// Simulates the death of the process: restores a new store from the records.
    pub fn promoted(self) -> Self {
        let clock: Arc<dyn Clock> = self.clock.clone();
        let store = Nudge::with_log(self.config.clone(), clock, Box::new(Arc::clone(&self.records)));
        let records = self.records.all.lock().unwrap().clone();
        assert_eq!(store.restore(records.iter().map(Vec::as_slice)), 0);
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

    /// Returns all records as text.
    pub fn recorded(&self) -> String {
        String::from_utf8(self.records.all.lock().unwrap().concat()).unwrap()
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
