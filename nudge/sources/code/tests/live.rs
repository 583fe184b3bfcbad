//! Tests that the index of a root follows the files while they change.

mod kit;

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kit::{Lab, until};
use serde_json::{Value, json};

/// Opens a session and waits until its root has been read.
fn settled(lab: &Lab) -> kit::Session {
    let session = lab.session();
    session.settled();
    session
}

fn watched(session: &kit::Session, path: &str) -> Option<Value> {
    session.ask("file", json!({"path": path})).ok()
}

#[test]
fn what_changes_is_seen() {
    let lab = Lab::new();
    lab.write("a.py", "def one():\n    pass\n");
    let session = settled(&lab);
    // A search does not check the files, so its answer shows only changes that the watch has reported.
    let found = |name: &str| session.tell("search", json!({"query": name}))["nodes"].as_array().unwrap().len();
    assert_eq!(found("one"), 1);
    lab.write("a.py", "def two():\n    pass\n");
    until("an edit", || (found("two") == 1).then_some(()));
    lab.write("deep/er/b.py", "def three():\n    pass\n");
    until("a new folder", || (found("three") == 1).then_some(()));
    lab.write("deep/er/c.py", "def four():\n    pass\n");
    until("a file in a new folder", || (found("four") == 1).then_some(()));
    fs::rename(lab.root().join("deep"), lab.root().join("other")).unwrap();
    until("a folder with another name", || {
        (session.tell("search", json!({"query": "three"}))["nodes"][0]["id"] == "node:other/er/b.py:three")
            .then_some(())
    });
    lab.write("other/er/b.py", "def five():\n    pass\n");
    until("an edit there", || (found("five") == 1).then_some(()));
    lab.write(".gitignore", "other/\n");
    until("a rule", || (found("five") == 0).then_some(()));
    fs::remove_file(lab.root().join("a.py")).unwrap();
    until("a removal", || (found("two") == 0).then_some(()));
    assert_eq!(session.settled()["nodes"], 0);
    assert!(session.end() < Duration::from_secs(1));
}

#[test]
fn what_is_asked_for_is_what_stands_there() {
    let lab = Lab::new();
    lab.write("a.py", "def f(x):\n    pass\n");
    let session = settled(&lab);
    for version in 0..20 {
        lab.write("a.py", &format!("def f(x{version}):\n    pass\n"));
        let told = session.tell("node", json!({"id": "a.py:f"}));
        assert!(told["node"]["signature"].as_str().unwrap().contains(&format!("x{version}")), "{told:#}");
        assert_ne!(told["node"]["fresh"], false);
    }
    // The watch has not reported this file yet.
    lab.write("b.py", "def g():\n    pass\n");
    assert_eq!(session.tell("node", json!({"id": "b.py:g"}))["node"]["fresh"], "reindexed");
    fs::remove_file(lab.root().join("a.py")).unwrap();
    assert!(session.ask("node", json!({"id": "a.py:f"})).is_err());
}

#[test]
fn a_time_of_modification_that_is_kept_hides_nothing() {
    let lab = Lab::new();
    lab.write("a.py", "def f(x):\n    pass\n");
    let session = settled(&lab);
    let path = lab.root().join("a.py");
    let old = path.metadata().unwrap().modified().unwrap();
    lab.write("a.py", "def f(y):\n    pass\n");
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let told = session.tell("node", json!({"id": "a.py:f"}));
    assert!(told["node"]["signature"].as_str().unwrap().contains('y'), "{told:#}");
    drop(session);
    // The change is also noticed if no server watched when it was made.
    lab.write("a.py", "def f(z):\n    pass\n");
    fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let told = lab.alone().tell("search", json!({"query": "f"}));
    assert!(told["nodes"][0]["signature"].as_str().unwrap().contains('z'), "{told:#}");
}

#[test]
fn a_branch_is_seen_and_the_way_back_too() {
    let lab = Lab::new();
    lab.write("a.py", "def on_main():\n    pass\n");
    lab.commit();
    lab.git(&["checkout", "-q", "-b", "dev"]);
    lab.write("a.py", "def on_dev():\n    pass\n");
    lab.commit();
    let session = settled(&lab);
    let head = session.tell("status", json!({}))["as_of"]["head"].clone();
    for (branch, name) in [("main", "on_main"), ("dev", "on_dev"), ("main", "on_main")] {
        lab.git(&["checkout", "-q", branch]);
        until(branch, || {
            let found = session.tell("search", json!({"query": name}));
            let is_other = found["as_of"]["head"] != head;
            (found["nodes"].as_array().unwrap().len() == 1 && is_other == (branch == "main")).then_some(())
        });
    }
}

