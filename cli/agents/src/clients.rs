//! The coding agents that Nudge supports: the files in which each keeps its settings, and the entries that Nudge
//! writes there.
//!
//! Change this file when a client changes its files. A new client needs a constant here and its name in `args.rs`.
//! Hooks with their own format also need code in `event.rs`.

use std::path::{Path, PathBuf};

use nudge::Result;
use nudge_app::config::{ConfigFile, ConfigFormat};
use nudge_core::text::after_mark;
use serde_json::{Value, json};

use super::permission::{PermissionGrant, ToolPermission, list_tools};
use super::plan::shell_line;
use super::within;

/// A coding agent.
pub struct ClientSpec {
    /// The client's name for `nudge init`.
    pub name: &'static str,
    /// The client's name to show to users.
    pub title: &'static str,
    /// The client's command; `None` for a client without a command.
    pub program: Option<&'static str>,
    /// Returns the file and the entry that register an MCP server.
    pub server: fn(&ClientFolders) -> McpServerEntry,
    /// Returns the file and the entries of the hooks. `None` when the client has no hooks whose output reaches the
    /// model.
    pub hooks: Option<fn(&ClientFolders) -> ClientHooks>,
    /// Returns the setting that switches Nudge's plugin on; its value is true or an object. `None` for a client without
    /// plugins.
    pub plugin: Option<fn(&ClientFolders) -> PluginSwitch>,
    /// Returns the permission to use Nudge's tools without asking. `None` for a client that never asks, or that stores
    /// the user's answers where only the client itself may write.
    pub permission: Option<fn(&ClientFolders) -> ToolPermission>,
    /// Returns the same permission for the tools of the plugin.
    pub plugin_permission: Option<fn(&ClientFolders) -> ToolPermission>,
    /// Returns a folder or file that exists if the client is installed. It counts when the client's command is not
    /// found.
    pub trace: fn(&ClientFolders) -> PathBuf,
}

impl ClientSpec {
    /// Returns the permission to use the tools without asking, for the user's own settings. Returns `None` for a
    /// project's settings, because each user must decide alone.
    pub fn find_permission(&self, place: &ClientFolders) -> Option<ToolPermission> {
        let given = if self.plugin_file(place).is_some() { self.plugin_permission } else { self.permission };
        given.filter(|_| place.project.is_none()).map(|permission| permission(place))
    }

    /// Returns the file that switches Nudge's plugin on. Returns `None` when the plugin is off.
    pub fn plugin_file(&self, place: &ClientFolders) -> Option<PathBuf> {
        let plugin = (self.plugin?)(place);
        let value = place.read(&plugin.file, plugin.form).ok()?.get(plugin.path)?;
        let is_on = value == true || (value.is_object() && value["enabled"] != false);
        is_on.then_some(plugin.file)
    }
}

/// The folders in which Nudge looks for the files of clients.
#[derive(Clone)]
pub struct ClientFolders {
    /// The user's home.
    pub home: PathBuf,
    /// The project's folder, for `--project`; `None` for the user's settings.
    pub project: Option<PathBuf>,
    /// The command that the settings start. It is the absolute path of the binary; in a project, which other users
    /// share, it is only the name.
    pub binary: String,
    /// Reads an environment variable. Some variables change where a client has its files.
    pub env: fn(&str) -> Option<String>,
}

/// The entry of an MCP server.
pub struct McpServerEntry {
    pub file: PathBuf,
    pub form: ConfigFormat,
    pub path: &'static [&'static str],
    pub entry: Value,
    /// The client's own command that adds the entry to the user's settings, if the client has one.
    pub command: Option<Vec<String>>,
}

/// The setting by which a client switches plugins on.
pub struct PluginSwitch {
    pub file: PathBuf,
    pub form: ConfigFormat,
    pub path: &'static [&'static str],
}

