//! Finds the repository of a folder, as git's `setup.c` does: walks upwards, reads `.git` files, and checks the
//! repository's owner and format.

use std::path::{Path, PathBuf};

use super::config::{ConfigEntry, is_space};
use super::env::GitEnv;
use super::layers::{ConfigLayers, ConfigScope, read_config};
use super::main_worktree;
use super::probe::{
    DetectStop, FILE_MAX_BYTES, FileProbe, FileText, PathKind, PathSight, PathStamp, Res, effective_uid,
};
use super::scalars::{parse_boolean, parse_number};

/// A repository in which git would run.
pub(super) struct FoundRepo {
    /// The top of the work tree; `None` in a bare repository and inside `.git`.
    pub(super) top: Option<PathBuf>,
    /// The top of the main worktree; `None` unless the found worktree is a linked one.
    pub(super) main: Option<PathBuf>,
    /// The repository's own folder, without links. For a linked worktree, it is the worktree's folder in the
    /// repository.
    pub(super) git_dir: PathBuf,
    /// The folder that all worktrees share.
    pub(super) common: PathBuf,
    pub(super) hex_len: usize,
    /// The repository's configuration file.
    pub(super) config: Vec<ConfigEntry>,
    /// The content of `config.worktree`, if the repository uses this file.
    pub(super) worktree_config: Vec<ConfigEntry>,
}

/// The way in which the repository was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepoKind {
    /// A folder with the name `.git`.
    Folder,
    /// A file with the name `.git`, which contains the path of the folder.
    File,
    /// The folder of the walk itself is a repository, such as a bare repository.
    Itself,
}

/// A folder that looks like a repository.
struct RepoCandidate {
    found: RepoKind,
    /// The folder in which the walk found the candidate.
    dir: PathBuf,
    git_dir: PathBuf,
    common: CommonFolder,
}

/// The folder that the worktrees share.
struct CommonFolder {
    path: PathBuf,
    /// Is true when there is a `commondir` file, so that this is a linked worktree.
    linked: bool,
}

/// Finds the repository of `cwd`. `cwd` is a path without links.
pub(super) fn discover_repo(probe: &mut FileProbe, env: &GitEnv, cwd: &Path) -> Res<FoundRepo> {
    let place = find_candidate(probe, env, cwd)?;
    let config_path = place.common.path.join("config");
    let config = read_config(probe, &config_path, ConfigScope::Repository)?.unwrap_or_default();
    let mut format = RepoFormat::read(&config)?;
    // In a submodule, `core.worktree` names the submodule's folder, and the repository is in another folder.
    let main = match (place.common.linked, &format.work_tree) {
        (false, _) => None,
        (true, Some(path)) => Some(work_tree(probe, &place.common.path, path)?),
        (true, None) => Some(main_worktree(&place.common.path).to_owned()),
    };
    let mut worktree_config = Vec::new();
    if format.worktree_config {
        let path = place.git_dir.join("config.worktree");
        worktree_config = read_config(probe, &path, ConfigScope::Repository)?.unwrap_or_default();
        format.read_place(&worktree_config)?;
    } else if place.common.linked {
        format.bare = false;
        format.work_tree = None;
    }
    let top = match (format.work_tree, format.bare) {
        (Some(_), true) => return Err(DetectStop::Unsure("core.bare and core.worktree")),
        (Some(path), false) => Some(work_tree(probe, &place.git_dir, &path)?),
        (None, false) if place.found != RepoKind::Itself => Some(place.dir),
        (None, _) => None,
    };
    Ok(FoundRepo {
        top,
        main,
        git_dir: place.git_dir,
        common: place.common.path,
        hex_len: format.hex_len,
        config,
        worktree_config,
    })
}

/// Returns the work tree that the setting `core.worktree` names.
fn work_tree(probe: &mut FileProbe, git_dir: &Path, value: &[u8]) -> Res<PathBuf> {
    let odd = DetectStop::Unsure("core.worktree leads nowhere");
    let path = str::from_utf8(value).map_err(|_| odd)?;
    if path.is_empty() {
        return Err(odd);
    }
    let path = probe.resolve_path(&git_dir.join(path)).ok_or(odd)?;
    if probe.stat(&path).kind() == Some(PathKind::Dir) { Ok(path) } else { Err(odd) }
}

