//! Tests that `nudge init` and its undo keep everything in the user's files that is not Nudge's.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use serde_json::json;

use super::kit::pty::Pty;
use super::kit::system::STRANGER;
use super::{CODEX, Home, SETTINGS, handlers};

#[test]
fn undo_of_a_project_is_of_that_alone() {
    let home = Home::new();
    home.init(&["codex", "--yes"]);
    home.init(&["codex", "--project", "--agents-md", "--yes"]);
    let rules = home.read("work/AGENTS.md");
    home.write("work/AGENTS.md", &format!("# Rules\n\n{rules}Be kind.\n"));
    home.init(&["--undo", "--project", "--yes"]);
    assert!(!home.path("work/.codex/hooks.json").exists());
    assert_eq!(home.read("work/AGENTS.md"), "# Rules\n\nBe kind.\n", "what was added since stays");
    assert!(home.read(".codex/config.toml").contains("nudge"), "the user's stays");
    home.init(&["claude", "--undo", "--yes"]);
    assert!(home.read(".codex/config.toml").contains("nudge"), "another client's stays");
    home.init(&["zed", "--project", "--yes"]);
    home.write("work/.zed/settings.json", &home.read("work/.zed/settings.json").replace('{', "{\n  \"theme\": \"x\","));
    let mut elsewhere = home.command(&["zed", "--undo", "--yes"]);
    let output = elsewhere.current_dir(home.path("bin")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!home.read("work/.zed/settings.json").contains("nudge"));
    // A recorded file is gone. The undo must still restore the other files of the client.
    fs::remove_file(home.path(".codex/hooks.json")).unwrap();
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.read(".codex/config.toml"), CODEX);
}

/// Promise: see `every_client_that_is_found_gets_its_entry_and_undo_brings_back_every_byte`.
#[test]
fn undo_brings_back_an_entry_of_the_users_own() {
    let home = Home::new();
    let own =
        r#"{ "mcpServers": { "nudge": { "command": "nudge", "args": ["serve"], "env": {"NUDGE_MAX_HINTS": "10"} } } }"#;
    home.write(".cursor/mcp.json", own);
    home.write(".codex/config.toml", "[mcp_servers.nudge]\ncommand = \"/old/nudge\"\nargs = [\"serve\"]\n");
    let before = home.files();
    home.init(&["cursor", "codex", "--yes"]);
    let binary = home.binary.to_str().unwrap();
    let entry = &home.json(".cursor/mcp.json")["mcpServers"]["nudge"];
    assert_eq!((&entry["command"], &entry["env"]["NUDGE_MAX_HINTS"]), (&json!(binary), &json!("10")));
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
    home.init(&["cursor", "codex", "--yes"]);
    home.write(".codex/config.toml", &(home.read(".codex/config.toml") + "# mine\n"));
    home.init(&["--undo", "--yes"]);
    assert!(home.read(".codex/config.toml").starts_with("[mcp_servers.nudge]\ncommand = \"/old/nudge\"\n"));
    // An undo leaves an entry that `nudge init` never changed.
    let proxy = r#"{"mcpServers": {"nudge": {"command": "/opt/my/proxy", "args": ["--x"]}}} // mine"#;
    home.write(".cursor/mcp.json", proxy);
    assert_eq!(home.init(&["--undo", "--yes"]), "nothing to undo\n");
    let output = home.refused(&["cursor", "--yes"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("starts something else"), "{output:?}");
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"nudge": {"url": "http://127.0.0.1:8765/mcp"}}}"#);
    home.refused(&["cursor", "--yes"]);
}

