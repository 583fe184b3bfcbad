//! Tests input and output in the user's terms: tables that fit the terminal, times in the user's zone, paths and
//! durations.
#![cfg(unix)]

use crate::kit;

use std::path::Path;
use std::process::{Command, Stdio};

use kit::pty::on_terminal_of;
use kit::system::{nudge, sentence};
use kit::{Serve, home};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

fn ok(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

fn import(serve: &Serve, components: &Value) {
    let answer = serve.call("nudge.import", &json!({"payload": {"components": components}}));
    assert_eq!(answer["result"]["errors"], json!([]), "{answer}");
}

/// Returns the lines that a command prints on a terminal of this width, without colours.
fn seen(serve: &Serve, args: &[&str], columns: u16) -> Vec<String> {
    let mut command = nudge(&serve.runtime, args);
    command.env("NO_COLOR", "1").env("TERM", "xterm").stdin(Stdio::null());
    let (status, said) = on_terminal_of(command, Some(columns));
    assert!(status.success(), "{said}");
    said.lines().map(str::to_owned).collect()
}

/// Promise (command line): A table is no wider than the terminal, and its times are in the user's zone.
#[test]
fn tables_fit_the_terminal() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let long = "docker compose build router && docker compose push --all --quiet";
    let scoped =
        json!({"value": long, "meta": {"scope": {"repo": "github.com/org/http-proxy", "branch": ["dev", "main"]}}});
    let lasting = json!({"value": "日本語日本語日本語日本語日本語日本語 🚀", "meta": {"ttl": "P30D"}});
    import(&serve, &json!({"http-proxy": {"hints": {"build": scoped, "キー": lasting, "k10": "ten", "k2": "two"}}}));
    for args in [&["ls"][..], &["ls", "http-proxy"]] {
        for columns in [50, 60, 72, 80, 100, 120, 200] {
            let lines = seen(&serve, args, columns);
            assert_eq!(lines.len(), 5, "{columns}: {lines:#?}");
            assert!(lines.iter().all(|line| line.width() <= usize::from(columns)), "{columns}: {lines:#?}");
            assert!(lines[0].contains("KEY") && lines[0].contains("VALUE"), "{columns}: {lines:#?}");
        }
    }
    let head = |columns| seen(&serve, &["ls", "http-proxy"], columns)[0].clone();
    assert_eq!(head(200).split_whitespace().count(), 8, "{}", head(200));
    assert!(head(80).contains("HERE") && head(80).contains("EXPIRES") && !head(80).contains("USED"), "{}", head(80));
    assert!(!head(50).contains("SCOPE"), "{}", head(50));
    // In a pipe no cell is cut, even if the environment names a width.
    let piped = ok(nudge(&serve.runtime, &["ls"]).env("COLUMNS", "40"));
    assert!(piped.contains(long) && !piped.contains('…'), "{piped}");
    let keys: Vec<_> = piped.lines().skip(1).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(keys, ["build", "k2", "k10", "キー"]);
    let here = |key: &str| piped.lines().find(|line| line.contains(&format!(" {key} "))).unwrap().to_owned();
    assert!(here("build").contains(" - ") && here("k2").contains(" ✔ "), "{piped}");
    assert!(here("キー").contains("  30d  ") && here("k2").contains("  session  "), "{piped}");
}

