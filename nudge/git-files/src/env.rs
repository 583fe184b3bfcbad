//! Reads the part of the environment that changes git's answers.

use std::env::var_os;
use std::ffi::OsString;
use std::path::PathBuf;

use super::scalars::parse_boolean;

/// Variables that redirect git in ways that the reader does not support. If any of them is set, the answer is
/// [`super::GitAnswer::Unsure`].
const REDIRECTIONS: &[&str] = &[
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_REFERENCE_BACKEND",
    "GIT_REF_STORAGE",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
    "GIT_WORK_TREE",
    // Under `sudo`, git lets root use the repositories of this user.
    "SUDO_UID",
];

/// The reader's inputs from outside the repository.
///
/// The reader never reads the process environment itself. The caller passes these values, so a test, or a server that
/// answers for another process, decides every input. [`GitEnv::empty`] is a machine without user or system
/// configuration; callers set the fields that they need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitEnv {
    /// The folder `HOME`. It has `.gitconfig` and `.config/git/config`, and `~` in paths means this folder.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`. An empty value counts as unset.
    pub xdg_config_home: Option<PathBuf>,
    /// `GIT_CONFIG_GLOBAL`: a file that git reads instead of both user files.
    pub config_global: Option<PathBuf>,
    /// The system-wide file: `GIT_CONFIG_SYSTEM`, or the path built into the installed git. With `None`, no such file
    /// is read.
    pub config_system: Option<PathBuf>,
    /// System-wide files that some builds of git read and others do not read. If such a file has an entry that could
    /// change the answer, the answer is [`super::GitAnswer::Unsure`].
    pub config_maybe_system: Vec<PathBuf>,
    /// The name of a set variable that redirects git (`GIT_DIR`, `GIT_WORK_TREE`, `GIT_CONFIG_COUNT`, ...). With such a
    /// variable the answer is always [`super::GitAnswer::Unsure`].
    pub redirected_by: Option<&'static str>,
    /// Is true if every repository counts as the user's own, without a comparison of owners. Outside Unix the standard
    /// library cannot read the owner of a file, so without this flag the answer is always [`super::GitAnswer::Unsure`]
    /// there.
    pub assume_owned: bool,
}

impl GitEnv {
    /// Returns an environment without any variable and without configuration outside the repository.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Reads the variables of this process.
    ///
    /// On Linux the git of every distribution reads the system-wide file `/etc/gitconfig`. On other systems the path
    /// depends on how git was built. There the reader only searches the usual files for entries that could change the
    /// answer ([`GitEnv::config_maybe_system`]).
    #[must_use]
    pub fn from_process() -> Self {
        Self::from_vars(|name| var_os(name))
    }

    /// Reads the variables through `var_os`, for a process in which other threads may change the environment. Such a
    /// process must hold a lock when it reads the environment.
    #[must_use]
    pub fn from_vars(var_os: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| var_os(name).map(PathBuf::from);
        let mut redirected_by = REDIRECTIONS.iter().copied().find(|name| var_os(name).is_some());
        let no_system = match var_os("GIT_CONFIG_NOSYSTEM") {
            None => false,
            Some(value) => parse_boolean(Some(value.as_encoded_bytes())).unwrap_or_else(|| {
                redirected_by = Some("GIT_CONFIG_NOSYSTEM");
                false
            }),
        };
        let (mut config_system, mut config_maybe_system) = (None, Vec::new());
        if !no_system {
            config_system = path("GIT_CONFIG_SYSTEM");
            if config_system.is_none() {
                (config_system, config_maybe_system) = system_files();
            }
        }
        Self {
            home: find_home(&var_os),
            xdg_config_home: path("XDG_CONFIG_HOME").filter(|p| !p.as_os_str().is_empty()),
            config_global: path("GIT_CONFIG_GLOBAL"),
            config_system,
            config_maybe_system,
            redirected_by,
            assume_owned: false,
        }
    }
}

/// Returns `HOME`. On Windows, git builds it from other variables if it is not set.
fn find_home(var_os: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let home = var_os("HOME").map(PathBuf::from);
    if home.is_some() || !cfg!(windows) {
        return home;
    }
    let on_drive = var_os("HOMEDRIVE").zip(var_os("HOMEPATH"));
    let on_drive = on_drive.map(|(mut drive, path)| {
        drive.push(path);
        PathBuf::from(drive)
    });
    on_drive.filter(|path| path.is_dir()).or_else(|| var_os("USERPROFILE").map(PathBuf::from))
}

/// Returns the system-wide file that git certainly reads, and the files that it may read.
fn system_files() -> (Option<PathBuf>, Vec<PathBuf>) {
    let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
    if cfg!(windows) {
        let maybe = ["C:/Program Files/Git/etc/gitconfig", "C:/ProgramData/Git/config"];
        (None, paths(&maybe))
    } else if cfg!(target_os = "linux") {
        let maybe = ["/usr/local/etc/gitconfig", "/home/linuxbrew/.linuxbrew/etc/gitconfig"];
        (Some(PathBuf::from("/etc/gitconfig")), paths(&maybe))
    } else {
        let maybe = [
            "/etc/gitconfig",
            "/usr/local/etc/gitconfig",
            "/opt/homebrew/etc/gitconfig",
            "/opt/local/etc/gitconfig",
            "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
            "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
        ];
        (None, paths(&maybe))
    }
}
