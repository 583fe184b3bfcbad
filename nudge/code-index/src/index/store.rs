//! Stores the tables of an index: files by path, and the files in which a name occurs.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use std::hash::BuildHasher;

use crate::facts::{Expr, FileFacts, NameId, to_number};
use crate::tests_of::tested_stem;

use super::links::LinkCache;
use super::manifest::ManifestFile;
use super::targets::CallTargets;
use super::{EdgeCertainty, NodeId};

/// For the hash of each name, the numbers of the files.
type Postings = HashMap<u64, Slots, FixedState>;
/// A list that stores up to four files without an allocation, because most names occur in a few files.
type Slots = SmallVec<[u32; 4]>;

#[derive(Debug)]
pub(crate) struct IndexedFile {
    pub path: Arc<str>,
    pub facts: Arc<FileFacts>,
    targets: CallTargets,
}

impl IndexedFile {
    fn memory_bytes(&self) -> usize {
        self.facts.memory_bytes() + self.targets.memory_bytes() + 2 * self.path.len() + 112
    }
}

/// The facts of all files. Apart from its caches, the store contains nothing that depends on more than one file, so a
/// change of a file affects only the facts of that file.
#[derive(Debug, Default)]
pub(crate) struct FileStore {
    files: Vec<Option<IndexedFile>>,
    free: Vec<u32>,
    pub paths: BTreeMap<Arc<str>, u32>,
    pub manifests: BTreeMap<Arc<str>, ManifestFile>,
    /// The files that define a name.
    defined: Postings,
    /// The files that call a name, or that import it under another name.
    used: Postings,
    /// The files that have methods for a type with a name.
    implemented: Postings,
    /// The files whose path ends with a name and an extension.
    stems: Postings,
    /// The test files that are named after a stem in lower case.
    testing: Postings,
    /// True when the target of at least one call is cached.
    has_targets: AtomicBool,
    /// The cached links of queried nodes.
    pub(super) kept: LinkCache,
}

#[derive(Clone, Copy)]
enum PostingTable {
    Defined,
    Used,
    Implemented,
    Stems,
    Testing,
}

/// Returns for each table the names under which it must list the file, without repetition.
fn list_rows(path: &str, facts: &FileFacts) -> [(PostingTable, Vec<u64>); 5] {
    let name = |name: NameId| hash_name(facts.text_of(name));
    // Code calls a renamed import by its alias, so the original name must be listed too.
    let renamed = facts.imports.iter().filter(|i| i.alias != i.name && !i.name.is_none()).map(|i| i.name);
    let implemented = facts.impls.iter().filter_map(|block| last_name(facts, block.self_type));
    [
        (PostingTable::Defined, sort_dedup(facts.nodes.iter().map(|node| node.name)).map(name).collect()),
        (
            PostingTable::Used,
            sort_dedup(facts.calls.iter().map(|call| facts.called_name(call)).chain(renamed)).map(name).collect(),
        ),
        (PostingTable::Implemented, sort_dedup(implemented).map(name).collect()),
        (PostingTable::Stems, vec![hash_name(module_stem(path))]),
        (PostingTable::Testing, tested_stem(path).iter().map(|stem| hash_name(stem)).collect()),
    ]
}

