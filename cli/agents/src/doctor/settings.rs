//! Reads the server's entry and the hooks from a client's settings: from those of the user, of a project, or of the
//! plugin.

use std::path::{Path, PathBuf};

use nudge::{Error, ErrorKind};
use nudge_app::config::{ConfigFile, ConfigFormat};
use serde_json::Value;

use super::super::clients::{ClientFolders, ClientHooks, ClientSpec};
use super::super::plan;
use super::plain::NotStarted;
use super::{DoctorCheck, launch, split_advice};

/// The plugin's server entry. It is built in, because only the client knows the folder of the plugin.
const PLUGIN_SERVER: &str = include_str!("../../../plugin/.mcp.json");
const PLUGIN_HOOKS: &str = include_str!("../../../plugin/hooks/hooks.json");

/// A client's settings: those of the user or of a project.
pub struct ClientSettings<'a> {
    pub client: &'static ClientSpec,
    pub place: &'a ClientFolders,
    /// The user's folders, if `place` is a project's; the user's hooks run in a project too.
    pub users: Option<&'a ClientFolders>,
    /// This binary.
    pub exe: &'a Path,
}

/// A server's entry.
pub struct ServerEntry {
    pub file: PathBuf,
    pub value: Value,
    /// The place of the entry, in words for the user.
    pub stands: String,
    /// Advice for the user, in case the entry starts the wrong program.
    pub install: String,
    /// True when `nudge init` would leave the entry as it is, so the user need not run it.
    pub is_ours: bool,
    /// True when the entry comes from the plugin, which the user cannot change.
    pub by_plugin: bool,
}

/// The hooks of a client.
// The flags are independent findings.
#[allow(clippy::struct_excessive_bools)]
pub struct HookEntries {
    pub file: PathBuf,
    pub events: &'static [(&'static str, Option<&'static str>)],
    /// The handler of the first event that has one.
    pub handler: Option<Value>,
    /// The events that have no handler with Nudge, or another handler than `handler`.
    pub missing: Vec<&'static str>,
    pub switched_off: bool,
    /// Advice for the user, if another file also has the hooks and they therefore run twice.
    pub twice: Option<String>,
    /// True when the client has not yet asked the user for the permission to run the hooks.
    pub asks: bool,
    /// True when `nudge init` would leave the handler as it is, so the user need not run it.
    pub is_ours: bool,
    /// The command that repairs the settings.
    pub init: String,
    /// Advice for the user, in case the handler starts the wrong program.
    pub install: String,
}

