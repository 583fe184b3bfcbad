//! Runs a real `nudge serve` in a private runtime directory, and exchanges raw bytes with it.

#![allow(dead_code)]

#[cfg(unix)]
pub mod agent;
#[cfg(unix)]
pub mod desk;
#[cfg(target_os = "linux")]
pub mod faulty;
pub mod kept;
#[cfg(unix)]
pub mod pty;
#[cfg(unix)]
pub mod raw;
pub mod rng;
#[cfg(unix)]
pub mod session;
pub mod system;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nudge_client::{RuntimeDir, ServerFile};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const PATIENCE: Duration = Duration::from_secs(10);
/// The time limit for an answer. A test build needs seconds for a large import, and more while other tests run.
const ANSWER: Duration = Duration::from_secs(40);
/// The pause between two polls.
const PAUSE: Duration = Duration::from_millis(2);

/// The factor by which a wait may exceed its time limit on a busy machine.
const MAX_STRETCH: u32 = 6;

/// Polls until `probe` returns a value; panics with `what` if it never does. The limit counts the pauses between two
/// polls, not the elapsed time: on a busy machine the process under test gets more time. If the probe itself is slow,
/// such as a command, the wait ends after [`MAX_STRETCH`] times `patience`.
#[track_caller]
pub fn wait_for<T>(what: &str, patience: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let (begun, mut slept) = (Instant::now(), Duration::ZERO);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        let passed = begun.elapsed();
        let is_over = (slept >= patience && passed >= patience) || passed >= patience * MAX_STRETCH;
        assert!(!is_over, "waited in vain for {what}");
        std::thread::sleep(PAUSE);
        slept += PAUSE;
    }
}

/// Makes a folder for runtime directories.
pub fn home() -> TempDir {
    TempDir::with_prefix("nudge-server-").unwrap()
}

/// Removes Nudge's own variables from a command's environment.
pub fn clean(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NUDGE_") {
            command.env_remove(name);
        }
    }
    command.env_remove("DUDE_PORT");
    // Hides the settings file of the person who runs the tests.
    command.env("XDG_CONFIG_HOME", std::env::temp_dir().join("nudge-tests-have-no-settings"));
    // Keeps the indexes of tests in a temporary folder.
    command.env("NUDGE_CACHE_DIR", std::env::temp_dir().join("nudge-tests-cache"));
    // Leaves the repository in which Cargo runs tests. Nudge would index its code and limit hints to it.
    let nowhere = std::env::temp_dir();
    command.env("PWD", &nowhere).current_dir(nowhere);
}

/// Returns a command of the binary `nudge-demo`, which has the demo source. Cargo builds this binary beside the tests.
pub fn with_demo(runtime: &Path, data: &Path, args: &[&str]) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_nudge")).with_file_name("examples").join("nudge-demo");
    assert!(binary.exists(), "{} is built by `cargo test` and `cargo build --examples`", binary.display());
    let mut command = Command::new(binary);
    clean(&mut command);
    command.args(args).env("NUDGE_RUNTIME_DIR", runtime).env("NUDGE_DATA_DIR", data).env_remove("CLAUDE_PROJECT_DIR");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the command `nudge serve` with a clean environment.
