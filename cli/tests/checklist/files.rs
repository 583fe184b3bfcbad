//! Tests rows 5 to 8 of the security checklist: the runtime directory, its files and other users. `main.rs` lists all
//! rows.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kit::system::{STRANGER, Squatter, as_stranger, nudge, seen_by, sentence, stage, with_mounts};
use kit::{PATIENCE, Serve, command, home, run_to_end, wait_for};
use nudge_client::ServerFile;
use serde_json::{Value, json};

const START: Duration = Duration::from_secs(4);

fn private(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
}

/// Starts a server. Asserts that it is PRIMARY within 4 seconds, the limit of the checklist.
fn starts(runtime: &Path, after: &str) -> Serve {
    let begun = Instant::now();
    let serve = Serve::start(runtime);
    assert!(begun.elapsed() < START, "{after}: {:?}", begun.elapsed());
    assert_eq!(serve.call("nudge.status", &json!({}))["result"]["role"], "PRIMARY", "{after}");
    serve
}

/// Runs a server that must refuse to start soon; returns its error sentence.
fn refuses(runtime: &Path, after: &str) -> String {
    let begun = Instant::now();
    let said = sentence(&run_to_end(command(runtime)));
    assert!(begun.elapsed() < PATIENCE, "{after}: {:?}", begun.elapsed());
    said
}

/// A process that has nothing to do with Nudge, and that no server may harm.
struct Innocent(Child);

impl Innocent {
    fn new() -> Self {
        // `cat` ends when this test ends, because its stdin then closes.
        Self(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn assert_alive(&mut self, when: &str) {
        assert!(self.0.try_wait().unwrap().is_none(), "{when}: the innocent died");
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn row_5_another_user_reads_no_token_and_gets_no_answer() {
    let Some((home, binary)) = stage() else { return };
    let runtime = home.path().join("run");
    let serve = Serve::start(&runtime);
    let file = runtime.join("server.pid");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let read = as_stranger("cat").arg(&file).output().unwrap();
    assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");

    // The port accepts connections of every user of the machine.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"nudge.list_components"}"#;
    let length = body.len();
    for authorization in ["", "Authorization: Bearer\r\n", "Authorization: Bearer 0\r\n"] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{authorization}Content-Type: application/json\r\n\
             Connection: close\r\nContent-Length: {length}\r\n\r\n{body}",
            serve.file.port
        );
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{} && cat >&3 && cat <&3", serve.file.port);
        let mut asking = as_stranger("bash");
        let mut asking = asking.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        asking.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        asking.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
        asking.wait().unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 ") && !answer.contains(serve.token()), "{answer}");
    }

    // The stranger cannot reach the server by the command line either.
    for args in [&["status"][..], &["stop"], &["get", "a", "b"], &["serve"]] {
        let said = sentence(&as_stranger(&binary).args(args).env("NUDGE_RUNTIME_DIR", &runtime).output().unwrap());
        assert!(said.contains("belongs to another user"), "{said}");
    }
    assert_eq!(serve.call("nudge.status", &json!({}))["result"]["role"], "PRIMARY");
}

/// Returns a command that runs with umask 0: new files then get all permissions that the program asks for.
fn with_empty_umask(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(command.get_current_dir().expect("commands of tests have a folder"));
    shell
}

/// Lists the files and folders below a folder whose own permissions let another user read or write them.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut open = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let meta = entry.path().symlink_metadata().unwrap();
        if meta.mode() & 0o077 != 0 && !meta.is_symlink() {
            open.push(format!("{} {:o}", entry.path().display(), meta.mode()));
        }
        if meta.is_dir() {
            open.extend(open_to_others(&entry.path()));
        }
    }
    open
}

