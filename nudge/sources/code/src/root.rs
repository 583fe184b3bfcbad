//! Finds the root of a folder, and decides which paths of the root may be read.
//!
//! A root is the top of a git work tree. Outside of git, it is a folder with a manifest, such as `Cargo.toml`. A linked
//! worktree is a root of its own; so is a submodule, or any other repository inside a root. A home directory is never a
//! root, because it holds everything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge_core::context::detect::{GitAnswer, GitDetector};
use nudge_core::error::{Error, Result};
use nudge_core::text::is_tellable_name;
use nudge_core::walk::{common_dir, git_dir, read_pointer};
use nudge_os::foreign::{self, LinkPolicy};

/// The names of files that mark a folder outside of git as a project.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "tsconfig.json",
    "CMakeLists.txt",
    "composer.json",
    "Gemfile",
];
/// The longest path, in bytes.
pub const MAX_PATH_BYTES: usize = 4 << 10;

/// The top of a project.
#[derive(Debug, Clone)]
pub struct ProjectRoot {
    path: Arc<Path>,
    git_dir: Option<Arc<Path>>,
}

/// Both paths are without links and `..`, so two equal roots have equal bytes. Only bytes are compared, because each
/// call compares roots and must be fast.
impl PartialEq for ProjectRoot {
    fn eq(&self, other: &Self) -> bool {
        let git_dirs = [self, other].map(|root| root.git_dir.as_deref().map(Path::as_os_str));
        self.path.as_os_str() == other.path.as_os_str() && git_dirs[0] == git_dirs[1]
    }
}

impl ProjectRoot {
    /// Finds the root of a folder.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when the folder has no root. `E_INVALID` when the root would be too large, such as a home
    /// directory.
    pub fn find_root(folder: &Path, detector: &mut GitDetector) -> Result<Self> {
        let shown = folder.display();
        let Some(folder) = folder.canonicalize().ok().filter(|folder| folder.is_dir()) else {
            let message = format!("There is no folder {shown}; name the folder of a project as `root`.");
            return Err(Error::not_found(message).about("root"));
        };
        let top = match detector.detect(&folder) {
            GitAnswer::Inside(info) => Some(info.root),
            GitAnswer::Outside => None,
            // Git's files do not say everything that is asked here, but `.git` still marks the top.
            GitAnswer::Unsure(_) => folder.ancestors().find(|dir| is_there(&dir.join(".git"))).map(Path::to_owned),
        };
        let path = match top.and_then(|top| top.canonicalize().ok()).filter(|top| is_there(&top.join(".git"))) {
            Some(top) => top,
            None if MANIFESTS.iter().any(|name| is_there(&folder.join(name))) => folder,
            None => {
                let message = format!(
                    "{shown} is no project: it is in no git repository and has no manifest such as package.json; name \
                     the folder of a project as `root`."
                );
                return Err(Error::not_found(message).about("root"));
            }
        };
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        if path.parent().is_none() || home.is_some_and(|home| home.starts_with(&path)) {
            return Err(Error::invalid(
                "A home directory or a whole file system is not indexed; name a project in it as `root`.",
            )
            .about("root"));
        }
        let git_dir = git_dir(&path).map(Arc::from);
        Ok(Self { path: path.into(), git_dir })
    }

    /// Returns the path of the root's folder, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the git folder of the root, if it has one. A linked worktree has a git folder of its own.
    pub fn git_dir(&self) -> Option<&Path> {
        self.git_dir.as_deref()
    }

    /// Returns the path of a file of the root.
    pub fn join(&self, path: &str) -> PathBuf {
        // `Path::join` would allocate twice: first for the root, and then for the whole path.
        let mut place = PathBuf::with_capacity(self.path.as_os_str().len() + 1 + path.len());
        place.push(&self.path);
        place.push(path);
        place
    }

    /// Returns a path relative to the root, with `/` between the names. Returns `None` for a path outside of the root,
    /// and for a name that does not fit into one line.
    pub fn name(&self, path: &Path) -> Option<String> {
        let mut name = String::new();
        for part in path.strip_prefix(&self.path).ok()?.components() {
            let std::path::Component::Normal(part) = part else { return None };
            if !name.is_empty() {
                name.push('/');
            }
            name.push_str(part.to_str()?);
        }
        can_be_told(&name).then_some(name)
    }

    /// Returns the path, relative to the root, of the file that a caller names. The caller may give an absolute path,
    /// or a path relative to the root or to `cwd`. Links are followed if they stay inside the root. A path that no
    /// longer exists is returned as it was given.
    pub fn resolve_path(&self, given: &str, cwd: Option<&Path>) -> Option<String> {
        if given.is_empty() || given.len() > MAX_PATH_BYTES {
            return None;
        }
        let given = Path::new(given.strip_prefix("./").unwrap_or(given));
        let places = [Some(self.path.join(given)), cwd.map(|cwd| cwd.join(given))];
        let real = places.iter().flatten().find_map(|place| self.name(&place.canonicalize().ok()?));
        real.or_else(|| self.name(&self.path.join(given)))
    }