pub fn command(runtime: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nudge"));
    command.arg("serve");
    clean(&mut command);
    // Keeps the data beside the runtime directory, not in the home of the person who runs the tests.
    command.env("NUDGE_RUNTIME_DIR", runtime).env("NUDGE_DATA_DIR", runtime.with_file_name("data"));
    // Gives each session its own state folder. A session compares its clock with the times that earlier sessions left
    // in that folder.
    command.env("XDG_STATE_HOME", runtime.with_file_name("state"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command that ends by itself.
pub fn run_to_end(mut command: Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

pub struct Serve {
    pub child: Child,
    pub stdin: Option<ChildStdin>,
    pub lines: Receiver<String>,
    pub file: ServerFile,
    pub runtime: PathBuf,
}

impl Serve {
    /// Starts a server and waits until it has written its address.
    pub fn start(runtime: &Path) -> Self {
        Self::spawn(command(runtime), runtime)
    }

    pub fn spawn(mut command: Command, runtime: &Path) -> Self {
        Self::attach(command.spawn().unwrap(), runtime)
    }

    /// Wraps a server that was started with pipes on all three streams.
    pub fn attach(child: Child, runtime: &Path) -> Self {
        let dir = wait_for("the runtime directory", PATIENCE, || {
            runtime.exists().then(|| RuntimeDir::open(Some(runtime)).ok()).flatten()
        });
        let pid = child.id();
        let file = wait_for("server.pid", PATIENCE, || dir.read_server_file().filter(|file| file.pid == pid));
        Self::attach_to(child, runtime, file)
    }

    /// Wraps a server. HTTP calls go to the server that `file` names, which may be another process.
    pub fn attach_to(mut child: Child, runtime: &Path, file: ServerFile) -> Self {
        let (sender, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { stdin: child.stdin.take(), child, lines, file, runtime: runtime.to_owned() }
    }

    /// Starts a PROXY with this command. Waits until the PRIMARY's status counts it, because `server.pid` names only
    /// the PRIMARY.
    pub fn stand_by(mut command: Command, runtime: &Path) -> Self {
        let child = command.spawn().unwrap();
        let pid = child.id();
        let file = RuntimeDir::open(Some(runtime)).unwrap().read_server_file().unwrap();
        let mut serve = Self::attach_to(child, runtime, file);
        serve.initialize("2025-11-25");
        wait_for("the PROXY", PATIENCE, || {
            let status = serve.call("nudge.status", &json!({}));
            status["result"]["proxies"].as_array().unwrap().contains(&json!(pid)).then_some(())
        });
        serve
    }

    pub fn token(&self) -> &str {
        self.file.token.as_deref().unwrap()
    }

    /// Returns the head of a valid request, without the last empty line.
    pub fn head(&self) -> String {
        format!(
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n",
            self.file.port,
            self.token()
        )
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.file.port)).unwrap();
        stream.set_read_timeout(Some(ANSWER)).unwrap();
        stream
    }

    /// Sends bytes; reads until one whole response has arrived or the server closes the connection.
    pub fn raw(&self, request: impl AsRef<[u8]>) -> Response {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).unwrap();
        Response::read(&mut stream)
    }

    /// Sends a valid POST with this body.
    pub fn post(&self, body: &str) -> Response {
        self.raw(format!("{}Content-Length: {}\r\n\r\n{body}", self.head(), body.len()))
    }

    /// Makes a call over HTTP; returns the whole JSON-RPC answer.
    pub fn call(&self, method: &str, params: &Value) -> Value {
        let response = self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string());
        assert_eq!(response.status, 200);
        serde_json::from_str(&response.body).unwrap()
    }

    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).unwrap();
    }

    /// Returns the next line of stdout, which must be JSON.
    pub fn receive(&self) -> Value {
        let line = self.lines.recv_timeout(ANSWER).expect("an answer on stdout");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("stdout carries something else than JSON: {line}"))
    }

    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(&message.to_string());
        // Skips the notifications before the answer.
        let answer =
            wait_for("the answer", PATIENCE, || Some(self.receive()).filter(|said| said.get("method").is_none()));
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    /// Sends the greeting (`initialize`) of a client that uses the MCP protocol of 2025.
    pub fn initialize(&mut self, version: &str) -> Value {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
        let answer = self.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    pub fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.ask(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}))
    }

    /// Waits for the end of the process. Panics if a further line of its stdout is not JSON.
    pub fn end(&mut self, patience: Duration) -> ExitStatus {
        let status = wait_for("the end of the server", patience, || self.child.try_wait().unwrap());
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => drop(serde_json::from_str::<Value>(&line).unwrap()),
                Err(RecvTimeoutError::Disconnected) => return status,
                Err(RecvTimeoutError::Timeout) => panic!("stdout stays open"),
            }
        }
    }

    /// Closes stdin and waits until the server ends without an error within a second; returns its stderr.
    pub fn close(mut self) -> String {
        drop(self.stdin.take());
        let status = self.end(Duration::from_secs(1));
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(status.success(), "{status}: {stderr}");
        assert!(!self.runtime.join("server.pid").exists(), "server.pid is still there");
        stderr
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    pub fn read(stream: &mut TcpStream) -> Self {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(response) = Self::parse(&bytes) {
                return response;
            }
            match stream.read(&mut buffer) {
                Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                // Reads again. The system interrupts a read that has a timeout when the test process was suspended for
                // a moment.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                end => panic!("no whole response ({end:?}): {}", String::from_utf8_lossy(&bytes)),
            }
        }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let head = head.to_ascii_lowercase();
        let status: u16 = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if status == 100 {
            return None;
        }
        (body.len() >= length.unwrap_or(0)).then(|| Self { status, head: head.clone(), body: body.to_owned() })
    }

    /// Returns the JSON-RPC error in the response; every refusal has one.
    pub fn error(&self) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body));
        assert_eq!(body["jsonrpc"], "2.0");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && message.lines().count() == 1);
        assert!(body["error"]["data"]["reason"].is_string());
        body["error"].clone()
    }
}

/// An answer over HTTP that is still arriving: JSON, or a stream of events.
pub struct Incoming {
    pub status: u16,
    pub head: String,
    body: BufReader<Box<dyn Read>>,
}

impl Incoming {
    /// Sends one request on a connection of its own and reads the head of the answer.
    pub fn request(serve: &Serve, line: &str, headers: &[String], body: &str) -> Self {
        let mut stream = serve.connect();
        stream.set_read_timeout(Some(ANSWER)).unwrap();
        let headers = headers.join("\r\n");
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n{length}\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "no head: {head}");
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body: Box<dyn Read> = if head.contains("transfer-encoding: chunked") {
            Box::new(Chunked { reader, left: 0, first: true })
        } else {
            Box::new(reader)
        };
        Self { status, head, body: BufReader::new(body) }
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Returns the next message; `None` at the end of the answer.
    pub fn message(&mut self) -> Option<Value> {
        if self.header("content-type") == Some("application/json") {
            let mut text = String::new();
            self.body.read_to_string(&mut text).unwrap();
            return (!text.is_empty()).then(|| serde_json::from_str(&text).unwrap());
        }
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}

/// Decodes a chunked body.
struct Chunked {
    reader: BufReader<TcpStream>,
    left: usize,
    first: bool,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            if !std::mem::take(&mut self.first) {
                self.reader.read_line(&mut line)?;
                line.clear();
            }
            if self.reader.read_line(&mut line)? == 0 {
                return Ok(0);
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

pub mod mcp;
