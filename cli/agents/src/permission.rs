//! The permission, in a client's settings, to use Nudge's tools without asking. `nudge init` adds it when the user
//! agrees, and `--undo` removes it.

use std::path::PathBuf;

use nudge::{MethodSpec, Result};
use nudge_app::config::{ConfigFile, ConfigFormat};
use nudge_app::sources;
use serde_json::Value;

/// The permission of one client: its file, the file's format, and the entries.
pub struct ToolPermission {
    pub file: PathBuf,
    pub form: ConfigFormat,
    pub grant: PermissionGrant,
}

/// The entries of a permission.
pub enum PermissionGrant {
    /// Names in a list of the settings.
    Names {
        list: &'static [&'static str],
        names: Vec<String>,
        /// Other rules in the same list that already allow all names.
        covered_by: Vec<String>,
        /// True when a missing list may be created. It is false when a new list would replace the user's choice in
        /// another file.
        makes: bool,
    },
    /// Values by their paths. If the user has set another value, it stays.
    Values(Vec<(Vec<String>, Value)>),
}

/// Lists every tool that this binary's server can offer, including tools of sources that are not yet in use.
pub fn list_tools() -> Vec<String> {
    let methods = sources::list_sources().iter().flat_map(|source| (source.methods)());
    let mut names: Vec<_> = methods.filter(|method| method.tool).map(MethodSpec::tool_name).collect();
    names.dedup();
    names
}

impl ToolPermission {
    /// Returns the parts of the permission that the settings do not have, in the client's spelling.
    pub fn find_missing(&self, config: &ConfigFile) -> Vec<String> {
        let stood = self.find_present(config);
        match &self.grant {
            PermissionGrant::Names { list, makes: false, .. } if config.get(list).is_none() => Vec::new(),
            PermissionGrant::Names { list, covered_by, .. } if has_any(config, list, covered_by) => Vec::new(),
            _ => self.list_all().into_iter().filter(|name| !stood.contains(name)).collect(),
        }
    }

    /// Returns true when the user manages the client's permissions in another file.
    pub fn is_elsewhere(&self, config: &ConfigFile) -> bool {
        matches!(&self.grant, PermissionGrant::Names { list, makes: false, .. } if config.get(list).is_none())
    }

    /// Returns the value that would permit the tools, if the user has set another value. `nudge init` does not change
    /// that.
    pub fn find_contradiction(&self, config: &ConfigFile) -> Option<String> {
        let PermissionGrant::Values(values) = &self.grant else { return None };
        let other =
            |(path, value): &&(Vec<String>, Value)| config.get(&as_parts(path)).is_some_and(|stands| stands != *value);
        values.iter().find(other).map(|(path, value)| format!("{} = {value}", path.join(".")))
    }

    /// Returns the parts of the permission that the settings already have.
    pub fn find_present(&self, config: &ConfigFile) -> Vec<String> {
        match &self.grant {
            PermissionGrant::Names { list, names, .. } => {
                let there = read_strings(config, list);
                names.iter().filter(|name| there.contains(name)).cloned().collect()
            }
            PermissionGrant::Values(values) => {
                let stands = |path: &[String], value: &Value| config.get(&as_parts(path)).as_ref() == Some(value);
                values.iter().filter(|(path, value)| stands(path, value)).map(|(path, _)| path.join(".")).collect()
            }
        }
    }

    /// Adds the missing parts of the permission.
    ///
    /// # Errors
    /// `E_INVALID` when the settings have neither a list nor an object there.
    pub fn add_missing(&self, config: &mut ConfigFile) -> Result<()> {
        let missing = self.find_missing(config);
        match &self.grant {
            PermissionGrant::Names { list, .. } => {
                missing.iter().try_for_each(|name| config.append(list, &name.as_str().into()))
            }
            PermissionGrant::Values(values) => {
                for (path, value) in values.iter().filter(|(path, _)| missing.contains(&path.join("."))) {
                    if config.get(&as_parts(path)).is_none() {
                        config.set(&as_parts(path), value)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Removes the parts that Nudge added. The parts in `stood` existed before, so they stay.
    pub fn remove_added(&self, config: &mut ConfigFile, stood: &[String]) {
        match &self.grant {
            PermissionGrant::Names { list, names, .. } => {
                for name in names.iter().filter(|name| !stood.contains(name)) {
                    let there = read_strings(config, list);
                    if let Some(index) = there.iter().position(|known| known == name) {
                        config.remove(&[list, &[index.to_string().as_str()][..]].concat());
                    }
                }
            }
            PermissionGrant::Values(values) => {
                for (path, value) in values.iter().filter(|(path, _)| !stood.contains(&path.join("."))) {
                    if config.get(&as_parts(path)).as_ref() == Some(value) {
                        config.remove(&as_parts(path));
                    }
                }
            }
        }
    }

    fn list_all(&self) -> Vec<String> {
        match &self.grant {
            PermissionGrant::Names { names, .. } => names.clone(),
            PermissionGrant::Values(values) => values.iter().map(|(path, _)| path.join(".")).collect(),
        }
    }
}

/// Reads a list in order. An element that is not text becomes an empty text.
fn read_strings(config: &ConfigFile, list: &[&str]) -> Vec<String> {
    let there = config.get(list);
    there
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|value| value.as_str().unwrap_or("").to_owned())
        .collect()
}

fn has_any(config: &ConfigFile, list: &[&str], names: &[String]) -> bool {
    read_strings(config, list).iter().any(|known| names.contains(known))
}

fn as_parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
