//! The readers of the files with commands: one for each format. The table below lists them.
// All readers have the type that the table needs, including the readers that never fail.
#![allow(clippy::unnecessary_wraps)]

mod cargo;
mod ci;
mod compose;
mod composer;
mod devcontainer;
mod go;
mod just;
mod jvm;
mod make;
mod mise;
mod nox;
mod npm;
mod python;
mod task;
mod tox;

use crate::file::{FoundCommand, SeedFile, Why};

/// The reader of one format.
pub struct FormatReader {
    /// The name of the format. It is the first part of the keys of its seeds.
    pub format: &'static str,
    /// The files that the reader reads: names, or ends of paths. `*` stands for any characters except `/`.
    pub files: &'static [&'static str],
    /// Reads the commands that a file names.
    pub read: fn(&SeedFile<'_>) -> Result<Vec<FoundCommand>, Why>,
}

/// All readers. The readers of commands that people type come first. If two readers find the same command, the seed of
/// the earlier reader is kept.
pub static READERS: &[FormatReader] = &[
    FormatReader { format: "npm", files: &["package.json"], read: npm::read },
    FormatReader { format: "make", files: &["GNUmakefile", "Makefile", "makefile"], read: make::read },
    FormatReader { format: "just", files: &["justfile", "Justfile", ".justfile"], read: just::read },
    FormatReader {
        format: "task",
        files: &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"],
        read: task::read,
    },
    FormatReader { format: "mise", files: &["mise.toml", ".mise.toml", ".tool-versions"], read: mise::read },
    FormatReader { format: "cargo", files: &["Cargo.toml"], read: cargo::read },
    FormatReader { format: "cargo", files: &[".cargo/config.toml"], read: cargo::read_aliases },
    FormatReader { format: "poe", files: &["pyproject.toml"], read: python::read_poe },
    FormatReader { format: "pdm", files: &["pyproject.toml"], read: python::read_pdm },
    FormatReader { format: "rye", files: &["pyproject.toml"], read: python::read_rye },
    FormatReader { format: "hatch", files: &["hatch.toml", "pyproject.toml"], read: python::read_hatch },
    FormatReader { format: "python", files: &["pyproject.toml", "setup.cfg", "pytest.ini"], read: python::read },
    FormatReader { format: "tox", files: &["tox.ini", "tox.toml", "pyproject.toml"], read: tox::read },
    FormatReader { format: "nox", files: &["noxfile.py"], read: nox::read },
    FormatReader { format: "go", files: &["go.mod"], read: go::read },
    FormatReader {
        format: "gradle",
        files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        read: jvm::read_gradle,
    },
    FormatReader { format: "maven", files: &["pom.xml"], read: jvm::read_maven },
    FormatReader { format: "composer", files: &["composer.json"], read: composer::read },
    FormatReader {
        format: "compose",
        files: &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"],
        read: compose::read,
    },
    FormatReader {
        format: "devcontainer",
        files: &[".devcontainer/devcontainer.json", ".devcontainer.json"],
        read: devcontainer::read,
    },
    FormatReader {
        format: "ci",
        files: &[".github/workflows/*.yml", ".github/workflows/*.yaml"],
        read: ci::read_github,
    },
    FormatReader { format: "ci", files: &[".gitlab-ci.yml"], read: ci::read_gitlab },
];

/// Returns the readers of a file, each with its index in `READERS`.
pub fn readers_of<'a>(folder: &'a str, name: &'a str) -> impl Iterator<Item = (usize, &'static FormatReader)> + 'a {
    READERS.iter().enumerate().filter(move |(_, reader)| reader.files.iter().any(|file| is_named(folder, name, file)))
}

fn is_named(folder: &str, name: &str, file: &str) -> bool {
    let (above, last) = file.rsplit_once('/').unwrap_or(("", file));
    let is_below = above.is_empty() || folder == above || folder.ends_with(&format!("/{above}"));
    let is_last = last.strip_prefix('*').map_or(name == last, |end| name.ends_with(end));
    is_below && is_last
}

impl FormatReader {
    /// Returns the folder in which the commands of a file in `folder` run. A folder that exists only for such files,
    /// like `.github/workflows`, is cut off.
    pub fn find_base<'a>(&self, folder: &'a str) -> &'a str {
        let above = self.files[0].rsplit_once('/').map_or("", |(above, _)| above);
        folder.strip_suffix(above).unwrap_or(folder).trim_end_matches('/')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names_and_folders() {
        for (folder, name, format, base) in [
            ("", "package.json", "npm", ""),
            ("web/app", "package.json", "npm", "web/app"),
            (".github/workflows", "test.yml", "ci", ""),
            ("web/.devcontainer", "devcontainer.json", "devcontainer", "web"),
            (".cargo", "config.toml", "cargo", ""),
        ] {
            let (_, reader) = readers_of(folder, name).next().unwrap();
            assert_eq!((reader.format, reader.find_base(folder)), (format, base), "{folder}/{name}");
        }
        for (folder, name) in [("", "config.toml"), ("", "test.yml"), ("x.github/workflows/y", "test.yml")] {
            assert!(readers_of(folder, name).next().is_none(), "{folder}/{name}");
        }
    }
}
