//! Makes records that are the same in every run, and a database with them. A body has about 800 characters.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nudge_core::embed::{LoadedModel, ModelProvider, NoModels, TextEmbedder};
use nudge_core::error::Result;
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost, StopFlag};
use nudge_records::SOURCE;
use nudge_storage::rusqlite::{Connection, params};
use nudge_storage::vectors::{encode, unit};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::data::Random;

/// The number of dimensions of a vector, which is that of the model all-MiniLM-L6-v2.
pub const DIMS: usize = 384;
/// The number of questions, which are asked one after another.
pub const QUESTIONS: usize = 64;
/// The number of invented names among the words.
const NAMES: usize = 20_000;
/// The number of projects that share the records.
const PROJECTS: usize = 10;
/// The name of the model.
const MODEL: &str = "bench";

/// The records of an evaluation set: their words occur as often as in English texts.
const RECORDS: &str = include_str!("../../records/set-a/records.jsonl");
/// The questions of people from the same evaluation set.
const ASKED: &str = include_str!("../../records/set-a/questions.jsonl");

/// Makes the texts of records: runs of words from other records, and rare names.
pub struct Texts {
    words: Vec<String>,
    seed: u64,
}

impl Texts {
    /// Makes texts from the same words. Another seed makes other texts.
    pub fn new(seed: u64) -> Self {
        let mut words = Vec::new();
        for record in RECORDS.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON")) {
            let text = [&record["title"], &record["body"]].map(|text| text.as_str().unwrap_or_default()).join(" ");
            words.extend(text.split_whitespace().filter(|word| is_harmless(word)).map(str::to_owned));
        }
        Self { words, seed }
    }

    fn run(&self, random: &mut Random, words: usize) -> String {
        let from = random.below(self.words.len() - words);
        self.words[from..from + words].join(" ")
    }

    /// Returns the title and the body of a record.
    pub fn record(&self, index: usize) -> (String, String) {
        let mut random = Random(self.seed.wrapping_mul(1 << 32) ^ index as u64);
        let part = |random: &mut Random| format!("{} part{}", self.run(random, 6), random.below(NAMES));
        let title = self.run(&mut random, 8);
        (title, (0..16).map(|_| part(&mut random)).collect::<Vec<_>>().join(" "))
    }

    /// Returns the questions of people.
    pub fn questions() -> Vec<String> {
        let query = |line: &str| {
            let asked: Value = serde_json::from_str(line).expect("it is JSON");
            asked["query"].as_str().expect("it asks something").to_owned()
        };
        ASKED.lines().map(query).take(QUESTIONS).collect()
    }
}

/// Returns true for a word of plain prose. Other words may look like a credential when they are joined.
fn is_harmless(word: &str) -> bool {
    let lower = word.to_lowercase();
    let names_a_secret = ["pass", "secret", "token", "key", "credential", "auth", "sign", "pin"];
    word.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | ','))
        && !names_a_secret.iter().any(|name| lower.contains(name))
}

/// Returns a vector of length 1. Each seed has another vector.
pub fn vector_of(seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let numbers: Vec<f32> = (0..DIMS).map(|_| (random.below(2_001) as f32 - 1_000.0) / 1_000.0).collect();
    unit(&numbers).expect("it is longer than 0")
}

/// Returns the vector of a question. Every hundredth record has a cosine of about 0.7 to it.
fn meaning(question: usize) -> Vec<f32> {
    vector_of(question as u64 % QUESTIONS as u64)
}

/// Returns the vector of a record. The vector is near one of `MEANINGS` meanings, and each question has one of these
/// meanings.
fn near_meaning(id: u64) -> Vec<f32> {
    const MEANINGS: u64 = 100;
    let center = vector_of(id % MEANINGS);
    let own = vector_of(id + MEANINGS);
    unit(&center.iter().zip(&own).map(|(center, own)| center + own).collect::<Vec<_>>()).expect("it is longer than 0")
}

/// A model that has the vectors of the questions in a table, so it takes no time.
struct Known(HashMap<String, Vec<f32>>);

impl TextEmbedder for Known {
    fn id(&self) -> &str {
        MODEL
    }

    fn dims(&self) -> usize {
        DIMS
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split(' ').count()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.0.get(*text).cloned().unwrap_or_else(|| vector_of(1))).collect())
    }
}

/// A folder with a database of records.
pub struct Desk {
    folder: PathBuf,
    /// The texts of the records.
    pub texts: Texts,
}