#[test]
fn corrected_paths_leave_additions_where_they_are() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"nudge": {"command": "/old/nudge", "args": ["serve"], "env": {"A": "b"} /* mine */}}}"#,
    );
    home.write(
        ".codex/config.toml",
        "[mcp_servers.nudge]\ncommand = \"/old/nudge\"\nargs = [\"serve\"]\nstartup_timeout_sec = 20 # mine\n",
    );
    home.write(
        ".codex/hooks.json",
        r#"{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "NUDGE_HOOK_MS=300 /old/nudge hook", "timeout": 5}]}]}}"#,
    );
    home.init(&["cursor", "codex", "--yes"]);
    let binary = home.binary.to_str().unwrap();
    let cursor = home.read(".cursor/mcp.json");
    assert!(cursor.contains(binary) && cursor.contains(r#""env": {"A": "b"} /* mine */"#), "{cursor}");
    let codex = home.read(".codex/config.toml");
    assert!(codex.contains(binary) && codex.contains("startup_timeout_sec = 20 # mine"), "{codex}");
    let handler = &handlers(&home.json(".codex/hooks.json"), "SessionStart")[0];
    assert_eq!(
        handler,
        &json!({"type": "command", "command": format!("NUDGE_HOOK_MS=300 {binary} hook"), "timeout": 5})
    );
    assert_eq!(home.init(&["cursor", "codex", "--yes"]), "nothing to change\n");
}

#[test]
fn a_hook_at_another_occasion_is_not_taken_for_ours() {
    let home = Home::new();
    home.write(
        ".claude/settings.json",
        r#"{"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "/x/nudge", "args": ["hook"]}]}], "PostToolUseFailure": [{"matcher": "*", "hooks": [{"type": "command", "command": "/x/nudge", "args": ["hook"]}]}]}}"#,
    );
    home.init(&["claude", "--yes"]);
    let settings = home.json(".claude/settings.json");
    assert_eq!(settings["hooks"]["PostToolUse"][1].get("matcher"), None, "after any tool");
    assert_eq!(handlers(&settings, "PostToolUse").len(), 2);
    assert_eq!(handlers(&settings, "PostToolUseFailure").len(), 1, "that one is asked after any tool, too");
    assert_eq!(handlers(&settings, "PostToolUseFailure")[0]["command"], home.binary.to_str().unwrap());
    let mut settings = settings;
    settings["model"] = json!("changed since");
    home.write(".claude/settings.json", &settings.to_string());
    home.init(&["--undo", "--yes"]);
    let left = home.json(".claude/settings.json");
    assert_eq!(handlers(&left, "PostToolUse"), [json!({"type": "command", "command": "/x/nudge", "args": ["hook"]})]);
    assert_eq!(left["hooks"]["PostToolUse"][0]["matcher"], "Edit", "the one that was there, and no other: {left}");
}

/// Promise: see `every_client_that_is_found_gets_its_entry_and_undo_brings_back_every_byte`.
#[test]
fn an_edit_while_the_question_stands_stays() {
    let home = Home::new();
    let (mut terminal, end) = Pty::open();
    let mut command = home.command(&["cursor"]);
    command.stdin(end.try_clone().unwrap()).stdout(end.try_clone().unwrap()).stderr(end);
    let mut child = command.spawn().unwrap();
    drop(command);
    terminal.wait_for("Make these changes?");
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"meanwhile": {"command": "y"}}}"#);
    terminal.press(b"y\n");
    for question in ["Keep hints for next time?", "Keep records of"] {
        terminal.wait_for(question);
        terminal.press(b"y\n");
    }
    drop(terminal.wait_for("Cursor: ready"));
    assert!(child.wait().unwrap().success());
    terminal.finish();
    let servers = home.json(".cursor/mcp.json")["mcpServers"].clone();
    assert!(servers["meanwhile"].is_object() && servers["nudge"].is_object(), "{servers}");
}

#[test]
fn a_name_that_stands_twice_is_refused_with_its_position() {
    let home = Home::new();
    let twice = "{\n  \"mcpServers\": {\"a\": {\"command\": \"a\"}},\n  \"mcpServers\": {}\n}\n";
    home.write(".cursor/mcp.json", twice);
    let output = home.refused(&["cursor", "--yes"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("line 3") && said.contains("`mcpServers` stands there twice"), "{said}");
    assert_eq!(home.read(".cursor/mcp.json"), twice);
}

#[test]
fn marks_line_ends_and_links_stay() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "\u{feff}{\r\n  \"mcpServers\": {}\r\n}\r\n");
    home.write(".codex/config.toml", "\u{feff}model = \"x\"\r\n\r\n[tools]\r\nweb = {a = 1}\r\n");
    home.write(".config/zed/settings.json", "\u{feff}");
    let before = home.files();
    symlink("../elsewhere.json", home.path(".gemini/settings.json")).unwrap();
    home.init(&["cursor", "codex", "zed", "gemini", "--yes"]);
    assert!(home.read(".cursor/mcp.json").starts_with("\u{feff}{\r\n"));
    let codex = home.read(".codex/config.toml");
    assert!(
        codex.starts_with("\u{feff}model") && codex.matches('\n').count() == codex.matches("\r\n").count(),
        "{codex:?}"
    );
    assert!(fs::symlink_metadata(home.path(".gemini/settings.json")).unwrap().is_symlink());
    assert!(home.read("elsewhere.json").contains("nudge"), "it leads there, although nothing was there");
    home.init(&["cursor", "codex", "zed", "--undo", "--yes"]);
    let after = home.files();
    for file in [".cursor/mcp.json", ".codex/config.toml", ".config/zed/settings.json"] {
        assert_eq!(after[&home.path(file)], before[&home.path(file)], "{file}");
    }
}

