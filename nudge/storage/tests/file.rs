//! Tests the database file: owner, access, versions, damage.

mod kit;

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::time::Duration;

use kit::{CACHE, Desk, FIRST, NEW, OLD, add, app, count, names, raw, titles};
use nudge_core::clock::PlausibleClock;
use nudge_core::error::ErrorKind;
use nudge_core::patience::{self, CallLimit};
use nudge_core::source::DataDir;
use nudge_storage::rusqlite::{self, config::DbConfig};
use nudge_storage::search::{FullText, QuestionWords, TextIndexCache, search};
use nudge_storage::{
    APPLICATION_ID, DataRetention, DatabaseKind, DatabaseOpening, Db, GENERATION, KEYS, read_generation, restore_copy,
};

#[test]
fn each_connection_is_set_up() {
    for (app, synchronous) in [(&OLD, 2), (&CACHE, 1)] {
        let desk = Desk::new();
        let db = desk.open(app);
        let ask = |name: &str, c: &rusqlite::Connection| c.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let written = db.write(|tx| {
            let names = ["synchronous", "foreign_keys", "journal_size_limit", "application_id", "user_version"];
            Ok(names.map(|name| ask(name, tx).unwrap()))
        });
        assert_eq!(written.unwrap(), [synchronous, 1, 16 << 20, 0x4E55_4447, app.version()]);
        let read = db.read(|c| Ok(["busy_timeout", "temp_store"].map(|name| ask(name, c).unwrap())));
        let [busy, temp] = read.unwrap();
        assert!((4_000..=5_000).contains(&busy) && temp == 2, "{busy} {temp}");
        assert_eq!(db.journal_mode(), "wal");
    }
}

#[test]
fn a_read_ends_with_its_call() {
    const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    let (began, reading) = std::sync::mpsc::channel();
    let limit = CallLimit::from_now(Duration::from_hours(1));
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            limit.run(|| {
                db.read(|c| {
                    began.send(()).unwrap();
                    Ok(c.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)
                })
            })
        });
        reading.recv().unwrap();
        limit.give_up();
        let refused = call.join().unwrap().unwrap_err();
        assert_eq!((refused.kind(), refused.message()), (ErrorKind::Unavailable, patience::given_up().message()));
    });
    assert_eq!(count(&db), 1, "the connection serves the next call");
}

/// Before version 3.51.3, `SQLite` has a bug that damages files in WAL mode.
#[test]
fn sqlite_is_new_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

/// Promise (storage): Only the user can read a database, its log and its copies, and Nudge refuses a file that another
/// user planted.
#[cfg(unix)]
#[test]
fn all_files_are_this_users_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "two").unwrap();
    db.backup(&desk.folder.path().join("mine.db")).unwrap();
    let mode = |name: &str| desk.folder.path().join(name).metadata().unwrap().mode() & 0o777;
    assert_eq!(
        names(desk.folder.path()),
        [".notes.db.log-owner", "backups", "mine.db", "notes.db", "notes.db-shm", "notes.db-wal"]
    );
    assert_eq!([mode(""), mode("backups")], [0o700, 0o700]);
    for file in
        [".notes.db.log-owner", "mine.db", "notes.db", "notes.db-shm", "notes.db-wal", "backups/notes-2026-11-24.1.db"]
    {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    db.close().unwrap();
    assert_eq!(names(desk.folder.path()), ["backups", "mine.db", "notes.db"], "the log was copied back");
}

/// Promise: see `all_files_are_this_users_alone`.
#[cfg(unix)]
#[test]
fn a_file_put_in_its_place_is_refused() {
    let desk = Desk::new();
    let folder = desk.folder.create_folder().unwrap();
    let elsewhere = folder.join("elsewhere.db");
    raw(&elsewhere).execute_batch("CREATE TABLE t(x)").unwrap();
    let before = fs::read(&elsewhere).unwrap();
    let refused = |what: &str| {
        let refused = desk.try_open(&OLD).err().expect(what);
        assert!(refused.message().ends_with("is not a regular file of this user's alone; move it away."), "{refused}");
        fs::remove_file(desk.path()).or_else(|_| fs::remove_dir(desk.path())).unwrap();
    };
    std::os::unix::fs::symlink(&elsewhere, desk.path()).unwrap();
    refused("a link");
    fs::hard_link(&elsewhere, desk.path()).unwrap();
    refused("a second name");
    fs::create_dir(desk.path()).unwrap();
    refused("a folder");
    assert!(std::process::Command::new("mkfifo").arg(desk.path()).status().unwrap().success());
    refused("a pipe");
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let desk = Desk::new();
    desk.folder.create_folder().unwrap();
    let text = "These are my notes, and no database.\n".repeat(200);
    fs::write(desk.path(), &text).unwrap();
    let refused = desk.try_open(&OLD).err().unwrap();
    assert_eq!((refused.kind(), &refused.data()["damaged"]), (ErrorKind::Unavailable, &true.into()));
    assert!(refused.message().ends_with("else move it away when no nudge runs, to begin anew."));
    assert_eq!(fs::read_to_string(desk.path()).unwrap(), text);
}

