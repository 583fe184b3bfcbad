//! Helps the security checklist with the system: runs commands, acts as another user, makes private mounts, puts a
//! foreign process on a port, and observes processes from outside.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// The user id of the account `nobody`, which plays another user of the machine.
#[cfg(unix)]
pub const STRANGER: u32 = 65_534;

/// Returns a `nudge` command with a clean environment and an empty stdin.
pub fn nudge(runtime: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nudge"));
    super::clean(&mut command);
    command.args(args).env("NUDGE_RUNTIME_DIR", runtime).env_remove("CLAUDE_PROJECT_DIR").stdin(Stdio::null());
    command
}

/// Returns the error sentence of a failed command. Asserts that stdout is empty and stderr has only this line.
pub fn sentence(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.status.code().is_some(), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    assert!(stderr.starts_with("nudge: ") && stderr.lines().count() == 1, "not one sentence: {stderr}");
    stderr
}

/// A foreign process on a port. It accepts every connection, answers nothing and remembers the received bytes.
pub struct Squatter {
    pub port: u16,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Squatter {
    /// Listens on a free port (0), or on a port that another process had.
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

    /// Returns the bytes of each connection, as text with replacement characters.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|said| String::from_utf8_lossy(said).into_owned()).collect()
    }

    /// Asserts that no process has connected. First it connects itself and waits until the squatter has counted this
    /// connection; by then the squatter has counted every earlier one.
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

/// Forwards connections to a server, and remembers the bytes that the callers send.
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

    /// Returns the bytes of all callers, as text with replacement characters.
    pub fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, note: impl Fn(&[u8])) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        // Notes the bytes before it forwards them. A test that has an answer then also finds its request in the notes.
        note(&buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Returns a number in KiB from `/proc/PID/status`; `None` if the system has no such file.
pub fn status_kib(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim_start_matches(':').trim().strip_suffix(" kB"))?
        .parse()
        .ok()
}

/// Asserts that the peak memory of a process is below 200 MiB, the limit of the checklist.
pub fn assert_modest(pid: u32) {
    if let Some(kib) = status_kib(pid, "VmHWM") {
        assert!(kib < 200 << 10, "{kib} KiB");
    }
}

/// Returns the number of open descriptors of a process; `None` if the system has no `/proc`.
pub fn descriptors(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// Returns all files below a folder, as (path, content).
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

/// Makes a folder that every user may enter, with a copy of the binary. Another user can run that copy; see
/// [`STRANGER`]. Prints the reason and returns `None` if this user cannot run programs as another user.
#[cfg(unix)]
pub fn stage() -> Option<(tempfile::TempDir, PathBuf)> {
    use std::os::unix::fs::PermissionsExt;

    if !can("become another user", as_stranger("true")) {
        return None;
    }
    let home = super::home();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = home.path().join("nudge-of-everybody");
    // Lets another process copy the binary. The system runs no file that is open for writing, and a child of a parallel
    // test could inherit such a descriptor from this process.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_nudge")).arg(&binary).status().unwrap().success());
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let mut probe = as_stranger(&binary);
    probe.arg("--version");
    can("run the binary as another user", probe).then_some((home, binary))
}

/// Returns a command that runs a program as [`STRANGER`].
#[cfg(unix)]
pub fn as_stranger(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={STRANGER}"), &format!("--regid={STRANGER}"), "--clear-groups"]).arg(program);
    command.env_remove("NUDGE_RUNTIME_DIR").stdin(Stdio::null());
    command
}

/// Returns `nudge serve` behind a shell script with private mounts. In the script, `$1` is the folder, and
/// `/proc/self/fd/9` is the binary, which stays reachable even if a mount hides its folder. Prints the reason and
/// returns `None` if this user may not mount.
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

/// Returns the path by which this process reaches a folder that only the mounts of process `pid` show.
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

/// Runs `run` and asserts that process `pid` needs less than a second for it. The limit is processor time, because the
/// machine may be busy. If the system does not report processor time, the limit is elapsed time.
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
    // The times are in hundredths of a second on every Linux. The second field, the process name, may contain spaces,
    // so the parse begins after its last bracket.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11..13)?.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Some(ticks / 100.0)
}
