//! Finds the folders with the settings of clients, and the installed clients.

use std::path::{Path, PathBuf};

use nudge::{Error, Result};
use nudge_os::programs;

use super::clients::{self, ClientFolders, ClientSpec};

/// Returns the path of the running program.
///
/// # Errors
/// `E_UNAVAILABLE` when the system does not report the path.
pub fn find_binary() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| Error::unavailable(format!("Cannot tell where this binary is: {error}; call it by its path.")))
}

/// The paths for `nudge init`, either of the user or of a project.
pub struct InitPaths {
    pub place: ClientFolders,
    /// The file in which `nudge init` records its changes.
    pub record: PathBuf,
}

impl InitPaths {
    /// Finds the paths of the user. If `project` is true, finds those of the project in the current folder.
    ///
    /// # Errors
    /// `E_INVALID` when there is no home folder or no current folder; `E_UNAVAILABLE` when the path of the binary is
    /// unknown.
    pub fn find(project: bool) -> Result<Self> {
        let env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let home = home.ok_or_else(|| Error::invalid("Set HOME to your folder."))?;
        if is_of_another(&home) {
            let message = format!("{} belongs to another user; run this as that user.", home.display());
            return Err(Error::invalid(message));
        }
        let exe = find_binary()?;
        // Prefers a link in PATH to the binary, because the link stays valid after an update.
        let links = || programs::find_all("nudge");
        let is_it = |link: &PathBuf| link.canonicalize().is_ok_and(|path| path == exe);
        let binary = links().find(is_it).unwrap_or_else(|| exe.clone());
        let named = binary.to_str().map(str::to_owned);
        let binary = named.ok_or_else(|| {
            let message = format!("The name of {} is not UTF-8; move it to a folder whose name is.", exe.display());
            Error::invalid(message)
        })?;
        // Ignores a relative folder, because it would name another folder in every current folder.
        let folder = |name: &str| env(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let state = folder("XDG_STATE_HOME").or_else(|| folder("LOCALAPPDATA"));
        let state = state.unwrap_or_else(|| home.join(".local/state"));
        let record = state.join("nudge/init.json");
        let folder = || nudge_client::process_cwd().ok_or_else(|| Error::invalid("Go to the project's folder."));
        let project = project.then(folder).transpose()?;
        // Several users may share a project. If root wrote its files, the other users could not change them.
        if let Some(project) = project.as_deref().filter(|project| is_root() && is_of_another(project)) {
            let message = format!("{} belongs to another user; run this as that user.", project.display());
            return Err(Error::invalid(message));
        }
        // The users of a project have the binary in different folders, so its settings contain only the name.
        let binary = if project.is_some() { "nudge".into() } else { binary };
        Ok(Self { place: ClientFolders { home, project, binary, env }, record })
    }

    /// Returns true when the client's own command can make the change. Such a command changes only the user's files,
    /// not a project's.
    pub fn has_program(&self, client: &ClientSpec) -> bool {
        self.place.project.is_none() && client.program.is_some_and(|program| programs::find_program(program).is_some())
    }

    /// Returns the named clients. Without names, returns the installed clients; if `all` is true, returns every client.
    ///
    /// # Errors
    /// `E_INVALID` for a name that no client has; `E_NOT_FOUND` when no client is installed.
    pub fn choose_clients(&self, names: &[String], all: bool) -> Result<Vec<&'static ClientSpec>> {
        if all {
            return Ok(clients::ALL.iter().collect());
        }
        let find = |name: &String| {
            clients::ALL.iter().find(|client| client.name == *name).ok_or_else(|| {
                let known: Vec<_> = clients::ALL.iter().map(|client| client.name).collect();
                Error::invalid(format!("There is no such client; name some of {}.", known.join(", ")))
            })
        };
        if !names.is_empty() {
            // Returns each client once, in the order of the table.
            let asked: Vec<_> = names.iter().map(find).collect::<Result<_>>()?;
            let is_named = |client: &&ClientSpec| asked.iter().any(|asked| asked.name == client.name);
            return Ok(clients::ALL.iter().filter(is_named).collect());
        }
        let is_there = |client: &&ClientSpec| {
            client.program.is_some_and(|program| programs::find_program(program).is_some())
                || (client.trace)(&self.place).exists()
        };
        let found: Vec<_> = clients::ALL.iter().filter(is_there).collect();
        if found.is_empty() {
            let message = "No coding agent is found here; name one, such as `nudge init claude`.";
            return Err(Error::not_found(message));
        }
        Ok(found)
    }
}

/// Returns true for a folder of another user. Files that this user makes there would not belong to the folder's owner.
#[cfg(unix)]
fn is_of_another(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    folder.metadata().is_ok_and(|meta| meta.uid() != rustix::process::geteuid().as_raw())
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_of_another(_: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}