    /// Returns the commit of HEAD; `None` if git's files do not say it.
    pub fn read_head(&self) -> Option<String> {
        let git_dir = self.git_dir.as_deref()?;
        let head = read_pointer(&git_dir.join("HEAD"))?;
        let Some(name) = head.strip_prefix("ref: ") else { return parse_commit(&head) };
        // A ref name with `..` would lead out of the repository.
        if name.split('/').any(|part| part == "..") || name.starts_with('/') {
            return None;
        }
        let common = common_dir(git_dir);
        [git_dir, &common]
            .iter()
            .find_map(|dir| parse_commit(&read_pointer(&dir.join(name))?))
            .or_else(|| find_packed_ref(&common, name))
    }
}

/// Returns true if a path fits into one line and can be looked up later.
pub fn can_be_told(path: &str) -> bool {
    !path.is_empty() && path.len() <= MAX_PATH_BYTES && is_tellable_name(path)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn parse_commit(text: &str) -> Option<String> {
    let is_one = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| text.to_owned())
}

/// Looks up a ref name in the file `packed-refs`.
fn find_packed_ref(common: &Path, name: &str) -> Option<String> {
    let text = foreign::read_text(&common.join("packed-refs"), LinkPolicy::Followed, 8 << 20).ok()?;
    text.lines()
        .find_map(|line| line.split_once(' ').filter(|(_, own)| *own == name).and_then(|(id, _)| parse_commit(id)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nudge_core::context::detect::GitEnv;

    use super::*;

    /// Makes a folder that git accepts as a repository.
    fn repository(folder: &Path) {
        fs::create_dir_all(folder.join(".git/objects")).unwrap();
        fs::create_dir_all(folder.join(".git/refs/heads")).unwrap();
        fs::write(folder.join(".git/HEAD"), "ref: refs/heads/dev\n").unwrap();
        fs::write(folder.join(".git/config"), "").unwrap();
    }

    fn root(folder: &Path) -> Result<ProjectRoot> {
        let mut env = GitEnv::empty();
        env.assume_owned = true;
        ProjectRoot::find_root(folder, &mut GitDetector::with_env(env))
    }

    #[test]
    fn a_repository_a_manifest_and_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("outer/src/inner/deep")).unwrap();
        repository(&base.join("outer"));
        assert_eq!(root(&base.join("outer/src/inner")).unwrap().path(), base.join("outer"));
        repository(&base.join("outer/src/inner"));
        assert_eq!(root(&base.join("outer/src/inner/deep")).unwrap().path(), base.join("outer/src/inner"));
        fs::create_dir(base.join("plain")).unwrap();
        assert_eq!(root(&base.join("plain")).unwrap_err().reason(), "E_NOT_FOUND");
        fs::write(base.join("plain/package.json"), "{}").unwrap();
        assert_eq!(root(&base.join("plain")).unwrap().git_dir(), None);
        for whole in [Path::new("/"), &std::env::home_dir().unwrap()] {
            root(whole).unwrap_err();
        }
    }

    #[test]
    fn names_stay_inside() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("one/src")).unwrap();
        repository(&base.join("one"));
        fs::write(base.join("one/src/a.py"), "").unwrap();
        fs::write(base.join("secret.py"), "").unwrap();
        let root = root(&base.join("one")).unwrap();
        let cwd = base.join("one/src");
        for (given, name) in [
            ("src/a.py", Some("src/a.py")),
            ("./src/a.py", Some("src/a.py")),
            ("a.py", Some("src/a.py")),
            ("../src/a.py", Some("src/a.py")),
            ("src/gone.py", Some("src/gone.py")),
            ("../secret.py", None),
            ("/etc/passwd", None),
            ("src/a\nb.py", None),
            ("", None),
        ] {
            assert_eq!(root.resolve_path(given, Some(&cwd)).as_deref(), name, "{given:?}");
        }
        let absolute = base.join("one/src/a.py");
        assert_eq!(root.resolve_path(absolute.to_str().unwrap(), None).as_deref(), Some("src/a.py"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("src/a.py", base.join("one/link.py")).unwrap();
            std::os::unix::fs::symlink(base.join("secret.py"), base.join("one/out.py")).unwrap();
            assert_eq!(root.resolve_path("link.py", None).as_deref(), Some("src/a.py"));
            // The path is inside the root, but it is not a regular file, so it is never read as code.
            assert_eq!(root.resolve_path("out.py", None).as_deref(), Some("out.py"));
        }
    }

    #[test]
    fn the_commit_of_head() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        repository(&base);
        let root = root(&base).unwrap();
        assert_eq!(root.read_head(), None);
        let (packed, two) = ("1".repeat(40), "2".repeat(40));
        fs::write(base.join(".git/packed-refs"), format!("# pack-refs\n{packed} refs/heads/dev\n")).unwrap();
        assert_eq!(root.read_head().as_ref(), Some(&packed));
        fs::write(base.join(".git/refs/heads/dev"), format!("{two}\n")).unwrap();
        assert_eq!(root.read_head().as_ref(), Some(&two));
        fs::write(base.join(".git/HEAD"), format!("{packed}\n")).unwrap();
        assert_eq!(root.read_head(), Some(packed));
        fs::write(base.join(".git/HEAD"), "ref: ../../etc/passwd\n").unwrap();
        assert_eq!(root.read_head(), None);
    }
}