/// Does the work of git's `setup_git_directory_gently_1`.
fn find_candidate(probe: &mut FileProbe, env: &GitEnv, cwd: &Path) -> Res<RepoCandidate> {
    let device = match probe.lstat(cwd) {
        PathSight::There(stamp) if stamp.kind == PathKind::Dir => stamp.device,
        PathSight::There(_) | PathSight::Absent | PathSight::NotDir => return Err(DetectStop::Outside),
        PathSight::Denied | PathSight::Broken => return Err(DetectStop::Unsure("the folder cannot be seen")),
    };
    for (level, dir) in cwd.ancestors().enumerate() {
        if level > 0 {
            match probe.lstat(dir) {
                PathSight::There(stamp) if stamp.device == device => {}
                PathSight::There(_) => return Err(DetectStop::Outside),
                _ => return Err(DetectStop::Unsure("a folder cannot be seen")),
            }
        }
        if let Some(place) = dot_git(probe, env, dir)? {
            return Ok(place);
        }
        if let Some(common) = git_directory(probe, dir)? {
            let PathSight::There(stamp) = probe.lstat(dir) else {
                return Err(DetectStop::Unsure("a folder changed while read"));
            };
            let is_bare_named = |(_, entry): &(ConfigScope, ConfigEntry)| entry.name == b"safe.barerepository";
            if read_protected(probe, env)?.iter().any(is_bare_named) {
                return Err(DetectStop::Unsure("safe.bareRepository is set"));
            }
            check_owner(probe, env, dir, &[stamp])?;
            let dir = dir.to_owned();
            return Ok(RepoCandidate { found: RepoKind::Itself, git_dir: dir.clone(), dir, common });
        }
    }
    Err(DetectStop::Outside)
}

/// Reads `.git` in `dir`. Returns the repository to which it leads; `None` if there is none.
fn dot_git(probe: &mut FileProbe, env: &GitEnv, dir: &Path) -> Res<Option<RepoCandidate>> {
    let path = dir.join(".git");
    let PathSight::There(own) = probe.lstat(&path) else {
        return Ok(None);
    };
    let target = if own.kind == PathKind::Link { probe.stat(&path) } else { PathSight::There(own) };
    let (found, git_dir, common) = match target {
        PathSight::There(stamp) if stamp.kind == PathKind::File => {
            let named = git_file(probe, dir, &path, &stamp)?;
            // Git fails at a `.git` file that names no repository.
            let common = git_directory(probe, &named)?.ok_or(DetectStop::Outside)?;
            let named = probe.resolve_path(&named).ok_or(DetectStop::Outside)?;
            (RepoKind::File, named, common)
        }
        PathSight::There(stamp) if stamp.kind == PathKind::Dir => {
            let Some(common) = git_directory(probe, &path)? else {
                return Ok(None);
            };
            let real = match own.kind {
                PathKind::Link => probe.resolve_path(&path),
                _ => Some(path.clone()),
            };
            let real = real.ok_or(DetectStop::Unsure("a link changed while read"))?;
            (RepoKind::Folder, real, common)
        }
        _ => return Ok(None),
    };
    let mut owned = vec![own];
    let mut others = vec![dir];
    if found == RepoKind::File {
        others.push(&git_dir);
    }
    for other in others {
        match probe.lstat(other) {
            PathSight::There(stamp) => owned.push(stamp),
            _ => return Err(DetectStop::Unsure("a folder changed while read")),
        }
    }
    check_owner(probe, env, dir, &owned)?;
    let common = match (common.linked, found) {
        (true, _) => common,
        (false, _) => CommonFolder { path: git_dir.clone(), linked: false },
    };
    Ok(Some(RepoCandidate { found, dir: dir.to_owned(), git_dir, common }))
}

/// Returns the folder that a `.git` file names. Git fails at a `.git` file that it cannot read.
fn git_file(probe: &mut FileProbe, dir: &Path, path: &Path, stamp: &PathStamp) -> Res<PathBuf> {
    let FileText::Bytes(bytes) = probe.read_seen(path, stamp, FILE_MAX_BYTES)? else {
        return Err(DetectStop::Unsure("a .git file that cannot be read"));
    };
    let Some(target) = bytes.strip_prefix(b"gitdir: ") else {
        return Err(DetectStop::Outside);
    };
    let end = target.iter().rposition(|&b| b != b'\n' && b != b'\r');
    let target = target.get(..end.map_or(0, |last| last + 1)).unwrap_or(&[]);
    if target.is_empty() {
        return Err(DetectStop::Outside);
    }
    path_of(target).map(|target| dir.join(target))
}

