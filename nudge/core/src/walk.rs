//! The only code that walks through a folder in which other people or programs write: a checkout, or the folder of the
//! brain.
//!
//! The walk follows no links. Files that contain rules, such as `.gitignore`, become [`FolderRules`];
//! [`foreign`](nudge_os::foreign) reads these files. Their size, the number of entries and the time are limited, so a
//! hostile folder can cost only a bounded amount of work.
//!
//! ```
//! use std::ops::ControlFlow;
//! use nudge_core::walk::{RuleSources, WalkEnd, WalkEntry, WalkPlan, walk_folder};
//!
//! let folder = tempfile::tempdir().unwrap();
//! std::fs::write(folder.path().join(".gitignore"), "b.md\n").unwrap();
//! std::fs::write(folder.path().join("a.md"), "").unwrap();
//! std::fs::write(folder.path().join("b.md"), "").unwrap();
//! let mut names = Vec::new();
//! let walked = walk_folder(folder.path(), &RuleSources::default(), &WalkPlan::default(), &mut |found| {
//!     if let WalkEntry::File(file) = found {
//!         names.push(file.entry.file_name());
//!     }
//!     ControlFlow::Continue(())
//! });
//! assert_eq!((walked, names), (WalkEnd::Whole, vec!["a.md".into()]));
//! ```

mod rules;

use std::fs::{self, DirEntry, FileType};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

pub use rules::{FILES, FolderRules, PassOver, RuleSources, common_dir, git_dir, read_pointer};

/// The most entries of folders that one walk reads.
const MAX_ENTRIES: usize = 2_000_000;
/// The longest time of a walk. A walk of 200,000 files takes a second or two, but hostile patterns could take hours.
const MAX_TIME: Duration = Duration::from_mins(1);
/// The number of entries between two calls of [`WalkPlan::is_over`].
const ASK_EVERY: usize = 256;
/// The number of entries between two checks of the time.
const TIME_EVERY: usize = 16;

/// The options of a walk.
pub struct WalkPlan<'a> {
    /// Is true if the walk enters repositories below the top.
    pub enters_repositories: bool,
    /// Is true if the walk obeys the `.ignore`, `.gitignore` and `.gitattributes` files of the folders.
    pub reads_rules: bool,
    /// Is true if the entries of a folder come in the order of their names.
    pub is_sorted: bool,
    /// The deepest level of entries that the walk reads; the entries of the top have level 1.
    pub max_depth: usize,
    /// Returns true if the walk visits an entry, given its path and whether it is a folder. The walk calls this before
    /// it applies the rules.
    pub counts: &'a dyn Fn(&Path, bool) -> bool,
    /// Returns true if the walk must end. The walk calls this every 256 entries.
    pub is_over: &'a dyn Fn() -> bool,
}

impl Default for WalkPlan<'_> {
    /// Makes a plan for a walk of all entries, also in repositories below the top.
    fn default() -> Self {
        Self {
            enters_repositories: true,
            reads_rules: true,
            is_sorted: false,
            max_depth: usize::MAX,
            counts: &|_, _| true,
            is_over: &|| false,
        }
    }
}

/// A found entry that is not a folder and that no rule ignores.
pub struct FoundFile<'a> {
    /// The entry.
    pub entry: &'a DirEntry,
    /// The kind of the entry itself; a link counts as a link, not as its target.
    pub kind: FileType,
    /// The path of the entry.
    pub path: &'a Path,
    /// The rules for the folder of the entry.
    pub rules: &'a FolderRules,
}

/// An entry that a walk found, or a file with rules that it skips.
pub enum WalkEntry<'a> {
    /// A folder; it comes before its entries.
    Folder(&'a Path),
    /// Any other entry that no rule ignores.
    File(FoundFile<'a>),
    /// A file with rules that the walk does not read, and the reason.
    PassedOver(&'a Path, &'static str),
}

/// The way in which a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    /// The walk has read all entries.
    Whole,
    /// The walk has reached a limit and left entries out.
    Cut,
    /// The caller ended the walk.
    Ended,
}

/// Walks a folder. `visit` receives each entry, and may end the walk.
pub fn walk_folder(
    top: &Path,
    sources: &RuleSources<'_>,
    plan: &WalkPlan<'_>,
    visit: &mut dyn FnMut(WalkEntry<'_>) -> ControlFlow<()>,
) -> WalkEnd {
    let mut walk = FolderWalk { plan, visit, begun: Instant::now(), listed: 0, compared: 0 };
    match walk.walk_top(top, sources) {
        ControlFlow::Continue(()) => WalkEnd::Whole,
        ControlFlow::Break(walked) => walked,
    }
}

struct FolderWalk<'a, 'v> {
    plan: &'a WalkPlan<'a>,
    visit: &'v mut dyn FnMut(WalkEntry<'_>) -> ControlFlow<()>,
    begun: Instant,
    /// The number of entries that the walk has listed so far.
    listed: usize,
    /// The number of entries that the walk has compared with the rules so far.
    compared: usize,
}

