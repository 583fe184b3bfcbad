//! Implements a complete source in one short crate: notes in a file. It shows everything that a new source needs: a
//! crate like this one, a line in the list of sources, and two lines in Cargo's files.
//!
//! A note is stored before it is acknowledged: as a line of `demo.jsonl` in the data folder, flushed to the disk. The
//! line also holds the key and the result of the call. So the next PRIMARY knows the calls with a key and does not run
//! such a call twice.

use std::fs::{File, OpenOptions};
use std::hash::BuildHasher as _;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foldhash::quality::FixedState;
use nudge_core::clock::{Millis, rfc3339};
use nudge_core::error::{Error, Result};
use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::once::{CallMemory, CallRecord, MadeCall, OnceByKey, RecordableResult};
use nudge_core::safety::refusal;
use nudge_core::service::{Caller, MethodSpec};
use nudge_core::settings::{ServeFlag, Setting, SettingKind};
use nudge_core::source::{ChangeEvent, Source, SourceHost, SourceResources, SourceSpec, StopFlag, TouchedResource};
use nudge_core::suggest::{MoreCall, Offer, SourceItem, SourceOffers, SuggestMoment, SuggestRequest};
use nudge_core::table::{MethodTable, NoParams, TableRow, TableService, answer_typed, build_schema};
use nudge_core::text::one_line;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The entry for the list of sources.
pub static SOURCE: SourceSpec = SourceSpec {
    name: "demo",
    methods: || TABLE.methods(),
    guide: "Notes of the demo: nudge_demo_add keeps one, nudge_demo_get tells it.",
    settings: &[Setting {
        name: "demo.max",
        kind: SettingKind::Count,
        default: "1000",
        flag: ServeFlag::Value("N"),
        about: "Most notes of the demo",
    }],
    resources: Some(&SourceResources {
        list_uri: "nudge://demo",
        list_title: "Notes",
        list_about: "Every note of the demo.",
        page: None,
        list: "nudge.demo.list",
        names: |listed| {
            let listed: Listed = serde_json::from_str(listed.get()).unwrap_or_default();
            listed.notes.into_iter().map(|note| note.name).collect()
        },
        item_uri: "nudge://demo/",
        item_name: "note",
        item_title: "Note",
        item_about: "One note.",
        item: |name| ("nudge.demo.get", json!({"name": name})),
        shown: |told| Some(told.to_owned()),
    }),
    list: "nudge.demo.list",
    env: &[],
    alone: false,
    commands: &[],
    works: true,
    open: |host| Ok(Arc::new(Demo::open(host)?)),
};

static TABLE: MethodTable<Demo> = MethodTable(&[
    &TableRow {
        method: MethodSpec::new("nudge.demo.add", "Add a note", "Keeps a note.", build_schema::<Add>).tool(),
        run: |demo, caller, params| answer_typed(params, |params| demo.add(caller, params)),
    },
    &TableRow {
        method: MethodSpec::new("nudge.demo.get", "Get a note", "Tells a note.", build_schema::<Get>)
            .tool()
            .read_only()
            .vital(),
        run: |demo, _, params| answer_typed(params, |params| demo.get(&params)),
    },
    &TableRow {
        method: MethodSpec::new("nudge.demo.list", "List notes", "Every note.", build_schema::<NoParams>)
            .tool()
            .read_only()
            .vital(),
        run: |demo, _, params| answer_typed(params, |_: NoParams| Ok(Listed { notes: demo.notes.lock().clone() })),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.demo.wait",
            "Wait",
            "Takes 300 ms, and holds up nobody.",
            build_schema::<NoParams>,
        )
        .read_only(),
        run: |_, _, params| {
            answer_typed(params, |_: NoParams| {
                std::thread::sleep(Duration::from_millis(300));
                Ok(json!({"waited_ms": 300}))
            })
        },
    },
    &TableRow {
        method: MethodSpec::new("nudge.demo.hang", "Hang", "Never ends, whoever waits.", build_schema::<NoParams>)
            .read_only()
            .tool(),
        run: |_, _, params| {
            answer_typed(params, |_: NoParams| -> Result<Value> {
                loop {
                    std::thread::park();
                }
            })
        },
    },
]);

