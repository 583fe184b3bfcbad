//! Runs a `nudge serve` in a private runtime directory.

use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tempfile::TempDir;

use super::no_answer;
use crate::format::Config;

const START_DEADLINE: Duration = Duration::from_secs(15);
const STOP_DEADLINE: Duration = Duration::from_secs(2);
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// The fields of `server.pid` that the tests use.
#[derive(Deserialize)]
struct PidFile {
    pid: u32,
    port: u16,
    token: String,
}

/// A running server; dropping it ends the server.
pub(super) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    agent: ureq::Agent,
    pid_file: PidFile,
    home: TempDir,
}

/// Returns the path of the binary: `NUDGE_BIN`, or `target/debug/nudge` of the workspace.
///
/// # Errors
/// If there is no such file, the error is a sentence with the path.
pub fn binary() -> Result<PathBuf, String> {
    let path = env::var_os("NUDGE_BIN")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/debug/nudge")), PathBuf::from);
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "no binary at {}: build it with `cargo build -p nudge-cli --features test-clock`, \
         or name one built with that feature in NUDGE_BIN",
        path.display()
    ))
}

impl Server {
    /// Starts `nudge serve`, keeps its stdin open, and waits until it answers.
    pub(super) fn start(config: &Config, stdout: Stdio) -> Result<Self, String> {
        let home = TempDir::with_prefix("nudge-vectors-").map_err(|e| e.to_string())?;
        let mut command = Command::new(binary()?);
        command.arg("serve").current_dir(home.path());
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("NUDGE_") || text.starts_with("CLAUDE_") {
                command.env_remove(&name);
            }
        }
        command
            // The server makes the runtime directory, because no other user may enter it.
            .env("NUDGE_RUNTIME_DIR", home.path().join("run"))
            .env("HOME", home.path())
            // Hints get no scope from the folder of the tests: a case gives every field of a hint itself.
            .env("NUDGE_DEFAULT_REACH", "everywhere")
            .envs(config.env())
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| format!("nudge serve: {e}"))?;
        let stdin = child.stdin.take();
        let file = home.path().join("run").join("server.pid");
        let deadline = Instant::now() + START_DEADLINE;
        let pid_file = loop {
            let read = fs::read(&file).ok();
            let parsed = read.and_then(|bytes| serde_json::from_slice::<PidFile>(&bytes).ok());
            if let Some(pid_file) = parsed.filter(|p| p.pid == child.id()) {
                break pid_file;
            }
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("nudge serve ended at once: {status}"));
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                return Err("nudge serve wrote no server.pid in time".to_owned());
            }
            thread::sleep(Duration::from_millis(2));
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(CALL_TIMEOUT))
            .build()
            .new_agent();
        Ok(Self { child, stdin, agent, pid_file, home })
    }

    /// Returns the runtime directory.
    pub(super) fn runtime_dir(&self) -> PathBuf {
        self.home.path().join("run")
    }

    /// Takes the server's stdout. Only the first call returns it.
    pub(super) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the server's stdin.
    pub(super) fn stdin(&mut self) -> Option<&mut ChildStdin> {
        self.stdin.as_mut()
    }

    /// Makes a command of the same binary with the same runtime directory. The command infers no context, because its
    /// environment is empty and its folder is outside any repository.
    pub(super) fn command(&self) -> Result<Command, String> {
        let mut command = Command::new(binary()?);
        let home = self.home.path();
        command.env_clear().env("NUDGE_RUNTIME_DIR", home.join("run")).env("HOME", home).current_dir(home);
        command.env("NUDGE_DEFAULT_REACH", "everywhere");
        Ok(command)
    }

    /// Makes a JSON-RPC call over HTTP.
    pub(super) fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
        let answer = self.post(method, params).map_err(|e| no_answer(&e))?;
        let answer: RpcAnswer = serde_json::from_str(&answer).map_err(|e| no_answer(&format!("{e}: {answer}")))?;
        answer.into_result()
    }

    fn post(&self, method: &str, params: &RawValue) -> Result<String, String> {
        let request = Request { jsonrpc: "2.0", id: 1, method, params };
        let body = serde_json::to_vec(&request).map_err(|e| e.to_string())?;
        let mut response = self
            .agent
            .post(format!("http://127.0.0.1:{}/", self.pid_file.port))
            .header("Authorization", format!("Bearer {}", self.pid_file.token))
            .header("Content-Type", "application/json")
            .send(&body[..])
            .map_err(|e| e.to_string())?;
        let reader = response.body_mut().with_config().limit(MAX_ANSWER_BYTES);
        reader.read_to_string().map_err(|e| e.to_string())
    }

    /// Moves the clock by a method that exists only with the feature `test-clock`.
    pub(super) fn advance(&self, ms: u64) -> Result<(), String> {
        let params = serde_json::value::to_raw_value(&serde_json::json!({ "ms": ms })).map_err(|e| e.to_string())?;
        match self.call("nudge.test_advance", &params) {
            Ok(_) => Ok(()),
            Err(e) => Err(format!("the clock does not move (is the binary built with test-clock?): {e}")),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let deadline = Instant::now() + STOP_DEADLINE;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A JSON-RPC request.
#[derive(Serialize)]
pub(super) struct Request<'a, P: ?Sized> {
    pub(super) jsonrpc: &'static str,
    pub(super) id: u64,
    pub(super) method: &'a str,
    pub(super) params: &'a P,
}

/// A JSON-RPC answer.
#[derive(Deserialize)]
pub(super) struct RpcAnswer {
    pub(super) id: Option<u64>,
    result: Option<Box<RawValue>>,
    error: Option<serde_json::Value>,
}

impl RpcAnswer {
    /// Returns the result or the error object.
    pub(super) fn into_result(self) -> Result<Box<RawValue>, serde_json::Value> {
        match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => Err(error),
            _ => Err(no_answer("neither result nor error, or both")),
        }
    }
}
