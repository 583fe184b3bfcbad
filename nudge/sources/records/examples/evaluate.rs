//! How well records are found: puts the questions of an evaluation set (`tests/records/`) to the source, and prints the
//! mean reciprocal rank by group, for the half that was tuned on (odd) and the half that was not (even).
//!
//! `tests/records/run` runs it; with `--check` as a second argument it fails when a figure of `floor.json` falls, with
//! `--misses` it prints what of the first half was not found first.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::context::ContextSpec;
use nudge_core::embed::{Embedder, Model, Models, NoModels};
use nudge_core::error::Result;
use nudge_core::service::Caller;
use nudge_core::settings::Values;
use nudge_core::source::{ChangeEvent, ChangeSink, DataDir, Fence, Host, Journal, SessionIdentity, Source};
use nudge_core::suggest::{Suggest, SuggestEvent, Suggester};
use nudge_embed::{Precision, SentenceModel};
use nudge_records::SOURCE;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The variable that names the folder of a model.
const MODEL: &str = "NUDGE_TEST_MODEL_DIR";
/// By how much a mean reciprocal rank may fall by chance.
const MARGIN: f64 = 0.02;

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

/// The model of `NUDGE_TEST_MODEL_DIR`, or none.
fn models() -> Arc<dyn Models> {
    let Some(folder) = std::env::var_os(MODEL) else { return Arc::new(NoModels) };
    let model = SentenceModel::load(Path::new(&folder), Precision::default()).unwrap();
    println!("model: {}", model.id());
    Arc::new(Loaded(Arc::new(model)))
}

/// A model that is there from the beginning.
struct Loaded(Arc<dyn Embedder>);

impl Models for Loaded {
    fn get(&self, _: Duration) -> Model {
        Model::Ready(Arc::clone(&self.0))
    }

    fn look(&self) -> Model {
        self.get(Duration::ZERO)
    }
}

/// The rank sum and the count of a group and half.
#[derive(Default)]
struct Score {
    count: f64,
    reciprocal: f64,
    first: f64,
    fifth: f64,
}

