//! Tests `nudge init` in a new home: which files it writes, that a second run changes nothing, and that `--undo`
//! restores every byte.
#![cfg(unix)]

mod allowed;
mod kept;
mod project;
use crate::kit;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kit::pty;
use serde_json::{Value, json};
use tempfile::TempDir;

const SETTINGS: &str = "{\n  // mine\n  \"model\": \"x\",\n  \"hooks\": {\n    \"PostToolUse\": [\n      { \"matcher\": \"Edit\", \"hooks\": [{ \"type\": \"command\", \"command\": \"fmt\" }] },\n    ],\n  },\n}\n";
const CODEX: &str = "# mine\nmodel = \"x\" # kept\n\n[mcp_servers.other]\ncommand = \"y\"\n";

struct Home {
    dir: TempDir,
    binary: PathBuf,
}

impl Home {
    /// Makes a home with traces of every client, and with settings of some clients.
    fn new() -> Self {
        let dir = kit::home();
        for folder in [
            ".claude",
            ".codex",
            ".gemini",
            ".cursor",
            ".config/opencode",
            ".config/zed",
            ".config/Code/User",
            "work",
            "bin",
        ] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let home = Self { dir, binary: env!("CARGO_BIN_EXE_nudge").into() };
        home.write(".claude/settings.json", SETTINGS);
        home.write(".codex/config.toml", CODEX);
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    /// Returns the command `nudge init`, which finds only the programs in `bin`.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("init").args(args).env_clear().env("HOME", self.dir.path()).env("PATH", self.path("bin"));
        command.current_dir(self.path("work")).stdin(std::process::Stdio::null());
        command
    }

    #[track_caller]
    fn init(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    fn refused(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}: {output:?}");
        output
    }

    /// Adds a program to `bin`.
    fn program(&self, name: &str, script: &str) {
        let text = format!("#!/bin/sh\n{script}\n");
        by_another("printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"", &self.path("bin").join(name), &text);
    }

    /// Runs the command on a terminal; after each question, presses the keys beside it.
    fn asked(&self, args: &[&str], answers: &[(&str, &str)]) -> (bool, String) {
        pty::asked(self.command(args), answers)
    }

    /// Returns every file with its text.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        fn walk(folder: &Path, into: &mut BTreeMap<PathBuf, String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, into);
                } else {
                    into.insert(path.clone(), String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(self.dir.path(), &mut files);
        files
    }
}

/// Lets another process write a program. The system runs no file that is open for writing, and a child of a parallel
/// test could inherit such a descriptor from this process.
fn by_another(script: &str, path: &Path, argument: &str) {
    let status = Command::new("sh").args(["-c", script]).arg(path).arg(argument).status().unwrap();
    assert!(status.success());
}

fn handlers(settings: &Value, event: &str) -> Vec<Value> {
    let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
    groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default()).collect()
}

