//! Runs an agent of the tests: a `nudge serve`, PRIMARY or PROXY, that speaks MCP on its stdio. Many threads may use
//! one agent at the same time.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::mcp::{LEGACY, request};
use super::{PATIENCE, wait_for};

/// A time limit for calls. It is longer than the server takes to refuse a call because no PRIMARY answers.
pub const LONG: Duration = Duration::from_secs(20);

/// The reason why a call has no result.
#[derive(Debug, Clone)]
pub enum Failure {
    /// The call was never sent.
    Unsent,
    /// The server refused the call with this error object.
    Refused(Value),
    /// The process that should answer has ended.
    Gone,
    /// No answer came in time.
    Silent,
}

impl Failure {
    pub fn reason(&self) -> &str {
        match self {
            Self::Refused(error) => error["data"]["reason"].as_str().unwrap_or("?"),
            Self::Unsent => "unsent",
            Self::Gone => "gone",
            Self::Silent => "silent",
        }
    }
}

pub struct Agent {
    pub pid: u32,
    child: Mutex<Child>,
    stdin: Mutex<Option<ChildStdin>>,
    heard: Arc<Heard>,
    /// The messages from the server that answer no request, such as notifications.
    unasked: Mutex<Receiver<Value>>,
    last_id: AtomicU64,
    /// True when the test ends the agent or suspends it for long. A missing answer then shows no fault of the server.
    pub doomed: AtomicBool,
}

#[derive(Default)]
struct Heard {
    /// The calls that wait for an answer, by request id; `None` after stdout is closed.
    waiting: Mutex<Option<HashMap<u64, Sender<Value>>>>,
    stderr: Mutex<String>,
    /// True when stderr has ended.
    stderr_closed: AtomicBool,
    /// A line on stdout that is not JSON.
    nonsense: Mutex<Option<String>>,
}

/// A call that waits for its answer.
pub struct Pending(Receiver<Value>);

impl Pending {
    /// Waits for the whole answer.
    pub fn wait(self, patience: Duration) -> Result<Value, Failure> {
        self.0.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Disconnected => Failure::Gone,
            RecvTimeoutError::Timeout => Failure::Silent,
        })
    }

    /// Waits for the result of a tool.
    pub fn tool(self, patience: Duration) -> Result<Value, Failure> {
        let answer = self.wait(patience)?;
        if answer["error"].is_object() {
            return Err(Failure::Refused(answer["error"].clone()));
        }
        let result = &answer["result"];
        if result["isError"] == true {
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            return Err(Failure::Refused(serde_json::from_str(text).unwrap_or_else(|_| json!(text))));
        }
        Ok(result["structuredContent"].clone())
    }
}

impl Agent {
    /// Starts an agent and sends it the greeting of an MCP client.
    #[track_caller]
    pub fn start(runtime: &Path, args: &[&str]) -> Self {
        let mut command = super::command(runtime);
        command.args(args);
        Self::spawn(command)
    }

    #[track_caller]
    pub fn spawn(command: Command) -> Self {
        let agent = Self::launch(command);
        if let Err(why) = agent.greet() {
            let status = matches!(why, Failure::Gone | Failure::Unsent).then(|| agent.ended(PATIENCE));
            panic!("not greeted ({}, {status:?}): {}", why.reason(), agent.stderr());
        }
        agent
    }

