//! The configuration as git sees it: system, user, repository and worktree
//! files in order, with their includes (git's `do_git_config_sequence`).

use std::path::{Path, PathBuf};

use super::check::is_acceptable;
use super::config::{ConfigEntry, parse_config};
use super::env::GitEnv;
use super::glob;
use super::probe::{DetectStop, FILE_MAX_BYTES, FileProbe, FileText, Res};
use super::refs::RepoRefs;

/// git's `MAX_INCLUDE_DEPTH`; it dies past it.
const INCLUDE_DEPTH_MAX: usize = 10;

/// The facts that the conditions of `includeIf` are tested against.
pub(super) struct IncludeSubject<'a> {
    /// The repository's folder, without links.
    pub(super) git_dir: &'a Path,
    /// The same as git would spell it when the first does not match.
    pub(super) git_dir_as_given: &'a Path,
    /// git may spell it yet another way, which depends on `PWD`.
    pub(super) other_spellings: bool,
    pub(super) common: &'a Path,
    pub(super) hex_len: usize,
}

/// The origin of an entry: the repository's own files, or others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigScope {
    Outer,
    Repository,
}

/// Collects the entries of all files, in git's order.
pub(super) struct ConfigLayers<'a> {
    env: &'a GitEnv,
    subject: Option<IncludeSubject<'a>>,
    pub(super) entries: Vec<(ConfigScope, ConfigEntry)>,
}

impl<'a> ConfigLayers<'a> {
    /// `subject` is `None` for the protected configuration, where every
    /// condition on the repository is false.
    pub(super) fn new(env: &'a GitEnv, subject: Option<IncludeSubject<'a>>) -> Self {
        Self { env, subject, entries: Vec::new() }
    }

    /// The files outside the repository.
    pub(super) fn add_outer(&mut self, probe: &mut FileProbe) -> Res<()> {
        for path in &self.env.config_maybe_system {
            let file = read_config(probe, path, ConfigScope::Outer)?;
            if file.is_some_and(|entries| entries.iter().any(may_matter)) {
                return Err(DetectStop::Unsure("a system-wide file git may or may not read"));
            }
        }
        let mut paths: Vec<PathBuf> = self.env.config_system.iter().cloned().collect();
        if let Some(global) = &self.env.config_global {
            paths.push(global.clone());
        } else {
            let home = self.env.home.as_deref();
            let xdg = self.env.xdg_config_home.clone();
            paths.extend(
                xdg.or_else(|| home.map(|home| home.join(".config"))).map(|xdg| xdg.join("git").join("config")),
            );
            paths.extend(home.map(|home| home.join(".gitconfig")));
        }
        for path in paths {
            if path.as_os_str() == "/dev/null" {
                continue;
            }
            if !path.is_absolute() {
                return Err(DetectStop::Unsure("a relative path to a configuration file"));
            }
            if let Some(entries) = read_config(probe, &path, ConfigScope::Outer)? {
                self.add_file(probe, ConfigScope::Outer, &path, entries, 0)?;
            }
        }
        Ok(())
    }

