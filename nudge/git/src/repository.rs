//! Runs git on a foreign repository without the repository's settings.

use std::ffi::OsStr;
#[cfg(unix)]
use std::ffi::OsString;
#[cfg(unix)]
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
#[cfg(unix)]
use std::time::SystemTime;

#[cfg(unix)]
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::process::ChildProgram;
#[cfg(unix)]
use tempfile::TempDir;

use crate::settings::{DataSettings, GitSetting};
use crate::{CallLimits, Git, GitFailure, NOWHERE, OF_SETTINGS, pass_on, run_program, shell_word};

/// The limits of the commands that find a repository.
const FIND: CallLimits = CallLimits { time: Duration::from_secs(5), output_bytes: 4 << 20 };
/// The longest `HEAD` that is read, in bytes.
#[cfg(unix)]
const MAX_HEAD_BYTES: u64 = 4 << 10;
/// The longest file of the folder `info` that is read, in bytes.
#[cfg(unix)]
const MAX_INFO_BYTES: u64 = 1 << 20;
/// The beginning of the names of the git folders that Nudge makes.
#[cfg(unix)]
const OWN_FOLDER: &str = "nudge-git-";
/// The age from which a git folder of Nudge's counts as left behind. No repository is open for that long.
#[cfg(unix)]
const MAX_CALL_AGE: Duration = Duration::from_hours(24);
/// The protocols with which git may reach a remote. Any other protocol would be a program that the address chooses.
const PROTOCOLS: &str = "file:http:https:ssh";
/// The caller's variables that name the author and the committer.
const OF_PERSON: [&str; 4] = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
/// The caller's variables that say how git reaches a remote.
const OF_WAY: [&str; 7] = [
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_PROXY_SSL_CAINFO",
];
/// The command with which git reaches another machine if the user has not chosen one. It asks the user no question.
const SSH: &str = "ssh -o BatchMode=yes";
/// Switches for the remote side when the remote is on this machine. Git starts that side, and the remote's folder may
/// belong to another user.
const REMOTE_SIDE: &str = "-c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.alternateRefsCommand=true \
                           -c receive.denyCurrentBranch=refuse -c receive.autogc=false -c gc.auto=0";

/// The extent of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallReach {
    /// The call stays in the repository. It reads no settings except Nudge's own.
    Here,
    /// The call goes to the remote, with the user's own settings.
    Remote,
}

/// A call of git in a repository.
#[derive(Debug, Clone, Copy)]
pub struct GitCall<'a> {
    /// The command and its arguments.
    pub words: &'a [&'a str],
    /// The standard input.
    pub input: &'a [u8],
    /// Further variables.
    pub variables: &'a [(&'a str, &'a OsStr)],
    /// The extent of the call.
    pub reach: CallReach,
    /// The limits of the call.
    pub limits: CallLimits,
}

/// A foreign repository with a work tree. No call runs its hooks, filters or helpers.
#[derive(Debug)]
pub struct GitRepository {
    git: Git,
    top: PathBuf,
    prefix: String,
    /// The repository's own git folder.
    theirs: PathBuf,
    git_dir: OwnFolder,
    settings: DataSettings,
    /// Is true if the user has chosen how to reach other machines. The value is empty until a call needs it.
    has_ssh: OnceLock<bool>,
}

/// The git folder that calls use.
#[derive(Debug)]
enum OwnFolder {
    #[cfg(unix)]
    Linked(TempDir),
    /// The repository's own git folder, with the settings that every call switches off.
    #[cfg(any(not(unix), test))]
    SwitchedOff(PathBuf, Vec<GitSetting>),
}

/// The folders of a repository, as git reports them.
struct RepositoryPlaces {
    git_dir: PathBuf,
    /// The git folder that all work trees share.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no links are made of it"))]
    common: PathBuf,
    top: PathBuf,
    prefix: String,
}

