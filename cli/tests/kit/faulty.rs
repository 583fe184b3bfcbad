//! A disk that fails under a part of a command's files while it is armed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// The kinds of faults in `faulty.c`.
pub const FAULTS: [(&str, &str); 5] =
    [("e", "EIO"), ("s", "no space"), ("t", "half of a write"), ("r", "read-only"), ("f", "no flush")];

/// The kind of a file system without locks, on which nothing else fails.
pub const NO_LOCKS: &str = "l";

/// Returns the library of the failing disk. It is built once for all tests, by the compiler that the build needs
/// anyway.
fn library() -> PathBuf {
    static MADE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("faulty.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kit/faulty.c");
        let mut cc = Command::new("cc");
        let made = cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl").status();
        assert!(made.unwrap().success());
        (folder, library)
    });
    made.1.clone()
}

/// A disk that fails while it is armed.
pub struct Disk {
    armed: PathBuf,
}

impl Disk {
    /// Makes a disk with its switch in a folder that no command writes to.
    pub fn new(folder: &Path) -> Self {
        Self { armed: folder.join("armed") }
    }

    /// Puts the disk under those files of a command whose path contains `beneath`.
    pub fn place(&self, command: &mut Command, beneath: &str) {
        command.env("LD_PRELOAD", library()).env("FAULT_IN", beneath).env("FAULT_ARMED", &self.armed);
        command.env("RUST_BACKTRACE", "0");
    }

    /// Returns the path of the switch: a file whose first letter is the fault.
    pub fn armed(&self) -> &Path {
        &self.armed
    }

    pub fn arm(&self, fault: &str) {
        fs::write(&self.armed, fault).unwrap();
    }

    pub fn disarm(&self) {
        let _ = fs::remove_file(&self.armed);
    }
}

/// Returns the advice about a fault in the refusal of a command that only writes.
pub fn advice(fault: &str) -> &'static str {
    match fault {
        "s" => "free some space",
        "r" => "make its disk writable",
        _ => "look at its disk",
    }
}

/// Asserts that a text is one sentence in words for people.
#[track_caller]
pub fn assert_sentence(said: &str, what: &str) {
    let said = said.trim_end();
    assert!(!said.is_empty() && said.lines().count() == 1 && !said.contains("panicked"), "{what}: {said:?}");
}
