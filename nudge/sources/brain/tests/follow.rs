//! Tests that changed files are read while a session runs, before any question comes.

mod kit;

use std::fs;

use kit::Desk;
use serde_json::json;

#[test]
fn what_changes_is_read_before_anybody_asks() {
    let desk = Desk::new();
    desk.write("a.md", "# A\n");
    let _working = desk.working();
    let units = |count: usize| desk.wait_for(&format!("{count} units"), |stands| stands["units"] == count);
    units(1);
    desk.write("b.md", "# B\n");
    units(2);
    // A new folder is followed too.
    desk.write("new/c.md", "# C\n");
    units(3);
    desk.write("new/d.md", "# D\n");
    units(4);
    fs::remove_file(desk.path("a.md")).unwrap();
    units(3);
    // After that, another folder gets the same name.
    fs::rename(desk.path("new"), desk.path(".hidden")).unwrap();
    units(1);
    desk.write("new/e.md", "# E\n");
    units(2);
    desk.write("new/f.md", "# F\n\n## G\n\n## H\n");
    units(3);
    desk.write("brain.yaml", "ignore: [new/]\n");
    units(1);
    let stands = desk.call("status", &json!({}));
    assert_eq!((&stands["follows"], &stands["units"]), (&json!("as they change, in 1 folders"), &json!(1)));
}

#[test]
fn what_is_of_no_interest_is_passed_over() {
    let desk = Desk::new();
    desk.write("a.md", "# A\n");
    desk.write(".obsidian/app.json", "{}");
    let _working = desk.working();
    desk.wait_for("the unit", |stands| stands["units"] == 1);
    // Files that are not units are never read. The unit is written last. So when it appears, the other files have been
    // handled.
    for round in 0..50 {
        desk.write(".obsidian/x.md", format!("# {round}\n"));
        desk.write("picture.png", [0, 1, 2]);
        desk.write(".a.md.swp", "x");
        fs::remove_file(desk.path(".a.md.swp")).unwrap();
    }
    desk.write("b.md", "# B\n");
    desk.wait_for("the other", |stands| stands["units"] == 2);
    assert_eq!(desk.call("check", &json!({}))["problems"], json!([]));
}

/// Repeats a question until the answer is not stale. A busy machine may have no time to read the files at once.
fn fresh(desk: &Desk, question: &str) -> Vec<String> {
    loop {
        let answer = desk.call("context", &json!({"task_description": question}));
        let degraded = answer["degraded"].as_array().unwrap();
        if !degraded.iter().any(|why| why.as_str().unwrap().starts_with("stale")) {
            return kit::ids(&answer["units"]);
        }
    }
}

/// An answer is never older than the files, although a question does not check all files.
#[test]
fn what_was_saved_a_moment_ago_is_in_the_answer() {
    let desk = Desk::new();
    for number in 0..20 {
        desk.write(&format!("f{}/n{number}.md", number % 3), format!("# Note {number}\n"));
    }
    let _working = desk.working();
    desk.wait_for("all of them", |stands| stands["units"] == 20);
    for round in 0..60 {
        let path = format!("f{}/n{}.md", round % 20 % 3, round % 20);
        desk.write(&path, format!("# Note {}\n\nsaved{round}word\n", round % 20));
        let id = path.trim_end_matches(".md");
        assert_eq!(fresh(&desk, &format!("saved{round}word")), [id], "round {round}");
        match round % 4 {
            0 => desk.write(&format!("new{round}/x.md"), format!("# Made\n\nmade{round}word\n")),
            1 => {
                fs::rename(desk.path(&format!("new{}/x.md", round - 1)), desk.path(&format!("moved{round}.md")))
                    .unwrap();
                assert_eq!(fresh(&desk, &format!("made{}word", round - 1)), [format!("moved{round}")]);
            }
            2 => fs::remove_file(desk.path(&format!("moved{}.md", round - 1))).unwrap(),
            _ => assert!(fresh(&desk, &format!("made{}word", round - 3)).is_empty(), "round {round}"),
        }
        if round % 4 == 0 {
            assert_eq!(fresh(&desk, &format!("made{round}word")), [format!("new{round}/x")]);
        }
    }
}

/// The system does not report a change that is made through another name of a file. The next scan of all files finds
/// the change.
#[cfg(target_os = "linux")]
#[test]
fn where_the_system_tells_who_asks_looks_at_no_file() {
    let desk = Desk::new();
    desk.write("a.md", "# A\n");
    let outside = desk.folder.path().join("outside");
    fs::hard_link(desk.path("a.md"), &outside).unwrap();
    let _working = desk.working();
    desk.wait_for("the unit", |stands| stands["units"] == 1);
    let mut rounds = 0..1_000;
    // The first scans may still be running. So the test repeats the question until an answer comes without a scan.
    let word = loop {
        let round = rounds.next().expect("no question was answered without a look");
        let word = format!("unseen{round}word");
        fs::write(&outside, format!("# A\n\n{word}\n")).unwrap();
        if fresh(&desk, &word).is_empty() {
            break word;
        }
    };
    desk.write("b.md", "# B\n");
    assert_eq!(fresh(&desk, &word), ["a"]);
}

#[test]
fn without_a_worker_a_question_looks_by_itself() {
    let desk = Desk::new();
    desk.write("a.md", "# Linen\n");
    assert_eq!(desk.found("linen").0, ["a"]);
    assert_eq!(desk.call("status", &json!({}))["follows"], "before each question");
}
