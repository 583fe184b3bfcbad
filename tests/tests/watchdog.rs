//! Tests row 25 of the security checklist (`cli/tests/checklist/main.rs`): an event loop that hangs. `NUDGE_BIN` must
//! name the binary for vectors, whose event loop can be made to hang.
#![cfg(unix)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nudge_client::{RuntimeDir, ServerFile};
use nudge_tests::drivers::binary;

struct Server(Child);

impl Server {
    fn start(runtime: &Path) -> Self {
        let mut command = Command::new(binary().unwrap());
        command.args(["serve", "-p", "0"]).env("NUDGE_RUNTIME_DIR", runtime);
        Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until `server.pid` fulfils `is_it`; returns its content.
fn primary(runtime: &Path, is_it: impl Fn(&ServerFile) -> bool) -> ServerFile {
    wait_for("server.pid", || RuntimeDir::open(Some(runtime)).ok()?.read_server_file().filter(&is_it))
}

/// Makes the event loop of a PRIMARY hang for `ms` milliseconds. Does not wait for the answer.
fn stall(server: &ServerFile, ms: u64) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let (port, token) = (server.port, server.token.as_deref().unwrap());
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"nudge.test_stall","params":{{"ms":{ms}}}}}"#);
    let head = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n");
    let length = body.len();
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    stream
}

fn nudge(runtime: &Path, args: &[&str]) -> String {
    let output = Command::new(binary().unwrap()).args(args).env("NUDGE_RUNTIME_DIR", runtime).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Starts another server, and waits until the PRIMARY counts it as a PROXY.
fn proxy(runtime: &Path) -> Server {
    let server = Server::start(runtime);
    wait_for("the PROXY", || nudge(runtime, &["status", "--json"]).contains(&server.0.id().to_string()).then_some(()));
    server
}

fn log(runtime: &Path) -> String {
    std::fs::read_to_string(runtime.join("server.log")).unwrap()
}

#[test]
fn row_25_a_primary_that_stands_still_gives_its_session_to_a_proxy() {
    let home = tempfile::tempdir().unwrap();
    let runtime = home.path().join("run");
    let mut first = Server::start(&runtime);
    let file = primary(&runtime, |file| file.pid == first.0.id());
    let second = proxy(&runtime);
    nudge(&runtime, &["set", "a", "b", "kept"]);
    // The event loop hangs for far longer than this test waits.
    let _stalled = stall(&file, 600_000);
    primary(&runtime, |file| file.pid == second.0.id());
    assert!(nudge(&runtime, &["get", "a", "b"]).contains("kept"));
    // The first server ends by itself. Its exit code says that it has handed over.
    assert_eq!(wait_for("the end of the first", || first.0.try_wait().unwrap()).code(), Some(75));
    assert!(log(&runtime).contains("the event loop stands still; a PROXY takes over"), "{}", log(&runtime));
}

#[test]
fn row_25_one_that_is_alone_says_so_and_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let runtime = home.path().join("run");
    let server = Server::start(&runtime);
    let file = primary(&runtime, |file| file.pid == server.0.id());
    nudge(&runtime, &["set", "a", "b", "kept"]);
    let mut stalled = stall(&file, 4_000);
    wait_for("the log", || log(&runtime).contains("nobody can take over").then_some(()));
    stalled.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(stalled.read(&mut [0; 16]).unwrap() > 0, "it is answered in the end");
    wait_for("the log", || log(&runtime).contains("the event loop goes on").then_some(()));
    assert!(nudge(&runtime, &["get", "a", "b"]).contains("kept"));
}

#[test]
fn row_25_a_process_that_was_stopped_is_not_to_blame() {
    let home = tempfile::tempdir().unwrap();
    let runtime = home.path().join("run");
    let first = Server::start(&runtime);
    let file = primary(&runtime, |file| file.pid == first.0.id());
    let _second = proxy(&runtime);
    let signal = |name: &str| {
        let pid = first.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    };
    signal("STOP");
    // Suspends the process for longer than its event loop may hang.
    std::thread::sleep(Duration::from_secs(4));
    signal("CONT");
    // Waits for two more checks of the watchdog.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(primary(&runtime, |_| true), file);
    assert!(!log(&runtime).contains("stands still"), "{}", log(&runtime));
}
