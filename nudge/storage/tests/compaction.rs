//! Tests that a file is rewritten while other connections write: no acknowledged change is lost, and no deleted text is
//! left.

mod kit;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kit::{Desk, FORGETTING, SetAtEnd, add, count, titles};
use nudge_storage::{Db, mark_compaction};

/// Number of compactions while other connections write.
const ROUNDS: u32 = 20;
/// The title of a note that the test deletes and compacts away.
const SECRET: &str = "zyzzyvatron";

/// Opens a database file that still contains deleted text.
fn open_with_deleted(desk: &Desk) -> Db {
    let db = desk.open(&FORGETTING);
    for number in 0..200 {
        add(&db, &format!("zyzzy{number}")).unwrap();
    }
    add(&db, SECRET).unwrap();
    db.write(|tx| {
        tx.execute("DELETE FROM note WHERE title = ?1", [SECRET])?;
        mark_compaction(tx)
    })
    .unwrap();
    assert!(holders(desk) > 0);
    db
}

/// Counts the files in the folder that contain the secret. The function searches only the end of the secret, because
/// FTS5 stores only the part of a word that differs from the word before it.
fn holders(desk: &Desk) -> usize {
    let files = fs::read_dir(desk.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let texts = files.filter(|path| path.is_file()).map(|path| fs::read(path).unwrap());
    texts.filter(|text| text.windows(6).any(|part| part == b"vatron")).count()
}

/// Promise (storage): Compaction removes deleted text from a file that others have open and write, and loses none of
/// their changes.
#[test]
fn the_contents_are_replaced_under_all_who_have_it_open() {
    let desk = Desk::new();
    let db = open_with_deleted(&desk);
    let other = desk.open(&FORGETTING);
    let last = add(&other, "by another").unwrap();
    let (seen, theirs) = (db.read_change_number().unwrap(), other.read_change_number().unwrap());
    db.compact().unwrap();
    assert_eq!((holders(&desk), db.is_compaction_due().unwrap(), count(&db)), (0, false, 201));
    assert_ne!(db.read_change_number().unwrap(), seen, "whoever remembers rows hears of it");
    assert_ne!(other.read_change_number().unwrap(), theirs);
    for (number, db) in [&db, &other, &db, &other].into_iter().enumerate() {
        assert!(add(db, &format!("after {number}")).unwrap() > last, "a number is never another's");
    }
    assert_eq!(titles(&db), titles(&other));
    assert_eq!((holders(&desk), db.epoch(), other.epoch()), (0, 0, 0), "the file is the same");
    other.close().unwrap();
    db.close().unwrap();
    let next = desk.open(&FORGETTING);
    assert_eq!((count(&next), next.check().unwrap().is_sound()), (205, true));
    assert_eq!(holders(&desk), 0);
}

/// Promise: see `the_contents_are_replaced_under_all_who_have_it_open`.
#[test]
fn what_is_written_meanwhile_is_not_lost() {
    let desk = Desk::new();
    let db = open_with_deleted(&desk);
    let other = desk.open(&FORGETTING);
    let is_done = AtomicBool::new(false);
    let (mut written, mut given_up) = (0, 0_u32);
    std::thread::scope(|scope| {
        let writers = [&db, &other].map(|db| {
            let is_done = &is_done;
            scope.spawn(move || {
                let mut own: u64 = 0;
                while !is_done.load(Ordering::Relaxed) {
                    add(db, &format!("{:p} {own}", std::ptr::from_ref(db))).unwrap();
                    own += 1;
                    std::thread::sleep(Duration::from_millis(own % 4 * 50));
                }
                own
            })
        });
        let end = SetAtEnd(&is_done);
        for _ in 0..ROUNDS {
            db.write(mark_compaction).unwrap();
            given_up += u32::from(db.compact().is_err());
        }
        drop(end);
        written = writers.map(|writer| i64::try_from(writer.join().unwrap()).unwrap()).iter().sum();
    });
    println!("{given_up} of {ROUNDS} given up, {written} written");
    assert_eq!((count(&db), count(&other)), (200 + written, 200 + written));
    db.compact().unwrap();
    assert_eq!((holders(&desk), db.is_compaction_due().unwrap()), (0, false));
    other.close().unwrap();
    db.close().unwrap();
    let next = desk.open(&FORGETTING);
    assert_eq!((count(&next), next.check().unwrap().is_sound()), (200 + written, true));
}
