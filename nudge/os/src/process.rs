//! Starts foreign programs: git, curl, a client's own command, the checks of `nudge doctor`, the user's agent. No other
//! module starts programs.
//!
//! A [`ChildProgram`] has an absolute path ([`programs`] finds it) and its own process group. The program gets none of
//! git's variables and no relative part of PATH. [`ChildProgram::run`] limits its time and output. The whole group is
//! ended in these cases:
//!
//! - The program's time is over, the caller gives up, or the value is dropped.
//! - This process ends by itself, or by SIGTERM, SIGINT or SIGHUP.
//! - This process is killed by SIGKILL. A `watcher` process notices this.
//!
//! Limits: a process that leaves the group (`setsid`) is not ended. The children of a program that ended in time by
//! itself are not ended either. If this process is killed between the start of a program and its report to the watcher
//! (microseconds, longer on a busy machine), that program keeps running. On Windows only the program itself is ended,
//! without its children, and it is not ended when this process is killed.

mod running;
#[cfg(unix)]
mod watcher;

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::programs;

#[cfg(unix)]
pub use running::leave_signals;
pub use running::{RunningProgram, end_all};

/// The pause between two checks. Each checks whether the program has ended or its caller has given up.
const LOOK: Duration = Duration::from_millis(25);
/// The time in which output may still arrive after the program has ended, because its children may keep its streams
/// open.
const LINGER: Duration = Duration::from_millis(200);
/// The number of bytes that are kept from the beginning of standard error.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// The bytes of one read.
const CHUNK_BYTES: usize = 64 << 10;
/// The most chunks of output that wait for the caller.
const MAX_CHUNKS: usize = 4;

/// A program to start.
#[derive(Debug)]
pub struct ChildProgram {
    command: Command,
    input: Vec<u8>,
    errors: StderrUse,
    /// The memory limit; `None` means no limit.
    memory_bytes: Option<u64>,
}

/// The use of a program's standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StderrUse {
    /// Standard error is not read.
    Dropped,
    /// The beginning of standard error is in [`ProgramOutput::stderr`].
    Kept,
    /// Standard error is copied to the standard error of this process as it arrives.
    Shown,
}

/// The limits of [`ChildProgram::run`].
#[derive(Clone, Copy)]
pub struct RunLimits<'a> {
    /// The longest time from start to end.
    pub time: Duration,
    /// The most bytes of standard output.
    pub output_bytes: usize,
    /// Returns true when the caller no longer wants an answer.
    pub is_given_up: &'a dyn Fn() -> bool,
}

/// The result of a program that ended in time, whether it succeeded or not.
#[derive(Debug)]
pub struct ProgramOutput {
    /// The exit status.
    pub status: ExitStatus,
    /// The complete standard output.
    pub stdout: Vec<u8>,
    /// The beginning of standard error, with [`StderrUse::Kept`].
    pub stderr: Vec<u8>,
}

/// The reason why there is no [`ProgramOutput`].
#[derive(Debug)]
pub enum RunFailure {
    /// The system could not start the program.
    Start(io::Error),
    /// The time limit passed.
    Late(Duration),
    /// The caller gave up waiting.
    GivenUp,
    /// The output was longer than this many bytes.
    TooLong(usize),
    /// The system did not report how the program ended.
    Lost(io::Error),
}

/// Writes the rest of a sentence that begins with the name of the program.
impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "cannot be started ({error})"),
            Self::Late(time) => write!(f, "takes longer than {} s", time.as_secs()),
            Self::GivenUp => f.write_str("was interrupted"),
            Self::TooLong(bytes) => write!(f, "says more than {bytes} bytes"),
            Self::Lost(error) => write!(f, "cannot be waited for ({error})"),
        }
    }
}

/// A part of a program's output.
enum OutputChunk {
    Out(Vec<u8>),
    Error(Vec<u8>),
    Broken(io::Error),
}

/// Returns true when there is a process with this id. Always true on Windows.
pub fn is_running(pid: u32) -> bool {
    #[cfg(unix)]
    {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
    }
    #[cfg(not(unix))]
    {
        let _ = pid;
        true
    }
}

