//! Tests membership in a session with real processes.

use std::time::Duration;

use nudge_client::{PROTOCOL, PrimaryLock, RuntimeDir, ServerFile, SessionFile, SessionMember, SessionState};
use nudge_os::dir::PrivateDir;
use nudge_os::lock::{FileLock, LockKind, LockPatience};

use kit::{Home, Puppet, given, obey, wait_for};

mod kit;

/// Runs the commands of a [`Puppet`] in a child process. This function is no test itself.
#[test]
fn puppet() {
    let Some(path) = given() else { return };
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let mut member: Option<SessionMember> = None;
    let mut lock: Option<PrimaryLock> = None;
    let mut deciding: Option<FileLock> = None;
    obey(|order| match order {
        "hold" => {
            let folder = PrivateDir::open(&path, false).unwrap();
            deciding = Some(folder.take_lock("members.lock", LockKind::Exclusive, LockPatience::AtOnce).unwrap());
            "held".into()
        }
        "give back" => {
            deciding = None;
            "given back".into()
        }
        "join" => {
            member = Some(dir.join_session().unwrap());
            "joined".into()
        }
        "leave" => {
            if let Some(lock) = &lock {
                dir.remove_server_file(lock).unwrap();
            }
            member = None;
            "left".into()
        }
        "lock" => {
            lock = dir.try_lock().unwrap();
            if let Some(lock) = &lock {
                dir.remove_server_file(lock).unwrap();
            }
            if lock.is_some() { "won" } else { "held" }.into()
        }
        "unlock" => {
            lock = None;
            "unlocked".into()
        }
        // Becomes the PRIMARY of a new session or of the old one.
        "decide" => {
            let lock = lock.as_ref().unwrap();
            let over = member.is_none() && dir.session_is_over(lock).unwrap();
            if over {
                dir.remove_session(lock).unwrap();
            }
            // Stands for the rows: the file has a byte for each PRIMARY of the session.
            let rows = dir.path().join("session.db");
            let mut stored = std::fs::read(&rows).unwrap_or_default();
            let found = stored.len();
            member = member.take().or_else(|| Some(dir.join_session().unwrap()));
            stored.push(1);
            std::fs::write(rows, stored).unwrap();
            dir.write_session(lock, &session()).unwrap();
            dir.write_server_file(lock, &server()).unwrap();
            format!("{found} rows")
        }
        "alone" => if dir.has_members(lock.as_ref().unwrap()).unwrap() { "no" } else { "yes" }.into(),
        "end" => {
            let over = dir.end_session(lock.take(), member.take().unwrap(), || false).unwrap();
            if over { "over" } else { "not over" }.into()
        }
        "stop" => {
            dir.stop_session().unwrap();
            "stopped".into()
        }
        other => panic!("unknown: {other}"),
    });
}

fn session() -> SessionFile {
    SessionFile {
        id: "one".into(),
        protocol: PROTOCOL,
        created_at: 1,
        port: 7,
        token: Some("swordfish".into()),
        keep: false,
    }
}

fn server() -> ServerFile {
    ServerFile { pid: std::process::id(), port: 7, started: "2026-01-01T00:00:00Z".into(), token: None }
}

fn puppet_in(home: &Home) -> Puppet {
    Puppet::start("puppet", home.dir.path())
}

/// Waits until the session is over, or until it is not. The result comes late when another test starts a process,
/// because until that process runs its program it holds a copy of every descriptor.
fn settles(home: &Home, over: bool) {
    wait_for("the verdict", || home.dir.session_is_over(&home.lock).unwrap() == over);
}

#[test]
fn a_session_lives_as_long_as_any_member() {
    let home = Home::new();
    settles(&home, true);
    let mut members: Vec<_> = (0..3).map(|_| puppet_in(&home)).collect();
    assert!(home.dir.session_is_over(&home.lock).unwrap(), "nobody has joined");
    for member in &mut members {
        assert_eq!(member.tell("join"), "joined");
        assert!(!home.dir.session_is_over(&home.lock).unwrap());
    }
    members.pop().unwrap().kill();
    members.pop().unwrap().end();
    assert!(!home.dir.session_is_over(&home.lock).unwrap(), "one is left");
    members[0].tell("leave");
    settles(&home, true);
    members[0].tell("join");
    assert!(!home.dir.session_is_over(&home.lock).unwrap());
    members.pop().unwrap().kill();
    settles(&home, true);
    let own = home.dir.join_session().unwrap();
    assert!(!home.dir.session_is_over(&home.lock).unwrap(), "our own membership counts");
    drop(own);
    settles(&home, true);
}

#[test]
fn a_killed_primary_is_followed_by_one_that_knows_all() {
    let home = Home::new();
    let Home { outer: _outer, dir, lock } = home;
    drop(lock);
    let start = || Puppet::start("puppet", dir.path());
    let win = |puppet: &mut Puppet| wait_for("the lock", || puppet.tell("lock") == "won");
    let mut primary = start();
    win(&mut primary);
    assert_eq!(primary.tell("decide"), "0 rows");
    let mut proxy = start();
    proxy.tell("join");
    for rows in 1..=5 {
        primary.kill();
        // A PROXY and a newly started process become PRIMARY in turn.
        let mut next = start();
        if rows % 2 == 1 {
            std::mem::swap(&mut next, &mut proxy);
        }
        win(&mut next);
        assert_eq!(next.tell("decide"), format!("{rows} rows"));
        proxy.tell("join");
        primary = next;
    }
    primary.kill();
    proxy.kill();
    wait_for("the end of all", || dir.try_lock().unwrap().is_some_and(|lock| dir.session_is_over(&lock).unwrap()));
    let mut primary = start();
    win(&mut primary);
    assert_eq!(primary.tell("decide"), "0 rows");
}

