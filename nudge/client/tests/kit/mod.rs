//! Provides functions that the tests of the lock and of membership share. Each test file uses some of them.
#![allow(dead_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nudge_client::{PrimaryLock, RuntimeDir};
use tempfile::TempDir;

/// The environment variable with the runtime directory of a test that runs again in its own process.
const CHILD: &str = "NUDGE_TEST_CHILD";
const PATIENCE: Duration = Duration::from_secs(20);

/// A runtime directory whose lock this value holds.
pub struct Home {
    pub outer: TempDir,
    pub dir: RuntimeDir,
    pub lock: PrimaryLock,
}

impl Home {
    pub fn new() -> Self {
        let outer = TempDir::with_prefix("nudge-client-").unwrap();
        let dir = RuntimeDir::create(Some(&outer.path().join("run"))).unwrap();
        let lock = dir.try_lock().unwrap().unwrap();
        Self { outer, dir, lock }
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Returns the directory that [`again`] passed to this process; `None` in the first run.
pub fn given() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Makes a command that runs one test of this binary again, without the other tests. `dir` is its directory. `before`
/// is a command that starts the test, such as `unshare`; it may be empty.
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

/// Runs the test again, and expects it to succeed.
pub fn run_again(mut command: Command) {
    let output = command.output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{}", text(&output.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true when the probing command succeeds. Otherwise prints which test is skipped.
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

/// A child process that runs one command for each line, and answers with a line.
pub struct Puppet {
    child: Child,
    /// The standard input of the process; `None` after the last command.
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

    /// Reads the next line that the child's command has printed.
    pub fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the process has ended");
            // On the first line, the test harness prints the test's name before the answer.
            if let Some((_, said)) = line.split_once("puppet: ") {
                return said.trim_end().to_owned();
            }
        }
    }

    /// Kills the process as `kill -9` does, so that it cannot clean up.
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

/// Runs commands in the child process until its standard input ends.
pub fn obey(mut obey: impl FnMut(&str) -> String) {
    println!("puppet: here");
    for order in std::io::stdin().lines().map_while(Result::ok) {
        println!("puppet: {}", obey(&order));
    }
}

/// Returns the folder of a small file system on which the test `name` runs. In the first run, starts the test again,
/// waits for it, and returns `None`. Also returns `None` when no such file system can be made.
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