/// Converts bytes from one of git's files to a path.
fn path_of(bytes: &[u8]) -> Res<&Path> {
    if bytes.contains(&0) {
        return Err(DetectStop::Unsure("a NUL byte in a path"));
    }
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Path::new(text)),
        Err(_) => Err(DetectStop::Unsure("a path that is not UTF-8")),
    }
}

/// Does the work of git's `is_git_directory`: checks `HEAD`, `objects` and `refs`.
fn git_directory(probe: &mut FileProbe, dir: &Path) -> Res<Option<CommonFolder>> {
    let head = dir.join("HEAD");
    let valid = match probe.lstat(&head) {
        PathSight::There(stamp) if stamp.kind == PathKind::Link => FileProbe::read_link(&head)?.starts_with("refs/"),
        PathSight::There(stamp) if stamp.kind == PathKind::Dir => false,
        PathSight::There(stamp) => match probe.read_seen(&head, &stamp, FILE_MAX_BYTES)? {
            FileText::Bytes(bytes) => valid_head(&bytes),
            FileText::Absent | FileText::Denied => false,
        },
        _ => false,
    };
    if !valid {
        return Ok(None);
    }
    let common = common_dir(probe, dir)?;
    for name in ["objects", "refs"] {
        match probe.stat(&common.path.join(name)) {
            PathSight::There(stamp) if stamp.kind == PathKind::Dir && stamp.open_to_all => {}
            PathSight::There(stamp) if stamp.kind == PathKind::Dir => {
                // Not every user can search the folder. This process can if its user is root or the owner, and the mode
                // allows the owner to search. Otherwise git must decide.
                let mine = effective_uid().is_some_and(|uid| uid == 0 || uid == stamp.uid);
                if !(mine && stamp.open_to_owner) {
                    return Err(DetectStop::Unsure("a folder of git's may be closed"));
                }
            }
            PathSight::Absent | PathSight::NotDir => return Ok(None),
            _ => return Err(DetectStop::Unsure("a folder of git's cannot be seen")),
        }
    }
    Ok(Some(common))
}

/// Does the work of git's `validate_headref`, for a regular file.
fn valid_head(bytes: &[u8]) -> bool {
    let bytes = bytes.get(..255).unwrap_or(bytes);
    if let Some(target) = bytes.strip_prefix(b"ref:") {
        let start = target.iter().position(|&b| !is_space(b)).unwrap_or(0);
        if target[start..].starts_with(b"refs/") {
            return true;
        }
    }
    bytes.len() >= 40 && bytes[..40].iter().all(u8::is_ascii_hexdigit)
}

/// Does the work of git's `get_common_dir`.
fn common_dir(probe: &mut FileProbe, dir: &Path) -> Res<CommonFolder> {
    let file = dir.join("commondir");
    if !matches!(probe.lstat(&file), PathSight::There(_)) {
        return Ok(CommonFolder { path: dir.to_owned(), linked: false });
    }
    let FileText::Bytes(bytes) = probe.read(&file, FILE_MAX_BYTES)? else {
        return Err(DetectStop::Unsure("a commondir file that cannot be read"));
    };
    let end = bytes.iter().rposition(|&b| b != b'\n' && b != b'\r');
    let text = &bytes[..end.map_or(0, |last| last + 1)];
    if text.is_empty() {
        return Err(DetectStop::Unsure("an empty commondir file"));
    }
    match probe.resolve_path(&dir.join(path_of(text)?)) {
        Some(path) => Ok(CommonFolder { path, linked: true }),
        None => Err(DetectStop::Unsure("a commondir file that leads nowhere")),
    }
}

/// Reads the configuration outside the repository, which the repository cannot change.
fn read_protected(probe: &mut FileProbe, env: &GitEnv) -> Res<Vec<(ConfigScope, ConfigEntry)>> {
    let mut layers = ConfigLayers::new(env);
    layers.add_outer(probe)?;
    Ok(layers.entries)
}

