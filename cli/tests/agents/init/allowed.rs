//! Tests which tools `nudge init` allows without a question, and which settings it writes for the user.

use std::fs;

use serde_json::{Value, json};

use super::{CODEX, Home};

/// Returns for each client whether its settings allow the tool.
fn allowed(home: &Home, tool: &str) -> [bool; 5] {
    let has = |list: &Value, name: String| list.as_array().is_some_and(|list| list.contains(&json!(name)));
    let zed = home.json(".config/zed/settings.json");
    [
        has(&home.json(".claude/settings.json")["permissions"]["allow"], format!("mcp__nudge__{tool}")),
        home.read(".codex/config.toml").contains("default_tools_approval_mode = \"approve\""),
        home.json(".gemini/settings.json")["mcpServers"]["nudge"]["trust"] == true,
        has(&home.json(".cursor/permissions.json")["mcpAllowlist"], format!("nudge:{tool}")),
        zed["agent"]["tool_permissions"]["tools"][format!("mcp:nudge:{tool}")]["default"] == "allow",
    ]
}

/// Promise (agents): `nudge init` allows each tool by its name, and `--undo` removes only these names.
#[test]
fn every_tool_is_allowed_by_its_name_and_undo_takes_just_these_away() {
    let home = Home::new();
    home.write(
        ".claude/settings.json",
        "{\"permissions\": {\"allow\": [\"Bash(ls)\", \"mcp__nudge__nudge_query\"]}}\n",
    );
    home.write(".cursor/permissions.json", "{\"mcpAllowlist\": [\"other:*\"]}\n");
    home.write(".config/zed/settings.json", "{\"agent\": {\"tool_permissions\": {\"default\": \"confirm\"}}}\n");
    let before = home.files();
    home.init(&["--yes"]);
    let methods = nudge_app::sources::list_methods().into_iter();
    let tools: Vec<_> = methods.filter(|row| row.tool).map(nudge::MethodSpec::tool_name).collect();
    assert!(tools.contains(&"nudge_recall".to_owned()) && tools.len() >= 9);
    for tool in &tools {
        assert_eq!(allowed(&home, tool), [true; 5], "{tool}");
    }
    let claude = home.json(".claude/settings.json");
    assert_eq!(claude["permissions"]["allow"].as_array().unwrap().len(), tools.len() + 1, "each once: {claude}");
    assert!(!claude.to_string().contains('*'), "no wildcard");
    assert_eq!(home.read(".config/nudge/config.toml"), "keep = true\n\n[records]\non = true\n");
    assert_eq!(home.init(&["--yes"]), "nothing to change\n");

    // An undo keeps an entry that another program has added since.
    let more = home.read(".claude/settings.json").replace("\"Bash(ls)\"", "\"Bash(ls)\", \"Bash(id)\"");
    home.write(".claude/settings.json", &more);
    home.write(".config/nudge/config.toml", "# mine\nkeep = true\nmax_hints = 9\nrecords.on = true\n");
    home.init(&["--undo", "--yes"]);
    let claude = home.json(".claude/settings.json");
    assert_eq!(claude["permissions"]["allow"], json!(["Bash(ls)", "Bash(id)", "mcp__nudge__nudge_query"]));
    assert_eq!(claude.get("hooks"), None);
    assert_eq!(home.read(".config/nudge/config.toml").matches(" = true").count(), 0);
    assert!(home.read(".config/nudge/config.toml").contains("max_hints = 9"));
    let after = home.files();
    for (path, text) in &before {
        if !path.ends_with("settings.json") || !path.to_str().unwrap().contains(".claude") {
            assert_eq!(after.get(path), Some(text), "{}", path.display());
        }
    }
}

#[test]
fn what_is_refused_is_not_written() {
    let home = Home::new();
    let answers = [
        ("Make these changes? [y/N, d to see every line]", "y\n"),
        ("Let Gemini CLI use Nudge's tools without asking? [Y/n]", "n\n"),
        ("Keep hints for next time? [Y/n]", "n\n"),
        ("Keep records of what was fixed, decided and planned, for all projects? [Y/n]", "n\n"),
    ];
    let (done, said) = home.asked(&["gemini"], &answers);
    assert!(done && said.contains("Gemini CLI: ready") && said.contains("Hints end with the last agent"), "{said}");
    assert_eq!(home.json(".gemini/settings.json")["mcpServers"]["nudge"].get("trust"), None);
    assert!(!home.path(".config/nudge").exists());
    // The next run asks only these questions. The user has agreed to no change before the first one, so its default
    // answer is no.
    let first = "Let Gemini CLI use Nudge's tools without asking? [y/N]";
    let (done, said) = home.asked(&["gemini"], &[(first, "y\n"), (answers[2].0, "\n"), (answers[3].0, "y\n")]);
    assert!(done && !said.contains(answers[0].0), "{said}");
    assert_eq!(home.json(".gemini/settings.json")["mcpServers"]["nudge"]["trust"], true);
    assert_eq!(home.read(".config/nudge/config.toml"), "keep = true\n\n[records]\non = true\n");
}

#[test]
fn what_the_user_has_set_otherwise_stays() {
    let home = Home::new();
    let codex = format!("{CODEX}[mcp_servers.nudge]\ncommand = \"nudge\"\ndefault_tools_approval_mode = \"prompt\"\n");
    home.write(".codex/config.toml", &codex);
    fs::create_dir_all(home.path(".config/nudge")).unwrap();
    home.write(".config/nudge/config.toml", "# mine\nkeep = false\nrecords.on = false\n");
    home.init(&["codex", "claude", "--yes"]);
    assert!(home.read(".codex/config.toml").contains("default_tools_approval_mode = \"prompt\""));
    assert_eq!(home.read(".config/nudge/config.toml"), "# mine\nkeep = false\nrecords.on = false\n");
    // The user already allows the whole server, so `nudge init` adds no tools.
    home.init(&["--undo", "--yes"]);
    home.write(".claude/settings.json", "{\"permissions\": {\"allow\": [\"mcp__nudge\"]}}\n");
    home.init(&["claude", "--yes"]);
    assert_eq!(home.json(".claude/settings.json")["permissions"]["allow"], json!(["mcp__nudge"]));
    // A list in the file would replace the list in Cursor's own settings, so `nudge init` writes none.
    home.init(&["cursor", "--yes"]);
    assert!(!home.path(".cursor/permissions.json").exists());
}

#[test]
fn records_are_switched_on_by_a_flag_without_a_question() {
    let home = Home::new();
    home.init(&["gemini", "--yes", "--records=ask"]);
    let config = ".config/nudge/config.toml";
    assert_eq!(home.read(config), "keep = true\n\n[records]\non = true\ncapture = \"ask\"\n");
    home.init(&["gemini", "--yes", "--records"]);
    assert!(home.read(config).contains("capture = \"remind\""), "{}", home.read(config));
    home.init(&["--undo", "--yes"]);
    assert!(!home.path(config).exists());
}
