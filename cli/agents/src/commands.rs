//! The offer of `nudge init` in a clone: to tell agents the commands that the clone's own files name (semantics section
//! 20).

use std::path::PathBuf;

use nudge::Result;
use nudge_app::seed::{self, SeededClones};
use nudge_client::process_cwd;

/// A clone that has no seeds yet, although its files name commands.
pub struct SeedOffer {
    top: PathBuf,
    repo: String,
    count: usize,
}

impl SeedOffer {
    /// Finds the offer for this process's folder. Returns `None` when there is nothing to offer.
    pub fn find_here() -> Option<Self> {
        let (top, repo, count) = seed::find_offer(&process_cwd()?)?;
        Some(Self { top, repo, count })
    }

    fn name(&self) -> &str {
        seed::short_name(&self.repo)
    }

    /// Returns the line for the list of planned changes.
    pub fn to_line(&self) -> String {
        format!("{}: commands that its own files name, for agents who work there: {}\n", self.name(), self.count)
    }

    /// Returns the question to ask the user.
    pub fn to_question(&self) -> String {
        let what =
            if self.count == 1 { "command that its".to_owned() } else { format!("{} commands that its", self.count) };
        format!("Tell agents in {} the {what} own files name?", self.name())
    }

    /// Adds the clone to the list of seeded clones. Returns a line about it for the user.
    ///
    /// # Errors
    /// The errors of [`SeededClones`].
    pub fn accept(&self) -> Result<String> {
        SeededClones::open()?.add_clone(&self.top, &self.repo, true)?;
        Ok(format!("{}: agents are told its commands; `nudge seed --dry-run` lists them\n", self.name()))
    }
}

/// Returns true when the user has accepted an offer for some clone.
pub fn is_any() -> bool {
    SeededClones::read_unlocked().is_ok_and(|clones| clones.is_by_init())
}

/// Removes all clones of accepted offers from the list of seeded clones. Returns a line about it for the user.
///
/// # Errors
/// The errors of [`SeedOffer::accept`].
pub fn undo_offers() -> Result<String> {
    let count = SeededClones::open()?.undo_init()?;
    let clones = if count == 1 { "1 clone is".to_owned() } else { format!("{count} clones are") };
    Ok(format!("{clones} no longer followed for commands\n"))
}
