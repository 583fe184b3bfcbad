//! Denies the capture of sessions that name certain folders. A folder has several names, because of links and `..`, and
//! a session may name several folders. So the check compares every name of every folder.

use std::path::{Component, Path, PathBuf};

use crate::source::at_home;

/// The most bytes of a path that is resolved on the disk. No system has longer paths.
const MAX_BYTES: usize = 4_096;

/// Returns true when any of the folders is a denied folder, or is inside one.
pub fn is_denied<'a>(denied: &[String], folders: impl IntoIterator<Item = &'a Path>) -> bool {
    let denied: Vec<_> = denied.iter().map(|folder| at_home(folder)).filter(|folder| folder.is_absolute()).collect();
    if denied.is_empty() {
        return false;
    }
    let denied: Vec<_> = denied.iter().flat_map(|folder| list_names(folder)).collect();
    let is_in =
        |folder: &Path| list_names(folder).iter().any(|name| denied.iter().any(|denied| name.starts_with(denied)));
    folders.into_iter().any(is_in)
}

/// Returns two names of a folder: the written name without `..`, and the real name without links. If the folder is
/// missing, its real name is resolved as far as the path exists.
fn list_names(folder: &Path) -> [PathBuf; 2] {
    let mut written = PathBuf::new();
    for part in folder.components() {
        if part == Component::ParentDir {
            written.pop();
        } else {
            written.push(part);
        }
    }
    let real = if folder.as_os_str().len() > MAX_BYTES { written.clone() } else { resolve_links(folder) };
    [written, real]
}

/// Resolves the links in the part of a path that exists.
fn resolve_links(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let Some(parent) = path.parent() else { return path.to_owned() };
    let mut parent = resolve_links(parent);
    match path.components().next_back() {
        Some(Component::Normal(name)) => parent.push(name),
        _ => {
            parent.pop();
        }
    }
    parent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_folder_counts() {
        let place = tempfile::tempdir().unwrap();
        let path_of = |path: &str| place.path().join(path);
        std::fs::create_dir_all(path_of("denied/app")).unwrap();
        std::fs::create_dir_all(path_of("other")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(path_of("denied"), path_of("link")).unwrap();
        let text = |path: &str| path_of(path).display().to_string();
        let denies = |deny: &str, cwd: &str| is_denied(&[text(deny)], [path_of("other").as_path(), &path_of(cwd)]);
        for cwd in ["denied", "denied/app", "denied/gone/x", "other/../denied/app", "gone/../denied"] {
            assert!(denies("denied", cwd), "{cwd}");
            assert!(denies("denied/", cwd), "{cwd}");
        }
        #[cfg(unix)]
        for (deny, cwd) in
            [("link", "denied/app"), ("denied", "link/app"), ("link", "link/gone"), ("denied", "link/gone/x")]
        {
            assert!(denies(deny, cwd), "{deny} {cwd}");
        }
        for cwd in ["denied2", "other", "denied/..", "denied/../other", ""] {
            assert!(!denies("denied", cwd), "{cwd}");
        }
        for odd in ["", "denied", "./denied"] {
            assert!(!is_denied(&[odd.into()], [path_of("denied").as_path()]), "{odd:?} is no absolute folder");
        }
        assert!(is_denied(&["/".into()], [path_of("other").as_path()]));
        assert!(!is_denied(&[text("gone")], [Path::new(&"/../".repeat(100_000))]));
    }
}