/// Promise (agents): `nudge init` finds the clients, leaves foreign settings unchanged, and changes nothing when run
/// again. `--undo` restores every byte.
#[test]
fn every_client_that_is_found_gets_its_entry_and_undo_brings_back_every_byte() {
    let home = Home::new();
    let before = home.files();
    let shown = home.init(&["--print"]);
    assert!(shown.contains("+[mcp_servers.nudge]") && shown.contains("\nCursor\n--- /dev/null\n"), "{shown}");
    assert_eq!(home.files(), before, "--print changes nothing");
    let refused = home.refused(&[]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--yes"), "nobody can be asked: {refused:?}");
    assert_eq!(home.files(), before);

    let said = home.init(&["--yes"]);
    assert_eq!(said.matches(": ready; restart it\n").count(), 7, "{said}");
    assert!(said.contains("Close it, start it again there"), "what is kept is there again: {said}");
    let command = home.binary.to_str().unwrap();
    for (file, pointer) in [
        (".claude.json", "/mcpServers/nudge"),
        (".cursor/mcp.json", "/mcpServers/nudge"),
        (".gemini/settings.json", "/mcpServers/nudge"),
        (".config/Code/User/mcp.json", "/servers/nudge"),
        (".config/zed/settings.json", "/context_servers/nudge"),
    ] {
        let entry = home.json(file).pointer(pointer).cloned().unwrap_or_else(|| panic!("{file} has no {pointer}"));
        assert_eq!((&entry["command"], &entry["args"]), (&json!(command), &json!(["serve"])), "{file}");
    }
    assert_eq!(home.json(".config/opencode/opencode.json")["mcp"]["nudge"]["command"], json!([command, "serve"]));
    let codex = home.read(".codex/config.toml");
    assert!(
        codex.starts_with(CODEX) && codex.contains(&format!("[mcp_servers.nudge]\ncommand = \"{command}\"")),
        "{codex}"
    );
    let settings = home.read(".claude/settings.json");
    assert!(settings.contains("  // mine\n") && settings.contains("{ \"matcher\": \"Edit\""), "{settings}");
    for event in [
        "SessionStart",
        "SubagentStart",
        "UserPromptSubmit",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SubagentStop",
        "SessionEnd",
    ] {
        assert!(settings.contains(&format!("\"{event}\"")), "{settings}");
    }
    assert_eq!(handlers(&home.json(".codex/hooks.json"), "SessionStart")[0]["command"], format!("{command} hook"));
    assert_eq!(handlers(&home.json(".gemini/settings.json"), "BeforeAgent")[0]["timeout"], 2000);
    assert_eq!(home.json(".cursor/hooks.json")["hooks"]["sessionStart"][0]["command"], format!("{command} hook"));
    let record = fs::metadata(home.path(".local/state/nudge/init.json")).unwrap();
    assert_eq!(record.permissions().mode() & 0o777, 0o600, "it holds what was private");

    let after = home.files();
    assert_eq!(home.init(&["--yes"]), "nothing to change\n");
    assert_eq!(home.files(), after, "twice is once");
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
    assert_eq!(home.init(&["--undo", "--yes"]), "nothing to undo\n");
}

#[test]
fn a_broken_file_is_refused_with_its_position_and_the_others_are_done() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\" 1\n  }\n}\n");
    let before = home.read(".cursor/mcp.json");
    let output = home.refused(&["cursor", "codex", "--yes"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains(".cursor/mcp.json is broken at line 3"), "{said}");
    assert_eq!(home.read(".cursor/mcp.json"), before);
    assert!(!home.path(".cursor/hooks.json").exists(), "nothing of this client is changed");
    assert!(home.read(".codex/config.toml").contains("nudge"));
    home.write(".cursor/mcp.json", "[]");
    home.refused(&["cursor", "--yes"]);
    assert_eq!(home.read(".cursor/mcp.json"), "[]");
}

#[test]
fn after_the_binary_has_moved_the_paths_are_corrected() {
    let mut home = Home::new();
    home.init(&["--all", "--yes"]);
    let old = home.files();
    let moved = home.path("bin/nudge");
    by_another("cp \"$1\" \"$0\"", &moved, home.binary.to_str().unwrap());
    home.binary.clone_from(&moved);
    home.init(&["--all", "--yes"]);
    let new = home.files();
    let (from, to) = (env!("CARGO_BIN_EXE_nudge"), moved.to_str().unwrap());
    for (path, text) in old.iter().filter(|(path, _)| !path.ends_with("init.json")) {
        assert_eq!(new[path], text.replace(from, to), "{}", path.display());
    }
    assert_eq!(home.init(&["--all", "--yes"]), "nothing to change\n");
    // `nudge init` keeps a field that the user has added to Nudge's entry.
    let mut entry = home.json(".claude.json");
    entry["mcpServers"]["nudge"]["env"]["NUDGE_MAX_HINTS"] = json!("10");
    home.write(".claude.json", &entry.to_string());
    assert_eq!(home.init(&["claude", "--yes"]), "nothing to change\n");
}

