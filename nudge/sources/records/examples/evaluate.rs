//! Measures how well the search finds records. The program asks the source the questions of an evaluation set
//! (`tests/records/`). It prints the mean reciprocal rank of each group of questions, once for the half that was used
//! for tuning (odd numbers) and once for the held-out half (even numbers).
//!
//! For comparison, the program also answers the same questions with two plain searches: FTS5's bm25, and the model's
//! cosine.
//!
//! `tests/records/run` starts this program. The second argument may be:
//! - `--check`: fails when a figure falls below the value in `floor.json` or below that of a plain search;
//! - `--orders`: compares several ways to combine words and meaning;
//! - `--misses`: prints each question of the odd half whose record was not the first result.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::context::ContextSpec;
use nudge_core::embed::{LoadedModel, ModelProvider, NoModels, TextEmbedder, cosine};
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost};
use nudge_core::suggest::{SuggestEvent, SuggestParams, SuggestRequest, Suggester};
use nudge_embed::{Precision, SentenceModel};
use nudge_records::SOURCE;
use nudge_storage::rank::OrderFusion;
use nudge_storage::rusqlite::Connection;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The variable that names the folder of an embedding model.
const MODEL: &str = "NUDGE_TEST_MODEL_DIR";
/// The records of each ranked list that a fusion of ranks uses. The brain uses the same number.
const LISTED: usize = 50;
/// The most that a mean reciprocal rank may fall, because chance changes it a little.
const MARGIN: f64 = 0.02;

/// An idle prompt is a prompt that no record answers. At most 1 of this many idle prompts may get a record.
const IDLE_SHARE: usize = 20;

/// Loads the model of `NUDGE_TEST_MODEL_DIR`. Without this variable, there is no model.
fn models() -> Arc<dyn ModelProvider> {
    let Some(folder) = std::env::var_os(MODEL) else { return Arc::new(NoModels) };
    let model = SentenceModel::load(Path::new(&folder), Precision::default()).unwrap();
    println!("model: {}", model.id());
    Arc::new(LoadedModel(Arc::new(model)))
}

/// The sums over the questions of one group and half.
#[derive(Default)]
struct Score {
    count: f64,
    reciprocal: f64,
    first: f64,
    fifth: f64,
}

impl Score {
    fn mrr(&self) -> f64 {
        self.reciprocal / self.count
    }

    fn add(&mut self, rank: Option<usize>) {
        self.count += 1.0;
        if let Some(rank) = rank {
            self.reciprocal += 1.0 / f64::from(u32::try_from(rank + 1).unwrap_or(u32::MAX));
            self.first += f64::from(u8::from(rank == 0));
            self.fifth += f64::from(u8::from(rank < 5));
        }
    }
}

/// The scores of the source's search, of the plain search by words, and of the plain search by meaning.
type Scores = [Score; 3];

/// Two plain searches over the same texts.
struct Plain {
    words: Connection,
    model: Option<Arc<dyn TextEmbedder>>,
    vectors: Vec<(i64, Vec<f32>)>,
}

impl Plain {
    fn new(models: &dyn ModelProvider) -> Self {
        let words = Connection::open_in_memory().unwrap();
        words.execute_batch("CREATE VIRTUAL TABLE record USING fts5(title, body, tokenize='porter')").unwrap();
        Self { words, model: models.get_loaded().into_embedder(), vectors: Vec::new() }
    }

    fn add(&mut self, id: i64, title: &str, body: &str) {
        self.words.execute("INSERT INTO record(rowid, title, body) VALUES (?1, ?2, ?3)", (id, title, body)).unwrap();
        let vector = self.model.as_ref().map(|model| model.embed(&[&format!("{title} {body}")]).unwrap().remove(0));
        self.vectors.extend(vector.map(|vector| (id, vector)));
    }

    fn by_words(&self, query: &str) -> Vec<i64> {
        let words = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let words: Vec<_> = words.map(|word| format!("\"{word}\"")).collect();
        let sql = "SELECT rowid FROM record WHERE record MATCH ?1 ORDER BY bm25(record), rowid LIMIT 10";
        let mut statement = self.words.prepare(sql).unwrap();
        statement.query_map([words.join(" OR ")], |row| row.get(0)).unwrap().map(std::result::Result::unwrap).collect()
    }

