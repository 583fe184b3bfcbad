//! Tests the answers while the index cannot grow, cannot be stored, or is in use by another call.

use std::fs;
use std::sync::OnceLock;

use nudge_core::context::ContextSpec;
use nudge_core::embed::{LetterEmbedder, LoadedModel};
use nudge_core::source::SourceHost;
use serde_json::json;

use super::*;
use crate::method::ContextOnlyParams;

fn context(brains: &BrainSource, task: &str) -> Value {
    let params = serde_json::from_value(json!({"task_description": task})).unwrap();
    serde_json::to_value(brains.find_context(params).unwrap()).unwrap()
}

/// Makes a source with a brain of one unit and a folder for its cache.
fn brains(folder: &Path) -> BrainSource {
    fs::create_dir(folder.join("brain")).unwrap();
    fs::write(folder.join("brain/a.md"), "# Retry\n\nClients wait a random time.\n").unwrap();
    let root = folder.join("brain");
    BrainSource::open(SourceHost::new_alone(folder, &SOURCE, &[("brain.root", root.to_str().unwrap())]).unwrap())
}

#[test]
fn an_index_that_cannot_grow_answers_what_it_has_and_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let brains = brains(folder.path());
    assert_eq!(context(&brains, "clients wait")["units"][0]["id"], "a");
    let index = brains.index(&folder.path().join("brain")).unwrap();
    let limit = |pages: u32| {
        let limit = |tx: &nudge_storage::rusqlite::Transaction<'_>| {
            Ok(tx.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))?)
        };
        index.db.write(limit).unwrap();
    };
    limit(1);
    for number in 0..200 {
        fs::write(
            folder.path().join(format!("brain/b{number}.md")),
            format!("# B{number}\n\n{}\n", "more words ".repeat(300)),
        )
        .unwrap();
    }
    let answer = context(&brains, "clients wait");
    let degraded = answer["degraded"][0].as_str().unwrap();
    assert_eq!(answer["units"][0]["id"], "a");
    assert!(degraded.starts_with("stale: ") && degraded.ends_with("free some space."), "{degraded}");
    limit(1_000_000);
    index.scan(None).unwrap();
    let answer = context(&brains, "clients wait");
    assert_eq!((&answer["searched"]["units"], answer["degraded"].as_array().unwrap().len()), (&json!(201), 1));
}

#[test]
fn without_a_usable_cache_folder_the_index_lasts_as_long_as_the_source() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cache"), "no folder").unwrap();
    let brains = brains(folder.path());
    let answer = context(&brains, "clients wait");
    assert_eq!(answer["units"][0]["id"], "a");
    let degraded = answer["degraded"][0].as_str().unwrap();
    assert!(degraded.starts_with("the index lasts no longer than this process: The "), "{degraded}");
    let index = brains.index(&folder.path().join("brain")).unwrap();
    let place = index.db.path();
    assert!(place.exists());
    drop((index, brains));
    assert!(!place.exists(), "nothing is left of it");
}

/// Asks for the status on another thread. So if the status waits, the test fails and does not hang.
fn standing(brains: &Arc<BrainSource>) -> Value {
    let (told, answer) = std::sync::mpsc::channel();
    let brains = Arc::clone(brains);
    std::thread::spawn(move || {
        told.send(
            serde_json::to_value(brains.read_status(ContextOnlyParams { context: ContextSpec::default() }).unwrap())
                .unwrap(),
        )
    });
    answer.recv_timeout(Duration::from_mins(1)).expect("the status does not wait")
}

