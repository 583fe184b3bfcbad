//! Checks a hint against the agent's checkout: whether the files and build targets that the hint names exist, and
//! whether the file that the hint came from has changed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::{committed, seed};

/// The most folders between a cwd and the top of its repository.
const MAX_DEPTH: usize = 64;

/// The folders from the agent's cwd up to the top of its repository, innermost first; empty outside a repository.
pub struct AgentCheckout(Vec<PathBuf>);

/// The parts of a told line that the checkout can contradict.
pub struct LineSubject {
    /// The name of the hint, `component/key`.
    pub name: String,
    /// The paths that the line names.
    pub paths: Vec<String>,
    /// The command line that the line recommends.
    pub command: Option<String>,
}

/// Hints whose source file has changed: the name of the hint (`component/key`), then the file.
pub type Others = BTreeMap<String, String>;

impl AgentCheckout {
    /// Lists the folders from `cwd` up to the top of its repository, which is the nearest folder with a `.git`.
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

    /// Makes an empty checkout, for an agent outside a repository. Such a checkout raises no doubts.
    pub fn outside_repository() -> Self {
        Self(Vec::new())
    }

    /// Returns the hints of this checkout whose source file has changed. The stored hint keeps its old value: a user
    /// has changed the hint, or has not reviewed the file yet.
    pub fn find_changed(&self) -> Others {
        let Some(top) = self.0.last() else { return Others::new() };
        let clones = seed::SeededClones::read_shared().ok();
        let seeded =
            clones.as_ref().and_then(|clones| clones.get(top)).into_iter().flat_map(seed::SeededClone::list_changed);
        committed::list_changed(top).into_iter().map(|name| (name, committed::FILE.to_owned())).chain(seeded).collect()
    }

    /// Returns the doubt about each line, `None` for a line without a doubt. Returns an empty list outside a
    /// repository.
    pub fn find_doubts(&self, lines: &[LineSubject]) -> Vec<Option<String>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let others = self.find_changed();
        lines.iter().map(|line| self.find_doubt(line, &others)).collect()
    }

    /// Returns the first doubt that applies: a path that exists in none of the folders, a target that the build file
    /// lacks, or a source file that has changed.
    fn find_doubt(&self, line: &LineSubject, others: &Others) -> Option<String> {
        let is_missing = |path: &&String| self.0.iter().all(|folder| is_gone(&folder.join(path)));
        let missing = || line.paths.iter().find(is_missing).map(|path| format!("{path} not found here"));
        let gone = || {
            let nudge_seed::GoneTarget { target, file } = nudge_seed::find_gone(&self.0, line.command.as_deref()?)?;
            Some(format!("no {target} in {file}"))
        };
        let other = || others.get(&line.name).map(|file| format!("{file} changed since"));
        missing().or_else(gone).or_else(other)
    }
}

/// Returns true for a path that does not exist. If this process may not read the path, the path counts as existing.
fn is_gone(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// Appends a doubt to a line.
pub fn add_doubt(line: &str, doubt: &str) -> String {
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
        let subject = |name: &str, path: &str, command: &str| LineSubject {
            name: name.into(),
            paths: vec![path.into()],
            command: Some(command.into()),
        };
        let said = |cwd: &Path, name: &str, path: &str, command: &str| {
            let doubt = AgentCheckout::from_cwd(Some(cwd)).find_doubt(&subject(name, path, command), &others);
            doubt.map_or_else(|| "x (3h)".to_owned(), |doubt| add_doubt("x (3h)", &doubt))
        };
        for path in ["build.sh", "web/x.js", "x.js", "src"] {
            assert_eq!(said(&top.join("web"), "a/c", path, "make test"), "x (3h)", "{path}");
        }
        assert_eq!(said(top, "a/b", "x.js", "make lint"), "x (3h; x.js not found here)");
        assert_eq!(said(top, "a/b", "build.sh/x", "make test"), "x (3h; build.sh/x not found here)");
        assert_eq!(said(top, "a/b", "web", "make lint"), "x (3h; no lint in Makefile)");
        assert_eq!(said(top, "a/b", "web", "make test"), "x (3h; Makefile changed since)");
        assert!(AgentCheckout::from_cwd(None).find_doubts(&[subject("a/b", "x", "make lint")]).is_empty());
        assert_eq!(add_doubt("x", "y"), "x (y)");
    }
}
