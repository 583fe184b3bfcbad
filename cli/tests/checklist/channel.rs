//! Tests rows 23 and 24 of the security checklist: which callers may connect, and how many. `main.rs` lists all rows.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kit::system::{Relay, as_stranger, descriptors, nudge, sentence, stage, status_kib};
use kit::{PATIENCE, Response, Serve, command, home, wait_for};
use nudge_client::{RuntimeDir, ServerFile};
use serde_json::json;

/// Runs `nudge serve` in a process that may open this many file descriptors.
fn with_files(runtime: &Path, files: usize) -> Serve {
    let serve = command(runtime);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {files} && exec \"$0\" serve -p 0"), env!("CARGO_BIN_EXE_nudge")]);
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let piped = std::process::Stdio::piped;
    limited.stdin(piped()).stdout(piped()).stderr(piped());
    Serve::spawn(limited, runtime)
}

/// Asserts that this user's callers still get answers: commands, a new PROXY, and a program with the token.
fn assert_served(serve: &Serve, runtime: &Path) {
    let begun = Instant::now();
    for args in [&["set", "a", "b", "c"][..], &["get", "a", "b"], &["status"]] {
        let output = nudge(runtime, args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    assert_eq!(serve.call("nudge.status", &json!({}))["result"]["role"], "PRIMARY");
    let mut proxy = Serve::attach_to(command(runtime).spawn().unwrap(), runtime, serve.file.clone());
    proxy.initialize("2025-11-25");
    let told = proxy.tool("nudge_get_hint", &json!({"component": "a", "key": "b"}));
    assert_ne!(told["result"]["isError"], true, "{told}");
    // The limit is far below the 15 seconds after which the server closes a silent connection.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    drop(proxy.stdin.take());
    assert!(proxy.end(Duration::from_secs(2)).success());
}

#[test]
fn row_23_silent_strangers_lock_no_client_out() {
    for (files, strangers) in [(256, 300), (4096, 600)] {
        let home = home();
        let runtime = home.path().join("run");
        let serve = with_files(&runtime, files);
        // Half of the strangers send nothing, and the other half never finish a request. When the server closes their
        // connections, they connect again.
        let port = serve.file.port;
        let mut idle = Vec::new();
        for number in 0..strangers {
            let mut stream = serve.connect();
            if number % 2 == 0 {
                let _ = stream.write_all(format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n").as_bytes());
            }
            idle.push(stream);
        }
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let again = std::thread::spawn(move || {
            let mut index = 0;
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                    idle[index % strangers] = stream;
                }
                index += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            idle
        });
        assert_served(&serve, &runtime);
        drop(stop);
        drop(again.join().unwrap());
        serve.close();
    }
}

#[test]
fn row_23_a_silent_client_is_sent_away_and_a_known_one_stays() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let ask = |stream: &mut TcpStream| {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.status","params":{}}"#;
        write!(stream, "{}Content-Length: {}\r\n\r\n{body}", serve.head(), body.len()).unwrap();
        Response::read(stream).status
    };
    let mut friend = serve.connect();
    assert_eq!(ask(&mut friend), 200);
    let before = descriptors(serve.child.id());
    let (mut silent, mut slow) = (serve.connect(), serve.connect());
    slow.write_all(b"POST / HTTP/1.1\r\n").unwrap();
    let begun = Instant::now();
    for stream in [&mut silent, &mut slow] {
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        assert_eq!(said, "");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    wait_for("the descriptors to be as before", PATIENCE, || {
        before.is_none_or(|before| descriptors(serve.child.id()) == Some(before)).then_some(())
    });
    // Hundreds of later connections do not displace the connection that has sent a token.
    let crowd: Vec<_> = (0..600).map(|_| serve.connect()).collect();
    assert_eq!(ask(&mut friend), 200);
    drop(crowd);
}

#[test]
fn row_23_a_name_for_this_machine_leads_to_no_other() {
    let home = home();
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        eprintln!("skipped: this machine has no ::1");
        return;
    }
    // A stranger listens on the other address of `localhost`, `::1`.
    let stranger = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
    let port = stranger.local_addr().unwrap().port();
    let runtime = home.path().join("run");
    let mut there = command(&runtime);
    there.args(["-p", &port.to_string()]);
    let serve = Serve::spawn(there, &runtime);
    assert_ne!(serve.file.port, port);
    // The server listens on both addresses of its own port.
    for name in ["127.0.0.1", "::1"] {
        let mut stream = TcpStream::connect((name, serve.file.port)).unwrap();
        let request = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", serve.file.port);
        stream.write_all(request.as_bytes()).unwrap();
        assert_eq!(Response::read(&mut stream).status, 200, "{name}");
    }
    assert!(TcpListener::bind((Ipv6Addr::LOCALHOST, serve.file.port)).is_err());
    serve.close();
}

#[test]
fn row_23_refused_requests_do_not_roll_the_log_away() {
    let home = home();
    let runtime = home.path().join("run");
    let serve = Serve::start(&runtime);
    for _ in 0..500 {
        let request = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", serve.file.port);
        assert_eq!(serve.raw(request).status, 401);
    }
    let log = fs::read_to_string(runtime.join("server.log")).unwrap();
    let lines = log.lines().filter(|line| line.contains("refused")).count();
    assert!((1..=3).contains(&lines), "{lines} lines: {log}");
}

#[test]
fn row_24_the_token_goes_nowhere_on_the_local_channel() {
    let home = home();
    let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
    let lock = dir.try_lock().unwrap().unwrap();
    let token: String = "swordfish".repeat(3);
    let file = ServerFile { pid: 1, port: 1, started: String::new(), token: Some(token.clone()) };
    let listener = UnixListener::bind(dir.path().join("server.sock")).unwrap();
    dir.write_server_file(&lock, &file).unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = vec![0; 4096];
        let read = stream.read(&mut said).unwrap();
        said.truncate(read);
        String::from_utf8(said).unwrap()
    });
    let mut caller = nudge(dir.path(), &["get", "a", "b"]).spawn().unwrap();
    let heard = heard.join().unwrap();
    let _ = caller.kill();
    let _ = caller.wait();
    assert!(heard.starts_with("POST / HTTP/1.1\r\n") && heard.contains("nudge.get_hint"), "{heard}");
    assert!(!heard.contains(&token) && !heard.to_lowercase().contains("authorization"), "{heard}");
}

