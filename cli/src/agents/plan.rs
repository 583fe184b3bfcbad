//! What `nudge init` would change, worked out before anything is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nudge::Result;
use serde_json::{Value, json};
use similar::TextDiff;

use super::clients::{Client, Hooks, Place, is_ours};
use super::config::{Config, Form};

/// What is to be done for one client.
pub struct Plan {
    pub client: &'static Client,
    /// The files that are written.
    pub files: Vec<File>,
    /// The client's own command that does the rest, and the file that it writes.
    pub command: Option<(Vec<String>, PathBuf)>,
}

/// A file as it is and as it is going to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    /// `None` when there is none.
    pub before: Option<String>,
    pub after: String,
}

impl Plan {
    /// Works out what is missing, or stands there with a binary that has moved. `has_program` says whether
    /// the client's own command can be run.
    ///
    /// # Errors
    /// `E_INVALID`, with the position, for a file that is broken.
    pub fn new(client: &'static Client, place: &Place, has_program: bool) -> Result<Self> {
        let mut configs = Vec::<Config>::new();
        let server = (client.server)(place);
        let at = open(&mut configs, &server.file, server.form)?;
        let stands = configs[at].get(server.path);
        let mut command = None;
        if let (None, Some(words), true) = (&stands, server.command, has_program) {
            command = Some((words, server.file));
        } else if !fits(stands.as_ref(), &server.entry) {
            configs[at].set(server.path, &server.entry)?;
        }
        if let Some(hooks) = client.hooks {
            let hooks = hooks(place);
            let at = open(&mut configs, &hooks.file, Form::Json)?;
            add_hooks(&mut configs[at], &hooks)?;
        }
        Ok(Self { client, files: changed(configs), command })
    }

    /// Works out how to take out what [`Plan::new`] puts in.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn removal(client: &'static Client, place: &Place) -> Result<Self> {
        let mut configs = Vec::<Config>::new();
        let server = (client.server)(place);
        let at = open(&mut configs, &server.file, server.form)?;
        configs[at].remove(server.path);
        if let Some(hooks) = client.hooks {
            let hooks = hooks(place);
            let at = open(&mut configs, &hooks.file, Form::Json)?;
            remove_hooks(&mut configs[at], &hooks);
        }
        Ok(Self { client, files: changed(configs), command: None })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.command.is_none()
    }

    /// What it changes, for people.
    pub fn tell(&self) -> String {
        let mut out = String::new();
        if let Some((words, file)) = &self.command {
            let _ = writeln!(out, "  {} (writes {})", shell_line(words), file.display());
        }
        for file in &self.files {
            out += &file.diff();
        }
        out
    }
}

impl File {
    /// The change, as a unified diff.
    pub fn diff(&self) -> String {
        let (path, before) = (self.path.display().to_string(), self.before.as_deref().unwrap_or_default());
        let from = if self.before.is_some() { path.as_str() } else { "/dev/null" };
        TextDiff::from_lines(before, &self.after).unified_diff().context_radius(2).header(from, &path).to_string()
    }
}

/// What is there already, with additions of the user's own (a timeout, a variable), is left alone.
pub fn fits(stands: Option<&Value>, entry: &Value) -> bool {
    let Some(stands) = stands else { return false };
    ["command", "args"].iter().all(|field| stands.get(field) == entry.get(field))
}

fn open(configs: &mut Vec<Config>, path: &Path, form: Form) -> Result<usize> {
    if let Some(at) = configs.iter().position(|config| config.path() == path) {
        return Ok(at);
    }
    configs.push(Config::read(path, form)?);
    Ok(configs.len() - 1)
}

fn changed(configs: Vec<Config>) -> Vec<File> {
    let changed = configs.into_iter().filter(Config::is_changed);
    changed
        .map(|config| File {
            path: config.path().to_owned(),
            before: config.before().map(str::to_owned),
            after: config.after(),
        })
        .collect()
}

fn add_hooks(config: &mut Config, hooks: &Hooks) -> Result<()> {
    if let (Some(version), None) = (hooks.version, config.get(&["version"])) {
        config.set(&["version"], &version.into())?;
    }
    for (event, matcher) in hooks.events {
        let stands = config.get(&["hooks", event]).unwrap_or(json!([]));
        match ours(&stands, hooks.grouped) {
            Some(at) => {
                let mut path = vec!["hooks".to_owned(), (*event).to_owned()];
                path.extend(at);
                let path: Vec<_> = path.iter().map(String::as_str).collect();
                for field in ["command", "args"] {
                    if let Some(value) = hooks.handler.get(field) {
                        config.set(&[&path[..], &[field]].concat(), value)?;
                    }
                }
            }
            None => config.append(&["hooks", event], &entry(hooks, *matcher))?,
        }
    }
    Ok(())
}

/// What stands in the list of an event.
fn entry(hooks: &Hooks, matcher: Option<&str>) -> Value {
    match (hooks.grouped, matcher) {
        (false, _) => hooks.handler.clone(),
        (true, None) => json!({"hooks": [hooks.handler]}),
        (true, Some(matcher)) => json!({"matcher": matcher, "hooks": [hooks.handler]}),
    }
}

/// Where our handler is in the list of an event.
pub fn ours(list: &Value, grouped: bool) -> Option<Vec<String>> {
    for (at, element) in list.as_array()?.iter().enumerate() {
        if !grouped && is_ours(element) {
            return Some(vec![at.to_string()]);
        }
        let handlers = element["hooks"].as_array().filter(|_| grouped);
        if let Some(inner) = handlers.and_then(|handlers| handlers.iter().position(is_ours)) {
            return Some(vec![at.to_string(), "hooks".into(), inner.to_string()]);
        }
    }
    None
}

fn remove_hooks(config: &mut Config, hooks: &Hooks) {
    for (event, _) in hooks.events {
        let list = |config: &Config| config.get(&["hooks", event]).unwrap_or_default();
        // One round for each that could be there.
        for _ in list(config).as_array().into_iter().flatten() {
            let Some(at) = ours(&list(config), hooks.grouped) else { break };
            let mut path = vec!["hooks".to_owned(), (*event).to_owned()];
            path.extend(at);
            let path: Vec<_> = path.iter().map(String::as_str).collect();
            config.remove(&path);
        }
    }
    if hooks.version.is_some() {
        config.remove_if_alone("version");
    }
}

/// Words as a shell would read them.
pub fn shell_line(words: &[String]) -> String {
    let plain =
        |word: &&String| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-:=@".contains(c));
    let quoted = |word: &String| if plain(&word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
