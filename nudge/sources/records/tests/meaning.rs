//! Tests the search by meaning, with models whose vectors are known in advance.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::context::ContextSpec;
use nudge_core::embed::{LoadedModel, ModelProvider, ModelState, NoModels, TextEmbedder};
use nudge_core::error::Result;
use nudge_core::service::Caller;
use nudge_core::source::{Source, SourceHost, StopFlag};
use nudge_core::suggest::{SuggestEvent, SuggestParams, SuggestRequest, Suggester};
use nudge_records::SOURCE;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A model that knows three subjects by a few English words, and splits words of other languages into letters.
struct Subjects;

const SUBJECTS: [&[&str]; 3] = [&["logout", "session", "sign"], &["upload", "413", "file"], &["invoice", "pdf"]];

impl TextEmbedder for Subjects {
    fn id(&self) -> &'static str {
        "subjects"
    }

    fn dims(&self) -> usize {
        4
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn count_tokens(&self, text: &str) -> usize {
        let tokens = |word: &str| if word.is_ascii() { 1 } else { word.chars().count() };
        text.split_whitespace().map(tokens).sum()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let embed = |text: &str| {
            let mut sums = vec![0.0, 0.0, 0.0, 0.01];
            for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
                let subject = SUBJECTS.iter().position(|words| words.contains(&word));
                sums[subject.unwrap_or(3)] += if subject.is_some() { 1.0 } else { 0.05 };
            }
            let length = sums.iter().map(|x| x * x).sum::<f32>().sqrt();
            sums.into_iter().map(|x| x / length).collect()
        };
        Ok(texts.iter().map(|text| embed(text)).collect())
    }
}

impl ModelProvider for Subjects {
    fn get(&self, _: Duration) -> ModelState {
        ModelState::Ready(Arc::new(Self))
    }

    fn get_loaded(&self) -> ModelState {
        self.get(Duration::ZERO)
    }
}

/// A provider that has the model only for a caller that waits for it.
struct Unloaded;

impl ModelProvider for Unloaded {
    fn get(&self, wait: Duration) -> ModelState {
        if wait.is_zero() { self.get_loaded() } else { Subjects.get(wait) }
    }

    fn get_loaded(&self) -> ModelState {
        ModelState::Loading
    }
}

/// A provider whose model never loads in time.
struct Slow;

impl ModelProvider for Slow {
    fn get(&self, _: Duration) -> ModelState {
        ModelState::Loading
    }

    fn get_loaded(&self) -> ModelState {
        ModelState::Loading
    }
}

/// A model with vectors of another length. Texts that are near each other for `Subjects` are opposite for this model.
struct Opposites;

impl TextEmbedder for Opposites {
    fn id(&self) -> &'static str {
        "opposites"
    }

    fn dims(&self) -> usize {
        5
    }

    fn max_tokens(&self) -> usize {
        Subjects.max_tokens()
    }

    fn count_tokens(&self, text: &str) -> usize {
        Subjects.count_tokens(text)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let turned = |text: &&str| {
            let mut vector = Subjects.embed(&[text])?.remove(0);
            vector.reverse();
            let sign = if text.len().is_multiple_of(2) { 1.0 } else { -1.0 };
            for x in &mut vector {
                *x *= sign;
            }
            vector.insert(0, 0.0);
            Ok(vector)
        };
        texts.iter().map(turned).collect()
    }
}

/// A model that knows only words in ASCII. It makes the same vector of all texts.
struct Unknowing;

impl TextEmbedder for Unknowing {
    fn id(&self) -> &'static str {
        "unknowing"
    }

    fn dims(&self) -> usize {
        2
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn count_unknown(&self, text: &str) -> usize {
        text.split_whitespace().filter(|word| !word.is_ascii()).count()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(vec![vec![1.0, 0.0]; texts.len()])
    }
}

/// A provider whose model the test replaces.
#[derive(Clone, Default)]
struct Changing(Arc<Mutex<Option<Arc<dyn TextEmbedder>>>>);

impl ModelProvider for Changing {
    fn get(&self, _: Duration) -> ModelState {
        self.0.lock().unwrap().clone().map_or(ModelState::Absent, ModelState::Ready)
    }

    fn get_loaded(&self) -> ModelState {
        self.get(Duration::ZERO)
    }
}

struct Desk {
    records: Arc<dyn Source>,
    models: Arc<dyn ModelProvider>,
    folder: Arc<tempfile::TempDir>,
}

