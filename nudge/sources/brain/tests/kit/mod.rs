//! A brain in a folder of the test's own.
#![allow(dead_code)] // No test needs all of it.

#[cfg(feature = "bolt")]
pub mod server;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nudge_brain::SOURCE;
use nudge_core::clock::{Clock, ManualClock};
use nudge_core::embed::{Models, NoModels};
use nudge_core::error::{Error, Result};
use nudge_core::service::Caller;
use nudge_core::source::{Host, Source, StopFlag};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A brain and the source that reads it.
pub struct Desk {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub source: Arc<dyn Source>,
    /// Beside its root.
    settings: Vec<(&'static str, String)>,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Arc::new(NoModels))
    }

    pub fn with(models: Arc<dyn Models>) -> Self {
        Self::set(models, Vec::new())
    }

    pub fn set(models: Arc<dyn Models>, settings: Vec<(&'static str, String)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("brain")).unwrap();
        let clock = Arc::new(ManualClock::new(1_767_225_600_000));
        let source = open(&folder, &clock, models, &settings);
        Self { folder, clock, source, settings }
    }

    /// Another process, perhaps with another model.
    pub fn again(&mut self, models: Arc<dyn Models>) {
        self.source.close();
        self.source = open(&self.folder, &self.clock, models, &self.settings);
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("brain").join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    pub fn by(&self, by: Caller<'_>, verb: &str, params: &Value) -> Result<Value, Error> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        let answer = self.source.call_by(by, &format!("nudge.brain.{verb}"), &params)?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    pub fn call(&self, verb: &str, params: &Value) -> Value {
        self.by(Caller::named("test"), verb, params).unwrap_or_else(|error| panic!("{verb} {params}: {error:?}"))
    }

    pub fn refused(&self, verb: &str, params: &Value) -> Error {
        self.by(Caller::named("test"), verb, params).unwrap_err()
    }

    /// The ids that are found, and those by relation.
    pub fn found(&self, question: &str) -> (Vec<String>, Vec<String>) {
        let answer = self.call("context", &json!({"task_description": question}));
        (ids(&answer["units"]), ids(&answer["related"]))
    }

    /// Does the work of the background until all vectors are made.
    pub fn work(&self) {
        self.work_until(|| {
            let stands = &self.source.status()["brain"];
            stands["chunks"] != 0 && stands["vectors"] == stands["chunks"]
        });
    }

    /// Does the work of the background until this is so.
    pub fn work_until(&self, is_so: impl Fn() -> bool) {
        let stop = StopFlag::default();
        let source = Arc::clone(&self.source);
        let worker = {
            let stop = stop.clone();
            std::thread::spawn(move || source.work(&stop))
        };
        for _ in 0..12_000 {
            if is_so() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.set();
        worker.join().unwrap();
    }
}

pub fn ids(units: &Value) -> Vec<String> {
    units.as_array().unwrap().iter().map(|unit| unit["id"].as_str().unwrap().to_owned()).collect()
}

fn open(
    folder: &tempfile::TempDir,
    clock: &Arc<ManualClock>,
    models: Arc<dyn Models>,
    settings: &[(&'static str, String)],
) -> Arc<dyn Source> {
    let root = folder.path().join("brain");
    let mut given = vec![("brain.root", root.to_str().unwrap())];
    given.extend(settings.iter().map(|(name, text)| (*name, &**text)));
    let host = Host::alone(folder.path(), &SOURCE, &given).unwrap();
    (SOURCE.open)(Host { clock: Arc::clone(clock) as Arc<dyn Clock>, models, ..host }).unwrap()
}
