//! Tests the journal in three bad situations: another kind of file has its name, the disk is full, or no descriptor is
//! free.
#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use nudge_client::RuntimeDir;

use kit::{Home, again, can, given, payload, run_again, small_disk};

mod kit;

/// The user id of another user, `nobody`.
const STRANGER: u32 = 65_534;

fn is_unavailable<T: std::fmt::Debug>(result: nudge::Result<T>, says: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.reason(), "E_UNAVAILABLE");
    let message = error.message();
    assert!(message.contains(says) && message.ends_with('.') && message.lines().count() == 1, "{message}");
}

/// Creates something with the journal's name. Returns false when this user may not do that.
type Plant = fn(&Path, &Path) -> bool;

const PLANTS: [(&str, Plant); 5] = [
    ("link", |victim, place| symlink(victim, place).is_ok()),
    ("second name", |victim, place| fs::hard_link(victim, place).is_ok()),
    ("pipe", |_, place| Command::new("mkfifo").arg(place).status().is_ok_and(|status| status.success())),
    ("socket", |_, place| UnixListener::bind(place).is_ok()),
    ("file of somebody else's", |victim, place| {
        fs::copy(victim, place).unwrap();
        let done = chown(place, Some(STRANGER), None).is_ok();
        if !done {
            eprintln!("skipped: this user cannot give files away");
        }
        done
    }),
];

#[test]
fn what_is_not_ours_is_replaced_at_the_start() {
    for (what, plant) in PLANTS {
        for keep in [true, false] {
            let home = Home::new();
            let victim = home.outer.path().join("victim");
            home.open(false).0.append(b"not ours").unwrap();
            fs::rename(home.file(), &victim).unwrap();
            let before = fs::read(&victim).unwrap();
            if !plant(&victim, &home.file()) {
                continue;
            }
            let (journal, restored) = home.open(keep);
            assert!(restored.records.is_empty(), "{what} is not believed");
            assert_eq!(restored.notice.is_some(), keep, "{what}: {restored:?}");
            journal.append(b"ours").unwrap();
            assert_eq!(home.reread(), [b"ours"], "{what}");
            assert_eq!(fs::read(&victim).unwrap(), before, "{what}: what it stood for is untouched");
            assert_eq!(fs::metadata(home.file()).unwrap().mode() & 0o7777, 0o600);
        }
    }
}

#[test]
fn what_takes_its_place_later_is_replaced() {
    let nothing: (&str, Plant) = ("nothing", |_, _| true);
    for (what, plant) in PLANTS.into_iter().chain([nothing]) {
        let home = Home::new();
        let (journal, _) = home.open(false);
        journal.append(b"first").unwrap();
        let moved = home.outer.path().join("moved");
        fs::rename(home.file(), &moved).unwrap();
        let victim = home.outer.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        if !plant(&victim, &home.file()) {
            continue;
        }
        journal.append(b"second").unwrap();
        assert_eq!(home.reread(), [&b"first"[..], b"second"], "{what}");
        assert_eq!(fs::read(&victim).unwrap(), b"untouched", "{what}");
        assert_eq!(home.names(), ["journal", "primary.lock"]);
    }
}

#[test]
fn a_directory_refuses_changes_until_it_is_gone() {
    for keep in [true, false] {
        let home = Home::new();
        fs::create_dir(home.file()).unwrap();
        let (journal, restored) = home.open(keep);
        assert!(restored.records.is_empty() && restored.notice.unwrap().contains("directory"));
        for _ in 0..2 {
            is_unavailable(journal.append(b"refused"), "is a directory");
            is_unavailable(journal.compact(|_| false, std::iter::empty()), "is a directory");
        }
        journal.clear().unwrap();
        fs::remove_dir(home.file()).unwrap();
        journal.append(b"first").unwrap();

        fs::remove_file(home.file()).unwrap();
        fs::create_dir(home.file()).unwrap();
        is_unavailable(journal.append(b"refused"), "is a directory");
        is_unavailable(journal.compact(|_| false, std::iter::once(b"refused".to_vec())), "is a directory");
        assert_eq!(home.names(), ["journal", "primary.lock"], "nothing is left beside it");
        fs::remove_dir(home.file()).unwrap();
        journal.append(b"second").unwrap();
        assert_eq!(home.reread(), [&b"first"[..], b"second"], "nothing acknowledged is lost");
    }
}

