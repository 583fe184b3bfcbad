//! Tests the runtime directory: which files a client trusts, and which links it does not follow.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nudge_client::{PROTOCOL, RuntimeDir, ServerFile, SessionFile, SessionState};
use tempfile::TempDir;

fn fresh() -> (TempDir, RuntimeDir, PathBuf) {
    let home = TempDir::with_prefix("nudge-client-").unwrap();
    let path = home.path().join("a/run");
    assert_eq!(RuntimeDir::open(Some(&path)).unwrap_err().reason(), "E_UNAVAILABLE", "a client makes none");
    assert!(RuntimeDir::find(Some(&path)).unwrap().is_none());
    assert!(!home.path().join("a").exists());
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let file = dir.server_file_path();
    (home, dir, file)
}

fn server() -> ServerFile {
    ServerFile { pid: 7, port: 8765, started: "2026-01-01T00:00:00.000Z".into(), token: Some("swordfish".into()) }
}

#[test]
fn files_that_are_touched_are_young() {
    let home = tempfile::tempdir().unwrap();
    let dir = RuntimeDir::create(Some(&home.path().join("run"))).unwrap();
    let _lock = dir.try_lock().unwrap().unwrap();
    let _member = dir.join_session().unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH;
    let files = ["primary.lock", "members.lock"].map(|name| dir.path().join(name));
    for file in &files {
        std::fs::File::options().write(true).open(file).unwrap().set_modified(old).unwrap();
    }
    dir.touch_files();
    for file in &files {
        assert!(file.metadata().unwrap().modified().unwrap() > old, "{}", file.display());
    }
}

#[test]
fn one_lock() {
    let (_home, dir, _) = fresh();
    assert!(!dir.is_held(), "nobody has made the file yet");
    let lock = dir.try_lock().unwrap().unwrap();
    assert!(dir.is_held() && dir.try_lock().unwrap().is_none());
    drop(lock);
    // The lock becomes free late when another test starts a process: until that process runs its program, it holds a
    // copy of every descriptor.
    let deadline = Instant::now() + Duration::from_secs(5);
    while dir.try_lock().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the lock is free again");
        std::thread::yield_now();
    }
    assert!(dir.path().join("primary.lock").exists(), "the lock file stays");
}

#[test]
fn the_server_file_reads_back() {
    let (_home, dir, file) = fresh();
    let lock = dir.try_lock().unwrap().unwrap();
    assert_eq!(dir.read_server_file(), None);
    for _ in 0..2 {
        dir.write_server_file(&lock, &server()).unwrap();
        assert_eq!(dir.read_server_file(), Some(server()));
    }
    let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["primary.lock", "server.pid"], "no temporary file is left");
    dir.remove_server_file(&lock).unwrap();
    dir.remove_server_file(&lock).unwrap();
    assert!(!file.exists());
    assert!(!format!("{:?}", server()).contains("swordfish"));
}

#[test]
fn only_what_a_server_writes_is_believed() {
    let (_home, dir, file) = fresh();
    let lock = dir.try_lock().unwrap().unwrap();
    dir.write_server_file(&lock, &server()).unwrap();
    fs::write(&file, r#"{"pid":1,"port":2,"new":{"x":[]}}"#).unwrap();
    let newer = dir.read_server_file().unwrap();
    assert_eq!((newer.pid, newer.port, newer.token), (1, 2, None));
    for bad in ["", "garbage", "{}", "[1]", r#"{"pid":1,"port":70000}"#, r#"{"pid":-1,"port":1}"#] {
        fs::write(&file, bad).unwrap();
        assert_eq!(dir.read_server_file(), None, "{bad}");
    }
    fs::write(&file, format!(r#"{{"pid":1,"port":2,"pad":"{}"}}"#, "x".repeat(5000))).unwrap();
    assert_eq!(dir.read_server_file(), None, "too large");
}

#[test]
fn the_session_file_reads_back() {
    let (_home, dir, _) = fresh();
    let lock = dir.try_lock().unwrap().unwrap();
    let path = dir.path().join("session");
    let session = SessionFile {
        id: "a".into(),
        protocol: PROTOCOL,
        created_at: 7,
        port: 8765,
        token: Some("swordfish".into()),
        keep: false,
    };
    assert_eq!(dir.read_session(), SessionState::Unknown);
    dir.write_session(&lock, &session).unwrap();
    assert_eq!(dir.read_session(), SessionState::Lives(session.clone()));
    assert!(!format!("{:?}", dir.read_session()).contains("swordfish"));
    fs::write(&path, r#"{"id":"b","created_at":8,"new":[]}"#).unwrap();
    let newer = SessionFile { id: "b".into(), protocol: 0, created_at: 8, port: 0, token: None, keep: false };
    assert_eq!(dir.read_session(), SessionState::Lives(newer));
    assert!(dir.check_protocol().unwrap_err().message().contains("it speaks protocol 0, this program 1"));
    fs::write(&path, "{}").unwrap();
    assert_eq!(dir.read_session(), SessionState::Unknown);
    for _ in 0..2 {
        dir.stop_session().unwrap();
        assert_eq!(dir.read_session(), SessionState::Stopped);
    }
    assert!(dir.session_is_over(&lock).unwrap());
    dir.write_session(&lock, &session).unwrap();
    for _ in 0..2 {
        dir.remove_session(&lock).unwrap();
        assert_eq!(dir.read_session(), SessionState::Unknown);
    }
    dir.stop_session().unwrap();
    assert_eq!(dir.read_session(), SessionState::Stopped, "also where there was none");
}

#[cfg(unix)]
#[test]
fn nothing_planted_is_followed_or_waited_for() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (home, dir, file) = fresh();
    let lock = dir.try_lock().unwrap().unwrap();
    let victim = home.path().join("victim");
    fs::write(&victim, serde_json::to_vec(&server()).unwrap()).unwrap();
    let open_to = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open_to(&victim, 0o600);
    symlink(&victim, &file).unwrap();
    assert_eq!(dir.read_server_file(), None, "a link");
    fs::remove_file(&file).unwrap();
    fs::hard_link(&victim, &file).unwrap();
    assert_eq!(dir.read_server_file(), None, "a second name");
    fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(dir.read_server_file(), None, "a pipe");

    for mode in [0o640, 0o620, 0o604, 0o602, 0o610, 0o601] {
        dir.write_server_file(&lock, &server()).unwrap();
        open_to(&file, mode);
        assert_eq!(dir.read_server_file(), None, "{mode:o}");
    }
    dir.write_server_file(&lock, &server()).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
    dir.remove_server_file(&lock).unwrap();
    fs::create_dir(&file).unwrap();
    for refused in [dir.write_server_file(&lock, &server()), dir.remove_server_file(&lock)] {
        assert_eq!(refused.unwrap_err().reason(), "E_UNAVAILABLE");
    }

    // The directory stays open, so a directory that replaces it later has no effect.
    fs::remove_dir(&file).unwrap();
    let moved = home.path().join("moved");
    fs::rename(dir.path(), &moved).unwrap();
    symlink(home.path(), dir.path()).unwrap();
    dir.write_server_file(&lock, &server()).unwrap();
    assert!(moved.join("server.pid").exists() && !home.path().join("server.pid").exists());
}
