//! Tests records by the command line: with and without a session, in the text of a hook, and after the death of a
//! server.
#![cfg(unix)]

use crate::kit;

use std::fs;
use std::process::{Command, Stdio};

use kit::desk::Desk;
use serde_json::{Value, json};

/// Shortcuts for the commands of records.
trait Recorded {
    fn add(&self, title: &str, body: &str) -> i64;
    fn prompt_with(&self, env: &[(&str, &str)], session: &str, prompt: &str) -> String;

    /// Runs a hook for a prompt; returns its text for the model.
    fn prompt(&self, session: &str, prompt: &str) -> String {
        self.prompt_with(&[], session, prompt)
    }
}

impl Recorded for Desk {
    fn add(&self, title: &str, body: &str) -> i64 {
        let made = self.run(&["records", "add", "--kind", "issue", "--title", title, "--body", body]);
        made["record"]["id"].as_i64().unwrap()
    }

    fn prompt_with(&self, env: &[(&str, &str)], session: &str, prompt: &str) -> String {
        let event = json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "cwd": self.checkout, "prompt": prompt});
        self.hook(env, &event)
    }
}

/// Returns the records that a search found, without the weak ones.
fn ids(found: &Value) -> Vec<i64> {
    let hits = found["results"].as_array().unwrap().iter().filter(|hit| hit["weak"].is_null());
    hits.map(|hit| hit["id"].as_i64().unwrap()).collect()
}

#[test]
fn a_record_is_there_with_a_session_and_without() {
    let desk = Desk::new();
    assert_eq!(desk.run(&["records", "list"])["total"], 0);
    assert!(!desk.home.path().join("data").exists(), "a mere look leaves nothing");
    let alone = desk.add("Uploads above 1 MB fail with 413", "nginx had client_max_body_size 1m.");
    assert!(!desk.runtime.exists(), "no session was begun");
    let serve = desk.serve();
    let through = desk.add("Sessions live in Redis", "So that a deploy logs nobody out.");
    assert_eq!(ids(&desk.run(&["records", "search", "uploads fail 413"])), [alone]);
    drop(serve);
    assert_eq!(ids(&desk.run(&["record", "search", "redis sessions"])), [through]);
    let shown = desk.run(&["records", "show", &through.to_string()]);
    assert_eq!(
        (&shown["project"], &shown["by"], &shown["origin"]),
        (&json!("acme/shop"), &json!("nudge-cli/0.1.0"), &json!("cli"))
    );
    assert_eq!(desk.run(&["records", "rm", &through.to_string()])["deleted"], true);
    assert_eq!(desk.run(&["records", "restore", &through.to_string()])["version"], 2);
    let file = desk.home.path().join("export.json");
    fs::write(&file, desk.run(&["records", "export"]).to_string()).unwrap();
    assert_eq!(desk.run(&["records", "import", file.to_str().unwrap()])["skipped"], 2);
}

