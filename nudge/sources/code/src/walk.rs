//! Which files of a root count: what git would not ignore, in folders that are its own.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, DirEntry, FileType};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::index::is_manifest;
use crate::language::Language;
use crate::root::Root;
use crate::rules::{FILES, Rules};
use crate::stamp::{Stamp, look};

/// Most files that are indexed.
pub const MAX_FILES: usize = 20_000;
/// Most entries of folders that are looked at.
const MAX_ENTRIES: usize = 2_000_000;

/// What a walk found.
#[derive(Debug, Default)]
pub struct Walked {
    /// Files of code, and manifests, by their names.
    pub files: BTreeMap<Box<str>, Stamp>,
    /// The folders that may hold more.
    pub folders: Vec<PathBuf>,
    /// How many files were left out, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// There is more than is indexed.
    pub is_truncated: bool,
    /// The time it took.
    pub took: Duration,
}

/// The things that stand in one folder.
#[derive(Default)]
struct Listed {
    entries: Vec<(DirEntry, FileType)>,
    has_rules: [bool; 3],
    /// It is the top of a repository.
    is_repository: bool,
}

/// Walks a root. It ends early, and says nothing, when `is_over`.
pub fn walk(root: &Root, is_over: &dyn Fn() -> bool) -> Option<Walked> {
    let begun = Instant::now();
    let mut walked = Walked::default();
    let mut ahead = vec![(root.path().to_owned(), Rules::of(root))];
    let mut entries = 0;
    while let Some((folder, rules)) = ahead.pop() {
        if is_over() {
            return None;
        }
        let Some(listed) = list(&folder) else { continue };
        // A submodule, or another repository: a root of its own.
        if listed.is_repository && folder != root.path() {
            continue;
        }
        entries += listed.entries.len();
        if entries > MAX_ENTRIES {
            walked.is_truncated = true;
            break;
        }
        let rules = rules.enter(&folder, listed.has_rules);
        for (entry, kind) in listed.entries {
            let path = entry.path();
            if kind.is_dir() {
                if !rules.ignores(&path, true) {
                    ahead.push((path, rules.clone()));
                }
            } else if is_of_use(&entry.file_name()) && !rules.ignores(&path, false) {
                walked.take(root, &path, &rules, || Stamp::of(&entry.metadata().ok()?));
            }
        }
        walked.folders.push(folder);
    }
    walked.limit();
    walked.took = begun.elapsed();
    Some(walked)
}

/// Tells whether a walk would find a file: what is new is not worth a walk of everything. The rules of a folder are
/// read once, so it is good for a moment.
pub struct Finder<'a> {
    root: &'a Root,
    /// Those of the folders that were entered; none for one that a walk would not enter.
    entered: HashMap<PathBuf, Option<Rules>>,
}

impl<'a> Finder<'a> {
    /// One that has read nothing yet.
    pub fn new(root: &'a Root) -> Self {
        Self { root, entered: HashMap::new() }
    }

    /// Whether a walk would find this file.
    pub fn finds(&mut self, path: &str) -> bool {
        let place = self.root.join(path);
        let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else { return false };
        if !is_of_use(name) || !parent.starts_with(self.root.path()) {
            return false;
        }
        let Some(rules) = self.rules_in(parent) else { return false };
        let mut found = Walked::default();
        if !rules.ignores(&place, false) {
            found.take(self.root, &place, &rules, || look(self.root, path));
        }
        !found.files.is_empty()
    }

    fn rules_in(&mut self, folder: &Path) -> Option<Rules> {
        let mut on_the_way: Vec<_> = folder.ancestors().take_while(|dir| dir.starts_with(self.root.path())).collect();
        let mut rules = None;
        while let Some(folder) = on_the_way.pop() {
            if let Some(known) = self.entered.get(folder) {
                rules.clone_from(known);
            } else {
                rules = if folder == self.root.path() { Some(Rules::of(self.root)) } else { rules };
                rules = rules
                    .filter(|around| self.is_entered(folder, around))
                    .map(|around| around.enter(folder, [true; 3]));
                self.entered.insert(folder.to_owned(), rules.clone());
            }
            rules.as_ref()?;
        }
        rules
    }

    fn is_entered(&self, folder: &Path, around: &Rules) -> bool {
        let is_real = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let is_repository = || folder.join(".git").symlink_metadata().is_ok();
        is_real && (folder == self.root.path() || !(is_repository() || around.ignores(folder, true)))
    }
}

/// Whether a file of this name can say anything.
pub fn is_of_use(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    Language::of(&name).is_some() || is_manifest(&name)
}

fn list(folder: &Path) -> Option<Listed> {
    let mut listed = Listed::default();
    // A folder that cannot be read has nothing for us.
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        if name == ".git" {
            listed.is_repository = true;
        } else if let Some(has) =
            FILES.iter().position(|file| name == *file).and_then(|at| listed.has_rules.get_mut(at))
        {
            *has = true;
        } else if !name.as_encoded_bytes().starts_with(b".")
            && let Ok(kind) = entry.file_type()
        {
            listed.entries.push((entry, kind));
        }
    }
    Some(listed)
}

