//! The offer of `nudge init` in a clone: to tell agents the commands that the clone's own files name (semantics section
//! 20).

use std::path::PathBuf;

use nudge::Result;
use nudge_app::seed::{self, SeededClones, WantedSeed};
use nudge_client::process_cwd;

/// A clone that has no seeds yet, although its files name commands.
pub struct SeedOffer {
    top: PathBuf,
    repo: String,
    seeds: Vec<WantedSeed>,
}

impl SeedOffer {
    /// Finds the offer for this process's folder. Returns `None` when there is nothing to offer.
    pub fn find_here() -> Option<Self> {
        let (top, repo, seeds) = seed::find_offer(&process_cwd()?)?;
        Some(Self { top, repo, seeds })
    }

    fn name(&self) -> &str {
        seed::short_name(&self.repo)
    }

    /// Returns the line for the list of planned changes.
    pub fn to_line(&self) -> String {
        format!("{}: commands that its own files name, for agents who work there: {}\n", self.name(), self.seeds.len())
    }

    /// Returns a line for each command.
    pub fn to_lines(&self) -> String {
        let line = |seed: &WantedSeed| format!("+{}/{}: {}\n", seed.component, seed.key, seed.command);
        self.seeds.iter().map(line).collect()
    }

    /// Returns the question to ask the user.
    pub fn to_question(&self) -> String {
        let what = match self.seeds.len() {
            1 => "command that its".to_owned(),
            count => format!("{count} commands that its"),
        };
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