#[test]
fn row_24_commands_need_no_port() {
    let home = home();
    let runtime = home.path().join("run");
    let serve = Serve::start(&runtime);
    // `server.pid` names the port of a relay. A client that used the port would reach the relay.
    let relay = Relay::to(serve.file.port);
    let elsewhere = serde_json::to_vec(&ServerFile { port: relay.port, ..serve.file.clone() }).unwrap();
    // Writes the file again before each command, because the server restores the file every few seconds.
    let mislead = || fs::write(runtime.join("server.pid"), &elsewhere).unwrap();
    for args in [&["set", "a", "b", "c"][..], &["get", "a", "b"], &["query"], &["status"]] {
        mislead();
        let output = nudge(&runtime, args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    assert_eq!(relay.heard(), "");
    // A client uses the port if the user names the port.
    wait_for("a call by the port", PATIENCE, || {
        mislead();
        drop(nudge(&runtime, &["get", "a", "b", "-p", &relay.port.to_string()]).output().unwrap());
        relay.heard().contains("nudge.get_hint").then_some(())
    });
}

/// The environment variable with the path of the socket that [`ask`] connects to.
const SOCKET: &str = "SOCKET_TO_ASK";

/// Sends a request over the local channel and prints the server's answer.
#[test]
#[ignore = "another test runs it as another user"]
fn ask() {
    let mut stream = UnixStream::connect(std::env::var_os(SOCKET).unwrap()).unwrap();
    let mut said = String::new();
    let asked = stream.write_all(b"GET /health HTTP/1.1\r\nHost: anything\r\n\r\n");
    let _ = asked.and_then(|()| stream.read_to_string(&mut said));
    println!("was told {said:?}");
}

#[test]
fn row_24_another_user_is_turned_away() {
    let Some((home, _)) = stage() else { return };
    let runtime = home.path().join("run");
    let serve = Serve::start(&runtime);
    // Opens the directory to all users. Now only the server's check of the caller's user protects the server.
    let socket = runtime.join("server.sock");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).unwrap();
    let program = home.path().join("these-tests");
    assert!(Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success());
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut ask = as_stranger(&program);
    let told = ask.args(["--exact", "channel::ask", "--ignored", "--nocapture"]).env(SOCKET, &socket).output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("was told \"\""), "{told}");
    fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
    // The owner of the socket gets an answer.
    let told = Command::new(&program)
        .args(["--exact", "channel::ask", "--ignored", "--nocapture"])
        .env(SOCKET, &socket)
        .output();
    let told = String::from_utf8_lossy(&told.unwrap().stdout).into_owned();
    assert!(told.contains("was told \"HTTP/1.1 200"), "{told}");
    drop(serve);
}

#[test]
fn row_24_a_file_in_the_place_of_the_socket_is_replaced_or_done_without() {
    let home = home();
    let runtime = home.path().join("run");
    let socket = runtime.join("server.sock");
    let is_socket = || fs::symlink_metadata(&socket).is_ok_and(|meta| meta.file_type().is_socket());
    let works = |what: &str| {
        let output = nudge(&runtime, &["set", "a", "b", "c"]).output().unwrap();
        assert!(output.status.success(), "{what}: {output:?}");
    };
    let mut serve = Serve::start(&runtime);
    assert!(is_socket());
    // The socket of a killed server remains, and no process listens on it.
    serve.child.kill().unwrap();
    serve.child.wait().unwrap();
    assert!(is_socket());
    assert!(sentence(&nudge(&runtime, &["get", "a", "b"]).output().unwrap()).contains("No Nudge server"));
    let serve = Serve::start(&runtime);
    works("after a killed server");
    serve.close();
    assert!(!socket.exists(), "nothing is left");

    let victim = home.path().join("victim");
    fs::write(&victim, "theirs").unwrap();
    symlink(&victim, &socket).unwrap();
    let serve = Serve::start(&runtime);
    works("a link");
    assert!(is_socket() && fs::read_to_string(&victim).unwrap() == "theirs");
    serve.close();

    // The server cannot replace this directory. The directory stays, and clients use the port.
    fs::create_dir(&socket).unwrap();
    let serve = Serve::start(&runtime);
    works("a directory");
    serve.close();
    assert!(socket.is_dir());
}

#[test]
fn row_24_a_directory_with_a_long_path_works_too() {
    let home = home();
    let runtime = home.path().join("a-folder-with-a-long-name-".repeat(6)).join("run");
    fs::create_dir_all(runtime.parent().unwrap()).unwrap();
    let serve = Serve::start(&runtime);
    assert_served(&serve, &runtime);
    assert!(status_kib(serve.child.id(), "VmRSS").is_none() || runtime.join("server.sock").exists());
    serve.close();
}
