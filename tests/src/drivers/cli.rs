//! Tests the command line. Each call is a process: the command of the method, if its flags can express the call, or
//! else `nudge call`.

use std::io::Write;
use std::process::{Output, Stdio};
use std::thread;

use serde_json::value::RawValue;

use super::child::Server;
use super::flags::{Words, words};
use super::{Driver, no_answer};
use crate::format::Config;

/// The command line, with its own server.
#[derive(Default)]
pub struct Cli {
    server: Option<Server>,
}

impl Driver for Cli {
    fn name(&self) -> &'static str {
        "cli"
    }

    fn start(&mut self, config: &Config) -> Result<(), String> {
        self.server = None;
        self.server = Some(Server::start(config, Stdio::null())?);
        Ok(())
    }

    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, serde_json::Value> {
        let server = self.server.as_ref().ok_or_else(|| no_answer("not started"))?;
        let verb = words(method, params.get());
        let as_call = || Words { args: vec!["call".into(), method.into(), "-".into()], stdin: params.get().into() };
        let out = run(server, verb.unwrap_or_else(as_call)).map_err(|e| no_answer(&e))?;
        answer(&out).map_err(|e| no_answer(&e))?
    }

    fn advance(&mut self, ms: u64) -> Result<(), String> {
        self.server.as_ref().ok_or("not started")?.advance(ms)
    }
}

fn run(server: &Server, words: Words) -> Result<Output, String> {
    let mut command = server.command()?;
    command.arg("--json").args(&words.args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let stdin = child.stdin.take();
    // Ignores a failed write: a command that reads no input closes the pipe.
    let fed = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(words.stdin.as_bytes())));
    let out = child.wait_with_output().map_err(|e| e.to_string())?;
    drop(fed.join());
    Ok(out)
}

/// Returns the result or the error object of a command. Fails if stdout, stderr and the exit code contradict each
/// other.
fn answer(out: &Output) -> Result<Result<Box<RawValue>, serde_json::Value>, String> {
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let code = out.status.code().ok_or("ended by a signal")?;
    if code == 0 {
        if !stderr.is_empty() {
            return Err(format!("success, and yet on stderr: {stderr}"));
        }
        let result = stdout.strip_suffix('\n').ok_or("no line on stdout")?;
        return RawValue::from_string(result.to_owned()).map(Ok).map_err(|e| format!("{e}: {stdout}"));
    }
    if !stdout.is_empty() {
        return Err(format!("failure, and yet on stdout: {stdout}"));
    }
    let error: serde_json::Value = serde_json::from_str(&stderr).map_err(|e| format!("{e}: {stderr}"))?;
    let expected = match error["code"].as_i64() {
        Some(40401) => 1,
        Some(40001 | 40003 | -32601 | -32602) => 2,
        Some(50301) => 3,
        _ => 4,
    };
    if code != expected {
        return Err(format!("exit code {code} instead of {expected}: {stderr}"));
    }
    Ok(Err(error))
}