#[test]
fn row_6_nothing_of_nudges_own_is_open_to_others_whatever_the_umask() {
    let home = home();
    let (runtime, own) = (home.path().join("own/run"), home.path().join("own"));
    private(&own);
    let (work, brain) = (home.path().join("work"), home.path().join("brain"));
    for folder in [work.join(".git/objects"), work.join(".git/refs"), brain.join("domains")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(work.join("a.py"), "def zebra():\n    return 1\n").unwrap();
    fs::write(brain.join("brain.yaml"), "brain: 1\n").unwrap();
    let run = |args: &[&str]| {
        let mut command = nudge(&runtime, args);
        for (name, folder) in [
            ("NUDGE_DATA_DIR", "deep/data"),
            ("NUDGE_CACHE_DIR", "deep/caches"),
            ("XDG_STATE_HOME", "deep/state"),
            ("XDG_CONFIG_HOME", "deep/config"),
        ] {
            command.env(name, own.join(folder));
        }
        command.env("HOME", home.path()).env("PWD", &work).current_dir(&work);
        let output = with_empty_umask(&command).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    run(&["init", "cursor", "--yes"]);
    assert_eq!(open_to_others(&own.join("deep")), [] as [String; 0], "after `init`");
    run(&["brain", "use", brain.to_str().unwrap()]);
    run(&["serve", "--detach", "--port", "0", "--keep"]);
    run(&["set", "web", "build", "make", "--ttl", "P30D"]);
    run(&[
        "records",
        "add",
        "--kind",
        "issue",
        "--title",
        "Login loops",
        "--body",
        "b",
        "--project",
        "x",
        "--create-project",
    ]);
    run(&["records", "backup", own.join("backup.db").to_str().unwrap()]);
    run(&["code", "search", "zebra"]);
    run(&["ask", "anything"]);
    run(&["brain", "add", "A new unit", "What it says."]);
    assert_eq!(open_to_others(&own), [] as [String; 0], "while it runs");
    run(&["stop"]);
    assert_eq!(open_to_others(&own), [] as [String; 0], "afterwards");
    for file in ["deep/data/records.db", "deep/config/nudge/config.toml", "deep/data/hints.db"] {
        assert!(own.join(file).exists(), "{file}");
    }
}

#[test]
fn row_6_a_directory_open_to_others_is_refused() {
    let home = home();
    let (runtime, victim) = (home.path().join("run"), home.path().join("victim"));
    private(&runtime);
    private(&victim);
    fs::write(victim.join("server.pid"), "precious").unwrap();
    let modes = [0o701, 0o702, 0o704, 0o710, 0o720, 0o740, 0o755, 0o770, 0o777, 0o1777];
    for mode in modes {
        fs::set_permissions(&runtime, fs::Permissions::from_mode(mode)).unwrap();
        let said = refuses(&runtime, "a loose mode");
        assert!(said.contains("chmod 700"), "{mode:o}: {said}");
        assert_eq!(fs::read_dir(&runtime).unwrap().count(), 0, "{mode:o}");
        assert_eq!(nudge(&runtime, &["status"]).output().unwrap().status.code(), Some(3));
    }
    for (place, target) in [("link", &*victim), ("dangling", Path::new("/nowhere/at/all"))] {
        let link = home.path().join(place);
        symlink(target, &link).unwrap();
        for named in [link.clone(), link.join(""), link.join(".")] {
            assert!(refuses(&named, place).contains("not a real directory"), "{place}");
            sentence(&nudge(&named, &["stop"]).output().unwrap());
        }
    }
    let file = home.path().join("file");
    fs::write(&file, "precious").unwrap();
    refuses(&file, "a file");
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(victim.join("server.pid")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    // A new directory belongs to this user, and no other user may enter it.
    let serve = starts(&home.path().join("deep/er/run"), "a fresh directory");
    assert_eq!(fs::metadata(&serve.runtime).unwrap().permissions().mode() & 0o7777, 0o700);
}

#[test]
fn row_6_a_directory_made_by_another_user_is_refused() {
    let Some((home, binary)) = stage() else { return };
    // Makes a shared folder like `/tmp`: every user may create files there, and only the owner of a file may remove it.
    let shared = home.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();

    let theirs = shared.join("theirs");
    private(&theirs);
    chown(&theirs, Some(STRANGER), Some(STRANGER)).unwrap();
    let real = home.path().join("real");
    private(&real);
    let link = shared.join("link");
    symlink(&real, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(STRANGER), Some(STRANGER)).unwrap();
    for place in [&theirs, &link] {
        let said = refuses(place, "a foreign directory");
        assert!(said.contains("belongs to another user"), "{said}");
        assert!(sentence(&nudge(place, &["status"]).output().unwrap()).contains("belongs to another user"));
        assert_eq!(fs::read_dir(place).unwrap().count(), 0);
    }

    // The stranger starts a server in this user's directory.
    let ours = shared.join("ours");
    private(&ours);
    for (place, reason) in [(ours.clone(), "belongs to another user"), (home.path().join("new"), "Permission denied")] {
        let said = sentence(&as_stranger(&binary).arg("serve").env("NUDGE_RUNTIME_DIR", &place).output().unwrap());
        assert!(said.contains(reason), "{said}");
    }
    assert!(!home.path().join("new").exists());
    // The stranger starts a server in a directory of their own that they must not write to.
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o500)).unwrap();
    let said = sentence(&as_stranger(&binary).arg("serve").env("NUDGE_RUNTIME_DIR", &theirs).output().unwrap());
    assert!(said.contains("Permission denied"), "{said}");
}

#[test]
fn row_6_a_foreign_usual_place_is_stepped_around() {
    // Each row has three parts: commands that plant a directory in a private `/tmp`, the server's command, and the
    // directory that the server must use.
    let plant = "mkdir -m 700 /tmp/nudge && chown 65534 /tmp/nudge";
    let link = "mkdir -m 700 /tmp/real && ln -s /tmp/real /tmp/nudge && chown -h 65534 /tmp/nudge";
    let ours = "mkdir -m 700 /tmp/nudge";
    let root = "exec /proc/self/fd/9 serve -p 0";
    let stranger =
        format!("exec setpriv --reuid={STRANGER} --regid={STRANGER} --clear-groups /proc/self/fd/9 serve -p 0");
    let home = home();
    let us = fs::metadata(home.path()).unwrap().uid();
    for (plant, run, place) in [
        ("true", root, "/tmp/nudge".to_owned()),
        (plant, root, format!("/tmp/nudge-{us}")),
        (link, root, format!("/tmp/nudge-{us}")),
        (ours, &stranger, format!("/tmp/nudge-{STRANGER}")),
    ] {
        let script = format!("mount -t tmpfs -o mode=1777 tmpfs /tmp && {plant} && {run}");
        let Some(mut command) = with_mounts(home.path(), &script) else { return };
        let child = command.spawn().unwrap();
        let place = seen_by(child.id(), Path::new(&place));
        let file = wait_for("server.pid in the place of our own", PATIENCE, || {
            serde_json::from_slice::<ServerFile>(&fs::read(place.join("server.pid")).ok()?).ok()
        });
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, 0o700, "{script}");
        assert_eq!(fs::read_dir(place.with_file_name("real")).map_or(0, Iterator::count), 0, "{script}");
        let mut serve = Serve { stdin: None, lines: std::sync::mpsc::channel().1, file, runtime: place, child };
        // The command line chooses the same directory as the server.
        let pid = serve.child.id().to_string();
        if run == root {
            let mut there = nudge(&serve.runtime, &[]);
            let there = there.env_remove("NUDGE_RUNTIME_DIR");
            let status = Command::new("nsenter")
                .args(["-t", &pid, "-m"])
                .arg(format!("/proc/{pid}/exe"))
                .args(["status", "--json"])
                .env_clear()
                .envs(there.get_envs().filter_map(|(name, value)| Some((name, value?))))
                .output()
                .unwrap();
            let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_else(|_| panic!("{status:?}"));
            assert_eq!(status["pid"].to_string(), pid);
        }
        assert_eq!(serve.call("nudge.status", &json!({}))["result"]["role"], "PRIMARY");
        drop(serve.child.stdin.take());
        assert!(serve.child.wait().unwrap().success());
    }
    // Neither directory can be used, so the server refuses to start with one sentence.
    for plant in [
        format!("{plant} && mkdir -m 700 /tmp/nudge-{us} && chown 65534 /tmp/nudge-{us}"),
        format!("{plant} && ln -s /tmp/nudge /tmp/nudge-{us}"),
        "mkdir -m 700 /tmp/real && ln -s /tmp/real /tmp/nudge".into(),
        "mkdir -m 777 /tmp/nudge && chmod 777 /tmp/nudge".into(),
    ] {
        let script = format!("mount -t tmpfs -o mode=1777 tmpfs /tmp && {plant} && {root}");
        let Some(command) = with_mounts(home.path(), &script) else { return };
        sentence(&run_to_end(command));
    }
}