#[test]
fn many_hints_are_listed_by_component() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let hints: Value =
        (0..20).map(|number| (format!("k{number}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    import(&serve, &json!({"c10": {"hints": hints}}));
    let list = || ok(&mut nudge(&serve.runtime, &["ls"]));
    assert_eq!(list().lines().count(), 21, "{}", list());
    import(&serve, &json!({"c2": {"hints": {"k": "v"}}}));
    assert_eq!(list(), "COMPONENT  HINTS\nc2         1\nc10        20\n");
    let exact: Value = serde_json::from_str(&ok(&mut nudge(&serve.runtime, &["ls", "--json"]))).unwrap();
    assert_eq!(exact["components"][0]["name"], "c10", "as the method returns them");
}

/// Promise: see `tables_fit_the_terminal`.
#[test]
fn times_are_those_of_the_zone_and_json_is_utc() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    // The first hint expires in a winter, the second in a summer.
    let hint = |set: &str| json!({"value": "v", "meta": {"ttl": "P3650D"}, "version": 1, "updated_at": set});
    let hints = json!({"winter": hint("2026-01-17T12:00:00Z"), "summer": hint("2026-07-17T12:00:00Z")});
    import(&serve, &json!({"a": {"hints": hints}}));
    let expires = |key: &str, zone: &str| {
        let found = ok(nudge(&serve.runtime, &["get", "a", key]).env("TZ", zone));
        let line = found.lines().find_map(|line| line.strip_prefix("expires: ")).unwrap().to_owned();
        line.split_once(" (in ").unwrap().0.to_owned()
    };
    for (zone, winter, summer) in [
        ("UTC", "2036-01-15 12:00", "2036-07-14 12:00"),
        // The zones of Central Europe and New York as rules, so that the test needs no time zone database.
        ("CET-1CEST,M3.5.0,M10.5.0/3", "2036-01-15 13:00", "2036-07-14 14:00"),
        ("EST5EDT,M3.2.0,M11.1.0", "2036-01-15 07:00", "2036-07-14 08:00"),
        ("<+0530>-5:30", "2036-01-15 17:30", "2036-07-14 17:30"),
    ] {
        assert_eq!((&*expires("winter", zone), &*expires("summer", zone)), (winter, summer), "{zone}");
    }
    if Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
        assert_eq!(expires("summer", "Europe/Berlin"), "2036-07-14 14:00");
    }
    let exact = ok(nudge(&serve.runtime, &["get", "a", "winter", "--json"]).env("TZ", "EST5EDT,M3.2.0,M11.1.0"));
    let exact: Value = serde_json::from_str(&exact).unwrap();
    assert_eq!(exact["hint"]["updated_at"], "2026-01-17T12:00:00.000Z");
}

#[test]
fn paths_begin_where_they_are_typed() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    let desk = home.path().join("desk/sub");
    std::fs::create_dir_all(&desk).unwrap();
    let desk = desk.canonicalize().unwrap();
    let up = desk.parent().unwrap();
    let typed = |path: &str| {
        let mut command = nudge(&serve.runtime, &["set", "a", "k", path, "--type", "path"]);
        command.current_dir(&desk).env("PWD", &desk).env("HOME", "/home/ada");
        command
    };
    for (path, stored) in [
        ("src/api", desk.join("src/api")),
        ("./src//api/", desk.join("src/api")),
        (".", desk.clone()),
        ("..", up.to_owned()),
        ("../lib/x", up.join("lib/x")),
        ("~/notes", "/home/ada/notes".into()),
        ("~", "/home/ada".into()),
        ("~x", desk.join("~x")),
        ("/srv/x/", "/srv/x".into()),
        (r"c:\code", r"c:\code".into()),
    ] {
        let told = ok(&mut typed(path));
        let stored = stored.display().to_string();
        assert!(told.contains(&format!("\n  path: {stored}\n")), "{path}: {told}");
        assert_eq!(ok(&mut nudge(&serve.runtime, &["get", "a", "k", "--value"])), format!("{stored}\n"), "{path}");
    }
    let far = "../".repeat(64);
    for wrong in [&*far, "", r"\\srv\share", "/a/../b"] {
        let refused = typed(wrong).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {}", sentence(&refused));
    }
}

#[test]
fn a_value_that_did_not_come_is_none() {
    let home = home();
    let serve = Serve::start(&home.path().join("run"));
    for text in ["", "\n", "\r\n"] {
        let file = home.path().join("stdin");
        std::fs::write(&file, text).unwrap();
        let mut set = nudge(&serve.runtime, &["set", "a", "k", "-"]);
        let refused = set.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{text:?}");
        assert!(sentence(&refused).contains("Nothing came in on stdin"), "{text:?}");
    }
    // An empty argument is a valid value. A note tells the user that the value is empty.
    let empty = nudge(&serve.runtime, &["set", "a", "k", ""]).output().unwrap();
    assert!(empty.status.success(), "{empty:?}");
    assert_eq!(String::from_utf8_lossy(&empty.stderr), "nudge: the value is empty; `nudge delete` takes a hint away\n");
}