impl Desk {
    /// Uses the existing database in this folder.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), texts: Texts::new(1) }
    }

    /// Makes a database with this many records in an empty folder.
    pub fn filled(folder: &Path, count: usize) -> Self {
        let desk = Self::at(folder);
        let record = |index: usize| {
            let (title, body) = desk.texts.record(index);
            let day = format!("2026-01-01T00:00:{:02}.000Z", index % 60);
            json!({
                "project": format!("acme/p{}", index % PROJECTS), "kind": "issue", "title": title, "body": body,
                "status": "open", "created_at": day, "updated_at": day,
            })
        };
        let all = json!({"format": "nudge-records/1", "records": (0..count).map(record).collect::<Vec<_>>()});
        let file = desk.folder().join("all.json");
        fs::write(&file, all.to_string()).expect("there is room for files");
        let imported = desk.open(false).call("import", &json!({"file": file}));
        // A few hundredths of the records are refused: two joined runs of words look like a credential.
        let taken = imported["imported"].as_u64().and_then(|taken| usize::try_from(taken).ok()).unwrap_or_default();
        assert!(taken * 100 >= count * 98, "{taken}: {}", imported["errors"][0]);
        desk
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the database.
    pub fn path(&self) -> PathBuf {
        self.folder().join("data").join("records.db")
    }

    /// Gives every record a vector, as a model would.
    pub fn put_vectors(&self) {
        let mut c = Connection::open(self.path()).expect("the database is there");
        let ids = |c: &Connection| -> nudge_storage::rusqlite::Result<Vec<i64>> {
            c.prepare("SELECT id FROM record")?.query_map([], |row| row.get(0))?.collect()
        };
        let ids = ids(&c).expect("records have numbers");
        let tx = c.transaction().expect("nobody else writes");
        for id in ids {
            let vector = encode(&near_meaning(id.unsigned_abs()));
            let sql = "INSERT INTO embedding(record_id, part, model, vector) VALUES (?1, 0, ?2, ?3)";
            tx.execute(sql, params![id, MODEL, vector]).expect("it is a vector");
        }
        tx.commit().expect("there is room for files");
    }

    /// Opens the source: with the model of the questions, or without a model.
    pub fn open(&self, has_model: bool) -> Records {
        let models: Arc<dyn ModelProvider> = if has_model {
            let known = Texts::questions().into_iter().zip(0..).map(|(text, index)| (text, meaning(index)));
            Arc::new(LoadedModel(Arc::new(Known(known.collect()))))
        } else {
            Arc::new(NoModels)
        };
        let host = SourceHost::new_alone(self.folder(), &SOURCE, &[]).expect("the defaults are allowed");
        let opened = (SOURCE.open)(SourceHost { models, ..host });
        Records::at_work(opened.expect("the folder is there"))
    }
}

/// The source `records` as a session calls it, with the session's worker thread.
pub struct Records {
    source: Arc<dyn Source>,
    stop: StopFlag,
    worker: Option<JoinHandle<()>>,
}

impl Drop for Records {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

impl Records {
    fn at_work(source: Arc<dyn Source>) -> Self {
        let stop = StopFlag::default();
        let worker = {
            let (source, stop) = (Arc::clone(&source), stop.clone());
            thread::spawn(move || source.work(&stop))
        };
        Self { source, stop, worker: Some(worker) }
    }

    /// Returns params as JSON text.
    pub fn raw(params: &Value) -> Box<RawValue> {
        to_raw_value(params).expect("it is JSON")
    }

    /// Makes a call; returns the answer as JSON text.
    pub fn ask(&self, verb: &str, params: &RawValue) -> Box<RawValue> {
        self.source.call(&format!("nudge.records.{verb}"), params).expect("the params are right")
    }

    /// Makes a call; returns the parsed answer.
    pub fn call(&self, verb: &str, params: &Value) -> Value {
        serde_json::from_str(self.ask(verb, &Self::raw(params)).get()).expect("it is JSON")
    }

    /// Saves a record with a key, as every client except the command line does. Returns the refusal if the text looks
    /// like a credential.
    pub fn save(&self, key: &str, params: &Value) -> Result<Box<RawValue>> {
        let caller = Caller::with_name("bench").with_key(Some(key));
        self.source.call_by(caller, "nudge.records.upsert", &Self::raw(params))
    }
}
