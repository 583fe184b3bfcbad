//! Measures how well the brain finds units. The program asks the source the questions of an evaluation set
//! (`tests/brain/`), in each mode of the source. It prints the share of right answers, once for the half that was used
//! for tuning, and once for the held-out half.
//!
//! For comparison, the program also runs plain searches of the same texts: FTS5 alone, and vectors alone. With
//! `--check`, it fails when a figure by words alone falls below the value in `tests/brain/floor.json`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_brain::SOURCE;
use nudge_core::embed::{LoadedModel, ModelProvider, NoModels, TextEmbedder, cosine};
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost, StopFlag};
use nudge_embed::{Precision, SentenceModel};
use nudge_storage::rusqlite::{Connection, Row};
use nudge_storage::search::QuestionWords;
use nudge_storage::vectors::decode;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The variable that names the folder of an embedding model.
const MODEL: &str = "NUDGE_TEST_MODEL_DIR";
/// The most that a figure may fall, because chance or a new version of a package changes it a little.
const MARGIN: f64 = 0.02;
/// The number of results of each question that count.
const LIMIT: usize = 10;

fn open(set: &Path, fusion: &str, models: Arc<dyn ModelProvider>) -> Arc<dyn Source> {
    let root = set.join("brain");
    let given = [("brain.root", root.to_str().unwrap()), ("brain.fusion", fusion)];
    (SOURCE.open)(SourceHost { models, ..SourceHost::new_alone(set, &SOURCE, &given).unwrap() }).unwrap()
}

fn call(source: &dyn Source, verb: &str, params: &Value) -> Value {
    let params = RawValue::from_string(params.to_string()).unwrap();
    let answer = source.call_by(Caller::with_name("evaluate"), &format!("nudge.brain.{verb}"), &params).unwrap();
    serde_json::from_str(answer.get()).unwrap()
}

/// A question of the evaluation set.
struct Question {
    query: String,
    group: String,
    wanted: String,
    linked: Vec<String>,
    held_out: bool,
}

fn questions(set: &Path) -> Vec<Question> {
    let text = fs::read_to_string(set.join("questions.jsonl")).unwrap();
    let question = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let linked = row["linked"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        Question {
            query: text("query"),
            group: text("group"),
            wanted: text("wanted"),
            linked,
            held_out: row["held_out"] == true,
        }
    };
    text.lines().map(question).collect()
}

/// The sums over some questions.
#[derive(Default)]
struct Score {
    count: f64,
    first: f64,
    fifth: f64,
    tenth: f64,
    gain: f64,
}

impl Score {
    fn add(&mut self, rank: Option<usize>) {
        self.count += 1.0;
        if let Some(rank) = rank.filter(|rank| *rank < LIMIT) {
            self.first += f64::from(u8::from(rank == 0));
            self.fifth += f64::from(u8::from(rank < 5));
            self.tenth += 1.0;
            self.gain += 1.0 / f64::from(u32::try_from(rank).unwrap() + 2).log2();
        }
    }

    fn shown(&self) -> String {
        let format_mean = |sum: f64| format!("{:.3}", sum / self.count);
        format!(
            "{} {} {} {}",
            format_mean(self.gain),
            format_mean(self.first),
            format_mean(self.fifth),
            format_mean(self.tenth)
        )
    }
}

/// The figures of all questions, each for the tuned and the held-out half. `gain` is nDCG@10, and `linked` is the share
/// of linked units that were found.
struct Figures {
    gain: [f64; 2],
    linked: [f64; 2],
}

