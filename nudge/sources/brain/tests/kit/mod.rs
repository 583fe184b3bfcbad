//! Makes a brain in a temporary folder.
#![allow(dead_code)] // No test needs all of it.

#[cfg(feature = "bolt")]
pub mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nudge_brain::SOURCE;
use nudge_core::clock::{Clock, ManualClock};
use nudge_core::embed::{ModelProvider, NoModels};
use nudge_core::error::{Error, Result};
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost, StopFlag};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A brain and the source that reads it.
pub struct Desk {
    pub folder: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub source: Arc<dyn Source>,
    /// The settings other than the folder of the brain.
    settings: Vec<(&'static str, String)>,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(Arc::new(NoModels))
    }

    pub fn with(models: Arc<dyn ModelProvider>) -> Self {
        Self::set(models, Vec::new())
    }

    pub fn set(models: Arc<dyn ModelProvider>, settings: Vec<(&'static str, String)>) -> Self {
        Self::at(tempfile::tempdir().unwrap(), models, settings)
    }

    /// Makes a desk on a file system in memory if there is one, because a flush to a disk is slow.
    pub fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self::at(folder, Arc::new(NoModels), Vec::new())
    }

    fn at(folder: tempfile::TempDir, models: Arc<dyn ModelProvider>, settings: Vec<(&'static str, String)>) -> Self {
        fs::create_dir(folder.path().join("brain")).unwrap();
        let clock = Arc::new(ManualClock::new(1_767_225_600_000));
        let source = open(&folder, &clock, models, &settings);
        Self { folder, clock, source, settings }
    }

    /// Opens the brain again, as another process would, with the given models.
    pub fn again(&mut self, models: Arc<dyn ModelProvider>) {
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

    pub fn by(&self, caller: Caller<'_>, verb: &str, params: &Value) -> Result<Value, Error> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        let answer = self.source.call_by(caller, &format!("nudge.brain.{verb}"), &params)?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    pub fn call(&self, verb: &str, params: &Value) -> Value {
        self.by(Caller::with_name("test"), verb, params).unwrap_or_else(|error| panic!("{verb} {params}: {error:?}"))
    }

    pub fn refused(&self, verb: &str, params: &Value) -> Error {
        self.by(Caller::with_name("test"), verb, params).unwrap_err()
    }

    /// Returns the ids of the units that a question finds, and the ids of the units that are found by relation.
    pub fn found(&self, question: &str) -> (Vec<String>, Vec<String>) {
        let answer = self.call("context", &json!({"task_description": question}));
        (ids(&answer["units"]), ids(&answer["related"]))
    }

    /// Runs the worker until all vectors exist.
    pub fn work(&self) {
        self.work_until(|| {
            let stands = &self.source.report_status()["brain"];
            stands["chunks"] != 0 && stands["vectors"] == stands["chunks"]
        });
    }

    /// Runs the worker until a condition is true.
    #[track_caller]
    pub fn work_until(&self, is_so: impl Fn() -> bool) {
        let _working = self.working();
        self.wait_for("the end of the work", |_| is_so());
    }

    /// Runs the worker until the caller drops the returned value.
    pub fn working(&self) -> Working {
        let (source, stop) = (Arc::clone(&self.source), StopFlag::default());
        let until = stop.clone();
        Working(stop, Some(std::thread::spawn(move || source.work(&until))))
    }

    /// Waits until the status meets a condition. To read the status checks no file.
    #[track_caller]
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let until = Instant::now() + Duration::from_mins(2);
        while !is_so(&self.source.report_status()["brain"]) {
            assert!(Instant::now() < until, "waited in vain for {what}: {:?}", self.source.report_status());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the bytes of every file of the brain.
    pub fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => drop(all.insert(path.clone(), fs::read(path).unwrap())),
                }
            }
        }
        all
    }

    /// Copies the notes of the brain that `NUDGE_TEST_BRAIN` names into this brain. Returns the number of copied notes;
    /// 0 without the variable.
    pub fn copy_real(&self) -> usize {
        let Some(from) = std::env::var_os("NUDGE_TEST_BRAIN").map(PathBuf::from) else { return 0 };
        let (mut folders, mut count) = (vec![from.clone()], 0);
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    self.write(path.strip_prefix(&from).unwrap().to_str().unwrap(), fs::read(&path).unwrap());
                    count += 1;
                }
            }
        }
        count
    }
}

/// A running worker. It ends when this value is dropped.
pub struct Working(StopFlag, Option<JoinHandle<()>>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.set();
        let ended = self.1.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()));
    }
}

pub fn ids(units: &Value) -> Vec<String> {
    units.as_array().unwrap().iter().map(|unit| unit["id"].as_str().unwrap().to_owned()).collect()
}

fn open(
    folder: &tempfile::TempDir,
    clock: &Arc<ManualClock>,
    models: Arc<dyn ModelProvider>,
    settings: &[(&'static str, String)],
) -> Arc<dyn Source> {
    let root = folder.path().join("brain");
    let mut given = vec![("brain.root", root.to_str().unwrap())];
    given.extend(settings.iter().map(|(name, text)| (*name, &**text)));
    let host = SourceHost::new_alone(folder.path(), &SOURCE, &given).unwrap();
    (SOURCE.open)(SourceHost { clock: Arc::clone(clock) as Arc<dyn Clock>, models, ..host }).unwrap()
}
