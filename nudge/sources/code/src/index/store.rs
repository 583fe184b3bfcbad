//! The tables of an index: files by path, and which files hold a name.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use std::hash::BuildHasher;

use crate::facts::{Expr, FileFacts, Name};
use crate::tests_of::tested;

use super::links::Kept;
use super::manifest::Manifest;
use super::targets::Targets;
use super::{How, NodeId};

/// Files by the hash of a name.
type Postings = HashMap<u64, Slots, FixedState>;
/// Most names stand in a few files.
type Slots = SmallVec<[u32; 4]>;

#[derive(Debug)]
pub(crate) struct File {
    pub path: Arc<str>,
    pub facts: Arc<FileFacts>,
    targets: Targets,
}

impl File {
    fn memory(&self) -> usize {
        self.facts.memory() + self.targets.memory() + 2 * self.path.len() + 112
    }
}

/// The facts of all files. It changes file by file, and holds nothing that follows from more than one file.
#[derive(Debug, Default)]
pub(crate) struct Store {
    files: Vec<Option<File>>,
    free: Vec<u32>,
    pub paths: BTreeMap<Arc<str>, u32>,
    pub manifests: BTreeMap<Arc<str>, Manifest>,
    /// Files with a node of the name.
    defined: Postings,
    /// Files that call the name, or import it under another.
    used: Postings,
    /// Files with methods for a type of the name.
    implemented: Postings,
    /// Files whose path without extension ends in the name.
    stems: Postings,
    /// Test files that are named after the stem, in lower case.
    testing: Postings,
    /// Is true when the target of any call is known.
    has_targets: AtomicBool,
    /// The links of nodes that were asked about.
    pub(super) kept: Kept,
}

#[derive(Clone, Copy)]
enum Table {
    Defined,
    Used,
    Implemented,
    Stems,
    Testing,
}

/// The names by which a file stands in each table, each once.
fn rows(path: &str, facts: &FileFacts) -> [(Table, Vec<u64>); 5] {
    let name = |name: Name| key(facts.text(name));
    // A renamed import is called by its alias.
    let renamed = facts.imports.iter().filter(|i| i.alias != i.name && !i.name.is_none()).map(|i| i.name);
    let implemented = facts.impls.iter().filter_map(|block| last_name(facts, block.of));
    [
        (Table::Defined, once(facts.nodes.iter().map(|node| node.name)).map(name).collect()),
        (Table::Used, once(facts.calls.iter().map(|call| facts.called(call)).chain(renamed)).map(name).collect()),
        (Table::Implemented, once(implemented).map(name).collect()),
        (Table::Stems, vec![key(stem(path))]),
        (Table::Testing, tested(path).iter().map(|stem| key(stem)).collect()),
    ]
}