/// Params of `nudge.demo.add`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// What it is called.
    name: String,
    /// What it says.
    text: String,
    /// Words to find it by.
    #[serde(default)]
    tags: Vec<String>,
    /// Tell it before everything else.
    #[serde(default)]
    urgent: bool,
}

/// Params of `nudge.demo.get`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// What it is called.
    name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    name: String,
    text: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    urgent: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Listed {
    notes: Vec<Note>,
}

#[derive(Debug, Serialize)]
struct Added {
    note: Note,
    count: usize,
}

impl RecordableResult for Added {
    fn without_secrets(&self) -> serde_json::Result<Option<Box<RawValue>>> {
        to_raw_value(self).map(Some)
    }
}

/// A line of the file: the note, and the call that stored it if the call had a key.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    note: Note,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    done: Option<CallRecord<'a>>,
}

struct Demo {
    host: Kept,
    calls: CallMemory,
    /// Locked while a note is written and flushed: one writer at a time.
    file: Mutex<File>,
    /// Locked only for moments. So a read never waits for the disk.
    notes: Mutex<Vec<Note>>,
    /// The numbers of ticks and of rounds of the worker.
    ticks: AtomicU64,
    rounds: AtomicU64,
}

/// The parts of the host that the source uses after its start.
struct Kept {
    fence: Arc<dyn nudge_core::source::Fence>,
    changes: Arc<dyn nudge_core::source::ChangeSink>,
    clock: Arc<dyn nudge_core::clock::Clock>,
    max: usize,
}

impl Demo {
    fn open(host: SourceHost<'_>) -> Result<Self> {
        let broken = |error: std::io::Error| Error::unavailable(format!("demo.jsonl cannot be used ({error})."));
        let path = host.data.create_folder()?.join("demo.jsonl");
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(broken)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(broken)?;
        let (calls, mut notes) = (CallMemory::default(), Vec::new());
        // Removes half a line at the end. It was never acknowledged, and the next line would continue it.
        let whole = text.rfind('\n').map_or(0, |newline| newline + 1);
        file.set_len(whole as u64).map_err(broken)?;
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line<'_>>(line).ok()) {
            line.done.iter().for_each(|done| drop(calls.restore(calls.next_number(), done)));
            put(&mut notes, line.note);
        }
        let SourceHost { fence, changes, clock, settings, .. } = host;
        let kept = Kept { fence, changes, clock, max: settings.get_count("demo.max") };
        let (file, notes) = (Mutex::new(file), Mutex::new(notes));
        Ok(Self { host: kept, calls, file, notes, ticks: AtomicU64::new(0), rounds: AtomicU64::new(0) })
    }

    fn add(&self, caller: Caller<'_>, params: Add) -> Result<Added> {
        let Add { name, text, tags, urgent } = params;
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(
                Error::invalid("`name` must have 1 character or more, and no control characters.").about("name")
            );
        }
        refusal::check_text(None, &name, "name")?;
        refusal::check_text(None, &text, "text")?;
        let note = Note { name, text, tags, urgent };
        let mut file = self.file.lock();
        let (is_new, count) = {
            let notes = self.notes.lock();
            let is_new = !notes.iter().any(|known| known.name == note.name);
            (is_new, notes.len() + usize::from(is_new))
        };
        if count > self.host.max {
            return Err(Error::quota("notes", self.host.max, "There are enough notes; raise demo.max."));
        }
        let added = Added { note: note.clone(), count };
        let known = caller.key.map(|_| MadeCall::new(caller.call, &added, None)).transpose()?;
        let done = caller.key.zip(known.as_ref()).map(|(key, known)| known.to_record(key));
        let mut line = serde_json::to_vec(&Line { note: note.clone(), done })
            .map_err(|_| Error::invalid("The note cannot be written as JSON."))?;
        line.push(b'\n');
        self.host.fence.commit(&mut || {
            let before = file.metadata().map(|meta| meta.len());
            let written = file.write_all(&line).and_then(|()| file.sync_data());
            if let (Err(_), Ok(before)) = (&written, before) {
                // Removes what was written of this line: the next line would continue it.
                let _ = file.set_len(before);
            }
            written.map_err(|error| Error::unavailable(format!("The note cannot be kept ({error}); free some space.")))
        })?;
        if let (Some(key), Some(known)) = (caller.key, known) {
            self.calls.remember(key, known);
        }
        put(&mut self.notes.lock(), note.clone());
        self.host.changes.tell_changes(&[ChangeEvent {
            source: SOURCE.name,
            what: if is_new { "add" } else { "set" },
            at: rfc3339::format_time(self.host.clock.now()),
            by: caller.name.into(),
            touched: vec![TouchedResource { resource: note.name.as_str().into(), count_changed: is_new }],
            detail: Map::from_iter([("name".to_owned(), note.name.into())]),
        }]);
        Ok(added)
    }

    fn get(&self, params: &Get) -> Result<Note> {
        let found = self.notes.lock().iter().find(|note| note.name == params.name).cloned();
        found.ok_or_else(|| Error::not_found("There is no such note; `nudge.demo.list` tells what there is."))
    }
}

