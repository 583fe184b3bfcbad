//! Tests that the rows of a session come back as they were acknowledged, whatever other programs do to the file.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nudge_core::error::Result;
use nudge_core::source::{RowChange, RowTaker};
use nudge_storage::{RestoredRows, SessionDb};
use proptest::prelude::*;
use tempfile::TempDir;

type Rows = BTreeMap<String, String>;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::with_prefix("nudge-session-").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn open(&self, keep: bool) -> (SessionDb, RestoredRows) {
        SessionDb::open(self.path(), "session", keep).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn put(name: &str, body: &str) -> RowChange {
    RowChange::put("note", name, body.to_owned())
}

fn all_of(rows: &Rows) -> Vec<RowChange> {
    rows.iter().map(|(name, body)| put(name, body)).collect()
}

fn by_name(restored: RestoredRows) -> Rows {
    restored.rows.into_iter().map(|(_, row)| (row.name, row.body)).collect()
}

/// Feeds these rows.
fn feed(rows: impl AsRef<[RowChange]>) -> impl Fn(&mut RowTaker<'_>) -> Result<()> {
    move |take| rows.as_ref().iter().try_for_each(&mut *take)
}

fn write(db: &mut SessionDb, changes: &[RowChange]) -> Result<()> {
    db.write("demo", &feed(changes), &|_| panic!("no row is missing"))
}

fn shorten(path: &Path, bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_start_without_a_change_makes_no_file() {
    let place = Place::new();
    let (mut db, restored) = place.open(true);
    assert!(restored.rows.is_empty() && restored.notice.is_none());
    write(&mut db, &[]).unwrap();
    assert_eq!((place.names().len(), db.file_bytes(), db.is_ours()), (0, 0, true));
    write(&mut db, &[put("a", "one")]).unwrap();
    assert_eq!(place.names(), ["session.db", "session.db-wal"]);
    for name in place.names() {
        assert_eq!(fs::metadata(place.file(&name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(db.file_bytes() > 0 && db.is_ours());
    drop(db);
    let (db, restored) = place.open(false);
    assert!(restored.rows.is_empty(), "a new session");
    assert_eq!(place.names().len(), 0);
    db.clear().unwrap();
}

#[test]
fn a_cleared_session_leaves_nothing() {
    let place = Place::new();
    let (mut db, _) = place.open(false);
    write(&mut db, &[put("a", "one")]).unwrap();
    db.clear().unwrap();
    assert_eq!(place.names().len(), 0);
    assert!(place.open(true).1.rows.is_empty());
}

/// Promise (session): When another program removes, replaces or shortens the rows of a session, the next change stores
/// all of them again.
#[test]
fn rows_that_another_program_takes_away_are_stored_again() {
    type Harm = fn(&Place);
    let harms: [(&str, Harm); 7] = [
        ("the file is removed", |place| fs::remove_file(place.file("session.db")).unwrap()),
        ("its log is removed", |place| fs::remove_file(place.file("session.db-wal")).unwrap()),
        ("both are removed", |place| {
            fs::remove_file(place.file("session.db")).unwrap();
            fs::remove_file(place.file("session.db-wal")).unwrap();
        }),
        ("the file is replaced", |place| {
            fs::write(place.file("other"), b"a text").unwrap();
            fs::rename(place.file("other"), place.file("session.db")).unwrap();
        }),
        ("the file is a link", |place| {
            fs::remove_file(place.file("session.db")).unwrap();
            std::os::unix::fs::symlink(place.file("elsewhere"), place.file("session.db")).unwrap();
        }),
        ("the log is shortened", |place| shorten(&place.file("session.db-wal"), 100)),
        ("the file is emptied", |place| shorten(&place.file("session.db"), 0)),
    ];
    for (what, harm) in harms {
        let place = Place::new();
        let (mut db, _) = place.open(false);
        let before = Rows::from([("a".into(), "one".into()), ("b".into(), "two".into())]);
        write(&mut db, &all_of(&before)).unwrap();
        harm(&place);
        db.write("demo", &feed([put("c", "three")]), &feed(all_of(&before))).unwrap();
        write(&mut db, &[RowChange::delete("note", "a")]).unwrap();
        drop(db);
        let (_, restored) = place.open(true);
        assert_eq!(restored.notice, None, "{what}");
        assert_eq!(by_name(restored), Rows::from([("b".into(), "two".into()), ("c".into(), "three".into())]), "{what}");
        assert!(!place.file("elsewhere").exists(), "{what}");
    }
}

/// Creates something with the database's name. Returns false when this user may not do that.
type Plant = fn(victim: &Path, place: &Path) -> bool;

const PLANTS: [(&str, Plant); 5] = [
    ("a link", |victim, place| std::os::unix::fs::symlink(victim, place).is_ok()),
    ("a second name", |victim, place| fs::hard_link(victim, place).is_ok()),
    ("a pipe", |_, place| std::process::Command::new("mkfifo").arg(place).status().is_ok_and(|made| made.success())),
    ("a socket", |_, place| std::os::unix::net::UnixListener::bind(place).is_ok()),
    ("another user's file", |victim, place| {
        fs::copy(victim, place).unwrap();
        let is_given = std::os::unix::fs::chown(place, Some(65_534), None).is_ok();
        if !is_given {
            eprintln!("skipped: this user cannot give files away");
        }
        is_given
    }),
];

#[test]
fn a_file_that_is_not_ours_is_replaced_and_left_as_it_was() {
    for (what, plant) in PLANTS {
        for keep in [true, false] {
            let place = Place::new();
            let (mut db, _) = place.open(false);
            write(&mut db, &[put("theirs", "x")]).unwrap();
            drop(db);
            let victim = place.file("victim");
            fs::rename(place.file("session.db"), &victim).unwrap();
            let before = fs::read(&victim).unwrap();
            if !plant(&victim, &place.file("session.db")) {
                continue;
            }
            let (mut db, restored) = place.open(keep);
            assert!(restored.rows.is_empty(), "{what} is not believed");
            assert_eq!(restored.notice.is_some(), keep, "{what}");
            db.write("demo", &feed([put("ours", "y")]), &feed([])).unwrap();
            drop(db);
            assert_eq!(by_name(place.open(true).1), Rows::from([("ours".into(), "y".into())]), "{what}");
            assert_eq!(fs::read(&victim).unwrap(), before, "{what}");
        }
    }
}

#[test]
fn a_database_open_to_others_is_closed() {
    let place = Place::new();
    let (mut db, _) = place.open(false);
    write(&mut db, &[put("a", "one")]).unwrap();
    drop(db);
    for mode in [0o644, 0o000] {
        for name in place.names() {
            fs::set_permissions(place.file(&name), fs::Permissions::from_mode(mode)).unwrap();
        }
        assert_eq!(by_name(place.open(true).1).len(), 1);
        for name in place.names() {
            assert_eq!(fs::metadata(place.file(&name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        }
    }
}

#[test]
fn a_directory_with_the_name_refuses_changes_until_it_is_gone() {
    let place = Place::new();
    fs::create_dir(place.file("session.db")).unwrap();
    let (mut db, restored) = place.open(true);
    assert!(restored.notice.unwrap().contains("not a regular file"));
    let refused = db.write("demo", &feed([put("a", "one")]), &feed([])).unwrap_err();
    assert!(refused.message().contains("is a directory, so no change can be kept; remove it"), "{refused:?}");
    fs::remove_dir(place.file("session.db")).unwrap();
    db.write("demo", &feed([put("a", "one")]), &feed([])).unwrap();
    drop(db);
    assert_eq!(by_name(place.open(true).1).len(), 1);
}

#[test]
fn a_file_of_another_version_is_neither_restored_nor_lost() {
    let place = Place::new();
    let (mut db, _) = place.open(false);
    write(&mut db, &[put("a", "one")]).unwrap();
    drop(db);
    let version = |version: i64| {
        let c = nudge_storage::rusqlite::Connection::open(place.file("session.db")).unwrap();
        c.pragma_update(None, "user_version", version).unwrap();
    };
    version(2);
    let Err(refused) = SessionDb::open(place.path(), "session", true) else { panic!("it is another version's") };
    assert!(refused.message().contains("another version"), "{refused:?}");
    version(1);
    assert_eq!(by_name(place.open(true).1).len(), 1);
}

#[test]
fn a_second_primary_waits_until_the_first_has_closed_the_file() {
    let place = Place::new();
    let (mut db, _) = place.open(false);
    write(&mut db, &[put("a", "one")]).unwrap();
    std::thread::scope(|threads| {
        let second = threads.spawn(|| by_name(place.open(true).1).len());
        write(&mut db, &[put("b", "two")]).unwrap();
        assert!(!second.is_finished());
        drop(db);
        assert_eq!(second.join().unwrap(), 2);
    });
}

#[test]
fn a_file_that_is_no_database_restores_nothing_and_stops_nobody() {
    for bytes in [&b"a text that is no database"[..], &[0; 5000], b"SQLite format 3\0"] {
        let place = Place::new();
        fs::write(place.file("session.db"), bytes).unwrap();
        fs::set_permissions(place.file("session.db"), fs::Permissions::from_mode(0o600)).unwrap();
        let (mut db, restored) = place.open(true);
        assert!(restored.rows.is_empty() && restored.notice.is_some(), "{bytes:?}");
        db.write("demo", &feed([put("a", "one")]), &feed([])).unwrap();
        drop(db);
        assert_eq!(by_name(place.open(true).1).len(), 1);
    }
}

/// Promise (session): A damaged row is never restored as another value.
#[test]
fn a_flipped_bit_never_changes_a_row() {
    let place = Place::new();
    let (mut db, _) = place.open(false);
    let rows: Rows = (0..40).map(|n| (format!("name-{n}"), format!("body {n} {}", "x".repeat(n * 7)))).collect();
    write(&mut db, &all_of(&rows)).unwrap();
    drop(db);
    let originals: Vec<_> =
        place.names().into_iter().map(|name| (name.clone(), fs::read(place.file(&name)).unwrap())).collect();
    let mut lost = 0;
    for (name, bytes) in &originals {
        for at in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
            for (name, bytes) in &originals {
                fs::write(place.file(name), bytes).unwrap();
            }
            let file = OpenOptions::new().write(true).open(place.file(name)).unwrap();
            file.write_all_at(&[bytes[at] ^ 0x10], at as u64).unwrap();
            match SessionDb::open(place.path(), "session", true) {
                Ok((mut db, restored)) => {
                    let is_noticed = restored.notice.is_some();
                    let restored = by_name(restored);
                    assert!(restored.iter().all(|(name, body)| rows.get(name) == Some(body)), "{name} {at}");
                    lost += usize::from(restored.len() < rows.len());
                    // A log that ends early looks like the log of a process that died; SQLite cannot tell them apart.
                    assert!(restored.len() == rows.len() || is_noticed || name.ends_with("-wal"), "{name} {at}");
                    db.write("demo", &feed([put("after", "x")]), &feed(all_of(&restored))).unwrap();
                }
                Err(refused) => assert_eq!(refused.reason(), "E_UNAVAILABLE", "{name} {at}"),
            }
        }
    }
    assert!(lost > 0, "some bits matter");
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u16),
    Delete(u8),
    Many(u8),
    Reopen,
    RemoveFile,
    RemoveLog,
    ShortenLog(u16),
    Replace,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..12_u8, 0..9_000_u16).prop_map(|(name, size)| Step::Put(name, size)),
        3 => (0..12_u8).prop_map(Step::Delete),
        1 => any::<u8>().prop_map(Step::Many),
        3 => Just(Step::Reopen),
        1 => Just(Step::RemoveFile),
        1 => Just(Step::RemoveLog),
        1 => any::<u16>().prop_map(Step::ShortenLog),
        1 => Just(Step::Replace),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Promise: see `rows_that_another_program_takes_away_are_stored_again`.
    #[test]
    fn any_history_comes_back(steps in prop::collection::vec(step(), 1..60)) {
        let place = Place::new();
        let (mut db, _) = place.open(false);
        let mut model = Rows::new();
        let mut is_harmed = false;
        for step in steps {
            let changes = match &step {
                Step::Put(name, size) => vec![put(&name.to_string(), &"y".repeat(usize::from(*size)))],
                Step::Delete(name) => vec![RowChange::delete("note", name.to_string())],
                Step::Many(seed) => (0..50).map(|n| put(&format!("{seed}-{n}"), &"z".repeat(n * 40))).collect(),
                Step::Reopen if is_harmed => Vec::new(),
                Step::Reopen => {
                    drop(db);
                    let (opened, restored) = place.open(true);
                    prop_assert_eq!(&restored.notice, &None);
                    prop_assert_eq!(&by_name(restored), &model);
                    db = opened;
                    continue;
                }
                harm => {
                    is_harmed |= db.file_bytes() > 0;
                    let _ = match harm {
                        Step::RemoveFile => fs::remove_file(place.file("session.db")),
                        Step::RemoveLog => fs::remove_file(place.file("session.db-wal")),
                        Step::ShortenLog(share) => {
                            let path = place.file("session.db-wal");
                            let Ok(meta) = fs::metadata(&path) else { continue };
                            shorten(&path, meta.len() * u64::from(*share) / (u64::from(u16::MAX) + 1));
                            Ok(())
                        }
                        _ if db.file_bytes() > 0 => fs::write(place.file("new"), b"x").and_then(|()| fs::rename(place.file("new"), place.file("session.db"))),
                        _ => Ok(()),
                    };
                    continue;
                }
            };
            db.write("demo", &feed(&changes), &feed(all_of(&model))).unwrap();
            is_harmed = false;
            for RowChange { name, body, .. } in changes {
                match body {
                    Some(body) => model.insert(name, body),
                    None => model.remove(&name),
                };
            }
        }
    }
}