#[test]
fn no_secret_of_a_file_is_shown_or_copied() {
    let home = Home::new();
    let token = ["ghp", "_", &"a1B2c3D4e5F6".repeat(3)].concat();
    let settings = format!(
        "{{\n  \"mcpServers\": {{\n    \"other\": {{\"command\": \"y\", \"env\": {{\"GITHUB_TOKEN\": \"{token}\"}}}}\n  }}\n}}\n"
    );
    home.write(".cursor/mcp.json", &settings);
    for how in ["--print", "--yes"] {
        let output = home.command(&["cursor", how]).output().unwrap();
        let said = format!("{output:?}");
        assert!(output.status.success() && !said.contains(&token), "{said}");
        assert_eq!(said.contains("looks like a credential"), how == "--print", "{said}");
    }
    assert!(!home.read(".local/state/nudge/init.json").contains(&token));
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.read(".cursor/mcp.json"), settings);
}

#[test]
fn links_and_permissions_stay() {
    let home = Home::new();
    fs::create_dir(home.path("dotfiles")).unwrap();
    fs::rename(home.path(".claude/settings.json"), home.path("dotfiles/settings.json")).unwrap();
    symlink("../dotfiles/settings.json", home.path(".claude/settings.json")).unwrap();
    home.write(".claude.json", "{}");
    fs::set_permissions(home.path(".claude.json"), fs::Permissions::from_mode(0o600)).unwrap();
    home.init(&["claude", "--yes"]);
    assert!(fs::symlink_metadata(home.path(".claude/settings.json")).unwrap().is_symlink());
    assert!(home.read("dotfiles/settings.json").contains("SessionStart"));
    assert_eq!(fs::metadata(home.path(".claude.json")).unwrap().permissions().mode() & 0o777, 0o600);
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.read("dotfiles/settings.json"), SETTINGS);
    assert!(fs::symlink_metadata(home.path(".claude/settings.json")).unwrap().is_symlink());
}

#[test]
fn a_file_that_was_changed_since_loses_only_what_is_ours() {
    let home = Home::new();
    home.init(&["claude", "codex", "--yes"]);
    let changed = home.read(".claude/settings.json").replace("\"model\": \"x\"", "\"model\": \"y\"");
    home.write(".claude/settings.json", &changed);
    home.write(".codex/config.toml", &format!("{}\n[tui]\ntheme = \"z\"\n", home.read(".codex/config.toml")));
    home.init(&["--undo", "--yes"]);
    let settings = home.read(".claude/settings.json");
    assert!(
        settings.contains("\"model\": \"y\"") && settings.contains("fmt") && settings.contains("// mine"),
        "{settings}"
    );
    assert!(!settings.contains("nudge") && !settings.contains("SessionStart"), "{settings}");
    let codex = home.read(".codex/config.toml");
    assert!(
        codex.contains("theme = \"z\"") && codex.contains("[mcp_servers.other]") && !codex.contains("nudge"),
        "{codex}"
    );
}

