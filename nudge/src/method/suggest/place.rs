//! Judges how near the location of a hint is to the agent's location (semantics section 10). A location is a folder, a
//! repository or a branch.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use nudge_core::shell;
use nudge_core::suggest::{SuggestMoment, SuggestRequest};
use nudge_core::words::fold_identifier;

use crate::hint::Hint;

/// The location of a hint that fits, compared with the agent's location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HintPlace {
    /// The scope names no location, and the component is not a name in the agent's location.
    Elsewhere,
    /// The component names the repository, one of the agent's folders, or a path in the text.
    Near,
    /// The scope names a folder, a repository or a branch.
    Here,
}

impl HintPlace {
    /// Returns the reason for suggesting a hint with this location.
    pub(super) fn to_reason(self) -> &'static str {
        match self {
            Self::Here => "it applies here",
            Self::Near => "it is of this place",
            Self::Elsewhere => "it applies everywhere",
        }
    }
}

/// The names in the agent's location, and the names in the paths and identifiers of the texts.
pub(super) struct NearbyNames {
    /// The names of the repository and of the agent's folders inside the repository.
    names: Names,
    spoken_of: Names,
    /// Is true when neither the folder nor the repository is known.
    is_nowhere: bool,
    /// A cache by component. The first flag is true when the agent's location has the component's name, the second when
    /// a text contains the name. Many hints share a component.
    known: RefCell<HashMap<Box<str>, (bool, bool), RandomState>>,
}

type Names = HashSet<String, RandomState>;

impl NearbyNames {
    pub(super) fn new(request: &SuggestRequest) -> Self {
        let mut names: Names = HashSet::default();
        let repo = request.context.repo();
        let repo = repo.as_deref().and_then(|repo| repo.rsplit('/').next()).map(fold_identifier);
        if let Some(cwd) = request.context.cwd() {
            names.extend(folders_below(cwd, repo.as_deref()).map(fold_identifier));
        }
        names.extend(repo);
        let mut spoken_of: Names = HashSet::default();
        for text in [Some(&*request.text), request.command.as_deref(), Some(&*request.error)].into_iter().flatten() {
            spoken_of.extend(find_paths(text).flat_map(split_segments).map(fold_identifier));
            spoken_of.extend(find_identifiers(text).map(fold_identifier));
        }
        for command in request.command.as_deref().and_then(shell::parse).iter().flat_map(|line| &line.commands) {
            if let shell::Folder::At(folder) = &command.folder {
                spoken_of.extend(split_segments(folder).map(fold_identifier));
            }
        }
        names.remove("");
        spoken_of.remove("");
        let is_nowhere = request.context.cwd().is_none() && request.context.repo_name().is_none();
        Self { names, spoken_of, is_nowhere, known: RefCell::default() }
    }

    /// Returns true when neither the folder nor the repository of the caller is known.
    pub(super) fn is_nowhere(&self) -> bool {
        self.is_nowhere
    }

    /// Returns true when the prompt, the command or the error has the component as a path or an identifier.
    pub(super) fn speaks_of(&self, component: &str) -> bool {
        self.look_up(component).1
    }

    /// Returns true when the prompt, the command or the error has any path or identifier.
    pub(super) fn speaks_of_any(&self) -> bool {
        !self.spoken_of.is_empty()
    }

    fn look_up(&self, component: &str) -> (bool, bool) {
        if let Some(known) = self.known.borrow().get(component) {
            return *known;
        }
        let name = fold_identifier(component);
        let found = (self.names.contains(&name), self.spoken_of.contains(&name));
        self.known.borrow_mut().insert(component.into(), found);
        found
    }

    /// Returns the factor for the weight of a hint's words. A word says little about a hint from elsewhere, because the
    /// word may occur by accident. It says more when the caller asks a question or has no location.
    pub(super) fn weigh_words(&self, place: HintPlace, moment: SuggestMoment) -> f64 {
        match (place, moment) {
            (HintPlace::Here, _) => 1.0,
            (HintPlace::Near, _) => 0.95,
            (HintPlace::Elsewhere, SuggestMoment::Recall) => 0.8,
            (HintPlace::Elsewhere, _) if self.is_nowhere => 0.95,
            (HintPlace::Elsewhere, SuggestMoment::Failure) => 0.7,
            (HintPlace::Elsewhere, _) => 0.45,
        }
    }

    pub(super) fn find_place(&self, hint: &Hint) -> HintPlace {
        let scope = hint.scope();
        if scope.names_a_place() {
            HintPlace::Here
        } else if let (true, _) | (_, true) = self.look_up(hint.component()) {
            HintPlace::Near
        } else {
            HintPlace::Elsewhere
        }
    }
}

/// Returns the folders of `cwd` below the last folder that has the repository's name. If no folder has this name,
/// returns only the last folder, because the other folders may not belong to the repository.
fn folders_below<'a>(cwd: &'a str, repo: Option<&str>) -> impl Iterator<Item = &'a str> {
    let folders: Vec<_> = cwd.split(['/', '\\']).filter(|folder| !folder.is_empty()).collect();
    let top = folders.iter().rposition(|folder| Some(&*fold_identifier(folder)) == repo);
    let from = top.map_or(folders.len().saturating_sub(1), |top| top + 1);
    folders.into_iter().skip(from)
}

/// Returns the words of a text that are paths.
fn find_paths(text: &str) -> impl Iterator<Item = &str> {
    let quotes = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;=|".contains(c);
    text.split(quotes)
        .map(|word| word.trim_start_matches('@').trim_end_matches(['.', ':', '?', '!']))
        .filter(|word| word.contains('/') && !word.contains("://") && word.len() <= 512)
}

/// Returns the words of a text that can only be identifiers: `search_service`, `HttpProxy`, `http-proxy`.
fn find_identifiers(text: &str) -> impl Iterator<Item = &str> {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.split(move |c| !inside(c)).filter(|word| {
        let mut pairs = word.chars().zip(word.chars().skip(1));
        word.trim_matches('-').contains(['_', '-']) || pairs.any(|(a, b)| a.is_lowercase() && b.is_uppercase())
    })
}

/// Returns the segments of a path. A segment with a dot is returned a second time without the part after the first dot.
fn split_segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !matches!(*segment, "" | "." | "..")).flat_map(|segment| {
        let stem = segment.split_once('.').map_or("", |(stem, _)| stem);
        [segment, stem]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_below_the_repository() {
        for (cwd, repo, told) in [
            ("/home/u/minerva/packages/charts", Some("minerva"), "packages charts"),
            ("/home/u/minerva", Some("minerva"), ""),
            ("/home/minerva/work/minerva/api", Some("minerva"), "api"),
            ("/home/u/fork/api", Some("minerva"), "api"),
            ("/home/u/fork", None, "fork"),
            ("C:\\work\\Minerva\\api", Some("minerva"), "api"),
            ("/", None, ""),
        ] {
            assert_eq!(folders_below(cwd, repo).collect::<Vec<_>>().join(" "), told, "{cwd}");
        }
    }

    #[test]
    fn paths_of_a_text() {
        let named = |text: &str| find_paths(text).flat_map(split_segments).collect::<Vec<_>>().join(" ");
        assert_eq!(named("look at @services/http-proxy/main.go:12, please"), "services  http-proxy  main.go:12 main");
        assert_eq!(named("see https://example.com/x and ./ios/Podfile."), "ios  Podfile ");
        assert_eq!(named("yes and no"), "");
    }
}