/// Promise: see `damage_is_told_and_nothing_is_moved`.
#[test]
fn a_database_of_another_program_is_left_alone() {
    for (id, version) in [(0, 0), (0x0f05_5111, 0), (APPLICATION_ID + 1, 1), (APPLICATION_ID, -1)] {
        let desk = Desk::new();
        desk.folder.create_folder().unwrap();
        let theirs = raw(&desk.path());
        theirs.pragma_update(None, "application_id", id).unwrap();
        theirs.pragma_update(None, "user_version", version).unwrap();
        theirs.pragma_update(None, "journal_mode", "wal").unwrap();
        theirs.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); CREATE TABLE t(x); INSERT INTO t VALUES(1)").unwrap();
        // The log stays, as it does after a kill of the process.
        theirs.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        drop(theirs);
        let both = || ["notes.db", "notes.db-wal"].map(|name| fs::read(desk.folder.path().join(name)).unwrap());
        let before = both();
        assert!(before[1].len() > 1000, "what they have not copied back yet stays in the log");
        let refused = desk.try_open(&OLD).err().unwrap();
        assert!(refused.message().ends_with("is another program's and is left alone; move it away."), "{refused}");
        assert_eq!(both(), before);
    }
}

/// Promise: see `damage_is_told_and_nothing_is_moved`.
#[test]
fn a_newer_schema_is_left_alone() {
    let desk = Desk::new();
    let db = desk.open(&NEW);
    add(&db, "new").unwrap();
    let both = || ["notes.db", "notes.db-wal"].map(|name| fs::read(desk.folder.path().join(name)).unwrap());
    let before = both();
    let refused = desk.try_open(&OLD).err().unwrap();
    assert!(refused.message().ends_with("was written by a newer nudge; update this one."), "{refused}");
    assert_eq!((refused.code(), &refused.data()["newer"]), (50301, &true.into()));
    assert!(both() == before, "not even what is in its log was moved");
}

#[test]
fn a_migration_makes_a_copy_and_all_of_it_or_nothing() {
    static BROKEN: DatabaseKind = app(&[KEYS, "CREATE TABLE a(x); CREATE TABLE a(x);"], DataRetention::Data);
    let desk = Desk::new();
    desk.try_open(&BROKEN).err().expect("a script that fails");
    add(&desk.open(&OLD), "one").unwrap();
    let db = desk.open(&NEW);
    let kind = |db: &Db| db.read(|c| Ok(c.query_row("SELECT kind FROM note", [], |row| row.get::<_, String>(0))?));
    assert_eq!(kind(&db).unwrap(), "issue");
    assert_eq!(desk.backups(), ["notes-2026-11-23.1.v2.db"]);
    let copy = raw(&db.newest_backup().unwrap());
    let version: i64 = copy.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, OLD.version());
    let columns = copy.query_row("SELECT count(*) FROM pragma_table_info('note')", [], |row| row.get::<_, i64>(0));
    assert_eq!(columns.unwrap(), 3, "as it was before");
}

