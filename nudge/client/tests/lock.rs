//! Tests that another program removes or replaces `primary.lock` while a PRIMARY lives. From then on the PRIMARY
//! acknowledges nothing, and does not change the files of the next PRIMARY.
#![cfg(unix)]

use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nudge_client::{PrimaryLock, ServerFile};

use kit::{Home, payload};

mod kit;

/// Takes the name away from the lock file, as a program that cleans `/tmp` does.
type Take = fn(&Home);

const WAYS: [(&str, Take); 4] = [
    ("removed", |home| fs::remove_file(lock_file(home)).unwrap()),
    ("renamed", |home| fs::rename(lock_file(home), home.outer.path().join("elsewhere")).unwrap()),
    ("replaced", |home| {
        fs::remove_file(lock_file(home)).unwrap();
        drop(next(home));
    }),
    ("a directory", |home| {
        fs::remove_file(lock_file(home)).unwrap();
        fs::create_dir(lock_file(home)).unwrap();
    }),
];

fn lock_file(home: &Home) -> std::path::PathBuf {
    home.dir.path().join("primary.lock")
}

/// Becomes the next PRIMARY after the lock file has lost its name.
fn next(home: &Home) -> PrimaryLock {
    home.dir.try_lock().unwrap().expect("nobody holds what has the name now")
}

fn server(pid: u32) -> ServerFile {
    ServerFile { pid, port: 8765, started: String::new(), token: None }
}

fn is_refused<T: std::fmt::Debug>(result: nudge::Result<T>) {
    let error = result.unwrap_err();
    let message = error.message();
    assert_eq!(error.reason(), "E_UNAVAILABLE");
    assert!(message.contains("primary.lock") && message.contains("end this one"), "{message}");
    assert!(message.ends_with('.') && message.lines().count() == 1, "{message}");
}

#[test]
fn a_lock_knows_whether_it_has_its_name() {
    for (what, take) in WAYS {
        let home = Home::new();
        assert!(home.lock.is_named(&home.dir));
        fs::hard_link(lock_file(&home), home.dir.path().join("second name")).unwrap();
        assert!(home.lock.is_named(&home.dir), "a second name takes nothing away");
        take(&home);
        assert!(!home.lock.is_named(&home.dir), "{what}");
    }
    let home = Home::new();
    fs::remove_file(lock_file(&home)).unwrap();
    let second = next(&home);
    assert!(second.is_named(&home.dir) && !home.lock.is_named(&home.dir));
    assert!(home.dir.try_lock().unwrap().is_none(), "the second is held");
}

#[test]
fn who_waits_for_a_removed_file_waits_for_the_one_that_has_the_name() {
    let home = Home::new();
    let (sender, won) = channel();
    let dir = home.dir.clone();
    thread::spawn(move || sender.send(dir.wait_for_lock(|| {})).unwrap());
    // Gives the thread time to begin waiting, which no test can observe. If the thread begins later, the test checks
    // less but still passes.
    thread::sleep(Duration::from_millis(200));
    fs::remove_file(lock_file(&home)).unwrap();
    let second = next(&home);
    let Home { dir, lock, outer: _outer } = home;
    drop(lock);
    assert!(won.recv_timeout(Duration::from_millis(300)).is_err(), "the second is PRIMARY");
    drop(second);
    let third = won.recv_timeout(Duration::from_secs(10)).unwrap().unwrap();
    assert!(third.is_named(&dir));
}

/// Promise (session): A PRIMARY whose lock file was removed restores it, and acknowledges nothing more, from any
/// source, after another process has the lock.
#[test]
fn a_primary_without_its_lock_acknowledges_nothing() {
    for (what, take) in WAYS {
        let home = Home::new();
        let (journal, _) = home.open(false);
        journal.append(b"first").unwrap();
        let (bytes, before) = (journal.file_bytes(), fs::read(home.file()).unwrap());
        take(&home);
        for _ in 0..2 {
            is_refused(journal.append(b"lost"));
            is_refused(journal.compact(|_| false, std::iter::once(b"lost".to_vec())));
            is_refused(journal.clear());
        }
        assert_eq!((journal.file_bytes(), fs::read(home.file()).unwrap()), (bytes, before), "{what}");
        assert!(!journal.needs_compaction(), "which would be refused");
        assert!(!home.names().contains(&"journal.new".into()));
    }
}

#[test]
fn nothing_of_the_next_is_touched() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    journal.append(b"first").unwrap();
    home.dir.write_server_file(&home.lock, &server(1)).unwrap();
    fs::remove_file(lock_file(&home)).unwrap();
    let second = next(&home);
    let (its_journal, restored) = home.dir.open_journal(&second, true).unwrap();
    assert_eq!(restored.records, [b"first"]);
    its_journal.append(b"second").unwrap();
    home.dir.write_server_file(&second, &server(2)).unwrap();

    is_refused(journal.append(b"lost"));
    is_refused(home.dir.write_server_file(&home.lock, &server(1)));
    home.dir.remove_server_file(&home.lock).unwrap();
    assert_eq!(home.dir.read_server_file(), Some(server(2)));
    its_journal.append(b"third").unwrap();
    drop(its_journal);
    let (_, restored) = home.dir.open_journal(&second, true).unwrap();
    assert_eq!(
        (restored.records, restored.notice),
        (vec![b"first".to_vec(), b"second".to_vec(), b"third".to_vec()], None)
    );
}

/// Each round removes the lock file at another moment.
#[test]
fn what_was_acknowledged_the_next_restores() {
    for round in 0..200 {
        let home = Home::new();
        let (journal, _) = home.open(false);
        thread::scope(|scope| {
            let (sender, begun) = channel();
            let journal = &journal;
            let writer = scope.spawn(move || {
                let acknowledged = (0..).take_while(|number| {
                    let _ = sender.send(());
                    journal.append(&payload(*number, 40)).is_ok()
                });
                acknowledged.count()
            });
            (0..=round % 20).for_each(|_| begun.recv().unwrap());
            fs::remove_file(lock_file(&home)).unwrap();
            let second = next(&home);
            let (_, restored) = home.dir.open_journal(&second, true).unwrap();
            let acknowledged = writer.join().unwrap();
            let kept = restored.records.len();
            assert!(acknowledged <= kept, "round {round}: {acknowledged} acknowledged, {kept} restored");
        });
    }
}

#[test]
fn once_it_was_gone_it_is_gone_for_good() {
    let home = Home::new();
    let (journal, _) = home.open(false);
    let elsewhere = home.outer.path().join("elsewhere");
    fs::rename(lock_file(&home), &elsewhere).unwrap();
    is_refused(journal.append(b"lost"));
    // Another process may have been PRIMARY meanwhile, so the data of this process may be old.
    fs::rename(&elsewhere, lock_file(&home)).unwrap();
    is_refused(journal.append(b"lost"));
}