#[test]
fn what_cannot_be_undone_now_can_be_undone_later() {
    let home = Home::new();
    let before = home.files();
    home.init(&["cursor", "codex", "--yes"]);
    let (file, aside) = (home.path(".cursor/mcp.json"), home.path("aside"));
    fs::rename(&file, &aside).unwrap();
    fs::create_dir(&file).unwrap();
    let output = home.refused(&["--undo", "--yes"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("mcp.json"), "{output:?}");
    assert_eq!(home.read(".codex/config.toml"), CODEX, "the others are undone");
    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
}

/// Other people have written the files of a checkout. Their links must not lead `nudge init` out of the project.
#[test]
fn of_a_project_nothing_outside_it_is_read_or_written() {
    let home = Home::new();
    home.write(".bashrc", "alias x=y\n");
    home.write(".ssh-rc", "token: of-somebody\n");
    fs::create_dir(home.path("elsewhere")).unwrap();
    let before = home.files();
    for (link, target, client) in [
        (".mcp.json", "../.bashrc", "claude"),
        (".mcp.json", "../not-there-yet", "claude"),
        (".claude", "../elsewhere", "claude"),
        (".cursor", "/nowhere/at/all", "cursor"),
        ("AGENTS.md", "../.ssh-rc", "claude"),
    ] {
        let link = home.path("work").join(link);
        symlink(target, &link).unwrap();
        for how in ["--print", "--yes"] {
            let args = [client, "--project", "--agents-md", how];
            let output = home.command(&args).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            assert!(!output.status.success(), "{args:?}: {said}");
            assert!(said.contains(&format!("is a link to {target}, which is not in the project")), "{args:?}: {said}");
            assert!(!said.contains("alias") && !said.contains("of-somebody"), "{said}");
        }
        home.command(&["--undo", "--project", "--yes"]).output().unwrap();
        fs::remove_file(&link).unwrap();
        assert_eq!(home.files(), before, "{}", link.display());
    }
    // A link to a file inside the project is allowed.
    fs::create_dir(home.path("work/settings")).unwrap();
    symlink("settings/mcp.json", home.path("work/.mcp.json")).unwrap();
    home.write("work/settings/mcp.json", "{}");
    home.init(&["claude", "--project", "--yes"]);
    assert!(home.read("work/settings/mcp.json").contains("nudge"));
}

/// After `nudge init` a link has replaced the recorded file. The undo must not follow the link.
#[test]
fn undo_does_not_follow_a_link_out_of_the_project() {
    let home = Home::new();
    home.init(&["claude", "--project", "--yes"]);
    let written = home.read("work/.mcp.json");
    home.write("outside.json", &written);
    fs::remove_file(home.path("work/.mcp.json")).unwrap();
    symlink("../outside.json", home.path("work/.mcp.json")).unwrap();
    let output = home.command(&["--undo", "--project", "--yes"]).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(home.read("outside.json"), written);
}

/// The settings may be a pipe, a device or a huge file. `nudge init` and the doctor name the file; they neither wait
/// for it nor read it to its end.
#[test]
fn pipes_devices_and_huge_files_among_settings_are_refused() {
    for (odd, said) in [("pipe", "regular file"), ("/dev/zero", "regular file"), ("huge", "33554432 bytes")] {
        let home = Home::new();
        let path = home.path(".cursor/mcp.json");
        match odd {
            "pipe" => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
            "huge" => fs::File::create(&path).unwrap().set_len(40 << 20).unwrap(),
            device => symlink(device, &path).unwrap(),
        }
        for args in [&["cursor", "--yes"][..], &["cursor", "--print"]] {
            let output = home.command(args).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && told.contains(said), "{odd} {args:?}: {told}");
        }
        let mut doctor = std::process::Command::new(&home.binary);
        doctor.arg("doctor").arg("cursor").env_clear().env("HOME", home.dir.path()).env("PATH", home.path("bin"));
        let output = doctor.current_dir(home.path("work")).stdin(std::process::Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains(said), "{odd}: {output:?}");
        // The record of `nudge init` may also be a pipe, a device or a huge file.
        fs::create_dir_all(home.path(".local/state/nudge")).unwrap();
        fs::rename(&path, home.path(".local/state/nudge/init.json")).unwrap();
        let output = home.command(&["--undo", "--yes"]).output().unwrap();
        assert!(!output.status.success(), "{odd}: {output:?}");
    }
}