#[test]
fn a_copy_for_each_day_on_which_something_changed() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    for day in 0..6 {
        add(&db, &format!("day {day}")).unwrap();
        add(&db, &format!("day {day}, later")).unwrap();
        desk.clock.advance_by(24 * kit::HOUR);
    }
    let three = ["notes-2026-11-26.3.db", "notes-2026-11-27.4.db", "notes-2026-11-28.5.db"];
    assert_eq!(desk.backups(), three, "three are kept, and there is none of the day on which it was made");
    count(&db);
    assert_eq!(desk.backups(), three, "a look makes none");
    assert_eq!(count_in(&db.newest_backup().unwrap()), 10, "what was there before the first change of the day");
    // Another process finds the copy of the day and makes no second one.
    let other = desk.open(&OLD);
    let copies = desk.folder.path().join("backups");
    let mine = copies.join("notes-mine.db");
    let parts =
        [".notes-2026-11-20.7.db.7-0.part", ".notes-2036-11-20.db.7-0.part", ".notes-2026-11-20.db.7-0.part-journal"];
    let others = ["notes-2026-11-20.db.txt", "notes-2026-13-20.db", "notes-2026-11-20.vx.db", "other-2026-11-20.db"];
    let of_a_version = copies.join("notes-2026-11-20.v1.db");
    for path in [&mine, &of_a_version].into_iter().chain(&others.map(|name| copies.join(name))) {
        fs::write(path, "mine").unwrap();
    }
    for part in parts {
        fs::write(copies.join(part), "of a process that died").unwrap();
    }
    add(&db, "day 6").unwrap();
    add(&other, "day 6 as well").unwrap();
    assert!(!of_a_version.exists(), "the oldest of ours");
    for name in others {
        fs::remove_file(copies.join(name)).expect("what is none of ours stays");
    }
    assert_eq!(desk.backups()[1..], ["notes-2026-11-28.5.db", "notes-2026-11-29.6.db", "notes-mine.db"]);
    assert_eq!(count_in(&db.newest_backup().unwrap()), 12);
}

/// The name of a copy has the date on which it was made, and the clock may have been wrong then.
///
/// Promise (storage): Copies from the time before a wrong clock stay, and each later day gets its copy.
#[test]
fn three_days_of_a_clock_that_is_ahead_remove_no_copy_from_before() {
    let desk = Desk::new();
    let day = |db: &Db, title: &str| {
        desk.clock.advance_by(24 * kit::HOUR);
        add(db, title).unwrap();
    };
    let db = desk.open(&OLD);
    (0..3).for_each(|number| day(&db, &format!("before {number}")));
    let before = desk.backups();
    assert_eq!(before.len(), 3);
    let ten_years = 3650 * 24 * kit::HOUR;
    desk.clock.jump_by(ten_years);
    (0..3).for_each(|number| day(&db, &format!("ahead {number}")));
    assert!(desk.backups().contains(&before[2]), "{:?}", desk.backups());
    desk.clock.jump_by(-ten_years);
    for number in 0..3 {
        day(&db, &format!("after {number}"));
        let newest = db.newest_backup().unwrap();
        assert_eq!(count_in(&newest), count(&db) - 1, "a copy is made and kept each day, and is the newest");
    }
    assert_eq!(desk.backups().len(), 4, "{:?}", desk.backups());
}

/// A session uses plausible dates, so a clock that is wrong for seconds causes no copy.
#[test]
fn a_clock_that_is_ahead_for_seconds_makes_no_copy() {
    let desk = Desk::new();
    let clock = Arc::new(PlausibleClock::new(desk.clock.clone(), None));
    let db = Db::open(&DatabaseOpening { clock, ..desk.opening(&OLD) }).unwrap();
    add(&db, "one").unwrap();
    desk.clock.jump_by(3650 * 24 * kit::HOUR);
    add(&db, "two").unwrap();
    assert_eq!(desk.backups(), [""; 0]);
    desk.clock.jump_by(-3650 * 24 * kit::HOUR);
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "three").unwrap();
    assert_eq!(desk.backups(), ["notes-2026-11-24.1.db"]);
}

/// Copies of an earlier version have no number in their names.
#[test]
fn copies_without_a_number_are_the_oldest() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    let copies = desk.folder.path().join("backups");
    fs::create_dir(&copies).unwrap();
    fs::set_permissions(&copies, fs::metadata(desk.folder.path()).unwrap().permissions()).unwrap();
    for name in ["notes-2036-01-01.db", "notes-2026-11-22.db", "notes-2026-11-21.v1.db"] {
        db.backup(&copies.join(name)).unwrap();
    }
    assert_eq!(
        db.newest_backup().unwrap(),
        copies.join("notes-2036-01-01.db"),
        "nothing tells them apart but the date"
    );
    for number in 0..3 {
        desk.clock.advance_by(24 * kit::HOUR);
        add(&db, &number.to_string()).unwrap();
    }
    let four = ["notes-2026-11-24.1.db", "notes-2026-11-25.2.db", "notes-2026-11-26.3.db", "notes-2036-01-01.db"];
    assert_eq!((desk.backups(), db.newest_backup().unwrap()), (four.map(String::from).to_vec(), copies.join(four[2])));
}

