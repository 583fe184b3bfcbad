//! A child process that the doctor starts as a client would: an MCP server or a hook. A drop ends the child, if it
//! still runs.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{ChildStdin, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nudge_os::process::{self, ChildProgram};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The time limit of a server's handshake, of a tool call, and of a hook.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time within which a server must end after its stdin is closed. A Nudge server needs less than a second.
const FAREWELL: Duration = Duration::from_secs(2);
/// The most bytes of stdout that are read; Nudge writes fewer.
const MAX_BYTES: u64 = 4 << 20;
/// The number of bytes from the end of stderr that are stored.
const TAIL_BYTES: usize = 4 << 10;
/// The version of MCP that most clients use.
const PROTOCOL: &str = "2025-06-18";

/// A child process. If the child does not end by itself on drop, it is killed with all processes that it started.
pub struct ChildProcess {
    program: process::RunningProgram,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// Receives a message when stderr has ended.
    silent: Receiver<()>,
    deadline: Instant,
    /// True for a server, which ends by itself after its stdin ends.
    is_server: bool,
}

/// The name, the version and the tools that a server reports about itself.
pub struct ServerHello {
    pub name: String,
    pub version: String,
    pub tools: Vec<String>,
}

impl ChildProcess {
    /// Starts a program.
    ///
    /// # Errors
    /// The system's error in words, when the program cannot be started.
    pub fn start(mut program: ChildProgram) -> Result<Self, String> {
        let mut program = program.start().map_err(|error| format!("it cannot be started: {error}"))?;
        let (sender, lines) = channel();
        let mut stdout = program.child.stdout.take().map(|stdout| BufReader::new(stdout.take(MAX_BYTES)));
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while stdout.as_mut().is_some_and(|stdout| stdout.read_until(b'\n', &mut line).is_ok_and(|read| read > 0)) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        let (sender, silent) = channel();
        let (stderr, mut from) = (Arc::<Mutex<Vec<u8>>>::default(), program.child.stderr.take());
        let kept = Arc::clone(&stderr);
        std::thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Some(Ok(read @ 1..)) = from.as_mut().map(|from| from.read(&mut buffer)) {
                let mut kept = kept.lock();
                kept.extend_from_slice(&buffer[..read]);
                let surplus = kept.len().saturating_sub(TAIL_BYTES);
                kept.drain(..surplus);
            }
            let _ = sender.send(());
        });
        let stdin = program.child.stdin.take();
        Ok(Self { program, stdin, lines, stderr, silent, deadline: Instant::now() + PATIENCE, is_server: false })
    }

    /// Does the MCP handshake and lists the tools.
    ///
    /// # Errors
    /// The reason of the failure, in words.
    pub fn shake_hands(&mut self) -> Result<ServerHello, String> {
        let client = json!({"name": "nudge-doctor", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        let info = self.send_request(1, "initialize", &params)?["serverInfo"].take();
        self.send_message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let tools = self.send_request(2, "tools/list", &json!({}))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let tools = tools["tools"].as_array().into_iter().flatten().filter_map(|tool| text(&tool["name"])).collect();
        self.is_server = true;
        let unnamed = "it does not say its name and version";
        let (name, version) = text(&info["name"]).zip(text(&info["version"])).ok_or(unnamed)?;
        Ok(ServerHello { name, version, tools })
    }

    /// Calls a tool and returns the text of its result.
    ///
    /// # Errors
    /// The reason of the failure, in words, or the tool's own error.
    pub fn call_tool(&mut self, name: &str, arguments: &Value) -> Result<String, String> {
        self.deadline = Instant::now() + PATIENCE;
        let result = self.send_request(3, "tools/call", &json!({"name": name, "arguments": arguments}))?;
        let text = result["content"][0]["text"].as_str().ok_or_else(|| format!("{name} is answered without a text"))?;
        if result["isError"] == true {
            let error = serde_json::from_str::<Value>(text).ok();
            let message = error.as_ref().and_then(|error| error["message"].as_str());
            return Err(format!("{name} is refused: {}", message.unwrap_or(text)));
        }
        Ok(text.to_owned())
    }

    /// Writes a message. Ignores an error, because the exit status will explain it.
    fn send_message(&mut self, message: &Value) {
        if let Some(stdin) = self.stdin.as_mut() {
            let _ = stdin.write_all(format!("{message}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }

    /// Sends a request and returns the result, or the reason of the failure in words.
    fn send_request(&mut self, id: u64, method: &str, params: &Value) -> Result<Value, String> {
        self.send_message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = match self.read_line() {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!("no answer to {method} within {} s", PATIENCE.as_secs()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("it ended without an answer to {method}{}", self.how_it_ended()));
                }
            };
            let Ok(mut message @ Value::Object(_)) = serde_json::from_str::<Value>(&line) else {
                return Err(format!("it says something else than MCP on stdout: {}", line.trim_end()));
            };
            // Skips requests and notifications that the server itself sends.
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            if let Some(error) = message.get("error") {
                let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
                return Err(format!("it refuses {method}: {message}"));
            }
            return Ok(message["result"].take());
        }
    }

    /// Writes `given` to stdin and closes stdin. Returns the whole stdout, and the time from `begun` to the end of
    /// stdout.
    ///
    /// # Errors
    /// The reason of the failure, in words.
    pub fn read_answer(&mut self, begun: Instant, given: &Value) -> Result<(String, Duration), String> {
        self.send_message(given);
        drop(self.stdin.take());
        let mut said = String::new();
        loop {
            match self.read_line() {
                Ok(line) => said += &line,
                Err(RecvTimeoutError::Timeout) => return Err(format!("no end within {} s", PATIENCE.as_secs())),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let took = begun.elapsed();
        match self.wait_for_end(FAREWELL) {
            Some(status) if status.success() => Ok((said, took)),
            _ => Err(format!("it failed{}", self.how_it_ended())),
        }
    }

    fn read_line(&self) -> Result<String, RecvTimeoutError> {
        self.lines.recv_timeout(self.deadline.saturating_duration_since(Instant::now()))
    }

    fn wait_for_end(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.program.wait_until(Instant::now() + patience).ok().flatten()
    }

    /// Describes the exit status and the last line of stderr.
    fn how_it_ended(&mut self) -> String {
        let mut out = String::new();
        if let Some(status) = self.wait_for_end(FAREWELL) {
            let _ = write!(out, " ({status})");
        }
        let _ = self.silent.recv_timeout(FAREWELL);
        let stderr = self.stderr.lock();
        let stderr = String::from_utf8_lossy(&stderr);
        if let Some(line) = stderr.lines().map(str::trim).rfind(|line| !line.is_empty()) {
            let _ = write!(out, ": {line}");
        }
        out
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // If the process still runs after this wait, the drop of `program` ends it.
        let _ = self.wait_for_end(if self.is_server { FAREWELL } else { Duration::ZERO });
    }
}