impl RepositoryPlaces {
    fn find_places(git: &Git) -> Result<Self, GitFailure> {
        let words = [
            "rev-parse",
            "--path-format=absolute",
            "--git-dir",
            "--git-common-dir",
            "--show-toplevel",
            "--show-prefix",
        ];
        let told = String::from_utf8(git.ask(&words, FIND)?).map_err(|_| GitFailure::Unfit("its path is no text"))?;
        let lines: Vec<_> = told.strip_suffix('\n').unwrap_or(&told).split('\n').collect();
        let [git_dir, common, top, prefix] = lines[..] else {
            return Err(GitFailure::Unfit("its path has a line break"));
        };
        let [git_dir, common, top] = [git_dir, common, top].map(PathBuf::from);
        // A setting of the repository may name any folder as the work tree, so the work tree must contain the given
        // folder.
        let folder = git.folder.canonicalize().map_err(|_| GitFailure::Unfit("its folder is gone"))?;
        if !top.canonicalize().is_ok_and(|top| folder.starts_with(top)) {
            return Err(GitFailure::Unfit("its work tree is elsewhere"));
        }
        // If the refs are in tables (reftable), each work tree has its own database beside the shared one, which is not
        // supported.
        if git_dir != common && common.join("reftable").symlink_metadata().is_ok() {
            return Err(GitFailure::Unfit("it is a linked work tree of a repository whose refs are in tables"));
        }
        Ok(Self { git_dir, common, top, prefix: prefix.to_owned() })
    }
}

impl GitRepository {
    /// Opens the repository around the folder of `git`.
    ///
    /// # Errors
    /// [`GitFailure`] when there is no repository, when git distrusts its owner, or when no work tree contains the
    /// folder.
    pub fn open(git: Git) -> Result<Self, GitFailure> {
        let places = RepositoryPlaces::find_places(&git)?;
        let settings = DataSettings::read(&git, FIND)?;
        #[cfg(unix)]
        let git_dir = OwnFolder::Linked(link_folder(&places, &settings).map_err(|_| NO_ROOM)?);
        #[cfg(not(unix))]
        let git_dir = OwnFolder::SwitchedOff(places.git_dir.clone(), crate::settings::switched_off(&git, FIND)?);
        Ok(Self::new(git, places, git_dir, settings))
    }

    /// Opens the repository in the way that is used where users cannot make links.
    #[cfg(test)]
    fn open_without_links(git: Git) -> Result<Self, GitFailure> {
        let places = RepositoryPlaces::find_places(&git)?;
        let settings = DataSettings::read(&git, FIND)?;
        let git_dir = OwnFolder::SwitchedOff(places.git_dir.clone(), crate::settings::switched_off(&git, FIND)?);
        Ok(Self::new(git, places, git_dir, settings))
    }

    fn new(git: Git, places: RepositoryPlaces, git_dir: OwnFolder, settings: DataSettings) -> Self {
        let RepositoryPlaces { git_dir: theirs, top, prefix, .. } = places;
        Self { git, top, prefix, theirs, git_dir, settings, has_ssh: OnceLock::new() }
    }

    /// Returns true if the user has chosen how to reach other machines, by a variable or in settings outside the
    /// repository.
    fn has_ssh(&self) -> bool {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_configured = || {
            let words = ["config", "--get", "core.sshCommand"];
            let mut program = self.git.new_program();
            self.prepare_program(program.args(words), CallReach::Remote);
            run_program(&mut program, &words, FIND).is_ok()
        };
        *self.has_ssh.get_or_init(|| is_set("GIT_SSH_COMMAND") || is_set("GIT_SSH") || is_configured())
    }