/// Each name once: a file keeps each text once.
fn once(names: impl Iterator<Item = Name>) -> impl Iterator<Item = Name> {
    let mut names: Vec<Name> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

fn key(text: &str) -> u64 {
    FixedState::with_seed(0).hash_one(text)
}

impl Store {
    pub fn put(&mut self, path: &str, facts: Arc<FileFacts>) {
        self.remove(path);
        self.forget();
        let path: Arc<str> = path.into();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
        });
        for (table, names) in rows(&path, &facts) {
            for name in names {
                self.table(table).entry(name).or_default().push(slot);
            }
        }
        self.paths.insert(path.clone(), slot);
        if let Some(place) = self.files.get_mut(slot as usize) {
            *place = Some(File { path, facts, targets: Targets::default() });
        }
    }

    pub fn put_manifest(&mut self, path: &str, manifest: Manifest) {
        self.forget();
        self.manifests.insert(path.into(), manifest);
    }

    /// Returns the known target of a call by its number, or finds it.
    pub fn target(
        &self,
        file: &File,
        number: usize,
        find: impl FnOnce() -> Option<(NodeId, How)>,
    ) -> Option<(NodeId, How)> {
        if !self.has_targets.load(Ordering::Relaxed) {
            self.has_targets.store(true, Ordering::Relaxed);
        }
        file.targets.of(file.facts.calls.len(), number, find)
    }

    /// Forgets everything that follows from more than one file.
    fn forget(&mut self) {
        self.kept.forget();
        if std::mem::take(self.has_targets.get_mut()) {
            self.files.iter_mut().flatten().for_each(|file| file.targets.forget());
        }
    }

    pub fn remove(&mut self, path: &str) -> bool {
        self.forget();
        let Some(slot) = self.paths.remove(path) else { return self.manifests.remove(path).is_some() };
        let Some(file) = self.files.get_mut(slot as usize).and_then(Option::take) else { return false };
        for (table, names) in rows(&file.path, &file.facts) {
            for name in names {
                let files = self.table(table);
                if let Some(slots) = files.get_mut(&name) {
                    slots.retain(|other| *other != slot);
                    if slots.is_empty() {
                        files.remove(&name);
                    }
                }
            }
        }
        self.free.push(slot);
        true
    }

    fn table(&mut self, table: Table) -> &mut Postings {
        match table {
            Table::Defined => &mut self.defined,
            Table::Used => &mut self.used,
            Table::Implemented => &mut self.implemented,
            Table::Stems => &mut self.stems,
            Table::Testing => &mut self.testing,
        }
    }

    pub fn file(&self, slot: u32) -> Option<&File> {
        self.files.get(slot as usize)?.as_ref()
    }

    pub fn facts(&self, slot: u32) -> Option<&FileFacts> {
        Some(&*self.file(slot)?.facts)
    }

    pub fn slot(&self, path: &str) -> Option<u32> {
        self.paths.get(path).copied()
    }

    /// Returns true if there are files below a folder.
    pub fn has_folder(&self, path: &str) -> bool {
        let under = format!("{path}/");
        let from = (Bound::Included(under.as_str()), Bound::Unbounded);
        !path.is_empty() && self.paths.range::<str, _>(from).next().is_some_and(|(first, _)| first.starts_with(&under))
    }

    /// Files of a table, by path: nothing may depend on when a file was put.
    fn by_path(&self, slots: Option<&Slots>) -> Vec<u32> {
        let mut slots = slots.map(|slots| slots.to_vec()).unwrap_or_default();
        if slots.len() <= 1 {
            return slots;
        }
        let path = |slot: &u32| self.file(*slot).map(|file| &file.path);
        slots.sort_unstable_by(|one, other| path(one).cmp(&path(other)));
        slots
    }

    pub fn defining(&self, name: &str) -> Vec<u32> {
        self.by_path(self.defined.get(&key(name)))
    }

    pub fn using(&self, name: &str) -> Vec<u32> {
        self.by_path(self.used.get(&key(name)))
    }

    pub fn implementing(&self, name: &str) -> Vec<u32> {
        self.by_path(self.implemented.get(&key(name)))
    }

    pub fn with_stem(&self, name: &str) -> Vec<u32> {
        self.by_path(self.stems.get(&key(name)))
    }

    /// Test files that are named after a stem, in lower case.
    pub fn testing(&self, stem: &str) -> Vec<u32> {
        self.by_path(self.testing.get(&key(stem)))
    }

    /// All nodes of a name.
    pub fn nodes_named(&self, name: &str) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        for slot in self.defining(name) {
            let Some(facts) = self.facts(slot) else { continue };
            let Some(name) = facts.names.find(name) else { continue };
            out.extend(facts.nodes_of(name).map(|(number, _)| (slot, number)));
        }
        out
    }

    pub fn memory(&self) -> usize {
        let tables = [&self.defined, &self.used, &self.implemented, &self.stems, &self.testing];
        let postings: usize = tables
            .iter()
            .map(|table| {
                let beyond = table.values().filter(|files| files.spilled()).map(|files| files.capacity() * 4);
                // A key, its files, and a byte of the table's own.
                table.capacity() * (size_of::<(u64, Slots)>() + 1) + beyond.sum::<usize>()
            })
            .sum();
        let files: usize = self.files.iter().flatten().map(File::memory).sum();
        postings + files + self.kept.memory()
    }
}

/// The last name of a type's path.
pub(crate) fn last_name(facts: &FileFacts, ty: crate::facts::ExprId) -> Option<Name> {
    let mut at = ty;
    for _ in 0..16 {
        match facts.exprs.get(at)? {
            Expr::Name(name) | Expr::Member(_, name) | Expr::Static(_, name) => return Some(name),
            Expr::Apply(of, _) | Expr::Of(of) => at = of,
            _ => return None,
        }
    }
    None
}

/// The last part of a path that names a module: `b` of `a/b.py` and of `a/b/__init__.py`.
pub(crate) fn stem(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or(file);
    match stem {
        "__init__" | "index" | "mod" => folder.rsplit('/').next().unwrap_or(folder),
        _ => stem,
    }
}

/// Returns true if a node or binding can be seen from all of its file.
pub(crate) fn of_file(from: u32, to: u32) -> bool {
    from == 0 && to == u32::MAX
}