/// Sorts the names and removes repetitions. A file stores each text once, so equal numbers mean equal names.
fn sort_dedup(names: impl Iterator<Item = NameId>) -> impl Iterator<Item = NameId> {
    let mut names: Vec<NameId> = names.collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

fn hash_name(text: &str) -> u64 {
    FixedState::with_seed(0).hash_one(text)
}

impl FileStore {
    pub fn put_file(&mut self, path: &str, facts: Arc<FileFacts>) {
        self.remove_file(path);
        self.forget_links();
        let path: Arc<str> = path.into();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            to_number(self.files.len() - 1)
        });
        for (table, names) in list_rows(&path, &facts) {
            for name in names {
                self.table_mut(table).entry(name).or_default().push(slot);
            }
        }
        self.paths.insert(path.clone(), slot);
        if let Some(place) = self.files.get_mut(slot as usize) {
            *place = Some(IndexedFile { path, facts, targets: CallTargets::default() });
        }
    }

    pub fn put_manifest(&mut self, path: &str, manifest: ManifestFile) {
        self.forget_links();
        self.manifests.insert(path.into(), manifest);
    }

    /// Returns the cached target of a call. If there is none, finds and caches it.
    pub fn target_or_find(
        &self,
        file: &IndexedFile,
        number: usize,
        find: impl FnOnce() -> Option<(NodeId, EdgeCertainty)>,
    ) -> Option<(NodeId, EdgeCertainty)> {
        if !self.has_targets.load(Ordering::Relaxed) {
            self.has_targets.store(true, Ordering::Relaxed);
        }
        file.targets.target_or_find(file.facts.calls.len(), number, find)
    }

    /// Empties the caches, because their contents depend on more than one file.
    fn forget_links(&mut self) {
        self.kept.clear_links();
        if std::mem::take(self.has_targets.get_mut()) {
            self.files.iter_mut().flatten().for_each(|file| file.targets.clear_targets());
        }
    }

    pub fn remove_file(&mut self, path: &str) -> bool {
        self.forget_links();
        let Some(slot) = self.paths.remove(path) else { return self.manifests.remove(path).is_some() };
        let Some(file) = self.files.get_mut(slot as usize).and_then(Option::take) else { return false };
        for (table, names) in list_rows(&file.path, &file.facts) {
            for name in names {
                let files = self.table_mut(table);
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

    fn table_mut(&mut self, table: PostingTable) -> &mut Postings {
        match table {
            PostingTable::Defined => &mut self.defined,
            PostingTable::Used => &mut self.used,
            PostingTable::Implemented => &mut self.implemented,
            PostingTable::Stems => &mut self.stems,
            PostingTable::Testing => &mut self.testing,
        }
    }

    pub fn file_at(&self, slot: u32) -> Option<&IndexedFile> {
        self.files.get(slot as usize)?.as_ref()
    }

    pub fn facts_at(&self, slot: u32) -> Option<&FileFacts> {
        Some(&*self.file_at(slot)?.facts)
    }

    pub fn slot_of(&self, path: &str) -> Option<u32> {
        self.paths.get(path).copied()
    }

    /// Returns true if the index has files below the folder.
    pub fn has_folder(&self, path: &str) -> bool {
        let under = format!("{path}/");
        let from = (Bound::Included(under.as_str()), Bound::Unbounded);
        !path.is_empty() && self.paths.range::<str, _>(from).next().is_some_and(|(first, _)| first.starts_with(&under))
    }

    /// Returns the files of a table sorted by path, because a result must not depend on the order in which files were
    /// added.
    fn by_path(&self, slots: Option<&Slots>) -> Vec<u32> {
        let Some(slots) = slots else { return Vec::new() };
        let mut slots = slots.to_vec();
        if slots.len() <= 1 {
            return slots;
        }
        let path = |slot: &u32| self.file_at(*slot).map(|file| &file.path);
        slots.sort_unstable_by(|slot, other| path(slot).cmp(&path(other)));
        slots
    }

    pub fn files_defining(&self, name: &str) -> Vec<u32> {
        self.by_path(self.defined.get(&hash_name(name)))
    }

    pub fn files_using(&self, name: &str) -> Vec<u32> {
        self.by_path(self.used.get(&hash_name(name)))
    }

    pub fn implementing(&self, name: &str) -> Vec<u32> {
        self.by_path(self.implemented.get(&hash_name(name)))
    }

    pub fn with_stem(&self, name: &str) -> Vec<u32> {
        self.by_path(self.stems.get(&hash_name(name)))
    }

    /// Returns the test files that are named after the stem, which is in lower case.
    pub fn find_test_files(&self, stem: &str) -> Vec<u32> {
        self.by_path(self.testing.get(&hash_name(stem)))
    }

    /// Returns all nodes with a name, as pairs of file and node number.
    pub fn nodes_named(&self, name: &str) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        for slot in self.files_defining(name) {
            let Some(facts) = self.facts_at(slot) else { continue };
            let Some(name) = facts.names.find(name) else { continue };
            out.extend(facts.nodes_of(name).map(|(number, _)| (slot, number)));
        }
        out
    }

    pub fn memory_bytes(&self) -> usize {
        let tables = [&self.defined, &self.used, &self.implemented, &self.stems, &self.testing];
        let postings: usize = tables
            .iter()
            .map(|table| {
                let beyond = table.values().filter(|files| files.spilled()).map(|files| files.capacity() * 4);
                // Counts for each entry of the table a key, its files, and one byte of control data.
                table.capacity() * (size_of::<(u64, Slots)>() + 1) + beyond.sum::<usize>()
            })
            .sum();
        let files: usize = self.files.iter().flatten().map(IndexedFile::memory_bytes).sum();
        postings + files + self.kept.memory_bytes()
    }
}

/// Returns the last name in the path of a type.
pub(crate) fn last_name(facts: &FileFacts, ty: crate::facts::ExprId) -> Option<NameId> {
    let mut current = ty;
    for _ in 0..16 {
        match facts.exprs.get(current)? {
            Expr::Name(name) | Expr::Member(_, name) | Expr::Static(_, name) => return Some(name),
            Expr::Apply(inner, _) | Expr::Of(inner) => current = inner,
            _ => return None,
        }
    }
    None
}

/// Returns the part of a path that is the name of the module: `b` for `a/b.py` and for `a/b/__init__.py`.
pub(crate) fn module_stem(path: &str) -> &str {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.split('.').next().unwrap_or(file);
    match stem {
        "__init__" | "index" | "mod" => folder.rsplit('/').next().unwrap_or(folder),
        _ => stem,
    }
}

/// Returns true if the range is that of a whole file.
pub(crate) fn of_file(from: u32, to: u32) -> bool {
    from == 0 && to == u32::MAX
}
