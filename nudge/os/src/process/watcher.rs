//! A process that waits for the end of this process and then ends its programs. It is needed because a process cannot
//! catch SIGKILL. The kernel's own mechanism (`PR_SET_PDEATHSIG`) watches the thread that started a program instead of
//! the process, and does not end the program's children.
//!
//! The watcher is a shell that reads a pipe: `+ ID` for a group that runs, `- ID` for a group that has ended. The pipe
//! ends when this process ends, for any reason. The watcher costs a process that starts programs one start of a shell,
//! and one megabyte while the shell runs.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{ChildStdin, Command, Stdio};

const SHELL: &str = if cfg!(target_os = "android") { "/system/bin/sh" } else { "/bin/sh" };

/// The script ignores signals that end this process or the terminal's other processes. A group gets a moment between
/// SIGTERM and SIGKILL.
const SCRIPT: &str = r#"
trap '' TERM INT HUP QUIT TSTP TTIN TTOU
live=' '
while read -r verb id; do
  case "$verb$live" in
    +*) live="$live$id " ;;
    -*" $id "*) live="${live%% $id *} ${live#* $id }" ;;
  esac
done
[ "$live" = ' ' ] && exit
for id in $live; do kill -s TERM -- "-$id"; done 2>/dev/null
sleep 0.2 2>/dev/null || sleep 1
for id in $live; do kill -s KILL -- "-$id"; done 2>/dev/null
"#;

/// The watcher of this process. It is started together with the first program.
pub struct GroupWatcher {
    state: WatcherState,
}

enum WatcherState {
    NotStarted,
    Watching(ChildStdin),
    /// The shell could not be started. Programs are started without a watcher.
    Failed,
}

impl GroupWatcher {
    pub const fn new() -> Self {
        Self { state: WatcherState::NotStarted }
    }

    /// Starts the watcher if it has not been started before.
    pub fn begin(&mut self) {
        if matches!(self.state, WatcherState::NotStarted) {
            self.state = start_shell().map_or(WatcherState::Failed, WatcherState::Watching);
        }
    }

    /// Reports a running group to the watcher. If another process has ended the watcher, a second watcher is started
    /// and gets `all` groups.
    pub fn add_group(&mut self, id: u32, all: &[u32]) {
        if self.write_lines(&format!("+ {id}\n")).is_ok() || matches!(self.state, WatcherState::Failed) {
            return;
        }
        self.state = start_shell().map_or(WatcherState::Failed, WatcherState::Watching);
        let lines = all.iter().fold(String::new(), |mut lines, id| {
            writeln!(lines, "+ {id}").expect("writing to a string cannot fail");
            lines
        });
        if self.write_lines(&lines).is_err() {
            self.state = WatcherState::Failed;
        }
    }

    /// Reports to the watcher that a group has ended. The caller has already waited for the group's leader. The watcher
    /// could end a wrong group only if this process were killed and the id reused between that wait and this report.
    pub fn remove_group(&mut self, id: u32) {
        // If this fails, the watcher is dead. The next start of a program replaces it.
        let _ = self.write_lines(&format!("- {id}\n"));
    }

    fn write_lines(&mut self, lines: &str) -> io::Result<()> {
        match &mut self.state {
            WatcherState::Watching(pipe) => pipe.write_all(lines.as_bytes()),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Starts the shell in its own group, in the root folder and without variables.
fn start_shell() -> io::Result<ChildStdin> {
    let mut shell = Command::new(SHELL);
    shell.args(["-c", SCRIPT, "nudge-watcher"]).env_clear().current_dir("/");
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn()?;
    // No code here waits for the shell. After the end of this process, init waits for it.
    child.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("300").process_group(0).spawn().unwrap()
    }

    /// When this process is killed, the watcher only sees that the pipe ends.
    ///
    /// Promise: see `no_git_is_left_behind_by_a_command`.
    #[test]
    fn groups_that_run_end_with_the_pipe_and_others_do_not() {
        let (mut first, mut second, mut other) = (sleeper(), sleeper(), sleeper());
        let mut watcher = GroupWatcher::new();
        watcher.begin();
        for id in [first.id(), other.id(), second.id()] {
            watcher.add_group(id, &[]);
        }
        watcher.remove_group(other.id());
        watcher.remove_group(1);
        drop(watcher);
        assert!(!first.wait().unwrap().success() && !second.wait().unwrap().success());
        assert_eq!(other.try_wait().unwrap(), None, "it had ended, as far as the watcher knows");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_watcher_that_was_ended_is_replaced() {
        let mut program = sleeper();
        let mut ended = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let pipe = ended.stdin.take().unwrap();
        ended.wait().unwrap();
        let mut watcher = GroupWatcher { state: WatcherState::Watching(pipe) };
        watcher.add_group(program.id(), &[program.id()]);
        assert!(matches!(watcher.state, WatcherState::Watching(_)));
        drop(watcher);
        assert!(!program.wait().unwrap().success());
    }
}