fn count_in(path: &std::path::Path) -> i64 {
    raw(path).query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_copy_that_fails_holds_up_no_change() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    fs::write(desk.folder.path().join("backups"), "a file").unwrap();
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "one").unwrap();
    let failed = db.backup_failed().unwrap();
    assert!(failed.message().starts_with("A backup in ") && failed.reason() == "E_UNAVAILABLE", "{failed}");
    fs::remove_file(desk.folder.path().join("backups")).unwrap();
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "two").unwrap();
    assert!(db.backup_failed().is_none() && desk.backups() == ["notes-2026-11-25.1.db"]);
}

#[test]
fn a_copy_never_takes_a_files_place() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    let to = desk.folder.path().join("mine.db");
    assert_eq!(db.backup(&to).unwrap(), to.metadata().unwrap().len());
    assert_eq!(db.backup(&to).unwrap_err().reason(), "E_INVALID");
    assert_eq!(db.backup(&desk.path()).unwrap_err().reason(), "E_INVALID");
    assert_eq!(db.backup(&desk.folder.path().join("no/such/folder.db")).unwrap_err().reason(), "E_UNAVAILABLE");
    assert_eq!((count_in(&to), count(&db)), (1, 1));
}

/// Overwrites the middle of the first page of a table.
fn damage(desk: &Desk, table: &str) {
    let page: u64 = raw(&desk.path())
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get::<_, i64>(0))
        .unwrap()
        .try_into()
        .unwrap();
    let mut file = fs::OpenOptions::new().read(true).write(true).open(desk.path()).unwrap();
    let mut page_bytes = [0; 2];
    file.seek(SeekFrom::Start(16)).unwrap();
    file.read_exact(&mut page_bytes).unwrap();
    file.seek(SeekFrom::Start((page - 1) * u64::from(u16::from_be_bytes(page_bytes)))).unwrap();
    file.write_all(&[0xa5; 600]).unwrap();
}

/// Promise (storage): Nudge does not change a file that is damaged, newer, or of another program.
#[test]
fn damage_is_told_and_nothing_is_moved() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    for number in 0..50 {
        add(&db, &number.to_string()).unwrap();
    }
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "the next day").unwrap();
    db.close().unwrap();
    damage(&desk, "vector");
    let before = fs::read(desk.path()).unwrap();

    let db = desk.open(&OLD);
    let backup = desk.folder.path().join("backups/notes-2026-11-24.1.db");
    let damaged = |refused: nudge_core::error::Error| {
        let rest = format!(
            "notes.db is damaged; `nudge notes recover {}` puts its newest backup in its place.",
            backup.display()
        );
        assert!(refused.message().ends_with(&rest), "{refused}");
        assert_eq!((refused.code(), refused.data()["backup"].as_str()), (50301, backup.to_str()));
    };
    damaged(db.read(|c| Ok(c.execute("SELECT sum(length(bytes)) FROM vector", [])?)).unwrap_err());
    damaged(add(&db, "it has a vector").unwrap_err());
    assert_eq!(count(&db), 51, "what can be read is read");
    assert!(!db.check().unwrap().is_sound());
    // A copy of a damaged file does not replace a good one.
    desk.clock.advance_by(24 * kit::HOUR);
    damaged(add(&db, "it has a vector").unwrap_err());
    damaged(db.backup_failed().unwrap());
    assert_eq!(desk.backups(), ["notes-2026-11-24.1.db"]);
    db.close().unwrap();
    assert!(fs::read(desk.path()).unwrap() == before, "as it was");

    // Another connection has the database open during the restore.
    let other = desk.open(&OLD);
    let kept = restore_copy(&desk.opening(&OLD), &backup).unwrap().unwrap();
    assert!(kept.to_string_lossy().ends_with("-damaged.db") && fs::read(kept).unwrap() == before, "byte for byte");
    assert_eq!(count(&other), 50);
    add(&other, "goes on").unwrap();
    let db = desk.open(&OLD);
    assert!(db.check().unwrap().is_sound() && count(&db) == 51);
}

