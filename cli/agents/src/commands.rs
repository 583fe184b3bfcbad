//! The offer of `nudge init` in a clone: agents are told the commands that the clone's own files name (semantics
//! section 20).

use std::path::PathBuf;

use nudge::Result;
use nudge_app::seed::{self, SeededClones};
use nudge_client::process_cwd;

/// A clone without seeds that could have them.
pub struct SeedOffer {
    top: PathBuf,
    repo: String,
    count: usize,
}

impl SeedOffer {
    /// Finds the offer for the folder of this process, if any.
    pub fn find_here() -> Option<Self> {
        let (top, repo, count) = seed::find_offer(&process_cwd()?)?;
        Some(Self { top, repo, count })
    }

    fn name(&self) -> &str {
        seed::short_name(&self.repo)
    }

    /// Returns a line for the list of changes.
    pub fn to_line(&self) -> String {
        format!("{}: commands that its own files name, for agents who work there: {}\n", self.name(), self.count)
    }

    /// Returns the question for the user.
    pub fn to_question(&self) -> String {
        let what =
            if self.count == 1 { "command that its".to_owned() } else { format!("{} commands that its", self.count) };
        format!("Tell agents in {} the {what} own files name?", self.name())
    }

    /// Adds the clone to the seeded ones; returns a line about it.
    ///
    /// # Errors
    /// The errors of [`SeededClones`].
    pub fn accept(&self) -> Result<String> {
        SeededClones::open()?.add_clone(&self.top, &self.repo, true)?;
        Ok(format!("{}: agents are told its commands; `nudge seed --dry-run` lists them\n", self.name()))
    }
}

/// Returns true when the user has accepted any offer.
pub fn is_any() -> bool {
    SeededClones::read_unlocked().is_ok_and(|clones| clones.is_by_init())
}

/// Ends the seeds from accepted offers in every clone; returns a line about it.
///
/// # Errors
/// As [`SeedOffer::accept`].
pub fn undo_offers() -> Result<String> {
    let count = SeededClones::open()?.undo_init()?;
    let clones = if count == 1 { "1 clone is".to_owned() } else { format!("{count} clones are") };
    Ok(format!("{clones} no longer followed for commands\n"))
}