    fn by_meaning(&self, query: &str) -> Vec<i64> {
        let Some(model) = &self.model else { return Vec::new() };
        let asked = model.embed(&[query]).unwrap().remove(0);
        let mut near: Vec<_> = self.vectors.iter().map(|(id, vector)| (*id, cosine(vector, &asked))).collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.into_iter().take(10).map(|(id, _)| id).collect()
    }
}

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn call(source: &dyn Source, verb: &str, params: &Value) -> Value {
    let params = RawValue::from_string(params.to_string()).unwrap();
    let answer = source.call_by(Caller::with_name("evaluate"), &format!("nudge.records.{verb}"), &params).unwrap();
    serde_json::from_str(answer.get()).unwrap()
}

/// Makes a context in the repository of a project. A project name without `/` becomes a folder.
fn place(project: &str) -> Value {
    if project.contains('/') {
        json!({"repo": format!("github.com/{project}")})
    } else {
        json!({"repo": format!("file:///work/{project}")})
    }
}

/// Opens a source without records.
fn open(folder: &Path, models: Arc<dyn ModelProvider>) -> Arc<dyn Source> {
    (SOURCE.open)(SourceHost { models, ..SourceHost::new_alone(folder, &SOURCE, &[]).unwrap() }).unwrap()
}

/// Returns the ids of a search's results. The results are ordered by one number of each, the highest first.
fn order(found: &Value, number: impl Fn(&Value) -> Option<f64>) -> Vec<i64> {
    let hits = found["results"].as_array().unwrap().iter();
    let mut list: Vec<_> = hits.filter_map(|hit| Some((number(hit)?, hit["id"].as_i64().unwrap()))).collect();
    list.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    list.into_iter().map(|(_, id)| id).collect()
}

/// Measures how well several orders of the same results answer the questions of a set: the relevance that all sources
/// use, and two fusions of ranks that the brain uses. All orders use the same words and vectors. Prints both halves.
fn orders(source: &dyn Source, lexical: &dyn Source, set: &Path, ids: &HashMap<i64, String>) {
    println!("order                       MRR  hit@1  hit@5   odd; even");
    for (name, ranks) in
        [("relevance", None), ("ranks", Some(OrderFusion::CHOSEN)), ("seed", Some(OrderFusion::SPECIFIED))]
    {
        let mut halves = [Score::default(), Score::default()];
        for question in rows(&set.join("questions.jsonl")) {
            let context = place(question["project"].as_str().unwrap());
            let params = json!({"query": question["query"], "limit": LISTED, "explain": true, "context": context});
            let found = call(source, "search", &params);
            let best = match ranks {
                None => order(&found, |hit| hit["relevance"].as_f64()),
                Some(ranks) => {
                    // The source reports the weights of words only when it has no model.
                    let words = call(lexical, "search", &params);
                    let words = order(&words, |hit| hit["explain"]["parts"]["stems"].as_f64());
                    let fused = ranks.fuse(&words, &order(&found, |hit| hit["similarity"].as_f64()));
                    let mut best: Vec<_> = fused.into_iter().map(|(id, parts)| (parts.total(), id)).collect();
                    best.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
                    best.into_iter().map(|(_, id)| id).collect()
                }
            };
            let wanted = wanted(&question);
            let rank = best.iter().take(10).position(|id| wanted.contains(&ids[id].as_str()));
            halves[usize::from(is_even(&question))].add(rank);
        }
        let shown = halves
            .map(|half| format!("{:.3}  {:.3}  {:.3}", half.mrr(), half.first / half.count, half.fifth / half.count));
        println!("{name:<22} {}   {}", shown[0], shown[1]);
    }
}

/// Returns true when a question belongs to the held-out half.
fn is_even(row: &Value) -> bool {
    let digits = row["id"].as_str().unwrap().trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse::<u32>().unwrap() % 2 == 0
}