impl Desk {
    /// Makes a desk with a record about signing out, a record about uploads, and other records without a subject.
    fn new(models: impl ModelProvider + 'static) -> Self {
        let desk = Self::at(Arc::new(tempfile::tempdir().unwrap()), Arc::new(models));
        desk.save("Logout of every session", "Alle werden überall abgemeldet, fünf Minuten später.");
        desk.save("Upload of a large file", "nginx answered 413.");
        for number in 0..20 {
            desk.save(&format!("Note {number}"), &format!("thing{number}"));
        }
        desk
    }

    fn at(folder: Arc<tempfile::TempDir>, models: Arc<dyn ModelProvider>) -> Self {
        let host = SourceHost::new_alone(folder.path(), &SOURCE, &[]).unwrap();
        let records = (SOURCE.open)(SourceHost { models: Arc::clone(&models), ..host }).unwrap();
        Self { records, models, folder }
    }

    /// Opens the same database as another process would.
    fn beside(other: &Self) -> Self {
        Self::at(Arc::clone(&other.folder), Arc::clone(&other.models))
    }

    fn call(&self, verb: &str, params: &Value) -> Value {
        let params = RawValue::from_string(params.to_string()).unwrap();
        let answer =
            self.records.call_by(Caller::with_name("test"), &format!("nudge.records.{verb}"), &params).unwrap();
        serde_json::from_str(answer.get()).unwrap()
    }

    fn save(&self, title: &str, body: &str) -> Value {
        let context = json!({"repo": SHOP});
        let is_note = title.starts_with("Note");
        let params = json!({"kind": "issue", "title": title, "body": body, "distinct": is_note, "context": context});
        self.call("upsert", &params)
    }

    fn first(&self, query: &str) -> Value {
        let found = self.call("search", &json!({"query": query, "explain": true, "context": {"repo": OTHER}}));
        found["results"][0].clone()
    }

    /// Returns the lines of the records that a prompt gets.
    fn drawn(&self, prompt: &str) -> Vec<String> {
        let mut event = SuggestParams::at_event(SuggestEvent::Prompt);
        event.prompt = Some(prompt.to_owned());
        event.context = serde_json::from_value::<ContextSpec>(json!({"repo": OTHER})).unwrap();
        let offer = |request: &Arc<SuggestRequest>| {
            request.embed_question(&*self.models, Duration::from_mins(1));
            (vec![("records", self.records.find_offers(request))], Vec::new())
        };
        let told = Suggester::new(100).answer_suggest(event, || SystemClock.now(), offer).unwrap();
        let told = serde_json::to_value(&told).unwrap();
        let told = told["suggestions"].as_array().unwrap().clone();
        told.iter()
            .map(|suggestion| {
                format!("{}: {}", suggestion["line"].as_str().unwrap(), suggestion["why"].as_str().unwrap())
            })
            .collect()
    }
}

const SHOP: &str = "github.com/acme/shop";
const OTHER: &str = "github.com/acme/other";

#[test]
fn what_is_understood_is_found_by_meaning_and_the_rest_by_words() {
    let desk = Desk::new(Subjects);
    let understood = desk.first("why must people sign in again?");
    assert_eq!(understood["title"], "Logout of every session");
    assert!(understood["explain"]["parts"]["similarity"].as_f64().unwrap() > 0.5, "{understood}");
    assert!(understood["explain"]["parts"].get("stems").is_none(), "{understood}");
    // The model splits this question into letters, so only the words of the question count. The answer reports the
    // cosine anyway.
    let not = desk.first("warum überall später abgemeldet");
    assert_eq!(not["title"], "Logout of every session");
    assert!(not["explain"]["parts"].get("similarity").is_none() && not["similarity"].is_number(), "{not}");
    assert!(not["explain"]["parts"]["stems"].as_f64().unwrap() > 0.0, "{not}");
}

/// A prompt is judged sentence by sentence too, so what stands before a question does not hide the record.
#[test]
fn sentences_about_other_things_hide_no_record() {
    let desk = Desk::new(NoModels);
    let question = "Why did nginx answer 413 for the upload of a large file?";
    let before = "Marketing complained about duplicated newsletters and broken screenshots yesterday evening. \
                  Their dashboard shows unreadable receipts since the redesign of the invoice layout.";
    for prompt in [question.to_owned(), format!("{before} {question}"), format!("{question}\n{before}")] {
        let drawn = desk.drawn(&prompt);
        assert!(drawn.len() == 1 && drawn[0].contains("Upload of a large file"), "{prompt}: {drawn:?}");
    }
    assert_eq!(desk.drawn(before), Vec::<String>::new());
}