impl Walked {
    fn take(&mut self, root: &Root, path: &Path, rules: &Rules, stamp: impl FnOnce() -> Option<Stamp>) {
        let Some(stamp) = stamp() else { return self.skip("not_a_regular_file") };
        let Some(name) = root.name(path) else { return self.skip("name_not_text") };
        match rules.attributed(path).filter(|_| !is_manifest(&name)) {
            Some(reason) => self.skip(reason),
            None => {
                self.files.insert(name.into(), stamp);
            }
        }
    }

    fn skip(&mut self, reason: &'static str) {
        *self.skipped.entry(reason).or_default() += 1;
    }

    /// Keeps the files that were changed last.
    fn limit(&mut self) {
        if self.files.len() <= MAX_FILES {
            return;
        }
        self.is_truncated = true;
        let mut by_age: Vec<_> = self.files.iter().map(|(path, stamp)| (stamp.modified_ns, path.clone())).collect();
        by_age.sort_unstable_by(|one, other| other.cmp(one));
        for (_, path) in by_age.drain(MAX_FILES..) {
            self.files.remove(&path);
            self.skip("too_many_files");
        }
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::context::detect::{Detector, GitEnv};

    use super::*;

    fn root(at: &Path) -> Root {
        let mut env = GitEnv::empty();
        env.assume_owned = true;
        Root::of(at, &mut Detector::with_env(env)).unwrap()
    }

    fn write(at: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = at.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// The names that a walk finds; asked one by one, it is the same ones.
    fn names(root: &Root) -> Vec<String> {
        let walked = walk(root, &|| false).unwrap();
        let names: Vec<_> = walked.files.keys().map(ToString::to_string).collect();
        assert!(names.iter().all(|name| Finder::new(root).finds(name)), "{names:?}");
        names
    }

    fn repository(at: &Path) {
        write(at, &[(".git/HEAD", "ref: refs/heads/x\n"), (".git/config", ""), (".git/info/exclude", "/mine\n")]);
        fs::create_dir_all(at.join(".git/objects")).unwrap();
        fs::create_dir_all(at.join(".git/refs")).unwrap();
    }

    #[test]
    fn what_is_ignored_generated_or_anothers_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = &folder.path().canonicalize().unwrap();
        repository(at);
        repository(&at.join("nested"));
        let attributes = "gen/** linguist-generated\ngen/kept.py -linguist-generated\nlib/* linguist-vendored=true\n";
        let left_out =
            ["out/b.py", "x_pb2.py", ".hidden/c.py", "nested/d.py", "gen/e.py", "lib/f.py", "mine/h.py", "notes.txt"];
        let kept = ["Cargo.toml", "a.py", "gen/kept.py", "out2/in_pb2.py", "target/g.py"];
        write(at, &[(".gitignore", "out/\n*_pb2.py\n"), (".gitattributes", attributes)]);
        write(at, &[("out2/.gitignore", "!in_pb2.py\n")]);
        for path in left_out.iter().chain(&kept) {
            write(at, &[(path, "")]);
        }
        let root = root(at);
        assert_eq!(names(&root), kept);
        assert!(!left_out.iter().any(|path| Finder::new(&root).finds(path)));
        let walked = walk(&root, &|| false).unwrap();
        assert_eq!(walked.skipped, BTreeMap::from([("generated", 1), ("vendored", 1)]));
        assert!(walk(&root, &|| true).is_none());
    }

    #[test]
    fn the_rules_of_a_folder_are_read_once_for_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let at = &folder.path().canonicalize().unwrap();
        write(at, &[("setup.py", ""), ("a/b.py", ""), ("a/c.py", ""), ("out/d.py", ""), (".gitignore", "out/\n")]);
        let root = root(at);
        let mut finder = Finder::new(&root);
        assert!(finder.finds("a/b.py") && !finder.finds("out/d.py"));
        write(at, &[(".gitignore", "a/\n")]);
        assert!(finder.finds("a/c.py") && !finder.finds("out/d.py"), "it has read them");
        assert!(!Finder::new(&root).finds("a/c.py"));
    }

    #[test]
    fn without_git_what_is_usually_built_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = &folder.path().canonicalize().unwrap();
        let files = ["package.json", "node_modules/x/i.js", "src/i.js", "a.min.js"];
        for path in files {
            write(at, &[(path, "")]);
        }
        write(at, &[(".gitignore", "*.min.js")]);
        assert_eq!(names(&root(at)), ["package.json", "src/i.js"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_pipes_are_not_followed() {
        use std::os::unix::ffi::OsStrExt as _;
        let pipe = |at: &Path| assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
        let folder = tempfile::tempdir().unwrap();
        let at = &folder.path().canonicalize().unwrap();
        write(at, &[("setup.py", ""), ("a/b.py", ""), ("two\nlines.py", "")]);
        std::os::unix::fs::symlink("..", at.join("a/loop")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at.join("out.py")).unwrap();
        pipe(&at.join("pipe.py"));
        // Whoever opened it would wait for ever.
        pipe(&at.join(".gitignore"));
        fs::write(at.join(OsStr::from_bytes(b"\xff.py")), "").unwrap();
        assert_eq!(names(&root(at)), ["a/b.py", "setup.py"]);
        let walked = walk(&root(at), &|| false).unwrap();
        assert_eq!(walked.skipped, BTreeMap::from([("name_not_text", 2), ("not_a_regular_file", 2)]));
    }
}