impl ChildProgram {
    /// Makes a program with this absolute path. With a relative path the start fails, because the path would lead to
    /// another program in each folder.
    pub fn new(path: &Path) -> Self {
        let path = if path.is_absolute() { path } else { Path::new("") };
        let mut command = Command::new(path);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_git(name)) {
            command.env_remove(name);
        }
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", programs::whole_path(&path));
        }
        Self { command, input: Vec::new(), errors: StderrUse::Dropped, memory_bytes: None }
    }

    /// Adds an argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) -> &mut Self {
        self.command.args(args);
        self
    }

    /// Adds an argument without the quotes that Windows adds to arguments.
    #[cfg(windows)]
    pub fn raw_arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        std::os::windows::process::CommandExt::raw_arg(&mut self.command, arg);
        self
    }

    /// Sets a variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the folder in which the program starts.
    pub fn current_dir(&mut self, folder: &Path) -> &mut Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets the bytes that the program reads on standard input. Without this call, standard input is empty.
    pub fn input(&mut self, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.input = bytes.into();
        self
    }

    /// Sets the use of standard error. By default it is dropped.
    pub fn errors(&mut self, errors: StderrUse) -> &mut Self {
        self.errors = errors;
        self
    }

    /// Limits the memory that the program, and each program that it starts, may allocate. Mapped files do not count.
    /// Only Linux can set such a limit for another process. The limit is set right after the start.
    pub fn memory(&mut self, bytes: u64) -> &mut Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Starts the program for a conversation. All streams are pipes, and the caller takes them.
    ///
    /// # Errors
    /// The system's error; `Interrupted` when this process is about to end.
    pub fn start(&mut self) -> io::Result<RunningProgram> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        running::start(&mut self.command, self.memory_bytes)
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// The reason why there is no result. The program no longer runs then.
    pub fn run(&mut self, limits: RunLimits<'_>) -> Result<ProgramOutput, RunFailure> {
        let deadline = Instant::now().checked_add(limits.time);
        let pipe_if = |is_wanted: bool| if is_wanted { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(pipe_if(!self.input.is_empty())).stdout(Stdio::piped());
        self.command.stderr(pipe_if(self.errors != StderrUse::Dropped));
        let mut running = running::start(&mut self.command, self.memory_bytes).map_err(RunFailure::Start)?;
        if let Some(mut stdin) = running.child.stdin.take() {
            let input = std::mem::take(&mut self.input);
            // The program may end before it has read its whole input, so a failed write is no error.
            std::thread::spawn(move || drop(stdin.write_all(&input)));
        }
        let (sender, chunks) = sync_channel(MAX_CHUNKS);
        if let Some(stderr) = running.child.stderr.take() {
            read_in_background(stderr, sender.clone(), OutputChunk::Error);
        }
        if let Some(stdout) = running.child.stdout.take() {
            read_in_background(stdout, sender, OutputChunk::Out);
        }
        let (stdout, stderr) = self.collect_output(&mut running, &chunks, limits, deadline)?;
        // The program has closed its streams, so it is about to end.
        let status = loop {
            match running.wait_until(Instant::now() + LOOK).map_err(RunFailure::Lost)? {
                Some(status) => break status,
                None => look_at_limits(limits, deadline)?,
            }
        };
        Ok(ProgramOutput { status, stdout, stderr })
    }

    /// Collects the output until the streams end, or until [`LINGER`] after the program's end.
    fn collect_output(
        &self,
        running: &mut RunningProgram,
        chunks: &Receiver<OutputChunk>,
        limits: RunLimits<'_>,
        deadline: Option<Instant>,
    ) -> Result<(Vec<u8>, Vec<u8>), RunFailure> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut ended: Option<Instant> = None;
        loop {
            match chunks.recv_timeout(LOOK) {
                Ok(OutputChunk::Out(bytes)) => {
                    stdout.extend_from_slice(&bytes);
                    if stdout.len() > limits.output_bytes {
                        return Err(RunFailure::TooLong(limits.output_bytes));
                    }
                }
                Ok(OutputChunk::Error(bytes)) if self.errors == StderrUse::Shown => {
                    // Write errors are ignored: progress output is optional.
                    let _ = io::stderr().write_all(&bytes);
                }
                Ok(OutputChunk::Error(bytes)) => {
                    let room = MAX_ERROR_BYTES.saturating_sub(stderr.len());
                    stderr.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                Ok(OutputChunk::Broken(error)) => return Err(RunFailure::Lost(error)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if ended.is_none() && running.try_wait().map_err(RunFailure::Lost)?.is_some() {
                        ended = Some(Instant::now());
                    }
                    if ended.is_some_and(|ended| ended.elapsed() > LINGER) {
                        break;
                    }
                }
            }
            look_at_limits(limits, deadline)?;
        }
        Ok((stdout, stderr))
    }
}

/// Returns an error when the time is over or when the caller has given up.
fn look_at_limits(limits: RunLimits<'_>, deadline: Option<Instant>) -> Result<(), RunFailure> {
    if (limits.is_given_up)() {
        return Err(RunFailure::GivenUp);
    }
    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
        return Err(RunFailure::Late(limits.time));
    }
    Ok(())
}

/// Sends the output of a stream to the caller until the stream ends or the caller stops reading. No code waits for the
/// thread, because children of the program may keep the stream open.
fn read_in_background(
    mut stream: impl Read + Send + 'static,
    sender: SyncSender<OutputChunk>,
    wrap: fn(Vec<u8>) -> OutputChunk,
) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let chunk = match stream.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => wrap(buffer[..read].to_vec()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => OutputChunk::Broken(error),
            };
            if sender.send(chunk).is_err() {
                return;
            }
        }
    });
}