/// Two texts in a script that the model does not know have the same vector, and stay two records.
#[test]
fn texts_that_the_model_does_not_know_are_not_the_same() {
    let desk = Desk::at(Arc::new(tempfile::tempdir().unwrap()), Arc::new(LoadedModel(Arc::new(Unknowing))));
    for title in ["ระบบชำระเงิน", "ฐานข้อมูลสำรอง"] {
        let body = "fails at the gateway on Mondays";
        let params =
            json!({"kind": "issue", "title": title, "body": body, "dedup": "merge", "context": {"repo": SHOP}});
        assert_eq!(desk.call("upsert", &params)["created"], true, "{title}");
    }
    assert_eq!(desk.call("duplicates", &json!({"project": "*"}))["duplicates"], json!([]));
}

/// Returns true when every result of a search is weak.
fn is_weak(found: &Value) -> bool {
    found["results"].as_array().unwrap().iter().all(|hit| hit["weak"].is_string())
}

#[test]
fn how_it_was_searched_is_told_as_it_was() {
    let desk = Desk::new(Subjects);
    let search = |query: &str| desk.call("search", &json!({"query": query, "project": "*"}));
    assert_eq!((&search("sign in")["mode"], &search("sign in")["degraded"]), (&json!("semantic"), &json!([])));
    // The model splits these questions into letters, so only their words can find a record. An answer with only weak
    // results gives advice.
    let found = search("überall später abgemeldet");
    assert_eq!((&found["mode"], &found["degraded"]), (&json!("lexical"), &json!([])), "{found}");
    let nothing = search("größere Prüfstände übermäßig");
    assert_eq!(nothing["mode"], "lexical");
    assert!(is_weak(&nothing), "{nothing}");
    assert!(nothing["degraded"][0].as_str().unwrap().contains("understands little"), "{nothing}");
}

#[test]
fn a_title_alone_makes_no_record_the_same_as_another() {
    let desk = Desk::new(Subjects);
    let other = "invoice pdf invoice pdf invoice pdf";
    assert_eq!(desk.save("Session", other)["created"], true);
    // The title of the new text equals the title of an existing record, but the body says something else.
    let saved = desk.save("session", "");
    assert!(saved["created"] == true || saved["near"][0]["title"] != "Session", "{saved}");
}

#[test]
fn a_prompt_draws_by_meaning_only_where_a_model_is_in_memory() {
    // The record contains no word of the prompt.
    let prompt = "people have to sign in again after each deployment";
    let drawn = Desk::new(Subjects).drawn(prompt);
    assert!(drawn.len() == 1 && drawn[0].contains("Logout of every session"), "{drawn:?}");
    let why = drawn[0].rsplit(": ").next().unwrap();
    assert!(why.starts_with("similarity 0.") && !why.contains("words"), "{why}");
    assert_eq!(Desk::new(Unloaded).drawn(prompt), [""; 0]);
    assert_eq!(Desk::new(NoModels).drawn(prompt), [""; 0]);
}

#[test]
fn words_that_a_record_has_by_chance_draw_it_only_where_no_model_knows_better() {
    let prompt = "nginx answered every pdf invoice: large invoice, large pdf";
    let drawn = Desk::new(NoModels).drawn(prompt);
    assert!(drawn.len() == 1 && drawn[0].contains("Upload of a large file"), "{drawn:?}");
    assert_eq!(Desk::new(Subjects).drawn(prompt), [""; 0]);
}

/// Sets a flag when it is dropped.
struct Stopping<'a>(&'a StopFlag);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

