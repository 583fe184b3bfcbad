//! Reads the files with rules: `.ignore`, `.gitignore`, git's own lists of patterns, and `.gitattributes`. Compares
//! paths with their patterns, so that the walk skips the paths that the rules exclude.
//!
//! The library `ignore` compares paths, but [`foreign`] reads the files, because they may be pipes, links or huge.
//! Compiling patterns costs memory and time, so the size of a pattern, of a file and of all files of a walk is limited.
//! A file beyond a limit is skipped, and its patterns match nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use parking_lot::Mutex;

use nudge_os::foreign::{self, LinkPolicy};

/// The names of the files with rules. A change of such a file can affect any path below it, so the whole folder is
/// walked again.
pub const FILES: [&str; 3] = [".ignore", ".gitignore", ".gitattributes"];
/// The most bytes of a file with rules.
pub const MAX_BYTES: u64 = 1 << 20;
/// The most bytes of all files with rules in one walk. They suffice for three thousand packages with 5 KiB each.
const MAX_ALL_BYTES: usize = 16 << 20;
/// The most bytes of a pattern. The longest path on Linux has 4 KiB; a pattern of 900 KiB took 549 MiB to compile.
const MAX_PATTERN_BYTES: usize = 1 << 10;
/// The most patterns in one file.
const MAX_PATTERNS: usize = 20_000;
/// The most patterns in all files of one walk.
const MAX_ALL_PATTERNS: usize = 200_000;
/// The most bytes of patterns in one file that are compiled to regular expressions. The longest known list of patterns
/// (all of GitHub's templates in one) has 30 KiB of them.
const MAX_WILD_BYTES: usize = 64 << 10;
/// The most bytes of patterns that are compiled to regular expressions in a folder together with its parents.
const MAX_WILD_BYTES_AROUND: usize = 128 << 10;
/// The most levels of folders with rules, from a folder up to the top. Each path is compared with each level.
const MAX_LEVELS: usize = 32;
/// The most bytes of a file in which git stores the path of another folder.
const MAX_POINTER_BYTES: u64 = 4 << 10;

/// Sources of rules, in addition to the `.ignore` and `.gitignore` files of the folders.
#[derive(Debug, Clone, Copy, Default)]
pub struct RuleSources<'a> {
    /// The folder that all worktrees of the repository share ([`common_dir`]). The rules include git's own lists there,
    /// and then the user's list. `None` includes neither.
    pub git: Option<&'a Path>,
    /// Patterns that apply before all others. No other pattern can negate them.
    pub first: &'a [String],
    /// The names of the attributes that the rules read from `.gitattributes`.
    pub attributes: &'static [&'static str],
}

/// The rules of a folder and its parents.
#[derive(Debug, Clone)]
pub struct FolderRules {
    attributes: &'static [&'static str],
    /// Patterns that apply first.
    first: Option<Arc<Gitignore>>,
    /// Git's own lists, which apply last: the repository's, then the user's.
    lists: Arc<[Gitignore]>,
    own: Option<Arc<RuleLevel>>,
    spent: Arc<Mutex<RuleCost>>,
}

/// The rules of one folder.
#[derive(Debug)]
struct RuleLevel {
    around: Option<Arc<RuleLevel>>,
    /// The number of levels from this folder up to the top.
    depth: usize,
    /// The bytes of patterns that are compiled to regular expressions, in this level and all levels above.
    wild_bytes: usize,
    /// The rules of `.ignore` and of `.gitignore`.
    ignored: [Gitignore; 2],
    /// The rules for each attribute.
    attributes: Vec<Gitignore>,
}

/// The size of the rules that one walk has read so far.
#[derive(Debug, Default)]
struct RuleCost {
    bytes: usize,
    patterns: usize,
}

/// Receives each file with rules that is skipped, and the reason.
pub type PassOver<'a> = dyn FnMut(&Path, &'static str) + 'a;

impl FolderRules {
    /// Makes the rules for the top folder of a walk, without the rules in the folder's own files.
    #[must_use]
    pub fn new(top: &Path, sources: &RuleSources<'_>, passed_over: &mut PassOver<'_>) -> Self {
        let mut rules = Self {
            attributes: sources.attributes,
            first: None,
            lists: Arc::default(),
            own: None,
            spent: Arc::default(),
        };
        if !sources.first.is_empty() {
            let mut patterns = RulePatterns::new(top);
            sources.first.iter().for_each(|pattern| patterns.add_line(pattern.trim_start_matches('!')));
            rules.first = patterns.compile().ok().map(Arc::new);
        }
        let Some(common) = sources.git else { return rules };
        let exclude = common.join("info/exclude");
        let user = gitconfig_excludes_path();
        let own = [(Some(exclude), LinkPolicy::Refused), (user, LinkPolicy::Followed)].into_iter().filter_map(
            |(file, links)| {
                let file = file?;
                let text = rules.read(&file, links, passed_over)?;
                let mut patterns = RulePatterns::new(top);
                text.lines().for_each(|line| patterns.add_line(line));
                rules.compile_patterns(patterns).map_err(|why| passed_over(&file, why)).ok()
            },
        );
        let lists = own.collect::<Vec<_>>().into();
        rules.lists = lists;
        if !rules.attributes.is_empty() {
            let file = common.join("info/attributes");
            let mut level = rules.new_level();
            if let Some(text) = rules.read(&file, LinkPolicy::Refused, passed_over)
                && let Err(why) = rules.add_attributes(&mut level, top, &text)
            {
                passed_over(&file, why);
            }
            rules.own = Some(Arc::new(level));
        }
        rules
    }

