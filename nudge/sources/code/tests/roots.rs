//! Tests which roots are live.

mod kit;

use std::fs;

use kit::{Lab, until};
use serde_json::json;

/// Makes folders that are separate projects.
fn projects(lab: &Lab, count: usize) -> Vec<std::path::PathBuf> {
    let project = |number: usize| {
        let folder = lab.root().join(format!("p{number}"));
        fs::create_dir_all(&folder).unwrap();
        let done = std::process::Command::new("git").args(["init", "-q"]).current_dir(&folder).status().unwrap();
        assert!(done.success());
        fs::write(folder.join("a.py"), format!("def f{number}():\n    pass\n")).unwrap();
        folder
    };
    (0..count).map(project).collect()
}

#[test]
fn the_one_that_was_used_last_stays() {
    let lab = Lab::new();
    let projects = projects(&lab, 6);
    let session = lab.session();
    let alive = || session.source.report_status()["code"]["roots"].as_u64().unwrap();
    for (number, project) in projects.iter().enumerate() {
        let name = until("a project to be read", || {
            let found = session.tell("search", json!({"query": format!("f{number}"), "root": project}));
            found["nodes"][0]["id"].as_str().map(str::to_owned)
        });
        assert_eq!(name, format!("node:a.py:f{number}"));
        assert!(alive() <= 4);
    }
    // The files of a repository inside another repository do not belong to the outer root.
    assert_eq!(session.settled()["nodes"], 0);
    assert_eq!(alive(), 4);
    session.source.tick(i64::MAX / 2);
    assert_eq!(session.source.report_status().get("code"), None);
    // A call makes the root live again.
    assert_eq!(session.settled()["nodes"], 0);
}

#[test]
fn worktrees_are_roots_of_their_own() {
    let lab = Lab::new();
    lab.write("a.py", "def on_main():\n    pass\n");
    lab.commit();
    let other = lab.root().with_file_name("other");
    lab.git(&["worktree", "add", "-q", "-b", "dev", other.to_str().unwrap()]);
    fs::write(other.join("a.py"), "def on_dev():\n    pass\n").unwrap();
    let code = lab.alone();
    let names = |root: &std::path::Path| {
        let file = code.tell("file", json!({"path": "a.py", "root": root}));
        file["nodes"][0]["id"].as_str().unwrap().to_owned()
    };
    assert_eq!((names(&lab.root()), names(&other)), ("node:a.py:on_main".to_owned(), "node:a.py:on_dev".to_owned()));
    let told = code.tell("tests", json!({"changed": true, "root": other}));
    assert_eq!(told["changed"], json!(["a.py"]));
}

#[test]
fn switched_off_it_says_so() {
    let lab = Lab::new();
    let code = lab.off();
    let refused = kit::refused(code.ask("status", json!({})));
    assert!(refused.message().contains("code.on"), "{refused}");
    assert!(!code.source.in_use());
}
