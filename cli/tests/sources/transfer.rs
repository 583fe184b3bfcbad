//! Tests exports and imports by the command line that are larger than an answer, a call or a page.
#![cfg(unix)]

use crate::kit;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kit::desk::Desk;
use serde_json::{Value, json};

/// Writes an export of this many records with this body; returns its path.
fn records_file(desk: &Desk, count: usize, body: &str) -> PathBuf {
    let record = |number: usize| {
        json!({"project": format!("acme/p{}", number % 7), "kind": "issue", "title": format!("Number {number}"),
            "body": body, "status": "open", "created_at": "2026-01-02T03:04:05.000Z",
            "updated_at": "2026-01-02T03:04:05.000Z"})
    };
    let records: Vec<_> = (0..count).map(record).collect();
    let file = desk.home.path().join("records.json");
    fs::write(&file, json!({"format": "nudge-records/1", "records": records}).to_string()).unwrap();
    file
}

fn import(desk: &Desk, file: &Path) -> Value {
    desk.run(&["records", "import", file.to_str().unwrap()])
}

/// Writes the output of a command to a file; returns its path.
fn print_to(desk: &Desk, args: &[&str], name: &str) -> PathBuf {
    let file = desk.home.path().join(name);
    let status = desk.nudge(args).stdout(File::create(&file).unwrap()).status().unwrap();
    assert!(status.success(), "{args:?}");
    file
}

/// Promise: see `an_export_of_any_size_is_read_in_pages`.
#[test]
fn an_export_of_several_pages_comes_in_as_it_went_out() {
    let desk = Desk::new();
    let file = records_file(&desk, 330, &"word ".repeat(6_000));
    assert_eq!(import(&desk, &file)["imported"], 330);
    let alone = print_to(&desk, &["records", "export"], "alone.json");
    assert_eq!(fs::read(&alone).unwrap().strip_suffix(b"\n").unwrap(), fs::read(&file).unwrap(), "byte for byte");
    let _serve = desk.serve();
    let through = print_to(&desk, &["records", "export", "--json"], "through.json");
    assert!(fs::read(&alone).unwrap() == fs::read(through).unwrap(), "also through a session");
    assert_eq!(import(&desk, &alone)["skipped"], 330);
    let path = print_to(&desk, &["records", "export", "--project", "acme/p3"], "one.json");
    let export: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(export["records"].as_array().unwrap().len(), 47);
    let page = desk.run(&["records", "export", "--after", "0"]);
    assert_eq!(desk.run(&["records", "export", "--after", &page["next"].to_string()]).get("next"), None);
    let (code, said) = desk.refused(&["records", "export", "--project", "acme/none"]);
    assert!(code == Some(1) && said.contains("No project has this name"), "{said}");
}

/// Promise: see `others_write_while_an_import_is_under_way`.
/// Promise: see `an_import_without_room_says_what_is_in_and_goes_on`.
#[test]
fn an_import_lets_another_process_write_and_goes_on_after_a_kill() {
    let desk = Desk::new();
    let count = 3_000;
    let file = records_file(&desk, count, "body");
    let mut child = desk.nudge(&["records", "import", file.to_str().unwrap()]).stdout(Stdio::null()).spawn().unwrap();
    while desk.run(&["records", "list", "--project", "*", "--limit", "1"])["total"] == 0 {
        assert!(child.try_wait().unwrap().is_none(), "the import has ended");
    }
    let saved = desk.run(&["records", "add", "--kind", "issue", "--title", "Meanwhile"]);
    assert!(child.try_wait().unwrap().is_none(), "the import has ended");
    child.kill().unwrap();
    child.wait().unwrap();
    let done = import(&desk, &file);
    let [imported, skipped] =
        ["imported", "skipped"].map(|name| usize::try_from(done[name].as_u64().unwrap()).unwrap());
    assert!(imported > 0 && skipped > 0, "{done}");
    assert_eq!((imported + skipped, &done["refused"]), (count, &json!(0)));
    let id = saved["record"]["id"].as_u64().unwrap();
    assert!(id > 1 && id < count as u64, "it is between the imported ones: {saved}");
    let again = import(&desk, &file);
    assert_eq!((&again["imported"], &again["skipped"]), (&json!(0), &json!(count)));
    assert_eq!(desk.run(&["records", "list", "--project", "*", "--limit", "1"])["total"], count + 1);
}

/// Writes an export of this many hints, each with a value of 60 KB; returns its path.
fn hints_file(desk: &Desk, count: usize) -> PathBuf {
    let hint = |number: usize| {
        let value = format!("{number} {}", "word ".repeat(12_000));
        json!({"value": value, "use_count": number, "created_at": "2026-01-02T03:04:05.000Z",
            "updated_at": "2026-01-02T03:04:05.000Z"})
    };
    let mut components = serde_json::Map::new();
    for number in 0..count {
        let component = components.entry(format!("c{}", number / 100)).or_insert_with(|| json!({"hints": {}}));
        component["hints"][format!("k{number:04}")] = hint(number);
    }
    let file = desk.home.path().join("hints.json");
    let store = json!({"schema_version": "1.0", "components": components, "note": "kept beside the hints"});
    fs::write(&file, store.to_string()).unwrap();
    file
}

/// Promise (command line): `nudge export` and `nudge import` carry a store of any size. Hints that do not fit are
/// counted, and the most used ones come first.
#[test]
fn a_store_larger_than_a_call_comes_in_and_goes_out() {
    let desk = Desk::new();
    let file = hints_file(&desk, 600);
    let file = file.to_str().unwrap();
    let with_room = |bytes: &str| {
        let mut server = desk.server();
        // Switches the secret guard off, because it would need most of the test's time.
        server.env("NUDGE_MAX_BYTES", bytes).env("NUDGE_SECRET_GUARD", "0");
        kit::Serve::spawn(server, &desk.runtime)
    };
    {
        let _serve = with_room("12000000");
        let (code, said) = desk.refused(&["import", file]);
        assert!(code == Some(4) && said.contains("hints of least use found no room"), "{code:?} {said}");
        let stored = print_to(&desk, &["export"], "stored.json");
        let stored: Value = serde_json::from_slice(&fs::read(stored).unwrap()).unwrap();
        let hint_count = |name: &str| stored["components"][name]["hints"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!((hint_count("c0"), hint_count("c5")), (0, 100), "the last are of most use");
        assert!(
            said.contains(&format!(" {} hints of the file came in", hint_count("c4") + hint_count("c5"))),
            "{said}"
        );
        let (code, said) = desk.refused(&["import", file, "--mode", "replace"]);
        assert!(code == Some(2) && said.contains("more than 32 MiB"), "{said}");
    }
    let _serve = with_room("100000000");
    let done = desk.run(&["import", file]);
    assert_eq!((&done["imported"], &done["errors"]), (&json!(600), &json!([])), "{done}");
    let exported = print_to(&desk, &["export"], "exported.json");
    let text = fs::read_to_string(&exported).unwrap();
    assert!(
        text.len() > 34 << 20 && text.starts_with("{\n  \"schema_version\": \"1.0\",\n") && text.ends_with("\n}\n")
    );
    let all: Value = serde_json::from_str(&text).unwrap();
    let whole = desk.run(&["export"]);
    assert!(all == whole["payload"] && all["note"] == "kept beside the hints", "page by page as in one answer");
    assert_eq!(all["components"].as_object().unwrap().len(), 6);
    let again = desk.run(&["import", exported.to_str().unwrap()]);
    assert_eq!((&again["imported"], &again["skipped"]), (&json!(0), &json!(600)));
}
