//! Finds the files of a root that count: git does not ignore them, and their folders belong to this repository.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge_code_index::{CodeLanguage, is_manifest};
use nudge_core::walk::{self, WalkEntry, WalkPlan};

use crate::root::ProjectRoot;
use crate::rules::{self, FolderRules};
use crate::stamp::{FileMarks, read_stamp};

/// The most files of a root that are indexed.
pub const MAX_FILES: usize = 20_000;

/// The result of a walk.
#[derive(Debug, Default)]
pub struct WalkResult {
    /// The files of code and the manifests, by path.
    pub files: BTreeMap<Box<str>, FileMarks>,
    /// The folders that the walk entered.
    pub folders: Vec<PathBuf>,
    /// The number of files that the walk left out, for each reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// Is true when the root has more than [`MAX_FILES`] files.
    pub is_truncated: bool,
    /// The time that the walk took.
    pub took: Duration,
}

/// Walks over all files of a root. Stops and returns `None` when `is_over` returns true.
pub fn walk_root(root: &ProjectRoot, is_over: &dyn Fn() -> bool) -> Option<WalkResult> {
    let begun = Instant::now();
    let mut walked = WalkResult::default();
    let counts = |path: &Path, is_folder: bool| {
        rules::is_source(root, path, is_folder) && (is_folder || path.file_name().is_some_and(is_of_use))
    };
    // A submodule, or any other repository inside the root, is a root of its own.
    let plan = WalkPlan { enters_repositories: false, counts: &counts, is_over, ..WalkPlan::default() };
    let mut visit = |found: WalkEntry<'_>| {
        match found {
            WalkEntry::Folder(_) if is_over() => return ControlFlow::Break(()),
            WalkEntry::Folder(folder) => walked.folders.push(folder.to_owned()),
            WalkEntry::File(file) => {
                walked
                    .take_file(root, file.path, file.rules, || FileMarks::from_metadata(&file.entry.metadata().ok()?));
            }
            WalkEntry::PassedOver(..) => walked.count_skip("rules_not_read"),
        }
        ControlFlow::Continue(())
    };
    match rules::with_sources(root, |sources| walk::walk_folder(root.path(), sources, &plan, &mut visit)) {
        walk::WalkEnd::Whole => {}
        walk::WalkEnd::Cut => walked.is_truncated = true,
        walk::WalkEnd::Ended => return None,
    }
    walked.keep_newest();
    walked.took = begun.elapsed();
    Some(walked)
}

/// Says whether a walk would find a file, without a walk. The finder remembers the rules of each folder, so it must not
/// be used for longer than a moment.
pub struct FileFinder<'a> {
    root: &'a ProjectRoot,
    /// The rules of each folder that was looked up; `None` for a folder that a walk would not enter.
    entered: HashMap<PathBuf, Option<FolderRules>>,
}

impl<'a> FileFinder<'a> {
    /// Makes a finder that has read no rules yet.
    pub fn new(root: &'a ProjectRoot) -> Self {
        Self { root, entered: HashMap::new() }
    }

    /// Returns true if a walk would find this file.
    pub fn finds_file(&mut self, path: &str) -> bool {
        let place = self.root.join(path);
        let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else { return false };
        if !is_of_use(name) || !parent.starts_with(self.root.path()) {
            return false;
        }
        let Some(rules) = self.rules_in(parent) else { return false };
        let mut found = WalkResult::default();
        if rules::is_source(self.root, &place, false) && !rules.is_ignored(&place, false) {
            found.take_file(self.root, &place, &rules, || read_stamp(self.root, path));
        }
        !found.files.is_empty()
    }

    fn rules_in(&mut self, folder: &Path) -> Option<FolderRules> {
        let mut on_the_way: Vec<_> = folder.ancestors().take_while(|dir| dir.starts_with(self.root.path())).collect();
        let mut rules = None;
        while let Some(folder) = on_the_way.pop() {
            if let Some(known) = self.entered.get(folder) {
                rules.clone_from(known);
            } else {
                // The walk reports rules that could not be read, so the finder ignores them.
                let top =
                    || rules::with_sources(self.root, |all| FolderRules::new(self.root.path(), all, &mut |_, _| {}));
                rules = if folder == self.root.path() { Some(top()) } else { rules };
                rules = rules
                    .filter(|around| self.is_entered(folder, around))
                    .map(|around| around.enter_folder(folder, [true; 3], &mut |_, _| {}));
                self.entered.insert(folder.to_owned(), rules.clone());
            }
            rules.as_ref()?;
        }
        rules
    }

    fn is_entered(&self, folder: &Path, around: &FolderRules) -> bool {
        let is_real = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let is_repository = || folder.join(".git").symlink_metadata().is_ok();
        let counts = || rules::is_source(self.root, folder, true) && !around.is_ignored(folder, true);
        is_real && (folder == self.root.path() || (!is_repository() && counts()))
    }
}

/// Returns true if the name is that of a code file or a manifest.
pub fn is_of_use(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    CodeLanguage::from_path(&name).is_some() || is_manifest(&name)
}

