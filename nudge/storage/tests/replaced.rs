//! Tests what happens when another program moves, replaces or removes the open file.
#![cfg(unix)]

mod kit;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kit::{Desk, OLD, SetAtEnd, add, count, names, raw, titles};

/// Returns the names of the backups that hold replaced contents.
fn replaced(desk: &Desk) -> Vec<String> {
    desk.backups().into_iter().filter(|name| name.ends_with("-replaced.db")).collect()
}

/// Closes the database, and returns the titles that the next process finds. The test fails unless they include each
/// acknowledged change.
fn reopened(desk: &Desk, db: &nudge_storage::Db) -> Vec<String> {
    db.close().unwrap();
    let next = desk.open(&OLD);
    assert!(next.check().unwrap().is_sound());
    titles(&next)
}

/// Promise (storage): After another file was moved over the database, an acknowledged change is in that file, and no
/// log is replayed onto another file (Unix).
#[test]
fn a_write_after_a_copy_was_moved_over_the_file_is_in_the_copy() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    let copy = desk.folder.path().join("copy.db");
    for number in 0..20 {
        add(&db, &format!("before {number}")).unwrap();
    }
    db.backup(&copy).unwrap();
    let lost = add(&db, "not in the copy").unwrap();
    let seen = db.read_change_number().unwrap();
    fs::rename(&copy, desk.path()).unwrap();
    assert_ne!(db.read_change_number().unwrap(), seen, "whoever remembers rows hears of it");
    assert_eq!((count(&db), db.epoch()), (20, 1), "who reads sees the file that is there");
    for number in 0..30 {
        assert!(add(&db, &format!("after {number}")).unwrap() > lost, "a number is never another's");
    }
    assert_eq!(reopened(&desk, &db).len(), 50);
    let kept = replaced(&desk);
    let kept = raw(&desk.folder.path().join("backups").join(&kept[0]));
    let all: i64 = kept.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap();
    assert_eq!(all, 21, "what was replaced is kept, with what its log held");
}

/// Promise: see `a_write_after_a_copy_was_moved_over_the_file_is_in_the_copy`.
#[test]
fn a_change_goes_on_in_the_file_that_took_the_place_meanwhile() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "before").unwrap();
    let copy = desk.folder.path().join("copy.db");
    db.backup(&copy).unwrap();
    let mut calls = 0;
    db.write(|tx| {
        calls += 1;
        tx.execute("INSERT INTO note(title, body) VALUES('within', '')", [])?;
        if calls == 1 {
            fs::rename(&copy, desk.path()).unwrap();
        }
        Ok(())
    })
    .unwrap();
    assert_eq!((calls, reopened(&desk, &db)), (2, vec!["before".to_owned(), "within".into()]));
}

/// Promise: see `a_write_after_a_copy_was_moved_over_the_file_is_in_the_copy`.
#[test]
fn no_log_goes_with_a_file_that_gets_the_name_while_others_open_it() {
    const COPIES: usize = 20;
    let desk = Desk::new();
    let db = desk.open(&OLD);
    // The copies have different sizes, so a given page differs between them.
    let copies = (0..COPIES).map(|number| {
        for row in 0..20 {
            add(&db, &format!("before {number}.{row}")).unwrap();
        }
        let copy = desk.folder.path().join(format!("copy-{number}.db"));
        db.backup(&copy).unwrap();
        copy
    });
    let copies: Vec<_> = copies.collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                // This error is allowed: a write fails with it when the file is replaced several times in a row.
                if let Err(refused) = add(&db, &format!("meanwhile {number}")) {
                    assert!(refused.message().contains("again and again"), "{refused}");
                }
            }
        });
        let _end = SetAtEnd(&is_done);
        for copy in &copies {
            fs::rename(copy, desk.path()).unwrap();
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    assert!(reopened(&desk, &db).len() >= 20 * COPIES);
}

/// Promise: see `a_write_after_a_copy_was_moved_over_the_file_is_in_the_copy`.
#[test]
fn acknowledged_writes_are_there_after_all_files_were_removed() {
    for whole_folder in [true, false] {
        let desk = Desk::new();
        let db = desk.open(&OLD);
        add(&db, "before").unwrap();
        if whole_folder {
            fs::remove_dir_all(desk.folder.path()).unwrap();
        } else {
            fs::remove_file(desk.path()).unwrap();
        }
        let refused = db.read(|_| Ok(())).unwrap_err();
        assert!(refused.message().contains("is not there any more"), "a look makes none: {refused}");
        add(&db, "after").unwrap();
        assert_eq!(replaced(&desk), [""; 0], "who removes it wants no copy");
        assert_eq!(reopened(&desk, &db), ["after"], "{whole_folder}");
    }
}

#[test]
fn what_was_moved_aside_is_whole_when_it_comes_back() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "before").unwrap();
    let aside = desk.folder.path().join("aside.db");
    fs::rename(desk.path(), &aside).unwrap();
    add(&db, "in a new one").unwrap();
    fs::rename(&aside, desk.path()).unwrap();
    add(&db, "after").unwrap();
    assert_eq!(reopened(&desk, &db), ["after", "before"]);
}

#[test]
fn a_log_that_was_removed_is_copied_back_first() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "before").unwrap();
    fs::remove_file(desk.folder.path().join("notes.db-wal")).unwrap();
    add(&db, "after").unwrap();
    assert_eq!(reopened(&desk, &db), ["after", "before"]);
}

#[test]
fn what_is_no_database_is_refused_until_one_is_there_again() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "before").unwrap();
    let (copy, text) = (desk.folder.path().join("copy.db"), desk.folder.path().join("text"));
    db.backup(&copy).unwrap();
    fs::write(&text, "These are my notes, and no database.\n".repeat(200)).unwrap();
    fs::rename(&text, desk.path()).unwrap();
    for _ in 0..2 {
        let refused = add(&db, "after").unwrap_err();
        assert!(refused.message().contains("is damaged"), "{refused}");
    }
    fs::rename(&copy, desk.path()).unwrap();
    add(&db, "after").unwrap();
    assert_eq!(reopened(&desk, &db), ["after", "before"]);
}

/// Promise: see `a_write_after_a_copy_was_moved_over_the_file_is_in_the_copy`.
#[test]
fn a_server_that_ends_first_leaves_no_log_for_the_next() {
    let desk = Desk::new();
    let (db, other) = (desk.open(&OLD), desk.open(&OLD));
    add(&db, "before").unwrap();
    let copy = desk.folder.path().join("copy.db");
    db.backup(&copy).unwrap();
    add(&other, "not in the copy").unwrap();
    fs::rename(&copy, desk.path()).unwrap();
    db.close().unwrap();
    assert!(!names(desk.folder.path()).contains(&"notes.db-wal".to_owned()));
    add(&desk.open(&OLD), "of a third").unwrap();
    add(&other, "of the other").unwrap();
    drop(db);
    assert_eq!(reopened(&desk, &other), ["before", "of a third", "of the other"]);
}
