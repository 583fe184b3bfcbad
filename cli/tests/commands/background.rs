//! Tests `nudge serve --detach`: the server in the background, and its log.
#![cfg(unix)]

use crate::kit;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kit::mcp::{Client as _, Http};
use kit::pty::{Pty, with_terminal};
use kit::system::{nudge, sentence};
use kit::{PATIENCE, Serve, home, wait_for};
use nudge_client::{RuntimeDir, ServerFile};
use rustix::process::{Pid, getsid};
use serde_json::{Value, json};

/// A server in the background. Dropping it stops the server, even if the test panics.
struct Background {
    runtime: PathBuf,
    file: ServerFile,
}

impl Background {
    /// Starts a server and asserts that it answers as soon as the command has ended.
    fn start(runtime: &Path, args: &[&str]) -> Self {
        let out = detach(runtime, args).output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
        let file = Self::answers(runtime);
        let url = format!("http://127.0.0.1:{}", file.port);
        let line = format!("serving {url} in the background (pid {}); `nudge stop` ends it\n", file.pid);
        assert_eq!(String::from_utf8(out.stdout).unwrap(), line);
        Self { runtime: runtime.to_owned(), file }
    }

    /// Asserts that the server answers; returns its address. Does not wait, because `--detach` returns only when the
    /// server answers.
    fn answers(runtime: &Path) -> ServerFile {
        let file = RuntimeDir::open(Some(runtime)).unwrap().read_server_file().expect("server.pid");
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", file.port)).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n", file.port);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"version\""), "{answer}");
        file
    }

    /// Stops the server; returns the time until its lock is free.
    fn stop(&self) -> Duration {
        let dir = RuntimeDir::open(Some(&self.runtime)).unwrap();
        let begun = Instant::now();
        let out = nudge(&self.runtime, &["stop"]).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        wait_for("the lock to be free", PATIENCE, || (!dir.is_held()).then_some(()));
        begun.elapsed()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = nudge(&self.runtime, &["stop"]).output();
    }
}

fn detach(runtime: &Path, args: &[&str]) -> Command {
    let port: &[&str] = if args.contains(&"--port") { &[] } else { &["--port", "0"] };
    nudge(runtime, &[&["serve", "--detach"], port, args].concat())
}

fn private(folder: &Path) {
    fs::DirBuilder::new().mode(0o700).create(folder).unwrap();
}

