//! Opens the records in a temporary folder.
#![allow(dead_code)] // No test needs all of it.

use std::sync::Arc;

use nudge_core::clock::{Clock, ManualClock, PlausibleClock};
use nudge_core::embed::{ModelProvider, NoModels};
use nudge_core::error::Result;
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost};
use nudge_records::SOURCE;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

/// The repository of most tests.
pub const SHOP: &str = "github.com/acme/shop";

/// Records in a temporary folder, with a clock that the test moves.
pub struct Desk {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub models: Arc<dyn ModelProvider>,
    pub records: Arc<dyn Source>,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Arc::new(NoModels))
    }

    pub fn with(models: Arc<dyn ModelProvider>) -> Self {
        Self::at(tempfile::tempdir().unwrap(), models)
    }

    /// Opens the same records again, with other settings.
    pub fn set(&mut self, given: &[(&str, &str)]) {
        self.records.close();
        self.records = open_with(&self.folder, &self.clock, &self.models, given);
    }

    /// Opens the records like [`again`](Self::again), with a clock that doubts jumps.
    pub fn again_with_doubts(&mut self) {
        self.records.close();
        let host = SourceHost::new_alone(self.folder.path(), &SOURCE, &[]).unwrap();
        let clock = Arc::new(PlausibleClock::new(Arc::clone(&self.clock) as _, None));
        self.records = (SOURCE.open)(SourceHost { clock, models: Arc::clone(&self.models), ..host }).unwrap();
    }

    /// Makes a desk on a file system in memory if there is one, because a flush to a disk is slow.
    pub fn in_memory(models: Arc<dyn ModelProvider>) -> Self {
        Self::at(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap(), models)
    }

    fn at(folder: tempfile::TempDir, models: Arc<dyn ModelProvider>) -> Self {
        let clock = Arc::new(ManualClock::new(1_767_225_600_000));
        let records = open(&folder, &clock, &models);
        Self { folder, clock, models, records }
    }

    /// Opens the records again, as another process would.
    pub fn again(&mut self) {
        self.records.close();
        self.records = open(&self.folder, &self.clock, &self.models);
    }

    pub fn by(&self, caller: Caller<'_>, verb: &str, params: &Value) -> Result<Value, nudge_core::error::Error> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        let answer = self.records.call_by(caller, &format!("nudge.records.{verb}"), &params)?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    pub fn call(&self, verb: &str, params: &Value) -> Value {
        self.by(Caller::with_name("test"), verb, params).unwrap_or_else(|error| panic!("{verb} {params}: {error:?}"))
    }

    pub fn refused(&self, verb: &str, params: &Value) -> nudge_core::error::Error {
        self.by(Caller::with_name("test"), verb, params).unwrap_err()
    }

    pub fn save(&self, repo: &str, kind: &str, title: &str, body: &str) -> i64 {
        let params = json!({"kind": kind, "title": title, "body": body, "context": {"repo": repo}});
        self.call("upsert", &params)["record"]["id"].as_i64().unwrap()
    }

    /// Returns the records that a search finds, without the weak ones.
    pub fn found(&self, repo: &str, query: &str) -> Vec<i64> {
        let found = self.call("search", &json!({"query": query, "context": {"repo": repo}}));
        let hits = found["results"].as_array().unwrap().iter().filter(|hit| hit["weak"].is_null());
        hits.map(|hit| hit["id"].as_i64().unwrap()).collect()
    }
}

fn open(folder: &tempfile::TempDir, clock: &Arc<ManualClock>, models: &Arc<dyn ModelProvider>) -> Arc<dyn Source> {
    open_with(folder, clock, models, &[])
}

fn open_with(
    folder: &tempfile::TempDir,
    clock: &Arc<ManualClock>,
    models: &Arc<dyn ModelProvider>,
    given: &[(&str, &str)],
) -> Arc<dyn Source> {
    let host = SourceHost::new_alone(folder.path(), &SOURCE, given).unwrap();
    (SOURCE.open)(SourceHost { clock: Arc::clone(clock) as Arc<dyn Clock>, models: Arc::clone(models), ..host })
        .unwrap()
}