#[test]
fn a_model_is_added_changed_and_removed_while_records_are_in_use() {
    let models = Changing::default();
    let desk = Desk::new(models.clone());
    let put = |model: Option<Arc<dyn TextEmbedder>>| *models.0.lock().unwrap() = model;
    let search = || desk.call("search", &json!({"query": "why must people sign in again?", "project": "*"}));
    let found = search();
    assert_eq!(
        (&found["mode"], &found["degraded"][0]),
        (&json!("lexical"), &json!("no embedding model: nudge model add"))
    );
    put(Some(Arc::new(Subjects)));
    // There is no worker, as in a command of the command line. So the search itself makes the missing vectors.
    let found = search();
    assert_eq!(
        (&found["mode"], &found["results"][0]["title"]),
        (&json!("semantic"), &json!("Logout of every session")),
        "{found}"
    );
    let stop = StopFlag::default();
    std::thread::scope(|scope| {
        scope.spawn(|| desk.records.work(&stop));
        // Stops the worker also when an assertion fails, because the scope waits for it.
        let _stopping = Stopping(&stop);
        let until = |mode: &str| {
            let deadline = Instant::now() + Duration::from_secs(20);
            loop {
                let found = search();
                if found["mode"] == mode || Instant::now() > deadline {
                    assert_eq!(found["mode"], mode);
                    return found;
                }
                std::thread::yield_now();
            }
        };
        let by_first = until("semantic")["results"][0].clone();
        assert_eq!(by_first["title"], "Logout of every session");
        // Vectors of two models are never compared with each other, because they differ in length and in meaning.
        put(Some(Arc::new(Opposites)));
        let meanwhile = search();
        let is_of_first = |hit: &Value| hit["similarity"] == by_first["similarity"];
        assert!(!meanwhile["results"].as_array().unwrap().iter().any(is_of_first), "{meanwhile}");
        let by_second = until("semantic")["results"].as_array().unwrap().first().cloned();
        assert_ne!(by_second.map(|hit| hit["similarity"].clone()), Some(by_first["similarity"].clone()));
        put(None);
        assert_eq!(search()["mode"], "lexical");
        put(Some(Arc::new(Subjects)));
        assert_eq!(until("semantic")["results"][0], by_first);
    });
}

#[test]
fn what_comes_in_and_means_nearly_the_same_as_another_is_told() {
    let desk = Desk::new(Subjects);
    let record = |title: &str| json!({"project": "acme/shop", "kind": "issue", "title": title, "status": "open", "created_at": "", "updated_at": ""});
    let records = [record("Session logout sign"), record("Of no subject")];
    let file = desk.folder.path().join("export.json");
    std::fs::write(&file, json!({"format": "nudge-records/1", "records": records}).to_string()).unwrap();
    let done = desk.call("import", &json!({"file": file}));
    let like = &done["similar"][0]["like"];
    assert_eq!((&done["imported"], &like["title"]), (&json!(2), &json!("Logout of every session")), "{done}");
    assert!(like["distance"].as_f64().unwrap() < 0.3, "{done}");
}

/// Two servers with different runtime directories may share one home directory, and so one database.
#[test]
fn after_a_recover_by_another_process_no_vector_of_before_is_compared() {
    let desk = Desk::new(Subjects);
    let copy = desk.folder.path().join("copy.db");
    desk.call("backup", &json!({"file": copy}));
    let save = |desk: &Desk, title: &str, body: &str| {
        let context = json!({"repo": SHOP});
        let params = json!({"kind": "issue", "title": title, "body": body, "distinct": true, "context": context});
        assert_eq!(desk.call("upsert", &params)["created"], true);
    };
    for title in ["Invoice as pdf", "Invoice by mail"] {
        save(&desk, title, "invoice pdf invoice pdf");
    }
    assert!(desk.first("pdf invoice")["title"].as_str().unwrap().starts_with("Invoice"), "it remembers the vectors");
    let other = Desk::beside(&desk);
    other.call("recover", &json!({"file": copy}));
    // The new records have the same numbers as the old ones, and the database has counted the same number of changes.
    for title in ["Sign in session", "Session of a sign"] {
        save(&other, title, "session sign logout session");
    }
    let found = desk.call("search", &json!({"query": "pdf invoice", "project": "*"}));
    assert_eq!(found["mode"], "semantic");
    assert!(is_weak(&found), "{found}");
}

#[test]
fn what_was_saved_without_a_look_at_the_others_says_so() {
    let desk = Desk::new(Slow);
    let saved = desk.save("Session logout", "");
    let why = saved["degraded"][0].as_str().unwrap();
    assert!(saved["created"] == true && why.contains("is being loaded; it was compared with no other"), "{saved}");
    // A caller that sets `distinct` gets no note. A source without a model, or with a loaded model, adds none either.
    assert_eq!(desk.save("Note", "of no subject")["degraded"], Value::Null);
    assert_eq!(Desk::new(NoModels).save("Session logout", "")["degraded"], Value::Null);
    assert_eq!(Desk::new(Subjects).save("Invoice", "pdf")["degraded"], Value::Null);
}
