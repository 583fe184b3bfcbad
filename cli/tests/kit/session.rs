//! Runs a session: several `nudge serve` processes with one runtime directory. One of them is PRIMARY.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use nudge_client::{RuntimeDir, ServerFile};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::agent::{Agent, LONG};
use super::raw::Raw;
use super::{PATIENCE, wait_for};

/// The files that a session may leave in its runtime directory.
const STAYS: [&str; 4] = ["members.lock", "primary.lock", "server.log", "server.log.1"];

pub struct Session {
    pub agents: Vec<Arc<Agent>>,
    pub runtime: PathBuf,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
    home: Option<TempDir>,
}

impl Session {
    /// Starts a session with one PRIMARY, the first agent, and this many PROXYs.
    #[track_caller]
    pub fn start(proxies: usize) -> Self {
        Self::with(&[], proxies)
    }

    #[track_caller]
    pub fn with(variables: &[(&str, &str)], proxies: usize) -> Self {
        let mut session = Self::empty(variables);
        session.fill(proxies);
        session
    }

    /// Makes a session without members.
    pub fn empty(variables: &[(&str, &str)]) -> Self {
        let home = super::home();
        let session = Self::at(&home.path().join("run"), variables);
        Self { home: Some(home), ..session }
    }

    /// Makes a session without members in this directory, which the caller removes.
    pub fn at(runtime: &Path, variables: &[(&str, &str)]) -> Self {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Self {
            agents: Vec::new(),
            runtime: runtime.to_owned(),
            flags: vec!["-p".into(), free_port().to_string()],
            variables: variables.iter().map(own).collect(),
            home: None,
        }
    }

    /// Starts the PRIMARY, then the PROXYs.
    #[track_caller]
    pub fn fill(&mut self, proxies: usize) {
        let first = self.join();
        self.primary(|file| file.pid == first.pid);
        for _ in 0..proxies {
            self.join();
        }
    }

    /// Returns the command that starts an agent of the session.
    pub fn command(&self) -> Command {
        let mut command = super::command(&self.runtime);
        command.args(&self.flags).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    #[track_caller]
    pub fn join(&mut self) -> Arc<Agent> {
        let agent = Arc::new(Agent::spawn(self.command()));
        self.agents.push(Arc::clone(&agent));
        agent
    }

    pub fn agent(&self, pid: u32) -> &Arc<Agent> {
        let found = self.agents.iter().find(|agent| agent.pid == pid);
        found.unwrap_or_else(|| panic!("server.pid names {pid}, which is none of ours"))
    }

    pub fn dir(&self) -> RuntimeDir {
        RuntimeDir::open(Some(&self.runtime)).unwrap()
    }

    /// Waits for a `server.pid` that fulfils `awaited`; returns its content.
    #[track_caller]
    pub fn primary(&self, awaited: impl Fn(&ServerFile) -> bool) -> ServerFile {
        let dir = wait_for("the runtime directory", PATIENCE, || RuntimeDir::open(Some(&self.runtime)).ok());
        wait_for("server.pid", LONG, || dir.read_server_file().filter(|file| awaited(file)))
    }

    /// Waits until another process than `last` is PRIMARY.
    #[track_caller]
    pub fn next_primary(&self, last: u32) -> ServerFile {
        let file = self.primary(|file| file.pid != last);
        self.agent(file.pid);
        file
    }

    pub fn raw(&self) -> Raw {
        Raw::new(&self.runtime)
    }

    pub fn status(&self) -> Value {
        self.raw().result("nudge.status", &json!({}))
    }

    /// Runs a `nudge` command in this session.
    pub fn nudge(&self, args: &[&str]) -> Output {
        run(super::system::nudge(&self.runtime, args), LONG)
    }

    /// Kills the PRIMARY; returns the next one.
    #[track_caller]
    pub fn kill_primary(&self) -> ServerFile {
        let last = self.primary(|_| true).pid;
        self.agent(last).kill();
        self.next_primary(last)
    }

    /// Runs `nudge stop` and waits for the end of all agents; returns the time that this took.
    #[track_caller]
    pub fn end(&self) -> Duration {
        let begun = Instant::now();
        let output = self.nudge(&["stop"]);
        assert!(output.status.success(), "{output:?}");
        for agent in &self.agents {
            agent.ended(PATIENCE);
        }
        let took = begun.elapsed();
        assert_nothing_left(&self.runtime);
        took
    }
}

/// Asserts that an ended session has left no files but locks and logs.
#[track_caller]
pub fn assert_nothing_left(runtime: &Path) {
    let left: Vec<_> = names(runtime).into_iter().filter(|name| !STAYS.contains(&&**name)).collect();
    assert!(left.is_empty(), "{left:?} are left");
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns a free port from a range that the system never gives to other connections. Each call begins 32 ports higher,
/// so a next PRIMARY finds a free port too.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let by_process = u16::try_from(std::process::id() % 250).unwrap() * 64;
    loop {
        let port = 12_000 + (by_process + NEXT.fetch_add(32, Ordering::Relaxed)) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Runs a command with little output; kills it and fails if it takes longer than `patience`.
pub fn run(mut command: Command, patience: Duration) -> Output {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + patience;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            None => {
                let _ = child.kill();
                let _ = child.wait();
                panic!("{command:?} takes longer than {patience:?}");
            }
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status, stdout, stderr }
}

/// Returns the processes among `pids` that listen on a port now; `None` if the system does not report it.
pub fn listening(pids: &[u32]) -> Option<Vec<u32>> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let listening: BTreeSet<_> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"0A"))
        .filter_map(|fields| fields.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let listens = |pid: &u32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|open| fs::read_link(open.path()).ok()).any(|to| listening.contains(&*to.to_string_lossy()))
    };
    Some(pids.iter().copied().filter(listens).collect())
}

/// Returns the processes among `pids` that hold an exclusive lock on the file; `None` if the kernel does not report it.
pub fn holders(pids: &[u32], lock: &Path) -> Option<Vec<u32>> {
    let inode = fs::metadata(lock).ok()?.ino();
    let marks = [" WRITE ".to_owned(), format!(":{inode} ")];
    let holds = |pid: &u32| {
        let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        infos.filter_map(|info| fs::read_to_string(info.path()).ok()).any(|info| {
            let holds = |line: &str| !line.contains("->") && marks.iter().all(|mark| line.contains(mark));
            info.lines().any(|line| line.starts_with("lock:") && holds(line))
        })
    };
    Path::new("/proc/self/fdinfo").exists().then(|| pids.iter().copied().filter(holds).collect())
}

pub fn set(key: &str, value: &str) -> Value {
    json!({"component": "c", "key": key, "value": value})
}

pub fn get(key: &str) -> Value {
    json!({"component": "c", "key": key})
}

/// Returns key and value of each hint of the component `c`, as this agent reads them.
#[track_caller]
pub fn shown(agent: &Agent) -> Vec<(String, String)> {
    let found = agent.result("nudge_query", &json!({"component": "c", "limit": 1000}));
    hints(&found)
}

/// Returns key and value of each hint in the result of a query, sorted by key.
pub fn hints(found: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
    let rows = found["hints"].as_array().unwrap_or_else(|| panic!("no rows: {found}"));
    let mut all: Vec<_> = rows.iter().map(|row| (text(&row["hint"]["key"]), text(&row["hint"]["value"]))).collect();
    all.sort();
    all
}
