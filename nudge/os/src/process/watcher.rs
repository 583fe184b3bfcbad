//! A process that waits for the end of this one, and then ends the programs that this one has started. SIGKILL cannot be
//! caught, and the kernel's own notice (`PR_SET_PDEATHSIG`) follows the thread that started a program rather than the
//! process, and reaches none of the program's own children.
//!
//! It is a shell that reads a pipe: `+ ID` for a group that runs, `- ID` for one that has ended. The end of the pipe is
//! the end of this process, whatever ended it. The shell costs one start per process that starts programs at all, and a
//! megabyte while that lives.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::{ChildStdin, Command, Stdio};

const SHELL: &str = if cfg!(target_os = "android") { "/system/bin/sh" } else { "/bin/sh" };

/// It survives signals that end its siblings. Groups have a moment between being asked and being killed.
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

/// The watcher of this process, which is started with the first program.
pub struct GroupWatcher {
    state: WatcherState,
}

enum WatcherState {
    NotStarted,
    Watching(ChildStdin),
    /// There is no shell, or no room for one. Programs are started all the same.
    Failed,
}

impl GroupWatcher {
    pub const fn new() -> Self {
        Self { state: WatcherState::NotStarted }
    }

    /// Starts it, unless that was done.
    pub fn begin(&mut self) {
        if matches!(self.state, WatcherState::NotStarted) {
            self.state = start_shell().map_or(WatcherState::Failed, WatcherState::Watching);
        }
    }

    /// Notes a group. A watcher that was ended by somebody is replaced once, and told of all groups.
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

    /// Forgets a group that has ended. It is told after the group's leader was waited for: this process would have to be
    /// killed and the id be given to another group between the two for the watcher to end that.
    pub fn remove_group(&mut self, id: u32) {
        // A watcher that is gone is replaced at the next start.
        let _ = self.write_lines(&format!("- {id}\n"));
    }

    fn write_lines(&mut self, lines: &str) -> io::Result<()> {
        match &mut self.state {
            WatcherState::Watching(pipe) => pipe.write_all(lines.as_bytes()),
            _ => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// Starts the shell, in a group and a folder of its own and without variables.
fn start_shell() -> io::Result<ChildStdin> {
    let mut shell = Command::new(SHELL);
    shell.args(["-c", SCRIPT, "nudge-watcher"]).env_clear().current_dir("/");
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    let mut child = shell.spawn()?;
    // It is waited for by init once this process has ended.
    child.stdin.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("300").process_group(0).spawn().unwrap()
    }

    /// The end of the pipe is what the watcher sees of a process that was killed.
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