    /// Makes the rules for a folder below this one; `has` says which of the [`FILES`] the folder has.
    #[must_use]
    pub fn enter_folder(&self, folder: &Path, has: [bool; 3], passed_over: &mut PassOver<'_>) -> Self {
        let mut level = self.new_level();
        let mut has_own = false;
        for (index, (name, is_there)) in FILES.iter().zip(has).enumerate() {
            if !is_there || (index == 2 && self.attributes.is_empty()) {
                continue;
            }
            let file = folder.join(name);
            if level.depth > MAX_LEVELS {
                passed_over(&file, "more than 32 folders around it have rules");
                continue;
            }
            let Some(text) = self.read(&file, LinkPolicy::Refused, passed_over) else { continue };
            let taken = match level.ignored.get_mut(index) {
                Some(ignored) => {
                    let mut patterns = RulePatterns::new(folder);
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    text.lines().for_each(|line| patterns.add_line(line));
                    let wild_bytes = level.wild_bytes + patterns.wild_bytes;
                    check_wild(wild_bytes).and_then(|()| self.compile_patterns(patterns)).map(|built| {
                        *ignored = built;
                        level.wild_bytes = wild_bytes;
                    })
                }
                None => self.add_attributes(&mut level, folder, &text),
            };
            match taken {
                Ok(()) => has_own = true,
                Err(why) => passed_over(&file, why),
            }
        }
        let own = if has_own { Some(Arc::new(level)) } else { self.own.clone() };
        Self { own, ..self.clone() }
    }

    /// Returns true if the walk must skip this path in the folder.
    #[must_use]
    pub fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let matches = |list: &Gitignore| to_verdict(&list.matched(path, is_folder));
        let level = |index: usize| self.levels().find_map(|level| matches(level.ignored.get(index)?));
        let first = self.first.as_deref().and_then(matches);
        let lists = || self.lists.iter().find_map(matches);
        first.or_else(|| level(0)).or_else(|| level(1)).or_else(lists) == Some(true)
    }

    /// Returns the index of the first attribute that a file has.
    #[must_use]
    pub fn find_attribute(&self, path: &Path) -> Option<usize> {
        let is_set = |index: usize| {
            self.levels().find_map(|level| to_verdict(&level.attributes.get(index)?.matched(path, false)))
        };
        (0..self.attributes.len()).find(|index| is_set(*index) == Some(true))
    }

    /// Returns the levels from the innermost to the top: the innermost level with a matching rule wins.
    fn levels(&self) -> impl Iterator<Item = &RuleLevel> {
        std::iter::successors(self.own.as_deref(), |level| level.around.as_deref())
    }

    /// Makes an empty level for a folder below this one.
    fn new_level(&self) -> RuleLevel {
        RuleLevel {
            around: self.own.clone(),
            depth: self.own.as_ref().map_or(0, |own| own.depth) + 1,
            wild_bytes: self.own.as_ref().map_or(0, |own| own.wild_bytes),
            ignored: [Gitignore::empty(), Gitignore::empty()],
            attributes: Vec::new(),
        }
    }

    fn read(&self, file: &Path, links: LinkPolicy, passed_over: &mut PassOver<'_>) -> Option<String> {
        let why = match foreign::read(file, links, MAX_BYTES) {
            Ok(bytes) => {
                let mut spent = self.spent.lock();
                spent.bytes += bytes.len();
                if spent.bytes <= MAX_ALL_BYTES {
                    return Some(String::from_utf8_lossy(&bytes).into_owned());
                }
                "all files with rules have more than 16 MiB"
            }
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound => return None,
                std::io::ErrorKind::FileTooLarge => "it has more than 1 MiB",
                std::io::ErrorKind::InvalidInput => "it is not a regular file",
                _ => "it cannot be read",
            },
        };
        passed_over(file, why);
        None
    }

    /// Adds the patterns of a `.gitattributes` text for each attribute.
    fn add_attributes(&self, level: &mut RuleLevel, folder: &Path, text: &str) -> Result<(), &'static str> {
        let mut built = Vec::new();
        let mut wild_bytes = level.wild_bytes;
        for name in self.attributes {
            let mut patterns = RulePatterns::new(folder);
            text.lines().filter_map(|line| parse_attribute(line, name)).for_each(|line| patterns.add_line(&line));
            wild_bytes += patterns.wild_bytes;
            check_wild(wild_bytes)?;
            built.push(self.compile_patterns(patterns)?);
        }
        (level.attributes, level.wild_bytes) = (built, wild_bytes);
        Ok(())
    }

    /// Compiles patterns. Fails if the walk would then have too many patterns.
    fn compile_patterns(&self, patterns: RulePatterns) -> Result<Gitignore, &'static str> {
        let mut spent = self.spent.lock();
        spent.patterns += patterns.count;
        if spent.patterns > MAX_ALL_PATTERNS {
            return Err("all files with rules have more than 200,000 patterns");
        }
        drop(spent);
        patterns.compile()
    }
}

