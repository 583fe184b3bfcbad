//! Programs of others by their name. Relative parts of PATH, and empty ones, are passed over: by them every folder that
//! somebody else can write in would name the program.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Finds the program that a name stands for.
pub fn find(name: &str) -> Option<PathBuf> {
    all(name).next()
}

/// Finds every program of a name, in the order of PATH.
pub fn all(name: &str) -> impl Iterator<Item = PathBuf> {
    let folders = folders(&std::env::var_os("PATH").unwrap_or_default()).into_iter();
    folders.filter_map(move |folder| which::which_in(folder.join(name), None::<&OsStr>, &folder).ok())
}

/// The folders that a PATH names by whole paths.
pub fn folders(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_folders_are_passed_over() {
        let path = std::env::join_paths(["", ".", "bin", "../x"]).unwrap();
        assert!(folders(&path).is_empty());
        let path = std::env::join_paths([std::env::temp_dir(), "bin".into()]).unwrap();
        assert_eq!(folders(&path), [std::env::temp_dir()]);
    }
}
