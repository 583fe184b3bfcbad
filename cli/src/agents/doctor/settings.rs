//! Reads the server's entry and the hooks from a client's settings: the user's, the project's, or the plugin's.

use std::path::{Path, PathBuf};

use nudge::{Error, ErrorKind};
use serde_json::Value;

use super::super::clients::{Client, ClientFolders, Hooks};
use super::super::config::{Config, Form};
use super::super::plan;
use super::plain::NotStarted;
use super::{Check, advice, launch};

/// The plugin's server entry, built in because only the client knows the plugin's folder.
const PLUGIN_SERVER: &str = include_str!("../../../plugin/.mcp.json");
const PLUGIN_HOOKS: &str = include_str!("../../../plugin/hooks/hooks.json");

/// A client's settings: the user's, or those of a project.
pub struct ClientSettings<'a> {
    pub client: &'static Client,
    pub place: &'a ClientFolders,
    /// The user's folders, when `place` is a project's: the user's hooks run, too.
    pub users: Option<&'a ClientFolders>,
    /// This binary.
    pub exe: &'a Path,
}

/// A server's entry.
pub struct ServerEntry {
    pub file: PathBuf,
    pub value: Value,
    /// The place of the entry, in words.
    pub stands: String,
    /// Advice for the case that its program is not the right one.
    pub install: String,
    /// True when `nudge init` would leave the entry as it is, and so is no help.
    pub is_ours: bool,
    /// True when the entry is the plugin's, which cannot be changed.
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
    /// Events without a handler that runs Nudge, or with another one than `handler`.
    pub missing: Vec<&'static str>,
    pub switched_off: bool,
    /// Advice for hooks that are in another file, too, so that they run twice.
    pub twice: Option<String>,
    /// True when the client is still going to ask whether it may run the hooks.
    pub asks: bool,
    /// True when `nudge init` would leave the handler as it is, and so is no help.
    pub is_ours: bool,
    /// The command that puts the settings right.
    pub init: String,
    /// Advice for the case that the handler's program is not the right one.
    pub install: String,
}

