//! Measures the brain: splitting notes into chunks, the first index, an index of unchanged files, a saved note, a
//! question, and the memory in a session.

use std::fs;
use std::hint::black_box;
use std::process::Command;

use nudge_brain::chunk::chunk_text;
use nudge_brain::outline::TextOutline;
use nudge_storage::rusqlite::Connection;
use nudge_storage::search::{COMMON_SHARE, QuestionWords};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::measure::{Clock, Turns, interleave, median, take_turns, wall_ns, work};
use crate::process::{Server, program, tool_call};
use crate::records::{QUESTIONS, Texts};
use crate::rows::start::resident_bytes;
use crate::table::{Line, Scale, versus};
use crate::vault::{Vault, note, opened, path, status_in_step, write_notes};

/// The goal for splitting a megabyte of notes into chunks, in milliseconds: 20 MB a second.
const CUT_MS: f64 = 50.0;
/// The goal for the time from saving a note to an answer that has it, in milliseconds. The time of the same question
/// alone is subtracted.
const SAVED_MS: f64 = 2.0;
/// The goal for reading and indexing a megabyte of notes, in milliseconds: 3 MB a second.
const INDEXED_MS: f64 = 1_000.0 / 3.0;
/// The goal for checking all files if none has changed, in milliseconds.
const UNCHANGED_MS: f64 = 60.0;
/// The goal for the memory that a brain without a model adds to a session, in megabytes.
const HELD_MB: f64 = 15.0;
/// The time after which an answer must have a saved note, in nanoseconds.
const PATIENCE_NS: f64 = 30e9;
/// The number of chunks that the peer's plain statement finds.
const NEAREST: usize = 50;
/// The number of notes in an answer, which is the default.
const UNITS: usize = 5;

