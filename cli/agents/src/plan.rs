//! Plans all changes of `nudge init` before it makes any change.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nudge::{Error, Result, SecretGuard};
use nudge_app::config::{ConfigFile, ConfigFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::clients::{ClientFolders, ClientHooks, ClientSpec, McpServerEntry, is_ours, starts_nudge};

/// The changes for one client.
pub struct ClientPlan {
    /// The files to write.
    pub files: Vec<FileChange>,
    /// The client's own command that registers the server, and the file that this command writes; `None` if it need not
    /// run.
    pub command: Option<OwnCommand>,
    /// The additions and corrections in a few words, each with its file.
    pub summary: Vec<(String, PathBuf)>,
    /// The entries of Nudge before the changes.
    pub stood: PriorEntries,
}

/// The words of a client's own command, and the file that the command writes.
type OwnCommand = (Vec<String>, PathBuf);

/// A change of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    /// The text before the change; `None` for a new file.
    pub before: Option<String>,
    pub after: String,
}

/// Nudge's entries in a client's settings before a change.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct PriorEntries {
    /// The values of the fields in [`WORDS`], which start the server.
    words: Map<String, Value>,
    /// The events that already had a handler.
    events: Vec<String>,
    /// The permissions that already existed.
    allowed: Vec<String>,
}

/// The fields of an entry that Nudge sets; all other fields belong to the user.
const WORDS: [&str; 2] = ["command", "args"];

impl PriorEntries {
    /// Reads Nudge's present entries from a client's settings: from the server's file and from the file of the hooks.
    fn from_settings(server: &McpServerEntry, config: &ConfigFile, hooks: Option<(&ClientHooks, &ConfigFile)>) -> Self {
        let entry = config.get(server.path);
        let word = |field: &&str| Some(((*field).to_owned(), entry.as_ref()?.get(field)?.clone()));
        let is_there = |hooks: &ClientHooks, config: &ConfigFile, event: &str, matcher| {
            let list = config.get(&["hooks", event]);
            list.is_some_and(|list| find_handler(&list, hooks.grouped, GroupScan::For(matcher)).is_some())
        };
        let events = hooks.into_iter().flat_map(|(hooks, config)| {
            let there = hooks.events.iter().filter(move |(event, matcher)| is_there(hooks, config, event, *matcher));
            there.map(|(event, _)| (*event).to_owned())
        });
        Self { words: WORDS.iter().filter_map(word).collect(), events: events.collect(), allowed: Vec::new() }
    }
}

impl ClientPlan {
    /// Plans the entries that are missing or that start another binary. If `allow` is true, also plans the permission
    /// to use the tools without asking. `has_program` is true when the client's own command can run. If the plugin is
    /// on, plans only the permission, because the plugin provides everything else.
    ///
    /// # Errors
    /// `E_INVALID`, with the position, for a file that cannot be parsed; `E_INVALID` for an entry `nudge` that starts
    /// another program.
    pub fn new(client: &'static ClientSpec, place: &ClientFolders, has_program: bool, allow: bool) -> Result<Self> {
        let mut configs = Vec::<ConfigFile>::new();
        let mut plan = Self { files: Vec::new(), command: None, summary: Vec::new(), stood: PriorEntries::default() };
        if client.plugin_file(place).is_none() {
            plan.plan_entries(client, place, has_program, &mut configs)?;
        }
        if let Some(permission) = client.find_permission(place).filter(|_| allow) {
            let index = open_config(&mut configs, place, &permission.file, permission.form)?;
            plan.stood.allowed = permission.find_present(&configs[index]);
            if !permission.find_missing(&configs[index]).is_empty() {
                plan.summary.push(("use of the tools without asking".into(), permission.file.clone()));
            }
            permission.add_missing(&mut configs[index])?;
        }
        plan.files = take_changed(configs);
        Ok(plan)
    }

    /// Plans the entry of the server and the hooks.
    fn plan_entries(
        &mut self,
        client: &'static ClientSpec,
        place: &ClientFolders,
        has_program: bool,
        configs: &mut Vec<ConfigFile>,
    ) -> Result<()> {
        let server = (client.server)(place);
        let server_index = open_config(configs, place, &server.file, server.form)?;
        let hooks = client.hooks.map(|hooks| hooks(place));
        let hooks = hooks
            .map(|hooks| Ok::<_, Error>((open_config(configs, place, &hooks.file, ConfigFormat::Json)?, hooks)))
            .transpose()?;
        self.stood = PriorEntries::from_settings(
            &server,
            &configs[server_index],
            hooks.as_ref().map(|(hooks_index, hooks)| (hooks, &configs[*hooks_index])),
        );
        let stands = configs[server_index].get(server.path);
        match stands {
            None => {
                self.summary.push(("the server".into(), server.file.clone()));
                match server.command.filter(|_| has_program) {
                    Some(words) => self.command = Some((words, server.file)),
                    None => configs[server_index].set(server.path, &server.entry)?,
                }
            }
            Some(stands) if is_fitting(Some(&stands), &server.entry) => {}
            Some(stands) if starts_nudge(&stands) || starts_nothing(&stands) => {
                self.summary.push(("the server, whose path has changed".into(), server.file.clone()));
                for field in WORDS {
                    if let Some(value) = server.entry.get(field) {
                        configs[server_index].set(&[server.path, &[field]].concat(), value)?;
                    }
                }
            }
            Some(_) => {
                let message = format!(
                    "{} has an entry `nudge` that starts something else; take it out or give it another name.",
                    server.file.display()
                );
                return Err(Error::invalid(message));
            }
        }
        if let Some((hooks_index, hooks)) = hooks {
            match add_hooks(&mut configs[hooks_index], &hooks)? {
                0 => {}
                1 => self.summary.push(("1 hook".into(), hooks.file)),
                count => self.summary.push((format!("{count} hooks"), hooks.file)),
            }
        }
        Ok(())
    }