    /// Adds one file's entries, each include right after the entry that asks
    /// for it.
    pub(super) fn add_file(
        &mut self,
        probe: &mut FileProbe,
        scope: ConfigScope,
        path: &Path,
        entries: Vec<ConfigEntry>,
        depth: usize,
    ) -> Res<()> {
        for entry in entries {
            if !is_acceptable(&entry) {
                return Err(DetectStop::Unsure("a configuration value git may refuse"));
            }
            let wanted = self.find_included(probe, path, &entry)?;
            self.entries.push((scope, entry));
            let Some(wanted) = wanted else {
                continue;
            };
            if depth >= INCLUDE_DEPTH_MAX {
                return Err(DetectStop::Unsure("includes nest too deep"));
            }
            if let Some(entries) = read_config(probe, &wanted, ConfigScope::Repository)? {
                self.add_file(probe, scope, &wanted, entries, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The file an entry includes, if it does and its condition holds.
    fn find_included(&self, probe: &mut FileProbe, from: &Path, entry: &ConfigEntry) -> Res<Option<PathBuf>> {
        let Some((section, sub, key)) = entry.split_name() else {
            return Ok(None);
        };
        let applies = match (section, sub) {
            (b"include", None) => key == b"path",
            (b"includeif", Some(condition)) => key == b"path" && self.condition_holds(probe, from, condition)?,
            _ => false,
        };
        match entry.value.as_deref() {
            Some(value) if applies => self.include_path(from, value).map(Some),
            _ => Ok(None),
        }
    }

    fn include_path(&self, from: &Path, value: &[u8]) -> Res<PathBuf> {
        let text = str::from_utf8(value).map_err(|_| DetectStop::Unsure("an include is not UTF-8"))?;
        if text.is_empty() || text.starts_with("%(") || text.starts_with(':') {
            return Err(DetectStop::Unsure("an include whose path git makes up"));
        }
        let path = match text.strip_prefix('~') {
            None => PathBuf::from(text),
            Some(rest) => join_text(self.home_for(rest)?, rest),
        };
        if path.is_absolute() {
            return Ok(path);
        }
        let dir = from.parent().ok_or(DetectStop::Unsure("an include without a folder"))?;
        Ok(dir.join(path))
    }

    /// Returns the home folder for the text after `~`: nothing or `/...`.
    fn home_for(&self, rest: &str) -> Res<&Path> {
        match &self.env.home {
            Some(home) if home.is_absolute() && (rest.is_empty() || rest.starts_with('/')) => Ok(home),
            _ => Err(DetectStop::Unsure("a path of another user's home")),
        }
    }

    fn condition_holds(&self, probe: &mut FileProbe, from: &Path, condition: &[u8]) -> Res<bool> {
        let text = str::from_utf8(condition).map_err(|_| DetectStop::Unsure("a condition is not UTF-8"))?;
        if let Some(pattern) = text.strip_prefix("gitdir:") {
            return self.matches_git_dir(probe, from, pattern, false);
        }
        if let Some(pattern) = text.strip_prefix("gitdir/i:") {
            return self.matches_git_dir(probe, from, pattern, true);
        }
        if let Some(pattern) = text.strip_prefix("onbranch:") {
            return self.matches_branch(probe, pattern);
        }
        Err(DetectStop::Unsure("an includeIf condition that is not read"))
    }

    fn matches_git_dir(&self, probe: &mut FileProbe, from: &Path, pattern: &str, fold_case: bool) -> Res<bool> {
        let Some(subject) = &self.subject else {
            return Ok(false);
        };
        if cfg!(windows) {
            return Err(DetectStop::Unsure("includeIf gitdir on Windows"));
        }
        if pattern.starts_with("%(") || pattern.starts_with(':') {
            return Err(DetectStop::Unsure("a condition whose path git makes up"));
        }
        let mut pattern = match pattern.strip_prefix('~') {
            None => pattern.to_owned(),
            Some(rest) => {
                let home = probe.resolve_path(self.home_for(rest)?);
                let home = home.as_deref().and_then(Path::to_str);
                format!("{}{rest}", home.ok_or(DetectStop::Unsure("the home folder is odd"))?)
            }
        };
        let mut literal = 0;
        if pattern.starts_with("./") {
            let from = probe.resolve_path(from);
            let dir = from.as_deref().and_then(Path::parent).and_then(Path::to_str);
            let dir = dir.ok_or(DetectStop::Unsure("a condition in an odd place"))?;
            let dir = dir.trim_end_matches('/');
            pattern.replace_range(..1, dir);
            literal = dir.len() + 1;
        } else if !pattern.starts_with('/') {
            pattern.insert_str(0, "**/");
        }
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        let matches = |dir: &Path| {
            let text = dir.as_os_str().as_encoded_bytes();
            let (Some(head), Some(tail)) = (text.get(..literal), text.get(literal..)) else {
                return Some(false);
            };
            let (start, rest) = pattern.as_bytes().split_at(literal);
            let same = start == head || (fold_case && start.eq_ignore_ascii_case(head));
            if same { glob::match_glob(rest, tail, fold_case) } else { Some(false) }
        };
        let found = match matches(subject.git_dir) {
            Some(false) => matches(subject.git_dir_as_given),
            decided => decided,
        };
        match found {
            None => Err(DetectStop::Unsure("a condition that is costly to match")),
            Some(false) if subject.other_spellings => {
                Err(DetectStop::Unsure("a condition on a folder reached by a link"))
            }
            Some(found) => Ok(found),
        }
    }

    fn matches_branch(&self, probe: &mut FileProbe, pattern: &str) -> Res<bool> {
        let Some(subject) = &self.subject else {
            return Ok(false);
        };
        let mut refs = RepoRefs::new(subject.git_dir, subject.common, subject.hex_len);
        let head = refs.resolve_ref(probe, "HEAD")?.filter(|head| head.symbolic);
        let Some(branch) = head.as_ref().and_then(|h| h.name.strip_prefix("refs/heads/")) else {
            return Ok(false);
        };
        let mut pattern = pattern.to_owned();
        if pattern.ends_with('/') {
            pattern.push_str("**");
        }
        glob::match_glob(pattern.as_bytes(), branch.as_bytes(), false)
            .ok_or(DetectStop::Unsure("a condition that is costly to match"))
    }
}

/// `base` and `rest` as git puts them together: as text.
fn join_text(base: &Path, rest: &str) -> PathBuf {
    let mut joined = base.as_os_str().to_owned();
    joined.push(rest);
    PathBuf::from(joined)
}

/// The entries of a file; `None` where there is none. A file outside the
/// repository that may not be read is skipped, as git does; any other stops.
pub(super) fn read_config(probe: &mut FileProbe, path: &Path, scope: ConfigScope) -> Res<Option<Vec<ConfigEntry>>> {
    match probe.read(path, FILE_MAX_BYTES)? {
        FileText::Absent => Ok(None),
        FileText::Denied if scope == ConfigScope::Outer => Ok(None),
        FileText::Denied => Err(DetectStop::Unsure("a configuration file may not be read")),
        FileText::Bytes(bytes) => match parse_config(&bytes) {
            Ok(entries) => Ok(Some(entries)),
            Err(_) => Err(DetectStop::Unsure("a configuration file is malformed")),
        },
    }
}

/// Returns true when an entry of a doubtful file could change the answer.
fn may_matter(entry: &ConfigEntry) -> bool {
    let relevant: [&[u8]; 7] = [b"branch", b"extensions", b"include", b"includeif", b"remote", b"safe", b"url"];
    !is_acceptable(entry)
        || entry.name == b"core.warnambiguousrefs"
        || entry.split_name().is_none_or(|(section, ..)| relevant.contains(&section))
}