#[test]
fn a_journal_open_to_others_is_closed() {
    let home = Home::new();
    home.open(false).0.append(b"kept").unwrap();
    fs::set_permissions(home.file(), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(home.reread(), [b"kept"]);
    assert_eq!(fs::metadata(home.file()).unwrap().mode() & 0o7777, 0o600);
}

/// Runs the test again as a user for whom permissions apply, which is not root.
#[test]
fn a_journal_without_permissions_is_read() {
    if let Some(path) = given() {
        let dir = RuntimeDir::create(Some(&path)).unwrap();
        let lock = dir.try_lock().unwrap().unwrap();
        dir.open_journal(&lock, false).unwrap().0.append(b"kept").unwrap();
        for mode in [0o000, 0o400, 0o200] {
            fs::set_permissions(path.join("journal"), fs::Permissions::from_mode(mode)).unwrap();
            let (_, restored) = dir.open_journal(&lock, true).unwrap();
            assert_eq!((restored.records, restored.notice), (vec![b"kept".to_vec()], None), "{mode:o}");
        }
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let run = home.path().join("run");
    fs::create_dir(&run).unwrap();
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
    let name = "a_journal_without_permissions_is_read";
    if fs::metadata(&run).unwrap().uid() != 0 {
        return run_again(again(name, &run, &[]));
    }
    let stranger = STRANGER.to_string();
    let before = ["setpriv", "--reuid", &stranger, "--regid", &stranger, "--clear-groups"];
    let this = std::env::current_exe().unwrap();
    if chown(&run, Some(STRANGER), None).is_ok()
        && can("run this test as another user", Command::new(before[0]).args(&before[1..]).arg(this).arg("--list"))
    {
        run_again(again(name, &run, &before));
    }
}

/// Runs the test again on its own small file system.
#[test]
fn a_full_disk_refuses_changes_until_there_is_space() {
    let Some(path) = small_disk("a_full_disk_refuses_changes_until_there_is_space", "256k") else { return };
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let lock = dir.try_lock().unwrap().unwrap();
    let (ballast, file) = (path.join("ballast"), path.join("journal"));
    let mut acknowledged = Vec::new();
    let (mut journal, _) = dir.open_journal(&lock, false).unwrap();
    for round in 0..4 {
        fs::write(&ballast, vec![0; 64 << 10]).unwrap();
        // Some sizes are larger than a page and some smaller, so that some records do not fit at all and some fit in
        // part.
        let refused = (0..1000).find_map(|number| {
            let record = payload(round * 1000 + number, [5000, 100, 9000][number % 3]);
            let refused = journal.append(&record).err();
            acknowledged.extend(refused.is_none().then_some(record));
            refused
        });
        is_unavailable::<()>(Err(refused.expect("the disk is full")), "cannot be written");
        assert_eq!(fs::metadata(&file).unwrap().len(), journal.file_bytes(), "nothing of it stays");
        is_unavailable(journal.append(&payload(0, 100_000)), "cannot be written");
        is_unavailable(journal.compact(|_| false, acknowledged.iter().cloned()), "cannot be written");
        assert!(!path.join("journal.new").exists());
        if round % 2 == 1 {
            // The next PRIMARY begins while the disk is still full.
            drop(journal);
            let (opened, restored) = dir.open_journal(&lock, true).unwrap();
            assert_eq!((restored.records, restored.notice), (acknowledged.clone(), None));
            journal = opened;
        }
        fs::remove_file(&ballast).unwrap();
        journal.append(b"space").unwrap();
        acknowledged.push(b"space".to_vec());
        acknowledged.drain(..acknowledged.len() - 1);
        journal.compact(|_| false, acknowledged.iter().cloned()).unwrap();
        assert_eq!(dir.open_journal(&lock, true).unwrap().1.records, acknowledged);
    }
    // A new session begins while the disk is still full, and no data of the old session stays.
    drop(journal);
    let _ = fs::write(&ballast, vec![0; 512 << 10]);
    let (journal, restored) = dir.open_journal(&lock, false).unwrap();
    assert_eq!((restored.notice, fs::metadata(&file).unwrap().len()), (None, 0));
    let _ = fs::write(&ballast, vec![0; 512 << 10]);
    is_unavailable(journal.append(&payload(1, 9000)), "cannot be written");
    assert!(dir.open_journal(&lock, true).unwrap().1.records.is_empty());
}

/// Runs the test again in its own process, which may use up all descriptors.
#[test]
fn without_descriptors_nothing_is_lost() {
    let Some(path) = given() else {
        let home = Home::new();
        let before = ["sh", "-c", "ulimit -n 64 && exec \"$0\" \"$@\""];
        return run_again(again("without_descriptors_nothing_is_lost", &home.dir.path().join("own"), &before));
    };
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let lock = dir.try_lock().unwrap().unwrap();
    let (journal, _) = dir.open_journal(&lock, false).unwrap();
    journal.append(b"first").unwrap();
    let mut all: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    journal.append(b"second").unwrap();
    is_unavailable(journal.compact(|_| false, std::iter::empty()), "cannot be written");
    is_unavailable(dir.open_journal(&lock, true), "cannot be read now");
    let (next, restored) = {
        all.clear();
        dir.open_journal(&lock, true).unwrap()
    };
    assert_eq!((restored.records, restored.notice), (vec![b"first".to_vec(), b"second".to_vec()], None));
    drop(journal);

    // A new session removes the old records, and refuses changes until descriptors are free again.
    let all: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    drop(next);
    let held = File::open("/dev/null").unwrap();
    let (journal, restored) = dir.open_journal(&lock, false).unwrap();
    assert!(restored.notice.is_some() && !path.join("journal").exists());
    is_unavailable(journal.append(b"refused"), "cannot be written");
    drop((all, held));
    journal.append(b"third").unwrap();
    assert_eq!(dir.open_journal(&lock, true).unwrap().1.records, [b"third"]);
}