/// Returns the name of a half.
fn half(is_even: bool) -> &'static str {
    if is_even { "even" } else { "odd" }
}

/// Returns the ids of the records that answer a question; an idle prompt has none.
fn wanted(row: &Value) -> Vec<&str> {
    row["wanted"].as_array().map(|ids| ids.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

fn main() {
    let set = std::env::args().nth(1).expect("the folder of a set");
    let set = Path::new(&set);
    let show = std::env::args().nth(2);
    let is_with_model = std::env::var_os(MODEL).is_some();
    let folder = tempfile::tempdir().unwrap();
    let models = models();
    let source = open(folder.path(), Arc::clone(&models));
    let mut plain = Plain::new(&*models);
    let mut ids: HashMap<i64, String> = HashMap::new();
    for record in rows(&set.join("records.jsonl")) {
        let mut params = json!({"distinct": true});
        for name in ["kind", "title", "body", "status"] {
            params[name] = record[name].clone();
        }
        params["context"] = place(record["project"].as_str().unwrap());
        let made = call(&*source, "upsert", &params);
        let id = made["record"]["id"].as_i64().unwrap();
        plain.add(id, record["title"].as_str().unwrap(), record["body"].as_str().unwrap());
        ids.insert(id, record["id"].as_str().unwrap().to_owned());
    }
    if show.as_deref() == Some("--orders") {
        return orders(&*source, &*open(folder.path(), Arc::new(NoModels)), set, &ids);
    }
    let mut scores: BTreeMap<(bool, String), Scores> = BTreeMap::new();
    for question in rows(&set.join("questions.jsonl")) {
        let text = |name: &str| question[name].as_str().unwrap().to_owned();
        let is_even = is_even(&question);
        let found =
            call(&*source, "search", &json!({"query": text("query"), "limit": 10, "context": place(&text("project"))}));
        let found: Vec<_> =
            found["results"].as_array().unwrap().iter().map(|hit| ids[&hit["id"].as_i64().unwrap()].clone()).collect();
        let wanted = wanted(&question);
        let rank = found.iter().position(|id| wanted.contains(&id.as_str()));
        if show.as_deref() == Some("--misses") && rank != Some(0) && !is_even {
            println!(
                "{} {:?} {}: wanted {wanted:?}, got {:?}",
                text("group"),
                rank,
                text("query"),
                &found[..found.len().min(3)]
            );
        }
        let rank_of = |found: Vec<i64>| found.iter().position(|id| wanted.contains(&ids[id].as_str()));
        let ranks = [rank, rank_of(plain.by_words(&text("query"))), rank_of(plain.by_meaning(&text("query")))];
        for group in [text("group"), "all".to_owned()] {
            let scores = scores.entry((is_even, group)).or_default();
            scores.iter_mut().zip(ranks).for_each(|(score, rank)| score.add(rank));
        }
    }
    let halves = scores.iter().filter(|((_, group), _)| group == "all");
    let figures: BTreeMap<String, f64> =
        halves.clone().map(|((is_even, _), [own, ..])| (format!("mrr {}", half(*is_even)), own.mrr())).collect();
    println!("half  group        questions   MRR  hit@1  hit@5    plain MRR: bm25  cosine");
    for ((is_even, group), [own, words, meaning]) in &scores {
        let Score { count, first, fifth, .. } = own;
        println!(
            "{:<5} {group:<12} {count:>9} {:>5.3}  {:>5.3}  {:>5.3} {:>18.3} {:>7.3}",
            half(*is_even),
            own.mrr(),
            first / count,
            fifth / count,
            words.mrr(),
            meaning.mrr()
        );
    }
    let drawn = idle(&*source, &*models, set, &ids, show.as_deref() == Some("--misses"));
    let lost = pairs(&*open(&folder.path().join("pairs"), models), set);
    let name = if is_with_model { "model" } else { "words" };
    if show.as_deref() == Some("--check") {
        check(set, name, &figures, drawn.iter().map(|(drawn, _)| drawn).sum());
        quiet(&drawn);
        // Compares over the whole set: half a set has so few questions that chance would decide.
        let groups: BTreeSet<_> = scores.keys().map(|(_, group)| group.as_str()).collect();
        for group in groups {
            let halves = scores.iter().filter(|((_, score_group), _)| score_group == group);
            let [own, words, meaning] =
                [0, 1, 2].map(|which| halves.clone().map(|(_, scores)| scores[which].reciprocal).sum::<f64>());
            let count: f64 = halves.map(|(_, scores)| scores[0].count).sum();
            println!("MRR of {group} {:.3}; bm25 {:.3}, cosine {:.3}", own / count, words / count, meaning / count);
            assert!(own >= words.max(meaning), "a plain search finds more of {group}");
            if group == "all" {
                promised(set, name, own / count);
            }
        }
        assert_eq!(lost, 0, "pairs that are different were merged without being asked");
        println!("no worse than before");
    }
}

/// Compares the figure of the whole set with the promised figure, without a margin for chance. The promise is about a
/// set that the author of the search has not seen.
fn promised(set: &Path, name: &str, mrr: f64) {
    let floor: Value = serde_json::from_str(&fs::read_to_string(set.join("floor.json")).unwrap()).unwrap();
    if let Some(least) = floor[name]["promised mrr"].as_f64() {
        assert!(mrr >= least, "the MRR by {name} is {mrr:.3}, and {least} is promised");
    }
}

/// Checks the promise for idle prompts: at most 1 of `IDLE_SHARE` gets a record, both among the prompts used for tuning
/// and among the held-out prompts.
fn quiet(drawn: &[(usize, usize); 2]) {
    for ((drawn, asked), which) in drawn.iter().zip(["that were tuned on", "that are held out"]) {
        println!("idle prompts {which} that draw a record: {drawn} of {asked}");
        assert!(
            drawn * IDLE_SHARE <= *asked,
            "of the idle prompts {which}, more than one in {IDLE_SHARE} draws a record"
        );
    }
}

/// Compares the figures with those in `floor.json`. A figure may be lower by `MARGIN`, because of chance.
fn check(set: &Path, name: &str, figures: &BTreeMap<String, f64>, drawn: usize) {
    let floor: Value = serde_json::from_str(&fs::read_to_string(set.join("floor.json")).unwrap()).unwrap();
    for (figure, value) in figures {
        let least = floor[name][figure].as_f64().unwrap();
        assert!(*value >= least - MARGIN, "{figure} by {name} is {value:.3}, and was {least:.3}");
    }
    let most = floor[name]["idle prompts that draw a record"].as_u64().unwrap();
    assert!(drawn as u64 <= most, "{drawn} idle prompts draw a record, and {most} did");
}

/// The files of a set that hold idle prompts.
const IDLE: [&str; 4] = ["idle.jsonl", "idle-c.jsonl", "idle-d.jsonl", "idle-e.jsonl"];

/// Returns true when a prompt is held out. All prompts of the last two files are held out. No prompt of `idle.jsonl` in
/// the first set is held out. All prompts of `questions.jsonl` in the other sets are held out. In every other file, the
/// even half is held out.
fn is_held_out(set: &Path, file: &str, row: &Value) -> bool {
    match file {
        "idle-d.jsonl" | "idle-e.jsonl" => true,
        "idle.jsonl" if set.ends_with("set-a") => false,
        "questions.jsonl" if !set.ends_with("set-a") => true,
        _ => is_even(row),
    }
}

/// Counts the prompts that get records from a hook: the idle prompts with a record, the questions (sent as prompts)
/// with a record, and the questions with a right record. Returns two pairs of counts, for the tuned and for the
/// held-out half: the idle prompts with a record, and all idle prompts.
fn idle(
    source: &dyn Source,
    models: &dyn ModelProvider,
    set: &Path,
    ids: &HashMap<i64, String>,
    is_shown: bool,
) -> [(usize, usize); 2] {
    let mut idle = [(0, 0); 2];
    let there = IDLE.into_iter().filter(|file| set.join(file).exists());
    for file in there.chain(["questions.jsonl"]) {
        for is_of_it in [false, true] {
            let (mut asked, mut drawn, mut right, mut lines, mut right_lines) = (0, 0, 0, 0, 0);
            for prompt in rows(&set.join(file)).iter().filter(|row| is_held_out(set, file, row) == is_of_it) {
                let told = draw(source, models, prompt);
                let wanted = wanted(prompt);
                let is_right = |id: &&i64| ids.get(id).is_some_and(|id| wanted.contains(&id.as_str()));
                let found = told.iter().map(|(id, _)| id).filter(is_right).count();
                asked += 1;
                drawn += usize::from(!told.is_empty());
                right += usize::from(found > 0);
                lines += told.len();
                right_lines += found;
                if let (Some((_, line)), true, true) = (told.first(), file != "questions.jsonl", is_shown && !is_of_it)
                {
                    println!("  idle: {}: {line}", prompt["query"]);
                }
            }
            let half = if is_of_it { "held out" } else { "tuned on" };
            if asked == 0 {
                continue;
            }
            if file == "questions.jsonl" {
                println!(
                    "{half} questions that do: {drawn} of {asked}, a wanted one: {right}; \
                     records drawn: {lines}, wanted: {right_lines}"
                );
            } else {
                let counts = &mut idle[usize::from(is_of_it)];
                *counts = (counts.0 + drawn, counts.1 + asked);
                println!("{half} {file:<12} prompts that draw a record: {drawn} of {asked}");
            }
        }
    }
    idle
}

/// Returns the ids and the lines of the records that a prompt gets.
fn draw(source: &dyn Source, models: &dyn ModelProvider, prompt: &Value) -> Vec<(i64, String)> {
    let mut event = SuggestParams::at_event(SuggestEvent::Prompt);
    event.prompt = prompt["query"].as_str().map(str::to_owned);
    let place = place(prompt["project"].as_str().unwrap());
    event.context = serde_json::from_value::<ContextSpec>(place).unwrap();
    // A longer deadline keeps a busy machine from changing the result.
    let offer = |request: &Arc<SuggestRequest>| {
        let mut request = SuggestRequest::clone(request);
        request.deadline += Duration::from_mins(1);
        request.embed_question(models, Duration::from_mins(1));
        (vec![("records", source.find_offers(&request))], Vec::new())
    };
    let told = Suggester::new(100).answer_suggest(event, || SystemClock.now(), offer).unwrap();
    let told: Value = serde_json::to_value(&told).unwrap();
    let id_and_line = |suggestion: &Value| {
        (suggestion["record"]["id"].as_i64().unwrap(), suggestion["line"].as_str().unwrap().to_owned())
    };
    told["suggestions"].as_array().unwrap().iter().map(id_and_line).collect()
}

/// Saves pairs of texts that say the same, or only seem to say the same. For the second text of each pair, counts
/// whether the source asks, merges without a question, or saves the text as a new record. Returns the number of pairs
/// that were merged although they say different things.
fn pairs(source: &dyn Source, set: &Path) -> usize {
    let mut lost = 0;
    let rows = rows(&set.join("pairs.jsonl"));
    for is_same in [true, false] {
        for is_held_out in [false, true] {
            let (mut all, mut asked, mut merged) = (0, 0, 0);
            let is_of_it = |row: &&Value| row["same"] == is_same && is_even(row) == is_held_out;
            for pair in rows.iter().filter(is_of_it) {
                // Each pair has its own project, so that the texts of other pairs are no duplicates.
                let save = |text: &Value| {
                    let context = place(&format!("pairs/{}", pair["id"].as_str().unwrap()));
                    let body = text["body"].clone();
                    let params = json!({"kind": "issue", "title": text["title"], "body": body, "context": context});
                    call(source, "upsert", &params)
                };
                save(&pair["a"]);
                let saved = save(&pair["b"]);
                all += 1;
                asked += usize::from(saved["record"].is_null());
                merged += usize::from(saved["deduplicated"] == true);
            }
            lost += if is_same { 0 } else { merged };
            let (half, kind) = (half(is_held_out), if is_same { "the same" } else { "different" });
            println!(
                "{half:<5} pairs that are {kind}: {all}, asked about: {asked}, merged without being asked: {merged}"
            );
        }
    }
    lost
}
