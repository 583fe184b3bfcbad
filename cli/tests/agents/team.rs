//! Tests `.nudge.json` with three people: the changes and deletions of each person reach the others, and no other hint
//! does.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use kit::Serve;
use kit::desk::Desk;
use serde_json::{Value, json};

const FILE: &str = ".nudge.json";

/// A person with a home, a clone and a session.
struct TeamMember {
    desk: Desk,
    serve: Serve,
}

fn run_git(folder: &Path, words: &[&str]) -> Output {
    let identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"];
    Command::new("git").args(identity).args(words).current_dir(folder).output().unwrap()
}

#[track_caller]
fn git(folder: &Path, words: &[&str]) {
    let done = run_git(folder, words);
    assert!(done.status.success(), "{words:?}: {done:?}");
}

impl TeamMember {
    /// Makes a person with a clone of the shared repository and a running session.
    fn with_clone_of(origin: &Path) -> Self {
        let desk = Desk::new();
        fs::remove_dir_all(&desk.checkout).unwrap();
        let clone = [Path::new("clone").as_os_str(), origin.as_os_str(), desk.checkout.as_os_str()];
        let done = Command::new("git").args(clone).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let serve = desk.serve();
        Self { desk, serve }
    }

    fn run(&self, words: &[&str]) -> Value {
        self.desk.run(words)
    }

    fn set(&self, key: &str, value: &str) {
        self.run(&["set", "shop", key, value]);
    }