/// Does the work of git's `ensure_valid_ownership`. `dir` is the path of the repository in `safe.directory`.
fn check_owner(probe: &mut FileProbe, env: &GitEnv, dir: &Path, parts: &[PathStamp]) -> Res<()> {
    if env.assume_owned {
        return Ok(());
    }
    let Some(uid) = effective_uid() else {
        return Err(DetectStop::Unsure("the standard library cannot tell the owner here"));
    };
    if parts.iter().all(|part| part.uid == uid) {
        return Ok(());
    }
    let mut safe = false;
    let mut doubtful = false;
    for (_, entry) in read_protected(probe, env)? {
        if entry.name != b"safe.directory" {
            continue;
        }
        match entry.value.as_deref() {
            None | Some(b"") => (safe, doubtful) = (false, false),
            Some(b"*") => safe = true,
            Some(value) if value == dir.as_os_str().as_encoded_bytes() => safe = true,
            // Different versions of git treat links, `/*`, `.` and `~` differently.
            Some(_) => doubtful = true,
        }
    }
    match (safe, doubtful) {
        (true, _) => Ok(()),
        (false, true) => Err(DetectStop::Unsure("a safe.directory that is not a plain path")),
        (false, false) => Err(DetectStop::Outside),
    }
}

/// The format of a repository, as its configuration states it. Includes do not count (git's
/// `check_repository_format_gently`).
struct RepoFormat {
    bare: bool,
    work_tree: Option<Vec<u8>>,
    worktree_config: bool,
    hex_len: usize,
}

impl RepoFormat {
    fn read(config: &[ConfigEntry]) -> Res<Self> {
        let mut format = Self { bare: false, work_tree: None, worktree_config: false, hex_len: 40 };
        let mut version = None;
        let mut needs_version_one = false;
        let mut extended = false;
        for entry in config {
            let Some((section, sub, key)) = entry.split_name() else {
                continue;
            };
            let value = entry.value.as_deref();
            if entry.name == b"core.repositoryformatversion" {
                let number = value.and_then(parse_number).filter(|n| (0..=1).contains(n));
                version = Some(number.ok_or(DetectStop::Unsure("an unknown repository format"))?);
            } else if section == b"extensions" {
                extended = true;
                needs_version_one |= format.apply_extension(sub, key, value)?;
            }
        }
        format.read_place(config)?;
        match version {
            Some(0) if needs_version_one => Err(DetectStop::Unsure("an extension its repository format forbids")),
            // Without a format version, at least some versions of git ignore these settings.
            None if extended || format.bare || format.work_tree.is_some() => {
                Err(DetectStop::Unsure("no repositoryformatversion"))
            }
            _ => Ok(format),
        }
    }

    /// Reads one extension. Returns true if the extension needs format version 1.
    fn apply_extension(&mut self, sub: Option<&[u8]>, key: &[u8], value: Option<&[u8]>) -> Res<bool> {
        let unknown = Err(DetectStop::Unsure("an extension that is not read"));
        match (sub, key, value) {
            (None, b"noop", _) | (None, b"partialclone", Some(_)) => Ok(false),
            (None, b"preciousobjects", value) if parse_boolean(value).is_some() => Ok(false),
            (None, b"worktreeconfig", value) => match parse_boolean(value) {
                Some(on) => {
                    self.worktree_config = on;
                    Ok(false)
                }
                None => unknown,
            },
            (None, b"objectformat", Some(b"sha1")) => {
                self.hex_len = 40;
                Ok(true)
            }
            (None, b"objectformat", Some(b"sha256")) => {
                self.hex_len = 64;
                Ok(true)
            }
            (None, b"noop-v1", _) | (None, b"refstorage", Some(b"files")) => Ok(true),
            (None, b"refstorage", _) => Err(DetectStop::Unsure("refs not kept as files")),
            _ => unknown,
        }
    }

    /// Reads `core.bare` and `core.worktree`.
    fn read_place(&mut self, config: &[ConfigEntry]) -> Res<()> {
        for entry in config {
            let value = entry.value.as_deref();
            if entry.name == b"core.bare" {
                self.bare = parse_boolean(value).ok_or(DetectStop::Unsure("an odd core.bare"))?;
            } else if entry.name == b"core.worktree" {
                let value = value.ok_or(DetectStop::Unsure("an odd core.worktree"))?;
                self.work_tree = Some(value.to_vec());
            }
        }
        Ok(())
    }
}