#[test]
fn a_copy_is_put_back_over_whatever_is_there() {
    let desk = Desk::new();
    add(&desk.open(&OLD), "one").unwrap();
    let copy = desk.folder.path().join("copy.db");
    desk.open(&OLD).backup(&copy).unwrap();
    fs::write(desk.path(), "no database".repeat(1000)).unwrap();
    restore_copy(&desk.opening(&OLD), &copy).unwrap();
    assert_eq!(titles(&desk.open(&OLD)), ["one"]);
    add(&desk.open(&OLD), "two").unwrap();
    let first = restore_copy(&desk.opening(&OLD), &copy).unwrap().unwrap();
    assert_eq!(titles(&desk.open(&OLD)), ["one"]);
    // A second restore in the same second does not overwrite the first saved file, which may be the only copy of its
    // contents.
    let second = restore_copy(&desk.opening(&OLD), &copy).unwrap().unwrap();
    assert_ne!(first, second);
    restore_copy(&desk.opening(&OLD), &first).unwrap();
    assert_eq!(titles(&desk.open(&OLD)), ["one", "two"], "a mistake can be taken back");
    // Restores into a folder without a database; the next opening runs the missing migrations.
    let new = Desk::new();
    restore_copy(&new.opening(&NEW), &copy).unwrap();
    assert_eq!(titles(&new.open(&NEW)), ["one"]);
    // Restores an older schema while the database is open; the next process runs the migrations.
    let db = new.open(&NEW);
    restore_copy(&new.opening(&NEW), &copy).unwrap();
    let refused = add(&db, "two").unwrap_err();
    assert!(refused.message().ends_with("was replaced by one of an earlier version; start nudge again."), "{refused}");
}

/// Code that has stored row numbers must not find other rows under these numbers after a restore.
#[test]
fn what_is_put_back_is_of_another_generation_and_gives_no_number_again() {
    static MARKED: DatabaseKind = app(&[KEYS, FIRST, GENERATION], DataRetention::Data);
    let desk = Desk::new();
    let named = || desk.open(&MARKED).read(|c| Ok(read_generation(c)?)).unwrap();
    let path_of = |name: &str| desk.folder.path().join(name);
    desk.open(&MARKED).backup(&path_of("empty.db")).unwrap();
    let first = named();
    assert_eq!((first.len(), &first), (16, &named()), "until something else is put in its place");
    assert_eq!(add(&desk.open(&MARKED), "one").unwrap(), 1);
    desk.open(&MARKED).backup(&path_of("one.db")).unwrap();
    assert_eq!(add(&desk.open(&MARKED), "two").unwrap(), 2);
    restore_copy(&desk.opening(&MARKED), &path_of("one.db")).unwrap();
    let second = named();
    assert_ne!(first, second);
    assert_eq!(add(&desk.open(&MARKED), "three").unwrap(), 3, "though the copy knows of no second");
    restore_copy(&desk.opening(&MARKED), &path_of("empty.db")).unwrap();
    assert!(![first, second].contains(&named()));
    assert_eq!(add(&desk.open(&MARKED), "four").unwrap(), 4, "though the copy knows of none");
}

#[test]
fn a_file_that_has_lost_everything_is_not_begun_anew() {
    let desk = Desk::new();
    add(&desk.open(&OLD), "one").unwrap();
    desk.clock.advance_by(24 * kit::HOUR);
    add(&desk.open(&OLD), "two").unwrap();
    let copy = desk.open(&OLD).newest_backup().unwrap();
    fs::write(desk.path(), "").unwrap();
    for log in ["notes.db-wal", "notes.db-shm"] {
        let _ = fs::remove_file(desk.folder.path().join(log));
    }
    let refused = Db::open(&desk.opening(&OLD)).err().unwrap();
    assert!(refused.message().contains("is empty, and its newest backup is not; `nudge notes recover "), "{refused}");
    assert_eq!(fs::read(desk.path()).unwrap(), b"", "nothing was written");
    restore_copy(&desk.opening(&OLD), &copy).unwrap();
    assert_eq!(titles(&desk.open(&OLD)), ["one"]);
}

