//! Tests the brain on a full disk and in folders that cannot be written. The brain still answers, and says what is
//! missing.
#![cfg(unix)]

use crate::kit;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kit::home;
use kit::system::{nudge, sentence};
use tempfile::TempDir;

/// The id of another user. Root may write everywhere, so a test that runs as root runs its commands as this user.
const NOBODY: u32 = 65_534;

/// A user with a brain of this many notes.
struct User {
    home: TempDir,
    is_root: bool,
}

impl User {
    fn new(notes: usize) -> Self {
        let home = home();
        let user = Self { is_root: chown(home.path(), Some(NOBODY), Some(NOBODY)).is_ok(), home };
        for folder in ["brain", "caches", "data", "run", "config/nudge"] {
            user.own(&folder.split('/').fold(PathBuf::new(), |path, part| {
                let path = path.join(part);
                let _ = fs::create_dir(user.path(&path));
                user.own(&path);
                path
            }));
        }
        fs::set_permissions(user.path("caches"), Permissions::from_mode(0o700)).unwrap();
        for number in 0..notes {
            let name = format!("brain/n{number}.md");
            fs::write(
                user.path(&name),
                format!("# Note {number}\n\nClients wait a random time. {}\n", "More. ".repeat(500)),
            )
            .unwrap();
            user.own(Path::new(&name));
        }
        user
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.home.path().join(path)
    }

    fn own(&self, path: &Path) {
        if self.is_root {
            chown(self.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    /// Runs a command in a shell after the line `shell`.
    fn behind(&self, shell: &str, args: &[&str]) -> Output {
        let mut inner = nudge(&self.path("run"), args);
        inner.env("HOME", self.home.path()).env("XDG_CONFIG_HOME", self.path("config"));
        inner.env("NUDGE_CACHE_DIR", self.path("caches")).env("NUDGE_DATA_DIR", self.path("data"));
        inner.env("NUDGE_BRAIN_ROOT", self.path("brain")).env("PWD", self.home.path());
        let mut outer = if self.is_root { Command::new("setpriv") } else { Command::new("sh") };
        if self.is_root {
            outer.args([&*format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups", "sh"]);
        }
        outer.args(["-c", &format!("{shell} exec \"$0\" \"$@\"")]).arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => outer.env(name, value),
                None => outer.env_remove(name),
            };
        }
        outer.current_dir(self.home.path()).output().unwrap()
    }

    /// Asks the brain a question; returns the stdout and the stderr.
    #[track_caller]
    fn asks(&self) -> (String, String) {
        let done = self.behind("", &["ask", "clients", "wait"]);
        assert!(done.status.success(), "{done:?}");
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.path(path), Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn a_brain_that_cannot_be_written_is_asked_like_any_other() {
    let user = User::new(1);
    user.mode("brain/n0.md", 0o400);
    user.mode("brain", 0o500);
    let (found, beside) = user.asks();
    assert!(found.starts_with("Note 0") && !beside.contains("index"), "{found}{beside}");
    for args in [&["brain", "add", "Title", "A body."][..], &["brain", "set", "n0", "type", "bug"]] {
        let refused = sentence(&user.behind("", args));
        assert!(refused.contains("cannot be written") || refused.contains("writable"), "{refused}");
    }
    assert_eq!(fs::read_dir(user.path("brain")).unwrap().count(), 1);
    user.mode("brain", 0o700);
}

#[test]
fn a_folder_for_caches_that_cannot_be_written_costs_the_index_and_no_answer() {
    let user = User::new(1);
    user.mode("caches", 0o500);
    let lost = "the index lasts no longer than this process: ";
    let (found, beside) = user.asks();
    assert!(found.starts_with("Note 0") && beside.contains(lost), "{found}{beside}");
    assert_eq!(fs::read_dir(user.path("caches")).unwrap().count(), 0);
    // The same folder can be written again. Its index, which this question builds, must not change afterwards.
    user.mode("caches", 0o700);
    assert!(!user.asks().1.contains(lost));
    let index = fs::read_dir(user.path("caches/brain")).unwrap().next().unwrap().unwrap().path();
    let index = index.strip_prefix(user.home.path()).unwrap().to_str().unwrap();
    user.mode(&format!("{index}/brain.db"), 0o400);
    user.mode(index, 0o500);
    let (found, beside) = user.asks();
    assert!(found.starts_with("Note 0") && beside.contains(lost), "{found}{beside}");
    user.mode(index, 0o700);
}

/// A limit on the size of files has the same effect as a full disk. The limit is in blocks.
#[test]
fn a_disk_that_is_full_before_there_is_an_index_is_told_with_what_to_do() {
    let user = User::new(400);
    for blocks in [20, 200, 1_000] {
        let done = user.behind(&format!("trap '' XFSZ; ulimit -f {blocks};"), &["ask", "clients", "wait"]);
        let beside = String::from_utf8_lossy(&done.stderr).into_owned();
        if done.status.success() {
            // The notes whose index fitted on the disk give the answer.
            assert!(beside.contains("what files say now is not known"), "{done:?}");
        } else {
            let said = sentence(&done);
            assert!(
                ["free some space", "cannot be read or written"].iter().any(|words| said.contains(words)),
                "{said}"
            );
        }
    }
    let (found, beside) = user.asks();
    assert!(found.starts_with("Note ") && !beside.contains("index") && !beside.contains("stale"), "{beside}");
}
