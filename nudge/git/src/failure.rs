//! Defines the reasons why a call of git fails.

use std::fmt;

use nudge_core::text::one_line;
use nudge_os::process::RunFailure;
use nudge_secrets::SecretGuard;

/// The longest text of git's that is shown, in characters.
const MAX_CHARS: usize = 200;

/// The reason why a call of git failed.
#[derive(Debug)]
pub enum GitFailure {
    /// PATH has no git outside the checkout.
    Missing,
    /// The command did not run to its end, for this reason.
    Run(String, RunFailure),
    /// The command ended with a failure.
    Refused {
        /// The command.
        verb: String,
        /// The exit code; `None` when a signal ended the command.
        code: Option<i32>,
        /// The reason, in a text that is safe to show.
        said: String,
    },
    /// Nudge does not work on this kind of repository.
    Unfit(&'static str),
}

impl GitFailure {
    pub(crate) fn from_refusal(verb: String, code: Option<i32>, stderr: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stderr);
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
        // A URL in the text may hold a password.
        let is_secret = SecretGuard::new().check(None, line).is_some();
        Self::Refused { verb, code, said: one_line(if is_secret { "(withheld)" } else { line }, MAX_CHARS) }
    }

    /// Returns true if git could not be started.
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
