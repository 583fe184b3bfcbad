//! The name of an agent, which is the name of a folder too.

use std::fmt;

use nudge_core::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};

/// Longest name, in bytes.
const MAX_BYTES: usize = 128;

/// The name of an agent, such as `polecat-alpha`: 1 to 128 letters and digits of ASCII, `-`, `_`, `.`, `@` and `+`. It
/// neither begins nor ends with a dot, so that it is the name of one folder on every system, and leads nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentId(String);

impl AgentId {
    /// Takes a name; `field` is the word for it in the refusal.
    ///
    /// # Errors
    /// `E_INVALID`, without the name: it may be anything.
    pub fn new(field: &str, name: &str) -> Result<Self> {
        Self::parse(name).ok_or_else(|| {
            Error::invalid(format!(
                "`{field}` must be the name of an agent: 1 to {MAX_BYTES} letters, digits, `-`, `_`, `.`, `@` or `+`, \
                 without a dot at its ends."
            ))
            .about(field)
        })
    }

    /// The name, if it is one.
    pub fn parse(name: &str) -> Option<Self> {
        let is_fine = (1..=MAX_BYTES).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte))
            && !name.starts_with('.')
            && !name.ends_with('.');
        is_fine.then(|| Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| serde::de::Error::custom("this is not the name of an agent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "polecat-alpha", "mayor-a1b2c", "a.b", "Team_1@host+2", &"x".repeat(128)] {
            assert_eq!(AgentId::new("agent", good).unwrap().as_str(), good);
        }
        let long = "x".repeat(129);
        for bad in
            ["", ".", "..", "../x", "a/b", "a\\b", "/etc", ".hidden", "a.", "a b", "a\nb", "a\0b", "é", "a:b", &long]
        {
            let refused = AgentId::new("agent", bad).unwrap_err();
            assert!(refused.message().starts_with("`agent` must be the name of an agent"), "{bad:?}");
            assert!(bad.len() < 5 || !refused.message().contains(bad), "it is not repeated: {bad:?}");
        }
    }

    /// The specification joins whatever it is given to a path.
    #[test]
    fn the_literal_form_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let signals = folder.path().join("state/nudge");
        std::fs::create_dir_all(&signals).unwrap();
        let name = "../../elsewhere";
        std::fs::create_dir_all(signals.join(name)).unwrap();
        assert!(folder.path().join("elsewhere").is_dir(), "made outside of the state directory");
        assert_eq!(AgentId::parse(name), None);
    }
}
