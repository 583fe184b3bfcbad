//! What stands in a client's settings: the user's, the project's, or the plugin's.

use std::path::{Path, PathBuf};

use nudge::{Error, ErrorKind};
use serde_json::Value;

use super::super::clients::{Client, ClientFolders, Hooks};
use super::super::config::{Config, Form};
use super::super::plan;
use super::plain::NotStarted;
use super::{Check, advice, launch};

/// What the plugin brings, whose folder only the client knows.
const PLUGIN_SERVER: &str = include_str!("../../../plugin/.mcp.json");
const PLUGIN_HOOKS: &str = include_str!("../../../plugin/hooks/hooks.json");

/// A client's settings: the user's, or those of a project.
pub struct ClientSettings<'a> {
    pub client: &'static Client,
    pub place: &'a ClientFolders,
    /// The user's beside those of a project: their hooks run, too.
    pub users: Option<&'a ClientFolders>,
    /// This binary.
    pub exe: &'a Path,
}

/// The entry of the server.
pub struct ServerEntry {
    pub file: PathBuf,
    pub value: Value,
    /// Where it stands, in words.
    pub stands: String,
    /// What to do when its program is not the right one.
    pub install: String,
    /// Whether `nudge init` would leave it as it is, and so is no help.
    pub is_ours: bool,
    /// Whether the plugin brings it, so that it cannot be changed.
    pub by_plugin: bool,
}

/// The hooks.
// Independent findings.
#[allow(clippy::struct_excessive_bools)]
pub struct HookEntries {
    pub file: PathBuf,
    pub events: &'static [(&'static str, Option<&'static str>)],
    /// That of the first event that has one.
    pub handler: Option<Value>,
    /// Events without a handler of ours, or with another one.
    pub missing: Vec<&'static str>,
    pub switched_off: bool,
    /// What to do where the same stands somewhere else, too, so that all of it happens twice.
    pub twice: Option<String>,
    /// Whether the client is still going to ask for leave to run them.
    pub asks: bool,
    /// Whether `nudge init` would leave the handler as it is, and so is no help.
    pub is_ours: bool,
    /// What puts them right.
    pub init: String,
    /// What to do when the handler's program is not the right one.
    pub install: String,
}

impl ClientSettings<'_> {
    /// Whether they may be somebody else's.
    pub fn is_foreign(&self) -> bool {
        self.place.project.is_some()
    }

    /// The entry of the server, where there is one.
    ///
    /// # Errors
    /// What is wrong.
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

    /// The hooks; `None` for a client that has none.
    ///
    /// # Errors
    /// What is wrong.
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

    /// What to do when hooks stand in `file` and somewhere else.
    fn twice(&self, file: &Path) -> Option<String> {
        let users_plugin = || self.client.plugin_file(self.users?);
        if self.plugin().or_else(users_plugin).is_some() {
            return Some(format!("{} --undo: the plugin brings the hooks, too", self.init()));
        }
        let users = self.client.hooks?(self.users?);
        // In the user's home it is one file. One that is broken is told without --project.
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
        Config::read(file, form).map_err(|error: Error| {
            let (told, advice) = advice(&error);
            let fix = match error.kind() {
                ErrorKind::Invalid => format!("correct it there, then `{}`", self.init()),
                _ => advice.to_owned(),
            };
            Check::bad(name, launch::shown(told), fix)
        })
    }

    /// What puts them right.
    pub fn init(&self) -> String {
        let project = if self.is_foreign() { " --project" } else { "" };
        format!("nudge init {}{project}", self.client.name)
    }

    /// What gets the right binary started; `by_name` when the settings are right to say no more than `nudge`.
    fn install(&self, by_name: bool) -> String {
        if by_name { format!("put {} into a folder of PATH, before others", self.exe.display()) } else { self.init() }
    }

    /// What to do about a command that is held back.
    pub fn held(&self, held: &NotStarted, file: &Path, install: &str) -> String {
        match held {
            NotStarted::Missing(_) => install.to_owned(),
            // Only when it is taken out does `nudge init` write it anew, whatever stands there.
            NotStarted::Unclear(_) => {
                format!("look at it in {}, take it out there, then `{}`", file.display(), self.init())
            }
        }
    }

    /// What to do when command and words are ours, and it does not work: variables, for instance.
    pub fn correct(entry: &ServerEntry) -> String {
        format!("correct what else stands in the entry `nudge` of {}", entry.file.display())
    }
}

/// Switched off in the words of any client.
fn is_off(value: &Value) -> bool {
    value["enabled"] == false || value["disabled"] == true
}

/// A handler of ours in the list of an event.
struct Handler {
    event: &'static str,
    value: Value,
    /// Where in the list.
    at: Vec<String>,
}

/// Whether the user's leave is noted for every hook of ours.
fn is_trusted(trust: &Path, hooks: &Path, found: &[Handler]) -> bool {
    let Ok(config) = Config::read(trust, Form::Toml) else { return false };
    found.iter().all(|Handler { event, at, .. }| {
        // Group and handler, by their numbers.
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

/// A document of our own.
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