/// Another thread writes the file during the calls. If an answer says that it is fresh, it shows a text that the file
/// had at some moment during the call.
#[test]
fn fresh_is_what_stood_there_during_the_call() {
    let lab = Lab::new();
    let text = |version: usize| format!("def f(x{version}):\n    pass\n");
    lab.write("a.py", &text(0));
    let session = settled(&lab);
    let (begun, ended, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 1.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                begun.store(version, Ordering::SeqCst);
                if version % 3 == 0 {
                    let other = lab.root().join("a.tmp");
                    fs::write(&other, text(version)).unwrap();
                    fs::rename(&other, lab.root().join("a.py")).unwrap();
                } else {
                    fs::write(lab.root().join("a.py"), text(version)).unwrap();
                }
                ended.store(version, Ordering::SeqCst);
            }
        });
        let (until, mut fresh) = (Instant::now() + Duration::from_secs(2), 0);
        while Instant::now() < until {
            let least = ended.load(Ordering::SeqCst);
            // A write empties the file for a moment. In this moment the node does not exist.
            let Ok(told) = session.ask("node", json!({"id": "a.py:f"})) else { continue };
            let most = begun.load(Ordering::SeqCst);
            if told["node"]["fresh"] == false {
                continue;
            }
            let signature = told["node"]["signature"].as_str().unwrap();
            let said: usize = signature.split('x').nth(1).unwrap().split(')').next().unwrap().parse().unwrap();
            assert!((least..=most).contains(&said), "{said} was told, {least} to {most} stood there");
            fresh += 1;
        }
        stop.store(true, Ordering::SeqCst);
        assert!(fresh > 10, "{fresh}");
    });
}

#[test]
fn nothing_to_do_costs_nothing() {
    let lab = Lab::new();
    (0..50).for_each(|index| lab.write(&format!("m{index}.py"), "def f():\n    pass\n"));
    let session = settled(&lab);
    std::thread::sleep(Duration::from_millis(700));
    let before = cpu();
    std::thread::sleep(Duration::from_secs(1));
    let spent = cpu() - before;
    assert!(spent < 20_000_000, "{spent} ns");
    drop(session);
}

/// Returns the CPU time of the code source's thread in nanoseconds. Other tests run in this process at the same time,
/// so the time is counted for this thread alone.
fn cpu() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let worker = tasks
        .filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.contains("nothing_to_do")));
    let spent = worker.filter_map(|task| {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
    });
    spent.sum()
}

#[test]
fn a_root_without_git_and_hostile_files() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    fs::write(base.join("setup.py"), "def setup():\n    pass\n").unwrap();
    fs::write(base.join("long.py"), format!("x = '{}'\n", "a".repeat(1 << 19))).unwrap();
    fs::write(base.join("deep.py"), format!("x = {}{}\n", "[".repeat(10_000), "]".repeat(10_000))).unwrap();
    fs::write(base.join("two\nlines.py"), "def f():\n    pass\n").unwrap();
    fs::write(base.join("null.py"), b"\0\0\0").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/zero", base.join("zero.py")).unwrap();
        std::os::unix::fs::symlink(".", base.join("loop")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(base.join("pipe.py")).status().unwrap().success());
    }
    let lab = Lab::new();
    let session = lab.session();
    let status = until("it to be read", || {
        let status = session.tell("status", json!({"root": base}));
        (status["as_of"]["complete"] == true).then_some(status)
    });
    assert_eq!(status["nodes"], 1, "{status:#}");
    for path in ["zero.py", "pipe.py", "loop/loop/deep.py", "two\nlines.py"] {
        assert!(
            session.ask("file", json!({"root": base, "path": path})).is_err() || path.starts_with("loop"),
            "{path}"
        );
    }
    let told = session.tell("file", json!({"root": base, "path": "loop/loop/setup.py"}));
    assert_eq!(told["path"], "setup.py");
    assert!(watched(&session, "none.py").is_none());
}

#[test]
fn ten_thousand_ignore_rules() {
    let lab = Lab::new();
    let rule = |number: usize| match number % 100 {
        0..50 => format!("gone{number}.py\n"),
        50..98 => format!("/folder{number}/\n"),
        98 => format!("**/deep{number}/*.py\n"),
        _ => format!("*.gen{number}.py\n!kept.gen{number}.py\n"),
    };
    lab.write(".gitignore", &(0..10_000).map(rule).collect::<String>());
    for number in [0, 50, 98, 99, 4_998, 4_999, 9_900, 9_950, 9_998, 9_999] {
        for path in ["gone#.py", "folder#/a.py", "x/deep#/a.py", "one.gen#.py", "kept.gen#.py"] {
            lab.write(&path.replace('#', &number.to_string()), "def f(): pass\n");
        }
    }
    lab.commit();
    let git = std::process::Command::new("git").args(["ls-files", "*.py"]).current_dir(lab.root()).output().unwrap();
    let expected = String::from_utf8(git.stdout).unwrap().lines().count();
    assert_eq!(lab.alone().tell("status", json!({}))["nodes"], expected, "git says which");
    lab.write(".gitignore", &(1..10_000).map(rule).collect::<String>());
    assert_eq!(lab.alone().tell("status", json!({}))["nodes"], expected + 1, "a rule is gone");
}

