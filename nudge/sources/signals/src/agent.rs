//! Defines the name of an agent. The folder of the agent has the same name.

use std::fmt;

use nudge_core::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};

/// The most bytes of a name.
const MAX_BYTES: usize = 128;

/// The name of an agent, such as `polecat-alpha`: 1 to 128 ASCII letters, digits, `-`, `_`, `.`, `@` and `+`. The name
/// neither begins nor ends with a dot, so on every system it is a valid name of one folder, and never a path to another
/// folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentId(String);

impl AgentId {
    /// Checks a name. `field` is the name of the param that the error shows.
    ///
    /// # Errors
    /// `E_INVALID`. The error does not show the refused name, because that name may be any text.
    pub fn new(field: &str, name: &str) -> Result<Self> {
        Self::parse(name).ok_or_else(|| {
            Error::invalid(format!(
                "`{field}` must be the name of an agent: 1 to {MAX_BYTES} letters, digits, `-`, `_`, `.`, `@` or `+`, \
                 without a dot at its ends."
            ))
            .about(field)
        })
    }

    /// Returns the name if it is valid, else `None`.
    pub fn parse(name: &str) -> Option<Self> {
        let is_fine = (1..=MAX_BYTES).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@+".contains(&byte))
            && !name.starts_with('.')
            && !name.ends_with('.');
        is_fine.then(|| Self(name.to_owned()))
    }

    /// Returns the name.
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

    /// The upstream specification joins any text to a path, without a check.
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
