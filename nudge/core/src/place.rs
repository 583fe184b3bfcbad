//! Systems, globs for folders and branches, and repositories (semantics section 2).

pub mod glob;
pub mod repo;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Linux.
    Linux,
    /// macOS.
    Darwin,
    /// Windows.
    Windows,
}

impl Os {
    /// Every system, in byte order of its name.
    pub const ALL: [Self; 3] = [Self::Darwin, Self::Linux, Self::Windows];

    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Darwin => "darwin",
            Self::Windows => "windows",
        }
    }

    /// Returns the system that this library was built for; `None` for any other system.
    pub const fn current() -> Option<Self> {
        if cfg!(target_os = "linux") {
            Some(Self::Linux)
        } else if cfg!(target_os = "macos") {
            Some(Self::Darwin)
        } else if cfg!(windows) {
            Some(Self::Windows)
        } else {
            None
        }
    }

    pub(crate) const fn to_bit(self) -> u8 {
        match self {
            Self::Linux => 1,
            Self::Darwin => 2,
            Self::Windows => 4,
        }
    }
}