fn check_wild(bytes: usize) -> Result<(), &'static str> {
    let fits = bytes <= MAX_WILD_BYTES_AROUND;
    if fits { Ok(()) } else { Err("its patterns, with those around it, have more than 128 KiB with wildcards") }
}

/// The patterns of one file.
struct RulePatterns {
    builder: GitignoreBuilder,
    count: usize,
    wild_bytes: usize,
}

impl RulePatterns {
    fn new(folder: &Path) -> Self {
        Self { builder: GitignoreBuilder::new(folder), count: 0, wild_bytes: 0 }
    }

    /// Adds a line. A line that is too long or wrong matches nothing. After a line beyond a limit of the file,
    /// [`compile`](Self::compile) fails.
    fn add_line(&mut self, line: &str) {
        let is_pattern = !line.is_empty() && !line.starts_with('#');
        if !is_pattern || line.len() > MAX_PATTERN_BYTES {
            return;
        }
        self.count += 1;
        self.wild_bytes += if is_wild(line) { line.len() } else { 0 };
        if self.count <= MAX_PATTERNS && self.wild_bytes <= MAX_WILD_BYTES {
            let _ = self.builder.add_line(None, line);
        }
    }

    fn compile(self) -> Result<Gitignore, &'static str> {
        if self.count > MAX_PATTERNS {
            return Err("it has more than 20,000 patterns");
        }
        if self.wild_bytes > MAX_WILD_BYTES {
            return Err("its patterns have more than 64 KiB with wildcards");
        }
        self.builder.build().map_err(|_| "its patterns cannot be compiled")
    }
}

/// Returns true if a pattern must be compiled to a regular expression. Names, paths and `*.ext` are compared without
/// one.
fn is_wild(line: &str) -> bool {
    let pattern = line.trim_start_matches('!');
    pattern.strip_prefix("*.").unwrap_or(pattern).contains(['*', '?', '[', '{', '\\'])
}

/// Returns the pattern of a line of `.gitattributes`; `None` when the line does not have the attribute. The pattern is
/// negated when the line unsets the attribute. The patterns have the form of `.gitignore`, but cannot be negated
/// themselves.
fn parse_attribute(line: &str, attribute: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let pattern = words.next().filter(|pattern| !pattern.starts_with(['#', '!', '"', '[']))?;
    let mut values = words.filter_map(|word| match word.strip_prefix(attribute) {
        Some("" | "=true" | "=1") => Some(true),
        Some("=false" | "=0") => Some(false),
        _ => (word.strip_prefix('-') == Some(attribute)).then_some(false),
    });
    Some(format!("{}{pattern}", if values.next_back()? { "" } else { "!" }))
}

fn to_verdict<T>(found: &Match<T>) -> Option<bool> {
    match found {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Returns git's folder for a work tree: the folder `.git`, or the folder that the file `.git` names.
#[must_use]
pub fn git_dir(top: &Path) -> Option<PathBuf> {
    let own = top.join(".git");
    if own.is_dir() {
        return own.canonicalize().ok();
    }
    let named = read_pointer(&own)?;
    top.join(named.strip_prefix("gitdir: ")?).canonicalize().ok()
}

/// Returns the folder that all worktrees of a repository share.
#[must_use]
pub fn common_dir(git_dir: &Path) -> PathBuf {
    let named = read_pointer(&git_dir.join("commondir")).and_then(|named| git_dir.join(named).canonicalize().ok());
    named.unwrap_or_else(|| git_dir.to_owned())
}

/// Reads a file whose only line names another path, as git writes them.
#[must_use]
pub fn read_pointer(path: &Path) -> Option<String> {
    let text = foreign::read_text(path, LinkPolicy::Followed, MAX_POINTER_BYTES).ok()?;
    Some(text.trim_end().to_owned())
}