impl WalkResult {
    fn take_file(
        &mut self,
        root: &ProjectRoot,
        path: &Path,
        rules: &FolderRules,
        stamp: impl FnOnce() -> Option<FileMarks>,
    ) {
        let Some(stamp) = stamp() else { return self.count_skip("not_a_regular_file") };
        let Some(name) = root.name(path) else { return self.count_skip("name_not_text") };
        match rules::skip_reason(rules, path).filter(|_| !is_manifest(&name)) {
            Some(reason) => self.count_skip(reason),
            None => {
                self.files.insert(name.into(), stamp);
            }
        }
    }

    fn count_skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Keeps the [`MAX_FILES`] files that changed last.
    fn keep_newest(&mut self) {
        if self.files.len() <= MAX_FILES {
            return;
        }
        self.is_truncated = true;
        let mut by_age: Vec<_> = self.files.iter().map(|(path, stamp)| (stamp.modified_ns, path.clone())).collect();
        by_age.sort_unstable_by(|file, other| other.cmp(file));
        for (_, path) in by_age.drain(MAX_FILES..) {
            self.files.remove(&path);
            self.count_skip("too_many_files");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nudge_core::context::detect::{GitDetector, GitEnv};

    use super::*;

    fn root(folder: &Path) -> ProjectRoot {
        let mut env = GitEnv::empty();
        env.assume_owned = true;
        ProjectRoot::find_root(folder, &mut GitDetector::with_env(env)).unwrap()
    }

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Lists the paths that a walk finds, and checks that the finder finds them too.
    fn names(root: &ProjectRoot) -> Vec<String> {
        let walked = walk_root(root, &|| false).unwrap();
        let names: Vec<_> = walked.files.keys().map(ToString::to_string).collect();
        assert!(names.iter().all(|name| FileFinder::new(root).finds_file(name)), "{names:?}");
        names
    }

    fn repository(folder: &Path) {
        write(folder, &[(".git/HEAD", "ref: refs/heads/x\n"), (".git/config", ""), (".git/info/exclude", "/mine\n")]);
        fs::create_dir_all(folder.join(".git/objects")).unwrap();
        fs::create_dir_all(folder.join(".git/refs")).unwrap();
    }

    #[test]
    fn what_is_ignored_generated_or_anothers_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let base = &folder.path().canonicalize().unwrap();
        repository(base);
        repository(&base.join("nested"));
        let attributes = "gen/** linguist-generated\ngen/kept.py -linguist-generated\nlib/* linguist-vendored=true\n";
        let left_out =
            ["out/b.py", "x_pb2.py", ".hidden/c.py", "nested/d.py", "gen/e.py", "lib/f.py", "mine/h.py", "notes.txt"];
        let kept = ["Cargo.toml", "a.py", "gen/kept.py", "out2/in_pb2.py", "target/g.py"];
        write(base, &[(".gitignore", "out/\n*_pb2.py\n"), (".gitattributes", attributes)]);
        write(base, &[("out2/.gitignore", "!in_pb2.py\n")]);
        for path in left_out.iter().chain(&kept) {
            write(base, &[(path, "")]);
        }
        let root = root(base);
        assert_eq!(names(&root), kept);
        assert!(!left_out.iter().any(|path| FileFinder::new(&root).finds_file(path)));
        let walked = walk_root(&root, &|| false).unwrap();
        assert_eq!(walked.skipped, BTreeMap::from([("generated", 1), ("vendored", 1)]));
        assert!(walk_root(&root, &|| true).is_none());
    }

    #[test]
    fn the_rules_of_a_folder_are_read_once_for_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let base = &folder.path().canonicalize().unwrap();
        write(base, &[("setup.py", ""), ("a/b.py", ""), ("a/c.py", ""), ("out/d.py", ""), (".gitignore", "out/\n")]);
        let root = root(base);
        let mut finder = FileFinder::new(&root);
        assert!(finder.finds_file("a/b.py") && !finder.finds_file("out/d.py"));
        write(base, &[(".gitignore", "a/\n")]);
        assert!(finder.finds_file("a/c.py") && !finder.finds_file("out/d.py"), "it has read them");
        assert!(!FileFinder::new(&root).finds_file("a/c.py"));
    }

    #[test]
    fn without_git_what_is_usually_built_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let base = &folder.path().canonicalize().unwrap();
        let files = ["package.json", "node_modules/x/i.js", "src/i.js", "a.min.js"];
        for path in files {
            write(base, &[(path, "")]);
        }
        write(base, &[(".gitignore", "*.min.js")]);
        assert_eq!(names(&root(base)), ["package.json", "src/i.js"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_are_not_followed() {
        use std::os::unix::ffi::OsStrExt as _;
        let pipe = |path: &Path| assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        let folder = tempfile::tempdir().unwrap();
        let base = &folder.path().canonicalize().unwrap();
        write(base, &[("setup.py", ""), ("a/b.py", ""), ("two\nlines.py", "")]);
        std::os::unix::fs::symlink("..", base.join("a/loop")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", base.join("out.py")).unwrap();
        pipe(&base.join("pipe.py"));
        // Opening the pipe would block for ever.
        pipe(&base.join(".gitignore"));
        fs::write(base.join(OsStr::from_bytes(b"\xff.py")), "").unwrap();
        assert_eq!(names(&root(base)), ["a/b.py", "setup.py"]);
        let walked = walk_root(&root(base), &|| false).unwrap();
        assert_eq!(
            walked.skipped,
            BTreeMap::from([("name_not_text", 2), ("not_a_regular_file", 2), ("rules_not_read", 1)])
        );
    }
}
