//! Calls a session over plain HTTP on a connection that stays open. After the death of a PRIMARY, connects to the next
//! one.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nudge_client::{RuntimeDir, ServerFile};
use serde_json::{Value, json};

use super::Response;
use super::agent::{Failure, LONG};

const AGAIN: Duration = Duration::from_millis(5);

pub struct Raw {
    dir: RuntimeDir,
    kept: Option<(TcpStream, ServerFile)>,
    /// The time limit of one try. A call may need several tries.
    pub patience: Duration,
    /// The time limit of a call with all its tries.
    pub long: Duration,
}

impl Raw {
    pub fn new(runtime: &Path) -> Self {
        let dir = RuntimeDir::open(Some(runtime)).unwrap();
        Self { dir, kept: None, patience: Duration::from_secs(2), long: LONG }
    }

    /// Sends a call again until an answer comes, each time with the same key. After `E_UNAVAILABLE` it also tries
    /// again.
    pub fn call(&mut self, method: &str, params: &Value, key: Option<&str>) -> Result<Value, Failure> {
        let deadline = Instant::now() + self.long;
        loop {
            let last = match self.attempt(method, params, key) {
                Ok(answer) if answer["result"].is_object() => return Ok(answer["result"].clone()),
                Ok(answer) => Failure::Refused(answer["error"].clone()),
                Err(_) => Failure::Silent,
            };
            let final_answer = matches!(&last, Failure::Refused(_)) && last.reason() != "E_UNAVAILABLE";
            if final_answer || Instant::now() > deadline {
                return Err(last);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Makes a call that must succeed; returns its result.
    #[track_caller]
    pub fn result(&mut self, method: &str, params: &Value) -> Value {
        self.call(method, params, None).unwrap_or_else(|why| panic!("{}: {method} {params}: {why:?}", why.reason()))
    }

    /// Sends the call once; returns the whole answer.
    pub fn attempt(&mut self, method: &str, params: &Value, key: Option<&str>) -> Result<Value, String> {
        let (mut stream, server) = match self.kept.take() {
            Some(kept) => kept,
            None => self.connect()?,
        };
        let answer = ask(&mut stream, &server, method, params, key, self.patience)?;
        self.kept = Some((stream, server));
        Ok(answer)
    }

    fn connect(&self) -> Result<(TcpStream, ServerFile), String> {
        let server = self.dir.read_server_file().ok_or("no server.pid")?;
        let stream = TcpStream::connect(("127.0.0.1", server.port)).map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        // Checks the lock before the token is sent: the PRIMARY may have died, and a foreign process may have its port.
        if self.dir.is_held() { Ok((stream, server)) } else { Err("nobody is PRIMARY".into()) }
    }
}

/// Makes one call over a connection; returns the whole answer, a result or an error.
pub fn ask(
    stream: &mut TcpStream,
    server: &ServerFile,
    method: &str,
    params: &Value,
    key: Option<&str>,
    patience: Duration,
) -> Result<Value, String> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
    let (port, token) = (server.port, server.token.as_deref().unwrap_or_default());
    let request = format!(
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         {key}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + patience;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let response = loop {
        if let Some(response) = Response::parse(&bytes) {
            break response;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("no answer in time".into());
        }
        stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        match stream.read(&mut buffer) {
            Ok(0) => return Err("closed".into()),
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    };
    if response.status != 200 {
        return Err(format!("{}: {}", response.status, response.body));
    }
    serde_json::from_str(&response.body).map_err(|error| error.to_string())
}