impl ClientSettings<'_> {
    /// Returns true for a project's settings, because another user may have written them.
    pub fn is_foreign(&self) -> bool {
        self.place.project.is_some()
    }

    /// Finds the server's entry.
    ///
    /// # Errors
    /// The failed check, if there is no usable entry.
    pub fn find_entry(&self) -> Result<ServerEntry, DoctorCheck> {
        let server = (self.client.server)(self.place);
        let config = self.read("configured", &server.file, server.form)?;
        if let Some(value) = config.get(server.path) {
            let stands = server.file.display().to_string();
            if is_off(&value) {
                let told = format!("the entry `nudge` of {stands} is switched off");
                return Err(DoctorCheck::new_failed("configured", told, "switch it on there"));
            }
            let is_ours = plan::is_fitting(Some(&value), &server.entry);
            let install = self.advise_install(is_ours && self.is_foreign());
            return Ok(ServerEntry { file: server.file, value, stands, install, is_ours, by_plugin: false });
        }
        if let Some(file) = self.find_plugin() {
            let value = parse_built_in(PLUGIN_SERVER)["mcpServers"]["nudge"].take();
            let stands = format!("by the plugin that {} switches on", file.display());
            let install = self.advise_install(true);
            return Ok(ServerEntry { file, value, stands, install, is_ours: true, by_plugin: true });
        }
        Err(DoctorCheck::new_failed(
            "configured",
            format!("{} has no entry `nudge`", server.file.display()),
            self.init_command(),
        ))
    }

    /// Finds the hooks. Returns `None` for a client without hooks.
    ///
    /// # Errors
    /// The failed check, if there are no usable hooks.
    pub fn find_hooks(&self) -> Result<Option<HookEntries>, DoctorCheck> {
        let Some(hooks) = self.client.hooks else { return Ok(None) };
        let hooks = hooks(self.place);
        let config = self.read("hook", &hooks.file, ConfigFormat::Json)?;
        let mut found = self.read_hooks(&config, hooks);
        if let (None, Some(file)) = (&found.handler, self.find_plugin()) {
            let hook = parse_built_in(PLUGIN_HOOKS)["hooks"][found.events[0].0][0]["hooks"][0].take();
            (found.file, found.handler, found.missing, found.is_ours) = (file, Some(hook), Vec::new(), true);
            found.install = self.advise_install(true);
        }
        Ok(Some(found))
    }

    /// Checks that the client may use the tools without asking each time. Without this permission, a client that runs
    /// without a user refuses the tools.
    pub fn check_permission(&self) -> DoctorCheck {
        let title = self.client.title;
        if self.is_foreign() {
            return DoctorCheck::new_skipped(
                "allowed",
                "each user's own: `nudge doctor` without --project looks at yours",
            );
        }
        let Some(permission) = self.client.find_permission(self.place) else {
            return DoctorCheck::new_skipped(
                "allowed",
                format!("{title} itself decides whether it asks before it uses a tool"),
            );
        };
        let config = match self.read("allowed", &permission.file, permission.form) {
            Ok(config) => config,
            Err(check) => return check,
        };
        let file = permission.file.display();
        if permission.is_elsewhere(&config) {
            return DoctorCheck::new_skipped(
                "allowed",
                format!("{title}'s own settings say whether it asks; {file} does not"),
            );
        }
        let missing = permission.find_missing(&config).len();
        if missing == 0 {
            return DoctorCheck::new_passed("allowed", format!("without asking, says {file}"));
        }
        let told = format!("{title} asks before it uses the tools, and where nobody can be asked it refuses them");
        let fix = permission.find_contradiction(&config).map(|value| format!("say {value} in {file}"));
        DoctorCheck::new_failed(
            "allowed",
            format!("{told}: {file} lacks the permission"),
            fix.unwrap_or_else(|| self.init_command()),
        )
    }

    fn read_hooks(&self, config: &ConfigFile, hooks: ClientHooks) -> HookEntries {
        let handler = |(event, matcher): &(&'static str, Option<&'static str>)| {
            let handler_path =
                plan::find_handler(&config.get(&["hooks", event])?, hooks.grouped, plan::GroupScan::For(*matcher))?;
            let path: Vec<_> = ["hooks", event].into_iter().chain(handler_path.iter().map(String::as_str)).collect();
            Some(HookHandler { event, value: config.get(&path)?, at: handler_path })
        };
        let events: Vec<_> = hooks.events.iter().map(|(event, _)| *event).collect();
        let found: Vec<_> = hooks.events.iter().filter_map(handler).collect();
        let first = found.first().map(|found| found.value.clone());
        let same =
            |found: &&HookHandler| first.as_ref().is_some_and(|first| plan::is_fitting(Some(&found.value), first));
        let good: Vec<_> = found.iter().filter(same).map(|found| found.event).collect();
        let is_ours = plan::is_fitting(first.as_ref(), &hooks.handler);
        HookEntries {
            missing: events.into_iter().filter(|event| !good.contains(event)).collect(),
            twice: first.as_ref().and_then(|_| self.advise_on_doubles(&hooks.file)),
            switched_off: config.get(&["disableAllHooks"]) == Some(true.into()),
            asks: hooks.trust.as_ref().is_some_and(|trust| !is_trusted(trust, &hooks.file, &found)),
            is_ours,
            init: self.init_command(),
            install: self.advise_install(is_ours && self.is_foreign()),
            file: hooks.file,
            events: hooks.events,
            handler: first,
        }
    }

    /// Returns advice if another file than `file` also has the hooks.
    fn advise_on_doubles(&self, file: &Path) -> Option<String> {
        let users_plugin = || self.client.plugin_file(self.users?);
        if self.find_plugin().or_else(users_plugin).is_some() {
            return Some(format!("{} --undo: the plugin brings the hooks, too", self.init_command()));
        }
        let users = self.client.hooks?(self.users?);
        // In the user's home, both are the same file. If the user's file is broken, a run without `--project` reports
        // that.
        if users.file.canonicalize().ok()? == file.canonicalize().ok()? {
            return None;
        }
        let config = ConfigFile::read(&users.file, ConfigFormat::Json).ok()?;
        let ours =
            |event: &str| plan::find_handler(&config.get(&["hooks", event])?, users.grouped, plan::GroupScan::Any);
        users.events.iter().find_map(|(event, _)| ours(event))?;
        let file = users.file.display();
        Some(format!("also in {file}: they run twice; `{} --undo` takes these out", self.init_command()))
    }

    fn find_plugin(&self) -> Option<PathBuf> {
        self.client.plugin_file(self.place)
    }

    fn read(&self, name: &'static str, file: &Path, form: ConfigFormat) -> Result<ConfigFile, DoctorCheck> {
        self.place.read(file, form).map_err(|error: Error| {
            let (told, advice) = split_advice(error.message());
            let fix = match error.kind() {
                ErrorKind::Invalid => format!("correct it there, then `{}`", self.init_command()),
                _ => advice.to_owned(),
            };
            DoctorCheck::new_failed(name, launch::shorten_foreign(told), fix)
        })
    }

    /// Returns the command that repairs the settings.
    pub fn init_command(&self) -> String {
        let project = if self.is_foreign() { " --project" } else { "" };
        format!("nudge init {}{project}", self.client.name)
    }

    /// Returns advice on how to make the settings start the right binary. `by_name` is true when the settings may
    /// contain only the name `nudge`.
    fn advise_install(&self, by_name: bool) -> String {
        if by_name {
            format!("put {} into a folder of PATH, before others", self.exe.display())
        } else {
            self.init_command()
        }
    }

    /// Returns advice about a command that the doctor did not start.
    pub fn advise_on_held(&self, held: &NotStarted, file: &Path, install: &str) -> String {
        match held {
            NotStarted::Missing(_) => install.to_owned(),
            // `nudge init` keeps such an entry, or refuses to replace it, so the user must remove it first.
            NotStarted::Unclear(_) => {
                format!("look at it in {}, take it out there, then `{}`", file.display(), self.init_command())
            }
        }
    }

    /// Returns advice for an entry that does not work although its command and arguments are right, for example because
    /// of its variables.
    pub fn advise_correction(entry: &ServerEntry) -> String {
        format!("correct what else stands in the entry `nudge` of {}", entry.file.display())
    }
}

