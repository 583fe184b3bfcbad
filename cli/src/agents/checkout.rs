//! What an agent's checkout has of the files that a hint names.

use std::path::{Path, PathBuf};

/// Most folders between a cwd and the top of its repository.
const MAX_DEPTH: usize = 64;

/// The folders of a repository that an agent is in, the innermost first; none outside a repository.
pub struct Checkout(Vec<PathBuf>);

impl Checkout {
    /// The folders from `cwd` up to the top of its repository, which is the first that has a `.git`.
    pub fn around(cwd: Option<&Path>) -> Self {
        let mut folders = Vec::new();
        for folder in cwd.into_iter().flat_map(Path::ancestors).take(MAX_DEPTH) {
            folders.push(folder.to_owned());
            if folder.join(".git").symlink_metadata().is_ok() {
                return Self(folders);
            }
        }
        Self::none()
    }

    /// No repository: nothing is known to be missing.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Returns the line, with a word on the first of its paths that is in none of the folders.
    pub fn marked(&self, line: String, paths: &[String]) -> String {
        let is_there = |path: &&String| self.0.iter().any(|folder| folder.join(path).symlink_metadata().is_ok());
        if self.0.is_empty() {
            return line;
        }
        let Some(missing) = paths.iter().find(|path| !is_there(path)) else { return line };
        match line.strip_suffix(')') {
            Some(open) => format!("{open}; {missing} not found here)"),
            None => format!("{line} ({missing} not found here)"),
        }
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
        let marked =
            |cwd: &Path, path: &str| Checkout::around(Some(cwd)).marked("a/b: x (3h)".into(), &[path.to_owned()]);
        for path in ["build.sh", "web/x.js", "x.js", "src"] {
            assert_eq!(marked(&top.join("web"), path), "a/b: x (3h)", "{path}");
        }
        assert_eq!(marked(top, "x.js"), "a/b: x (3h; x.js not found here)");
        assert_eq!(Checkout::around(None).marked("a".into(), &["x".to_owned()]), "a");
    }
}