    /// Returns the value of a hint for this person's agents; `None` if there is none.
    fn value(&self, key: &str) -> Option<String> {
        let output = self.desk.nudge(&["get", "shop", key, "--value"]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
    }

    fn file(&self) -> String {
        fs::read_to_string(self.desk.checkout.join(FILE)).unwrap()
    }

    fn push(&self) {
        git(&self.desk.checkout, &["add", FILE]);
        git(&self.desk.checkout, &["commit", "--quiet", "--message", "Hints"]);
        git(&self.desk.checkout, &["push", "--quiet", "origin", "HEAD:main"]);
    }

    fn pull(&self) -> Output {
        run_git(&self.desk.checkout, &["pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main"])
    }

    fn pull_and_trust(&self) -> Value {
        let pulled = self.pull();
        assert!(pulled.status.success(), "{pulled:?}");
        self.run(&["trust", "--yes"])
    }

    /// Ends the person's session and starts a new one.
    fn begin_again(self) -> Self {
        let Self { desk, serve } = self;
        serve.close();
        let serve = desk.serve();
        Self { desk, serve }
    }
}

/// Makes an origin with one commit, and three people with a clone each.
fn make_team(origin: &Path) -> [TeamMember; 3] {
    git(origin, &["init", "--quiet", "--bare", "."]);
    let first = tempfile::tempdir().unwrap();
    git(first.path(), &["init", "--quiet", "."]);
    git(first.path(), &["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    git(first.path(), &["push", "--quiet", &origin.display().to_string(), "HEAD:main"]);
    git(origin, &["symbolic-ref", "HEAD", "refs/heads/main"]);
    [(); 3].map(|()| TeamMember::with_clone_of(origin))
}

/// Promise (agents): A save loses no hint of a teammate, restores no deleted one, and publishes none without a
/// request.
#[test]
fn what_each_changes_and_deletes_reaches_the_others() {
    let origin = tempfile::tempdir().unwrap();
    let [ada, ben, eve] = make_team(origin.path());
    ada.set("deploy", "make deploy");
    ada.set("test", "make test");
    let (code, said) = ada.desk.refused(&["save"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("`nudge save --all` for all 2"), "{said}");
    assert_eq!(ada.run(&["save", "--all"])["added"], json!(["shop deploy", "shop test"]));
    ada.push();
    assert_eq!(ben.pull_and_trust()["set"], 2);
    assert_eq!(eve.pull_and_trust()["set"], 2);

    // Ada deletes and adds hints. Ben has a hint that he does not want to share.
    ada.run(&["delete", "shop", "deploy"]);
    ada.set("lint", "make lint");
    ada.set("test", "make test -j2");
    let saved = ada.run(&["save", "shop", "lint"]);
    let expected = json!([["shop lint"], ["shop test"], ["shop deploy"]]);
    assert_eq!(json!([saved["added"], saved["changed"], saved["removed"]]), expected);
    ada.push();
    ben.set("mine", "my private experiment");
    assert!(ben.pull().status.success());
    let pulled = ben.file();
    let (code, said) = ben.desk.refused(&["save"]);
    assert_eq!(code, Some(4));
    assert!(said.contains("has changed since it was loaded here; `nudge trust` shows it, then save again"), "{said}");
    assert_eq!(ben.file(), pulled, "a refused save changes nothing");
    let trusted = ben.run(&["trust", "--yes"]);
    assert_eq!((&trusted["set"], &trusted["deleted"]), (&json!(2), &json!(1)), "{trusted}");
    let values = ["deploy", "lint", "test", "mine"].map(|key| ben.value(key));
    let texts = [None, Some("make lint"), Some("make test -j2"), Some("my private experiment")];
    assert_eq!(values, texts.map(|text| text.map(str::to_owned)));
    let saved = ben.run(&["save"]);
    assert_eq!((&saved["private"], &saved["hints"]), (&json!(["shop mine"]), &json!(2)), "{saved}");
    assert_eq!(ben.file(), pulled, "nothing is lost, brought back or published");

    // A hint that Ben deletes disappears from the file and from the other sessions. If another person has changed the
    // hint, it stays.
    ben.run(&["delete", "shop", "test"]);
    assert_eq!(ben.run(&["save"])["removed"], json!(["shop test"]));
    ben.push();
    eve.set("deploy", "make deploy REGION=eu");
    let trusted = eve.pull_and_trust();
    assert_eq!((eve.value("test"), eve.value("lint").as_deref()), (None, Some("make lint")), "{trusted}");
    assert_eq!(eve.value("deploy").as_deref(), Some("make deploy REGION=eu"), "it was changed here");
    assert_eq!(eve.run(&["save"])["private"], json!(["shop deploy"]), "and is no team's any more");

    // Ada and Eve change the same hint. Each keeps her own value until one of them saves, and the load reports the
    // difference.
    ada.pull_and_trust();
    ada.set("lint", "make lint --fix");
    ada.run(&["save"]);
    ada.push();
    eve.set("lint", "ruff check");
    let trusted = eve.pull_and_trust();
    assert_eq!(trusted["other"], json!(["shop lint"]), "{trusted}");
    assert_eq!(eve.value("lint").as_deref(), Some("ruff check"));
    assert_eq!(eve.run(&["save"])["changed"], json!(["shop lint"]));
    for member in [ada, ben, eve] {
        member.serve.close();
    }
}

/// Promise (agents): A file with a merge conflict is neither told nor overwritten.
#[test]
fn a_conflict_is_resolved_by_a_person() {
    let origin = tempfile::tempdir().unwrap();
    let [ada, ben, eve] = make_team(origin.path());
    ada.set("test", "make test");
    ada.run(&["save", "shop"]);
    ada.push();
    ben.pull_and_trust();
    ada.set("test", "make test -j2");
    ada.run(&["save"]);
    ada.push();
    ben.set("test", "pytest");
    ben.run(&["save"]);
    git(&ben.desk.checkout, &["commit", "--quiet", "--all", "--message", "Hints"]);
    assert!(!ben.pull().status.success(), "a conflict");
    let conflict = ben.file();
    assert!(conflict.contains("<<<<<<<") && conflict.contains("-j2") && conflict.contains("pytest"), "{conflict}");
    for words in [&["save"][..], &["trust", "--yes"], &["save", "--all"]] {
        let (code, said) = ben.desk.refused(words);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains("has marks of a merge conflict in line") && said.contains("resolve the conflict"),
            "{said}"
        );
        assert_eq!(ben.file(), conflict, "{words:?}");
    }
    fs::write(ben.desk.checkout.join(FILE), "{\"components\": ").unwrap();
    let (_, said) = ben.desk.refused(&["save"]);
    assert!(said.contains("line 1 is not JSON"), "{said}");
    git(&ben.desk.checkout, &["checkout", "--theirs", FILE]);
    ben.push();
    assert_eq!(ben.run(&["trust", "--yes"])["other"], json!([]), "theirs is what this clone has not seen before");
    eve.pull_and_trust();
    assert_eq!(eve.value("test").as_deref(), Some("make test -j2"));
    for member in [ada, ben, eve] {
        member.serve.close();
    }
}

#[test]
fn a_session_begins_with_what_was_trusted_and_members_of_others_stay() {
    let origin = tempfile::tempdir().unwrap();
    let [ada, ben, eve] = make_team(origin.path());
    let text = json!({
        "about": "the shop",
        "components": {
            "shop": {"owner": "ops", "hints": {
                "test": {"value": "make test", "meta": {"scope": {"os": "linux"}}, "seen": 1},
                "bad": {"value": "x", "meta": {"scope": {"branch": ["["]}}},
                "soon": {"value": "no deploys", "meta": {"ttl": "2d"}},
            }},
        },
    });
    fs::write(ada.desk.checkout.join(FILE), text.to_string()).unwrap();
    ada.run(&["trust", "--yes"]);
    ada.run(&["set", "shop", "run", "make run"]);
    ada.run(&["save", "shop", "run"]);
    let saved: Value = serde_json::from_str(&ada.file()).unwrap();
    let mut expected = text;
    expected["components"]["shop"]["hints"]["run"] = "make run".into();
    assert_eq!(saved, expected, "all else stays as it was written");
    ada.push();
    ben.pull_and_trust();
    ben.run(&["delete", "shop", "soon"]);
    assert_eq!(ben.run(&["save"])["removed"], json!([]), "what ends by itself was not deleted by anybody");

    // The file changes without a review. The next session still gets the trusted text.
    let ben = ben.begin_again();
    ada.run(&["delete", "shop", "run"]);
    ada.run(&["save"]);
    ada.push();
    assert!(ben.pull().status.success());
    let start =
        json!({"hook_event_name": "SessionStart", "session_id": "a", "cwd": ben.desk.checkout, "source": "startup"});
    assert!(ben.desk.hook(&[], &start).contains("make run"));
    assert_eq!(ben.run(&["trust", "--yes"])["deleted"], 1);
    assert_eq!(ben.value("run"), None);

    // A hint without a repository is shared. In each clone it is stored for that clone's repository.
    ben.run(&["set", "shop", "editor", "vim", "--everywhere"]);
    assert_eq!(ben.run(&["save"])["private"], json!([]));
    assert_eq!(ben.run(&["save", "shop/editor"])["added"], json!(["shop editor"]));
    let again = ben.run(&["save"]);
    assert_eq!((&again["removed"], &again["added"]), (&json!([]), &json!([])), "{again}");
    let (code, said) = ben.desk.refused(&["save", "shop", "none"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("No hint shop none is stored"), "{said}");
    for member in [ada, ben, eve] {
        member.serve.close();
    }
}
