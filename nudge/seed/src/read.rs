//! The readers, one for each format: the table below is all there is of them.
// All have the table's type, also those that can read whatever a file holds.
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

use crate::file::{File, Found, Why};

/// The reader of one format.
pub struct Reader {
    /// The name, the first part of its seeds' keys.
    pub format: &'static str,
    /// The files it reads: names, or a path that ends so, in which `*` stands for any characters but `/`.
    pub files: &'static [&'static str],
    /// The commands that a file names.
    pub read: fn(&File<'_>) -> Result<Vec<Found>, Why>,
}

/// All readers; commands that people type come first. When two commands are equal, the earlier reader's stays.
pub static READERS: &[Reader] = &[
    Reader { format: "npm", files: &["package.json"], read: npm::read },
    Reader { format: "make", files: &["GNUmakefile", "Makefile", "makefile"], read: make::read },
    Reader { format: "just", files: &["justfile", "Justfile", ".justfile"], read: just::read },
    Reader {
        format: "task",
        files: &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"],
        read: task::read,
    },
    Reader { format: "mise", files: &["mise.toml", ".mise.toml", ".tool-versions"], read: mise::read },
    Reader { format: "cargo", files: &["Cargo.toml"], read: cargo::read },
    Reader { format: "cargo", files: &[".cargo/config.toml"], read: cargo::aliases },
    Reader { format: "poe", files: &["pyproject.toml"], read: python::poe },
    Reader { format: "pdm", files: &["pyproject.toml"], read: python::pdm },
    Reader { format: "rye", files: &["pyproject.toml"], read: python::rye },
    Reader { format: "hatch", files: &["hatch.toml", "pyproject.toml"], read: python::hatch },
    Reader { format: "python", files: &["pyproject.toml", "setup.cfg", "pytest.ini"], read: python::read },
    Reader { format: "tox", files: &["tox.ini", "tox.toml", "pyproject.toml"], read: tox::read },
    Reader { format: "nox", files: &["noxfile.py"], read: nox::read },
    Reader { format: "go", files: &["go.mod"], read: go::read },
    Reader {
        format: "gradle",
        files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        read: jvm::gradle,
    },
    Reader { format: "maven", files: &["pom.xml"], read: jvm::maven },
    Reader { format: "composer", files: &["composer.json"], read: composer::read },
    Reader {
        format: "compose",
        files: &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"],
        read: compose::read,
    },
    Reader {
        format: "devcontainer",
        files: &[".devcontainer/devcontainer.json", ".devcontainer.json"],
        read: devcontainer::read,
    },
    Reader { format: "ci", files: &[".github/workflows/*.yml", ".github/workflows/*.yaml"], read: ci::github },
    Reader { format: "ci", files: &[".gitlab-ci.yml"], read: ci::gitlab },
];

/// The readers of a file, with their ranks.
pub fn readers_of<'a>(folder: &'a str, name: &'a str) -> impl Iterator<Item = (usize, &'static Reader)> + 'a {
    READERS.iter().enumerate().filter(move |(_, reader)| reader.files.iter().any(|file| is_named(folder, name, file)))
}

fn is_named(folder: &str, name: &str, file: &str) -> bool {
    let (above, last) = file.rsplit_once('/').unwrap_or(("", file));
    let is_below = above.is_empty() || folder == above || folder.ends_with(&format!("/{above}"));
    let is_last = last.strip_prefix('*').map_or(name == last, |end| name.ends_with(end));
    is_below && is_last
}

impl Reader {
    /// The folder that a file in `folder` speaks of: above those that exist for their files alone.
    pub fn base<'a>(&self, folder: &'a str) -> &'a str {
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
            assert_eq!((reader.format, reader.base(folder)), (format, base), "{folder}/{name}");
        }
        for (folder, name) in [("", "config.toml"), ("", "test.yml"), ("x.github/workflows/y", "test.yml")] {
            assert!(readers_of(folder, name).next().is_none(), "{folder}/{name}");
        }
    }
}
