//! Reads the part of the environment that changes git's answers.

use std::env::var_os;
use std::ffi::OsString;
use std::path::PathBuf;

use super::scalars::parse_boolean;

/// Variables that redirect git in ways the reader does not follow: with any
/// of them set the answer is [`super::Git::Unsure`].
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
    // Root may use the repositories of that user.
    "SUDO_UID",
];

/// The input of the reader from outside the repository.
///
/// It never looks at the process environment by itself; the caller hands this
/// over, so a test, or a server that answers for another process, decides
/// every input. [`GitEnv::empty`] is a machine without any user or system
/// configuration; set the fields that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitEnv {
    /// The folder `HOME`: it holds `.gitconfig` and `.config/git/config`, and is the `~` in paths.
    pub home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`; empty counts as unset.
    pub xdg_config_home: Option<PathBuf>,
    /// `GIT_CONFIG_GLOBAL`: read instead of both user files.
    pub config_global: Option<PathBuf>,
    /// The system-wide file: `GIT_CONFIG_SYSTEM`, or the one the installed git
    /// was built with. `None` reads none.
    pub config_system: Option<PathBuf>,
    /// System-wide files that some builds of git read and others do not. When
    /// one of them says anything that could change the answer, the answer is
    /// [`super::GitAnswer::Unsure`].
    pub config_maybe_system: Vec<PathBuf>,
    /// A variable is set that redirects git (`GIT_DIR`, `GIT_WORK_TREE`,
    /// `GIT_CONFIG_COUNT`, ...); it is named here and always means
    /// [`super::GitAnswer::Unsure`].
    pub redirected_by: Option<&'static str>,
    /// Takes every repository for the user's own instead of comparing owners.
    /// Off Unix the standard library cannot tell the owner, and without this
    /// every repository is [`super::GitAnswer::Unsure`] there.
    pub assume_owned: bool,
}

impl GitEnv {
    /// No variable set, no configuration outside the repository.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Reads the variables of this process.
    ///
    /// On Linux the system-wide file is `/etc/gitconfig` in every distribution's git. Elsewhere its path depends on how
    /// git was built, so the known places are only searched for entries that matter ([`GitEnv::config_maybe_system`]).
    #[must_use]
    pub fn from_process() -> Self {
        Self::from_vars(|name| var_os(name))
    }

    /// The same, of variables that the caller looks up: where other threads may change those of the process,
    /// it must not be read without their lock.
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

/// Returns `HOME`; git for Windows builds one from other variables.
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

/// The system-wide file git surely reads, and those it may read.
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
