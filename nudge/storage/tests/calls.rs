//! Tests reading and writing: refused calls, waits, calls with a key, and changes by other processes.

mod kit;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use kit::{CACHE, Desk, HOUR, OLD, add, count, raw, titles};
use nudge_core::error::{Error, Result};
use nudge_core::once::OnceByKey;
use nudge_core::service::{Caller, MethodSpec, Service as _};
use nudge_core::source::Fence;
use nudge_core::table::{MethodTable, NoParams, TableRow, TableService, build_schema};
use nudge_storage::{DatabaseOpening, Db, TransactionFailure, rusqlite};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

#[test]
fn a_refused_change_changes_nothing() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    let insert = "INSERT INTO note(title, body) VALUES('one', '')";
    let conflict = db.write(|tx| {
        tx.execute(insert, [])?;
        Err::<(), _>(Error::conflict("It has another version; read it again.").into())
    });
    assert_eq!(conflict.unwrap_err(), Error::conflict("It has another version; read it again."));
    // The error leaves out SQLite's message, because that message contains values.
    let word = ["pass", "word-x7Kq"].concat();
    let of_sqlite = |sql: &str| {
        let refused = db.write(|tx| {
            tx.execute(insert, [])?;
            Ok(tx.execute(sql, [&word])?)
        });
        refused.unwrap_err()
    };
    for sql in [
        "INSERT INTO vector SELECT 99, title FROM note WHERE ?1 <> ''",
        "SELECT * FROM note_fts WHERE note_fts MATCH 'AND ' || ?1",
        "INSERT INTO nothing VALUES(?1)",
    ] {
        let refused = of_sqlite(sql);
        assert_eq!(refused.reason(), "E_UNAVAILABLE");
        assert!(refused.message().ends_with("report this."), "{refused}");
        assert!(!format!("{refused:?} {:?}", refused.data()).contains(&word), "{refused:?}");
    }
    let failed =
        TransactionFailure::from(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(1), Some(word.clone())));
    assert!(!format!("{failed:?}").contains(&word), "{failed:?}");
    assert_eq!(count(&db), 0);
    // A write that panics commits nothing, and the next write works.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        db.write(|tx| -> Result<(), TransactionFailure> {
            tx.execute(insert, [])?;
            panic!("within a change");
        })
    }));
    assert!(panicked.is_err());
    add(&db, "two").unwrap();
    assert_eq!(titles(&db), ["two"]);
}

/// The test sets a limit for the number of pages of the file.
#[test]
fn a_database_that_cannot_grow_changes_nothing() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    let limit = |pages: u32| {
        db.write(|tx| Ok(tx.pragma_update_and_check(None, "max_page_count", pages, |row| row.get::<_, u32>(0))?))
    };
    limit(1).unwrap();
    let refused = (0..).find_map(|number| add(&db, &format!("more {number}")).err()).unwrap();
    assert!(refused.message().ends_with("cannot grow, so nothing was changed; free some space."), "{refused}");
    let there = count(&db);
    let many = db.write(|tx| {
        for number in 0..1000 {
            tx.execute("INSERT INTO note(title, body) VALUES(?1, hex(randomblob(500)))", [number])?;
        }
        Ok(())
    });
    assert_eq!((many.unwrap_err().code(), count(&db)), (50301, there));
    limit(1_000_000).unwrap();
    add(&db, "two").unwrap();
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn one_writes_and_others_read_what_was() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    db.write(|tx| {
        tx.execute("DELETE FROM note", [])?;
        std::thread::scope(|scope| {
            let looks: Vec<_> = (0..8).map(|_| scope.spawn(|| count(&db))).collect();
            assert!(looks.into_iter().all(|look| look.join().unwrap() == 1));
        });
        Ok(())
    })
    .unwrap();
    assert_eq!(count(&db), 0);
    // All queries of one read see the same state.
    db.read(|c| {
        let count_notes = || c.query_row("SELECT count(*) FROM note", [], |row| row.get::<_, i64>(0));
        let before = count_notes()?;
        add(&db, "two").map_err(TransactionFailure::from)?;
        assert_eq!((before, count_notes()?), (0, 0));
        assert!(c.execute("DELETE FROM note", []).is_err(), "it only reads");
        Ok(())
    })
    .unwrap();
    assert_eq!(count(&db), 1);
}

