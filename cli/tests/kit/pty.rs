//! Simulates a terminal and the person who uses it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The end of the terminal that belongs to the person. A thread reads and keeps all output.
pub struct Pty {
    person: File,
    said: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl Pty {
    /// Opens a new terminal. Also returns the other end, which the programs use.
    pub fn open() -> (Self, OwnedFd) {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        fcntl_setfd(&person, FdFlags::CLOEXEC).unwrap();
        grantpt(&person).and_then(|()| unlockpt(&person)).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let end = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let (mut from, memory, stop) =
            (File::from(person.try_clone().unwrap()), Arc::clone(&said), Arc::clone(&closing));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            let moment = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            while !stop.load(Ordering::SeqCst) {
                let waiting = poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&moment)).unwrap_or(0);
                // The read fails after the last program has closed the terminal.
                match if waiting == 0 { continue } else { from.read(&mut buffer) } {
                    Ok(read @ 1..) => memory.lock().unwrap().extend_from_slice(&buffer[..read]),
                    _ => return,
                }
            }
        });
        (Self { person: person.into(), said, closing, reader }, end)
    }

    /// Sets the width of the terminal.
    pub fn resize(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.person, size).unwrap();
    }

    /// Returns all output so far, with the line ends that the programs wrote.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).replace("\r\n", "\n")
    }

    /// Waits until the output contains the text; returns all output so far.
    pub fn wait_for(&self, text: &str) -> String {
        super::wait_for(text, super::PATIENCE, || Some(self.said()).filter(|said| said.contains(text)))
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.person.write_all(keys).unwrap();
    }

    /// Closes the terminal, as when a person closes the window.
    pub fn close(self) {
        self.closing.store(true, Ordering::SeqCst);
        self.reader.join().unwrap();
    }

    /// Waits until the programs have ended; returns all output.
    pub fn finish(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.said.lock().unwrap()).replace("\r\n", "\n")
    }
}

/// Runs a command with a terminal for all its streams. After each question in `answers`, presses the keys beside it.
/// Returns true if the command succeeded, and its output.
pub fn asked(mut command: Command, answers: &[(&str, &str)]) -> (bool, String) {
    let (mut terminal, end) = Pty::open();
    command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
    let mut child = command.spawn().unwrap();
    drop(command);
    for (question, keys) in answers {
        terminal.wait_for(question);
        terminal.press(keys.as_bytes());
    }
    (child.wait().unwrap().success(), terminal.finish())
}

/// Runs a command with a terminal for stdout and stderr. The caller has chosen stdin.
pub fn on_terminal(command: Command) -> (ExitStatus, String) {
    on_terminal_of(command, None)
}

/// Runs a command as [`on_terminal`] does, on a terminal of this many columns.
pub fn on_terminal_of(mut command: Command, columns: Option<u16>) -> (ExitStatus, String) {
    let (pty, end) = Pty::open();
    if let Some(columns) = columns {
        pty.resize(columns);
    }
    command.stdout(Stdio::from(end.try_clone().unwrap())).stderr(Stdio::from(end));
    let mut child = command.spawn().unwrap();
    // Drops the command's own descriptors of the terminal: the reader ends only when all are closed.
    drop(command);
    (child.wait().unwrap(), pty.finish())
}

/// Returns a command that runs `program` in a new session, with stdin as its controlling terminal. Prints the reason
/// and returns `None` if the system has no suitable `setsid`.
pub fn with_terminal(program: &Command, end: &OwnedFd) -> Option<Command> {
    let help = Command::new("setsid").arg("--help").output();
    if !help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--ctty")) {
        eprintln!("skipped: there is no `setsid --ctty` here");
        return None;
    }
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--"]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::from(end.try_clone().unwrap()));
    Some(command)
}
