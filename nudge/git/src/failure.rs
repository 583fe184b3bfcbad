//! Lists the reasons why git fails to do its task.

use std::fmt;

use nudge_core::text::one_line;
use nudge_os::process::RunFailure;
use nudge_secrets::SecretGuard;

/// Longest text of git's that is shown, in characters.
const MAX_CHARS: usize = 200;

/// The reason why git does not do it.
#[derive(Debug)]
pub enum GitFailure {
    /// There is no git in PATH outside the checkout.
    Missing,
    /// This command did not come to its end.
    Run(String, RunFailure),
    /// This command failed.
    Refused {
        /// The command.
        verb: String,
        /// The exit code; `None` when a signal ended it.
        code: Option<i32>,
        /// The reason, safe to show.
        said: String,
    },
    /// The repository is of a kind that is not worked on.
    Unfit(&'static str),
}

impl GitFailure {
    pub(crate) fn from_refusal(verb: String, code: Option<i32>, stderr: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stderr);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
        // An address may hold a password.
        let is_secret = SecretGuard::new().check(None, line).is_some();
        Self::Refused { verb, code, said: one_line(if is_secret { "(withheld)" } else { line }, MAX_CHARS) }
    }

    /// Returns true if git could not be started at all.
    pub fn is_start(&self) -> bool {
        matches!(self, Self::Missing | Self::Run(_, RunFailure::Start(_)))
    }
}

impl fmt::Display for GitFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no git in PATH outside this folder"),
            Self::Run(_, RunFailure::Start(error)) => write!(f, "there is no git that runs ({error})"),
            Self::Run(verb, failure) => write!(f, "`git {verb}` {failure}"),
            Self::Refused { verb, said, .. } => write!(f, "`git {verb}` says: {said}"),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for GitFailure {}
