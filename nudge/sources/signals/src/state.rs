//! The state directory: where it is, and what in it may be touched.
//!
//! One that stands in a checkout is somebody else's: any part of it can be a link to the user's own files. So a link is
//! followed only where it stays within, folders are made one by one, and files are read by [`nudge_core::foreign`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nudge_core::context::detect::{Git, GitEnv, git_with};
use nudge_core::error::{Error, Result};

use crate::agent::AgentId;
use crate::inbox::Inbox;

/// The folder of signals in a state directory.
const SIGNALS: &str = "nudge";
/// Where the state directory is in a checkout.
const IN_A_CHECKOUT: [&str; 2] = [".chipset", "state"];
/// Most agents that are listed.
pub const MAX_AGENTS: usize = 1000;
/// Most folders that are gone through on the way up to the top of a repository.
const MAX_ANCESTORS: usize = 256;

/// A state directory, which need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    /// No link leads out of it.
    top: PathBuf,
    /// The names from there to the state directory.
    below: &'static [&'static str],
}

impl StateDir {
    /// The state directory for somebody who stands in `cwd`: the one that `NUDGE_STATE_DIR` names, given as `named`;
    /// else `.chipset/state` at the top of the git work tree, else in `cwd` itself.
    ///
    /// # Errors
    /// `E_INVALID` when neither is an absolute path.
    pub fn find(named: Option<&str>, cwd: Option<&Path>) -> Result<Self> {
        let cwd = cwd.filter(|cwd| cwd.is_absolute());
        if let Some(named) = named.filter(|named| !named.is_empty()) {
            let path = cwd.map_or_else(|| PathBuf::from(named), |cwd| cwd.join(named));
            if !path.is_absolute() {
                return Err(Error::invalid("NUDGE_STATE_DIR must be an absolute path, or come with `context.cwd`."));
            }
            return Ok(Self { top: path, below: &[] });
        }
        let cwd = cwd.ok_or_else(|| {
            Error::invalid("Nothing says where the state directory is; pass `context.cwd` or set NUDGE_STATE_DIR.")
        })?;
        Ok(Self { top: top_of(cwd), below: &IN_A_CHECKOUT })
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.below.iter().fold(self.top.clone(), |path, name| path.join(name))
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path().is_dir()
    }

    /// The inbox of an agent.
    pub fn inbox<'a>(&'a self, agent: &'a AgentId) -> Inbox<'a> {
        Inbox::new(self, agent)
    }

    /// The agents that have an inbox, by name, and how many more there are than are listed.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out; `E_UNAVAILABLE` when it cannot be looked at.
    pub fn agents(&self) -> Result<(Vec<AgentId>, usize)> {
        let Some(folder) = self.folder(&[SIGNALS])? else { return Ok(Default::default()) };
        let entries = fs::read_dir(&folder).map_err(|error| unusable(&folder, &error))?;
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_file()));
        let mut agents: Vec<_> = folders.filter_map(|entry| AgentId::parse(entry.file_name().to_str()?)).collect();
        agents.sort();
        let more = agents.len().saturating_sub(MAX_AGENTS);
        agents.truncate(MAX_AGENTS);
        Ok((agents, more))
    }

    /// The folder of an agent's signal; `None` when it is not there.
    pub(crate) fn of_agent(&self, agent: &AgentId) -> Result<Option<PathBuf>> {
        self.folder(&[SIGNALS, agent.as_str()])
    }

    /// As [`of_agent`](Self::of_agent), and makes it.
    pub(crate) fn make_of_agent(&self, agent: &AgentId) -> Result<PathBuf> {
        self.make_folder(&[SIGNALS, agent.as_str()])
    }

    /// The folder in which those of the agents are; `None` when it is not there.
    pub(crate) fn of_signals(&self) -> Result<Option<PathBuf>> {
        self.folder(&[SIGNALS])
    }

    /// As [`folder`](Self::folder), and makes it.
    pub(crate) fn make_folder(&self, names: &[&str]) -> Result<PathBuf> {
        if self.below.is_empty() {
            fs::create_dir_all(&self.top).map_err(|error| unusable(&self.top, &error))?;
        }
        self.walk(names, true)?
            .ok_or_else(|| Error::unavailable(format!("{} was removed meanwhile; do it again.", self.path().display())))
    }

    /// A folder of the state directory, without links; `None` when it is not there.
    ///
    /// # Errors
    /// `E_INVALID` for a link that leads out, and for what is no folder; `E_UNAVAILABLE` when it cannot be looked at.
    pub(crate) fn folder(&self, names: &[&str]) -> Result<Option<PathBuf>> {
        self.walk(names, false)
    }

    fn walk(&self, names: &[&str], create: bool) -> Result<Option<PathBuf>> {
        let top = match self.top.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            top => top.map_err(|error| unusable(&self.top, &error))?,
        };
        let mut at = top.clone();
        for name in self.below.iter().chain(names) {
            at.push(name);
            if create {
                match fs::create_dir(&at) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(&at, &error)),
                    _ => {}
                }
            }
            let found = match at.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                found => found.map_err(|error| unusable(&at, &error))?,
            };
            if found.is_symlink() {
                at = at.canonicalize().ok().filter(|target| target.starts_with(&top)).ok_or_else(|| {
                    let at = at.display();
                    Error::invalid(format!("{at} is a link that leads out of {}; make it a folder.", top.display()))
                })?;
            }
            if !at.is_dir() {
                return Err(Error::invalid(format!("{} is not a folder; remove it.", at.display())));
            }
        }
        Ok(Some(at))
    }
}

/// The error for what the system refuses.
pub fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::unavailable(format!("{} cannot be used ({error}); mend it or set NUDGE_STATE_DIR.", path.display()))
}

/// The top of the work tree around a folder; the folder itself where there is none.
fn top_of(cwd: &Path) -> PathBuf {
    // The caller's environment is not this process's, so what redirects git here says nothing of it.
    let env = GitEnv::from_vars(|name| (!name.starts_with("GIT_")).then(|| std::env::var_os(name)).flatten());
    match git_with(&env, cwd) {
        Git::Inside(info) => info.root,
        Git::Outside => cwd.to_owned(),
        // Wherever git's own answer would take a program, its marker says as much as is needed here.
        Git::Unsure(_) => {
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
        assert!(!state.exists() && state.agents().unwrap().0.is_empty());
        assert_eq!(state.of_agent(&agent).unwrap(), None);
        assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
        state.make_of_agent(&agent).unwrap();
        assert!(state.exists());
        assert_eq!(state.agents().unwrap(), (vec![agent], 0));
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
            // Nor where it leads nowhere.
            fs::remove_file(&link).unwrap();
            symlink(outside.path().join("new"), &link).unwrap();
            state.make_of_agent(&agent).unwrap_err();
            assert!(fs::read_dir(outside.path()).unwrap().next().is_none(), "{links}");
        }
        // One that stays within is the checkout's own matter.
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("real")).unwrap();
        symlink("real", folder.path().join(".chipset")).unwrap();
        let state = StateDir::find(None, Some(folder.path())).unwrap();
        assert!(state.make_of_agent(&agent).unwrap().ends_with("real/state/nudge/a"));
        // A file in the place of a folder.
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
        assert_eq!(made, real.canonicalize().unwrap().join("nudge/a"));
    }
}