#[test]
fn the_clients_own_command_is_used_where_there_is_one() {
    let home = Home::new();
    let program = |text: &str| home.program("claude", text);
    home.write(".claude.json", "{\"seen\": 1}\n");
    program(
        "echo \"$@\" > \"$HOME/asked\"; echo '{\"seen\": 2, \"mcpServers\": {\"nudge\": {}}}' > \"$HOME/.claude.json\"",
    );
    let before = home.files();
    home.init(&["claude", "--yes"]);
    let command = home.binary.to_str().unwrap();
    assert_eq!(home.read("asked"), format!("mcp add --scope user nudge -- {command} serve\n"));
    fs::remove_file(home.path("asked")).unwrap();
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before, "what it changed is brought back too");
    program("echo 'Error: it is broken' >&2; echo '    at run (cli.js:1)' >&2; exit 1");
    let before = home.files();
    let output = home
        .command(&["claude", "claude", "--yes"])
        .env("NUDGE_KEEP", "0")
        .env("NUDGE_RECORDS_ON", "0")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed (Error: it is broken)"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("serve` runs ..."), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("Claude Code: ready; restart it\nTry it: "), "{said}");
    assert!(said.contains("Start another one there beside it"), "what is not kept is gone once all are closed: {said}");
    assert_eq!(home.json(".claude.json")["mcpServers"]["nudge"]["command"], command, "it is written all the same");
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
    program("echo '{\"half\": 1}' > \"$HOME/.claude.json\"; exit 3");
    let output = home.command(&["claude", "--yes"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed (exit status: 3)"), "{output:?}");
    home.init(&["--undo", "--yes"]);
    program("exit 1");
    assert_eq!(home.read(".claude.json"), "{\"seen\": 1}\n", "what it wrote before it failed is taken back");
}

#[test]
fn a_command_that_writes_the_file_of_the_hooks_too_loses_nothing() {
    let home = Home::new();
    home.program("gemini", r#"printf '{"mcpServers": {"nudge": {"command": "%s", "args": ["serve"], "trust": false}}}' "$6" > "$HOME/.gemini/settings.json""#);
    let before = home.files();
    home.init(&["gemini", "--yes"]);
    let settings = home.json(".gemini/settings.json");
    assert_eq!(settings["mcpServers"]["nudge"]["trust"], false, "what the command wrote: {settings}");
    assert_eq!(settings["mcpServers"]["nudge"]["command"], home.binary.to_str().unwrap());
    assert_eq!(handlers(&settings, "BeforeAgent").len(), 1);
    assert_eq!(home.init(&["gemini", "--yes"]), "nothing to change\n");
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
    // The client's own command reports success and adds no server, so `nudge init` writes the entry itself.
    home.program("gemini", "");
    home.init(&["gemini", "--yes"]);
    assert_eq!(home.json(".gemini/settings.json")["mcpServers"]["nudge"]["args"], json!(["serve"]));
}

#[test]
fn where_somebody_can_be_asked_a_server_at_login_is_offered() {
    const CHANGES: &str = "Make these changes? [y/N, d to see every line]";
    const UNIT: &str = ".config/systemd/user/nudge.service";
    const LOGIN: &str = "Start a server at your login, too? [y/N]";
    const ALLOW: &str = "Let Codex use Nudge's tools without asking? [Y/n]";
    if !cfg!(target_os = "linux") {
        return;
    }
    let home = Home::new();
    home.program("systemctl", "echo \"$@\" >> \"$HOME/asked\"");
    // Switches keeping off: with kept hints, no server at login is needed.
    fs::create_dir_all(home.path(".config/nudge")).unwrap();
    home.write(".config/nudge/config.toml", "keep = false\nrecords.on = false\n");
    let before = home.files();
    let (done, said) = home.asked(&["codex"], &[(CHANGES, "n\n")]);
    assert!(!done && said.ends_with("Nothing was changed.\n"), "{said}");
    assert_eq!(home.files(), before);

    let (done, said) = home.asked(&["codex"], &[(CHANGES, "n\n")]);
    assert!(!done && said.contains("Codex\n  the server: ") && !said.contains("+[mcp_servers.nudge]"), "{said}");
    let (done, said) = home.asked(&["codex"], &[(CHANGES, "d\n"), (CHANGES, "y\n"), (ALLOW, "n\n"), (LOGIN, "\n")]);
    assert!(done && said.contains("+[mcp_servers.nudge]") && said.contains("Codex: ready"), "{said}");
    assert!(!home.path(UNIT).exists() && !home.path("asked").exists());
    assert!(!home.read(".codex/config.toml").contains("approval"), "it was not allowed");
    home.init(&["--undo", "--yes"]);

    let (done, said) = home.asked(&["codex"], &[(CHANGES, "y\n"), (ALLOW, "\n"), (LOGIN, "yes\n")]);
    assert!(done && said.contains("starts at your login. It ends when you log out"), "{said}");
    let unit = home.read(UNIT);
    assert!(unit.contains(&format!("ExecStart=\"{}\" serve --detach", home.binary.display())), "{unit}");
    assert_eq!(home.read("asked"), "--user enable --now nudge.service\n");
    let (done, said) = home.asked(&["codex"], &[]);
    assert!(done && said.ends_with("nothing to change\n"), "{said}");
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.read("asked"), "--user enable --now nudge.service\n--user disable --now nudge.service\n");
    fs::remove_file(home.path("asked")).unwrap();
    assert_eq!(home.files(), before);
    // With `--yes` the user is not asked about the login. The command only prints a note.
    let output = home.command(&["codex", "--yes"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("`nudge init --login`"), "{output:?}");
    assert!(!home.path(UNIT).exists());
}

#[test]
fn what_the_plugin_brings_is_not_put_in_twice() {
    let home = Home::new();
    home.write(".claude/settings.json", r#"{"enabledPlugins": {"nudge@nudge": true}}"#);
    home.write(".codex/config.toml", "[plugins.\"nudge@nudge\"]\nenabled = true\n");
    let before = home.files();
    let init = || {
        home.command(&["claude", "codex", "--yes"])
            .env("NUDGE_KEEP", "0")
            .env("NUDGE_RECORDS_ON", "0")
            .output()
            .unwrap()
    };
    // The plugin provides everything except the permission, because a plugin cannot allow its own tools.
    let said = String::from_utf8_lossy(&init().stdout).into_owned();
    assert_eq!(
        said.lines().filter(|line| line.contains("ready")).collect::<Vec<_>>(),
        ["Claude Code: ready; restart it"]
    );
    let settings = home.json(".claude/settings.json");
    let allowed = settings["permissions"]["allow"].as_array().unwrap();
    assert!(allowed.contains(&json!("mcp__plugin_nudge_nudge__nudge_recall")), "{settings}");
    assert_eq!(settings.get("hooks"), None);
    let output = init();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "nothing to change\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr).matches("the plugin that").count(), 2, "{output:?}");
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
    home.write(".claude/settings.json", r#"{"enabledPlugins": {"nudge@nudge": false}}"#);
    home.init(&["claude", "--yes"]);
    assert!(home.read(".claude/settings.json").contains("SessionStart"));
}

#[test]
fn a_project_and_its_documents() {
    let home = Home::new();
    home.write("work/AGENTS.md", "# Rules\n\nBe kind.\n");
    let before = home.files();
    let said = home.init(&["claude", "vscode", "--project", "--agents-md", "--yes"]);
    assert!(
        said.contains("Claude Code: written for all who work here\n") && said.contains("`nudge` in PATH"),
        "{said}"
    );
    assert!(!said.contains("Try it") && !said.contains("ready"), "nobody's client may start it yet: {said}");
    assert_eq!(home.json("work/.mcp.json")["mcpServers"]["nudge"]["command"], "nudge", "others have it elsewhere");
    assert_eq!(home.json("work/.vscode/mcp.json")["servers"]["nudge"]["args"], json!(["serve"]));
    assert!(handlers(&home.json("work/.claude/settings.json"), "PostToolUseFailure").len() == 1);
    let rules = home.read("work/AGENTS.md");
    assert!(rules.starts_with("# Rules\n\nBe kind.\n\n<!-- nudge -->\n"), "{rules}");
    assert_eq!(rules.lines().count(), 3 + 1 + 5);
    assert_eq!(home.init(&["claude", "vscode", "--project", "--agents-md", "--yes"]), "nothing to change\n");
    home.init(&["--undo", "--yes"]);
    assert_eq!(home.files(), before);
    home.refused(&["nothing-of-the-kind"]);
    home.refused(&["claude", "--all"]);
}

#[test]
fn what_cannot_be_written_is_told_and_nothing_is_left_on_record() {
    let home = Home::new();
    fs::remove_dir(home.path(".cursor")).unwrap();
    home.write(".cursor", "a file in the way");
    let output =
        home.command(&["cursor", "--yes"]).env("NUDGE_KEEP", "0").env("NUDGE_RECORDS_ON", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(!home.path(".local/state/nudge/init.json").exists());
}

#[test]
fn a_link_in_path_is_what_is_registered() {
    let mut home = Home::new();
    symlink(&home.binary, home.path("bin/nudge")).unwrap();
    home.init(&["cursor", "--yes"]);
    assert_eq!(
        home.json(".cursor/mcp.json")["mcpServers"]["nudge"]["command"],
        home.path("bin/nudge").to_str().unwrap()
    );
    // The path of the binary contains characters that a shell interprets.
    let odd = home.path("a $HOME `id` 'x");
    fs::create_dir(&odd).unwrap();
    fs::remove_file(home.path("bin/nudge")).unwrap();
    by_another("cp \"$1\" \"$0\"", &odd.join("nudge"), home.binary.to_str().unwrap());
    home.binary = odd.join("nudge");
    home.init(&["codex", "--yes"]);
    let line = handlers(&home.json(".codex/hooks.json"), "SessionStart")[0]["command"].as_str().unwrap().to_owned();
    let output = Command::new("sh").args(["-c", &line]).stdin(std::process::Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{line}: {output:?}");
    assert_eq!(home.init(&["codex", "--yes"]), "nothing to change\n");
}

#[test]
fn gemini_may_have_another_home() {
    let home = Home::new();
    fs::create_dir(home.path("other")).unwrap();
    let mut command = home.command(&["gemini", "--yes"]);
    let output = command.env("GEMINI_CLI_HOME", home.path("other")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(home.read("other/.gemini/settings.json").contains("BeforeAgent"));
    assert!(!home.path(".gemini/settings.json").exists());
}

#[test]
fn the_unit_is_corrected_when_the_binary_has_moved() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let mut home = Home::new();
    home.program("systemctl", "exit 0");
    home.init(&["codex", "--login", "--yes"]);
    let moved = home.path("bin/nudge");
    by_another("cp \"$1\" \"$0\"", &moved, home.binary.to_str().unwrap());
    home.binary.clone_from(&moved);
    let output = home.command(&["codex", "--yes"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Hints end"), "one stands: {output:?}");
    let unit = home.read(".config/systemd/user/nudge.service");
    assert!(unit.contains(&format!("ExecStart=\"{}\"", moved.display())), "{unit}");
    home.write(".config/systemd/user/nudge.service", &(unit + "# mine\n"));
    home.init(&["--undo", "--yes"]);
    assert!(!home.path(".config/systemd/user").exists(), "the folders were made for it");
    assert!(home.path(".config").exists());
}

#[test]
fn the_document_needs_no_client() {
    let mut home = Home::new();
    home.dir = kit::home();
    fs::create_dir(home.path("work")).unwrap();
    let said = home.init(&["--agents-md", "--project", "--yes"]);
    assert!(said.ends_with("work/AGENTS.md: written\n"), "{said}");
    assert_eq!(home.read("work/AGENTS.md").lines().count(), 5);
    home.init(&["--undo", "--yes"]);
    assert!(!home.path("work/AGENTS.md").exists());
}

#[test]
fn where_no_client_is_found_it_says_so() {
    let mut home = Home::new();
    home.dir = kit::home();
    fs::create_dir(home.path("work")).unwrap();
    let output = home.refused(&["--yes"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nudge init claude"), "{output:?}");
}

#[test]
fn in_a_clone_the_commands_of_its_files_are_offered() {
    let home = Home::new();
    let clone = home.path("clone");
    fs::create_dir_all(clone.join(".git/objects")).unwrap();
    fs::write(clone.join(".git/HEAD"), "ref: refs/heads/main\n").and(fs::create_dir(clone.join(".git/refs"))).unwrap();
    fs::write(clone.join("Makefile"), "test:\n\ttrue\n").unwrap();
    let run = |args: &[&str]| home.command(args).current_dir(&clone).env("PWD", &clone).output().unwrap();
    let print = run(&["claude", "--print"]);
    assert!(String::from_utf8_lossy(&print.stdout).contains("clone: commands that its own files name"), "{print:?}");
    let mut command = home.command(&["claude"]);
    command.current_dir(&clone).env("PWD", &clone);
    let (done, said) = pty::asked(
        command,
        &[
            ("Make these changes? [y/N, d to see every line]", "d\n"),
            ("+clone/", "y\n"),
            ("without asking? [Y/n]", "\n"),
            ("Keep hints for next time? [Y/n]", "\n"),
            ("for all projects? [Y/n]", "\n"),
            ("its own files name? [Y/n]", "\n"),
        ],
    );
    assert!(done && said.contains("clone: agents are told its commands"), "{said}");
    assert_eq!(home.read(".config/nudge/config.toml"), "keep = true\n\n[records]\non = true\n", "Enter is yes");
    let again = run(&["claude", "--yes"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), "nothing to change\n");
    let undone = run(&["--undo", "--yes"]);
    assert!(String::from_utf8_lossy(&undone.stdout).contains("1 clone is no longer followed"), "{undone:?}");
    assert_eq!(String::from_utf8_lossy(&run(&["--undo", "--yes"]).stdout), "nothing to undo\n");
}
