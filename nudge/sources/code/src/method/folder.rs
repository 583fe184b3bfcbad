//! Answers `nudge.code.file` for a folder: lists its content.

use std::collections::BTreeMap;

use serde::Serialize;

use super::CallRoot;
use crate::live::state::RootState;

/// Result of `nudge.code.file` for a folder.
#[derive(Debug, Serialize)]
pub struct FolderTold {
    /// The path from the root; `.` is the root itself.
    path: String,
    folders: Vec<SubfolderEntry>,
    files: Vec<FolderFile>,
}

#[derive(Debug, Serialize)]
struct SubfolderEntry {
    path: String,
    /// The number of files in the folder, at any depth.
    files: usize,
}

#[derive(Debug, Serialize)]
struct FolderFile {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// The number of definitions in the file.
    nodes: usize,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    parse_errors: bool,
    /// The reason why the file was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
}

impl CallRoot {
    /// Resolves the folder that a caller names. Returns an empty path for the root itself, and `None` if the name leads
    /// to no folder.
    pub(super) fn resolve_folder(&self, given: &str) -> Option<String> {
        let root = self.live.root();
        let places = [Some(root.join(given)), self.cwd().map(|cwd| cwd.join(given))];
        let real = places.iter().flatten().filter_map(|place| place.canonicalize().ok());
        let real = real.filter(|place| place.is_dir()).find(|place| place.starts_with(root.path()))?;
        if real == root.path() { Some(String::new()) } else { root.name(&real) }
    }
}

impl FolderTold {
    /// Lists the known files in a folder.
    pub(super) fn from_state(state: &RootState, folder: &str) -> Self {
        let begin = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let (mut folders, mut files) = (BTreeMap::<&str, usize>::new(), BTreeMap::new());
        for (path, known) in &state.files {
            let Some(rest) = path.strip_prefix(&begin) else { continue };
            match rest.split_once('/') {
                Some((inner, _)) => *folders.entry(inner).or_default() += 1,
                None => drop(files.insert(&**path, known.skip)),
            }
        }
        let entry = |(path, skip): (&str, Option<nudge_code_index::Skip>)| {
            let facts = state.index.file_facts(path);
            FolderFile {
                path: path.to_owned(),
                language: facts.map(|facts| facts.language.name()),
                nodes: facts.map_or(0, |facts| facts.len()),
                parse_errors: facts.is_some_and(|facts| facts.parse_errors),
                skipped: skip.map(|skip| skip.to_string()),
            }
        };
        let inner = |(name, files): (&str, usize)| SubfolderEntry { path: format!("{begin}{name}"), files };
        Self {
            path: if folder.is_empty() { ".".to_owned() } else { folder.to_owned() },
            folders: folders.into_iter().map(inner).collect(),
            files: files.into_iter().map(entry).collect(),
        }
    }
}
