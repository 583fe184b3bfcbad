//! Checks a hint against the agent's checkout: whether the files and targets that it names are there, and whether the
//! file that it came from has changed since.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{committed, seed};

/// Most folders between a cwd and the top of its repository.
const MAX_DEPTH: usize = 64;

/// The folders of a repository that an agent is in, the innermost first; none outside a repository.
pub struct AgentCheckout(Vec<PathBuf>);

/// Hints by name (`component/key`), with the file that they came from and that says something else now.
pub type Others = BTreeMap<String, String>;

impl AgentCheckout {
    /// The folders from `cwd` up to the top of its repository, which is the first that has a `.git`.
    pub fn from_cwd(cwd: Option<&Path>) -> Self {
        let mut folders = Vec::new();
        for folder in cwd.into_iter().flat_map(Path::ancestors).take(MAX_DEPTH) {
            folders.push(folder.to_owned());
            if folder.join(".git").symlink_metadata().is_ok() {
                return Self(folders);
            }
        }
        Self::outside_repository()
    }

    /// No repository: nothing is known to be missing.
    pub fn outside_repository() -> Self {
        Self(Vec::new())
    }

    /// Returns the hints of this checkout with files that have changed since. The hints stand as they are: a user
    /// changed them, or has not looked at the file yet.
    pub fn find_changed(&self) -> Others {
        let Some(top) = self.0.last() else { return Others::new() };
        let seeded = seed::SeededClones::read_unlocked().ok().and_then(|clones| clones.get(top).cloned());
        let seeded = seeded.into_iter().flat_map(|clone| clone.list_changed().collect::<Vec<_>>());
        committed::list_changed(top).into_iter().map(|name| (name, committed::FILE.to_owned())).chain(seeded).collect()
    }

    /// Returns the doubt about a hint with these paths and this command: the first path that is in none of the folders,
    /// else a target that its file does not know, else the file that says something else now.
    pub fn find_doubt(&self, name: &str, paths: &[String], command: Option<&str>, others: &Others) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let is_there = |path: &&String| self.0.iter().any(|folder| folder.join(path).symlink_metadata().is_ok());
        let missing = || paths.iter().find(|path| !is_there(path)).map(|path| format!("{path} not found here"));
        let gone = || {
            let nudge_seed::GoneTarget { target, file } = nudge_seed::find_gone(&self.0, command?)?;
            Some(format!("no {target} in {file}"))
        };
        let other = || others.get(name).map(|file| format!("{file} changed since"));
        missing().or_else(gone).or_else(other)
    }
}

/// The line, with a word of doubt at its end.
pub fn with_doubt(line: String, doubt: Option<&str>) -> String {
    let Some(doubt) = doubt else { return line };
    match line.strip_suffix(')') {
        Some(open) => format!("{open}; {doubt})"),
        None => format!("{line} ({doubt})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_no_folder_of_the_checkout_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::create_dir_all(top.join("web/src")).unwrap();
        std::fs::create_dir(top.join(".git")).unwrap();
        std::fs::write(top.join("build.sh"), "").unwrap();
        std::fs::write(top.join("web/x.js"), "").unwrap();
        std::fs::write(top.join("Makefile"), "test:\n").unwrap();
        let others = Others::from([("a/b".to_owned(), "Makefile".to_owned())]);
        let said = |cwd: &Path, name: &str, path: &str, command: Option<&str>| {
            let doubt = AgentCheckout::from_cwd(Some(cwd)).find_doubt(name, &[path.to_owned()], command, &others);
            with_doubt("x (3h)".into(), doubt.as_deref())
        };
        for path in ["build.sh", "web/x.js", "x.js", "src"] {
            assert_eq!(said(&top.join("web"), "a/c", path, Some("make test")), "x (3h)", "{path}");
        }
        assert_eq!(said(top, "a/b", "x.js", Some("make lint")), "x (3h; x.js not found here)");
        assert_eq!(said(top, "a/b", "web", Some("make lint")), "x (3h; no lint in Makefile)");
        assert_eq!(said(top, "a/b", "web", Some("make test")), "x (3h; Makefile changed since)");
        assert_eq!(AgentCheckout::from_cwd(None).find_doubt("a/b", &["x".to_owned()], None, &others), None);
        assert_eq!(with_doubt("x".into(), Some("y")), "x (y)");
    }
}