fn log(runtime: &Path) -> String {
    fs::read_to_string(runtime.join("server.log")).unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn it_answers_at_once_and_stop_leaves_nothing_but_the_log() {
    let home = home();
    let runtime = home.path().join("run");
    let times: Vec<_> = (0..3)
        .map(|_| {
            let server = Background::start(&runtime, &[]);
            // A client with an open connection must not delay the end of the server.
            let _idle = std::net::TcpStream::connect(("127.0.0.1", server.file.port)).unwrap();
            let took = server.stop();
            assert_eq!(names(&runtime), ["members.lock", "primary.lock", "server.log"]);
            took
        })
        .collect();
    // Takes the shortest of three times, because other tests run on the machine.
    assert!(times.iter().min().unwrap() < &Duration::from_millis(500), "{times:?}");

    let out = detach(&runtime, &["--json"]).output().unwrap();
    let file = Background::answers(&runtime);
    let _server = Background { runtime: runtime.clone(), file: file.clone() };
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(told, json!({"pid": file.pid, "port": file.port, "role": "PRIMARY"}));

    // A second server becomes a PROXY.
    let second = detach(&runtime, &[]).output().unwrap();
    let said = String::from_utf8(second.stdout).unwrap();
    let behind = format!("behind http://127.0.0.1:{} (pid {}); `nudge stop` ends both", file.port, file.pid);
    assert!(second.status.success() && said.contains("standing by") && said.contains(&behind), "{said}");
    let third = detach(&runtime, &["--json"]).output().unwrap();
    let told: Value = serde_json::from_slice(&third.stdout).unwrap();
    assert_eq!((&told["port"], &told["role"]), (&json!(file.port), &json!("PROXY")));
    assert_ne!(told["pid"], file.pid);
    assert_eq!(Background::answers(&runtime), file, "the first is as it was");
}

#[test]
fn it_survives_the_terminal_and_the_folder_it_came_from() {
    let home = home();
    let (runtime, folder) = (home.path().join("run"), home.path().join("folder"));
    fs::create_dir(&folder).unwrap();
    let (pty, end) = Pty::open();
    // A shell with its own terminal starts the server and ends.
    let mut shell = Command::new("sh");
    shell.args(["-c", "cd \"$0\" && \"$1\" serve --detach --port 0", folder.to_str().unwrap()]);
    shell.arg(env!("CARGO_BIN_EXE_nudge")).env("NUDGE_RUNTIME_DIR", &runtime);
    let Some(mut command) = with_terminal(&shell, &end) else { return };
    command.stdout(Stdio::from(end.try_clone().unwrap())).stderr(Stdio::from(end));
    let mut shell = command.spawn().unwrap();
    drop(command);
    let shell_session = shell.id();
    let said = pty.wait_for("nudge stop");
    assert!(shell.wait().unwrap().success(), "{said}");
    let server = Background { runtime: runtime.clone(), file: Background::answers(&runtime) };
    let pid = Pid::from_raw(i32::try_from(server.file.pid).unwrap()).unwrap();
    assert_eq!(getsid(Some(pid)).unwrap(), pid, "a session of its own");
    assert_ne!(server.file.pid, shell_session);
    pty.close();
    fs::remove_dir(&folder).unwrap();
    if let Ok(cwd) = fs::read_link(format!("/proc/{}/cwd", server.file.pid)) {
        assert_eq!(cwd, Path::new("/"), "it holds a folder");
    }
    // Runs three other processes. A signal that ends the server would have arrived by then.
    for _ in 0..3 {
        assert!(nudge(&runtime, &["set", "a", "k", "x"]).output().unwrap().status.success());
    }
    assert_eq!(Background::answers(&runtime), server.file);
}

#[test]
fn a_relative_runtime_directory_is_the_one_that_was_meant() {
    let home = home();
    let run = |args: &[&str]| nudge(home.path(), args).current_dir(home.path()).output().unwrap();
    let out = run(&["serve", "--detach", "--port", "0", "--runtime-dir", "here"]);
    assert!(out.status.success(), "{out:?}");
    let _server =
        Background { runtime: home.path().join("here"), file: Background::answers(&home.path().join("here")) };
    assert!(run(&["--runtime-dir", "here", "status"]).status.success());
}

#[test]
fn what_keeps_it_from_starting_is_one_sentence() {
    let home = home();
    let path_of = |name: &str| home.path().join(name);
    fs::write(path_of("file"), "").unwrap();
    fs::write(path_of("words"), "two words\n").unwrap();
    symlink(home.path(), path_of("link")).unwrap();
    private(&path_of("loose"));
    fs::set_permissions(path_of("loose"), fs::Permissions::from_mode(0o755)).unwrap();
    private(&path_of("taken"));
    let taken = fs::File::create(path_of("taken").join("primary.lock")).unwrap();
    fs::set_permissions(path_of("taken").join("primary.lock"), fs::Permissions::from_mode(0o600)).unwrap();
    taken.lock().unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let words = path_of("words").display().to_string();
    for (name, args, env, code, part) in [
        ("run", &["--nonsense"][..], ("A", ""), 2, "--nonsense"),
        ("run", &["--max-hints", "many"], ("A", ""), 2, "whole number"),
        ("run", &["--token-file", &words], ("A", ""), 2, "token"),
        ("run", &["--token-file", "/nowhere/at/all"], ("A", ""), 2, "/nowhere/at/all"),
        ("run", &["--default-ttl", "soon"], ("A", ""), 2, "ttl"),
        ("run", &[], ("NUDGE_MAX_BYTES", "lots"), 2, "NUDGE_MAX_BYTES"),
        ("run", &[], ("NUDGE_AUTH", "maybe"), 2, "NUDGE_AUTH"),
        ("run", &[], ("NUDGE_TOKEN", "two words"), 2, "token"),
        ("file", &[], ("A", ""), 1, "not a real directory"),
        ("link", &[], ("A", ""), 1, "not a real directory"),
        ("loose", &[], ("A", ""), 1, "chmod 700"),
        ("taken", &[], ("A", ""), 1, "holds the lock"),
    ] {
        for json in [false, true] {
            let mut command = detach(&path_of(name), args);
            command.env(env.0, env.1);
            if json {
                command.arg("--json");
            }
            let out = command.output().unwrap();
            assert_eq!(out.status.code(), Some(code), "{name} {args:?} {env:?}: {out:?}");
            let said = if json {
                assert!(out.stdout.is_empty());
                let error: Value = serde_json::from_slice(&out.stderr).expect("an error object");
                error["message"].as_str().unwrap().to_owned()
            } else {
                sentence(&out)
            };
            assert!(said.contains(part) && said.lines().count() == 1, "{name} {args:?} {env:?}: {said}");
        }
        assert!(!path_of(name).join("server.pid").exists(), "{name} {args:?}");
    }
    // The port is taken, so the server tries the next ports.
    let _server = Background::start(&path_of("run"), &["--port", &port]);
}

#[test]
fn each_level_logs_what_it_says() {
    let home = home();
    for (level, serving, calls) in
        [("error", false, false), ("warn", false, false), ("info", true, false), ("debug", true, true)]
    {
        for by_flag in [true, false] {
            let runtime = home.path().join(format!("{level}-{by_flag}"));
            let mut command = detach(&runtime, if by_flag { &["--log-level"] } else { &[] });
            if by_flag {
                // The flag overrides the environment variable.
                command.arg(level).env("NUDGE_LOG_LEVEL", if level == "debug" { "error" } else { "debug" });
            } else {
                command.env("NUDGE_LOG_LEVEL", level);
            }
            assert!(command.output().unwrap().status.success());
            let server = Background { runtime: runtime.clone(), file: Background::answers(&runtime) };
            nudge(&runtime, &["ls"]).output().unwrap();
            server.stop();
            let log = log(&runtime);
            assert_eq!((log.contains("serving"), log.contains("nudge.list_components")), (serving, calls), "{log}");
            assert_eq!(fs::metadata(runtime.join("server.log")).unwrap().mode() & 0o777, 0o600);
        }
    }
    for (args, level) in [(&["--log-level", "loud"][..], None), (&[], Some("loud")), (&["--log-level", "INFO"], None)] {
        let mut command = detach(&home.path().join("run"), args);
        command.envs(level.map(|level| ("NUDGE_LOG_LEVEL", level)));
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = sentence(&out);
        assert!(["error", "warn", "info", "debug"].iter().all(|level| said.contains(level)), "{said}");
        let given_by = args.first().unwrap_or(&"NUDGE_LOG_LEVEL");
        assert!(said.starts_with(&format!("nudge: {given_by} must be ")), "{said}");
    }
}

#[test]
fn a_variable_that_is_no_text_is_refused() {
    let home = home();
    let no_text = OsStr::from_bytes(b"\xff");
    for name in ["NUDGE_AUTH", "NUDGE_TOKEN", "NUDGE_MAX_HINTS", "NUDGE_SECRET_GUARD", "NUDGE_LOG_LEVEL"] {
        let out = detach(&home.path().join("run"), &[]).env(name, no_text).output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{name}");
        assert!(sentence(&out).starts_with(&format!("nudge: {name} is not UTF-8 text")), "{out:?}");
    }
    // Variables of other programs and the names of folders may contain any bytes.
    let runtime = home.path().join(no_text);
    let mut command = detach(&runtime, &[]);
    assert!(command.env("OTHER", no_text).output().unwrap().status.success());
    let _server = Background { file: Background::answers(&runtime), runtime };
}

#[test]
fn a_log_that_leads_elsewhere_is_not_followed() {
    let home = home();
    let victim = home.path().join("victim");
    for kind in ["link", "dangling", "fifo", "hard link", "folder"] {
        fs::write(&victim, "precious").unwrap();
        let runtime = home.path().join(kind);
        private(&runtime);
        let log = runtime.join("server.log");
        match kind {
            "link" => symlink(&victim, &log).unwrap(),
            "dangling" => symlink(home.path().join("new"), &log).unwrap(),
            "fifo" => assert!(Command::new("mkfifo").arg(&log).status().unwrap().success()),
            "hard link" => fs::hard_link(&victim, &log).unwrap(),
            _ => private(&log),
        }
        let out = detach(&runtime, &[]).output().unwrap();
        assert!(out.status.success(), "{kind}: {out:?}");
        let server = Background { runtime: runtime.clone(), file: Background::answers(&runtime) };
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(said.contains("no log") && said.lines().count() == 1, "{kind}: {said}");
        nudge(&runtime, &["ls"]).output().unwrap();
        server.stop();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{kind}");
        assert!(!home.path().join("new").exists(), "{kind}");
        // A server for an agent starts without a log.
        let serve = Serve::start(&runtime);
        assert!(serve.close().contains("server.log"), "{kind}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{kind}");
    }
}

#[test]
fn the_log_stays_small() {
    const MOST: u64 = 2 << 20;
    let home = home();
    let runtime = home.path().join("run");
    let victim = home.path().join("victim");
    private(&runtime);
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, runtime.join("server.log.1")).unwrap();
    for _ in 0..2 {
        // Makes a log as large as after a long run.
        fs::write(runtime.join("server.log"), "x".repeat((1 << 20) + 1)).unwrap();
        fs::set_permissions(runtime.join("server.log"), fs::Permissions::from_mode(0o600)).unwrap();
        let server = Background::start(&runtime, &["--log-level", "debug"]);
        nudge(&runtime, &["ls"]).output().unwrap();
        server.stop();
        assert!(log(&runtime).starts_with("20"), "a new one begins");
        assert_eq!(names(&runtime), ["members.lock", "primary.lock", "server.log", "server.log.1"]);
        let size = |name: &str| fs::symlink_metadata(runtime.join(name)).unwrap().len();
        assert!(size("server.log") + size("server.log.1") < MOST);
        assert_eq!(fs::metadata(runtime.join("server.log")).unwrap().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

/// The log must contain no value, secret, token, environment variable or param, however the server received it.
#[test]
fn nothing_that_was_said_is_in_the_log() {
    const TOKEN: &str = "canary-token-0123456789";
    let home = home();
    let runtime = home.path().join("run");
    let mut command = nudge(&runtime, &["serve", "--port", "0"]);
    command.env("NUDGE_LOG_LEVEL", "debug").env("NUDGE_TOKEN", TOKEN).env("STAGE", "canary-env");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut serve = Serve::spawn(command, &runtime);

    let hint = |key: &str| {
        json!({
            "component": "canary-component", "key": key, "value": "canary-value",
            "meta": {"reason": "canary-reason", "tags": ["canary-tag"], "sensitivity": "secret",
                "scope": {"env_match": {"STAGE": ["canary-env"]}, "branch": ["canary-branch"]}},
        })
    };
    let context = json!({"env": {"STAGE": "canary-env"}, "branch": "canary-branch", "cwd": "/canary-cwd"});
    let asked = json!({"component": "canary-component", "key": "canary-key", "context": context});
    let wrong = json!({"component": "canary-component", "canary-field": {"canary-param": "canary-value"}});
    let calls =
        [("set_hint", hint("canary-key")), ("get_hint", asked), ("get_hint", wrong), ("canary_tool", json!({}))];

    serve.initialize(kit::mcp::LEGACY);
    for (name, params) in &calls {
        serve.tool(&format!("nudge_{name}"), params);
        serve.call(&format!("nudge.{name}"), params);
    }
    serve.ask(&json!({"jsonrpc": "2.0", "id": 9, "method": "canary/method", "params": {"canary-param": 1}}));
    for modern in [false, true] {
        let mut client = if modern { Http::modern(&serve) } else { Http::legacy(&serve) };
        for (name, params) in &calls {
            client.ask("tools/call", json!({"name": format!("nudge_{name}"), "arguments": params}));
        }
        client.ask("resources/read", json!({"uri": "nudge://component/canary-component"}));
        client.ask("canary/method", json!({"canary-param": 1}));
    }
    // Sends a body that is not JSON, and requests that the server refuses because of their first line or their headers.
    serve.post("canary-value {");
    serve.raw(serve.head().replace(TOKEN, "canary-other-token") + "Content-Length: 2\r\n\r\n{}");
    serve.raw(serve.head().replace("Host: ", "Host: canary-host.") + "Content-Length: 2\r\n\r\n{}");
    serve.raw(serve.head().replace("POST /", "POST /canary-path?canary-query") + "Content-Length: 2\r\n\r\n{}");
    serve.raw(serve.head() + "Origin: http://canary-origin\r\nContent-Length: 2\r\n\r\n{}");
    serve.raw("canary-verb canary-target\r\n\r\n");
    let said =
        nudge(&runtime, &["get", "canary-component", "canary-key", "--branch", "canary-branch"]).output().unwrap();
    assert!(!said.status.success(), "it is for another STAGE: {said:?}");

    let mut stderr = serve.child.stderr.take().unwrap();
    drop(serve.stdin.take());
    assert!(serve.end(PATIENCE).success());
    let mut told = String::new();
    stderr.read_to_string(&mut told).unwrap();
    let log = log(&runtime);
    assert!(log.contains("nudge.set_hint") && log.contains("nudge.get_hint") && log.contains("E_INVALID"), "{log}");
    for text in [&log, &told] {
        assert!(!text.to_ascii_lowercase().contains("canary"), "{text}");
    }
}

/// `--detach` returns when the server answers: the server in the background holds none of its parent's pipes.
#[test]
fn a_pipe_it_was_started_from_closes() {
    let home = home();
    let runtime = home.path().join("run");
    let begun = Instant::now();
    // `output` reads both pipes to their end. If the server held a pipe, `output` would never return.
    let out: Output = detach(&runtime, &[]).stdin(Stdio::piped()).output().unwrap();
    assert!(out.status.success() && begun.elapsed() < PATIENCE);
    let server = Background { runtime: runtime.clone(), file: Background::answers(&runtime) };
    // The server in the background does not read stdin, so the end of stdin does not end it.
    assert!(nudge(&runtime, &["status"]).output().unwrap().status.success());
    server.stop();
}
