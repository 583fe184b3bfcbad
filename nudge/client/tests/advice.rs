//! Tests the advice that users get when a file of the runtime directory cannot be written.
#![cfg(unix)]

use std::fs::{self, File};

use nudge_client::{RuntimeDir, ServerFile};

use kit::{Home, again, given, run_again, small_disk};

mod kit;

fn says<T: std::fmt::Debug>(result: nudge::Result<T>, advice: &str) {
    let error = result.unwrap_err();
    let message = error.message();
    assert_eq!(error.reason(), "E_UNAVAILABLE");
    assert!(message.starts_with("Cannot ") && message.ends_with(advice) && message.lines().count() == 1, "{message}");
}

fn server() -> ServerFile {
    ServerFile { pid: 1, port: 8765, started: "x".repeat(3000), token: None }
}

#[test]
fn what_is_in_the_way_is_to_be_removed() {
    let home = Home::new();
    fs::create_dir(home.dir.server_file_path()).unwrap();
    says(home.dir.write_server_file(&home.lock, &server()), "; remove it or set NUDGE_RUNTIME_DIR.");
}

/// Runs the test again in its own process, which may use up all descriptors.
#[test]
fn without_descriptors_some_are_to_be_freed() {
    let Some(path) = given() else {
        let home = Home::new();
        let before = ["sh", "-c", "ulimit -n 64 && exec \"$0\" \"$@\""];
        return run_again(again("without_descriptors_some_are_to_be_freed", &home.dir.path().join("own"), &before));
    };
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let lock = dir.try_lock().unwrap().unwrap();
    let _all: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let advice = "; close some programs or raise the limit of open files.";
    says(dir.write_server_file(&lock, &server()), advice);
    says(dir.try_lock(), advice);
    says(dir.open_log(), advice);
}

/// Runs the test again on its own small file system.
#[test]
fn on_a_full_disk_space_is_to_be_freed() {
    let Some(path) = small_disk("on_a_full_disk_space_is_to_be_freed", "64k") else { return };
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let lock = dir.try_lock().unwrap().unwrap();
    assert!(fs::write(path.join("ballast"), vec![0; 128 << 10]).is_err(), "it is full");
    says(dir.write_server_file(&lock, &server()), "; free some space.");
}