    /// Starts an agent with pipes on all three streams, without a greeting.
    pub fn launch(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let heard = Arc::new(Heard { waiting: Mutex::new(Some(HashMap::new())), ..Heard::default() });
        let (sender, unasked) = channel();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let told = Arc::clone(&heard);
        thread::spawn(move || {
            for text in BufReader::new(stdout).lines().map_while(Result::ok) {
                match serde_json::from_str::<Value>(&text) {
                    Ok(message) => told.dispatch(message, &sender),
                    Err(_) => *locked(&told.nonsense) = Some(text),
                }
            }
            // Ends all waiting calls, because no answer will come.
            *locked(&told.waiting) = None;
        });
        let told = Arc::clone(&heard);
        thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = stderr.read(&mut buffer) {
                locked(&told.stderr).push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            told.stderr_closed.store(true, Ordering::Release);
        });
        Self {
            pid: child.id(),
            stdin: Mutex::new(child.stdin.take()),
            child: Mutex::new(child),
            heard,
            unasked: Mutex::new(unasked),
            last_id: AtomicU64::new(0),
            doomed: AtomicBool::new(false),
        }
    }

    /// Sends the greeting (`initialize`) of a client that uses the MCP protocol of 2025.
    pub fn greet(&self) -> Result<Value, Failure> {
        let hello = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let answer = self.ask("initialize", hello, LONG)?;
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(answer)
    }

    /// Sends a request without waiting for the answer.
    pub fn begin(&self, modern: bool, method: &str, params: Value) -> Result<(u64, Pending), Failure> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = channel();
        locked(&self.heard.waiting).as_mut().ok_or(Failure::Unsent)?.insert(id, sender);
        self.write(&request(modern, id, method, params))?;
        Ok((id, Pending(receiver)))
    }

    pub fn begin_tool(&self, name: &str, arguments: &Value) -> Result<Pending, Failure> {
        let params = json!({"name": name, "arguments": arguments});
        self.begin(false, "tools/call", params).map(|(_, pending)| pending)
    }

    pub fn ask(&self, method: &str, params: Value, patience: Duration) -> Result<Value, Failure> {
        self.begin(false, method, params)?.1.wait(patience)
    }

    pub fn tool(&self, name: &str, arguments: &Value, patience: Duration) -> Result<Value, Failure> {
        self.begin_tool(name, arguments)?.tool(patience)
    }

    /// Calls a tool that must succeed; returns its result.
    #[track_caller]
    pub fn result(&self, name: &str, arguments: &Value) -> Value {
        self.tool(name, arguments, LONG).unwrap_or_else(|why| {
            panic!("{} of {}: {name} {arguments}: {why:?}; stderr: {}", why.reason(), self.pid, self.stderr())
        })
    }

    /// Returns the next message that answers no request; `None` if none comes within `patience`.
    pub fn unasked(&self, patience: Duration) -> Option<Value> {
        locked(&self.unasked).recv_timeout(patience).ok()
    }

    fn write(&self, message: &Value) -> Result<(), Failure> {
        let mut stdin = locked(&self.stdin);
        let Some(pipe) = stdin.as_mut() else { return Err(Failure::Unsent) };
        // The error is not `Unsent`, because a part of the line may have reached the agent.
        pipe.write_all(format!("{message}\n").as_bytes()).map_err(|_| Failure::Gone)
    }

    /// Closes stdin, as a client does when it ends.
    pub fn close(&self) {
        drop(locked(&self.stdin).take());
    }

    pub fn signal(&self, signal: Signal) {
        // Checks that the child still runs: after a wait, its process id may belong to another process.
        let mut child = locked(&self.child);
        if child.try_wait().unwrap().is_none() {
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
    }

    /// Kills the agent and waits for its end. The kernel has then released the agent's locks.
    #[track_caller]
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.ended(PATIENCE);
    }

    /// Suspends the agent. Where `/proc` exists, waits until the agent is suspended.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.pid);
        if Path::new(&stat).exists() {
            let stopped = || {
                let text = std::fs::read_to_string(&stat).ok()?;
                text.rsplit_once(") ")?.1.starts_with(['T', 'Z', 'X']).then_some(())
            };
            wait_for("the process to stop", PATIENCE, stopped);
        }
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    pub fn is_running(&self) -> bool {
        locked(&self.child).try_wait().unwrap().is_none()
    }

    /// Returns true when the agent ends by itself within `patience`.
    pub fn ends_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_running() {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Waits for the agent's end. Panics if a line of its stdout is not JSON.
    #[track_caller]
    pub fn ended(&self, patience: Duration) -> ExitStatus {
        let what = format!("the end of {}", self.pid);
        let status = wait_for(&what, patience, || locked(&self.child).try_wait().unwrap());
        let closed = || self.heard.stderr_closed.load(Ordering::Acquire).then_some(());
        wait_for("the end of its stderr", PATIENCE, closed);
        assert_eq!(*locked(&self.heard.nonsense), None, "stdout carries something else than JSON");
        status
    }

    /// Returns everything that the agent wrote to stderr.
    pub fn stderr(&self) -> String {
        locked(&self.heard.stderr).clone()
    }
}

impl Heard {
    fn dispatch(&self, message: Value, unasked: &Sender<Value>) {
        let asked = || locked(&self.waiting).as_mut()?.remove(&message["id"].as_u64()?);
        match asked() {
            // Ignores a failed send: the caller has stopped waiting.
            Some(sender) => drop(sender.send(message)),
            None => drop(unasked.send(message)),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Locks a mutex even if it is poisoned: the thread that panicked has already failed the test.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