#[test]
fn secrets_are_not_kept() {
    let lab = Lab::new();
    let token = ["gh", "p_", &"x7Kq9ZtR2mWv".repeat(3)].concat();
    lab.write(
        "a.py",
        &format!("def connect(token='{token}'):\n    pass\n\n\ndef f():\n    \"\"\"Uses {token}.\"\"\"\n"),
    );
    let code = lab.alone();
    let told = code.tell("file", json!({"path": "a.py"}));
    assert_eq!(told["nodes"].as_array().unwrap().len(), 2);
    for id in ["a.py:connect", "a.py:f"] {
        assert!(!code.tell("node", json!({"id": id})).to_string().contains(&token));
    }
    drop(code);
    let kept = fs::read(lab.cache()).unwrap();
    assert!(!kept.windows(token.len()).any(|bytes| bytes == token.as_bytes()));
    assert!(kept.windows(7).any(|bytes| bytes == b"connect"));
}

#[test]
fn a_folder_that_comes_anew_is_watched_anew() {
    let lab = Lab::new();
    let text = |number: usize| format!("def f{number}():\n    pass\n");
    lab.write("pkg/a.py", &text(0));
    let session = settled(&lab);
    let is_found = |number: usize| session.tell("search", json!({"query": format!("f{number}")}))["nodes"] != json!([]);
    for round in 1..6 {
        // Both changes happen before the watch can report the first.
        fs::remove_dir_all(lab.root().join("pkg")).unwrap();
        lab.write("pkg/a.py", &text(round * 2));
        until("what came with it", || is_found(round * 2).then_some(()));
        lab.write("pkg/a.py", &text(round * 2 + 1));
        until("an edit in it", || is_found(round * 2 + 1).then_some(()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_worker_lets_others_go_first() {
    let lab = Lab::new();
    lab.write("a.py", "def f():\n    pass\n");
    let session = lab.session();
    session.settled();
    let is_nice = |thread: fs::DirEntry| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The fields follow the name of the process, which may contain any character.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(16).is_some_and(|nice| nice.parse::<i32>().is_ok_and(|nice| nice >= 10))
    };
    kit::until("a thread to step back", || {
        fs::read_dir("/proc/self/task").unwrap().flatten().any(is_nice).then_some(())
    });
}

/// Without a watch, an answer names the time of the last walk. It says that it is complete only for a short time after
/// the walk.
///
/// Promise: see `a_node_that_moved_to_an_unread_file_is_not_called_gone`.
#[cfg(target_os = "linux")]
#[test]
fn a_polled_folder_says_when_it_was_looked_at() {
    let lab = Lab::new();
    lab.write("a.py", "def one():\n    pass\n");
    for number in 0..8_200 {
        fs::create_dir_all(lab.root().join(format!("many/{}/{number}", number % 90))).unwrap();
    }
    let session = lab.session();
    let status = until("a first look", || {
        let status = session.tell("status", json!({}));
        (status["as_of"]["pending"] == 0).then_some(status)
    });
    let watch = status["watch"].as_str().unwrap();
    assert!(watch.starts_with("looks from time to time") && watch.contains("too many"), "{watch}");
    let looked_at = status["as_of"]["looked_at"].as_str().unwrap().to_owned();
    lab.write("many/7/new.py", "def two():\n    pass\n");
    // The next walk finds the new file. Until then, an answer says that it may be out of date.
    let is_found = || session.tell("search", json!({"query": "two"}));
    until("the next look, or a doubt", || {
        let said = is_found();
        (said["nodes"] != json!([]) || said["as_of"]["complete"] == false).then_some(())
    });
    // A caller that asks for a refresh gets a walk at once.
    session.tell("refresh", json!({}));
    let said = is_found();
    assert!(said["nodes"] != json!([]) && said["as_of"]["complete"] == true, "{said:#}");
    assert!(*said["as_of"]["looked_at"].as_str().unwrap() > *looked_at, "{said:#}");
}

#[test]
fn when_a_node_came_and_changed_is_known_of_what_the_session_saw() {
    let lab = Lab::new();
    lab.write("a.py", "def f(x):\n    pass\n\n\ndef g():\n    pass\n");
    let session = settled(&lab);
    let node = |name: &str| session.tell("node", json!({"id": format!("a.py:{name}")}))["node"].clone();
    let times = |node: &Value| (node["first_seen"].is_string(), node["last_changed"].is_string());
    assert_eq!([times(&node("f")), times(&node("g"))], [(false, false); 2]);
    lab.write("a.py", "def f(x):\n    return 1\n\n\ndef g():\n    pass\n\n\ndef h():\n    pass\n");
    assert_eq!(times(&node("f")), (false, true));
    assert_eq!(times(&node("g")), (false, false));
    let came = node("h");
    assert_eq!(times(&came), (true, false));
    lab.write("a.py", "def h():\n    return 2\n");
    assert_eq!(node("h")["first_seen"], came["first_seen"]);
    assert!(node("h")["last_changed"].is_string());
}