#[test]
fn only_a_sound_copy_of_the_same_kind_is_put_back() {
    let desk = Desk::new();
    add(&desk.open(&OLD), "one").unwrap();
    let refused = |path: &std::path::Path| {
        let refused = restore_copy(&desk.opening(&OLD), path).unwrap_err();
        assert_eq!(titles(&desk.open(&OLD)), ["one"]);
        refused.message().rsplit_once(".db ").map_or_else(String::new, |(_, rest)| rest.to_owned())
    };
    let path_of = |name: &str| desk.folder.path().join(name);
    assert!(refused(&path_of("missing.db")).starts_with("cannot be opened ("));
    fs::write(path_of("text.db"), "text".repeat(1000)).unwrap();
    assert_eq!(refused(&path_of("text.db")), "is not a database, or is damaged; give another backup.");
    raw(&path_of("theirs.db")).execute_batch("CREATE TABLE t(x)").unwrap();
    assert_eq!(refused(&path_of("theirs.db")), "is not a database of Nudge's; give one of its backups.");
    assert_eq!(refused(&desk.path()), "is the database itself; give one of its backups.");
    let newer = Desk::new();
    newer.open(&NEW).backup(&path_of("newer.db")).unwrap();
    assert_eq!(refused(&path_of("newer.db")), "was written by a newer nudge; update this one.");
}

/// A copy from another program may have anything in its schema.
#[test]
fn a_copy_brings_rows_and_nothing_else() {
    let desk = Desk::new();
    add(&desk.open(&OLD), "one").unwrap();
    let copy = desk.folder.path().join("copy.db");
    desk.open(&OLD).backup(&copy).unwrap();
    let schema = |path: &std::path::Path| {
        let sql = "SELECT group_concat(type || name || coalesce(sql, '') , char(10)) FROM (SELECT * FROM sqlite_schema ORDER BY name)";
        raw(path).query_row(sql, [], |row| row.get::<_, String>(0)).unwrap()
    };
    let before = schema(&desk.path());
    raw(&copy)
        .execute_batch(
            "CREATE TRIGGER more AFTER INSERT ON note BEGIN INSERT INTO note(title, body) VALUES('planted', 'by me'); END;
             CREATE TRIGGER less BEFORE DELETE ON note BEGIN SELECT raise(IGNORE); END;
             CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n;
             CREATE TABLE theirs(x); CREATE INDEX note_theirs ON note(title, body);",
        )
        .unwrap();
    restore_copy(&desk.opening(&OLD), &copy).unwrap();
    assert_eq!(schema(&desk.path()), before);
    let db = desk.open(&OLD);
    add(&db, "two").unwrap();
    assert_eq!(titles(&db), ["one", "two"]);
    assert!(db.check().unwrap().is_sound());
    let found = db
        .read(|c| Ok(search(c, &NOTES, &QuestionWords::from_text("the worker crashed"), &TextIndexCache::default())?))
        .unwrap();
    assert_eq!(found.rows.len(), 2, "the index was made of the rows");
    assert!(names(&desk.folder.path().join("backups")).iter().all(|name| !name.contains("recovered")));
    drop(db);
    // A view takes the name of the table.
    raw(&copy).execute_batch("DROP TABLE note; CREATE VIEW note AS SELECT * FROM endless").unwrap();
    let refused = restore_copy(&desk.opening(&OLD), &copy).unwrap_err();
    assert!(refused.message().contains("is not a database, or is damaged"), "{refused}");
    assert_eq!(titles(&desk.open(&OLD)), ["one", "two"], "nothing is changed");
}

static NOTES: FullText = FullText { table: "note_fts", weights: &[2.0, 1.0], vocabulary: Some("note_words") };

/// A damaged index holds no data of its own, so Nudge rebuilds it and repeats the search.
#[test]
fn a_damaged_index_mends_itself() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    add(&db, "one").unwrap();
    raw(&desk.path()).execute_batch("UPDATE note_fts_data SET block = x'0000' WHERE id > 10").unwrap();
    let found = db
        .read(|c| Ok(search(c, &NOTES, &QuestionWords::from_text("the worker crashed"), &TextIndexCache::default())?))
        .unwrap();
    assert!(found.rows[&1].coverage > 0.99, "{found:?}");
    assert_eq!(db.check().unwrap(), nudge_storage::DatabaseHealth::default());
    // The check also finds an index that can be read but is wrong.
    raw(&desk.path()).execute_batch("INSERT INTO note_fts(note_fts) VALUES('delete-all')").unwrap();
    let health = db.check().unwrap();
    assert!(health.is_sound() && health.rebuilt == ["note_fts"], "{health:?}");
    let found = db
        .read(|c| Ok(search(c, &NOTES, &QuestionWords::from_text("the worker crashed"), &TextIndexCache::default())?))
        .unwrap();
    assert_eq!(found.rows.len(), 1);
}

