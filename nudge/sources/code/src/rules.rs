//! What a root's files say of what is not its source: `.ignore`, `.gitignore`, git's own lists, `.gitattributes`.
//!
//! The patterns are matched by a library; the files are read here, because anything may stand in their places.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use nudge_core::foreign::{self, Links};

use crate::root::Root;

/// The files with rules, by what they say; when one changes, everything is walked anew.
pub const FILES: [&str; 3] = [".ignore", ".gitignore", ".gitattributes"];
/// What is left out where no git says what is not source.
const NOT_SOURCE: &[&str] = &["node_modules", "target", "dist", "build", ".venv", "venv", "vendor", "__pycache__"];
/// Longest file with rules.
const MAX_BYTES: u64 = 1 << 20;
/// The attributes, and the reasons for leaving a file out.
const ATTRIBUTES: [(&str, &str); 2] = [("linguist-generated", "generated"), ("linguist-vendored", "vendored")];

/// The rules of a folder and of those around it.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Outside git there is a list of what is no source.
    has_git: bool,
    /// Git's own lists, which count last: the repository's, then the user's.
    lists: Arc<[Gitignore]>,
    own: Option<Arc<Level>>,
}

/// The rules that stand in one folder.
#[derive(Debug)]
struct Level {
    around: Option<Arc<Level>>,
    /// Of `.ignore` and of `.gitignore`.
    ignored: [Gitignore; 2],
    attributes: [Gitignore; 2],
}

impl Rules {
    /// Those that count in the root's own folder but for what stands in it.
    pub fn of(root: &Root) -> Self {
        let mut lists = Vec::new();
        let mut own = None;
        if let Some(git_dir) = root.git_dir() {
            let common = crate::root::common_dir(git_dir);
            lists.extend(read(&common.join("info/exclude")).map(|text| patterns(root.path(), &text)));
            lists.push(GitignoreBuilder::new(root.path()).build_global().0);
            let text = read(&common.join("info/attributes")).unwrap_or_default();
            let attributes = ATTRIBUTES.map(|(name, _)| attribute(root.path(), &text, name));
            let ignored = [Gitignore::empty(), Gitignore::empty()];
            own = Some(Arc::new(Level { around: None, ignored, attributes }));
        }
        Self { has_git: root.git_dir().is_some(), lists: lists.into(), own }
    }

    /// Those of a folder within, which has these of the [`FILES`].
    #[must_use]
    pub fn enter(&self, folder: &Path, has: [bool; 3]) -> Self {
        if has == [false; 3] {
            return self.clone();
        }
        let [ignore, gitignore, attributes] = [0, 1, 2].map(|at| {
            let is_there = has.get(at) == Some(&true);
            FILES.get(at).filter(|_| is_there).and_then(|name| read(&folder.join(name))).unwrap_or_default()
        });
        let level = Level {
            around: self.own.clone(),
            ignored: [patterns(folder, &ignore), patterns(folder, &gitignore)],
            attributes: ATTRIBUTES.map(|(name, _)| attribute(folder, &attributes, name)),
        };
        Self { own: Some(Arc::new(level)), ..self.clone() }
    }

    /// Whether a path in this folder is not looked at.
    pub fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || (is_folder && !self.has_git && NOT_SOURCE.contains(&name)) {
            return true;
        }
        let of = |at: usize| self.levels().find_map(|level| said(&level.ignored.get(at)?.matched(path, is_folder)));
        let lists = || self.lists.iter().find_map(|list| said(&list.matched(path, is_folder)));
        of(0).or_else(|| of(1)).or_else(lists).unwrap_or_default()
    }

    /// The reason for leaving out a file that is not ignored, if there is one.
    pub fn attributed(&self, path: &Path) -> Option<&'static str> {
        let is_set = |at: usize| self.levels().find_map(|level| said(&level.attributes.get(at)?.matched(path, false)));
        ATTRIBUTES.iter().enumerate().find(|(at, _)| is_set(*at) == Some(true)).map(|(_, (_, reason))| *reason)
    }

    /// The levels from the inside out: the innermost that says something counts.
    fn levels(&self) -> impl Iterator<Item = &Level> {
        std::iter::successors(self.own.as_deref(), |level| level.around.as_deref())
    }
}

fn said<T>(found: &Match<T>) -> Option<bool> {
    match found {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

fn read(file: &Path) -> Option<String> {
    let bytes = foreign::read(file, Links::Refused, MAX_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn patterns(folder: &Path, text: &str) -> Gitignore {
    built(folder, text.lines().map(str::to_owned))
}

/// The patterns of an attribute. They are those of `.gitignore`, but none can be negated: the value is.
fn attribute(folder: &Path, text: &str, attribute: &str) -> Gitignore {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let pattern = words.next().filter(|pattern| !pattern.starts_with(['#', '!', '"', '[']))?;
        let mut values = words.filter_map(|word| match word.strip_prefix(attribute) {
            Some("" | "=true" | "=1") => Some(true),
            Some("=false" | "=0") => Some(false),
            _ => (word.strip_prefix('-') == Some(attribute)).then_some(false),
        });
        Some(format!("{}{pattern}", if values.next_back()? { "" } else { "!" }))
    };
    built(folder, text.lines().filter_map(line))
}

fn built(folder: &Path, lines: impl Iterator<Item = String>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for line in lines {
        // A pattern that makes no sense matches nothing.
        let _ = builder.add_line(None, &line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