/// The content of one folder.
#[derive(Default)]
struct FolderEntries {
    entries: Vec<(DirEntry, FileType)>,
    has_rules: [bool; 3],
    /// Is true when the folder is the top of a repository.
    is_repository: bool,
}

impl FolderWalk<'_, '_> {
    fn walk_top(&mut self, top: &Path, sources: &RuleSources<'_>) -> ControlFlow<WalkEnd> {
        let rules = FolderRules::new(top, sources, &mut |file, why| self.pass_over(file, why));
        let mut ahead = vec![(top.to_owned(), rules, 1)];
        while let Some((folder, rules, depth)) = ahead.pop() {
            let Some(listed) = self.list_folder(&folder)? else { continue };
            if listed.is_repository && depth > 1 && !self.plan.enters_repositories {
                continue;
            }
            self.visit_found(WalkEntry::Folder(&folder))?;
            let rules = rules.enter_folder(&folder, listed.has_rules, &mut |file, why| self.pass_over(file, why));
            let first = ahead.len();
            for (entry, kind) in listed.entries {
                self.check_time()?;
                let path = entry.path();
                if !(self.plan.counts)(&path, kind.is_dir()) || rules.is_ignored(&path, kind.is_dir()) {
                    continue;
                }
                if !kind.is_dir() {
                    self.visit_found(WalkEntry::File(FoundFile { entry: &entry, kind, path: &path, rules: &rules }))?;
                } else if depth < self.plan.max_depth {
                    ahead.push((path, rules.clone(), depth + 1));
                } else {
                    self.visit_found(WalkEntry::Folder(&path))?;
                }
            }
            // Reverses the new folders, because `pop` takes the last one first.
            if let Some(within) = ahead.get_mut(first..) {
                within.reverse();
            }
        }
        ControlFlow::Continue(())
    }

    fn list_folder(&mut self, folder: &Path) -> ControlFlow<WalkEnd, Option<FolderEntries>> {
        let mut listed = FolderEntries::default();
        // A folder that cannot be read is skipped.
        let Ok(entries) = fs::read_dir(folder) else { return ControlFlow::Continue(None) };
        for entry in entries.flatten() {
            self.listed += 1;
            if self.listed > MAX_ENTRIES {
                return ControlFlow::Break(WalkEnd::Cut);
            }
            if self.listed.is_multiple_of(ASK_EVERY) && (self.plan.is_over)() {
                return ControlFlow::Break(WalkEnd::Ended);
            }
            let name = entry.file_name();
            if name == ".git" {
                listed.is_repository = true;
            } else if let Some(index) = FILES.iter().position(|file| name == *file).filter(|_| self.plan.reads_rules) {
                listed.has_rules.get_mut(index).into_iter().for_each(|has| *has = true);
            } else if let Ok(kind) = entry.file_type() {
                listed.entries.push((entry, kind));
            }
        }
        if self.plan.is_sorted {
            listed.entries.sort_by_key(|(entry, _)| entry.file_name());
        }
        ControlFlow::Continue(Some(listed))
    }

    /// Checks the time and the caller's `is_over` before an entry is compared with patterns.
    fn check_time(&mut self) -> ControlFlow<WalkEnd> {
        self.compared += 1;
        let is_late = self.compared.is_multiple_of(TIME_EVERY) && self.begun.elapsed() > MAX_TIME;
        let is_over = self.compared.is_multiple_of(ASK_EVERY) && (self.plan.is_over)();
        match (is_over, is_late) {
            (true, _) => ControlFlow::Break(WalkEnd::Ended),
            (false, true) => ControlFlow::Break(WalkEnd::Cut),
            (false, false) => ControlFlow::Continue(()),
        }
    }