#[test]
fn who_waits_too_long_is_refused() {
    let desk = Desk::new();
    desk.open(&OLD);
    let db = Db::open(&DatabaseOpening { wait: Duration::from_millis(20), ..desk.opening(&OLD) }).unwrap();
    let busy = |refused: Error| {
        assert!(refused.message().ends_with("is in use by another call or process; try again."), "{refused}");
        assert_eq!(refused.code(), 50301);
    };
    let other = raw(&desk.path());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    busy(add(&db, "one").unwrap_err());
    other.execute_batch("COMMIT").unwrap();
    add(&db, "one").unwrap();
    db.write(|_| {
        // The thread that already reads gets this error too; otherwise it would wait for itself forever.
        busy(add(&db, "two").unwrap_err());
        Ok(())
    })
    .unwrap();
    db.read(|_| {
        db.read(|_| {
            busy(db.read(|_| Ok(())).unwrap_err());
            Ok(())
        })?;
        Ok(())
    })
    .unwrap();
    assert_eq!(titles(&db), ["one"]);
}

/// When a connection cannot be opened, the pool still has all its slots for later calls.
#[test]
fn who_cannot_read_takes_no_place_from_others() {
    let desk = Desk::new();
    let db = Db::open(&DatabaseOpening { wait: Duration::from_millis(200), ..desk.opening(&OLD) }).unwrap();
    add(&db, "one").unwrap();
    let aside = desk.folder.path().join("aside.db");
    std::fs::rename(desk.path(), &aside).unwrap();
    for _ in 0..10 {
        let refused = db.read(|c| Ok(c.query_row("SELECT count(*) FROM note", [], |row| row.get::<_, i64>(0))?));
        let refused = refused.unwrap_err();
        assert!(!refused.message().contains("busy"), "{refused}");
    }
    std::fs::rename(&aside, desk.path()).unwrap();
    assert_eq!(count(&db), 1);
}

#[test]
fn a_closed_one_refuses_all() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    db.close().unwrap();
    db.close().unwrap();
    let refusals = [
        add(&db, "one").map(|_| ()),
        db.read(|_| Ok(())),
        db.read_change_number().map(|_| ()),
        db.backup(&desk.folder.path().join("mine.db")).map(|_| ()),
        db.check().map(|_| ()),
    ];
    for refused in refusals {
        assert!(refused.unwrap_err().message().ends_with("is closed; start nudge again."));
    }
    assert_eq!(count(&desk.open(&OLD)), 0);
}

#[test]
fn changes_of_others_are_seen() {
    let desk = Desk::new();
    let (db, other) = (desk.open(&OLD), desk.open(&OLD));
    let first = db.read_change_number().unwrap();
    count(&other);
    assert_eq!(db.read_change_number().unwrap(), first);
    add(&other, "one").unwrap();
    let second = db.read_change_number().unwrap();
    add(&db, "two").unwrap();
    let third = db.read_change_number().unwrap();
    assert!(first != second && second != third, "{first} {second} {third}");
    // Reading the number works even while a write runs.
    db.write(|_| {
        assert_eq!(db.read_change_number().unwrap(), third);
        Ok(())
    })
    .unwrap();
}

/// A fence that begins to refuse while a change is made.
struct Falls(AtomicBool);

impl Fence for Falls {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if self.0.load(Ordering::SeqCst) { Err(Error::unavailable("The lock is another's.")) } else { keep() }
    }
}

#[test]
fn nothing_is_acknowledged_behind_a_fence_that_fell() {
    let desk = Desk::new();
    let fence = Arc::new(Falls(AtomicBool::new(false)));
    let db = Db::open(&DatabaseOpening { fence: fence.clone(), ..desk.opening(&OLD) }).unwrap();
    add(&db, "one").unwrap();
    let refused = db.write(|tx| {
        fence.0.store(true, Ordering::SeqCst);
        Ok(tx.execute("INSERT INTO note(title, body) VALUES('two', '')", [])?)
    });
    assert_eq!(refused.unwrap_err().message(), "The lock is another's.");
    fence.0.store(false, Ordering::SeqCst);
    assert_eq!(titles(&db), ["one"]);
}

/// A source that carries out each call with a key once.
struct Notes(Db);

static TABLE: MethodTable<Notes> = MethodTable(&[&ADD, &REFUSE]);
static ADD: TableRow<Notes> = TableRow {
    method: MethodSpec::new("nudge.notes.add", "Add", "Adds a note.", build_schema::<NoParams>),
    run: |notes, caller, params| notes.add(caller, params),
};
static REFUSE: TableRow<Notes> = TableRow {
    method: MethodSpec::new("nudge.notes.refuse", "Refuse", "Refuses.", build_schema::<NoParams>),
    run: |notes, caller, _| {
        let refused = |_: &rusqlite::Transaction<'_>| Err::<(), _>(Error::invalid("It is refused.").into());
        notes.0.write_once(caller, refused).map(|answer| answer.result)
    },
};

