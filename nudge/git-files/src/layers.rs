//! Collects the configuration as git does: the system, user, repository and worktree files in this order, with the
//! files that they include (git's `do_git_config_sequence`).

use std::path::{Path, PathBuf};

use super::config::{ConfigEntry, parse_config};
use super::env::GitEnv;
use super::probe::{DetectStop, FILE_MAX_BYTES, FileProbe, FileText, Res};

/// The depth of includes at which git fails (git's `MAX_INCLUDE_DEPTH`).
const INCLUDE_DEPTH_MAX: usize = 10;

/// The origin of an entry: a file outside the repository, or the repository's own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigScope {
    Outer,
    Repository,
}

/// Collects the entries of all files, in git's order.
pub(super) struct ConfigLayers<'a> {
    env: &'a GitEnv,
    pub(super) entries: Vec<(ConfigScope, ConfigEntry)>,
}

impl<'a> ConfigLayers<'a> {
    pub(super) fn new(env: &'a GitEnv) -> Self {
        Self { env, entries: Vec::new() }
    }

    /// Adds the files outside the repository.
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

    /// Adds the entries of one file. The entries of an included file follow the entry that includes it.
    pub(super) fn add_file(
        &mut self,
        probe: &mut FileProbe,
        scope: ConfigScope,
        path: &Path,
        entries: Vec<ConfigEntry>,
        depth: usize,
    ) -> Res<()> {
        for entry in entries {
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

    /// Returns the file that an entry includes. Only git can tell whether the condition of an include is true. A file
    /// with a condition is therefore skipped if none of its entries could change the answer, for example if it only
    /// names the committer.
    fn find_included(&self, probe: &mut FileProbe, from: &Path, entry: &ConfigEntry) -> Res<Option<PathBuf>> {
        let (Some((section, sub, b"path")), Some(value)) = (entry.split_name(), entry.value.as_deref()) else {
            return Ok(None);
        };
        match (section, sub) {
            (b"include", None) => self.include_path(from, value).map(Some),
            (b"includeif", Some(_)) => {
                let path = self.include_path(from, value)?;
                match read_config(probe, &path, ConfigScope::Repository)? {
                    Some(entries) if entries.iter().any(may_matter) => {
                        Err(DetectStop::Unsure("an includeIf that may matter"))
                    }
                    _ => Ok(None),
                }
            }
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

    /// Returns the home folder for a path that begins with `~`. `rest` is the text after `~`: empty or `/...`.
    fn home_for(&self, rest: &str) -> Res<&Path> {
        match &self.env.home {
            Some(home) if home.is_absolute() && (rest.is_empty() || rest.starts_with('/')) => Ok(home),
            _ => Err(DetectStop::Unsure("a path of another user's home")),
        }
    }
}

/// Joins `base` and `rest` as texts, as git does.
fn join_text(base: &Path, rest: &str) -> PathBuf {
    let mut joined = base.as_os_str().to_owned();
    joined.push(rest);
    PathBuf::from(joined)
}

/// Returns the entries of a file; `None` if there is no file. If the process may not read the file, a file outside the
/// repository is skipped, as git does, and a file of the repository is an error.
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

/// Returns true when an entry of a file that git may or may not read could change the answer.
fn may_matter(entry: &ConfigEntry) -> bool {
    let relevant: [&[u8]; 5] = [b"include", b"includeif", b"remote", b"safe", b"url"];
    entry.split_name().is_none_or(|(section, ..)| relevant.contains(&section))
}