/// The doctor asks the server, because only the server's process has these counts.
#[test]
fn doctor_tells_of_the_server_and_not_of_itself() {
    let desk = Desk::new();
    let _serve = desk.serve();
    desk.add("Uploads fail", "");
    let out = desk.nudge(&["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let records = report["data"].as_array().unwrap().iter().find(|check| check["name"] == "records").unwrap();
    assert!(records["detail"].as_str().unwrap().contains("written 1"), "{records}");
}

#[test]
fn records_without_room_are_refused_and_told_of_before() {
    let desk = Desk::new();
    let id = desk.add("Uploads fail", &"A body of some length. ".repeat(1_000));
    let file = desk.home.path().join("data/records.db");
    let most = (fs::metadata(&file).unwrap().len() / 4096 * 4096).to_string();
    let mut server = desk.server();
    let _serve = kit::Serve::spawn(
        {
            server.env("NUDGE_RECORDS_MAX_BYTES", &most);
            server
        },
        &desk.runtime,
    );
    for args in [&["status"][..], &["doctor"]] {
        let said = String::from_utf8(desk.nudge(args).output().unwrap().stdout).unwrap();
        assert!(said.contains("full 100 % of ") && said.contains("raise `records.max_bytes`"), "{said}");
    }
    let (code, said) = desk.refused(&["records", "add", "--kind", "issue", "--title", "One more"]);
    assert!(code == Some(4) && said.contains("`nudge records rm ID --forever`"), "{code:?} {said}");
    desk.run(&["records", "rm", &id.to_string(), "--forever"]);
    desk.add("One more", "");
}

#[test]
fn the_example_in_the_help_of_add_keeps_a_record() {
    let desk = Desk::new();
    let help = desk.nudge(&["records", "add", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, example) = help.split_once("Example:\n  nudge ").unwrap();
    let words = shell_words(example.lines().next().unwrap());
    let made = desk.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(made["record"]["title"], "Login loops", "{help}");
}

/// Splits a line into words as a shell does.
fn shell_words(line: &str) -> Vec<String> {
    let out = Command::new("sh").args(["-c", &format!("printf '%s\\n' {line}")]).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn what_was_acknowledged_outlives_a_server_that_is_killed() {
    let desk = Desk::new();
    let mut serve = desk.serve();
    let kept: Vec<_> = (0..20).map(|n| desk.add(&format!("Record number {n}"), "")).collect();
    serve.child.kill().unwrap();
    serve.child.wait().unwrap();
    assert_eq!(desk.run(&["records", "list"])["total"], kept.len());
}

#[test]
fn a_prompt_brings_a_record_to_mind_once_and_idle_talk_none() {
    let desk = Desk::new();
    let _serve = desk.serve();
    for n in 0..12 {
        desk.add(&format!("Something else, case {n}"), "Nothing of note about printers and paper.");
    }
    desk.add("Uploads above 1 MB fail with 413", "nginx had client_max_body_size 1m; now 20m.");
    assert_eq!(desk.prompt("s", "thanks, commit it"), "");
    let told = desk.prompt("s", "why do uploads fail with 413 again?");
    assert!(told.contains("record 13 (issue, open, just now) Uploads above 1 MB fail with 413: nginx had"), "{told}");
    assert_eq!(desk.prompt("s", "why do uploads fail with 413 again?"), "", "once");
}

#[test]
fn a_prompt_draws_as_many_as_its_agent_wants() {
    let desk = Desk::new();
    let _serve = desk.serve();
    for host in ["paris", "tokyo", "lagos"] {
        desk.add(&format!("Uploads above 1 MB fail with 413 in {host}"), "nginx had client_max_body_size 1m; now 20m.");
    }
    let prompt = "why do uploads above 1 MB fail with 413?";
    let lines = |told: &str| told.matches("- record ").count();
    assert_eq!(lines(&desk.prompt("a", prompt)), 3);
    assert_eq!(lines(&desk.prompt_with(&[("DUDE_CONTEXT_LIMIT", "1")], "b", prompt)), 1);
    assert_eq!(lines(&desk.prompt_with(&[("DUDE_CONTEXT_LIMIT", "0")], "c", prompt)), 0);
    assert_eq!(
        lines(&desk.prompt_with(&[("DUDE_CONTEXT_LIMIT", "many")], "d", prompt)),
        3,
        "what is no number is none"
    );
}

#[test]
fn what_is_refused_says_what_to_do() {
    let desk = Desk::new();
    desk.add("One", "");
    for (args, code, said) in [
        (
            &["records", "show", "99"][..],
            1,
            "nudge: There is no record of this number; `nudge records search` finds by words.\n",
        ),
        (
            &["records", "add", "--title", "x"],
            2,
            "nudge: A new record needs `--kind`; give it, or `--id` of the one to change.\n",
        ),
        (
            &["records", "add", "--kind", "issue", "--title", "x", "--project", "acme/shpo"],
            2,
            "nudge: No project has this name; give `--create-project` to begin one. There is acme/shop.\n",
        ),
        (
            &["records", "search"],
            2,
            "nudge: WORDS is missing: `nudge records search WORDS...`; see `nudge records search --help`.\n",
        ),
    ] {
        let (got, text) = desk.refused(args);
        assert_eq!((got, &*text), (Some(code), said), "{args:?}");
    }
}

#[test]
fn a_record_is_changed_in_an_editor_or_by_flags() {
    let desk = Desk::new();
    let id = desk.add("Uploads: refused", "# nginx\n\nhas a limit\n").to_string();
    let edit = |script: &str| {
        let editor = desk.home.path().join("editor.sh");
        let script = format!("set -e\nfile=$1\nnudge() {{ '{}' \"$@\"; }}\n{script}\n", env!("CARGO_BIN_EXE_nudge"));
        fs::write(&editor, script).unwrap();
        let mut edit = desk.nudge(&["records", "edit", &id]);
        edit.env_remove("VISUAL").env("EDITOR", format!("sh '{}'", editor.display())).env("TMPDIR", desk.home.path());
        let out = edit.stdin(Stdio::null()).output().unwrap();
        (out.status.code(), String::from_utf8(out.stderr).unwrap())
    };
    // The command edits the same file without a server and with one.
    let untouched = desk.run(&["records", "show", &id]);
    assert_eq!(edit("cat \"$file\" > seen"), (Some(0), "nudge: nothing was changed\n".to_owned()));
    let seen = fs::read_to_string(desk.checkout.join("seen")).unwrap();
    let expected = "title: Uploads: refused\nkind: issue\nstatus: open\n\n# nginx\n\nhas a limit\n\n";
    assert!(seen.starts_with("# Version 1 of ") && seen.split_once('\n').unwrap().1 == expected, "{seen}");
    assert_eq!(desk.run(&["records", "show", &id]), untouched);
    assert_eq!(edit("sed -i.bak 's/^status:.*/status: resolved/' \"$file\"").0, Some(0));
    let shown = desk.run(&["records", "show", &id]);
    let kept = (&shown["title"], &shown["body"], &shown["version"]);
    assert_eq!(kept, (&untouched["title"], &untouched["body"], &json!(2)));
    assert_eq!(shown["status"], "resolved");
    let _serve = desk.serve();
    assert_eq!(edit("echo more >> \"$file\"").0, Some(0));
    assert_eq!(desk.run(&["records", "show", &id])["body"], "# nginx\n\nhas a limit\n\nmore");
    // Another user has changed the record meanwhile. That change stays, and the typed text is kept in a file.
    let (code, said) = edit(&format!("nudge records edit {id} --title theirs > /dev/null\necho mine >> \"$file\""));
    assert!(code == Some(4) && said.contains("has version 4 by now, not 3"), "{said}");
    let kept = said.trim_end().trim_end_matches('.').rsplit_once("your text is in ").unwrap().1;
    assert!(fs::read_to_string(kept).unwrap().ends_with("more\nmine\n"));
    assert_eq!(desk.run(&["records", "show", &id])["title"], "theirs");
    let (code, said) = edit("echo 'titel: x' > \"$file\"");
    assert!(code == Some(2) && said.contains("one line each of title, kind, status"), "{said}");
    // A text with a credential is not kept in a file.
    let token = ["ghp", "_", &"aB3dE6gH9j".repeat(4)[..36]].concat();
    let (code, said) = edit(&format!("echo '{token}' >> \"$file\""));
    assert!(code == Some(4) && said.contains("your text was not kept") && !said.contains(&token), "{said}");
    assert_eq!(
        desk.run(&["records", "edit", &id, "--kind", "arch", "--if-match-version", "4"])["record"]["kind"],
        "arch"
    );
    let mut nobody = desk.nudge(&["records", "edit", &id]);
    let out = nobody.env_remove("VISUAL").env_remove("EDITOR").stdin(Stdio::null()).output().unwrap();
    let expected =
        "nudge: There is no terminal for an editor; give what changes by `--title`, `--kind`, `--status`, `--body`.\n";
    assert_eq!((out.status.code(), &*String::from_utf8_lossy(&out.stderr)), (Some(2), expected));
    assert_eq!(desk.run(&["records", "show", &id])["version"], 5);
}

#[test]
fn doctor_tells_of_the_database() {
    let desk = Desk::new();
    fs::create_dir_all(desk.home.path().join(".claude")).unwrap();
    let doctor = || {
        let mut doctor = desk.nudge(&["doctor", "claude", "--json"]);
        let output = doctor.env("HOME", desk.home.path()).stdin(Stdio::null()).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["data"].as_array().unwrap().iter().find(|check| check["name"] == "records").cloned()
    };
    assert_eq!(doctor(), None);
    desk.add("Uploads: refused", "nginx has a limit");
    let check = doctor().unwrap();
    let detail = check["detail"].as_str().unwrap();
    assert!(check["ok"] == true && detail.starts_with("stored 1, ") && detail.ends_with("records.db"), "{check}");
    let file = desk.home.path().join("data/records.db");
    fs::write(&file, "no database at all, though it has as many bytes as one").unwrap();
    let check = doctor().unwrap();
    assert!(check["ok"] == false && check["fix"].as_str().is_some_and(|fix| fix.contains("nudge")), "{check}");
}
