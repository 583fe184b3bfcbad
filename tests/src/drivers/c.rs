//! Tests the C library with a client in C (`bindings/c/tests/c/vectors.c`).
//!
//! Each call runs on two stores with the same content. One store gets it through `nudge_call`. The other gets it
//! through the typed function, if that function can express exactly this call. Both answers must be equal.

mod typed;

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::child::Server;
use super::{Driver, no_answer};
use crate::format::Config;
use typed::Message;

/// The C program, as a driver.
#[derive(Default)]
pub struct C {
    client: Option<Client>,
    /// The session to which both stores are connected; `None` if the case needs no session.
    server: Option<Server>,
}

impl Driver for C {
    fn name(&self) -> &'static str {
        "c"
    }

    fn start(&mut self, config: &Config) -> Result<(), String> {
        if self.client.is_none() {
            self.client = Some(Client::start()?);
        }
        self.server = None;
        let mut message = Message::new("start");
        for (name, value) in config.env() {
            let name = name.trim_start_matches("NUDGE_").to_ascii_lowercase();
            // The value is a `nudge_switch`: 1 means on, 2 means off.
            let value = if name == "secret_guard" && value == "0" { "2".into() } else { value };
            message.push(&name, value);
        }
        match self.ask(&message)? {
            (0, _) => Ok(()),
            answer => Err(format!("no store: {answer:?}")),
        }
    }

    fn start_session(&mut self, config: &Config) -> Result<(), String> {
        if self.client.is_none() {
            self.client = Some(Client::start()?);
        }
        let server = Server::start(config, Stdio::null())?;
        let mut message = Message::new("connect");
        message.push("runtime_dir", server.runtime_dir().to_string_lossy());
        self.server = Some(server);
        match self.ask(&message)? {
            (0, _) => Ok(()),
            answer => Err(format!("no session: {answer:?}")),
        }
    }

    fn call(&mut self, method: &str, params: &RawValue) -> Result<Box<RawValue>, Value> {
        let untyped = |store| {
            let mut message = Message::new("call");
            message.push("store", store);
            message.push("method", method);
            message.push("params", params.get());
            message
        };
        let called = self.ask(&untyped("0")).and_then(result).map_err(|e| no_answer(&e))?;
        if self.server.is_some() {
            // Both stores are the same session here, so a second call would change it again.
            return called;
        }
        let typed = typed::message(method, params.get());
        let other = self.ask(typed.as_ref().unwrap_or(&untyped("1"))).map_err(|e| no_answer(&e))?;
        if typed.is_some() {
            let fields = other.1.clone();
            let other = result(other).map_err(|e| no_answer(&e))?;
            compare(&called, &other).and_then(|()| check_match(&fields)).map_err(|e| no_answer(&e))?;
        }
        called
    }

    fn advance(&mut self, ms: u64) -> Result<(), String> {
        let params = RawValue::from_string(json!({ "ms": ms }).to_string()).map_err(|e| e.to_string())?;
        self.call("nudge.test_advance", &params)
            .map(drop)
            .map_err(|e| format!("the clock does not move (is the library built with test-clock?): {e}"))
    }
}

impl C {
    fn ask(&mut self, message: &Message) -> Result<Fields, String> {
        let client = self.client.as_mut().ok_or("not started")?;
        client.ask(message).map_err(|e| format!("the C client: {e}"))
    }
}

/// The status and the fields of an answer.
type Fields = (i64, Vec<(String, String)>);
type Called = Result<Box<RawValue>, Value>;

/// Returns the result or the error object.
fn result((status, fields): Fields) -> Result<Called, String> {
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.map(|(_, text)| text.clone()).ok_or_else(|| format!("no {name} in {fields:?}"))
    };
    if status == 0 {
        return RawValue::from_string(field("json")?).map(Ok).map_err(|e| e.to_string());
    }
    let data: Value = serde_json::from_str(&field("data")?).map_err(|e| e.to_string())?;
    if data["reason"] != field("reason")? {
        return Err(format!("two reasons: {fields:?}"));
    }
    Ok(Err(json!({"code": status, "message": field("message")?, "data": data})))
}

fn compare(called: &Called, typed: &Called) -> Result<(), String> {
    let same = match (called, typed) {
        (Ok(a), Ok(b)) => a.get() == b.get(),
        (Err(a), Err(b)) => a == b,
        _ => false,
    };
    if same { Ok(()) } else { Err(format!("nudge_call and the typed function differ: {called:?} {typed:?}")) }
}

/// Checks that the accessors of a match return the values of its JSON.
fn check_match(fields: &[(String, String)]) -> Result<(), String> {
    let all = |name: &str| {
        fields.iter().filter(|(field, _)| field == name).map(|(_, text)| text.as_str()).collect::<Vec<_>>()
    };
    let [score] = all("score")[..] else { return Ok(()) };
    let whole: Value = serde_json::from_str(all("json")[0]).map_err(|e| e.to_string())?;
    let (hint, explain) = (&whole["hint"], &whole["match_explain"]);
    let close = |text: &str| {
        let number: f64 = text.parse().unwrap_or(f64::NAN);
        (number - explain["score"].as_f64().unwrap_or(f64::NAN)).abs() < 2e-4
    };
    let value = &hint["value"];
    let data = value["data"].to_string();
    let text = value.as_str().or(value["cmd"].as_str()).or(value["abs"].as_str()).or(value["body"].as_str());
    // The client loses the order of the JSON's keys, so only the lengths are compared.
    let same_value = text.map_or_else(|| all("value")[0].len() == data.len(), |text| text == all("value")[0]);
    let agree = close(score)
        && close(all("sum")[0])
        && all("variant") == [hint["variant"].as_str().unwrap_or_default()]
        && all("version") == [hint["version"].to_string()]
        && json!(all("reason")) == explain["reasons"]
        && same_value;
    if agree { Ok(()) } else { Err(format!("the accessors of a match say something else: {fields:?}")) }
}

/// The running program. Dropping it ends the program.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    fn start() -> Result<Self, String> {
        let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/c-tests/vectors");
        let path = env::var_os("NUDGE_C_CLIENT").map_or_else(|| PathBuf::from(built), PathBuf::from);
        let mut child = Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|e| {
            format!("{}: {e}; build it with bindings/c/check, or name it in NUDGE_C_CLIENT", path.display())
        })?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        Ok(Self { stdin: child.stdin.take(), child, stdout: BufReader::new(stdout) })
    }

    fn ask(&mut self, message: &Message) -> Result<Fields, String> {
        let stdin = self.stdin.as_mut().ok_or("closed")?;
        stdin.write_all(&message.bytes()).map_err(|e| e.to_string())?;
        let (status, count) = self.line()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let (name, len) = self.line()?;
            let mut bytes = vec![0; len + 1];
            self.stdout.read_exact(&mut bytes).map_err(|e| e.to_string())?;
            bytes.pop();
            fields.push((name, String::from_utf8(bytes).map_err(|e| e.to_string())?));
        }
        Ok((status.parse().map_err(|_| format!("no status: {status}"))?, fields))
    }

    /// Reads a line: a word and a number.
    fn line(&mut self) -> Result<(String, usize), String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(|e| e.to_string())?;
        let (word, number) = line.trim_end().split_once(' ').ok_or("it has ended; its stderr says why")?;
        Ok((word.to_owned(), number.parse().map_err(|_| format!("no number: {line}"))?))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The program ends when its stdin ends.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
