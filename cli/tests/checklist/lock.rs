//! Tests rows 9 and 18 of the security checklist: which process is PRIMARY, and which process callers take for the
//! PRIMARY. `main.rs` lists all rows.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use kit::system::{Squatter, nudge, sentence, signal};
use kit::{PATIENCE, Serve, command, home, wait_for};
use nudge::Service as _;
use nudge_client::{RemoteServer, RuntimeDir, ServerFile};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

#[test]
fn row_9_a_squatter_on_the_port_of_a_dead_server_hears_nothing() {
    let home = home();
    let runtime = home.path().join("run");
    let mut anywhere = command(&runtime);
    anywhere.args(["-p", "0"]);
    let mut first = Serve::spawn(anywhere, &runtime);
    let port = first.file.port;
    first.call("nudge.set_hint", &json!({"component": "a", "key": "b", "value": "c"}));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(fs::read_to_string(runtime.join("server.pid")).unwrap().contains(first.token()), "nobody tidied up");
    let squatter = Squatter::on(port);
    let port_flag = port.to_string();
    for args in [
        &["get", "a", "b"][..],
        &["set", "a", "b", "c"],
        &["query"],
        &["status"],
        &["stop"],
        &["call", "nudge.export"],
        &["status", "-p", &port_flag],
        &["stop", "-p", &port_flag],
    ] {
        let output = nudge(&runtime, args).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        sentence(&output);
        squatter.assert_lonely(&args.join(" "));
    }
    let mut again = command(&runtime);
    again.args(["-p", &port_flag]);
    let second = Serve::spawn(again, &runtime);
    assert_ne!(second.file.port, port);
    assert_ne!(second.token(), first.token());
    let out = nudge(&runtime, &["status"]).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    second.close();
    squatter.assert_lonely("serve");
}

/// Returns the number of processes that hold an exclusive lock on a file, as the kernel reports.
fn holders(servers: &[Child], lock: &Path) -> Option<usize> {
    let inode = fs::metadata(lock).ok()?.ino();
    let marks = [" WRITE ".to_owned(), format!(":{inode} ")];
    let has = |pid: u32| {
        let infos = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
        infos.filter_map(|info| fs::read_to_string(info.path()).ok()).any(|info| {
            info.lines().any(|line| line.starts_with("lock:") && marks.iter().all(|mark| line.contains(mark)))
        })
    };
    Path::new("/proc/self/fdinfo").exists().then(|| servers.iter().filter(|server| has(server.id())).count())
}

#[test]
fn row_18_of_fifty_starts_one_holds_the_lock() {
    let home = home();
    let runtime = home.path().join("run");
    let quiet = || {
        let mut command = command(&runtime);
        command.args(["-p", "0"]).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut servers: Vec<_> = (0..50).map(|_| quiet().spawn().unwrap()).collect();
    let dir = wait_for("the runtime directory", PATIENCE, || RuntimeDir::open(Some(&runtime)).ok());
    let first = wait_for("a PRIMARY", PATIENCE, || dir.read_server_file());
    // The first server stays PRIMARY, and the others become PROXYs.
    let params = to_raw_value(&json!({})).unwrap();
    let status = || -> Option<Value> {
        let answer = RemoteServer::connect(&dir).and_then(|remote| remote.call("nudge.status", &params));
        serde_json::from_str(answer.ok()?.get()).ok()
    };
    let status = wait_for("the others", 6 * PATIENCE, || {
        let count = holders(&servers, &runtime.join("primary.lock"));
        assert!(count.is_none_or(|count| count == 1), "{count:?} hold the lock");
        assert_eq!(dir.read_server_file().as_ref(), Some(&first));
        status().filter(|status| status["members"] == 50)
    });
    assert_eq!((&status["pid"], &status["role"]), (&json!(first.pid), &json!("PRIMARY")));
    let mut pids: Vec<_> = servers.iter().map(Child::id).filter(|pid| *pid != first.pid).collect();
    pids.sort_unstable();
    assert_eq!(status["proxies"], json!(pids));
    for server in &mut servers {
        drop(server.stdin.take());
    }
    for mut server in servers {
        assert!(server.wait().unwrap().success());
    }
    for name in ["server.pid", "session", "session.db"] {
        assert!(!runtime.join(name).exists(), "{name} is still there");
    }
}

#[test]
fn row_18_a_stopped_primary_stays_the_only_one() {
    let home = home();
    let runtime = home.path().join("run");
    let first = Serve::start(&runtime);
    first.call("nudge.set_hint", &json!({"component": "a", "key": "b", "value": "c"}));
    signal(first.child.id(), "STOP");
    // Runs the commands at the same time, because each waits for its full time limit.
    let begun = Instant::now();
    let second = command(&runtime).stdin(Stdio::piped()).spawn().unwrap();
    let callers = [&["get", "a", "b"][..], &["query"], &["status"], &["call", "nudge.export"]]
        .map(|args| nudge(&runtime, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    for caller in callers {
        let output = caller.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let next = format!("may still be carried out; end process {} or try again", first.file.pid);
        assert!(sentence(&output).contains(&next), "{output:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let pid = second.id();
    let file = fs::read_to_string(runtime.join("server.pid")).unwrap();
    assert_eq!(serde_json::from_str::<ServerFile>(&file).unwrap(), first.file);
    assert_ne!(pid, first.file.pid);
    let said = sentence(&second.wait_with_output().unwrap());
    assert!(said.contains("does not answer"), "{said}");

    signal(first.child.id(), "CONT");
    assert_eq!(first.call("nudge.status", &json!({}))["result"]["role"], "PRIMARY");
}

/// Promise (session): A program that clears `/tmp` leaves a living session alone.
#[test]
fn programs_that_clear_tmp_pass_a_living_session_by() {
    use std::fs::{File, TryLockError};

    let home = home();
    let runtime = home.path().join("tmp/nudge");
    std::fs::create_dir_all(runtime.parent().unwrap()).unwrap();
    let serve = Serve::spawn(command(&runtime), &runtime);
    // Tries the lock that systemd-tmpfiles takes before it cleans a directory (tmpfiles.d(5), "Age").
    let directory = File::open(&runtime).unwrap();
    assert!(matches!(directory.try_lock(), Err(TryLockError::WouldBlock)), "a living session keeps its directory");
    let names = || {
        let mut names: Vec<_> = runtime.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let beside = home.path().join("tmp/other");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("file"), "").unwrap();
    let conf = home.path().join("tmpfiles.conf");
    let user = rustix::process::geteuid().as_raw();
    std::fs::write(&conf, format!("d {} 0700 {user} - 1s\n", runtime.parent().unwrap().display())).unwrap();
    // Waits until systemd-tmpfiles removes a file of no session. By then the session's files are old enough too.
    wait_for("files to be cleared", PATIENCE, || {
        let Ok(done) = std::process::Command::new("systemd-tmpfiles").arg("--clean").arg(&conf).status() else {
            eprintln!("skipped: there is no systemd-tmpfiles");
            return Some(());
        };
        assert!(done.success());
        (!beside.join("file").exists()).then_some(())
    });
    assert_eq!(names(), before);
    let stored = serve.call("nudge.set_hint", &json!({"component": "a", "key": "k", "value": "x"}));
    assert!(stored.get("error").is_none(), "{stored}");
    serve.close();
    // After the end of the session, no lock protects its remaining files.
    directory.try_lock().unwrap();
}
