//! From bytes to facts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::facts::FileFacts;

/// The version of the facts: raised whenever those of the same bytes change.
pub const EXTRACTOR: u32 = 1;

/// Why a file has no facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    /// No language that this build reads.
    UnknownLanguage,
    /// More than 512 KiB.
    TooLarge,
    /// A NUL among the first bytes.
    Binary,
    /// Not UTF-8.
    NotText,
    /// Lines of more than 500 bytes on average.
    Minified,
    /// Says of itself that a program wrote it.
    Generated,
    /// Nested more than 1,000 deep.
    TooDeep,
    /// More than 20,000 nodes.
    TooManyNodes,
    /// Not parsed within 250 ms.
    TimedOut,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownLanguage => "a language that is not read here",
            Self::TooLarge => "larger than 512 KiB",
            Self::Binary => "not a text",
            Self::NotText => "not UTF-8",
            Self::Minified => "minified",
            Self::Generated => "written by a program",
            Self::TooDeep => "nested more than 1,000 deep",
            Self::TooManyNodes => "more than 20,000 definitions",
            Self::TimedOut => "not parsed within 250 ms",
        })
    }
}

/// Reads a file. The path is relative to the root, with `/`, and tells language and tests.
pub fn extract(path: &str, bytes: &[u8]) -> Result<FileFacts, Skip> {
    let _ = (path, bytes);
    Err(Skip::UnknownLanguage)
}