/// Answers all questions with `ask`, and prints the scores. `ask` returns the ids of units, the best first.
fn evaluate(name: &str, questions: &[Question], mut ask: impl FnMut(&Question) -> Vec<String>) -> Figures {
    let (mut halves, mut times) = ([Score::default(), Score::default()], Vec::new());
    let mut linked = [(0.0, 0.0); 2];
    for question in questions {
        let begun = Instant::now();
        let found = ask(question);
        times.push(begun.elapsed());
        halves[usize::from(question.held_out)].add(found.iter().position(|id| *id == question.wanted));
        if !question.linked.is_empty() {
            let came = question.linked.iter().filter(|id| found.iter().take(LIMIT).any(|own| own == *id)).count();
            let (came, total) = (u32::try_from(came).unwrap(), u32::try_from(question.linked.len()).unwrap());
            let half = &mut linked[usize::from(question.held_out)];
            *half = (half.0 + f64::from(came) / f64::from(total), half.1 + 1.0);
        }
    }
    times.sort_unstable();
    let gain = [0, 1].map(|half| halves[half].gain / halves[half].count);
    let [tuned, held] = halves.map(|half| half.shown());
    let median = times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e3;
    let linked = linked.map(|(sum, count)| sum / count);
    println!("{name:<34} {tuned} {:.3}   {held} {:.3} {median:>8.2} ms", linked[0], linked[1]);
    Figures { gain, linked }
}

/// Returns the ids of the units in a source's answer.
fn ids(source: &dyn Source, question: &Question, hops: usize) -> Vec<String> {
    let params = json!({"task_description": question.query, "limit": LIMIT, "hops": hops, "max_chars": 200});
    let answer = call(source, "context", &params);
    let list_of = |name: &str| answer[name].as_array().unwrap().clone();
    list_of("units").into_iter().chain(list_of("related")).map(|unit| unit["id"].as_str().unwrap().to_owned()).collect()
}

/// Makes all vectors. A server does this in the background.
fn make_vectors(source: &Arc<dyn Source>) {
    let stop = StopFlag::default();
    let worker = {
        let (source, stop) = (Arc::clone(source), stop.clone());
        std::thread::spawn(move || source.work(&stop))
    };
    let begun = Instant::now();
    loop {
        let stands = &source.report_status()["brain"];
        if stands["vectors"] == stands["chunks"] && stands["chunks"] != 0 {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    println!("vectors made in {:.0} s", begun.elapsed().as_secs_f64());
    stop.set();
    worker.join().unwrap();
}

/// The open database of the index, for plain searches of the same texts.
struct Plain {
    c: Connection,
    ids: HashMap<i64, String>,
    vectors: Vec<(i64, Vec<f32>)>,
}

impl Plain {
    fn open(file: &str) -> Self {
        let c = Connection::open(file).unwrap();
        let read = |sql: &str, take: &mut dyn FnMut(&Row<'_>)| {
            let mut statement = c.prepare(sql).unwrap();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                take(row);
            }
        };
        let (mut ids, mut vectors) = (HashMap::new(), Vec::new());
        read("SELECT c.id, u.uid FROM chunk c JOIN unit u ON u.id = c.unit", &mut |row| {
            ids.insert(row.get(0).unwrap(), row.get(1).unwrap());
        });
        read("SELECT c.id, v.vector FROM chunk c JOIN vector v ON v.hash = c.hash", &mut |row| {
            let bytes: Vec<u8> = row.get(1).unwrap();
            vectors.push((row.get(0).unwrap(), decode(&bytes).unwrap()));
        });
        Self { c, ids, vectors }
    }

    fn units(&self, chunks: impl IntoIterator<Item = i64>) -> Vec<String> {
        let mut units = Vec::new();
        for id in chunks.into_iter().map(|chunk| &self.ids[&chunk]) {
            if !units.contains(id) {
                units.push(id.clone());
            }
        }
        units
    }

    fn by_words<'a>(&self, words: impl IntoIterator<Item = &'a str>, between: &str) -> Vec<String> {
        let words: Vec<_> = words.into_iter().map(|word| format!("\"{word}\"")).collect();
        let sql = "SELECT rowid FROM chunk_fts WHERE chunk_fts MATCH ?1 ORDER BY rank LIMIT 50";
        let mut statement = self.c.prepare_cached(sql).unwrap();
        let chunks = statement.query_map([words.join(between)], |row| row.get(0)).unwrap();
        self.units(chunks.map(std::result::Result::unwrap))
    }

    fn by_meaning(&self, model: &dyn TextEmbedder, query: &str) -> Vec<String> {
        let asked = model.embed(&[query]).unwrap().remove(0);
        let mut near: Vec<_> = self.vectors.iter().map(|(id, vector)| (*id, cosine(vector, &asked))).collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.units(near.into_iter().take(200).map(|(id, _)| id))
    }
}

