//! Measures records: a search of 10,000 records, and the write of one record.

use std::cell::RefCell;
use std::path::Path;

use nudge::SecretGuard;
use nudge_core::embed::cosine;
use nudge_storage::rusqlite::{Connection, TransactionBehavior, params};
use nudge_storage::search::{COMMON_SHARE, QuestionWords};
use nudge_storage::vectors::VectorIndex;
use serde_json::json;

use crate::data::Random;
use crate::measure::{Clock, Turns, Work, interleave, take_turns, work};
use crate::peers::sqlite_vec;
use crate::records::{DIMS, Desk, QUESTIONS, Records, Texts, vector_of};
use crate::table::{Line, Scale, time, versus};

/// The number of results of a search.
const LIMIT: usize = 5;
/// The goal for the time that vectors add to a search by words, in milliseconds. The time of the model is not included.
const MEANING_MS: f64 = 1.0;
/// The least cosine of two records that may be duplicates.
const NEAR: f32 = 0.7;
/// Nudge rounds its vectors. So two texts whose cosines differ by less may have either order.
const ROUNDING: f32 = 0.0001;

/// The words and trigrams that a search passes to the indexes: those that are not too common. They are computed before
/// the measurement.
struct Asked {
    stems: String,
    grams: String,
}

fn is_rare(c: &Connection, table: &str, query: &str, total: usize) -> bool {
    let sql = format!("SELECT count(*) FROM {table} WHERE {table} MATCH ?1");
    let count: i64 = c.query_row(&sql, [query], |row| row.get(0)).expect("the words are quoted");
    count > 0 && usize::try_from(count).is_ok_and(|count| count <= total / COMMON_SHARE)
}

impl Asked {
    fn of(c: &Connection, question: &str, total: usize) -> Self {
        let words = QuestionWords::of_query(question);
        let quoted = |text: &str| format!("\"{text}\"");
        let stems = words.iter().map(quoted).filter(|word| is_rare(c, "record_fts", word, total));
        let stems: Vec<_> = stems.collect();
        let mut grams: Vec<String> = Vec::new();
        for word in words.iter() {
            let letters: Vec<char> = word.chars().collect();
            let new = letters.windows(3).map(|gram| quoted(&gram.iter().collect::<String>()));
            let new: Vec<_> = new.filter(|gram| !grams.contains(gram)).collect();
            grams.extend(new);
        }
        grams.retain(|gram| is_rare(c, "record_tri", gram, total));
        Self { stems: stems.join(" OR "), grams: grams.join(" OR ") }
    }
}

/// Returns the best records by one index, with their texts.
fn bare(c: &Connection, table: &str, weights: &str, query: &str) -> Vec<(i64, f64, String, String)> {
    if query.is_empty() {
        return Vec::new();
    }
    let sql = format!(
        "SELECT r.id, f.score, r.title, r.body FROM (SELECT rowid, bm25({table}{weights}) AS score FROM {table}
         WHERE {table} MATCH ?1 ORDER BY score LIMIT {LIMIT}) f JOIN record r ON r.id = f.rowid ORDER BY f.score"
    );
    let mut statement = c.prepare_cached(&sql).expect("the tables are there");
    let rows = statement.query_map([query], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    rows.expect("the words are quoted").collect::<Result<_, _>>().expect("the rows are of these types")
}

