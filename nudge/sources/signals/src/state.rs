//! Finds the state directory, and limits access to its folders.
//!
//! A state directory in a checkout may come from a stranger, so any part of it may be a link to the user's own files.
//! Nudge follows a link only if the target is inside the directory, and reads and writes files through an open folder
//! ([`nudge_os::beneath`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nudge_core::context::detect::{GitAnswer, GitEnv, git_with};
use nudge_core::error::{Error, Result};
use nudge_os::beneath::{HeldFolder, InnerLinks, is_of_link};

use crate::agent::AgentId;
use crate::inbox::SignalInbox;

/// The folder of signals inside a state directory.
const SIGNALS: &str = "nudge";
/// The path of the state directory inside a checkout.
const IN_A_CHECKOUT: [&str; 2] = [".chipset", "state"];
/// The most agents that a list has.
pub const MAX_AGENTS: usize = 1000;
/// The most folders that the search goes up from a folder to the top of its repository.
const MAX_ANCESTORS: usize = 256;

/// A state directory, which may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    /// The folder that contains everything: no link may lead out of it.
    top: PathBuf,
    /// The folder names from `top` down to the state directory.
    below: &'static [&'static str],
}

impl StateDir {
    /// Finds the state directory for a caller in `cwd`. It is the folder `named` (from `NUDGE_STATE_DIR`, relative to
    /// `cwd`) if given, else `.chipset/state` at the top of the git work tree around `cwd`, else `.chipset/state` in
    /// `cwd` itself.
    ///
    /// # Errors
    /// `E_INVALID` when `cwd` is not an absolute path, and `named` is not one either.
    pub fn find(named: Option<&str>, cwd: Option<&Path>) -> Result<Self> {
        let cwd = cwd.filter(|cwd| cwd.is_absolute());
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let path = cwd.map_or_else(|| PathBuf::from(named), |cwd| cwd.join(named));
            if !path.is_absolute() {
                return Err(Error::invalid("NUDGE_STATE_DIR must be an absolute path, or come with `context.cwd`.")
                    .about("context.cwd"));
            }
            return Ok(Self { top: path, below: &[] });
        }
        let cwd = cwd.ok_or_else(|| {
            Error::invalid("Nothing says where the state directory is; pass `context.cwd` or set NUDGE_STATE_DIR.")
                .about("context.cwd")
        })?;
        Ok(Self { top: top_of(cwd), below: &IN_A_CHECKOUT })
    }

    /// Returns the path.
    pub fn path(&self) -> PathBuf {
        self.below.iter().fold(self.top.clone(), |path, name| path.join(name))
    }

    /// Returns true when the directory exists.
    pub fn exists(&self) -> bool {
        self.path().is_dir()
    }

    /// Returns the inbox of an agent.
    pub fn inbox<'a>(&'a self, agent: &'a AgentId) -> SignalInbox<'a> {
        SignalInbox::new(self, agent)
    }

    /// Lists the agents that have an inbox, by name. The second value counts the agents beyond the limit.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out; `E_UNAVAILABLE` when the folder cannot be read.
    pub fn list_agents(&self) -> Result<(Vec<AgentId>, usize)> {
        let Some(folder) = self.open_folder(&[SIGNALS])? else { return Ok(Default::default()) };
        let names = folder.held.list_names().map_err(|error| unusable_error(&folder.path, &error))?;
        let names = names.iter().filter_map(|name| name.to_str());
        let is_folder = |name: &&str| folder.held.look_up(name).is_ok_and(|meta| !meta.is_file());
        let mut agents: Vec<_> = names.filter(is_folder).filter_map(AgentId::parse).collect();
        agents.sort();
        let more = agents.len().saturating_sub(MAX_AGENTS);
        agents.truncate(MAX_AGENTS);
        Ok((agents, more))
    }

    /// Opens the folder of an agent's signal; returns `None` when the folder does not exist.
    pub(crate) fn of_agent(&self, agent: &AgentId) -> Result<Option<StateFolder>> {
        self.open_folder(&[SIGNALS, agent.as_str()])
    }

    /// Opens the folder of an agent's signal like [`of_agent`](Self::of_agent), and makes the folder if it is missing.
    pub(crate) fn make_of_agent(&self, agent: &AgentId) -> Result<StateFolder> {
        self.make_folder(&[SIGNALS, agent.as_str()])
    }

    /// Opens the folder that contains the agents' folders; returns `None` when it does not exist.
    pub(crate) fn of_signals(&self) -> Result<Option<StateFolder>> {
        self.open_folder(&[SIGNALS])
    }

    /// Opens a folder like [`open_folder`](Self::open_folder), and makes it if it is missing.
    pub(crate) fn make_folder(&self, names: &[&str]) -> Result<StateFolder> {
        if self.below.is_empty() {
            fs::create_dir_all(&self.top).map_err(|error| unusable_error(&self.top, &error))?;
        }
        self.go_down(names, HeldFolder::make_folder)?
            .ok_or_else(|| Error::unavailable(format!("{} was removed meanwhile; do it again.", self.path().display())))
    }

    /// Opens a folder of the state directory; returns `None` when it does not exist.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out, and for a path that is not a folder; `E_UNAVAILABLE` when the folder
    /// cannot be opened.
    pub(crate) fn open_folder(&self, names: &[&str]) -> Result<Option<StateFolder>> {
        self.go_down(names, HeldFolder::open_folder)
    }

    fn go_down(
        &self,
        names: &[&str],
        open: fn(&HeldFolder, &Path, InnerLinks) -> io::Result<HeldFolder>,
    ) -> Result<Option<StateFolder>> {
        let top = match self.top.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            top => top.map_err(|error| unusable_error(&self.top, &error))?,
        };
        let below: PathBuf = self.below.iter().chain(names).collect();
        let opened = HeldFolder::open(&top).and_then(|held| open(&held, &below, InnerLinks::Within));
        let path = top.join(&below);
        match opened {
            // An error message shows the real path, with the links inside the state directory resolved.
            Ok(held) => Ok(Some(StateFolder { held, path: path.canonicalize().unwrap_or(path) })),
            Err(error) if is_of_link(&error) => Err(Error::invalid(format!(
                "{} has a link in it that leads out of {}; make it a folder.",
                path.display(),
                top.display()
            ))),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::NotADirectory => {
                    Err(Error::invalid(format!("{} is not a folder; remove it.", path.display())))
                }
                _ => Err(unusable_error(&path, &error)),
            },
        }
    }
}

