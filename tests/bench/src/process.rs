//! Runs the processes that rows measure or compare with: finds the programs, and starts servers.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// The environment variable with the folder of the programs that `tests/bench/run` has built.
const PROGRAMS: &str = "NUDGE_BENCH_PROGRAMS";
/// The pause between two checks whether a server has written its address.
const POLL: Duration = Duration::from_millis(1);
/// The component and the key of a hint that every [`Server`] stores with [`VALUE`].
pub const KEY: (&str, &str) = ("service-12", "build");
/// A value of typical length.
pub const VALUE: &str = "docker compose build --service service-12 --profile dev-00af";

/// Returns the path of a program that the row needs. Returns `None` if the program could not be built, and in a smoke
/// run.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os(PROGRAMS)?).join(name);
    path.is_file().then_some(path)
}

/// Returns a command that runs the program on one processor, if the system can do this.
pub fn on_processor(number: usize, program: &Path) -> Command {
    let pin = ["-c".to_owned(), number.to_string()];
    let can = Command::new("taskset").args(&pin).arg("true").status().is_ok_and(|status| status.success());
    if !can {
        return Command::new(program);
    }
    let mut command = Command::new("taskset");
    command.args(pin).arg(program);
    command
}

/// A process that reads requests line by line and writes each answer as a line.
pub struct Lines {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    answer: String,
}

impl Lines {
    /// Starts the process.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("no stdout"))?;
        Ok(Self { stdin: child.stdin.take(), child, stdout: BufReader::new(stdout), answer: String::new() })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends `line`, which ends with a line break.
    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open until dropped");
        stdin.write_all(line.as_bytes()).expect("it reads");
    }

    /// Waits for the next line of the process and returns it.
    pub fn receive(&mut self) -> &str {
        self.answer.clear();
        let read = self.stdout.read_line(&mut self.answer).expect("it writes");
        assert!(read > 0, "the process has ended");
        &self.answer
    }

    /// Sends the greeting of an MCP client.
    pub fn initialize(&mut self) {
        self.send(INITIALIZE);
        self.receive();
        self.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // The process ends when its stdin ends.
        let _ = self.child.wait();
    }
}

/// The first line from an MCP client.
pub const INITIALIZE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"bench","version":"0"}}}"#,
    "\n"
);

/// Returns the line that calls a tool.
pub fn tool_call(name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
}

/// A running `nudge serve` with its own folder. Its store has the hint [`KEY`].
pub struct Server {
    /// The MCP connection, which has sent its greeting.
    pub mcp: Lines,
    /// The HTTP port.
    pub port: u16,
    token: String,
    // The last field, so that the server ends before its folder is removed.
    dir: TempDir,
}

impl Server {
    /// Starts a server. `command` runs the `nudge` binary and has no arguments yet.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("nudge-bench-").tempdir()?;
        command.args(["serve", "--port", "0"]).env("NUDGE_RUNTIME_DIR", runtime(&dir));
        // Hints apply everywhere, in whatever folder the benchmark runs.
        command.env("NUDGE_DEFAULT_REACH", "everywhere");
        let mut mcp = Lines::start(command)?;
        mcp.initialize();
        let file: Value = loop {
            let text = std::fs::read(runtime(&dir).join("server.pid"));
            if let Some(file) = text.ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                break file;
            }
            std::thread::sleep(POLL);
        };
        let port = file["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| io::Error::other("no port in server.pid"))?;
        let token = file["token"].as_str().unwrap_or_default().to_owned();
        let mut server = Self { mcp, port, token, dir };
        let (component, key) = KEY;
        server.mcp.send(&tool_call("nudge_set_hint", &json!({"component": component, "key": key, "value": VALUE})));
        let stored = server.mcp.receive();
        assert!(stored.contains("structuredContent"), "{stored}");
        Ok(server)
    }

    /// Returns the runtime directory, by which commands find the server.
    pub fn runtime(&self) -> PathBuf {
        runtime(&self.dir)
    }

    /// Returns the bytes of an HTTP request that makes a call.
    pub fn request(&self, method: &str, params: &Value) -> Vec<u8> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        request(self.port, &self.token, &body)
    }
}

fn runtime(dir: &TempDir) -> PathBuf {
    dir.path().join("run")
}

/// Returns the bytes of a `POST /` with this body.
pub fn request(port: u16, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