    /// Plans to remove the entries of [`ClientPlan::new`] from a file that has changed since. Entries that existed
    /// before stay.
    ///
    /// # Errors
    /// The errors of [`ClientPlan::new`].
    pub fn plan_removal(
        client: &'static ClientSpec,
        place: &ClientFolders,
        path: &Path,
        stood: &PriorEntries,
    ) -> Result<Option<FileChange>> {
        let mut configs = Vec::<ConfigFile>::new();
        let server = (client.server)(place);
        if server.file == path {
            let index = open_config(&mut configs, place, path, server.form)?;
            let config = &mut configs[index];
            if config.get(server.path).is_some_and(|entry| starts_nudge(&entry)) {
                if stood.words.is_empty() {
                    config.remove(server.path);
                }
                for (field, value) in &stood.words {
                    config.set(&[server.path, &[field.as_str()]].concat(), value)?;
                }
            }
        }
        if let Some(hooks) = client.hooks.map(|hooks| hooks(place)).filter(|hooks| hooks.file == path) {
            let index = open_config(&mut configs, place, path, ConfigFormat::Json)?;
            remove_hooks(&mut configs[index], &hooks, stood);
        }
        for permission in [client.permission, client.plugin_permission].into_iter().flatten() {
            let permission = permission(place);
            if permission.file == path && place.project.is_none() {
                let index = open_config(&mut configs, place, path, permission.form)?;
                permission.remove_added(&mut configs[index], &stood.allowed);
            }
        }
        Ok(take_changed(configs).pop())
    }

    /// Returns true when the plan has no changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.command.is_none()
    }

    /// Describes every changed line, for the user.
    pub fn describe_lines(&self) -> String {
        let mut out = String::new();
        if let Some((words, file)) = &self.command {
            let _ = writeln!(out, "  {} (writes {})", shell_line(words), file.display());
        }
        for file in &self.files {
            out += &file.to_diff();
        }
        out
    }

    /// Describes the purpose and the file of each change, for the user.
    pub fn summarize(&self) -> String {
        self.summary.iter().fold(String::new(), |out, (what, file)| out + &summary_line(what, file))
    }
}

/// Returns a line of the summary of changes.
pub fn summary_line(what: &str, file: &Path) -> String {
    format!("  {what}: {}\n", file.display())
}

impl FileChange {
    /// Returns the text before the change; empty for a new file.
    pub fn text_before(&self) -> &str {
        self.before.as_deref().unwrap_or("")
    }

    /// Returns the change as a unified diff.
    pub fn to_diff(&self) -> String {
        let (path, before) = (self.path.display().to_string(), self.text_before());
        let from = if self.before.is_some() { path.as_str() } else { "/dev/null" };
        let changes = TextDiff::from_lines(before, &self.after);
        let diff = changes.unified_diff().context_radius(2).header(from, &path).to_string();
        // Hides lines that look like credentials: settings may contain secrets, and the diff also shows lines next to a
        // change.
        let guard = SecretGuard::new();
        let shown = |line: &str| match line.chars().next() {
            Some(mark) if guard.check(None, line).is_some() => format!("{mark} [looks like a credential]"),
            _ => line.to_owned(),
        };
        diff.lines().map(shown).fold(String::new(), |out, line| out + &line + "\n")
    }
}

/// Returns true for an entry that has neither a command nor a URL.
fn starts_nothing(entry: &Value) -> bool {
    let names = ["command", "url", "httpUrl", "serverUrl"];
    entry.as_object().is_some_and(|fields| !names.iter().any(|name| fields.contains_key(*name)))
}

/// Returns true when an existing entry needs no change. Fields that the user has added, such as a timeout, do not
/// matter.
pub fn is_fitting(stands: Option<&Value>, entry: &Value) -> bool {
    let Some(stands) = stands else { return false };
    WORDS.iter().all(|field| stands.get(field) == entry.get(field))
}

