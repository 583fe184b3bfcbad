//! Functions that the tests of the journal and of membership share. Each test uses a part of them.
#![allow(dead_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nudge_client::{Journal, PrimaryLock, RestoredJournal, RuntimeDir};
use tempfile::TempDir;

/// The runtime directory of a test that runs again in a process of its own.
const CHILD: &str = "NUDGE_TEST_CHILD";
const PATIENCE: Duration = Duration::from_secs(20);

/// A runtime directory with its lock held.
pub struct Home {
    pub outer: TempDir,
    pub dir: RuntimeDir,
    pub lock: PrimaryLock,
}

impl Home {
    pub fn new() -> Self {
        let outer = TempDir::with_prefix("nudge-journal-").unwrap();
        let dir = RuntimeDir::create(Some(&outer.path().join("run"))).unwrap();
        let lock = dir.try_lock().unwrap().unwrap();
        Self { outer, dir, lock }
    }

    pub fn file(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    pub fn open(&self, keep: bool) -> (Journal, RestoredJournal) {
        self.dir.open_journal(&self.lock, keep).unwrap()
    }

    /// Returns the records that the next PRIMARY would restore.
    pub fn reread(&self) -> Vec<Vec<u8>> {
        let (_, restored) = self.open(true);
        assert_eq!(restored.notice, None);
        restored.records
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Makes a payload of a given size that differs from every other one.
pub fn payload(number: usize, size: usize) -> Vec<u8> {
    let mut bytes: Vec<_> = (0..size).map(|i| u8::try_from((i * 31 + number * 17) % 251).unwrap()).collect();
    let name = number.to_le_bytes();
    let named = size.min(name.len());
    bytes[..named].copy_from_slice(&name[..named]);
    bytes
}

/// Returns the directory that [`again`] has given to this process; `None` in a first run.
pub fn given() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Makes the command that runs one test of this binary again, alone, for a directory. `before` is the command that
/// starts it, if any.
pub fn again(test: &str, dir: &Path, before: &[&str]) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = match before {
        [] => Command::new(this),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(this);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, dir).stdin(Stdio::null());
    command
}

/// Runs a test again and expects it to succeed.
pub fn run_again(mut command: Command) {
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", text(&output.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true when a probe succeeds; otherwise prints which test is skipped.
pub fn can(what: &str, command: &mut Command) -> bool {
    let done = command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success());
    if !done {
        eprintln!("skipped: this user cannot {what} here");
    }
    done
}

pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} takes too long");
        std::thread::yield_now();
    }
}

/// A child process that carries out one command per line and answers each with a line.
pub struct Puppet {
    child: Child,
    /// `None` once no more commands follow.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Puppet {
    pub fn start(test: &str, dir: &Path) -> Self {
        let mut command = again(test, dir, &[]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut puppet = Self { child, stdin, stdout };
        assert_eq!(puppet.answer(), "here");
        puppet
    }

    pub fn tell(&mut self, order: &str) -> String {
        self.order(order);
        self.answer()
    }

    pub fn order(&mut self, order: &str) {
        writeln!(self.stdin.as_ref().unwrap(), "{order}").unwrap();
    }

    /// Reads the next line that is meant for the test.
    pub fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the process has ended");
            // The test harness prints the test's name before the first answer.
            if let Some((_, said)) = line.split_once("puppet: ") {
                return said.trim_end().to_owned();
            }
        }
    }

    /// Kills the process without a chance to clean up, like `kill -9`.
    pub fn kill(self) {
        drop(self);
    }

    pub fn end(mut self) {
        drop(self.stdin.take());
        self.stdout.read_to_end(&mut Vec::new()).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Carries out commands in the child process until its stdin ends.
pub fn obey(mut obey: impl FnMut(&str) -> String) {
    println!("puppet: here");
    for order in std::io::stdin().lines().map_while(Result::ok) {
        println!("puppet: {}", obey(&order));
    }
}

/// Returns the folder of a small file system, on which the test `name` runs again. Returns `None` in the first run,
/// which waits for the second, and when no such file system can be made.
#[allow(dead_code)]
pub fn small_disk(name: &str, size: &str) -> Option<PathBuf> {
    let path = given();
    if path.is_none() {
        let home = tempfile::tempdir().unwrap();
        let mount = format!("mount -t tmpfs -o size={size},mode=700 tmpfs \"$0\"");
        if can(
            "mount a file system for itself",
            Command::new("unshare").args(["-m", "sh", "-c", &mount]).arg(home.path()),
        ) {
            let script = format!("{mount} && exec \"$@\"");
            let before = ["unshare", "-m", "sh", "-c", &script, home.path().to_str().unwrap()];
            run_again(again(name, home.path(), &before));
        }
    }
    path
}
