//! Tests files that must not make the reader panic, block or run without end. The tests do not run git, because some of
//! these files would block it.

use std::process::Command;
use std::time::{Duration, Instant};

use nudge_git_files::{GitAnswer, git_with};

use super::lab::{Lab, PLAIN};

fn fifo(lab: &Lab, path: &str) {
    let _ = std::fs::remove_file(lab.path(path));
    let made = Command::new("mkfifo").arg(lab.path(path)).status();
    assert!(made.expect("mkfifo").success());
}

/// Runs the reader on another thread, so that the test fails instead of blocking.
fn ask(lab: &Lab, path: &str) -> GitAnswer {
    let (send, receive) = std::sync::mpsc::channel();
    let (env, cwd) = (lab.env(), lab.path(path));
    std::thread::spawn(move || send.send(git_with(&env, &cwd)));
    let answer = receive.recv_timeout(Duration::from_secs(5));
    answer.expect("an answer in time")
}

#[test]
fn fifos_are_not_opened() {
    let files = ["HEAD", "config", "commondir", "packed-refs", "refs/heads/dev", "more"];
    for file in files {
        let lab = Lab::new();
        lab.repo("[include]path=more\n");
        lab.head("ref: refs/heads/dev");
        fifo(&lab, &format!("r/.git/{file}"));
        let answer = ask(&lab, "r");
        assert!(matches!(answer, GitAnswer::Unsure(_)), "{file}: {answer:?}");
    }
    let lab = Lab::new();
    lab.dir("r");
    fifo(&lab, "r/.git");
    assert_eq!(ask(&lab, "r"), GitAnswer::Outside);
    let lab = Lab::new();
    lab.repo("");
    fifo(&lab, "home/.gitconfig");
    assert!(matches!(ask(&lab, "r"), GitAnswer::Unsure(_)));
}

#[test]
fn large_files_are_not_read() {
    let files = ["HEAD", "config", "commondir", "packed-refs", "refs/heads/dev", "more"];
    for file in files {
        let lab = Lab::new();
        lab.repo("[include]path=more\n");
        lab.head("ref: refs/heads/dev");
        let path = lab.write(&format!("r/.git/{file}"), "");
        let opened = std::fs::OpenOptions::new().write(true).open(path);
        let grown = opened.and_then(|opened| opened.set_len(100 << 20));
        grown.expect("a sparse file");
        let begun = Instant::now();
        let answer = ask(&lab, "r");
        assert!(matches!(answer, GitAnswer::Unsure(_)), "{file}: {answer:?}");
        assert!(begun.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn includes_do_not_fan_out() {
    let lab = Lab::new();
    lab.repo(&"[include]path=more\n".repeat(100));
    lab.write("r/.git/more", "[include]path=more\n".repeat(100));
    assert!(matches!(ask(&lab, "r"), GitAnswer::Unsure(_)));
}

/// Writes random characters of git's syntax into each of git's files.
#[test]
fn garbage_anywhere() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap_or(0)
    };
    let words: [&[u8]; 20] = [
        b"ref:",
        b" ",
        b"refs/heads/",
        b"main",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"gitdir: ",
        b"../",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b"=",
        b"core",
        b"remote \"origin\"",
        b"url",
        b"#",
        b"1111111111111111111111111111111111111111",
    ];
    let lab = Lab::new();
    for round in 0..300 {
        lab.bones("r/.git", "");
        lab.write("r/.git/commondir", ".");
        lab.write("r/.git/packed-refs", "");
        let count = next() % 12;
        let text: Vec<u8> = (0..count).flat_map(|_| words[next() % words.len()]).copied().collect();
        let files = ["HEAD", "config", "commondir", "packed-refs", "refs/heads/main"];
        lab.write(&format!("r/.git/{}", files[round % files.len()]), &text);
        let _ = git_with(&lab.env(), &lab.path("r"));
        lab.write("w/.git", &text);
        let _ = git_with(&lab.env(), &lab.path("w"));
    }
    lab.write("r/.git/config", format!("{PLAIN}[a \"{}\"]b", "x".repeat(1 << 19)));
    let _ = git_with(&lab.env(), &lab.path("r"));
}

#[test]
fn odd_folders() {
    let lab = Lab::new();
    let env = lab.env();
    lab.write("file", "");
    lab.link("loop", "loop");
    assert_eq!(git_with(&env, &lab.path("nowhere")), GitAnswer::Outside);
    assert_eq!(git_with(&env, &lab.path("file")), GitAnswer::Outside);
    assert_eq!(git_with(&env, &lab.path("file/x")), GitAnswer::Outside);
    assert!(matches!(git_with(&env, &lab.path("loop")), GitAnswer::Unsure(_)));
    let _ = git_with(&env, std::path::Path::new(""));
    let _ = git_with(&env, std::path::Path::new("/"));
    let _ = git_with(&env, std::path::Path::new("a\0b"));
}
