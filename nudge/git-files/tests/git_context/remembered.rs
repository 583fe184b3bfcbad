//! Tests that a detector with a cache always gives the same answer as a new detector.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nudge_git_files::{GitAnswer, GitDetector, git_with};

use super::lab::{Lab, OBJECT};
use super::shapes::URL;

/// The name of a change to a repository, and the function that makes the change.
type Change = (&'static str, fn(&Lab));

const CHANGES: &[Change] = &[
    ("nothing", |_| {}),
    ("another branch", |lab| {
        lab.refer("r/.git", "refs/heads/dev");
        lab.head("ref: refs/heads/dev\n");
    }),
    ("back, same length", |lab| {
        lab.refer("r/.git", "refs/heads/abc");
        lab.head("ref: refs/heads/abc\n");
    }),
    ("detached", |lab| lab.head(&format!("{OBJECT}\n"))),
    ("unborn", |lab| lab.head("ref: refs/heads/new\n")),
    ("born", |lab| lab.refer("r/.git", "refs/heads/new")),
    ("a tag of the same name", |lab| lab.refer("r/.git", "refs/tags/new")),
    ("the tag is gone", |lab| remove(lab, "r/.git/refs/tags/new")),
    ("a packed tag of the same name", |lab| {
        lab.write("r/.git/packed-refs", format!("{OBJECT} refs/tags/new\n"));
    }),
    ("packed-refs is gone", |lab| remove(lab, "r/.git/packed-refs")),
    ("another remote", |lab| {
        lab.write("r/.git/config", "[remote \"origin\"]\nurl = another");
    }),
    ("an include that is not there", |lab| {
        lab.write("r/.git/config", "[include]\npath=more\n[remote \"origin\"]\nurl = another");
    }),
    ("the include appears", |lab| {
        lab.write("r/.git/more", "[url \"X:\"]insteadOf=an");
    }),
    ("a user file appears", |lab| lab.global("[url \"Y:\"]insteadOf=another")),
    ("the user file changes", |lab| lab.global("[url \"Z:\"]insteadOf=another")),
    ("a repository in between", |lab| lab.bones("r/a/.git", "[remote \"origin\"]url=inner")),
    ("it is gone", |lab| {
        let _ = fs::remove_dir_all(lab.path("r/a/.git"));
    }),
    ("a .git file in between", |lab| {
        lab.bones("g", "[remote \"origin\"]url=g");
        lab.write("r/a/.git", "gitdir: ../../g");
    }),
    ("the repository it names is gone", |lab| {
        let _ = fs::remove_dir_all(lab.path("g"));
    }),
    ("the .git file is gone", |lab| remove(lab, "r/a/.git")),
    ("moved away", |lab| {
        let _ = fs::rename(lab.path("r/.git"), lab.path("r/.tig"));
    }),
    ("and back", |lab| {
        let _ = fs::rename(lab.path("r/.tig"), lab.path("r/.git"));
    }),
    ("reftable", |lab| {
        lab.write("r/.git/config", "[core]repositoryformatversion=1\n[extensions]refstorage=reftable");
    }),
];

fn remove(lab: &Lab, path: &str) {
    fs::remove_file(lab.path(path)).expect("the file is there");
}

#[test]
fn every_change_is_seen() {
    for pause in [Duration::ZERO, Duration::from_millis(40)] {
        let lab = Lab::new();
        lab.repo(URL);
        let cwd = lab.dir("r/a/b");
        let mut detector = GitDetector::with_env(lab.env());
        for (name, change) in CHANGES {
            change(&lab);
            let fresh = git_with(&lab.env(), &cwd);
            assert_eq!(detector.detect(&cwd), fresh, "{name}");
            std::thread::sleep(pause);
            // The first round fills the cache. The second round reads it.
            for _ in 0..2 {
                assert_eq!(detector.detect(&cwd), fresh, "{name}, again");
            }
        }
    }
}

#[test]
fn each_change_agrees_with_git() {
    let lab = Lab::new();
    lab.repo(URL);
    let cwd = lab.dir("r/a/b");
    let mut detector = GitDetector::with_env(lab.env());
    for (name, change) in CHANGES {
        change(&lab);
        std::thread::sleep(Duration::from_millis(25));
        let answer = detector.detect(&cwd);
        if let Err(difference) = lab.judge(&cwd, answer) {
            panic!("{name}:\n{difference}");
        }
    }
}

/// Tests changes that keep the length of a file and happen within one tick of the file system's clock.
#[test]
fn quick_changes_are_seen() {
    let lab = Lab::new();
    let cwd = lab.repo(URL);
    lab.refer("r/.git", "refs/heads/even");
    lab.refer("r/.git", "refs/heads/oddd");
    let mut detector = GitDetector::with_env(lab.env());
    for round in 0..300 {
        let name = if round % 2 == 0 { "even" } else { "oddd" };
        lab.head(&format!("ref: refs/heads/{name}\n"));
        match detector.detect(&cwd) {
            GitAnswer::Inside(info) => assert_eq!(info.branch.as_deref(), Some(name), "{round}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn many_folders() {
    let lab = Lab::new();
    lab.repo(URL);
    let mut detector = GitDetector::with_env(lab.env());
    let folders: Vec<_> = (0..20).map(|n| lab.dir(&format!("r/d{n}"))).collect();
    for _ in 0..3 {
        for folder in &folders {
            let root = match detector.detect(folder) {
                GitAnswer::Inside(info) => info.root,
                other => panic!("{other:?}"),
            };
            assert_eq!(root, lab.path("r"));
        }
    }
    assert_eq!(detector.detect(Path::new("/nowhere")), GitAnswer::Outside);
}

/// Prints the times that the speed report lists: `cargo test --release --test git_context speed -- --ignored
/// --nocapture`.
#[test]
#[ignore = "prints times"]
fn speed() {
    let lab = Lab::new();
    let repo = lab.real_repo("r");
    lab.global("[user]\n\tname = A\n\temail = a@b\n[alias]\n\tst = status\n[push]\n\tdefault = simple\n");
    lab.git(&repo, &["remote", "add", "origin", "https://host/org/app.git"]);
    lab.git(&repo, &["pack-refs", "--all"]);
    lab.refer("r/.git", "refs/heads/main");
    let cwd = lab.dir("r/a/b");
    std::thread::sleep(Duration::from_millis(50));
    let env = lab.env();
    let median = |run: &mut dyn FnMut()| {
        let mut times: Vec<Duration> = (0..5000)
            .map(|_| {
                let begun = std::time::Instant::now();
                run();
                begun.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let mut detector = GitDetector::with_env(env.clone());
    let uncached = median(&mut || drop(git_with(&env, &cwd)));
    let cached = median(&mut || drop(detector.detect(&cwd)));
    println!("uncached {uncached:?}, cached {cached:?}");
}