/// Prints how many questions get an answer that is not marked as weak. Counts the questions that the texts answer, and
/// the questions about another manual.
fn gate(source: &dyn Source, questions: &[Question]) {
    let mut kept: BTreeMap<(bool, &str), (usize, usize)> = BTreeMap::new();
    for question in questions.iter().filter(|question| question.group != "git") {
        let params = json!({"task_description": question.query, "domain": "python", "max_chars": 200});
        let counts = kept.entry((question.held_out, &question.group)).or_default();
        counts.0 += usize::from(call(source, "context", &params)["weak"] == false);
        counts.1 += 1;
    }
    for ((held_out, group), (kept, total)) in kept {
        let half = if held_out { "held out" } else { "tuned on" };
        println!("{half}: of {total} {group} questions to the python manuals, {kept} are answered without a doubt");
    }
}

/// Compares the figures with those in `floor.json` and with a plain search. A figure may be lower by `MARGIN`, because
/// of chance.
fn check(any_word: &Figures, words: &Figures, related: &Figures) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/brain/floor.json");
    let floor: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for (name, values) in
        [("nDCG@10", words.gain), ("nDCG@10 with relations", related.gain), ("linked with relations", related.linked)]
    {
        for (half, value) in ["tuned on", "held out"].into_iter().zip(values) {
            let least = floor[name][half].as_f64().unwrap();
            assert!(value >= least - MARGIN, "{name}, {half}, is {value:.3}, and was {least:.3}");
        }
    }
    let sum = |figures: &Figures| figures.gain.iter().sum::<f64>();
    assert!(sum(words) >= sum(any_word), "a plain search finds more: {:.3} of {:.3}", sum(words), sum(any_word));
    println!("no worse than before");
}

fn main() {
    let set = std::env::args().nth(1).expect("the folder of a set");
    let set = Path::new(&set).canonicalize().unwrap();
    let questions = questions(&set);
    let begun = Instant::now();
    let lexical = open(&set, "relevance", Arc::new(NoModels));
    let stands = call(&*lexical, "status", &json!({}));
    println!("{} units, {} chunks, ready in {:.1} s", stands["units"], stands["chunks"], begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    call(&*lexical, "status", &json!({}));
    println!("a look at all files that did not change: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    println!("                                   tuned on: nDCG@10 hit@1 R@5 R@10 linked; held out; median");
    let plain = Plain::open(stands["index"].as_str().unwrap());
    let bare = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    evaluate("FTS5, all words", &questions, |question| {
        plain.by_words(bare(&question.query).iter().map(String::as_str), " ")
    });
    let any_word = evaluate("FTS5, any word", &questions, |question| {
        plain.by_words(bare(&question.query).iter().map(String::as_str), " OR ")
    });
    evaluate("FTS5, any word that says something", &questions, |question| {
        plain.by_words(QuestionWords::of_query(&question.query).iter(), " OR ")
    });
    let words = evaluate("words: relevance", &questions, |question| ids(&*lexical, question, 0));
    let ranks = open(&set, "ranks", Arc::new(NoModels));
    evaluate("words: bm25", &questions, |question| ids(&*ranks, question, 0));
    let related = evaluate("words: relevance, with relations", &questions, |question| ids(&*lexical, question, 2));
    if std::env::args().any(|argument| argument == "--check") {
        return check(&any_word, &words, &related);
    }
    gate(&*lexical, &questions);
    let Some(folder) = std::env::var_os(MODEL) else { return };
    let model: Arc<dyn TextEmbedder> = Arc::new(SentenceModel::load(Path::new(&folder), Precision::default()).unwrap());
    let source = |fusion: &str| open(&set, fusion, Arc::new(LoadedModel(Arc::clone(&model))));
    let relevance = source("relevance");
    make_vectors(&relevance);
    let plain = Plain::open(stands["index"].as_str().unwrap());
    evaluate("vectors alone", &questions, |question| plain.by_meaning(&*model, &question.query));
    for name in ["relevance", "ranks", "seed"] {
        let source = source(name);
        evaluate(name, &questions, |question| ids(&*source, question, 0));
        evaluate(&format!("{name}, with relations"), &questions, |question| ids(&*source, question, 2));
    }
    gate(&*relevance, &questions);
}