#[test]
fn the_last_one_leaves_nothing_on_the_disk() {
    let home = Home::new();
    let (mut primary, mut proxy) = (puppet_in(&home), puppet_in(&home));
    let Home { outer: _outer, dir, lock } = home;
    let file = dir.path().join("session.db");
    drop(lock);
    wait_for("the lock", || primary.tell("lock") == "won");
    assert_eq!(primary.tell("decide"), "0 rows");
    proxy.tell("join");
    assert_eq!(primary.tell("end"), "not over", "the PROXY lives");
    assert!(file.exists());
    assert_eq!(proxy.tell("lock"), "won");
    assert_eq!(proxy.tell("decide"), "1 rows");
    assert_eq!(proxy.tell("end"), "over");
    assert!(!file.exists());
    assert_eq!(dir.read_session(), SessionState::Unknown);
    assert_eq!(primary.tell("lock"), "won", "the lock was released");
}

/// An ending PRIMARY checks for members and then releases its lock. If a PROXY leaves between these two steps, one of
/// the two must check again.
#[test]
fn two_that_end_at_once_leave_nothing_on_the_disk() {
    let home = Home::new();
    let (mut primary, mut proxy) = (puppet_in(&home), puppet_in(&home));
    let Home { outer: _outer, dir, lock } = home;
    drop(lock);
    for round in 0..100 {
        wait_for("the lock", || primary.tell("lock") == "won");
        assert_eq!(primary.tell("decide"), "0 rows", "{round}");
        proxy.tell("join");
        primary.order("end");
        proxy.order("end");
        let ends = [primary.answer(), proxy.answer()];
        assert!(ends.contains(&"over".to_owned()), "{round}: {ends:?}");
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["members.lock", "primary.lock"], "{round}");
    }
}

/// On a busy machine, a process may hold the lock for a long time after it has checked for members.
#[test]
fn the_last_one_waits_for_who_holds_the_lock_and_serves_nobody() {
    let home = Home::new();
    let (mut holder, mut last) = (puppet_in(&home), puppet_in(&home));
    let Home { outer: _outer, dir, lock } = home;
    drop(lock);
    wait_for("the lock", || holder.tell("lock") == "won");
    holder.tell("decide");
    last.tell("join");
    holder.tell("leave");
    assert_eq!(holder.tell("alone"), "no");
    last.order("end");
    wait_for("the last one's leaving", || holder.tell("alone") == "yes");
    // The wait is ten times as long as the process would try if a server ran.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(holder.tell("unlock"), "unlocked");
    assert_eq!(last.answer(), "over");
    assert_eq!(dir.read_session(), SessionState::Unknown);
}

#[test]
fn a_member_that_has_not_noticed_keeps_no_stopped_session() {
    let home = Home::new();
    let (mut primary, mut late) = (puppet_in(&home), puppet_in(&home));
    let Home { outer: _outer, dir, lock } = home;
    drop(lock);
    wait_for("the lock", || primary.tell("lock") == "won");
    primary.tell("decide");
    late.tell("join");
    assert_eq!(dir.read_session(), SessionState::Lives(session()));
    primary.tell("stop");
    assert_eq!(dir.read_session(), SessionState::Stopped);
    assert_eq!(primary.tell("end"), "over");
    assert!(!dir.path().join("session.db").exists());
    assert_eq!(dir.read_session(), SessionState::Stopped, "for the one that still belongs to it");
    // A new session begins meanwhile, and the end of this process does not end it.
    assert_eq!(primary.tell("lock"), "won");
    assert_eq!(primary.tell("decide"), "0 rows");
    assert_eq!(late.tell("end"), "not over");
    assert_eq!(dir.read_session(), SessionState::Lives(session()));
    primary.tell("stop");
    late.tell("join");
    assert_eq!(primary.tell("end"), "over");
    assert_eq!(late.tell("end"), "over");
    assert_eq!(dir.read_session(), SessionState::Unknown, "the last one removes the mark");
}

/// The lock file was removed, and the next PRIMARY holds the new one while it decides whether the session continues.
#[test]
fn a_member_joins_again_while_another_decides() {
    let home = Home::new();
    let member = home.dir.join_session().unwrap();
    std::fs::remove_file(home.dir.path().join("members.lock")).unwrap();
    let mut next = puppet_in(&home);
    assert_eq!(next.tell("hold"), "held");
    assert!(!home.dir.stay_member(&member, LockPatience::AtOnce));
    next.order("give back");
    assert!(home.dir.stay_member(&member, LockPatience::Within(Duration::from_secs(20))));
    assert_eq!(next.answer(), "given back");
    settles(&home, false);
}

/// Many processes run at the same time. Only one has the lock at a time, and a joining process waits no longer than a
/// decision takes.
#[test]
fn joining_and_deciding_do_not_block_each_other() {
    let home = Home::new();
    let mut members: Vec<_> = (0..4).map(|_| puppet_in(&home)).collect();
    for _ in 0..50 {
        for member in &mut members {
            member.order("join");
        }
        for _ in 0..20 {
            home.dir.session_is_over(&home.lock).unwrap();
        }
        for member in &mut members {
            assert_eq!(member.answer(), "joined");
        }
        assert!(!home.dir.session_is_over(&home.lock).unwrap());
        for member in &mut members {
            member.tell("leave");
        }
    }
    settles(&home, true);
}

#[cfg(unix)]
#[test]
fn nothing_planted_is_locked() {
    let home = Home::new();
    let file = home.dir.path().join("members.lock");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert_eq!(home.dir.join_session().unwrap_err().reason(), "E_UNAVAILABLE");
    assert_eq!(home.dir.session_is_over(&home.lock).unwrap_err().reason(), "E_UNAVAILABLE");
}