impl Notes {
    fn add(&self, caller: Caller<'_>, params: &RawValue) -> Result<Box<RawValue>> {
        let made = self.0.write_once(caller, |tx| {
            tx.execute("INSERT INTO note(title, body) VALUES(random(), ?1)", [params.get()])?;
            Ok(json!({"id": tx.last_insert_rowid(), "not": null}))
        })?;
        Ok(made.result)
    }
}

impl TableService for Notes {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        Some(&self.0)
    }
}

fn call(notes: &Notes, key: Option<&str>, method: &str, params: &serde_json::Value) -> Result<String> {
    let caller = Caller::with_name("test").with_key(key);
    notes.call_by(caller, method, &to_raw_value(params).unwrap()).map(|result| result.get().to_owned())
}

#[test]
fn a_call_with_a_key_is_made_once() {
    let desk = Desk::new();
    let notes = Notes(desk.open(&OLD));
    let add = |key: &str, params| call(&notes, Some(key), "nudge.notes.add", &params);
    let first = add("a", json!({"x": 1})).unwrap();
    assert_eq!(first, r#"{"id":1,"not":null}"#);
    assert_eq!(add("a", json!({"x": 1})).unwrap(), first);
    assert_eq!(add("b", json!({"x": 1})).unwrap(), r#"{"id":2,"not":null}"#);
    for other in [add("a", json!({"x": 2})), call(&notes, Some("a"), "nudge.notes.refuse", &json!({"x": 1}))] {
        let other = other.unwrap_err();
        assert_eq!(other.reason(), "E_INVALID");
        assert_eq!(other.message(), "This Idempotency-Key was used for another call; use a new key for each call.");
    }
    // A call without a key is carried out each time.
    for _ in 0..2 {
        call(&notes, None, "nudge.notes.add", &json!({})).unwrap();
    }
    // A refused call stores no key, so it is refused again.
    for _ in 0..2 {
        let refused = call(&notes, Some("c"), "nudge.notes.refuse", &json!({})).unwrap_err();
        assert_eq!(refused.message(), "It is refused.");
    }
    assert_eq!(add("c", json!({})).unwrap(), r#"{"id":5,"not":null}"#);
    // A second connection, which stands for another process, finds the stored answers too.
    let other = Notes(desk.open(&OLD));
    assert_eq!(call(&other, Some("a"), "nudge.notes.add", &json!({"x": 1})).unwrap(), first);
    assert_eq!(count(&notes.0), 5);
}

/// Promise: see `a_key_sent_again_after_a_kill`.
#[test]
fn the_same_key_at_once_is_one_call() {
    let desk = Desk::new();
    let notes = [Notes(desk.open(&OLD)), Notes(desk.open(&OLD))];
    let (sender, answers) = channel();
    std::thread::scope(|scope| {
        for number in 0..12 {
            let (notes, sender) = (&notes[number % 2], sender.clone());
            scope.spawn(move || sender.send(call(notes, Some("k"), "nudge.notes.add", &json!({})).unwrap()));
        }
    });
    drop(sender);
    let answers: Vec<_> = answers.iter().collect();
    assert_eq!((answers.len(), answers.iter().all(|answer| *answer == answers[0])), (12, true));
    assert_eq!(count(&notes[0].0), 1);
}

#[test]
fn a_key_is_known_for_an_hour_and_among_1024() {
    let desk = Desk::new();
    let notes = Notes(desk.open(&CACHE));
    let add = |key: &str| call(&notes, Some(key), "nudge.notes.add", &json!({})).unwrap();
    let keys = || notes.0.read(|c| Ok(c.query_row("SELECT count(*) FROM made", [], |row| row.get::<_, i64>(0))?));
    let first = add("first");
    desk.clock.advance_by(HOUR);
    add("an hour later");
    assert_eq!(add("first"), first);
    desk.clock.advance_by(1);
    add("later");
    let again = add("first");
    assert_ne!(again, first, "the hour is over");
    assert_eq!(add("first"), again, "and another begins");
    let answers: Vec<_> = (0..1_100).map(|number| add(&number.to_string())).collect();
    // Old keys are removed in groups of 64.
    let kept = keys().unwrap();
    assert!((1_024..1_024 + 64).contains(&kept), "{kept}");
    let forgotten = 1_100 - usize::try_from(kept).unwrap();
    assert_eq!(add(&forgotten.to_string()), answers[forgotten]);
    assert_ne!(add("0"), answers[0]);
    desk.clock.advance_by(HOUR + 1);
    (0..64).for_each(|number| drop(add(&format!("an hour later still {number}"))));
    assert!(keys().unwrap() <= 64, "nothing of the hour before is kept");
}