/// Measures three searches. The search by words is compared with FTS5 alone, the search by meaning with the time of the
/// model, and the nearest vectors with `sqlite-vec`.
pub fn search(scale: &Scale) -> Vec<Line> {
    let count = scale.large / 10;
    let temp = tempfile::tempdir().expect("there is room for files");
    let desk = Desk::filled(temp.path(), count);
    desk.put_vectors();
    let (by_words, by_meaning) = (desk.open(false), desk.open(true));
    let questions = Texts::questions();
    let params: Vec<_> = questions.iter().map(|question| json!({"query": question, "project": "*"})).collect();
    let c = Connection::open(desk.path()).expect("the database is there");
    let asked: Vec<_> = questions.iter().map(|question| Asked::of(&c, question, count)).collect();
    for (records, mode) in [(&by_words, "lexical"), (&by_meaning, "semantic")] {
        let found = records.call("search", &params[0]);
        assert_eq!(found["mode"], mode);
        assert!(found["results"].as_array().is_some_and(|found| !found.is_empty()), "{found}");
    }
    let raw: Vec<_> = params.iter().map(Records::raw).collect();
    let times = interleave(
        scale.turns,
        &mut [
            work(|step| by_words.ask("search", &raw[step % QUESTIONS])),
            work(|step| {
                let Asked { stems, grams } = &asked[step % QUESTIONS];
                (bare(&c, "record_fts", ", 2.0, 1.0", stems), bare(&c, "record_tri", "", grams))
            }),
            work(|step| bare(&c, "record_fts", ", 2.0, 1.0", &asked[step % QUESTIONS].stems)),
            work(|step| by_meaning.ask("search", &raw[step % QUESTIONS])),
        ],
    );
    let [ours, peer, stems, meaning] = [0, 1, 2, 3].map(|contender| times.median(contender));
    let mut lines = vec![
        Line {
            what: format!("records: search of {count}, by words"),
            limit: 1.2,
            unit: "x",
            measured: Some(times.ratio(0, 1)),
            peer: "bare FTS5, the same words and trigrams".into(),
            absolute: format!("{}, {} without trigrams", versus(ours, peer), time(stems)),
        },
        Line {
            what: "the same by meaning, what it adds".into(),
            limit: MEANING_MS,
            unit: "ms",
            measured: Some((meaning - stems) / 1e6),
            peer: "bare FTS5, the same words; no embedding".into(),
            absolute: versus(meaning, stems),
        },
    ];
    lines.push(nearest(scale, count));
    lines.push(duplicates(scale, &c, &by_meaning));
    lines
}

/// Measures finding the pairs of a project that may be duplicates. The peer compares the same number of vectors with
/// each other, and reads none from disk.
fn duplicates(scale: &Scale, c: &Connection, records: &Records) -> Line {
    let sql = "SELECT count(*) FROM record JOIN project ON project.id = project_id WHERE name = 'acme/p1'";
    let count: i64 = c.query_row(sql, [], |row| row.get(0)).expect("the tables are there");
    let vectors: Vec<_> = (0..count.unsigned_abs()).map(vector_of).collect();
    let asked = Records::raw(&json!({"project": "acme/p1"}));
    let turns = Turns { rounds: scale.long_rounds, ..scale.turns };
    let times = interleave(
        turns,
        &mut [
            work(|_| records.ask("duplicates", &asked)),
            work(|_| {
                let pairs = vectors
                    .iter()
                    .zip(1..)
                    .flat_map(|(vector, next)| vectors[next..].iter().map(move |two| (vector, two)));
                pairs.filter(|(vector, other)| cosine(vector, other) >= NEAR).count()
            }),
        ],
    );
    Line::of_times(
        format!("records: duplicates among {count}"),
        2.0,
        "each vector beside each other, in memory",
        &times,
    )
}

/// Measures finding the nearest of `count` vectors.
fn nearest(scale: &Scale, count: usize) -> Line {
    let mut random = Random(11);
    let vectors: Vec<_> = (0..count).map(|_| vector_of(random.next())).collect();
    let asked: Vec<_> = (0..QUESTIONS).map(|_| vector_of(random.next())).collect();
    let mut ours = VectorIndex::new("bench", DIMS);
    for (vector, id) in vectors.iter().zip(1..) {
        ours.upsert(id, 0, vector);
    }
    let peer = sqlite_vec::Nearest::new(&vectors);
    for vector in &asked {
        let (found, exact) = (ours.top(vector, LIMIT, |_| true), peer.top(vector, LIMIT));
        assert_eq!(found.len(), exact.len());
        for ((id, _), exact) in found.iter().zip(exact) {
            let numbered = |id: i64| &vectors[usize::try_from(id - 1).expect("they are counted from 1")];
            let [found_cosine, other] = [*id, exact].map(|id| cosine(numbered(id), vector));
            assert!((found_cosine - other).abs() < ROUNDING, "{id} is no nearer than {exact}: {found_cosine} {other}");
        }
    }
    let times = interleave(
        scale.turns,
        &mut [
            work(|step| ours.top(&asked[step % QUESTIONS], LIMIT, |_| true)),
            work(|step| peer.top(&asked[step % QUESTIONS], LIMIT)),
        ],
    );
    Line::of_times(format!("the nearest {LIMIT} of {count} vectors"), 1.0, "sqlite-vec, vec0 in memory", &times)
}