/// Returns true for a variable of git. Such a variable can choose another repository or start other programs.
fn is_of_git(name: &OsStr) -> bool {
    name.as_encoded_bytes().get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"GIT_"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;

    use super::*;

    const LONG: Duration = Duration::from_mins(2);

    fn shell(script: &str) -> ChildProgram {
        let mut shell = ChildProgram::new(Path::new("/bin/sh"));
        shell.args(["-c", script]);
        shell
    }

    fn limits(time: Duration) -> RunLimits<'static> {
        RunLimits { time, output_bytes: 1 << 20, is_given_up: &|| false }
    }

    /// Waits until the process with this id has ended or is a zombie.
    fn is_gone(id: &str) {
        loop {
            let told = Command::new("ps").args(["-o", "stat=", "-p", id]).output().unwrap().stdout;
            let state = String::from_utf8_lossy(&told).trim().to_owned();
            if state.is_empty() || state.starts_with('Z') {
                return;
            }
            std::thread::yield_now();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_program_takes_no_more_memory_than_it_may() {
        // `tail` stores a line until the line ends. It allocates this memory only when its input arrives, and the input
        // is sent only after the limit is set.
        let tail = |memory_bytes: u64| {
            let path = programs::find_program("tail").expect("every Linux has it");
            let mut tail = ChildProgram::new(&path);
            tail.args(["-n", "1"]).memory(memory_bytes).input(vec![b'x'; 64 << 20]);
            tail.run(RunLimits { output_bytes: 128 << 20, ..limits(LONG) }).unwrap()
        };
        assert!(!tail(16 << 20).status.success(), "64 MiB were kept in 16 MiB");
        let output = tail(256 << 20);
        assert!(output.status.success() && output.stdout.len() == 64 << 20);
    }

    #[test]
    fn a_program_reads_its_input_and_says_how_it_ended() {
        let mut program = shell("cat; echo no >&2; exit 3");
        let output = program.input("text").errors(StderrUse::Kept).run(limits(LONG)).unwrap();
        assert_eq!((output.status.code(), &*output.stdout, &*output.stderr), (Some(3), &b"text"[..], &b"no\n"[..]));
        let output = shell("exec cat; echo never").run(limits(LONG)).unwrap();
        assert_eq!((output.status.success(), &*output.stdout), (true, &b""[..]), "without input the file ends at once");
        // A program that reads nothing must not block the caller.
        assert!(shell(":").input(vec![b'x'; 1 << 20]).run(limits(LONG)).unwrap().status.success());
    }

    #[test]
    fn a_path_that_is_not_whole_is_not_started() {
        for path in ["sh", "./sh", "bin/sh", ""] {
            let failure = ChildProgram::new(Path::new(path)).run(limits(LONG)).unwrap_err();
            assert!(matches!(failure, RunFailure::Start(_)), "{path}: {failure}");
        }
    }

    #[test]
    fn no_variable_of_git_and_no_relative_part_of_path_is_passed_on() {
        let output = shell("env").run(limits(LONG)).unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(!told.lines().any(|line| line.starts_with("GIT_")), "{told}");
        for name in ["GIT_DIR", "git_ssh"] {
            assert!(is_of_git(OsStr::new(name)));
        }
        assert!(!is_of_git(OsStr::new("GITHUB_TOKEN")) && !is_of_git(OsStr::new("GI")));
    }

    #[test]
    fn too_much_output_too_much_time_and_a_caller_that_leaves_end_it_with_its_children() {
        let place = tempfile::tempdir().unwrap();
        let ids = place.path().join("ids");
        // The program and its child ignore the signals that ask them to end.
        let hanging =
            format!("trap '' TERM INT HUP; sleep 300 & echo $$ $! > '{0}.new'; mv '{0}.new' '{0}'", ids.display());
        let ended = |what: &str| {
            let told = std::fs::read_to_string(&ids).unwrap();
            std::fs::remove_file(&ids).unwrap();
            assert_eq!(told.split_whitespace().count(), 2, "{what}");
            told.split_whitespace().for_each(is_gone);
        };
        let failure = shell(&format!("{hanging}; yes")).run(limits(LONG)).unwrap_err();
        assert!(matches!(failure, RunFailure::TooLong(1_048_576)), "{failure}");
        ended("too much output");

        // The time limit passes while the program hangs.
        let (begun, mut time) = (Cell::new(false), Duration::from_millis(50));
        while !begun.get() {
            let failure = shell(&format!("{hanging}; wait")).run(limits(time)).unwrap_err();
            assert!(matches!(failure, RunFailure::Late(_)), "{failure}");
            begun.set(ids.exists());
            time *= 2;
        }
        ended("too much time");

        let is_there = || ids.exists();
        let limits = RunLimits { is_given_up: &is_there, ..limits(LONG) };
        let failure = shell(&format!("{hanging}; wait")).run(limits).unwrap_err();
        assert!(matches!(failure, RunFailure::GivenUp), "{failure}");
        ended("a caller that left");
    }

    #[test]
    fn what_was_left_behind_keeps_nobody_waiting() {
        let output = shell("sleep 300 & echo $!").run(limits(LONG)).unwrap();
        let id = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && !id.trim().is_empty());
        assert!(Command::new("kill").arg(id.trim()).status().unwrap().success(), "it is left as it is");
    }
}
