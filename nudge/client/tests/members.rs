//! Who belongs to the session, with real processes.

use nudge_client::{Member, PrimaryLock, RuntimeDir};

use kit::{Home, Puppet, given, obey, wait_for};

mod kit;

/// Not a test: what a [`Puppet`] does.
#[test]
fn puppet() {
    let Some(path) = given() else { return };
    let dir = RuntimeDir::create(Some(&path)).unwrap();
    let mut member: Option<Member> = None;
    let mut lock: Option<PrimaryLock> = None;
    obey(|order| match order {
        "join" => {
            member = Some(dir.join().unwrap());
            "joined".into()
        }
        "leave" => {
            member = None;
            "left".into()
        }
        "lock" => {
            lock = dir.try_lock().unwrap();
            if lock.is_some() { "won" } else { "held" }.into()
        }
        "unlock" => {
            lock = None;
            "unlocked".into()
        }
        // As the PRIMARY of a new or of the old session.
        "decide" => {
            let lock = lock.as_ref().unwrap();
            let over = dir.session_is_over(lock).unwrap();
            let (journal, restored) = dir.open_journal(lock, !over).unwrap();
            member = member.take().or_else(|| Some(dir.join().unwrap()));
            journal.append(b"mine").unwrap();
            format!("{} records", restored.records.len())
        }
        "end" => {
            let over = dir.end(lock.take().unwrap(), member.take().unwrap(), None).unwrap();
            if over { "over" } else { "not over" }.into()
        }
        other => panic!("unknown: {other}"),
    });
}

fn puppet_in(home: &Home) -> Puppet {
    Puppet::start("puppet", home.dir.path())
}

/// Another test may be starting a process, which holds a copy of every descriptor until it executes.
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
    let own = home.dir.join().unwrap();
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
    assert_eq!(primary.tell("decide"), "0 records");
    let mut proxy = start();
    proxy.tell("join");
    for records in 1..=5 {
        primary.kill();
        // In turns a PROXY is promoted, or one that has just been started wins.
        let mut next = start();
        if records % 2 == 1 {
            std::mem::swap(&mut next, &mut proxy);
        }
        win(&mut next);
        assert_eq!(next.tell("decide"), format!("{records} records"));
        proxy.tell("join");
        primary = next;
    }
    primary.kill();
    proxy.kill();
    wait_for("the end of all", || dir.try_lock().unwrap().is_some_and(|lock| dir.session_is_over(&lock).unwrap()));
    let mut primary = start();
    win(&mut primary);
    assert_eq!(primary.tell("decide"), "0 records");
}

#[test]
fn the_last_one_leaves_nothing_on_the_disk() {
    let home = Home::new();
    let (mut primary, mut proxy) = (puppet_in(&home), puppet_in(&home));
    let Home { outer: _outer, dir, lock } = home;
    let file = dir.path().join("journal");
    drop(lock);
    wait_for("the lock", || primary.tell("lock") == "won");
    assert_eq!(primary.tell("decide"), "0 records");
    proxy.tell("join");
    assert_eq!(primary.tell("end"), "not over", "the PROXY lives");
    assert!(file.exists());
    assert_eq!(proxy.tell("lock"), "won");
    assert_eq!(proxy.tell("decide"), "1 records");
    assert_eq!(proxy.tell("end"), "over");
    assert!(!file.exists());
    assert_eq!(primary.tell("lock"), "won", "the lock was released");
}

/// Everybody at once: one wins at a time, and nobody who joins waits longer than a decision takes.
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
    assert_eq!(home.dir.join().unwrap_err().reason(), "E_UNAVAILABLE");
    assert_eq!(home.dir.session_is_over(&home.lock).unwrap_err().reason(), "E_UNAVAILABLE");
}