/// Hooks in the file format of Claude Code, which other clients also use.
pub struct ClientHooks {
    pub file: PathBuf,
    /// The events, each with its matcher.
    pub events: &'static [(&'static str, Option<&'static str>)],
    /// The handler of every event.
    pub handler: Value,
    /// True when the file has groups of handlers, each with a matcher.
    pub grouped: bool,
    /// The number that the file must have as `version`.
    pub version: Option<u64>,
    /// The TOML file in which a client stores the user's permission to run a hook; the key is
    /// `hooks.state."FILE:EVENT:GROUP:HANDLER".trusted_hash`. `None` for a client that does not ask.
    pub trust: Option<PathBuf>,
}

/// The end of a hook's command line in a project, for sh, Bash, Zsh, fish and PowerShell.
const GUARD: &str = "; exit 0";
/// The same for cmd, with which Codex runs hooks on Windows. Windows PowerShell does not have `||`.
const CMD_GUARD: &str = " || exit 0";

/// Every client, in the order in which reports list them.
pub const ALL: &[ClientSpec] = &[CLAUDE, CODEX, CURSOR, VSCODE, GEMINI, OPENCODE, ZED];

impl ClientFolders {
    /// Reads a client's file. A project's file must be inside the project.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out of the project; the errors of [`ConfigFile::read`].
    pub fn read(&self, file: &Path, form: ConfigFormat) -> Result<ConfigFile> {
        within::check_within(self.project.as_deref(), file)?;
        ConfigFile::read(file, form)
    }

    /// Returns the project's file if there is a project, and otherwise the user's file.
    fn choose_file(&self, project: &str, user: impl FnOnce() -> PathBuf) -> PathBuf {
        self.project.as_ref().map_or_else(user, |folder| folder.join(project))
    }