    fn visit_found(&mut self, found: WalkEntry<'_>) -> ControlFlow<WalkEnd> {
        match (self.visit)(found) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(WalkEnd::Ended),
        }
    }

    fn pass_over(&mut self, file: &Path, why: &'static str) {
        let _ = (self.visit)(WalkEntry::PassedOver(file, why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Returns the files that a walk finds, and the files with rules that it skips.
    fn found(top: &Path, sources: &RuleSources<'_>) -> (Vec<String>, Vec<(String, &'static str)>) {
        let name = |path: &Path| path.strip_prefix(top).unwrap().to_str().unwrap().replace('\\', "/");
        let (mut files, mut passed_over) = (Vec::new(), Vec::new());
        let walked = walk_folder(top, sources, &WalkPlan { is_sorted: true, ..WalkPlan::default() }, &mut |found| {
            match found {
                WalkEntry::Folder(_) => {}
                WalkEntry::File(file) => files.push(name(file.path)),
                WalkEntry::PassedOver(file, why) => passed_over.push((name(file), why)),
            }
            ControlFlow::Continue(())
        });
        assert_eq!(walked, WalkEnd::Whole);
        (files, passed_over)
    }

    #[test]
    fn the_innermost_rule_counts_and_the_callers_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(
            root,
            &[(".gitignore", "\u{feff}*.log\nout/\n"), ("in/.gitignore", "!kept.log\n"), (".ignore", "z.md\n")],
        );
        write(
            root,
            &[("a.log", ""), ("in/kept.log", ""), ("in/b.log", ""), ("out/c.md", ""), ("z.md", ""), ("d.md", "")],
        );
        write(root, &[(".git/info/exclude", "e.md\n"), ("e.md", ""), (".hidden/f.md", ""), ("own/g.md", "")]);
        let first = ["own/".to_owned(), "!d.md".to_owned(), "[".to_owned()];
        let common = common_dir(&git_dir(root).unwrap());
        let sources = RuleSources { git: Some(&common), first: &first, ..RuleSources::default() };
        assert_eq!(found(root, &sources), (vec![".hidden/f.md".into(), "in/kept.log".into()], vec![]));
        let (files, _) = found(root, &RuleSources::default());
        assert_eq!(files, ["d.md", "e.md", ".hidden/f.md", "in/kept.log", "own/g.md"]);
    }

    #[test]
    fn files_with_rules_have_limits() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let many = (0..20_001).map(|number| format!("x{number}\n")).collect::<Vec<_>>().concat();
        let wild = (0..9_900).map(|number| format!("x*y{number}\n")).collect::<Vec<_>>().concat();
        let long = "a".repeat(1 << 20);
        write(root, &[("large/.gitignore", &format!("{long}\n")), ("many/.gitignore", &many)]);
        write(root, &[("wild/.gitignore", &wild), ("long/.gitignore", &format!("{}*\nb.md\n", &long[..1 << 10]))]);
        write(root, &[("long/a.md", ""), ("long/b.md", "")]);
        let (files, passed_over) = found(root, &RuleSources::default());
        assert_eq!(files, ["long/a.md"], "a pattern that is too long matches nothing, and the others count");
        let passed_over: Vec<_> = passed_over.iter().map(|(file, why)| (file.as_str(), *why)).collect();
        let expected = [
            ("large/.gitignore", "it has more than 1 MiB"),
            ("many/.gitignore", "it has more than 20,000 patterns"),
            ("wild/.gitignore", "its patterns have more than 64 KiB with wildcards"),
        ];
        assert_eq!(passed_over, expected);
    }

    /// Walks 33 nested folders that have patterns, and 20 folders that have 1 MiB of rules each.
    #[test]
    fn all_files_with_rules_of_a_walk_have_limits() {
        let folder = tempfile::tempdir().unwrap();
        let deep: String = (0..33).map(|_| "d/").collect();
        for (end, _) in deep.match_indices('/') {
            write(folder.path(), &[(&format!("{}/.gitignore", &deep[..end]), "x\n")]);
        }
        let (_, passed_over) = found(folder.path(), &RuleSources::default());
        assert_eq!(passed_over.len(), 1, "{passed_over:?}");
        let folder = tempfile::tempdir().unwrap();
        let comment = format!("#{}", "x".repeat((1 << 20) - 1));
        for number in 0..20 {
            write(folder.path(), &[(&format!("{number}/.gitignore"), &comment)]);
        }
        let (_, passed_over) = found(folder.path(), &RuleSources::default());
        assert_eq!(passed_over.len(), 4, "{passed_over:?}");
        assert!(passed_over.iter().all(|(_, why)| why.contains("more than 16 MiB")));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_with_rules_that_is_no_file_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, &[("link/a.md", ""), ("pipe/a.md", ""), ("folder/.gitignore/x.md", ""), ("folder/a.md", "")]);
        std::os::unix::fs::symlink("/dev/zero", root.join("link/.gitignore")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe/.ignore")).status().unwrap().success());
        std::os::unix::fs::symlink("..", root.join("link/loop")).unwrap();
        let (files, passed_over) = found(root, &RuleSources::default());
        assert_eq!(files, ["folder/a.md", "link/a.md", "link/loop", "pipe/a.md"]);
        assert_eq!(passed_over.len(), 3, "{passed_over:?}");
    }

    #[test]
    fn a_walk_ends_when_it_is_told_to() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("a/b/c.md", ""), ("d.md", "")]);
        let mut folders = 0;
        let plan = WalkPlan { max_depth: 1, ..WalkPlan::default() };
        let mut count = |found: WalkEntry<'_>| {
            folders += usize::from(matches!(found, WalkEntry::Folder(_)));
            ControlFlow::Continue(())
        };
        assert_eq!(walk_folder(folder.path(), &RuleSources::default(), &plan, &mut count), WalkEnd::Whole);
        assert_eq!(folders, 2, "the top, and the one whose entries are too deep");
        let mut end = |_: WalkEntry<'_>| ControlFlow::Break(());
        assert_eq!(walk_folder(folder.path(), &RuleSources::default(), &plan, &mut end), WalkEnd::Ended);
        for number in 0..256 {
            write(folder.path(), &[(&format!("{number}.md"), "")]);
        }
        let plan = WalkPlan { is_over: &|| true, ..WalkPlan::default() };
        let mut go_on = |_: WalkEntry<'_>| ControlFlow::Continue(());
        assert_eq!(walk_folder(folder.path(), &RuleSources::default(), &plan, &mut go_on), WalkEnd::Ended);
    }
}
