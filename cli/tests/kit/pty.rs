//! A terminal that a test holds the other end of.

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

/// The end of the person, who reads all that is written.
pub struct Pty {
    person: File,
    said: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl Pty {
    /// A new terminal, and the end of the programs.
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
                // It fails once no program has the terminal open.
                match if waiting == 0 { continue } else { from.read(&mut buffer) } {
                    Ok(read @ 1..) => memory.lock().unwrap().extend_from_slice(&buffer[..read]),
                    _ => return,
                }
            }
        });
        (Self { person: person.into(), said, closing, reader }, end)
    }

    /// Makes the terminal so wide.
    pub fn resize(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.person, size).unwrap();
    }

    /// What stands on it, with the line ends that programs wrote.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().unwrap()).replace("\r\n", "\n")
    }

    /// Waits until the text stands on it.
    pub fn wait_for(&self, text: &str) -> String {
        super::wait_for(text, super::PATIENCE, || Some(self.said()).filter(|said| said.contains(text)))
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.person.write_all(keys).unwrap();
    }

    /// The person closes the window.
    pub fn close(self) {
        self.closing.store(true, Ordering::SeqCst);
        self.reader.join().unwrap();
    }

    /// All that was said; for when the programs are done.
    pub fn finish(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.said.lock().unwrap()).replace("\r\n", "\n")
    }
}

/// Runs a command with a terminal for all its streams, and presses the keys after each question: whether it worked, and
/// what it said.
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

/// Runs a command with a terminal as stdout and stderr; the rest as it is.
pub fn on_terminal(command: Command) -> (ExitStatus, String) {
    on_terminal_of(command, None)
}

/// The same with a terminal of so many columns.
pub fn on_terminal_of(mut command: Command, columns: Option<u16>) -> (ExitStatus, String) {
    let (pty, end) = Pty::open();
    if let Some(columns) = columns {
        pty.resize(columns);
    }
    command.stdout(Stdio::from(end.try_clone().unwrap())).stderr(Stdio::from(end));
    let mut child = command.spawn().unwrap();
    // It holds copies of the terminal, and the reader waits for them to be gone.
    drop(command);
    (child.wait().unwrap(), pty.finish())
}

/// A command in a session of its own, whose terminal is its stdin. `None`, with the reason printed,
/// where there is no `setsid` that can do so.
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
