//! While a session runs, what changes in the files is read before anybody asks.

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
    // A new folder, and what comes into it later.
    desk.write("new/c.md", "# C\n");
    units(3);
    desk.write("new/d.md", "# D\n");
    units(4);
    fs::remove_file(desk.path("a.md")).unwrap();
    units(3);
    // Another folder of the same name.
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
    // Files that are no units come and go, and are never read; the one that is comes after them.
    for at in 0..50 {
        desk.write(".obsidian/x.md", format!("# {at}\n"));
        desk.write("picture.png", [0, 1, 2]);
        desk.write(".a.md.swp", "x");
        fs::remove_file(desk.path(".a.md.swp")).unwrap();
    }
    desk.write("b.md", "# B\n");
    desk.wait_for("the other", |stands| stands["units"] == 2);
    assert_eq!(desk.call("check", &json!({}))["problems"], json!([]));
}

#[test]
fn without_a_worker_a_question_looks_by_itself() {
    let desk = Desk::new();
    desk.write("a.md", "# Linen\n");
    assert_eq!(desk.found("linen").0, ["a"]);
    assert_eq!(desk.call("status", &json!({}))["follows"], "before each question");
}