    /// Returns the path from the top of the work tree to the folder, with a slash at its end. At the top it is empty.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns true if the user has begun a merge, rebase or similar operation and not finished it.
    pub fn is_under_way(&self) -> bool {
        let marks = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "BISECT_LOG"];
        marks.iter().any(|mark| self.theirs.join(mark).symlink_metadata().is_ok())
    }

    /// Returns the address of `origin` as the settings have it.
    pub fn remote(&self) -> Option<&str> {
        self.settings.values("remote.origin.url").last().filter(|url| !url.is_empty())
    }

    /// Runs a command of git.
    ///
    /// # Errors
    /// The reason why the command failed.
    pub fn run(&self, call: &GitCall<'_>) -> Result<Vec<u8>, GitFailure> {
        let mut program = self.git.new_program();
        program.args(call.words).input(call.input);
        self.prepare_program(&mut program, call.reach);
        if call.reach == CallReach::Remote && !self.has_ssh() {
            program.env("GIT_SSH_COMMAND", SSH);
        }
        for (name, value) in call.variables {
            program.env(name, value);
        }
        run_program(&mut program, call.words, call.limits)
    }

    /// Pushes to `origin`, fetches from it, or lists its refs. `words` are the arguments after the name of the remote.
    ///
    /// # Errors
    /// The reason why the command failed.
    pub fn reach_remote(&self, verb: RemoteVerb, words: &[&str], limits: CallLimits) -> Result<Vec<u8>, GitFailure> {
        let side = self.remote_side(verb, limits)?;
        let mut all: Vec<&str> = verb.command_words().to_vec();
        all.extend(side.as_deref());
        all.push("origin");
        all.extend(words);
        self.run(&GitCall { words: &all, input: b"", variables: &[], reach: CallReach::Remote, limits })
    }

    /// Returns the switch that sets how git starts the remote side; `None` if the remote is not a folder of this
    /// machine.
    fn remote_side(&self, verb: RemoteVerb, limits: CallLimits) -> Result<Option<String>, GitFailure> {
        let words: &[&str] = match verb {
            RemoteVerb::Push => &["remote", "get-url", "--push", "--all", "origin"],
            RemoteVerb::Fetch | RemoteVerb::List => &["remote", "get-url", "origin"],
        };
        let told = self.run(&GitCall { words, input: b"", variables: &[], reach: CallReach::Remote, limits })?;
        let told = String::from_utf8_lossy(&told).into_owned();
        let (here, elsewhere): (Vec<_>, Vec<_>) = told.lines().partition(|url| is_of_this_machine(url));
        match (here.is_empty(), elsewhere.is_empty()) {
            (true, _) => Ok(None),
            (false, false) => Err(GitFailure::Unfit("its remote has addresses on this machine and elsewhere")),
            (false, true) => {
                let git = shell_word(self.git.program.as_os_str());
                let program = verb.remote_program();
                let env = "GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1";
                Ok(Some(format!("--{program}={env} {git} {REMOTE_SIDE} {program}")))
            }
        }
    }

    /// Prepares a program that runs git by itself, such as `gh`. The program runs in a folder without settings, and its
    /// variables name this repository.
    pub fn lend_to(&self, program: &mut ChildProgram) {
        program.env("PATH", &self.git.path);
        for (name, value) in crate::VARIABLES {
            program.env(name, value);
        }
        self.prepare_program(program, CallReach::Remote);
        if !self.has_ssh() {
            program.env("GIT_SSH_COMMAND", SSH);
        }
        program.current_dir(self.git_dir());
    }

    fn git_dir(&self) -> &Path {
        match &self.git_dir {
            #[cfg(unix)]
            OwnFolder::Linked(folder) => folder.path(),
            #[cfg(any(not(unix), test))]
            OwnFolder::SwitchedOff(folder, _) => folder,
        }
    }

    fn prepare_program(&self, program: &mut ChildProgram, reach: CallReach) {
        program.current_dir(&self.git.folder).env("PWD", &self.git.folder);
        program
            .env("GIT_DIR", self.git_dir())
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_INDEX_FILE", self.theirs.join("index"));
        pass_on(program, &OF_PERSON);
        match reach {
            CallReach::Here => {
                program.env("GIT_CONFIG_GLOBAL", NOWHERE).env("GIT_CONFIG_NOSYSTEM", "1");
            }
            CallReach::Remote => {
                program.env("GIT_ALLOW_PROTOCOL", PROTOCOLS);
                pass_on(program, &OF_SETTINGS);
                pass_on(program, &OF_WAY);
            }
        }
        let entries: Vec<&GitSetting> = match &self.git_dir {
            #[cfg(unix)]
            OwnFolder::Linked(_) => self.settings.origin_addresses().collect(),
            #[cfg(any(not(unix), test))]
            OwnFolder::SwitchedOff(_, entries) => entries.iter().collect(),
        };
        program.env("GIT_CONFIG_COUNT", entries.len().to_string());
        for (number, GitSetting { key, value }) in entries.into_iter().enumerate() {
            program.env(format!("GIT_CONFIG_KEY_{number}"), key).env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
    }
}

/// The kind of a request to a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteVerb {
    /// Pushes.
    Push,
    /// Fetches.
    Fetch,
    /// Lists the refs of the remote.
    List,
}

