//! Tests that the index is right, no matter what the cache on disk contains.

#![cfg(unix)]

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use kit::{Lab, until};
use serde_json::json;

fn project() -> Lab {
    let lab = Lab::new();
    lab.write("a.py", "from b import g\n\n\ndef f(x):\n    return g(x)\n");
    lab.write("b.py", "def g(x):\n    return x\n");
    lab
}

/// Makes the cache, closes it, and returns the bytes of its file.
fn made(lab: &Lab) -> Vec<u8> {
    lab.alone().tell("status", json!({}));
    let cache = lab.cache();
    // When the database is closed, the write-ahead log is copied back into its file.
    assert!(fs::metadata(cache.with_extension("db-wal")).map_or(0, |meta| meta.len()) == 0);
    fs::read(cache).unwrap()
}

#[test]
fn it_is_kept_for_its_user_alone_and_outside_the_project() {
    let lab = project();
    made(&lab);
    assert_eq!(fs::metadata(lab.cache()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(kit::files(&lab.root()), ["a.py", "b.py"]);
    let code = lab.alone();
    let status = code.tell("status", json!({}));
    assert!(status["cache"].as_str().unwrap().ends_with("index.db"), "{status:#}");
}

/// Promise (sources): The index of code is rebuilt when its cache is missing or damaged.
#[test]
fn a_cache_that_is_cut_or_damaged_is_made_anew() {
    let lab = project();
    let whole = made(&lab);
    let expected = lab.cold().1.everything();
    let damaged = (0..whole.len()).step_by(whole.len() / 60).chain([1, 15, 16, 99, 100, 4095, 4096, 4097]);
    for offset in damaged {
        let mut flipped = whole.clone();
        flipped[offset] ^= 0xff;
        for bytes in [&whole[..offset], &flipped] {
            fs::write(lab.cache(), bytes).unwrap();
            assert_eq!(lab.alone().everything(), expected, "at {offset}, {} bytes", bytes.len());
        }
    }
    fs::write(lab.cache(), b"").unwrap();
    made(&lab);
    let sound = lab.alone().tell("status", json!({}));
    assert!(!sound["cache"].as_str().unwrap().contains("anew"), "{sound:#}");
}

#[test]
#[ignore = "it takes minutes; the nightly workflow has it, and sixty of its bytes stand above"]
fn a_cache_that_is_cut_or_damaged_at_any_byte_is_made_anew() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                let lab = project();
                let whole = made(&lab);
                let expected = lab.cold().1.everything();
                for offset in (first..whole.len()).step_by(threads) {
                    let mut flipped = whole.clone();
                    flipped[offset] ^= 0xff;
                    for bytes in [&whole[..offset], &flipped] {
                        fs::write(lab.cache(), bytes).unwrap();
                        assert_eq!(lab.alone().everything(), expected, "at {offset}, {} bytes", bytes.len());
                    }
                }
            });
        }
    });
}

/// Sets the modification time of a file to now plus `apart` if `ahead` is true, else to now minus `apart`.
fn modified(lab: &Lab, path: &str, ahead: bool, apart: Duration) {
    let now = SystemTime::now();
    let time = if ahead { now + apart } else { now - apart };
    fs::File::options().append(true).open(lab.root().join(path)).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_clock_that_goes_back_hides_no_change() {
    let (lab, day) = (project(), Duration::from_hours(24));
    // The texts have the same length, so only their times differ.
    for (name, ahead) in [("one", true), ("two", false), ("six", true), ("ten", true), ("old", false)] {
        lab.write("b.py", &format!("def {name}(x):\n    return x\n"));
        modified(&lab, "b.py", ahead, day);
        assert_eq!(lab.alone().everything(), lab.cold().1.everything(), "{name}");
    }
    // Git left this lock while the clock was ahead. The lock must not stop the worker.
    lab.write(".git/index.lock", "");
    modified(&lab, ".git/index.lock", true, day);
    let session = lab.session();
    assert_eq!(session.settled()["nodes"], 2);
    lab.write("b.py", "def new(x):\n    return x\n\n\ndef more(x):\n    return x\n");
    until("a change", || (session.tell("status", json!({}))["nodes"] == 3).then_some(()));
}

#[test]
fn a_cache_of_another_version_is_made_anew() {
    let lab = project();
    made(&lab);
    let db = nudge_storage::rusqlite::Connection::open(lab.cache()).unwrap();
    db.execute("UPDATE meta SET value = '0' WHERE name = 'extractor'", []).unwrap();
    drop(db);
    let code = lab.alone();
    let status = code.tell("status", json!({}));
    assert!(status["cache"].as_str().unwrap().contains("begun anew as it was another version's"), "{status:#}");
    assert_eq!(code.everything(), lab.cold().1.everything());
}

#[test]
fn without_a_place_for_a_cache_there_is_none() {
    let lab = project();
    fs::write(lab.caches(), "a file").unwrap();
    let code = lab.alone();
    let status = code.tell("status", json!({}));
    assert!(status["cache"].as_str().unwrap().starts_with("none: "), "{status:#}");
    assert_eq!(status["nodes"], 2);
}

/// Starts the worker of a session in a separate process. Cargo builds its program together with the tests.
fn worker(lab: &Lab) -> Child {
    let tests = std::env::current_exe().unwrap();
    let binary = tests.parent().unwrap().with_file_name("examples").join("nudge-code-worker");
    assert!(binary.exists(), "{} is built by `cargo test` and `cargo build --examples`", binary.display());
    Command::new(binary).args([lab.root(), lab.caches()]).stdin(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_worker_that_is_killed_loses_nothing() {
    let lab = project();
    for round in 0..12_u64 {
        let mut first = worker(&lab);
        // Two processes may have the same cache open.
        let mut second = worker(&lab);
        for index in 0..20 {
            lab.write(&format!("m{index}.py"), &format!("def h{index}_{round}():\n    pass\n"));
        }
        if round == 0 {
            until("a cache", || lab.caches().join("code").exists().then_some(()));
        }
        std::thread::sleep(Duration::from_millis(round * 17));
        for worker in [&mut first, &mut second] {
            worker.kill().unwrap();
            worker.wait().unwrap();
        }
        assert_eq!(lab.alone().everything(), lab.cold().1.everything(), "round {round}");
    }
}
