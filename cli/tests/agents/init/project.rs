//! Tests hooks in a project's settings, which people without Nudge also use.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::Home;

/// Lists every hook handler below a JSON value.
fn list_handlers(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) if members.get("command").is_some_and(Value::is_string) => vec![value.clone()],
        Value::Object(members) => members.values().flat_map(list_handlers).collect(),
        Value::Array(items) => items.iter().flat_map(list_handlers).collect(),
        _ => Vec::new(),
    }
}

fn run_line(home: &Home, line: &str) -> Output {
    Command::new("/bin/sh").args(["-c", line]).env_clear().env("PATH", home.path("bin")).output().unwrap()
}

/// Promise (agents): A teammate without Nudge sees no failing hook.
#[test]
fn hooks_of_a_project_end_well_where_nudge_is_not_there() {
    let home = Home::new();
    let files = [".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json", ".cursor/hooks.json"];
    home.init(&["claude", "codex", "gemini", "cursor", "--project", "--yes"]);
    let lines: Vec<_> = files
        .iter()
        .flat_map(|file| {
            let handlers = list_handlers(&home.json(&format!("work/{file}"))["hooks"]);
            assert!(!handlers.is_empty(), "{file}");
            handlers
        })
        .map(|handler| {
            assert!(handler.get("args").is_none(), "a client without a shell cannot pass over it: {handler}");
            handler["command"].as_str().unwrap().to_owned()
        })
        .collect();
    for line in &lines {
        let output = run_line(&home, line);
        assert!(output.status.success() && output.stdout.is_empty(), "{line}: {output:?}");
    }
    home.program("nudge", "echo told by \"$@\"");
    for line in &lines {
        assert_eq!(String::from_utf8_lossy(&run_line(&home, line).stdout), "told by hook\n", "{line}");
    }
}

#[test]
fn a_hook_of_a_project_without_a_guard_gets_it() {
    let home = Home::new();
    let old = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "nudge", "args": ["hook"], "timeout": 9}]}]}});
    fs::create_dir_all(home.path("work/.claude")).unwrap();
    home.write("work/.claude/settings.json", &old.to_string());
    home.init(&["claude", "--project", "--yes"]);
    let settings = home.json("work/.claude/settings.json");
    let handlers = list_handlers(&settings["hooks"]["SessionStart"]);
    assert_eq!(handlers, [json!({"type": "command", "command": "nudge hook; exit 0", "timeout": 9})]);
    assert_eq!(home.init(&["claude", "--project", "--yes"]), "nothing to change\n", "twice is once");
}
