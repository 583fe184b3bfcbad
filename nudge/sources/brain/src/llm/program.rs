//! A program that is asked: a text in, a text out, within a time. What it has started ends with it.

use std::io::{self, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nudge_core::source::StopFlag;

use super::Fault;

/// Most bytes of an answer that are read.
const MAX_ANSWER: u64 = 4 << 20;
/// How often it is looked whether this process is to end.
const LOOK: Duration = Duration::from_millis(250);

/// Variables by which an agent that this process was started by would take its child for a part of itself.
const OF_THE_CALLER: [&str; 5] = [
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SESSION_ATTENDED",
];

/// Runs a program, and returns what it prints. Its own hooks capture nothing.
pub fn run(command: &mut Command, name: &str, stdin: &str, limit: Duration, stop: &StopFlag) -> Result<String, Fault> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).env("NUDGE_CAPTURE", "0");
    for name in OF_THE_CALLER {
        command.env_remove(name);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let failed = |error: &io::Error| Fault::lasting(format!("{name} cannot be started ({error})"));
    let mut child = Running(command.spawn().map_err(|error| failed(&error))?);
    let (mut input, output) = (child.0.stdin.take(), child.0.stdout.take());
    let text = stdin.to_owned();
    // It may answer without having read everything.
    thread::spawn(move || input.as_mut().map(|input| input.write_all(text.as_bytes())));
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(MAX_ANSWER).read_to_end(&mut bytes));
        let _ = tell.send(read.transpose().map(|_| bytes));
    });
    let end = Instant::now() + limit;
    let answer = loop {
        let left = end.saturating_duration_since(Instant::now());
        match told.recv_timeout(left.min(LOOK)) {
            Ok(answer) => break answer,
            Err(_) if stop.is_set() => return Err(Fault::passing(format!("{name} was interrupted"))),
            Err(_) if left.is_zero() => {
                return Err(Fault::passing(format!("{name} gave no answer in {} s", limit.as_secs())));
            }
            Err(_) => {}
        }
    };
    let status = child.0.wait().map_err(|error| failed(&error))?;
    let bytes = answer.map_err(|error| failed(&error))?;
    if !status.success() {
        let how = status.code().map_or_else(|| "by a signal".to_owned(), |code| format!("with code {code}"));
        return Err(Fault::passing(format!("{name} ended {how}")));
    }
    String::from_utf8(bytes).map_err(|_| Fault::passing(format!("{name} answered with what is no text")))
}

/// A program that is ended with whatever it has started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw)
            && matches!(self.0.try_wait(), Ok(None))
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