/// Promise (sources): `nudge brain status` answers while another call reads the files or writes the index, and says so.
#[test]
fn the_status_waits_for_no_reader_of_the_files_and_no_writer_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let brains = Arc::new(brains(folder.path()));
    let index = brains.index(&folder.path().join("brain")).unwrap();
    let reading = index.hold_scanning();
    let stands = standing(&brains);
    assert_eq!((&stands["units"], &stands["stale"]), (&json!(0), &json!(true)));
    assert_eq!(stands["degraded"], json!(["stale: another call reads the files"]));
    drop(reading);
    let mut other = nudge_storage::rusqlite::Connection::open(index.db.path()).unwrap();
    let writing = other.transaction_with_behavior(nudge_storage::rusqlite::TransactionBehavior::Immediate).unwrap();
    let stands = standing(&brains);
    let degraded = stands["degraded"][0].as_str().unwrap();
    assert_eq!((&stands["units"], &stands["stale"]), (&json!(0), &json!(true)));
    assert!(degraded.starts_with("stale: what files say now is not known. "), "{degraded}");
    drop(writing);
    let stands = standing(&brains);
    assert_eq!((&stands["units"], &stands["stale"]), (&json!(1), &json!(false)));
}

/// A model that writes a markdown note during its first call. It records which later call was the first to find this
/// note in the index.
struct WritesANote {
    note: PathBuf,
    brains: OnceLock<Arc<BrainSource>>,
    calls: AtomicU64,
    read_before_call: AtomicU64,
}

impl WritesANote {
    fn has_read(&self) -> bool {
        let brains = self.brains.get().unwrap();
        let index = brains.index(self.note.parent().unwrap()).unwrap();
        index.db.read(|c| Ok(c.prepare("SELECT 1 FROM unit WHERE path = 'late.md'")?.exists([])?)).unwrap()
    }
}

impl TextEmbedder for WritesANote {
    fn id(&self) -> &'static str {
        "writes-a-note"
    }
    fn dims(&self) -> usize {
        LetterEmbedder("").dims()
    }
    fn max_tokens(&self) -> usize {
        LetterEmbedder("").max_tokens()
    }
    fn count_tokens(&self, text: &str) -> usize {
        LetterEmbedder("").count_tokens(text)
    }
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if call == 1 {
            fs::write(&self.note, "# Late\n\nWritten while vectors are made.\n").unwrap();
            let until = Instant::now() + Duration::from_secs(30);
            while !self.brains.get().unwrap().has_files_to_read() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        } else if self.has_read() {
            self.read_before_call.fetch_min(call, Ordering::SeqCst);
        }
        LetterEmbedder("").embed(texts)
    }
}

#[test]
fn a_file_that_changes_is_read_before_all_vectors_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("brain");
    fs::create_dir(&root).unwrap();
    for number in 0..40 {
        fs::write(root.join(format!("n{number}.md")), format!("# Note {number}\n\nClients wait {number} times.\n"))
            .unwrap();
    }
    let model = Arc::new(WritesANote {
        note: root.join("late.md"),
        brains: OnceLock::new(),
        calls: AtomicU64::new(0),
        read_before_call: AtomicU64::new(u64::MAX),
    });
    let host = SourceHost::new_alone(folder.path(), &SOURCE, &[("brain.root", root.to_str().unwrap())]).unwrap();
    let brains =
        Arc::new(BrainSource::open(SourceHost { models: Arc::new(LoadedModel(Arc::clone(&model) as _)), ..host }));
    assert!(model.brains.set(Arc::clone(&brains)).is_ok());
    let stop = StopFlag::default();
    std::thread::scope(|scope| {
        scope.spawn(|| brains.work(&stop));
        let until = Instant::now() + Duration::from_mins(1);
        let is_done = || {
            let index = brains.index(&root).unwrap();
            model.has_read() && !index.db.read(meaning::is_any_without).unwrap()
        };
        while !is_done() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.set();
    });
    let calls = model.calls.load(Ordering::SeqCst);
    assert!(calls >= 5, "{calls} batches are too few to tell");
    if brains.index(&root).unwrap().follow.describe().starts_with("as they change") {
        assert_eq!(model.read_before_call.load(Ordering::SeqCst), 2, "of {calls}");
    }
}