/// Several processes run at once, and each waits until no other has locked the record. So the record has the changes of
/// all, and all can be undone.
#[test]
fn many_at_once_lose_no_record() {
    let home = Home::new();
    let before = home.files();
    let clients = ["claude", "codex", "cursor", "vscode", "gemini", "opencode", "zed"];
    let running: Vec<_> = clients
        .iter()
        .map(|client| home.command(&[client, "--yes"]).stderr(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    assert_ne!(home.files(), before);
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
}

/// A new file has the permissions that the user's umask leaves.
#[test]
fn new_files_keep_to_the_umask() {
    let home = Home::new();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "umask 077; exec \"$0\" init cursor --yes"]).arg(&home.binary);
    command.env_clear().env("HOME", home.dir.path()).env("PATH", "/usr/bin:/bin").current_dir(home.path("work"));
    assert!(command.output().unwrap().status.success());
    let mode = fs::metadata(home.path(".cursor/mcp.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A relative `XDG_STATE_HOME` is ignored: otherwise the place of the record would depend on the current folder.
#[test]
fn a_relative_folder_for_state_is_passed_over() {
    let home = Home::new();
    let command = |args: &[&str]| {
        let mut command = std::process::Command::new(&home.binary);
        command.env_clear().env("HOME", home.dir.path()).env("PATH", "/usr/bin:/bin").env("XDG_STATE_HOME", "state");
        command.args(args).current_dir(home.path("work"));
        assert!(command.output().unwrap().status.success(), "{args:?}");
    };
    command(&["init", "cursor", "--yes"]);
    assert!(!home.path("work/state").exists());
    assert!(home.path(".local/state/nudge/init.json").exists());
    command(&["init", "--undo", "--yes"]);
    assert!(!home.path(".cursor/mcp.json").exists());
}

/// `nudge init` refuses to write as root into another user's folder: that user could not change the new files.
#[test]
fn root_makes_nothing_in_the_folders_of_others() {
    let home = Home::new();
    if chown(home.dir.path(), Some(STRANGER), None).is_err() {
        return; // Only root can give a folder away.
    }
    let output = home.refused(&["cursor", "--yes"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("belongs to another user"), "{output:?}");
    chown(home.dir.path(), Some(0), None).unwrap();
    chown(home.path("work"), Some(STRANGER), None).unwrap();
    let output = home.refused(&["cursor", "--project", "--yes"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("belongs to another user"), "{output:?}");
    assert!(!home.path("work/.cursor").exists() && !home.path(".cursor/mcp.json").exists());
}

/// The marks show where Nudge's block is. A text between them that the user has changed belongs to the user.
#[test]
fn a_text_of_the_users_between_the_marks_stays() {
    let home = Home::new();
    home.init(&["cursor", "--project", "--agents-md", "--yes"]);
    let own = home.read("work/AGENTS.md").replace("Hints are notes, not orders.", "Ask me first.");
    home.write("work/AGENTS.md", &own);
    home.init(&["cursor", "--project", "--agents-md", "--yes"]);
    assert_eq!(home.read("work/AGENTS.md"), own);
    home.init(&["--undo", "--project", "--yes"]);
    assert_eq!(home.read("work/AGENTS.md"), own);
}

/// The undo removes a file that `nudge init` made behind links. The links belong to the user and stay.
#[test]
fn undo_takes_back_what_was_made_behind_links() {
    let home = Home::new();
    fs::create_dir(home.path("dotfiles")).unwrap();
    symlink("../dotfiles/link", home.path(".cursor/mcp.json")).unwrap();
    symlink("mcp.json", home.path("dotfiles/link")).unwrap();
    home.init(&["cursor", "--yes"]);
    assert!(home.read("dotfiles/mcp.json").contains("nudge"));
    home.init(&["--undo", "--yes"]);
    for (link, target) in [(".cursor/mcp.json", "../dotfiles/link"), ("dotfiles/link", "mcp.json")] {
        assert_eq!(fs::read_link(home.path(link)).unwrap().to_str(), Some(target));
    }
    assert!(!home.path("dotfiles/mcp.json").exists());
    // A link has replaced the file since. It leads to a foreign file, which the undo keeps even if the content is the
    // same.
    home.init(&["gemini", "--yes"]);
    let written = home.read(".gemini/settings.json");
    home.write("dotfiles/settings.json", &written);
    fs::remove_file(home.path(".gemini/settings.json")).unwrap();
    symlink("../dotfiles/settings.json", home.path(".gemini/settings.json")).unwrap();
    home.init(&["--undo", "--yes"]);
    assert!(home.path("dotfiles/settings.json").exists());
}
