//! Sends bytes to a running server, over TCP or its local channel. The first byte selects which. `NUDGE_BIN` names the
//! binary. After each input the server must answer a plain request. The fuzzer measures no coverage of the server.
#![no_main]

use std::io::{Read as _, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use nudge_client::RuntimeDir;
use tempfile::TempDir;

struct Server {
    port: u16,
    token: String,
    channel: PathBuf,
    log: PathBuf,
    _child: Child,
    _folder: TempDir,
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder for temporary files");
    let runtime = folder.path().join("run");
    let binary = std::env::var_os("NUDGE_BIN").expect("NUDGE_BIN names a nudge");
    let mut child = Command::new(binary)
        .args(["serve", "--port", "0"])
        .env("HOME", folder.path())
        .env("NUDGE_RUNTIME_DIR", &runtime)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is a program");
    // The answer to an MCP greeting shows that the server is ready.
    let hello = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"#,
        r#""clientInfo":{"name":"f","version":"1"}}}"#,
        "\n"
    );
    child.stdin.as_mut().expect("a pipe").write_all(hello.as_bytes()).expect("it reads");
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 16]).expect("it answers");
    let file = RuntimeDir::find(Some(&runtime)).expect("it can be read").expect("it is there");
    let file = file.read_server_file().expect("a server runs");
    let (port, token) = (file.port, file.token.clone().unwrap_or_default());
    Server {
        port,
        token,
        channel: runtime.join("server.sock"),
        log: runtime.join("server.log"),
        _child: child,
        _folder: folder,
    }
});

fn send(mut stream: impl Write + std::io::Read, end: impl FnOnce(), bytes: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let _ = stream.write_all(bytes);
    end();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let Server { port, token, channel, log, .. } = &*SERVER;
    let patience = Some(Duration::from_secs(10));
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", *port)).expect("it listens");
        stream.set_read_timeout(patience).expect("it can be set");
        stream
    };
    let text = String::from_utf8_lossy(bytes).replace("TOKEN", token);
    if first % 2 == 0 {
        let stream = connect();
        send(&stream, || drop(stream.shutdown(Shutdown::Write)), text.as_bytes());
    } else {
        let stream = UnixStream::connect(channel).expect("it listens");
        stream.set_read_timeout(patience).expect("it can be set");
        send(&stream, || drop(stream.shutdown(Shutdown::Write)), text.as_bytes());
    }
    let plain = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    // Keeps its sending half open: the server treats a client that closes this half as gone.
    let answer = send(&connect(), || (), plain.as_bytes());
    assert!(answer.starts_with(b"HTTP/1.1 "), "{:?}", String::from_utf8_lossy(&answer));
    let told = std::fs::read_to_string(log).unwrap_or_default();
    assert!(!told.contains("panicked"), "{told}");
});