/// An open folder of the state directory. The path is for messages.
#[derive(Debug)]
pub(crate) struct StateFolder {
    pub held: HeldFolder,
    pub path: PathBuf,
}

/// Makes the `E_UNAVAILABLE` error for a path that the operating system refused.
pub fn unusable_error(path: &Path, error: &io::Error) -> Error {
    Error::unavailable(format!("{} cannot be used ({error}); mend it or set NUDGE_STATE_DIR.", path.display()))
}

/// Returns the top of the work tree around a folder, or the folder itself outside of a work tree.
fn top_of(cwd: &Path) -> PathBuf {
    // Git's variables in this process's environment are not the caller's, so they are left out.
    let env = GitEnv::from_vars(|name| (!name.starts_with("GIT_")).then(|| std::env::var_os(name)).flatten());
    match git_with(&env, cwd) {
        GitAnswer::Inside(info) => info.root,
        GitAnswer::Outside => cwd.to_owned(),
        // Without a run of git, the answer may be unsure. Then the nearest folder that contains `.git` is the top.
        GitAnswer::Unsure(_) => {
            let marked = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
            cwd.ancestors().take(MAX_ANCESTORS).find(marked).unwrap_or(cwd).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(folder: &Path) {
        for sub in [".git/objects", ".git/refs/heads", "src/deep"] {
            fs::create_dir_all(folder.join(sub)).unwrap();
        }
        fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let repo = folder.join("repo");
        repository(&repo);
        let find = |named: Option<&str>, cwd: &Path| StateDir::find(named, Some(cwd)).unwrap().path();
        assert_eq!(find(None, &repo.join("src/deep")), repo.join(".chipset/state"));
        assert_eq!(find(None, &folder), folder.join(".chipset/state"));
        assert_eq!(find(Some(""), &folder), folder.join(".chipset/state"));
        assert_eq!(find(Some("/state"), &repo), Path::new("/state"));
        assert_eq!(find(Some("state"), &repo), repo.join("state"));
        StateDir::find(None, None).unwrap_err();
        StateDir::find(Some("state"), None).unwrap_err();
        StateDir::find(None, Some(Path::new("relative"))).unwrap_err();
        assert_eq!(StateDir::find(Some("/state"), None).unwrap().path(), Path::new("/state"));
    }

    #[test]
    fn a_mere_look_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::find(None, Some(folder.path())).unwrap();
        let agent = AgentId::parse("a").unwrap();
        assert!(!state.exists() && state.list_agents().unwrap().0.is_empty());
        assert!(state.of_agent(&agent).unwrap().is_none());
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
        state.make_of_agent(&agent).unwrap();
        assert!(state.exists());
        assert_eq!(state.list_agents().unwrap(), (vec![agent], 0));
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_a_checkout() {
        use std::os::unix::fs::symlink;
        let agent = AgentId::parse("a").unwrap();
        for links in [".chipset", ".chipset/state", ".chipset/state/nudge", ".chipset/state/nudge/a"] {
            let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let link = folder.path().join(links);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(outside.path(), &link).unwrap();
            let state = StateDir::find(None, Some(folder.path())).unwrap();
            for refused in [state.of_agent(&agent).map(drop), state.make_of_agent(&agent).map(drop)] {
                assert!(refused.unwrap_err().message().contains("leads out"), "{links}");
            }
            assert!(fs::read_dir(outside.path()).unwrap().next().is_none(), "{links}: nothing is made there");
            // A link to a missing folder must not make that folder outside.
            fs::remove_file(&link).unwrap();
            symlink(outside.path().join("new"), &link).unwrap();
            state.make_of_agent(&agent).unwrap_err();
            assert!(fs::read_dir(outside.path()).unwrap().next().is_none(), "{links}");
        }
        // A link that stays inside is allowed.
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("real")).unwrap();
        symlink("real", folder.path().join(".chipset")).unwrap();
        let state = StateDir::find(None, Some(folder.path())).unwrap();
        assert!(state.make_of_agent(&agent).unwrap().path.ends_with("real/state/nudge/a"));
        // A file stands where a folder is expected.
        fs::write(folder.path().join("real/state/nudge/b"), "").unwrap();
        state.make_of_agent(&AgentId::parse("b").unwrap()).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn the_directory_that_the_user_names_may_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, folder.path().join("link")).unwrap();
        let state = StateDir::find(folder.path().join("link").to_str(), None).unwrap();
        let made = state.make_of_agent(&AgentId::parse("a").unwrap()).unwrap();
        assert_eq!(made.path, real.canonicalize().unwrap().join("nudge/a"));
    }
}
