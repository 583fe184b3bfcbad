//! Reads the commands in a repository's own files for its tools: package.json, Makefile, Cargo.toml and others
//! (semantics section 20).
//!
//! Nudge runs none of these commands. Every file is read by [`nudge_os::foreign`], the only reader of strangers' files,
//! within [`SeedLimits`].
//!
//! ```
//! let repository = tempfile::tempdir().unwrap();
//! std::fs::write(repository.path().join("Makefile"), "test: ## Runs all tests\n\tpytest -q\n").unwrap();
//! let report = nudge_seed::read(repository.path(), &nudge_seed::SeedLimits::default());
//! assert_eq!(report.seeds[0].command, "make test");
//! assert_eq!(report.seeds[0].about, "Runs all tests");
//! ```

mod command;
mod file;
mod gone;
mod read;
mod tags;
mod walk;

use std::path::Path;

pub use gone::{GoneTarget, find_gone};
pub use walk::{has_changed, read};

/// The limits of reading a repository's files.
#[derive(Debug, Clone, Copy)]
pub struct SeedLimits {
    /// The most folders that are searched.
    pub folders: usize,
    /// The most bytes of one file.
    pub file_bytes: u64,
    /// The most seeds of one file.
    pub seeds_of_a_file: usize,
    /// The most seeds of a repository.
    pub seeds: usize,
}

impl Default for SeedLimits {
    fn default() -> Self {
        Self { folders: 10_000, file_bytes: 1 << 20, seeds_of_a_file: 40, seeds: 400 }
    }
}

/// A command that a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// The folder in which the command runs, relative to the top with `/` between its parts; empty at the top.
    pub folder: String,
    /// The key of the seed: the format, and the command's name in the file, such as `npm.test`, `make.build` or
    /// `ci.lint`.
    pub key: String,
    /// The command line, as a user types it in `folder`.
    pub command: String,
    /// Words by which a user may search for the command.
    pub tags: Vec<String>,
    /// The file's description of the command, or the command itself, in one line.
    pub about: String,
    /// The file that names the command, relative to the top.
    pub file: String,
    /// The number of the line in `file`, from 1.
    pub line: u32,
}

/// A file that was read for seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedManifest {
    /// The file, relative to the top.
    pub file: String,
    /// The SHA-256 of the file's bytes, in hexadecimal.
    pub sha256: String,
}

/// A file, or a part of one, that has the name of a manifest but gave no seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The file, relative to the top.
    pub file: String,
    /// The reason in a few words, such as `it is not a regular file`.
    pub why: String,
}

/// The commands of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeedReport {
    /// The seeds, sorted by folder, format and line.
    pub seeds: Vec<Seed>,
    /// The files that were read, sorted.
    pub manifests: Vec<SeedManifest>,
    /// The files that were skipped, sorted.
    pub passed_over: Vec<PassedOver>,
}

/// Returns true when `path` has the name of a manifest.
fn is_manifest(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| read::readers_of(folder, name).next().is_some())
}