    fn find_folder(&self, variable: &str, default: &str) -> PathBuf {
        (self.env)(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .unwrap_or_else(|| self.home.join(default))
    }

    /// Returns the system's folder for settings.
    fn config_home(&self) -> PathBuf {
        if cfg!(windows) {
            self.find_folder("APPDATA", "AppData/Roaming")
        } else {
            self.find_folder("XDG_CONFIG_HOME", ".config")
        }
    }

    fn build_words(&self, command: &[&str], rest: &[&str]) -> Option<Vec<String>> {
        let all = command.iter().copied().chain([self.binary.as_str()]).chain(rest.iter().copied());
        self.project.is_none().then(|| all.map(str::to_owned).collect())
    }

    /// Returns the command of a hook as a single shell line. In a project, appends `guard`, because users without Nudge
    /// also use the project's settings. With the guard, a hook whose program is missing exits with 0, and clients
    /// ignore its stderr.
    fn build_hook_line(&self, guard: &str) -> String {
        let line = self.build_bare_line();
        if self.project.is_some() { line + guard } else { line }
    }

    fn build_bare_line(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:\\".contains(c);
        let binary = &self.binary;
        if binary.chars().all(plain) {
            format!("{binary} hook")
        } else if cfg!(windows) {
            // A file name on Windows cannot contain a quote.
            format!("\"{binary}\" hook")
        } else {
            format!("{} hook", shell_line(std::slice::from_ref(binary)))
        }
    }

    /// Returns the server's entry in the format that most clients share.
    fn build_stdio_entry(&self) -> Value {
        json!({"type": "stdio", "command": self.binary, "args": ["serve"], "env": {}})
    }
}

/// The events at which the hook tells the agent something or learns an outcome. Only Claude Code reports how a command
/// ended, so only it has events for failures and outcomes. After any tool, the hook can tell the agent a signal of
/// another agent. Before a turn ends, it can remind the agent to save records. At the end of a session, it starts a
/// capture if the user wants that.
const CLAUDE_EVENTS: &[(&str, Option<&str>)] = &[
    ("SessionStart", None),
    ("SubagentStart", None),
    ("UserPromptSubmit", None),
    ("PostToolUse", None),
    ("PostToolUseFailure", None),
    ("Stop", None),
    ("SubagentStop", Some("Plan")),
    ("SessionEnd", None),
];

const CLAUDE: ClientSpec = ClientSpec {
    name: "claude",
    title: "Claude Code",
    program: Some("claude"),
    server: |place| McpServerEntry {
        file: place.choose_file(".mcp.json", || match (place.env)("CLAUDE_CONFIG_DIR") {
            Some(folder) => PathBuf::from(folder).join(".claude.json"),
            None => place.home.join(".claude.json"),
        }),
        form: ConfigFormat::Json,
        path: &["mcpServers", "nudge"],
        entry: place.build_stdio_entry(),
        command: place.build_words(&["claude", "mcp", "add", "--scope", "user", "nudge", "--"], &["serve"]),
    },
    hooks: Some(|place| ClientHooks {
        file: claude_settings(place),
        events: CLAUDE_EVENTS,
        handler: if place.project.is_some() {
            json!({"type": "command", "command": place.build_hook_line(GUARD), "timeout": 2})
        } else {
            json!({"type": "command", "command": place.binary, "args": ["hook"], "timeout": 2})
        },
        grouped: true,
        version: None,
        trust: None,
    }),
    plugin: Some(|place| PluginSwitch {
        file: claude_settings(place),
        form: ConfigFormat::Json,
        path: &["enabledPlugins", "nudge@nudge"],
    }),
    permission: Some(|place| claude_permission(place, "mcp__nudge")),
    plugin_permission: Some(|place| claude_permission(place, "mcp__plugin_nudge_nudge")),
    trace: |place| place.find_folder("CLAUDE_CONFIG_DIR", ".claude"),
};

/// Returns one rule for each tool of a server. A wildcard would also allow the new tools of a later version.
fn claude_permission(place: &ClientFolders, server: &str) -> ToolPermission {
    ToolPermission {
        file: claude_settings(place),
        form: ConfigFormat::Json,
        grant: PermissionGrant::Names {
            list: &["permissions", "allow"],
            names: list_tools().into_iter().map(|tool| format!("{server}__{tool}")).collect(),
            covered_by: vec![server.to_owned(), format!("{server}__*")],
            makes: true,
        },
    }
}

fn claude_settings(place: &ClientFolders) -> PathBuf {
    place.choose_file(".claude/settings.json", || {
        place.find_folder("CLAUDE_CONFIG_DIR", ".claude").join("settings.json")
    })
}

const CODEX: ClientSpec = ClientSpec {
    name: "codex",
    title: "Codex",
    program: Some("codex"),
    server: |place| McpServerEntry {
        file: place.choose_file(".codex/config.toml", || place.find_folder("CODEX_HOME", ".codex").join("config.toml")),
        form: ConfigFormat::Toml,
        path: &["mcp_servers", "nudge"],
        entry: json!({"command": place.binary, "args": ["serve"]}),
        command: place.build_words(&["codex", "mcp", "add", "nudge", "--"], &["serve"]),
    },
    hooks: Some(|place| ClientHooks {
        file: place.choose_file(".codex/hooks.json", || place.find_folder("CODEX_HOME", ".codex").join("hooks.json")),
        events: &[
            ("SessionStart", None),
            ("SubagentStart", None),
            ("UserPromptSubmit", None),
            ("PostToolUse", None),
            ("SessionEnd", None),
        ],
        handler: json!({"type": "command", "command": place.build_hook_line(CMD_GUARD), "timeout": 2}),
        grouped: true,
        version: None,
        trust: Some(codex_config(place)),
    }),
    plugin: Some(|place| PluginSwitch {
        file: codex_config(place),
        form: ConfigFormat::Toml,
        path: &["plugins", "nudge@nudge"],
    }),
    permission: Some(|place| ToolPermission {
        file: codex_config(place),
        form: ConfigFormat::Toml,
        grant: PermissionGrant::Values(vec![make_setting(
            &["mcp_servers", "nudge", "default_tools_approval_mode"],
            "approve",
        )]),
    }),
    plugin_permission: None,
    trace: |place| place.find_folder("CODEX_HOME", ".codex"),
};

/// Returns the user's configuration file, which Codex itself also writes.
fn codex_config(place: &ClientFolders) -> PathBuf {
    place.find_folder("CODEX_HOME", ".codex").join("config.toml")
}

fn make_setting(path: &[&str], value: impl Into<Value>) -> (Vec<String>, Value) {
    (path.iter().map(|&name| name.to_owned()).collect(), value.into())
}

const CURSOR: ClientSpec = ClientSpec {
    name: "cursor",
    title: "Cursor",
    program: None,
    server: |place| McpServerEntry {
        file: place.choose_file(".cursor/mcp.json", || place.home.join(".cursor/mcp.json")),
        form: ConfigFormat::Json,
        path: &["mcpServers", "nudge"],
        entry: place.build_stdio_entry(),
        command: None,
    },
    hooks: Some(|place| ClientHooks {
        file: place.choose_file(".cursor/hooks.json", || place.home.join(".cursor/hooks.json")),
        events: &[("sessionStart", None)],
        handler: json!({"command": place.build_hook_line(GUARD)}),
        grouped: false,
        version: Some(1),
        trust: None,
    }),
    plugin: None,
    permission: Some(|place| ToolPermission {
        file: place.home.join(".cursor/permissions.json"),
        form: ConfigFormat::Json,
        grant: PermissionGrant::Names {
            list: &["mcpAllowlist"],
            names: list_tools().into_iter().map(|tool| format!("nudge:{tool}")).collect(),
            covered_by: vec!["nudge:*".into(), "*:*".into()],
            // If this file had a list, the list would replace the one in Cursor's own settings.
            makes: false,
        },
    }),
    plugin_permission: None,
    trace: |place| place.home.join(".cursor"),
};

const VSCODE: ClientSpec = ClientSpec {
    name: "vscode",
    title: "VS Code",
    program: Some("code"),
    server: |place| McpServerEntry {
        file: place.choose_file(".vscode/mcp.json", || vscode_folder(place).join("User/mcp.json")),
        form: ConfigFormat::Json,
        path: &["servers", "nudge"],
        entry: json!({"type": "stdio", "command": place.binary, "args": ["serve"]}),
        command: place.project.is_none().then(|| {
            let entry = json!({"name": "nudge", "type": "stdio", "command": place.binary, "args": ["serve"]});
            vec!["code".into(), "--add-mcp".into(), entry.to_string()]
        }),
    },
    hooks: None,
    plugin: None,
    // VS Code stores the user's answers in its own database.
    permission: None,
    plugin_permission: None,
    trace: vscode_folder,
};

fn vscode_folder(place: &ClientFolders) -> PathBuf {
    if cfg!(target_os = "macos") {
        place.home.join("Library/Application Support/Code")
    } else {
        place.config_home().join("Code")
    }
}

const GEMINI: ClientSpec = ClientSpec {
    name: "gemini",
    title: "Gemini CLI",
    program: Some("gemini"),
    server: |place| McpServerEntry {
        file: gemini_settings(place),
        form: ConfigFormat::Json,
        path: &["mcpServers", "nudge"],
        entry: json!({"command": place.binary, "args": ["serve"]}),
        command: place.build_words(&["gemini", "mcp", "add", "--scope", "user", "nudge"], &["serve"]),
    },
    hooks: Some(|place| ClientHooks {
        file: gemini_settings(place),
        events: &[("SessionStart", None), ("BeforeAgent", None), ("AfterTool", Some("run_shell_command"))],
        // Gemini CLI reads the timeout as milliseconds.
        handler: json!({"type": "command", "command": place.build_hook_line(GUARD), "timeout": 2000}),
        grouped: true,
        version: None,
        trust: None,
    }),
    plugin: None,
    permission: Some(|place| ToolPermission {
        file: gemini_settings(place),
        form: ConfigFormat::Json,
        grant: PermissionGrant::Values(vec![make_setting(&["mcpServers", "nudge", "trust"], true)]),
    }),
    plugin_permission: None,
    trace: |place| gemini_home(place).join(".gemini"),
};

fn gemini_settings(place: &ClientFolders) -> PathBuf {
    place.choose_file(".gemini/settings.json", || gemini_home(place).join(".gemini/settings.json"))
}

fn gemini_home(place: &ClientFolders) -> PathBuf {
    place.find_folder("GEMINI_CLI_HOME", "")
}

const OPENCODE: ClientSpec = ClientSpec {
    name: "opencode",
    title: "opencode",
    program: Some("opencode"),
    server: |place| McpServerEntry {
        file: place.choose_file("opencode.json", || {
            let folder = place.find_folder("XDG_CONFIG_HOME", ".config").join("opencode");
            let jsonc = folder.join("opencode.jsonc");
            if jsonc.is_file() { jsonc } else { folder.join("opencode.json") }
        }),
        form: ConfigFormat::Json,
        path: &["mcp", "nudge"],
        entry: json!({"type": "local", "command": [place.binary, "serve"], "enabled": true}),
        // opencode's own command asks questions, so Nudge cannot run it.
        command: None,
    },
    hooks: None,
    plugin: None,
    // opencode asks only if its user has configured this.
    permission: None,
    plugin_permission: None,
    trace: |place| place.find_folder("XDG_CONFIG_HOME", ".config").join("opencode"),
};

const ZED: ClientSpec = ClientSpec {
    name: "zed",
    title: "Zed",
    program: None,
    server: |place| McpServerEntry {
        file: place.choose_file(".zed/settings.json", || zed_folder(place).join("settings.json")),
        form: ConfigFormat::Json,
        path: &["context_servers", "nudge"],
        entry: json!({"command": place.binary, "args": ["serve"], "env": {}}),
        command: None,
    },
    hooks: None,
    plugin: None,
    permission: Some(|place| {
        let allowed = |tool: String| {
            make_setting(&["agent", "tool_permissions", "tools", &format!("mcp:nudge:{tool}"), "default"], "allow")
        };
        ToolPermission {
            file: zed_folder(place).join("settings.json"),
            form: ConfigFormat::Json,
            grant: PermissionGrant::Values(list_tools().into_iter().map(allowed).collect()),
        }
    }),
    plugin_permission: None,
    trace: zed_folder,
};

fn zed_folder(place: &ClientFolders) -> PathBuf {
    if cfg!(windows) {
        place.config_home().join("Zed")
    } else {
        place.find_folder("XDG_CONFIG_HOME", ".config").join("zed")
    }
}

/// Returns the command line of a hook without the guard at its end.
pub fn strip_guard(line: &str) -> &str {
    [GUARD, CMD_GUARD].iter().find_map(|guard| line.strip_suffix(guard)).unwrap_or(line)
}

/// Returns true when a hook's handler runs Nudge, whatever path its binary has.
pub fn is_ours(handler: &Value) -> bool {
    let Some(command) = handler["command"].as_str() else { return false };
    match strip_guard(command).strip_suffix(" hook") {
        Some(path) => is_nudge(path),
        None => is_nudge(command) && handler["args"] == json!(["hook"]),
    }
}

/// Returns true when a server's entry starts Nudge, whatever path its binary has.
pub fn starts_nudge(entry: &Value) -> bool {
    let command = &entry["command"];
    [command, &command[0], &command["path"]].into_iter().filter_map(Value::as_str).any(is_nudge)
}

fn is_nudge(path: &str) -> bool {
    let name = after_mark(path.trim_end_matches(['"', '\'']), &['/', '\\', ' ', '"', '\'']);
    Path::new(name).file_stem().is_some_and(|stem| stem == "nudge")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_offers_every_client() {
        assert_eq!(ALL.iter().map(|client| client.name).collect::<Vec<_>>(), crate::args::CLIENTS);
    }

    #[test]
    fn our_handlers_are_known_wherever_the_binary_is() {
        for command in [
            "NUDGE_HOOK_MS=90 /x/nudge hook",
            "'/a $b/nudge' hook",
            "nudge hook",
            "nudge hook; exit 0",
            "NUDGE_HOOK_MS=90 nudge hook || exit 0",
            "/a/b/nudge hook",
            "\"/a b/nudge\" hook",
            "\"C:\\x\\nudge.exe\" hook",
        ] {
            assert!(is_ours(&json!({"command": command})), "{command}");
        }
        assert!(is_ours(&json!({"command": "/x/nudge", "args": ["hook"]})));
        for other in [
            json!({"command": "nudge"}),
            json!({"command": "/x/nudger hook"}),
            json!({"command": "hook"}),
            json!({"command": "nudge hook; exit 1"}),
            json!({}),
        ] {
            assert!(!is_ours(&other), "{other}");
        }
    }
}