impl Score {
    fn add(&mut self, rank: Option<usize>) {
        self.count += 1.0;
        if let Some(rank) = rank {
            self.reciprocal += 1.0 / f64::from(u32::try_from(rank + 1).unwrap_or(u32::MAX));
            self.first += f64::from(u8::from(rank == 0));
            self.fifth += f64::from(u8::from(rank < 5));
        }
    }
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(source: &dyn Source, verb: &str, params: &Value) -> Value {
    let params = RawValue::from_string(params.to_string()).unwrap();
    let answer = source.call_by(Caller::named("evaluate"), &format!("nudge.records.{verb}"), &params).unwrap();
    serde_json::from_str(answer.get()).unwrap()
}

/// The repository of a project of the set; a bare name is a folder.
fn place(project: &str) -> Value {
    if project.contains('/') {
        json!({"repo": format!("github.com/{project}")})
    } else {
        json!({"cwd": format!("/work/{project}")})
    }
}

fn main() {
    let set = std::env::args().nth(1).expect("the folder of a set");
    let set = Path::new(&set);
    let show = std::env::args().nth(2);
    let is_with_model = std::env::var_os(MODEL).is_some();
    let folder = tempfile::tempdir().unwrap();
    let mut values = Values::default();
    SOURCE.settings.iter().for_each(|setting| values.or_default(setting));
    let source = (SOURCE.open)(Host {
        clock: Arc::new(SystemClock),
        session: SessionIdentity { id: String::new(), created_at: 0 },
        data: DataDir::new(folder.path().join("nudge")),
        fence: Arc::new(Alone),
        journal: Arc::new(Alone),
        records: Box::new(std::iter::empty()),
        changes: Arc::new(Alone),
        models: models(),
        settings: Arc::new(values),
    })
    .unwrap();
    let mut ids: HashMap<i64, String> = HashMap::new();
    for record in rows(&set.join("records.jsonl")) {
        let mut params = json!({"distinct": true});
        for name in ["kind", "title", "body", "status"] {
            params[name] = record[name].clone();
        }
        params["context"] = place(record["project"].as_str().unwrap());
        let made = call(&*source, "upsert", &params);
        ids.insert(made["record"]["id"].as_i64().unwrap(), record["id"].as_str().unwrap().to_owned());
    }
    let mut scores: BTreeMap<(bool, String), Score> = BTreeMap::new();
    for question in rows(&set.join("questions.jsonl")) {
        let text = |name: &str| question[name].as_str().unwrap().to_owned();
        let is_even = text("id").trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().unwrap() % 2 == 0;
        let found =
            call(&*source, "search", &json!({"query": text("query"), "limit": 10, "context": place(&text("project"))}));
        let found: Vec<_> =
            found["results"].as_array().unwrap().iter().map(|hit| ids[&hit["id"].as_i64().unwrap()].clone()).collect();
        let wanted: Vec<_> =
            question["wanted"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        let rank = found.iter().position(|id| wanted.contains(id));
        if show.as_deref() == Some("--misses") && rank != Some(0) && !is_even {
            println!(
                "{} {:?} {}: wanted {wanted:?}, got {:?}",
                text("group"),
                rank,
                text("query"),
                &found[..found.len().min(3)]
            );
        }
        for group in [text("group"), "all".to_owned()] {
            scores.entry((is_even, group)).or_default().add(rank);
        }
    }
    let figures: BTreeMap<String, f64> = scores
        .iter()
        .filter(|((_, group), _)| group == "all")
        .map(|((is_even, _), score)| {
            (format!("mrr {}", if *is_even { "even" } else { "odd" }), score.reciprocal / score.count)
        })
        .collect();
    println!("half  group        questions   MRR  hit@1  hit@5");
    for ((is_even, group), score) in &scores {
        let half = if *is_even { "even" } else { "odd" };
        let Score { count, reciprocal, first, fifth } = score;
        println!(
            "{half:<5} {group:<12} {count:>9} {:>5.3}  {:>5.3}  {:>5.3}",
            reciprocal / count,
            first / count,
            fifth / count
        );
    }
    let drawn = idle(&*source, set);
    let name = if is_with_model { "model" } else { "words" };
    if show.as_deref() == Some("--check") {
        check(set, name, &figures, drawn);
    }
}

/// Compares with the figures in the tree, which may not fall by more than chance.
fn check(set: &Path, name: &str, figures: &BTreeMap<String, f64>, drawn: usize) {
    let floor: Value = serde_json::from_str(&fs::read_to_string(set.join("floor.json")).unwrap()).unwrap();
    for (figure, value) in figures {
        let least = floor[name][figure].as_f64().unwrap();
        assert!(*value >= least - MARGIN, "{figure} by {name} is {value:.3}, and was {least:.3}");
    }
    let most = floor[name]["idle prompts that draw a record"].as_u64().unwrap();
    assert!(drawn as u64 <= most, "{drawn} idle prompts draw a record, and {most} did");
    println!("no worse than before");
}

/// How many idle prompts draw a record in a hook, and how many questions do, asked as prompts.
fn idle(source: &dyn Source, set: &Path) -> usize {
    let mut idle = 0;
    for (file, words) in [("idle.jsonl", "idle prompts that draw a record"), ("questions.jsonl", "questions that do")] {
        for half in [1, 0] {
            let (mut asked, mut drawn) = (0, 0);
            for prompt in rows(&set.join(file)) {
                let id = prompt["id"].as_str().unwrap().trim_start_matches(|c: char| !c.is_ascii_digit());
                if id.parse::<u32>().unwrap() % 2 != half {
                    continue;
                }
                let text = prompt.get("prompt").or(prompt.get("query")).and_then(Value::as_str).unwrap();
                let mut event = Suggest::at(SuggestEvent::Prompt);
                event.prompt = Some(text.to_owned());
                event.context =
                    serde_json::from_value::<ContextSpec>(place(prompt["project"].as_str().unwrap_or("acme/shop")))
                        .unwrap();
                let offer = |request: &Arc<_>| (vec![("records", source.offers(request))], Vec::new());
                let told = Suggester::new(100).suggest(event, || SystemClock.now(), offer).unwrap();
                let told: Value = serde_json::to_value(&told).unwrap();
                asked += 1;
                drawn += usize::from(!told["suggestions"].as_array().unwrap().is_empty());
                if file == "idle.jsonl" && !told["suggestions"].as_array().unwrap().is_empty() && half == 1 {
                    println!("  idle: {text:?}: {}", told["suggestions"][0]["line"]);
                }
            }
            idle += if file == "idle.jsonl" { drawn } else { 0 };
            println!("{:<5} {words}: {drawn} of {asked}", if half == 1 { "odd" } else { "even" });
        }
    }
    idle
}
