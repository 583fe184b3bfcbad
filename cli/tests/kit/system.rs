//! What the security checklist needs of the system: the command line, other users, private mounts,
//! somebody on a port, and processes seen from outside.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// The user that is somebody else: `nobody`.
#[cfg(unix)]
pub const STRANGER: u32 = 65_534;

/// A nudge command with a clean environment and nothing on stdin.
pub fn nudge(runtime: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nudge"));
    super::clean(&mut command);
    command.args(args).env("NUDGE_RUNTIME_DIR", runtime).env_remove("CLAUDE_PROJECT_DIR").stdin(Stdio::null());
    command
}

/// The one sentence of a command that fails: nothing on stdout, one line on stderr.
pub fn sentence(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.status.code().is_some(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr.starts_with("nudge: ") && stderr.lines().count() == 1, "not one sentence: {stderr}");
    stderr
}

/// Listens, takes everybody in, answers nothing and remembers what was said.
pub struct Squatter {
    pub port: u16,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Squatter {
    /// On a port of its own (0) or on one that was somebody else's.
    pub fn on(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let memory = Arc::clone(&heard);
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let index = {
                    let mut memory = memory.lock().unwrap();
                    memory.push(Vec::new());
                    memory.len() - 1
                };
                let memory = Arc::clone(&memory);
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(read @ 1..) = stream.read(&mut buffer) {
                        memory.lock().unwrap()[index].extend_from_slice(&buffer[..read]);
                    }
                });
            }
        });
        Self { port, heard }
    }

    /// What each caller has said, lossily.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|said| String::from_utf8_lossy(said).into_owned()).collect()
    }

    /// Nobody has so much as connected. Connects itself first, so that whoever came before was seen.
    pub fn assert_lonely(&self, when: &str) {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap().write_all(b"probe").unwrap();
        super::wait_for("the squatter", super::PATIENCE, || {
            let heard = self.heard();
            heard.iter().any(|said| said == "probe").then_some(())
        });
        assert_eq!(self.heard(), ["probe"], "{when}: somebody called");
        self.heard.lock().unwrap().clear();
    }
}

/// Passes connections on to a server, and remembers what callers said.
pub struct Relay {
    pub port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Relay {
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let memory = Arc::clone(&heard);
        thread::spawn(move || {
            for caller in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let (from, back) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
                let memory = Arc::clone(&memory);
                thread::spawn(move || pass(from, server, |said| memory.lock().unwrap().extend_from_slice(said)));
                thread::spawn(move || pass(back, caller, |_| {}));
            }
        });
        Self { port, heard }
    }

    /// All that callers have said, lossily.
    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, note: impl Fn(&[u8])) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        // Before it is passed on: whoever has the answer finds the question noted.
        note(&buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// A figure in KiB from `/proc/PID/status`; `None` where there is no such thing.
pub fn status_kib(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim_start_matches(':').trim().strip_suffix(" kB"))?
        .parse()
        .ok()
}

/// The most memory that a process has ever held is below the checklist's 200 MiB.
pub fn assert_modest(pid: u32) {
    if let Some(kib) = status_kib(pid, "VmHWM") {
        assert!(kib < 200 << 10, "{kib} KiB");
    }
}

/// Open descriptors of a process; `None` where there is no `/proc`.
pub fn descriptors(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// All files below a folder, as (path, content).
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => out.extend(files(&entry.path())),
            kind if kind.is_file() => out.push((entry.path(), fs::read(entry.path()).unwrap())),
            _ => {}
        }
    }
    out
}

/// Sends a signal by name.
#[cfg(unix)]
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A folder that every user may enter, with a copy of the binary in it, for running things as
/// [`STRANGER`]. `None`, with the reason printed, where this user cannot become another.
#[cfg(unix)]
pub fn stage() -> Option<(tempfile::TempDir, PathBuf)> {
    use std::os::unix::fs::PermissionsExt;

    if !can("become another user", as_stranger("true")) {
        return None;
    }
    let home = super::home();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = home.path().join("nudge-of-everybody");
    // By another process: a program that is being written cannot be run, and whatever another test
    // starts meanwhile would keep our descriptor a moment longer.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_nudge")).arg(&binary).status().unwrap().success());
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let mut probe = as_stranger(&binary);
    probe.arg("--version");
    can("run the binary as another user", probe).then_some((home, binary))
}

/// A program run as [`STRANGER`].
#[cfg(unix)]
pub fn as_stranger(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={STRANGER}"), &format!("--regid={STRANGER}"), "--clear-groups"]).arg(program);
    command.env_remove("NUDGE_RUNTIME_DIR").stdin(Stdio::null());
    command
}

/// `nudge serve` behind a script that has mounts of its own. In the script `$1` is the folder given,
/// and `/proc/self/fd/9` the binary, which stays reachable whatever is mounted over its folder.
/// `None`, with the reason printed, where mounting is not permitted.
#[cfg(unix)]
pub fn with_mounts(folder: &Path, script: &str) -> Option<Command> {
    let mut probe = Command::new("unshare");
    probe.args(["-m", "sh", "-c", "mount -t tmpfs tmpfs \"$0\""]).arg(folder);
    if !can("mount a file system for itself", probe) {
        return None;
    }
    let mut command = Command::new("unshare");
    let script = format!("exec 9<\"$0\" && {script}");
    command.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_nudge")]).arg(folder);
    super::clean(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// A folder as a process with mounts of its own sees it.
#[cfg(unix)]
pub fn seen_by(pid: u32, folder: &Path) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root").join(folder.strip_prefix("/").unwrap())
}

#[cfg(unix)]
fn can(what: &str, mut probe: Command) -> bool {
    let done = probe.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success());
    if !done {
        eprintln!("skipped: this user cannot {what} here");
    }
    done
}

/// Runs something that a process must be done with in a second, by its processor time where the
/// system tells it (a busy machine does not count), else by the clock.
pub fn assert_quick<T>(pid: u32, what: &str, run: impl FnOnce() -> T) -> T {
    let (begun, used) = (std::time::Instant::now(), processor_seconds(pid));
    let done = run();
    let seconds = match (used, processor_seconds(pid)) {
        (Some(before), Some(after)) => after - before,
        _ => begun.elapsed().as_secs_f64(),
    };
    assert!(seconds < 1.0, "{what}: {seconds} s");
    done
}

fn processor_seconds(pid: u32) -> Option<f64> {
    // In hundredths of a second on every Linux; the name in the second field may hold anything.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(ticks / 100.0)
}
