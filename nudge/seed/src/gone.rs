//! Finds a target that a command line names but no file defines, such as `deploy` in `make deploy` when no Makefile has
//! it.

use std::path::Path;

use nudge_core::shell::{Folder, parse};
use nudge_os::foreign::{self, LinkPolicy};

use crate::SeedLimits;

/// A program that runs a target of a file, given the target's name.
struct TaskRunner {
    programs: &'static [&'static str],
    /// The words between the program and the name.
    verb: &'static [&'static str],
    files: &'static [&'static str],
    /// The beginnings of lines that include other files or generate names. If a file has such a line, its targets are
    /// unknown.
    opens: &'static [&'static str],
}

static RUNNERS: &[TaskRunner] = &[
    TaskRunner {
        programs: &["make", "gmake"],
        verb: &[],
        files: &["GNUmakefile", "Makefile", "makefile"],
        opens: &["include", "-include", "sinclude", "%", "$", ".DEFAULT"],
    },
    TaskRunner {
        programs: &["just"],
        verb: &[],
        files: &["justfile", "Justfile", ".justfile"],
        opens: &["import", "mod"],
    },
    TaskRunner {
        programs: &["task"],
        verb: &[],
        files: &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"],
        opens: &["includes"],
    },
    TaskRunner { programs: &["npm", "pnpm", "yarn", "bun"], verb: &["run"], files: &["package.json"], opens: &[] },
    TaskRunner { programs: &["composer"], verb: &["run"], files: &["composer.json"], opens: &[] },
    TaskRunner { programs: &["poe"], verb: &[], files: &["pyproject.toml"], opens: &["include", "[tool.poe.include"] },
];

/// A target that a command line names but that no file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneTarget {
    /// The missing name, such as the target `deploy`.
    pub target: String,
    /// The name of the file, such as `Makefile`.
    pub file: String,
}

/// Finds a target that a command line names but that no file in these folders defines. The first folder is the
/// innermost. `None` when there is no such target, and when the answer is unknown: no folder has a file with targets, a
/// file includes other files, or the line names a folder.
#[must_use]
pub fn find_gone(folders: &[impl AsRef<Path>], command: &str) -> Option<GoneTarget> {
    let line = parse(command)?;
    line.commands.iter().filter(|command| command.folder == Folder::Here).find_map(|command| {
        let runner = RUNNERS.iter().find(|runner| runner.programs.contains(&&*command.program))?;
        let rest = command.arguments();
        let (verb, rest) = rest.split_at_checked(runner.verb.len())?;
        let target = rest.first().filter(|_| verb == runner.verb)?;
        let is_name = |c: char| c.is_alphanumeric() || "_-:.".contains(c);
        if target.starts_with('-') || !target.chars().all(is_name) {
            return None;
        }
        let mut file = None;
        for folder in folders {
            for name in runner.files {
                let path = folder.as_ref().join(name);
                let Ok(text) = foreign::read_text(&path, LinkPolicy::Refused, SeedLimits::default().file_bytes) else {
                    // A file that exists but cannot be read may define the target.
                    if path.symlink_metadata().is_ok() {
                        return None;
                    }
                    continue;
                };
                if runner.may_know(&text, target) {
                    return None;
                }
                file.get_or_insert(*name);
            }
        }
        file.map(|file| GoneTarget { target: target.clone(), file: file.to_owned() })
    })
}

impl TaskRunner {
    /// Returns true when the text has the name as a word, or has lines that may define other names.
    fn may_know(&self, text: &str, name: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let is_word =
            |offset: usize| !text[..offset].ends_with(is_part) && !text[offset + name.len()..].starts_with(is_part);
        text.match_indices(name).any(|(offset, _)| is_word(offset))
            || text.lines().any(|line| self.opens.iter().any(|start| line.trim_start().starts_with(start)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_no_file_knows_is_said() {
        let top = tempfile::tempdir().unwrap();
        let path_of = |name: &str| top.path().join(name);
        fs::create_dir_all(path_of("web")).unwrap();
        fs::write(path_of("Makefile"), "test-unit:\n\ttrue\nlint: fmt\n").unwrap();
        fs::write(path_of("web/package.json"), r#"{"scripts": {"build": "vite build"}}"#).unwrap();
        fs::write(path_of("justfile"), "import 'more.just'\n").unwrap();
        let folders = [path_of("web"), top.path().to_owned()];
        for (command, expected) in [
            ("make test", Some("test Makefile")),
            ("CI=1 make -j8", None),
            ("make lint", None),
            ("make fmt", None),
            ("make -C web test", None),
            ("make test-unit && make test", Some("test Makefile")),
            ("cd web && make test", None),
            ("make $TARGET", None),
            ("npm run build", None),
            ("pnpm run deploy", Some("deploy package.json")),
            ("npm test", None),
            ("npm run", None),
            ("just deploy", None),
            ("task deploy", None),
            ("cargo deploy", None),
            ("make 'unclosed", None),
        ] {
            let found = find_gone(&folders, command).map(|gone| format!("{} {}", gone.target, gone.file));
            assert_eq!(found.as_deref(), expected, "{command}");
        }
        assert_eq!(find_gone(&[path_of("web")], "make test"), None, "there is no Makefile");
    }

    #[cfg(unix)]
    #[test]
    fn of_what_cannot_be_read_nothing_is_said() {
        let top = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/zero", top.path().join("Makefile")).unwrap();
        assert_eq!(find_gone(&[top.path()], "make test"), None);
    }
}
