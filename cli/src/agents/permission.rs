//! The permission to use Nudge's tools without asking. It is the client's own: `nudge init` writes it when its user
//! wants it, and takes it away again.

use std::path::PathBuf;

use nudge::{Method, Result};
use serde_json::Value;

use super::config::{Config, Form};
use crate::sources;

/// The place of a client's permission.
pub struct Permission {
    pub file: PathBuf,
    pub form: Form,
    pub grant: Grant,
}

/// The form of a permission.
pub enum Grant {
    /// Names in a list.
    Names {
        list: &'static [&'static str],
        names: Vec<String>,
        /// Rules of the same list that allow all of the names.
        covered_by: Vec<String>,
        /// Is true when a missing list is made. It is not made if it would replace the user's choice elsewhere.
        makes: bool,
    },
    /// Values, by path. A value that the user has set otherwise stays.
    Values(Vec<(Vec<String>, Value)>),
}

/// Every tool that this binary's server can offer, also those of sources that are not in use yet.
pub fn tools() -> Vec<String> {
    let methods = sources::all().iter().flat_map(|source| (source.methods)());
    let mut names: Vec<_> = methods.filter(|method| method.tool).map(Method::tool_name).collect();
    names.dedup();
    names
}

impl Permission {
    /// Returns the parts that are missing in the client's settings, in its own words.
    pub fn missing(&self, config: &Config) -> Vec<String> {
        let stood = self.stood(config);
        match &self.grant {
            Grant::Names { list, makes: false, .. } if config.get(list).is_none() => Vec::new(),
            Grant::Names { list, covered_by, .. } if has_any(config, list, covered_by) => Vec::new(),
            _ => self.all().into_iter().filter(|name| !stood.contains(name)).collect(),
        }
    }

    /// Returns true when the user sets the client's rights elsewhere.
    pub fn is_elsewhere(&self, config: &Config) -> bool {
        matches!(&self.grant, Grant::Names { list, makes: false, .. } if config.get(list).is_none())
    }

    /// A value that the user has set to another one, which `nudge init` leaves alone, and the one that permits.
    pub fn contradicted(&self, config: &Config) -> Option<String> {
        let Grant::Values(values) = &self.grant else { return None };
        let other =
            |(path, value): &&(Vec<String>, Value)| config.get(&borrowed(path)).is_some_and(|stands| stands != *value);
        values.iter().find(other).map(|(path, value)| format!("{} = {value}", path.join(".")))
    }

    /// Returns the parts that are there.
    pub fn stood(&self, config: &Config) -> Vec<String> {
        match &self.grant {
            Grant::Names { list, names, .. } => {
                let there = strings(config, list);
                names.iter().filter(|name| there.contains(name)).cloned().collect()
            }
            Grant::Values(values) => {
                let stands = |path: &[String], value: &Value| config.get(&borrowed(path)).as_ref() == Some(value);
                values.iter().filter(|(path, value)| stands(path, value)).map(|(path, _)| path.join(".")).collect()
            }
        }
    }

    /// Adds the missing parts.
    ///
    /// # Errors
    /// `E_INVALID` when something else is there than a list or an object.
    pub fn add(&self, config: &mut Config) -> Result<()> {
        let missing = self.missing(config);
        match &self.grant {
            Grant::Names { list, .. } => missing.iter().try_for_each(|name| config.append(list, &name.as_str().into())),
            Grant::Values(values) => {
                for (path, value) in values.iter().filter(|(path, _)| missing.contains(&path.join("."))) {
                    if config.get(&borrowed(path)).is_none() {
                        config.set(&borrowed(path), value)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Removes the added parts; those that `stood` before remain.
    pub fn remove(&self, config: &mut Config, stood: &[String]) {
        match &self.grant {
            Grant::Names { list, names, .. } => {
                for name in names.iter().filter(|name| !stood.contains(name)) {
                    let there = strings(config, list);
                    if let Some(at) = there.iter().position(|known| known == name) {
                        config.remove(&[list, &[at.to_string().as_str()][..]].concat());
                    }
                }
            }
            Grant::Values(values) => {
                for (path, value) in values.iter().filter(|(path, _)| !stood.contains(&path.join("."))) {
                    if config.get(&borrowed(path)).as_ref() == Some(value) {
                        config.remove(&borrowed(path));
                    }
                }
            }
        }
    }

    fn all(&self) -> Vec<String> {
        match &self.grant {
            Grant::Names { names, .. } => names.clone(),
            Grant::Values(values) => values.iter().map(|(path, _)| path.join(".")).collect(),
        }
    }
}

/// The elements of a list in order; an empty text for one that is none.
fn strings(config: &Config, list: &[&str]) -> Vec<String> {
    let there = config.get(list).unwrap_or_default();
    there.as_array().into_iter().flatten().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}

fn has_any(config: &Config, list: &[&str], names: &[String]) -> bool {
    strings(config, list).iter().any(|known| names.contains(known))
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