fn put(notes: &mut Vec<Note>, note: Note) {
    match notes.iter_mut().find(|known| known.name == note.name) {
        Some(known) => *known = note,
        None => notes.push(note),
    }
}

fn offer(note: &Note, word: Option<&str>) -> Offer {
    let line = one_line(&format!("note {}: {}", note.name, note.text), 300);
    let why = word.map_or_else(|| "it is a note".to_owned(), |word| format!("it mentions {word}"));
    let parts = ScoreParts::from([("note", 0.5), ("word", if word.is_some() { 0.1 } else { 0.0 })]);
    Offer {
        id: note.name.as_str().into(),
        name: note.name.clone(),
        line,
        parts: parts.clone(),
        stamp: FixedState::default().hash_one(&note.text),
        must: note.urgent,
        paths: Vec::new(),
        command: None,
        why: why.clone(),
        explain: MatchExplain { matched: true, score: parts.total(), parts, reasons: vec![why] },
        // The JSON has only strings, so writing it cannot fail.
        more: MoreCall {
            method: "nudge.demo.get",
            params: to_raw_value(&json!({"name": note.name})).unwrap_or_default(),
        },
        item: SourceItem(to_raw_value(&json!({"note": note})).unwrap_or_default()),
    }
}

impl TableService for Demo {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        Some(&self.calls)
    }
}

impl Source for Demo {
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        let notes = self.notes.lock();
        let offers = notes.iter().filter(|note| !request.is_needless(SOURCE.name, &note.name));
        let offers = offers.filter_map(|note| match request.moment {
            SuggestMoment::Start => Some(offer(note, None)),
            SuggestMoment::Failure => None,
            SuggestMoment::Tool | SuggestMoment::Stop => note.urgent.then(|| offer(note, None)),
            SuggestMoment::Prompt | SuggestMoment::Recall => {
                let mut texts = [&note.name, &note.text].into_iter().chain(&note.tags);
                texts.find_map(|text| request.terms.first_in(text)).map(|word| offer(note, Some(&word)))
            }
        });
        SourceOffers { offers: offers.take(request.limit).collect(), ..SourceOffers::default() }
    }

    fn in_use(&self) -> bool {
        !self.notes.lock().is_empty()
    }

    fn report_status(&self) -> Map<String, Value> {
        let (ticks, rounds) = (self.ticks.load(Ordering::Relaxed), self.rounds.load(Ordering::Relaxed));
        let told = json!({"notes": self.notes.lock().len(), "ticks": ticks, "rounds": rounds});
        Map::from_iter([("demo".to_owned(), told)])
    }

    fn tick(&self, _: Millis) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }

    fn work(&self, stop: &StopFlag) {
        while !stop.wait(Duration::from_millis(10)) {
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
}