impl ClientSettings<'_> {
    /// Returns true for a project's settings, which somebody else may have written.
    pub fn is_foreign(&self) -> bool {
        self.place.project.is_some()
    }

    /// Finds the server's entry.
    ///
    /// # Errors
    /// The failed check.
    pub fn entry(&self) -> Result<ServerEntry, Check> {
        let server = (self.client.server)(self.place);
        let config = self.read("configured", &server.file, server.form)?;
        if let Some(value) = config.get(server.path) {
            let stands = server.file.display().to_string();
            if is_off(&value) {
                let told = format!("the entry `nudge` of {stands} is switched off");
                return Err(Check::bad("configured", told, "switch it on there"));
            }
            let is_ours = plan::fits(Some(&value), &server.entry);
            let install = self.install(is_ours && self.is_foreign());
            return Ok(ServerEntry { file: server.file, value, stands, install, is_ours, by_plugin: false });
        }
        if let Some(file) = self.plugin() {
            let value = parsed(PLUGIN_SERVER)["mcpServers"]["nudge"].take();
            let stands = format!("by the plugin that {} switches on", file.display());
            let install = self.install(true);
            return Ok(ServerEntry { file, value, stands, install, is_ours: true, by_plugin: true });
        }
        Err(Check::bad("configured", format!("{} has no entry `nudge`", server.file.display()), self.init()))
    }

    /// Finds the hooks; `None` for a client that has none.
    ///
    /// # Errors
    /// The failed check.
    pub fn hooked(&self) -> Result<Option<HookEntries>, Check> {
        let Some(hooks) = self.client.hooks else { return Ok(None) };
        let hooks = hooks(self.place);
        let config = self.read("hook", &hooks.file, Form::Json)?;
        let mut found = self.found(&config, hooks);
        if let (None, Some(file)) = (&found.handler, self.plugin()) {
            let hook = parsed(PLUGIN_HOOKS)["hooks"][found.events[0].0][0]["hooks"][0].take();
            (found.file, found.handler, found.missing, found.is_ours) = (file, Some(hook), Vec::new(), true);
            found.install = self.install(true);
        }
        Ok(Some(found))
    }

    /// Checks that the client may use the tools without asking each time: a client without a user refuses them
    /// otherwise.
    pub fn allowed(&self) -> Check {
        let title = self.client.title;
        if self.is_foreign() {
            return Check::none("allowed", "each user's own: `nudge doctor` without --project looks at yours");
        }
        let Some(permission) = self.client.permission(self.place) else {
            return Check::none("allowed", format!("{title} itself decides whether it asks before it uses a tool"));
        };
        let config = match self.read("allowed", &permission.file, permission.form) {
            Ok(config) => config,
            Err(check) => return check,
        };
        let file = permission.file.display();
        if permission.is_elsewhere(&config) {
            return Check::none("allowed", format!("{title}'s own settings say whether it asks; {file} does not"));
        }
        let missing = permission.missing(&config).len();
        if missing == 0 {
            return Check::good("allowed", format!("without asking, says {file}"));
        }
        let told = format!("{title} asks before it uses the tools, and where nobody can be asked it refuses them");
        let fix = permission.contradicted(&config).map(|value| format!("say {value} in {file}"));
        Check::bad("allowed", format!("{told}: {file} lacks the permission"), fix.unwrap_or_else(|| self.init()))
    }

    fn found(&self, config: &Config, hooks: Hooks) -> HookEntries {
        let handler = |(event, matcher): &(&'static str, Option<&'static str>)| {
            let at = plan::ours(&config.get(&["hooks", event])?, hooks.grouped, plan::Scan::For(*matcher))?;
            let path: Vec<_> = ["hooks", event].into_iter().chain(at.iter().map(String::as_str)).collect();
            Some(Handler { event, value: config.get(&path)?, at })
        };
        let events: Vec<_> = hooks.events.iter().map(|(event, _)| *event).collect();
        let found: Vec<_> = hooks.events.iter().filter_map(handler).collect();
        let first = found.first().map(|found| found.value.clone());
        let same = |found: &&Handler| first.as_ref().is_some_and(|first| plan::fits(Some(&found.value), first));
        let good: Vec<_> = found.iter().filter(same).map(|found| found.event).collect();
        let is_ours = plan::fits(first.as_ref(), &hooks.handler);
        HookEntries {
            missing: events.into_iter().filter(|event| !good.contains(event)).collect(),
            twice: first.as_ref().and_then(|_| self.twice(&hooks.file)),
            switched_off: config.get(&["disableAllHooks"]) == Some(true.into()),
            asks: hooks.trust.as_ref().is_some_and(|trust| !is_trusted(trust, &hooks.file, &found)),
            is_ours,
            init: self.init(),
            install: self.install(is_ours && self.is_foreign()),
            file: hooks.file,
            events: hooks.events,
            handler: first,
        }
    }

    /// Returns advice when hooks are in `file` and somewhere else, too.
    fn twice(&self, file: &Path) -> Option<String> {
        let users_plugin = || self.client.plugin_file(self.users?);
        if self.plugin().or_else(users_plugin).is_some() {
            return Some(format!("{} --undo: the plugin brings the hooks, too", self.init()));
        }
        let users = self.client.hooks?(self.users?);
        // In the user's home both are one file. A broken file of the user's is reported by a run without --project.
        if users.file.canonicalize().ok()? == file.canonicalize().ok()? {
            return None;
        }
        let config = Config::read(&users.file, Form::Json).ok()?;
        let ours = |event: &str| plan::ours(&config.get(&["hooks", event])?, users.grouped, plan::Scan::Any);
        users.events.iter().find_map(|(event, _)| ours(event))?;
        let file = users.file.display();
        Some(format!("also in {file}: they run twice; `{} --undo` takes these out", self.init()))
    }

    fn plugin(&self) -> Option<PathBuf> {
        self.client.plugin_file(self.place)
    }

    fn read(&self, name: &'static str, file: &Path, form: Form) -> Result<Config, Check> {
        self.place.read(file, form).map_err(|error: Error| {
            let (told, advice) = advice(error.message());
            let fix = match error.kind() {
                ErrorKind::Invalid => format!("correct it there, then `{}`", self.init()),
                _ => advice.to_owned(),
            };
            Check::bad(name, launch::shown(told), fix)
        })
    }

    /// The command that puts the settings right.
    pub fn init(&self) -> String {
        let project = if self.is_foreign() { " --project" } else { "" };
        format!("nudge init {}{project}", self.client.name)
    }

    /// Returns advice that gets the right binary started; `by_name` when the settings are right to name just `nudge`.
    fn install(&self, by_name: bool) -> String {
        if by_name { format!("put {} into a folder of PATH, before others", self.exe.display()) } else { self.init() }
    }

    /// Returns advice about a command that was not started.
    pub fn held(&self, held: &NotStarted, file: &Path, install: &str) -> String {
        match held {
            NotStarted::Missing(_) => install.to_owned(),
            // `nudge init` keeps such an entry or refuses to replace it, so the user has to take it out first.
            NotStarted::Unclear(_) => {
                format!("look at it in {}, take it out there, then `{}`", file.display(), self.init())
            }
        }
    }

    /// Returns advice for an entry that does not work although its command and arguments are right, for instance
    /// because of its variables.
    pub fn correct(entry: &ServerEntry) -> String {
        format!("correct what else stands in the entry `nudge` of {}", entry.file.display())
    }
}

/// Returns true for an entry that is switched off, in the format of any client.
fn is_off(value: &Value) -> bool {
    value["enabled"] == false || value["disabled"] == true
}

/// A handler that runs Nudge, in the list of an event.
struct Handler {
    event: &'static str,
    value: Value,
    /// The path to it within the list.
    at: Vec<String>,
}

/// Returns true when the user's consent is noted for every hook of Nudge's.
fn is_trusted(trust: &Path, hooks: &Path, found: &[Handler]) -> bool {
    let Ok(config) = Config::read(trust, Form::Toml) else { return false };
    found.iter().all(|Handler { event, at, .. }| {
        // The indices of the group and the handler.
        let at: Vec<_> = at.iter().filter(|part| part.parse::<usize>().is_ok()).map(String::as_str).collect();
        let name = format!("{}:{}:{}", hooks.display(), snake_case(event), at.join(":"));
        config.get(&["hooks", "state", &name, "trusted_hash"]).is_some()
    })
}

fn snake_case(name: &str) -> String {
    name.char_indices().fold(String::new(), |mut out, (at, c)| {
        if at > 0 && c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

/// Parses a built-in document.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plugin_brings_is_understood() {
        let server = launch::Launch::of(&parsed(PLUGIN_SERVER)["mcpServers"]["nudge"]).unwrap();
        assert_eq!(server.command, "nudge");
        let hooks = parsed(PLUGIN_HOOKS);
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
