//! Makes notes that are the same in every run, and a session that has read them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use nudge_brain::SOURCE;
use nudge_core::error::ErrorKind;
use nudge_core::service::Service as _;
use nudge_core::source::{Source, SourceHost, StopFlag};
use nudge_storage::rusqlite::Connection;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::data::Random;
use crate::records::Texts;

/// A brain of generated notes and a session that has read it. Each note has two sections.
pub struct Vault {
    folder: PathBuf,
    source: Arc<dyn Source>,
    stop: StopFlag,
    working: Option<JoinHandle<()>>,
    /// The number of notes.
    pub notes: usize,
}

impl Vault {
    /// Makes a brain of this many notes in an empty folder. Waits until the session has read all of them.
    pub fn filled(folder: &Path, notes: usize) -> Self {
        write_notes(folder, notes);
        Self::at(folder, notes)
    }

    /// Uses the existing brain in this folder. Waits until the session has read all notes.
    pub fn at(folder: &Path, notes: usize) -> Self {
        let source = opened(folder, folder);
        let stop = StopFlag::default();
        let (worker, until) = (Arc::clone(&source), stop.clone());
        let working = Some(std::thread::spawn(move || worker.work(&until)));
        let vault = Self { folder: folder.to_owned(), source, stop, working, notes };
        vault.wait_until("it follows the files", |vault| {
            let stands = vault.call("status", &json!({}));
            stands["units"] == vault.notes && stands["follows"].as_str().is_some_and(|how| !how.ends_with(" 0 folders"))
        });
        vault
    }

    /// Waits until the worker thread has made a condition true.
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let mut looks = 0..600;
        while !is_so(self) {
            assert!(looks.next().is_some(), "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Returns the path of a note.
    pub fn path(&self, index: usize) -> PathBuf {
        path(&self.folder.join("brain"), index)
    }

    /// Opens the database of the index.
    pub fn index(&self) -> Connection {
        let stands = self.call("status", &json!({}));
        Connection::open(stands["index"].as_str().unwrap_or_default()).expect("the index is there")
    }

    /// Calls `nudge.brain.context`; returns the answer as JSON text.
    pub fn ask(&self, params: &RawValue) -> Box<RawValue> {
        self.source.call("nudge.brain.context", params).expect("the params are right")
    }

    /// Makes a call; returns the parsed answer. Repeats the call if its refusal says so: under valgrind, checking all
    /// notes takes longer than a call waits.
    pub fn call(&self, verb: &str, params: &Value) -> Value {
        let params = to_raw_value(params).expect("it is JSON");
        let answer = loop {
            match self.source.call(&format!("nudge.brain.{verb}"), &params) {
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                answer => break answer.expect("the params are right"),
            }
        };
        serde_json::from_str(answer.get()).expect("it is JSON")
    }
}

impl Drop for Vault {
    fn drop(&mut self) {
        self.stop.set();
        let ended = self.working.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "the work ends");
    }
}

/// Writes this many notes into a folder.
pub fn write_notes(folder: &Path, notes: usize) {
    let (root, texts) = (folder.join("brain"), Texts::new(3));
    for index in 0..notes {
        let place = path(&root, index);
        fs::create_dir_all(place.parent().unwrap_or(&root)).expect("there is room for files");
        fs::write(place, note(&texts, index, notes)).expect("there is room for files");
    }
}

/// Opens the source on the brain of a folder. The index is in another folder.
pub fn opened(folder: &Path, index_folder: &Path) -> Arc<dyn Source> {
    let root = folder.join("brain");
    let given = [("brain.root", root.to_str().expect("temporary folders are of UTF-8"))];
    let host = SourceHost::new_alone(index_folder, &SOURCE, &given).expect("the setting is allowed");
    (SOURCE.open)(host).expect("the folder is there")
}

/// Calls the status until the index agrees with the files, because a single call reads files only for a limited time.
pub fn status_in_step(source: &dyn Source) -> Value {
    let params = to_raw_value(&json!({})).expect("it is JSON");
    loop {
        let answer = source.call("nudge.brain.status", &params).expect("the params are right");
        let status: Value = serde_json::from_str(answer.get()).expect("it is JSON");
        if status["stale"] == false {
            return status;
        }
    }
}

/// Returns the path of a note.
pub fn path(root: &Path, index: usize) -> PathBuf {
    root.join(format!("domains/d{}/f{}/note{index}.md", index % 7, index % 13))
}

/// Makes a note with frontmatter, a relation and two sections.
pub fn note(texts: &Texts, index: usize, notes: usize) -> String {
    let section = |part: usize| {
        let (title, body) = texts.record(2 * index + part);
        let lines: Vec<_> = body.split_inclusive(". ").map(str::trim).collect();
        format!("{} {title}\n\n{}\n", "#".repeat(part + 1), lines.join("\n\n"))
    };
    let other = Random(index as u64).below(notes);
    format!("---\ntags: [t{}]\nrelated: [note{other}]\n---\n{}\n{}", index % 30, section(0), section(1))
}
