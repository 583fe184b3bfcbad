//! Tests `nudge doctor` in a new home: its findings and its advice. The command changes nothing and leaves no file and
//! no process behind.
#![cfg(unix)]

mod home;
use crate::kit;
mod project;

use std::fs;
use std::time::Duration;

use home::Home;
use kit::session::Session;
use nudge_client::HookLog;
use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_nudge");

const WITH_HOOKS: [&str; 4] = ["claude", "codex", "gemini", "cursor"];
const WITHOUT_HOOKS: [&str; 3] = ["vscode", "opencode", "zed"];

/// Promise: see `a_missing_part_is_told_with_its_fix`.
#[test]
fn after_init_all_is_well() {
    let clients = [&WITH_HOOKS[..], &WITHOUT_HOOKS].concat();
    let home = Home::with(&clients);
    let report = home.report(&clients);
    for client in &clients {
        for name in ["configured", "binary", "handshake", "proof"] {
            report.says(client, name, Some(true));
        }
        assert!(report.check(client, "binary").get("fix").is_none());
        assert!(report.check(client, "handshake")["ms"].is_f64());
    }
    for client in WITH_HOOKS {
        report.says(client, "hook", Some(true));
        assert!(report.check(client, "hook")["ms"].is_f64());
        assert_eq!(report.says(client, "proof", Some(true)), "a test hint came out of the hook");
    }
    for client in WITHOUT_HOOKS {
        assert!(report.says(client, "hook", None).contains("nudge init --agents-md"));
    }
    // The report for people covers the installed clients.
    let output = home.run(&[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for title in ["Claude Code\n", "Codex\n", "Gemini CLI\n", "Cursor\n", "VS Code\n", "opencode\n", "Zed\n"] {
        assert!(said.contains(title), "{said}");
    }
    assert_eq!(said.matches("✔ configured").count(), 7, "{said}");
    assert!(!said.contains('✘') && !said.contains('\u{1b}'), "{said}");
}

#[test]
fn the_report_has_this_shape() {
    let home = Home::with(&["claude"]);
    let report = home.report(&["claude"]).0;
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&report), ["binary", "session", "data", "clients"]);
    assert_eq!(report["binary"], json!({"path": BINARY, "version": env!("CARGO_PKG_VERSION")}));
    assert_eq!(report["session"], json!({"ok": null, "detail": "none runs; the first agent starts one"}));
    // The report names no kept hints, because the user has none.
    let model = "none; things are found by words alone (`nudge model add`)";
    assert_eq!(report["data"], json!([{"ok": null, "detail": model, "name": "model"}]));
    assert_eq!(fields(&report["clients"][0]), ["client", "title", "checks"]);
    let checks = report["clients"][0]["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["configured", "binary", "handshake", "allowed", "hook", "proof"]);
    assert!(!home.runtime.exists(), "no trace of the user's session either");
}

/// Promise (agents): `nudge doctor` starts the command in the client's settings and names each fault with its fix.
#[test]
fn a_missing_part_is_told_with_its_fix() {
    let home = Home::with(&[]);
    let report = home.report(&["claude", "vscode"]);
    for client in ["claude", "vscode"] {
        let (told, fix) = report.fails(client, "configured");
        assert!(told.ends_with("has no entry `nudge`"), "{told}");
        assert_eq!(fix, format!("nudge init {client}"));
        report.says(client, "handshake", None);
        report.says(client, "proof", None);
    }
    let (told, fix) = report.fails("claude", "hook");
    assert!(told.contains("SessionStart") && told.contains("PostToolUseFailure"), "{told}");
    assert_eq!(fix, "nudge init claude");

    // The advice repairs the fault.
    let home = Home::with(&["claude"]);
    home.change(".claude/settings.json", |settings| {
        drop(settings["hooks"].as_object_mut().unwrap().remove("PostToolUse"));
    });
    home.change(".claude.json", |settings| settings["mcpServers"] = json!({}));
    let report = home.report(&["claude"]);
    report.fails("claude", "configured");
    let (told, fix) = report.fails("claude", "hook");
    assert!(told.ends_with("for PostToolUse"), "{told}");
    let words: Vec<_> = fix.strip_prefix("nudge ").unwrap().split(' ').chain(["--yes"]).collect();
    assert!(home.command(&words).output().unwrap().status.success());
    let report = home.report(&["claude"]);
    report.says("claude", "proof", Some(true));

    home.change(".claude/settings.json", |settings| settings["disableAllHooks"] = json!(true));
    let (_, fix) = home.report(&["claude"]).fails("claude", "hook");
    assert!(fix.contains("disableAllHooks"), "{fix}");
    home.change(".claude.json", |settings| settings["mcpServers"]["nudge"]["disabled"] = json!(true));
    let (told, _) = home.report(&["claude"]).fails("claude", "configured");
    assert!(told.contains("switched off"), "{told}");
}

#[test]
fn a_binary_that_has_moved_is_missed_by_server_and_hook() {
    let home = Home::with(&["claude", "codex"]);
    for file in [".claude.json", ".claude/settings.json", ".codex/config.toml", ".codex/hooks.json"] {
        home.write(file, &home.read(file).replace(BINARY, "/nowhere/nudge"));
    }
    let report = home.report(&["claude", "codex"]);
    for client in ["claude", "codex"] {
        let (told, fix) = report.fails(client, "binary");
        assert!(told.contains("/nowhere/nudge"), "{told}");
        assert_eq!(fix, format!("nudge init {client}"));
        let (_, fix) = report.fails(client, "hook");
        assert_eq!(fix, format!("nudge init {client}"));
    }
    let output = home.run(&["codex"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("✘ binary") && said.contains("fix: nudge init codex\n"), "{said}");
    assert!(said.ends_with("checks failed\n"), "{said}");
}

#[test]
fn a_binary_that_is_something_else_is_told_by_what_it_says() {
    let home = Home::with(&["claude"]);
    for (script, expected) in [
        ("echo 'Welcome to nudge'; sleep 1000; true", "something else than MCP on stdout: Welcome to nudge"),
        ("echo one >&2; echo 'no such thing' >&2; echo >&2; exit 3", "(exit status: 3): no such thing"),
        ("exit 0", "it ended without an answer to initialize"),
        (
            "read line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"not today\"}}'",
            "refuses initialize: not today",
        ),
        ("printf '\\033[31mred\\n' >&2; exit 1", "\u{1b}[31mred"),
    ] {
        home.serve_by(&home.program("other", script));
        let report = home.report(&["claude"]);
        let (told, fix) = report.fails("claude", "handshake");
        assert!(told.contains(expected), "{told}");
        assert_eq!(fix, "nudge init claude");
        report.says("claude", "proof", None);
    }
    let output = home.run(&["claude"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("\\u{1b}[31mred"), "nothing steers the terminal");

    // The entry starts a server with another name, then a server with another version.
    for (name, version) in [("hammer", env!("CARGO_PKG_VERSION")), ("nudge", "0.0.7")] {
        let serve = format!(
            "exec {BINARY} \"$@\" | sed -u 's/\"serverInfo\":{{\"name\":\"nudge\"/\"serverInfo\":{{\"name\":\"{name}\"/; s/\"version\":\"{}\"/\"version\":\"{version}\"/'",
            env!("CARGO_PKG_VERSION")
        );
        home.serve_by(&home.program("other", &serve));
        let report = home.report(&["claude"]);
        if name == "nudge" {
            assert!(report.says("claude", "binary", Some(true)).contains("0.0.7"));
            assert!(report.check("claude", "binary")["fix"].as_str().unwrap().starts_with("nudge init claude"));
            report.says("claude", "proof", Some(true));
        } else {
            assert!(report.fails("claude", "binary").0.contains("hammer"));
        }
    }
}

#[test]
fn a_broken_file_is_told_with_its_position() {
    let home = Home::with(&["cursor"]);
    home.write(".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\" 1\n  }\n}\n");
    home.write(".cursor/hooks.json", "[1]");
    let report = home.report(&["cursor"]);
    let (told, fix) = report.fails("cursor", "configured");
    assert!(told.contains(".cursor/mcp.json is broken at line 3"), "{told}");
    assert_eq!(fix, "correct it there, then `nudge init cursor`");
    let (told, _) = report.fails("cursor", "hook");
    assert!(told.contains(".cursor/hooks.json is broken at line 1"), "{told}");
}

/// Promise (agents): `nudge doctor` leaves the user's session unchanged and shows no secret.
#[test]
fn the_users_session_is_asked_and_not_touched() {
    let session = Session::start(0);
    assert!(session.nudge(&["set", "api", "build", "make api"]).status.success());
    let whole = || session.nudge(&["export"]).stdout;
    let (before, stats) = (whole(), session.nudge(&["stats", "--json"]).stdout);
    let members = session.status()["members"].clone();
    let home = Home::at(Some(&session.runtime));
    let init = home.command(&["init", "claude", "cursor", "zed", "--yes"]).output().unwrap();
    assert!(init.status.success(), "{init:?}");
    // The entries of all three clients lead to the user's session; Cursor's entry names its directory.
    home.change(".cursor/mcp.json", |settings| {
        settings["mcpServers"]["nudge"]["env"] = json!({"NUDGE_RUNTIME_DIR": session.runtime});
    });
    let report = home.report(&["claude", "cursor", "zed"]);
    for client in ["claude", "cursor", "zed"] {
        report.says(client, "proof", Some(true));
    }
    assert_eq!(report.0["session"]["role"], "PRIMARY");
    assert_eq!(report.0["session"]["hints"], 1);
    assert!(report.0["session"]["ms"].is_f64());
    home.change(".claude.json", |settings| {
        settings["mcpServers"]["nudge"]["args"] = json!(["serve", "--runtime-dir", session.runtime]);
    });
    home.change(".cursor/mcp.json", |settings| {
        settings["mcpServers"]["nudge"]["env"] = json!({"NUDGE_RUNTIME_DIR": home.path("tmp/elsewhere")});
    });
    let report = home.report(&["claude", "cursor"]);
    for client in ["claude", "cursor"] {
        let (told, _) = report.fails(client, "proof");
        assert!(told.contains("a session of its own"), "{told}");
    }
    assert_eq!(whole(), before);
    assert_eq!(session.nudge(&["stats", "--json"]).stdout, stats);
    assert_eq!(session.status()["members"], members);
    session.end();
}

/// Promise (agents): `nudge doctor` warns of hooks that came too late lately, with the setting that mends it.
#[test]
fn hooks_that_came_too_late_are_told_with_the_setting() {
    let session = Session::start(0);
    let home = Home::at(Some(&session.runtime));
    let init = home.command(&["init", "claude", "--yes"]).output().unwrap();
    assert!(init.status.success(), "{init:?}");
    let log = HookLog::open(&session.dir()).unwrap();
    let run = |count: usize, is_late: bool| {
        (0..count).for_each(|_| log.note_hook(Duration::from_millis(45), is_late).unwrap());
    };
    let advice = || {
        let report = home.report(&["claude"]);
        report.says("claude", "hook", Some(true));
        report.check("claude", "hook")["fix"].as_str().unwrap_or_default().to_owned()
    };
    run(8, false);
    assert!(!advice().contains("too late"), "all were in time");
    run(12, true);
    let told = "12 of the last 20 hooks came too late and told nothing; the setting hook.ms = 400 gives them time";
    assert_eq!(advice(), told);
    let shown = String::from_utf8(home.run(&["claude"]).stdout).unwrap();
    assert!(shown.contains(told), "{shown}");
    run(10, false);
    assert!(!advice().contains("too late"), "the last ten were in time");
    session.end();
}

/// Promise: see `the_users_session_is_asked_and_not_touched`.
#[test]
fn secrets_of_an_entry_are_not_shown() {
    let home = Home::with(&["claude", "zed"]);
    let secret = "open-sesame-7319";
    home.change(".claude.json", |settings| {
        settings["mcpServers"]["nudge"]["env"] = json!({"API_TOKEN": secret, "NUDGE_MAX_HINTS": "many"});
    });
    home.change(".config/zed/settings.json", |settings| {
        settings["context_servers"]["nudge"]["env"] = json!({"API_TOKEN": secret});
        let script = "echo \"token $API_TOKEN is refused\" >&2; exit 1";
        settings["context_servers"]["nudge"]["command"] = json!(home.program("other", script));
    });
    for args in [&["claude", "zed"][..], &["claude", "zed", "--json"]] {
        let output = home.run(args);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!said.contains(secret), "{said}");
        assert!(said.contains("token [API_TOKEN] is refused"), "{said}");
    }
    let (told, fix) = home.report(&["claude"]).fails("claude", "handshake");
    assert!(told.contains("NUDGE_MAX_HINTS"), "{told}");
    assert!(fix.contains("what else stands in the entry"), "init would change nothing: {fix}");
}

#[test]
fn a_hook_that_tells_nothing_or_something_else_proves_nothing() {
    let home = Home::with(&["claude", "cursor"]);
    for (script, expected) in [
        ("cat > /dev/null", "says nothing"),
        ("echo Welcome", "something else than the test hint: Welcome"),
        // The hook answers in the format of another client.
        (&*format!("{BINARY} \"$@\" | sed 's/SessionStart/Stop/; s/additional_context/context/'"), "something else"),
    ] {
        fs::create_dir_all(home.path("bin/hooks")).unwrap();
        let hook = home.program("hooks/nudge", script);
        for file in [".claude/settings.json", ".cursor/hooks.json"] {
            home.write(file, &home.read(file).replace(BINARY, hook.to_str().unwrap()));
        }
        let report = home.report(&["claude", "cursor"]);
        for client in ["claude", "cursor"] {
            report.says(client, "hook", Some(true));
            let (told, fix) = report.fails(client, "proof");
            assert!(told.contains(expected), "{told}");
            assert_eq!(fix, format!("nudge init {client}"));
        }
    }
    // Two handlers have different commands, so the doctor takes only one of them for Nudge's hook.
    let hook = home.path("bin/hooks/nudge");
    home.change(".claude/settings.json", |settings| {
        settings["hooks"]["SessionStart"][0]["hooks"][0]["command"] = json!(BINARY);
    });
    assert!(home.read(".claude/settings.json").contains(hook.to_str().unwrap()));
    let (told, _) = home.report(&["claude"]).fails("claude", "hook");
    assert!(told.contains("SubagentStart") && !told.contains(" SessionStart"), "{told}");
}

#[test]
fn the_plugin_brings_both() {
    let home = Home::with(&[]);
    for folder in [".claude", ".codex"] {
        fs::create_dir(home.path(folder)).unwrap();
    }
    home.write(".claude/settings.json", r#"{"enabledPlugins": {"nudge@nudge": true}}"#);
    home.write(".codex/config.toml", "[plugins.\"nudge@nudge\"]\nenabled = true\n");
    let report = home.report(&["claude", "codex"]);
    for client in ["claude", "codex"] {
        assert!(report.says(client, "configured", Some(true)).starts_with("by the plugin"));
        assert!(report.fails(client, "binary").1.starts_with("put "), "it must be in PATH");
        assert!(report.fails(client, "hook").1.starts_with("put "));
    }
    home.link();
    let report = home.report(&["claude", "codex"]);
    for client in ["claude", "codex"] {
        report.says(client, "handshake", Some(true));
        report.says(client, "hook", Some(true));
    }
    report.says("claude", "proof", Some(true));
    home.write(".claude/settings.json", r#"{"enabledPlugins": {"nudge@nudge": false}}"#);
    assert_eq!(home.report(&["claude"]).fails("claude", "configured").1, "nudge init claude");
}

#[test]
fn what_the_plugin_brings_too_is_told() {
    let home = Home::with(&["codex"]);
    home.write(
        ".codex/config.toml",
        &(home.read(".codex/config.toml") + "\n[plugins.\"nudge@nudge\"]\nenabled = true\n"),
    );
    let report = home.report(&["codex"]);
    report.says("codex", "hook", Some(true));
    let fix = report.check("codex", "hook")["fix"].clone();
    assert_eq!(fix, "nudge init codex --undo: the plugin brings the hooks, too");
}

#[test]
fn codex_asks_until_its_leave_is_noted() {
    let home = Home::with(&["codex"]);
    assert!(home.report(&["codex"]).says("codex", "hook", Some(true)).contains("Codex asks once"));
    let file = home.path(".codex/hooks.json");
    let leave = ["session_start", "subagent_start", "user_prompt_submit", "post_tool_use", "session_end"]
        .map(|event| format!("\n[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:0\"\n", file.display()));
    home.write(".codex/config.toml", &(home.read(".codex/config.toml") + &leave.concat()));
    assert!(!home.report(&["codex"]).says("codex", "hook", Some(true)).contains("asks"));
}

#[test]
fn codex_passes_a_session_on_only_when_told_to() {
    let home = Home::with(&[]);
    // After `nudge init` alone, Codex would start the server in another session than its hooks use.
    assert!(home.command(&["init", "codex", "--yes"]).output().unwrap().status.success());
    let (told, fix) = home.report(&["codex"]).fails("codex", "proof");
    assert!(told.starts_with("Codex keeps NUDGE_RUNTIME_DIR from the server"), "{told}");
    let line = format!("env = {{ NUDGE_RUNTIME_DIR = \"{}\" }}", home.runtime.display());
    let file = home.path(".codex/config.toml");
    assert_eq!(fix, format!("put `{line}` under [mcp_servers.nudge] in {}", file.display()));
    // The advice repairs the fault. The settings that pass the variable on repair it too.
    let whole = home.read(".codex/config.toml");
    for line in [line.as_str(), "env_vars = [\"NUDGE_RUNTIME_DIR\"]", "env_vars = [{ name = \"NUDGE_RUNTIME_DIR\" }]"] {
        home.write(
            ".codex/config.toml",
            &whole.replace("[mcp_servers.nudge]\n", &format!("[mcp_servers.nudge]\n{line}\n")),
        );
        home.report(&["codex"]).says("codex", "proof", Some(true));
    }
    home.write(".codex/config.toml", &(whole.clone() + "env_vars = [\"OTHER\"]\n"));
    home.report(&["codex"]).fails("codex", "proof");
    // The same advice corrects an entry with another value.
    home.write(".codex/config.toml", &(whole.clone() + "env = { NUDGE_RUNTIME_DIR = \"/elsewhere\" }\n"));
    assert!(home.report(&["codex"]).fails("codex", "proof").1.contains(&line));
    // Without the variable, Codex has nothing to withhold, so the check passes.
    home.write(".codex/config.toml", &whole);
    let mut command = home.command(&["doctor", "codex"]);
    command.env_remove("NUDGE_RUNTIME_DIR").env("XDG_RUNTIME_DIR", home.path("tmp"));
    assert!(command.output().unwrap().status.success());

    home.write(".codex/config.toml", "[plugins.\"nudge@nudge\"]\nenabled = true\n");
    home.link();
    let (_, fix) = home.report(&["codex"]).fails("codex", "proof");
    assert!(fix.starts_with("put [mcp_servers.nudge] with `command = \"nudge\"`"), "{fix}");
}

#[test]
fn a_server_over_http_is_not_tried() {
    let home = Home::with(&["claude", "zed"]);
    let url = "http://127.0.0.1:9/mcp?token=open-sesame-7319";
    for name in ["url", "httpUrl", "serverUrl"] {
        home.change(".claude.json", |settings| settings["mcpServers"]["nudge"] = json!({"type": "http", name: url}));
        home.change(".config/zed/settings.json", |settings| settings["context_servers"]["nudge"] = json!({name: url}));
        let report = home.report(&["claude", "zed"]);
        for client in ["claude", "zed"] {
            let told = report.says(client, "binary", None);
            assert!(told.starts_with("it is reached over HTTP, which is not tried"), "{told}");
            assert!(told.contains(&format!("`nudge init {client}` registers `nudge serve` over stdio")), "{told}");
            report.says(client, "handshake", None);
            report.says(client, "proof", None);
        }
        report.says("claude", "hook", Some(true));
        assert!(!report.0.to_string().contains("sesame"), "an address may hold a secret");
    }
    home.change(".claude.json", |settings| settings["mcpServers"]["nudge"] = json!({"type": "stdio"}));
    assert_eq!(home.report(&["claude"]).fails("claude", "binary").0, "its entry names no command");
}

#[test]
fn where_no_client_is_found_it_says_so() {
    let home = Home::with(&[]);
    let output = home.run(&["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["clients"], json!([]));
    let names: Vec<_> = report["data"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
    assert_eq!(names, ["model", "agents"], "what is kept is told all the same");
    let agents = &report["data"][1];
    assert!(agents["ok"] == false && agents["fix"].as_str().unwrap().contains("nudge init claude"), "{agents}");
}

#[test]
fn a_session_that_cannot_be_is_told() {
    let home = Home::with(&["claude"]);
    fs::write(&home.runtime, "in the way").unwrap();
    let report = home.report(&["claude"]).0;
    assert_eq!(report["session"]["ok"], false, "{report:#}");
    assert!(report["session"]["fix"].as_str().unwrap().contains("NUDGE_RUNTIME_DIR"), "{report:#}");
}

#[test]
fn a_client_that_asks_before_each_tool_is_told_of_with_its_fix() {
    let home = Home::with(&["claude", "codex", "cursor", "vscode"]);
    let report = home.report(&["claude", "codex", "cursor", "vscode"]);
    for client in ["claude", "codex"] {
        assert!(report.says(client, "allowed", Some(true)).starts_with("without asking, says "));
    }
    for client in ["cursor", "vscode"] {
        report.says(client, "allowed", None);
    }
    // A single missing permission is a fault: a client that runs without a user would refuse that tool.
    home.change(".claude/settings.json", |settings| {
        settings["permissions"]["allow"].as_array_mut().unwrap().pop();
    });
    let codex = home.read(".codex/config.toml").replace("\"approve\"", "\"prompt\"");
    home.write(".codex/config.toml", &codex);
    let report = home.report(&["claude", "codex"]);
    let (told, fix) = report.fails("claude", "allowed");
    assert!(told.contains("asks before it uses the tools") && fix == "nudge init claude", "{told} {fix}");
    // `nudge init` leaves this setting as the user wrote it, so the advice names the line to change.
    let (_, fix) = report.fails("codex", "allowed");
    assert!(fix.contains("mcp_servers.nudge.default_tools_approval_mode = \"approve\""), "{fix}");
}
