//! Tests that another program removes or replaces `primary.lock` while a PRIMARY lives. From then on the PRIMARY does not
//! change the files of the next PRIMARY.
#![cfg(unix)]

use std::fs;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nudge_client::{PrimaryLock, ServerFile};

use kit::Home;

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

#[test]
fn nothing_of_the_next_is_touched() {
    let home = Home::new();
    home.dir.write_server_file(&home.lock, &server(1)).unwrap();
    fs::remove_file(lock_file(&home)).unwrap();
    let second = next(&home);
    home.dir.write_server_file(&second, &server(2)).unwrap();
    is_refused(home.dir.write_server_file(&home.lock, &server(1)));
    home.dir.remove_server_file(&home.lock).unwrap();
    assert_eq!(home.dir.read_server_file(), Some(server(2)));
}

#[test]
fn the_files_that_cleaning_programs_remove_by_age_look_new() {
    let home = Home::new();
    let old = std::time::SystemTime::UNIX_EPOCH;
    let files = ["session.db", "session.db-wal", "primary.lock"].map(|name| home.dir.path().join(name));
    for file in &files {
        let file = fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
        file.set_modified(old).unwrap();
    }
    home.dir.touch_files();
    for file in files {
        assert_ne!(fs::metadata(&file).unwrap().modified().unwrap(), old, "{}", file.display());
    }
}
