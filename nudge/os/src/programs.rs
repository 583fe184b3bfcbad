//! Finds foreign programs by their names. It skips relative and empty parts of PATH, because such a part could lead to
//! a program in a current folder in which another user can write.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Finds the first program with this name.
pub fn find_program(name: &str) -> Option<PathBuf> {
    find_all(name).next()
}

/// Finds every program with this name, in the order of PATH.
pub fn find_all(name: &str) -> impl Iterator<Item = PathBuf> {
    in_folders(name, absolute_folders(&std::env::var_os("PATH").unwrap_or_default()))
}

/// Finds the program with this name outside the checkout around `folder`. A checkout may contain a program, and a PATH
/// that was made for the checkout may name a folder in it. A checkout that contains the user's home counts as the
/// user's own.
pub fn find_outside(name: &str, folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(checkout) = checkout_around(folder) else { return find_program(name) };
    in_folders(name, folders_outside(&path, checkout)).find(|program| is_outside(program, checkout))
}

/// Returns the PATH for a program that starts in `folder`: the absolute parts of `path` outside the checkout around
/// `folder`.
pub fn path_outside(path: &OsStr, folder: &Path) -> OsString {
    let folders =
        checkout_around(folder).map_or_else(|| absolute_folders(path), |checkout| folders_outside(path, checkout));
    join_folders(folders)
}

/// Returns the top of the checkout around a folder.
fn checkout_around(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|candidate| candidate.join(".git").symlink_metadata().is_ok())
}

fn in_folders(name: &str, folders: Vec<PathBuf>) -> impl Iterator<Item = PathBuf> {
    folders.into_iter().filter_map(move |folder| which::which_in(folder.join(name), None::<&OsStr>, &folder).ok())
}

/// Returns the folders that a PATH names by absolute paths.
pub fn absolute_folders(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
}

/// Returns the folders that a PATH names by absolute paths, except folders inside `folder` and links into it.
fn folders_outside(path: &OsStr, folder: &Path) -> Vec<PathBuf> {
    absolute_folders(path).into_iter().filter(|candidate| is_outside(candidate, folder)).collect()
}

/// Returns the PATH for a program to start: `path` without its relative parts.
pub fn whole_path(path: &OsStr) -> OsString {
    join_folders(absolute_folders(path))
}

/// Joins folders to a PATH. Leaves out folders that a PATH cannot contain, such as a folder with a quotation mark on
/// Windows.
fn join_folders(folders: Vec<PathBuf>) -> OsString {
    let nameable = folders.into_iter().filter(|folder| std::env::join_paths([folder]).is_ok());
    std::env::join_paths(nameable).expect("each folder can stand in a PATH")
}

/// Returns true if a path is outside a folder, both as written and after links are resolved.
fn is_outside(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inner = real(folder);
    let is_users_own = || std::env::home_dir().is_some_and(|home| real(&home).starts_with(&inner));
    let is_inside = |path: &Path| path.starts_with(folder) || real(path).starts_with(&inner);
    inner.parent().is_none() || !is_inside(path) || is_users_own()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_are_passed_over() {
        let path = std::env::join_paths(["", ".", "bin", "../x"]).unwrap();
        assert!(absolute_folders(&path).is_empty());
        assert_eq!(whole_path(&path), "");
        let path = std::env::join_paths([std::env::temp_dir(), "bin".into()]).unwrap();
        assert_eq!(absolute_folders(&path), [std::env::temp_dir()]);
        assert_eq!(whole_path(&path), std::env::temp_dir());
    }

    #[cfg(unix)]
    #[test]
    fn folders_within_the_folder_at_hand_are_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let path_of = |name: &str| place.path().join(name);
        for folder in ["checkout/bin", "other"] {
            std::fs::create_dir_all(path_of(folder)).unwrap();
        }
        std::os::unix::fs::symlink(path_of("checkout/bin"), path_of("link")).unwrap();
        let path = std::env::join_paths([path_of("checkout/bin"), path_of("link"), path_of("other")]).unwrap();
        assert_eq!(folders_outside(&path, &path_of("checkout")), [path_of("other")]);
        // A folder whose name only begins with the same letters is another folder.
        assert_eq!(
            folders_outside(&path, &path_of("oth")),
            [path_of("checkout/bin"), path_of("link"), path_of("other")]
        );
        // Programs in the user's own home or in the root folder are not excluded.
        let bin = [path_of("checkout/bin")];
        let path = std::env::join_paths(&bin).unwrap();
        assert_eq!(folders_outside(&path, Path::new("/")), bin);
        std::fs::create_dir_all(path_of("checkout/.git")).unwrap();
        std::fs::create_dir_all(path_of("checkout/src/deep")).unwrap();
        let path = std::env::join_paths([path_of("checkout/bin"), path_of("other")]).unwrap();
        assert_eq!(path_outside(&path, &path_of("checkout/src/deep")), path_of("other"));
        assert_eq!(path_outside(&path, &path_of("other")), path, "no checkout");
        let home = std::env::home_dir().unwrap();
        assert!(is_outside(&home.join("bin/git"), &home));
    }
}