#[test]
fn row_6_a_full_disk_is_told_and_survived() {
    let home = home();
    // The disk is full before the server starts: in the first case it has no room for another file, in the second for
    // content.
    for (options, fill) in [
        ("mode=700,nr_inodes=2", "touch \"$1\"/filler"),
        ("mode=700,size=4k", "dd if=/dev/zero of=\"$1\"/filler bs=4k count=1 2>/dev/null"),
    ] {
        let script = format!(
            "mount -t tmpfs -o {options} tmpfs \"$1\" && {fill} && NUDGE_RUNTIME_DIR=\"$1\" exec /proc/self/fd/9 serve -p 0"
        );
        let Some(command) = with_mounts(home.path(), &script) else { return };
        let said = sentence(&run_to_end(command));
        assert!(said.contains("No space left"), "{options}: {said}");
    }

    // The disk becomes full while the server runs.
    let script =
        "mount -t tmpfs -o mode=700,size=64k tmpfs \"$1\" && NUDGE_RUNTIME_DIR=\"$1\" exec /proc/self/fd/9 serve -p 0";
    let Some(mut full) = with_mounts(home.path(), script) else { return };
    let child = full.spawn().unwrap();
    let runtime = seen_by(child.id(), home.path());
    let mut serve = Serve::attach(child, &runtime);
    let set = |number: u32| json!({"component": "a", "key": format!("k{number}"), "value": "x".repeat(1000)});
    serve.call("nudge.set_hint", &set(0));
    let filler = fs::write(runtime.join("filler"), vec![0; 1 << 20]);
    assert_eq!(filler.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    for number in 1..200 {
        // The server stores the hint, or refuses it with one sentence.
        let answer = serve.call("nudge.set_hint", &set(number));
        let said = answer["error"]["message"].as_str().map(str::to_owned);
        assert!(answer["result"].is_object() || said.is_some_and(|said| said.lines().count() == 1), "{answer}");
    }
    assert_eq!(serve.call("nudge.get_hint", &json!({"component": "a", "key": "k0"}))["result"]["hint"]["version"], 1);
    let out = nudge(&runtime, &["stop"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    assert!(serve.end(PATIENCE).success());
}

/// Writes a file with this content and mode.
fn with_mode(path: &Path, content: &str, mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Puts something else in the place of a file.
type Plant<'a> = &'a dyn Fn(&Path);

#[test]
fn row_7_links_pipes_and_directories_in_the_place_of_files() {
    let home = home();
    let (runtime, victim) = (home.path().join("run"), home.path().join("victim"));
    private(&runtime);
    fs::write(&victim, "precious").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o644)).unwrap();
    let believable = json!({"pid": 1, "port": 1, "token": "t".repeat(64)}).to_string();
    let mkfifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let plants: [(&str, Plant<'_>); 10] = [
        ("a link", &|path| symlink(&victim, path).unwrap()),
        ("a dangling link", &|path| symlink(home.path().join("made-by-link"), path).unwrap()),
        ("a link to itself", &|path| symlink(path, path).unwrap()),
        ("a link to a device", &|path| symlink("/dev/zero", path).unwrap()),
        ("a hard link", &|path| fs::hard_link(&victim, path).unwrap()),
        ("a pipe", &mkfifo),
        ("a socket", &|path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
        ("a directory", &|path| fs::create_dir(path).unwrap()),
        ("a file that others may read", &|path| with_mode(path, &believable, 0o640)),
        ("a file that others may write", &|path| with_mode(path, &believable, 0o602)),
    ];
    for (what, plant) in plants {
        let file = runtime.join("server.pid");
        plant(&file);
        assert_eq!(nudge(&runtime, &["status"]).output().unwrap().status.code(), Some(3), "{what}");
        if what == "a directory" {
            assert!(refuses(&runtime, what).contains("is a directory; remove it"));
            fs::remove_dir(&file).unwrap();
        } else {
            let serve = starts(&runtime, what);
            let meta = fs::symlink_metadata(&file).unwrap();
            assert!(meta.is_file() && meta.nlink() == 1 && meta.permissions().mode() & 0o777 == 0o600, "{what}");
            serve.close();
        }

        let lock = runtime.join("primary.lock");
        fs::remove_file(&lock).unwrap();
        plant(&lock);
        let said = refuses(&runtime, what);
        assert!(said.contains("primary.lock"), "{what}: {said}");
        for verb in ["status", "stop"] {
            assert_eq!(nudge(&runtime, &[verb]).output().unwrap().status.code(), Some(3), "{what}");
        }
        fs::remove_file(&lock).or_else(|_| fs::remove_dir(&lock)).unwrap();
        fs::write(&lock, "").unwrap();
        fs::set_permissions(&lock, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::metadata(&victim).unwrap().permissions().mode() & 0o777, 0o644);
    assert!(!home.path().join("made-by-link").exists());
}

/// Lists contents of `server.pid` that no living server wrote: a name for messages, and the bytes.
fn bodies(pid: u32, port: u16) -> Vec<(&'static str, Vec<u8>)> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    let file = |name, pid: Value, port: Value| {
        let whole = json!({"pid": pid, "port": port, "started": "2026-01-01T00:00:00.000Z", "token": "t".repeat(64)});
        (name, whole.to_string().into_bytes())
    };
    let whole = file("an innocent process", pid.into(), port.into());
    let deep = format!("{}{}", r#"{"pid":"#, "[".repeat(2000));
    vec![
        text("empty", ""),
        text("white space", " \n\t\n"),
        text("garbage", "garbage"),
        text("a bare pid", &pid.to_string()),
        text("a pid and a port", &format!("{pid}\n{port}\n")),
        text("half of it", &String::from_utf8_lossy(&whole.1[..whole.1.len() / 2])),
        text("null", "null"),
        text("a list", &format!("[{pid},{port}]")),
        text("no fields", "{}"),
        text("no port", &format!(r#"{{"pid":{pid}}}"#)),
        text("twice the port", &format!(r#"{{"pid":{pid},"port":{port},"port":{port}}}"#)),
        text("deep", &deep),
        ("a byte order mark", [b"\xef\xbb\xbf", &whole.1[..]].concat()),
        ("UTF-16", String::from_utf8_lossy(&whole.1).encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("binary", (0..=255).cycle().take(1024).collect()),
        ("NULs", vec![0; 4096]),
        ("huge", vec![b'7'; 1 << 20]),
        ("padded to be huge", [&whole.1[..], &vec![b' '; 1 << 20]].concat()),
        ("two of them", [&whole.1[..], &whole.1].concat()),
        file("texts", pid.to_string().into(), port.to_string().into()),
        file("a fraction", json!(0.5), json!(f64::from(port) + 0.5)),
        file("a negative pid", json!(-i64::from(pid)), port.into()),
        file("every process", json!(-1), port.into()),
        file("pid 0", 0.into(), port.into()),
        file("pid 1", 1.into(), port.into()),
        file("a pid too large", json!(u64::MAX), port.into()),
        file("port 0", pid.into(), 0.into()),
        file("port 70000", pid.into(), 70_000.into()),
        file("a negative port", pid.into(), json!(-1)),
        whole,
    ]
}

#[test]
fn row_8_whatever_an_old_server_pid_says() {
    let home = home();
    let runtime = home.path().join("run");
    private(&runtime);
    let mut innocent = Innocent::new();
    let squatter = Squatter::on(0);
    let bodies = bodies(innocent.0.id(), squatter.port);
    assert!(bodies.len() >= 19);
    for (what, body) in bodies {
        fs::write(runtime.join("server.pid"), &body).unwrap();
        fs::set_permissions(runtime.join("server.pid"), fs::Permissions::from_mode(0o600)).unwrap();
        for args in [&["status"][..], &["stop"], &["get", "a", "b"]] {
            let output = nudge(&runtime, args).output().unwrap();
            assert!(sentence(&output).contains("No Nudge server is running"), "{what}");
            assert_eq!(output.status.code(), Some(3), "{what}");
        }
        assert_eq!(fs::read(runtime.join("server.pid")).unwrap(), body, "{what}: a client changed it");
        let serve = starts(&runtime, what);
        innocent.assert_alive(what);
        squatter.assert_lonely(what);
        serve.close();
    }
    innocent.assert_alive("at the end");
}