/// Measures the first index of all notes, and the check of all notes when none has changed.
pub fn index(scale: &Scale) -> Vec<Line> {
    let notes = scale.large / 24;
    let folder = tempfile::tempdir().expect("there is room for files");
    write_notes(folder.path(), notes);
    let files: Vec<_> = (0..notes).map(|index| path(&folder.path().join("brain"), index)).collect();
    let read = || files.iter().map(|file| fs::read(file).map_or(0, |bytes| bytes.len())).sum::<usize>();
    let look = || files.iter().filter(|file| fs::symlink_metadata(file).is_ok()).count();
    let timed = |work: &mut dyn FnMut()| {
        let start = wall_ns();
        work();
        wall_ns() - start
    };
    let (mut made, mut reads, mut unchanged, mut looks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let megabytes = read() as f64 / 1e6;
    for _ in 0..scale.long_rounds {
        let place = tempfile::tempdir().expect("there is room for files");
        let source = opened(folder.path(), place.path());
        let mut ask = || assert_eq!(status_in_step(&*source)["units"], notes);
        made.push(timed(&mut ask) / megabytes);
        unchanged.push(timed(&mut ask));
        reads.push(timed(&mut || assert!(black_box(read()) > 0)) / megabytes);
        looks.push(timed(&mut || assert_eq!(look(), notes)));
        source.close();
    }
    let [made, reads, unchanged, looks] = [made, reads, unchanged, looks].map(median);
    vec![
        Line {
            what: "brain: a megabyte of notes, into the index".into(),
            limit: INDEXED_MS,
            unit: "ms",
            measured: Some(made / 1e6),
            peer: "reading the files".into(),
            absolute: versus(made, reads),
        },
        Line {
            what: format!("brain: a look at {notes} notes, none changed"),
            limit: UNCHANGED_MS,
            unit: "ms",
            measured: Some(unchanged / 1e6),
            peer: "their metadata, one by one".into(),
            absolute: versus(unchanged, looks),
        },
    ]
}

/// Measures the memory that a brain adds to a session after a few questions.
pub fn memory(scale: &Scale) -> Vec<Line> {
    let notes = scale.large / 28;
    let folder = tempfile::tempdir().expect("there is room for files");
    write_notes(folder.path(), notes);
    let asked = |with: bool| {
        let mut command = Command::new(program("nudge")?);
        command.env("NUDGE_CACHE_DIR", folder.path().join("cache"));
        if with {
            command.env("NUDGE_BRAIN_ROOT", folder.path().join("brain"));
        }
        let mut server = Server::start(command).expect("the server starts");
        for question in Texts::questions() {
            let (tool, params) = if with {
                ("nudge_brain_context", json!({"task_description": question}))
            } else {
                ("nudge_recall", json!({"query": question}))
            };
            server.mcp.send(&tool_call(tool, &params));
            server.mcp.receive();
        }
        resident_bytes(server.mcp.pid()).map(|bytes| bytes / 1e6)
    };
    let both = asked(false).zip(asked(true));
    vec![Line {
        what: format!("brain: memory of a session with {notes} notes"),
        limit: HELD_MB,
        unit: "MB",
        measured: both.map(|(without, with)| with - without),
        peer: "a session without".into(),
        absolute: both.map_or_else(
            || "needs nudge and /proc".into(),
            |(without, with)| format!("{with:.1} MB / {without:.1} MB"),
        ),
    }]
}

/// Measures splitting notes into chunks in memory.
pub fn cutting(scale: &Scale) -> Vec<Line> {
    let (texts, notes) = (Texts::new(3), scale.large / 100);
    let all: Vec<_> = (0..notes).map(|index| note(&texts, index, notes)).collect();
    let megabytes = all.iter().map(String::len).sum::<usize>() as f64 / 1e6;
    let turns = Turns { rounds: scale.long_rounds, ..scale.turns };
    let times = interleave(
        turns,
        &mut [
            work(|_| all.iter().for_each(|text| drop(black_box(chunk_text(text, &TextOutline::parse(text)))))),
            work(|_| {
                for text in &all {
                    pulldown_cmark::Parser::new(text).for_each(|event| drop(black_box(event)));
                }
            }),
        ],
    );
    let [ours, parse] = [0, 1].map(|contender| times.median(contender) / megabytes);
    vec![Line {
        what: "brain: a megabyte of notes, cut".into(),
        limit: CUT_MS,
        unit: "ms",
        measured: Some(ours / 1e6),
        peer: "pulldown-cmark's events, nothing made".into(),
        absolute: versus(ours, parse),
    }]
}

/// Returns the best chunks by FTS5, and the texts of the first few of them.
fn bare(c: &Connection, query: &str) -> Vec<(i64, f64, String, String)> {
    let sql = format!(
        "SELECT c.id, f.score, c.breadcrumb, c.text FROM (SELECT rowid, bm25(chunk_fts) AS score FROM chunk_fts
         WHERE chunk_fts MATCH ?1 ORDER BY score LIMIT {NEAREST}) f JOIN chunk c ON c.id = f.rowid ORDER BY f.score
         LIMIT {UNITS}"
    );
    let mut statement = c.prepare_cached(&sql).expect("the tables are there");
    let rows = statement.query_map([query], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    rows.expect("the words are quoted").collect::<Result<_, _>>().expect("the rows are of these types")
}

/// Returns the words of a question that the search uses: those that are not too common. They are computed before the
/// measurement.
fn asked(c: &Connection, question: &str) -> String {
    let count = |sql: &str, word: &str| -> usize {
        let values: &[&str] = if word.is_empty() { &[] } else { &[word] };
        c.query_row(sql, nudge_storage::rusqlite::params_from_iter(values), |row| row.get::<_, i64>(0))
            .ok()
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or_default()
    };
    let total = count("SELECT count(*) FROM chunk", "");
    let words = QuestionWords::of_query(question);
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let count_chunks = |word: &String| count("SELECT count(*) FROM chunk_fts WHERE chunk_fts MATCH ?1", word);
    let rare: Vec<_> =
        words.into_iter().filter(|word| (1..=total / COMMON_SHARE).contains(&count_chunks(word))).collect();
    rare.join(" OR ")
}

/// Measures a question to a session, and the same question after a note was saved.
pub fn question(scale: &Scale) -> Vec<Line> {
    let folder = tempfile::tempdir().expect("there is room for files");
    let vault = Vault::filled(folder.path(), scale.large / 28);
    let c = vault.index();
    let questions = Texts::questions();
    let queries: Vec<_> = questions.iter().map(|question| asked(&c, question)).collect();
    let params: Vec<_> = questions
        .iter()
        .map(|question| to_raw_value(&json!({"task_description": question})).expect("it is JSON"))
        .collect();
    let first: Value = serde_json::from_str(vault.ask(&params[0]).get()).expect("it is JSON");
    assert!(first["units"].as_array().is_some_and(|units| units.len() >= UNITS - 1), "{first}");
    let times = take_turns(
        scale.turns,
        &[Clock::Wall, Clock::Wall],
        &mut [work(|step| vault.ask(&params[step % QUESTIONS])), work(|step| bare(&c, &queries[step % QUESTIONS]))],
    );
    let chunks = first["searched"]["chunks"].as_u64().unwrap_or_default();
    let asked = Line::of_times(
        format!("brain: a question to {chunks} sections"),
        1.2,
        "bare FTS5, the same words, five texts",
        &times,
    );
    vec![asked, saved(scale, &vault)]
}

/// Measures the time from saving a note to an answer that has it. The time of the same question alone is subtracted.
fn saved(scale: &Scale, vault: &Vault) -> Line {
    let (mut after, mut before) = (Vec::new(), Vec::new());
    for round in 0..scale.long_rounds * 10 {
        let index = round * 7 % vault.notes;
        let word = format!("saved{round}word");
        let params = to_raw_value(&json!({"task_description": word})).expect("it is JSON");
        let save = |more: &str| {
            // The text is prose: joined runs of words may look like a credential, and no answer shows a credential.
            let prose = "A note that somebody writes on while others ask. ".repeat(30);
            let text = format!("# Written on\n\n{word}{more}\n\n{prose}\n");
            fs::write(vault.path(index), text).expect("there is room for files");
        };
        let timed = |what: &str| {
            let start = wall_ns();
            // Repeats the question: on a busy machine an answer may say that there was no time to check the files.
            while !vault.ask(&params).get().contains(what) {
                assert!(wall_ns() - start < PATIENCE_NS, "it is what was saved");
            }
            wall_ns() - start
        };
        save("");
        timed(&word);
        before.push(timed(&word));
        save(", and more");
        after.push(timed(&format!("{word}, and more")));
    }
    let [after, before] = [after, before].map(median);
    Line {
        what: format!("brain: a saved note of {}, to an answer", vault.notes),
        limit: SAVED_MS,
        unit: "ms",
        measured: Some((after - before).max(0.0) / 1e6),
        peer: "the same question, nothing saved".into(),
        absolute: versus(after, before),
    }
}