fn open_config(configs: &mut Vec<ConfigFile>, place: &ClientFolders, path: &Path, form: ConfigFormat) -> Result<usize> {
    if let Some(index) = configs.iter().position(|config| config.path() == path) {
        return Ok(index);
    }
    configs.push(place.read(path, form)?);
    Ok(configs.len() - 1)
}

fn take_changed(configs: Vec<ConfigFile>) -> Vec<FileChange> {
    let changed = configs.into_iter().filter(ConfigFile::is_changed);
    changed
        .map(|config| FileChange {
            path: config.path().to_owned(),
            before: config.before().map(str::to_owned),
            after: config.to_text(),
        })
        .collect()
}

/// Adds missing hooks, and corrects hooks that start another binary. Returns the number of changed hooks.
fn add_hooks(config: &mut ConfigFile, hooks: &ClientHooks) -> Result<usize> {
    let mut count = 0;
    if let (Some(version), None) = (hooks.version, config.get(&["version"])) {
        config.set(&["version"], &version.into())?;
    }
    for (event, matcher) in hooks.events {
        let stands = config.get(&["hooks", event]).unwrap_or(json!([]));
        let Some(handler_path) = find_handler(&stands, hooks.grouped, GroupScan::For(*matcher)) else {
            config.append(&["hooks", event], &build_entry(hooks, *matcher))?;
            count += 1;
            continue;
        };
        let mut path = vec!["hooks".to_owned(), (*event).to_owned()];
        path.extend(handler_path);
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        let stood = config.get(&path);
        for field in WORDS {
            let Some(value) = hooks.handler.get(field) else {
                config.remove(&[&path[..], &[field]].concat());
                continue;
            };
            let field = [&path[..], &[field]].concat();
            let stands = config.get(&field);
            config.set(&field, &with_variables(stands.as_ref(), value))?;
        }
        count += usize::from(config.get(&path) != stood);
    }
    Ok(count)
}

/// Returns the new command line with the environment variables that the user has put before the old one.
fn with_variables(stands: Option<&Value>, ours: &Value) -> Value {
    let (Some(stands), Some(line)) = (stands.and_then(Value::as_str), ours.as_str()) else { return ours.clone() };
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_variable = |word: &&str| {
        word.split_once('=').is_some_and(|(name, value)| is_name(name) && !value.contains(['"', '\'', '$', '`', '\\']))
    };
    let variables: Vec<_> = stands.split(' ').take_while(is_variable).collect();
    variables.into_iter().chain([line]).collect::<Vec<_>>().join(" ").into()
}

/// Builds an element for the list of an event.
fn build_entry(hooks: &ClientHooks, matcher: Option<&str>) -> Value {
    match (hooks.grouped, matcher) {
        (false, _) => hooks.handler.clone(),
        (true, None) => json!({"hooks": [hooks.handler]}),
        (true, Some(matcher)) => json!({"matcher": matcher, "hooks": [hooks.handler]}),
    }
}

/// The groups in which to search for a handler.
#[derive(Clone, Copy)]
pub enum GroupScan<'a> {
    /// Every group.
    Any,
    /// Groups whose matcher covers the given matcher.
    For(Option<&'a str>),
}

impl GroupScan<'_> {
    fn has_group(self, group: &Value) -> bool {
        let Self::For(wanted) = self else { return true };
        match (group["matcher"].as_str(), wanted) {
            (None | Some("" | "*"), _) => true,
            (Some(given), Some(wanted)) => given.split('|').any(|part| part == wanted),
            (Some(_), None) => false,
        }
    }
}

/// Finds the path to Nudge's handler in the list of an event. Returns `None` when the list has no such handler.
pub fn find_handler(list: &Value, grouped: bool, scan: GroupScan<'_>) -> Option<Vec<String>> {
    for (index, element) in list.as_array()?.iter().enumerate() {
        if !grouped && is_ours(element) {
            return Some(vec![index.to_string()]);
        }
        let handlers = element["hooks"].as_array().filter(|_| grouped && scan.has_group(element));
        if let Some(inner) = handlers.and_then(|handlers| handlers.iter().position(is_ours)) {
            return Some(vec![index.to_string(), "hooks".into(), inner.to_string()]);
        }
    }
    None
}

fn remove_hooks(config: &mut ConfigFile, hooks: &ClientHooks, stood: &PriorEntries) {
    for (event, matcher) in hooks.events {
        if stood.events.iter().any(|stood| stood == event) {
            continue;
        }
        let handler_path =
            config.get(&["hooks", event]).and_then(|list| find_handler(&list, hooks.grouped, GroupScan::For(*matcher)));
        let Some(handler_path) = handler_path else { continue };
        let mut path = vec!["hooks".to_owned(), (*event).to_owned()];
        path.extend(handler_path);
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        config.remove(&path);
    }
    if hooks.version.is_some() {
        config.remove_if_alone("version");
    }
}

/// Joins words to a command line for a shell, with quotes where they are needed.
pub fn shell_line(words: &[String]) -> String {
    let plain =
        |word: &&String| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-:=@".contains(c));
    let quoted = |word: &String| if plain(&word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
