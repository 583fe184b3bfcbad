//! The security checklist, seen from outside: row 19, files of others that are not what they were a moment ago, or
//! never what they should be. `checklist.rs` lists all rows.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kit::{Serve, command, home};
use serde_json::json;

/// Without the reader that never waits, the server stood still within a second.
const LONG_ENOUGH: Duration = Duration::from_secs(6);

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A folder that git takes for a repository.
fn repository(folder: &Path) {
    for sub in ["objects", "refs/heads"] {
        fs::create_dir_all(folder.join(".git").join(sub)).unwrap();
    }
    fs::write(folder.join(".git/HEAD"), "ref: refs/heads/dev\n").unwrap();
    fs::write(folder.join(".git/config"), "[core]\n").unwrap();
}

/// Another user of the machine owns a folder above, and makes a file of git's a pipe between the look at it and its
/// opening: nobody would ever write to it.
#[test]
fn row_19_a_file_that_turns_into_a_pipe_holds_up_nobody() {
    let home = home();
    let top = home.path().join("repo");
    repository(&top);
    let (file, pipe_path, next) = (home.path().join("file"), home.path().join("pipe"), home.path().join("next"));
    fs::copy(top.join(".git/HEAD"), &file).unwrap();
    pipe(&pipe_path);
    let mut command = command(&home.path().join("run"));
    // Of a repository whose file is a pipe nothing is known; its hints are for everywhere, and found all the same.
    command.env("NUDGE_DEFAULT_REACH", "everywhere").current_dir(&top);
    let mut serve = Serve::spawn(command, &home.path().join("run"));
    serve.initialize("2025-11-25");
    serve.tool("nudge_set_hint", &json!({"component": "a", "key": "k", "value": "v"}));
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for now in [&pipe_path, &file] {
                    fs::hard_link(now, &next).unwrap();
                    fs::rename(&next, top.join(".git/HEAD")).unwrap();
                }
            }
        });
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // Where the files say nothing git is asked, and hangs at the pipe until it is ended.
            let end = Instant::now() + LONG_ENOUGH;
            while Instant::now() < end {
                let got = serve.tool("nudge_get_hint", &json!({"component": "a", "key": "k"}));
                assert_eq!(got["result"]["structuredContent"]["hint"]["value"], "v", "{got}");
            }
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(failed) = asked {
            serve.child.kill().unwrap();
            std::panic::resume_unwind(failed);
        }
    });
    serve.close();
}
