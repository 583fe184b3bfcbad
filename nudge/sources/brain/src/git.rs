//! Making a brain a repository of git, by git.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use nudge_core::error::{Error, Result};

/// Variables by which git would mean another repository than that of the folder.
pub const ELSEWHERE: [&str; 5] =
    ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"];

/// Makes a folder a repository, unless it is one; whether it was made one.
///
/// # Errors
/// `E_UNAVAILABLE` when git is not there or does not do it.
pub fn begin(root: &Path) -> Result<bool> {
    if root.join(".git").symlink_metadata().is_ok() {
        return Ok(false);
    }
    let mut git = Command::new("git");
    git.args(["init", "--quiet"]).current_dir(root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for name in ELSEWHERE {
        git.env_remove(name);
    }
    match git.status() {
        Ok(status) if status.success() => Ok(true),
        Ok(_) => {
            Err(Error::unavailable(format!("Git does not make {} a repository; try `git init` there.", root.display())))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::unavailable("There is no git in PATH; install it, or leave `git` out."))
        }
        Err(error) => Err(Error::unavailable(format!("Git cannot be started ({error}); leave `git` out."))),
    }
}