impl RemoteVerb {
    fn command_words(self) -> &'static [&'static str] {
        match self {
            Self::Push => &["push", "--quiet", "--no-verify"],
            Self::Fetch => &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"],
            Self::List => &["ls-remote", "--symref"],
        }
    }

    fn remote_program(self) -> &'static str {
        if self == Self::Push { "receive-pack" } else { "upload-pack" }
    }
}

/// Returns true if git starts the remote side itself, because the remote is a folder of this machine.
fn is_of_this_machine(url: &str) -> bool {
    let has_host = url.find(':').is_some_and(|colon| url.find('/').is_none_or(|slash| colon < slash));
    url.to_ascii_lowercase().starts_with("file:") || !has_host || (cfg!(windows) && url.get(1..2) == Some(":"))
}

#[cfg(unix)]
const NO_ROOM: GitFailure = GitFailure::Unfit("there is no room for a folder of its own");

/// Makes the git folder for the calls: links to parts of the repository, and Nudge's settings.
#[cfg(unix)]
fn link_folder(places: &RepositoryPlaces, settings: &DataSettings) -> std::io::Result<TempDir> {
    use std::os::unix::fs::symlink;

    sweep_folders(&std::env::temp_dir(), SystemTime::now());
    let own = tempfile::Builder::new().prefix(OWN_FOLDER).tempdir()?;
    let path_of = |name: &str| own.path().join(name);
    fs::write(path_of("config"), settings.to_file_text())?;
    copy_head(&places.git_dir.join("HEAD"), &path_of("HEAD"))?;
    // Git treats a link without a target as a missing file.
    for name in ["objects", "refs", "packed-refs", "reftable", "shallow"] {
        let shared = places.common.join(name);
        if !matches!(name, "reftable" | "shallow") || shared.symlink_metadata().is_ok() {
            symlink(shared, path_of(name))?;
        }
    }
    link_logs(places, &path_of("logs"))?;
    fs::create_dir(path_of("info"))?;
    for name in ["exclude", "attributes"] {
        let path = places.common.join("info").join(name);
        if let Ok(text) = foreign::read(&path, LinkPolicy::Refused, MAX_INFO_BYTES) {
            fs::write(path_of("info").join(name), text)?;
        }
    }
    // A split index has further files.
    let is_part = |name: &OsString| name.as_encoded_bytes().starts_with(b"sharedindex.");
    let parts = fs::read_dir(&places.git_dir)?.flatten().map(|entry| entry.file_name()).filter(is_part);
    for name in parts {
        symlink(places.git_dir.join(&name), own.path().join(&name))?;
    }
    Ok(own)
}

/// Removes git folders that killed processes left behind. They have links and settings, but no secrets.
#[cfg(unix)]
fn sweep_folders(temporary: &Path, now: SystemTime) {
    let is_left = |entry: &fs::DirEntry| {
        let modified = entry.metadata().ok().filter(fs::Metadata::is_dir).and_then(|meta| meta.modified().ok());
        let is_old = modified.is_some_and(|modified| now.duration_since(modified).is_ok_and(|age| age > MAX_CALL_AGE));
        is_old && entry.file_name().as_encoded_bytes().starts_with(OWN_FOLDER.as_bytes())
    };
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten().filter(is_left) {
        // The system refuses the removal of another user's folder.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// Copies `HEAD`, which names the branch of the work tree. A link is not possible, because git accepts no link to a
/// file as `HEAD`.
#[cfg(unix)]
fn copy_head(theirs: &Path, own: &Path) -> std::io::Result<()> {
    match theirs.read_link() {
        // In an old form, `HEAD` is a link to the branch.
        Ok(target) if target.starts_with("refs") => std::os::unix::fs::symlink(target, own),
        _ => fs::write(own, foreign::read(theirs, LinkPolicy::Refused, MAX_HEAD_BYTES)?),
    }
}

/// Links the reflogs, if the repository has any. All work trees share the reflogs of branches.
#[cfg(unix)]
fn link_logs(places: &RepositoryPlaces, logs: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::symlink;

    fs::create_dir(logs)?;
    for (from, name) in [(&places.git_dir, "HEAD"), (&places.common, "refs")] {
        let theirs = from.join("logs").join(name);
        if theirs.symlink_metadata().is_ok() {
            symlink(theirs, logs.join(name))?;
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
#[path = "repository_tests.rs"]
mod tests;
