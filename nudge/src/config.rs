//! The limits and switches of a store (semantics section 5, docs/settings.md).

use nudge_core::error::{Error, Result};

use crate::ttl::Ttl;

/// The settings of a store. [`Config::default`] has the defaults of docs/settings.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The most components (`NUDGE_MAX_COMPONENTS`, 500).
    pub max_components: usize,
    /// The most hints in one component; each variant counts (`NUDGE_MAX_HINTS_PER_COMPONENT`, 200).
    pub max_hints_per_component: usize,
    /// The most hints of the store (`NUDGE_MAX_HINTS`, 5,000).
    pub max_hints: usize,
    /// The most bytes of all hints in an export (`NUDGE_MAX_BYTES`, 24 MiB). In memory, the hints, their scopes and the
    /// deletions that can be undone take at most twice this size.
    pub max_bytes: usize,
    /// Is true if texts that look like credentials are refused (`NUDGE_SECRET_GUARD`, on).
    pub secret_guard: bool,
    /// The ttl of hints that are stored without a ttl (`NUDGE_DEFAULT_TTL`, `session`).
    pub default_ttl: Ttl,
    /// The most suggestions to one client session in 10 minutes (`NUDGE_SUGGEST_MAX`, 20).
    pub suggest_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_components: 500,
            max_hints_per_component: 200,
            max_hints: 5_000,
            max_bytes: 24 << 20,
            secret_guard: true,
            default_ttl: Ttl::SESSION,
            suggest_max: 20,
        }
    }
}

impl Config {
    /// Returns the most bytes of memory for hints and deletions.
    pub(crate) fn max_held(&self) -> usize {
        self.max_bytes.saturating_mul(2)
    }

    /// The environment variables that [`Config::from_env`] reads.
    pub const ENV: [&str; 7] = [
        "NUDGE_MAX_COMPONENTS",
        "NUDGE_MAX_HINTS_PER_COMPONENT",
        "NUDGE_MAX_HINTS",
        "NUDGE_MAX_BYTES",
        "NUDGE_SECRET_GUARD",
        "NUDGE_DEFAULT_TTL",
        "NUDGE_SUGGEST_MAX",
    ];

    /// Reads the variables of [`Config::ENV`] through `get`. A missing or empty variable leaves the default.
    ///
    /// ```
    /// let config = nudge::Config::from_env(|name| (name == "NUDGE_MAX_HINTS").then(|| "10".into()))?;
    /// assert_eq!(config.max_hints, 10);
    /// # Ok::<(), nudge::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_INVALID` for a value that cannot be read; the message names the variable.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let get = |name: &str| get(name).filter(|text| !text.is_empty());
        let count = |name: &str, default: usize| match get(name) {
            None => Ok(default),
            Some(text) => {
                text.parse().map_err(|_| Error::invalid(format!("{name} must be a whole number, 0 or more.")))
            }
        };
        let default = Self::default();
        Ok(Self {
            max_components: count("NUDGE_MAX_COMPONENTS", default.max_components)?,
            max_hints_per_component: count("NUDGE_MAX_HINTS_PER_COMPONENT", default.max_hints_per_component)?,
            max_hints: count("NUDGE_MAX_HINTS", default.max_hints)?,
            max_bytes: count("NUDGE_MAX_BYTES", default.max_bytes)?,
            secret_guard: match get("NUDGE_SECRET_GUARD").as_deref() {
                None | Some("1" | "true" | "on") => true,
                Some("0" | "false" | "off") => false,
                Some(_) => return Err(Error::invalid("NUDGE_SECRET_GUARD must be 1, true or on, or 0, false or off.")),
            },
            default_ttl: match get("NUDGE_DEFAULT_TTL") {
                None => default.default_ttl,
                Some(text) => text.parse().map_err(|e: Error| Error::invalid(format!("NUDGE_DEFAULT_TTL: {e}")))?,
            },
            suggest_max: count("NUDGE_SUGGEST_MAX", default.suggest_max)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_read_and_checked() {
        for name in Config::ENV {
            let with = |value: &'static str| Config::from_env(move |asked| (asked == name).then(|| value.into()));
            assert_eq!(with("").unwrap(), Config::default());
            let good = if name == "NUDGE_DEFAULT_TTL" { "PT1H" } else { "0" };
            assert_ne!(with(good).unwrap(), Config::default(), "{name}");
            assert!(with("-3x").unwrap_err().message().contains(name), "{name}");
        }
    }
}
