//! Records in a folder of the test's own.
#![allow(dead_code)] // No test needs all of it.

use std::sync::Arc;
use std::time::Duration;

use nudge_core::clock::{Clock, ManualClock};
use nudge_core::embed::{Embedder, Model, Models, NoModels};
use nudge_core::error::Result;
use nudge_core::service::Caller;
use nudge_core::settings::Values;
use nudge_core::source::{ChangeEvent, ChangeSink, DataDir, Fence, Host, Journal, SessionIdentity, Source};
use nudge_records::SOURCE;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;

/// A repository.
pub const SHOP: &str = "github.com/acme/shop";

/// Nobody follows, nobody takes the lock.
struct Alone;

impl Fence for Alone {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        keep()
    }
}

impl Journal for Alone {
    fn passed_over(&self, _: usize) {}

    fn append(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn is_long(&self) -> bool {
        false
    }

    fn begin_anew(&self, _: &[Vec<u8>]) {}
}

impl ChangeSink for Alone {
    fn tell(&self, _: &[ChangeEvent]) {}
}

/// Takes texts for the same that have the same letters as often.
pub struct Letters;

impl Embedder for Letters {
    fn id(&self) -> &'static str {
        "letters"
    }

    fn dims(&self) -> usize {
        26
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let of = |text: &str| {
            let mut counts = [0.0_f32; 26];
            let letters = text.bytes().filter(u8::is_ascii_lowercase);
            letters.for_each(|byte| counts[usize::from(byte - b'a')] += 1.0);
            let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt().max(1.0);
            counts.map(|count| count / length).to_vec()
        };
        Ok(texts.iter().map(|text| of(text)).collect())
    }
}

impl Models for Letters {
    fn get(&self, _: Duration) -> Model {
        Model::Ready(Arc::new(Self))
    }

    fn look(&self) -> Model {
        self.get(Duration::ZERO)
    }
}

/// Records under a clock that is moved by hand.
pub struct Desk {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub models: Arc<dyn Models>,
    pub records: Arc<dyn Source>,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Arc::new(NoModels))
    }

    pub fn with(models: Arc<dyn Models>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(1_767_225_600_000));
        let records = open(&folder, &clock, &models);
        Self { folder, clock, models, records }
    }

    /// Another process, as far as the file can tell.
    pub fn again(&mut self) {
        self.records.close();
        self.records = open(&self.folder, &self.clock, &self.models);
    }

    pub fn by(&self, by: Caller<'_>, verb: &str, params: &Value) -> Result<Value, nudge_core::error::Error> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        let answer = self.records.call_by(by, &format!("nudge.records.{verb}"), &params)?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    pub fn call(&self, verb: &str, params: &Value) -> Value {
        self.by(Caller::named("test"), verb, params).unwrap_or_else(|error| panic!("{verb} {params}: {error:?}"))
    }

    pub fn refused(&self, verb: &str, params: &Value) -> nudge_core::error::Error {
        self.by(Caller::named("test"), verb, params).unwrap_err()
    }

    pub fn save(&self, repo: &str, kind: &str, title: &str, body: &str) -> i64 {
        let params = json!({"kind": kind, "title": title, "body": body, "context": {"repo": repo}});
        self.call("upsert", &params)["record"]["id"].as_i64().unwrap()
    }

    pub fn found(&self, repo: &str, query: &str) -> Vec<i64> {
        let found = self.call("search", &json!({"query": query, "context": {"repo": repo}}));
        found["results"].as_array().unwrap().iter().map(|hit| hit["id"].as_i64().unwrap()).collect()
    }
}

fn open(folder: &tempfile::TempDir, clock: &Arc<ManualClock>, models: &Arc<dyn Models>) -> Arc<dyn Source> {
    let mut values = Values::default();
    SOURCE.settings.iter().for_each(|setting| values.or_default(setting));
    (SOURCE.open)(Host {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        session: SessionIdentity { id: String::new(), created_at: 0 },
        data: DataDir::new(folder.path().join("nudge")),
        cache: DataDir::new(folder.path().join("cache")),
        fence: Arc::new(Alone),
        journal: Arc::new(Alone),
        records: Box::new(std::iter::empty()),
        changes: Arc::new(Alone),
        models: Arc::clone(models),
        settings: Arc::new(values),
    })
    .unwrap()
}
