//! Simulates a disk that fails. While the disk is armed, it fails for those files of a command whose path contains a
//! text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// The kinds of faults in `faulty.c`: the letter that arms the disk, and a name for messages.
pub const FAULTS: [(&str, &str); 5] =
    [("e", "EIO"), ("s", "no space"), ("t", "half of a write"), ("r", "read-only"), ("f", "no flush")];

/// The letter of a file system that refuses locks; no other operation fails.
pub const NO_LOCKS: &str = "l";

/// Builds the library of the failing disk, once for all tests, and returns its path. The C compiler is there, because
/// the build of Nudge needs it too.
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

/// The failing disk. Its switch is a file: while the file exists, the disk fails.
pub struct Disk {
    armed: PathBuf,
}

impl Disk {
    /// Makes a disk whose switch lies in this folder; no command may write there.
    pub fn new(folder: &Path) -> Self {
        Self { armed: folder.join("armed") }
    }

    /// Lets the disk fail for the command's files whose path contains `beneath`.
    pub fn place(&self, command: &mut Command, beneath: &str) {
        command.env("LD_PRELOAD", library()).env("FAULT_IN", beneath).env("FAULT_ARMED", &self.armed);
        command.env("RUST_BACKTRACE", "0");
    }

    /// Returns the path of the switch. The first letter in the file is the kind of fault.
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

/// Returns the advice in the error message of a command that only writes, for this fault.
pub fn advice(fault: &str) -> &'static str {
    match fault {
        "s" => "free some space",
        "r" => "make its disk writable",
        _ => "look at its disk",
    }
}

/// Asserts that a text is one line, and not the message of a panic.
#[track_caller]
pub fn assert_sentence(said: &str, what: &str) {
    let said = said.trim_end();
    assert!(!said.is_empty() && said.lines().count() == 1 && !said.contains("panicked"), "{what}: {said:?}");
}