/// Returns true for an entry that the user has switched off, in the format of any client.
fn is_off(value: &Value) -> bool {
    value["enabled"] == false || value["disabled"] == true
}

/// A handler in the list of an event that runs Nudge.
struct HookHandler {
    event: &'static str,
    value: Value,
    /// The path of the handler in the list.
    at: Vec<String>,
}

/// Returns true when the client's file contains the user's consent for each of Nudge's hooks.
fn is_trusted(trust: &Path, hooks: &Path, found: &[HookHandler]) -> bool {
    let Ok(config) = ConfigFile::read(trust, ConfigFormat::Toml) else { return false };
    found.iter().all(|HookHandler { event, at: handler_path, .. }| {
        // The indices of the group and of the handler.
        let indices: Vec<_> =
            handler_path.iter().filter(|part| part.parse::<usize>().is_ok()).map(String::as_str).collect();
        let name = format!("{}:{}:{}", hooks.display(), snake_case(event), indices.join(":"));
        config.get(&["hooks", "state", &name, "trusted_hash"]).is_some()
    })
}

fn snake_case(name: &str) -> String {
    name.char_indices().fold(String::new(), |mut out, (index, c)| {
        if index > 0 && c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

/// Parses a built-in document.
fn parse_built_in(text: &str) -> Value {
    serde_json::from_str(text).expect("the plugin's files are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plugin_brings_is_understood() {
        let server = launch::LaunchCommand::from_entry(&parse_built_in(PLUGIN_SERVER)["mcpServers"]["nudge"]).unwrap();
        assert_eq!(server.command, "nudge");
        let hooks = parse_built_in(PLUGIN_HOOKS);
        for (event, groups) in hooks["hooks"].as_object().unwrap() {
            assert_eq!(groups[0]["hooks"][0]["command"], "nudge hook", "{event}");
        }
    }

    #[test]
    fn events_as_codex_notes_them() {
        assert_eq!(
            ["SessionStart", "sessionStart", "Stop"].map(snake_case),
            ["session_start", "session_start", "stop"]
        );
    }
}