/// Measures writing a record until it is flushed to the disk and acknowledged. The peer inserts the same record into a
/// database with the same tables, triggers and indexes.
pub fn write(scale: &Scale) -> Vec<Line> {
    let temp = tempfile::tempdir().expect("there is room for files");
    let desk = Desk::filled(temp.path(), scale.small);
    let records = desk.open(false);
    let to = desk.folder().join("peer.db");
    let file = to.to_str().expect("temporary folders are of UTF-8");
    records.call("backup", &json!({"file": file}));
    let peer = RefCell::new(bare_writer(&to));
    let texts = Texts::new(7);
    let (mut turn, mut bare_turn) = (0_u64, 0_u64);
    let mut ours = work(|step| {
        let (title, body) = texts.record(step);
        turn += 1;
        let params = json!({"kind": "issue", "title": title, "body": body, "context": {"repo": "github.com/acme/new"}});
        records.save(&format!("key {turn}"), &params)
    });
    let bare = |step, key: Option<String>| {
        let (title, body) = texts.record(step);
        let same = format!("{title}\n{body}").to_lowercase();
        let mut peer = peer.borrow_mut();
        let tx = peer.transaction_with_behavior(TransactionBehavior::Immediate).expect("nobody else writes");
        let sql = "INSERT INTO record(project_id, kind, title, body, same, origin, created_at, updated_at, seq)
                   VALUES (1, 'issue', ?1, ?2, ?3, 'cli', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z',
                   (SELECT max(seq) + 1 FROM record))";
        tx.prepare_cached(sql)
            .and_then(|mut insert| insert.execute(params![title, body, same]))
            .expect("it is a record");
        if let Some(key) = key {
            let answer = json!({"id": tx.last_insert_rowid(), "title": title, "body": body}).to_string();
            tx.prepare_cached("INSERT INTO made(key, call, at, answer) VALUES (?1, 'a call', 0, ?2)")
                .and_then(|mut insert| insert.execute(params![key, answer]))
                .expect("it is a new key");
        }
        tx.commit().expect("there is room on the disk");
    };
    let guard = SecretGuard::new();
    let clocks = [Clock::Wall, Clock::Wall, Clock::Thread];
    // Runs the peers one after another: if one flushes data, the next one need not.
    let mut line = |peer: &str, theirs: Work<'_>| {
        let guarding: Work<'_> = work(|step| {
            let (title, body) = texts.record(step);
            guard.check(None, &title).is_some() || guard.check(None, &body).is_some()
        });
        let ours: Work<'_> = Box::new(&mut ours);
        let times = take_turns(scale.turns, &clocks, &mut [ours, theirs, guarding]);
        Line {
            what: "records: a write, acknowledged".into(),
            limit: 1.25,
            unit: "x",
            measured: Some(times.ratio(0, 1)),
            peer: peer.into(),
            absolute: format!("{}, {} for the guard", versus(times.median(0), times.median(1)), time(times.median(2))),
        }
    };
    vec![
        line("bare rusqlite commit, the same tables", work(|step| bare(step, None))),
        line(
            "the same, with the call's key and answer",
            work(|step| {
                bare_turn += 1;
                bare(step, Some(format!("bare {bare_turn}")));
            }),
        ),
    ]
}

fn bare_writer(path: &Path) -> Connection {
    let c = Connection::open(path).expect("the copy is there");
    c.pragma_update(None, "journal_mode", "WAL").expect("temporary folders are on this machine");
    c.pragma_update(None, "synchronous", "FULL").expect("it is a mode");
    // Makes the log of the peer as long as Nudge's log is after the import: overwriting a file costs less than
    // extending it.
    c.execute_batch("CREATE TABLE log AS SELECT * FROM record; DROP TABLE log;").expect("there is room on the disk");
    c
}
