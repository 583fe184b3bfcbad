//! Makes a folder a git repository, and converts failures of git into errors.

use std::path::Path;
use std::time::Duration;

use nudge_core::error::{Error, Result};
use nudge_git::{CallLimits, Git, GitFailure};

/// The limits of the git command that makes a repository.
const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(30), output_bytes: 1 << 20 };

/// Makes a folder a git repository. Returns true if it was made one, and false if it was one before.
///
/// # Errors
/// `E_UNAVAILABLE` when git is missing or fails.
pub fn init_repository(root: &Path) -> Result<bool> {
    if root.join(".git").symlink_metadata().is_ok() {
        return Ok(false);
    }
    let made = Git::find(root).and_then(|git| git.ask(&["init", "--quiet"], LIMITS));
    made.map(|_| true).map_err(|failure| match failure {
        GitFailure::Missing => {
            Error::unavailable("There is no git in PATH; install it, or leave `git` out.").about("git")
        }
        failure if failure.is_start() => {
            Error::unavailable(format!("Git cannot be started ({failure}); leave `git` out.")).about("git")
        }
        _ => Error::unavailable(format!("Git does not make {} a repository; try `git init` there.", root.display())),
    })
}

/// Converts a failure of git into an error.
pub fn to_git_error(failure: &GitFailure) -> Error {
    let advice = if failure.is_start() { "install it" } else { "see to it, then `nudge brain jobs --retry`" };
    Error::unavailable(format!("Git does not do it: {failure}; {advice}."))
}