#[test]
fn a_damaged_cache_is_emptied() {
    let desk = Desk::new();
    desk.folder.create_folder().unwrap();
    fs::write(desk.path(), "no database".repeat(1000)).unwrap();
    let db = desk.open(&CACHE);
    add(&db, "one").unwrap();
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "two").unwrap();
    assert!(desk.backups().is_empty());
    // A source empties its cache while other connections have it open.
    let other = desk.open(&CACHE);
    db.begin_anew().unwrap();
    assert_eq!((count(&db), count(&other)), (0, 0));
    add(&other, "three").unwrap();
    assert_eq!(titles(&db), ["three"]);
    let data = Desk::new();
    let data = data.open(&OLD);
    assert!(data.begin_anew().unwrap_err().message().contains("never emptied"));
}

/// `SQLite` makes only the log and its index beside the file, and the log does not grow without limit.
#[test]
fn the_log_is_cut_at_the_end_and_daily() {
    let desk = Desk::new();
    let db = desk.open(&OLD);
    let log = || desk.folder.path().join("notes.db-wal").metadata().map_or(0, |meta| meta.len());
    for number in 0..20 {
        add(&db, &number.to_string()).unwrap();
    }
    let before = log();
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "the next day").unwrap();
    assert!(0 < log() && log() < before, "{} < {before}", log());
    let reading = raw(&desk.path());
    reading.execute_batch("BEGIN; SELECT count(*) FROM note").unwrap();
    db.close().unwrap();
    assert!(log() > 0, "somebody still reads in it");
    reading.execute_batch("COMMIT").unwrap();
    desk.open(&OLD).close().unwrap();
    assert_eq!(log(), 0);
}

/// The test reads the descriptors from `/proc`, which only Linux has; the tested code is the same on all systems.
///
/// Promise (storage): Only `SQLite` opens the database file, so the process never loses the locks of the file.
#[cfg(target_os = "linux")]
#[test]
fn sqlite_alone_opens_the_file() {
    let desk = Desk::new();
    let open = || {
        let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
        links.filter(|link| fs::read_link(link.path()).is_ok_and(|to| to == desk.path())).count()
    };
    let db = desk.open(&OLD);
    assert_eq!(open(), 1, "the connection that writes");
    desk.clock.advance_by(24 * kit::HOUR);
    add(&db, "one").unwrap();
    assert_eq!(open(), 1);
    db.read(|_| {
        db.read(|_| {
            db.read_change_number().unwrap();
            assert_eq!(open(), 4, "two that read, and one that looks");
            Ok(())
        })?;
        Ok(())
    })
    .unwrap();
    db.backup(&desk.folder.path().join("mine.db")).unwrap();
    db.newest_backup().unwrap();
    assert_eq!(open(), 4);
    // SQLite keeps a descriptor open until closing it can drop no lock, and uses it again.
    let after = || {
        db.check().unwrap();
        desk.try_open(&OLD).unwrap();
        open()
    };
    let once = after();
    assert!(once <= 6 && (0..5).all(|_| after() == once), "{once}");
    db.close().unwrap();
    assert_eq!(open(), 0);
}

/// The parent folder allows no new files, and the failed opening leaves no file behind.
#[cfg(target_os = "linux")]
#[test]
fn a_place_without_room_for_a_folder_is_refused() {
    let folder = DataDir::new("/proc/self/nudge");
    let refused = Db::open(&DatabaseOpening::new(&folder, &OLD)).err().unwrap();
    assert!(refused.message().starts_with("The folder /proc/self/nudge cannot be made ("), "{refused}");
}

/// `SQLite` must never read a path as a URI, whatever characters the path has.
#[cfg(unix)]
#[test]
fn names_are_no_addresses() {
    let place = tempfile::tempdir().unwrap();
    let folder = DataDir::new(place.path().join("file:x?mode=memory&cache=shared#%41"));
    let db = Db::open(&DatabaseOpening { wait: Duration::ZERO, ..DatabaseOpening::new(&folder, &OLD) }).unwrap();
    add(&db, "one").unwrap();
    db.backup(&folder.path().join("file:mine?mode=memory.db")).unwrap();
    assert_eq!(names(folder.path())[..3], [".notes.db.log-owner", "file:mine?mode=memory.db", "notes.db"]);
    assert_eq!(count_in(&folder.path().join("file:mine?mode=memory.db")), 1);
}
