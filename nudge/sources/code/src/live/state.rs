//! Holds the state of one project's root folder at one moment: the index, and for each file the marks (size, times,
//! inode) that it had when it was read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use nudge_code_index::{
    CodeIndex, CodeLanguage, DocDrift, DriftRule, FileFacts, Hash, NodeLookup, NodeView, Skip, drift_since,
};
use nudge_core::clock::Millis;

use crate::live::watch::WatchMode;
use crate::search::NodeTextIndex;
use crate::stamp::FileMarks;

/// At most this many earlier versions of files are remembered, each with its facts. With these facts, a switch back to
/// a branch needs no parsing.
const MAX_REMEMBERED: usize = 5_000;
/// The limit of the remembered facts in bytes, if the index is smaller than that. Otherwise the limit is the size of
/// the index.
const LEAST_REMEMBERED_BYTES: usize = 1 << 20;
/// The most nodes of an index.
const MAX_NODES: usize = 300_000;
/// The most bytes of an index.
const MAX_BYTES: usize = 400 << 20;

/// The most calls that are checked when a file loses definitions. `MAX_LOST` limits the removed definitions that are
/// remembered for a file.
const MAX_LOST_CALLS: usize = 500;
const MAX_LOST: usize = 50;

/// A definition that was removed.
pub struct LostDefinition {
    /// The qualified name: the name with its owners.
    pub qual: Box<str>,
    /// The bare name.
    pub name: Box<str>,
    /// The code that certainly called the definition: the file, and the node in the file (`None` outside of all nodes).
    pub callers: BTreeSet<(Arc<str>, Option<Box<str>>)>,
}

/// The times when a node appeared and when it last changed, if the server saw that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeHistory {
    /// The time when the node appeared; `None` if it existed before the server started.
    pub first: Option<Millis>,
    /// The time when the node's text last changed.
    pub changed: Option<Millis>,
}

/// The last read of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRead {
    /// The marks of the file when it was read.
    pub stamp: FileMarks,
    /// The time of the read, in nanoseconds since 1970.
    pub read_ns: i64,
    /// The number of this read. The result of a read never replaces the result of a read with a higher number.
    pub order: u64,
    /// Is true when the file was already in the index when the read began.
    pub is_again: bool,
    /// The hash of the file's bytes.
    pub hash: Hash,
    /// The reason why the file has no facts; `None` for a file with facts and for a manifest.
    pub skip: Option<Skip>,
}

impl LastRead {
    /// Returns true if a file with these marks certainly has the bytes that were read.
    pub fn is_current(&self, stamp: &FileMarks) -> bool {
        self.stamp == *stamp && !self.stamp.is_racy(self.read_ns)
    }
}

/// The result of reading a file.
#[derive(Debug)]
pub enum ReadResult {
    /// A code file, with its facts.
    Facts(Arc<FileFacts>),
    /// A manifest, with its bytes.
    Manifest(Vec<u8>),
    /// The bytes are the same as before.
    Same,
    /// The file is left out for this reason.
    Skipped(Skip),
}

/// The whole state of a root. Readers share it. To store a file takes almost no time, so no reader waits long.
#[derive(Default)]
pub struct RootState {
    /// The facts of the files.
    pub index: CodeIndex,
    /// The words of the nodes, for search.
    pub words: NodeTextIndex,
    /// Every file that was read.
    pub files: HashMap<Box<str>, LastRead, FixedState>,
    /// The queue of files that wait to be read.
    pub to_read: ReadQueue,
    /// Is true when a walk has seen all files since the start, and since the last event that may concern every file.
    pub is_walked: bool,
    /// Is true when every file has been read once. A file that is read after that has changed while the server ran.
    pub is_caught_up: bool,
    /// The time when a file was last read.
    pub indexed_at: Option<Millis>,
    /// The commit of HEAD.
    pub head: Option<String>,
    /// The number of files that a walk left out, by reason.
    pub left_out: BTreeMap<&'static str, usize>,
    /// Is true when the project has more files than the index.
    pub is_truncated: bool,
    /// The way in which the server notices changes.
    pub mode: WatchMode,
    /// The time when the last walk started, in nanoseconds since 1970.
    pub looked_ns: i64,
    /// The last error, for people.
    pub last_error: Option<String>,
    /// The facts that changed files had when HEAD moved to its present commit, or when the server started if that was
    /// later.
    pub before: HashMap<Box<str>, Arc<FileFacts>, FixedState>,
    /// The definitions that each file has lost since the moment of `before`, with their callers.
    pub lost: HashMap<Box<str>, Vec<LostDefinition>, FixedState>,
    seen: HashMap<Box<str>, HashMap<Box<str>, NodeHistory, FixedState>, FixedState>,
    remembered: FactsHistory,
    /// The files that are gone, each with the number of the read or walk that noticed it.
    gone: HashMap<Box<str>, u64, FixedState>,
    nodes: usize,
    bytes: usize,
}

impl RootState {
    /// Stores the result of a read. Returns true if the index has changed. Ignores the result if a later read of this
    /// file is stored.
    pub fn put_file(&mut self, path: &str, known: LastRead, read: ReadResult) -> bool {
        let is_late = |order: u64| order > known.order;
        if self.files.get(path).is_some_and(|now| is_late(now.order))
            || self.gone.get(path).is_some_and(|order| is_late(*order))
        {
            return false;
        }
        // The file was removed while it was read again. If the file comes back, it is read as a new file.
        if known.is_again && !self.files.contains_key(path) {
            return false;
        }
        self.gone.remove(path);
        self.to_read.remove(path);
        let changed = match read {
            ReadResult::Same => false,
            ReadResult::Manifest(bytes) => {
                self.index.put_manifest(path, &bytes);
                true
            }
            ReadResult::Skipped(_) => self.replace_facts(path, None),
            ReadResult::Facts(facts) => {
                let size = (facts.len(), facts.memory_bytes());
                if self.nodes + size.0 > MAX_NODES || self.bytes + size.1 > MAX_BYTES {
                    self.is_truncated = true;
                    self.replace_facts(path, None)
                } else {
                    self.replace_facts(path, Some(facts))
                }
            }
        };
        self.files.insert(path.into(), known);
        changed
    }

    /// Removes a file that no longer exists. Returns true if the state had the file.
    pub fn remove_file(&mut self, path: &str, order: u64) -> bool {
        if self.files.get(path).is_some_and(|now| now.order > order) {
            return false;
        }
        self.to_read.remove(path);
        if self.gone.len() >= MAX_REMEMBERED {
            self.gone.clear();
        }
        self.gone.insert(path.into(), order);
        let was_there = self.files.remove(path).is_some();
        self.replace_facts(path, None);
        // `replace_facts` removes only facts, and a manifest has none. So the manifest is removed here.
        self.index.remove_file(path);
        was_there
    }

    fn replace_facts(&mut self, path: &str, new: Option<Arc<FileFacts>>) -> bool {
        let old = self.index.file_facts(path).cloned();
        if old == new {
            return false;
        }
        self.words.replace_file(path, old.as_deref(), new.as_deref());
        for (facts, sign) in [(&old, -1), (&new, 1)] {
            let size = facts.as_ref().map_or((0, 0), |facts| (facts.len(), facts.memory_bytes()));
            self.nodes = self.nodes.saturating_add_signed(sign * size.0.cast_signed());
            self.bytes = self.bytes.saturating_add_signed(sign * size.1.cast_signed());
        }
        if self.is_caught_up {
            self.note_seen(path, old.as_deref(), new.as_deref());
            self.note_before(path, old.as_ref(), new.as_ref());
            self.note_lost(path, new.as_deref());
        }
        match new {
            Some(facts) => self.index.put_file(path, facts),
            None => {
                self.index.remove_file(path);
            }
        }
        if let Some(facts) = old {
            self.remembered.put(path, facts, self.bytes.max(LEAST_REMEMBERED_BYTES));
        }
        true
    }

    /// Remembers the facts that a file had before a change. A new file counts as empty before.
    fn note_before(&mut self, path: &str, old: Option<&Arc<FileFacts>>, new: Option<&Arc<FileFacts>>) {
        if self.before.len() >= MAX_REMEMBERED || self.before.contains_key(path) {
            return;
        }
        let nothing = |new: &Arc<FileFacts>| Arc::new(FileFacts::new(new.language, Hash::default(), false));
        if let Some(facts) = old.cloned().or_else(|| new.map(nothing)) {
            self.before.insert(path.into(), facts);
        }
    }

    /// Remembers the callers of the definitions that a file is about to lose. Afterwards, the index cannot find these
    /// callers any more.
    fn note_lost(&mut self, path: &str, new: Option<&FileFacts>) {
        let Some(old) = self.index.file_facts(path) else { return };
        let asking = self.index.start_queries();
        let stays: HashSet<&str> = new.into_iter().flat_map(FileFacts::nodes).map(|node| node.qual()).collect();
        let mut budget = MAX_LOST_CALLS;
        let mut lost = Vec::new();
        for node in old.nodes().filter(|node| !stays.contains(node.qual())) {
            let NodeLookup::One(id) = self.index.by_name(path, node.qual()) else { continue };
            let called = asking.callers_within(id, usize::MAX, false, &mut budget);
            let callers: BTreeSet<_> = called
                .edges
                .into_iter()
                .map(|edge| {
                    let within =
                        edge.from.and_then(|from| self.index.find_node(from)).map(|from| from.view.qual().into());
                    (edge.path, within)
                })
                .collect();
            if !callers.is_empty() {
                lost.push(LostDefinition { qual: node.qual().into(), name: node.name().into(), callers });
            }
        }
        if self.lost.len() >= MAX_REMEMBERED {
            self.lost.clear();
        }
        let known = if lost.is_empty() { return } else { self.lost.entry(path.into()).or_default() };
        known.retain(|known| !lost.iter().any(|lost| lost.qual == known.qual));
        known.extend(lost);
        known.truncate(MAX_LOST);
    }

    /// Finds the contradictions between a node's documentation and its code: those that the file alone shows, and those
    /// that came with a change of the file, such as a removed parameter that the documentation still names.
    pub fn find_drift(&self, path: &str, node: &NodeView<'_>) -> Vec<DocDrift> {
        let mut drift: Vec<_> = node.list_drift().cloned().collect();
        let is_known = drift.iter().any(|drift| drift.rule == DriftRule::R1);
        let was = self.before.get(path).filter(|_| !is_known);
        let was = was.and_then(|before| before.nodes().find(|old| old.qual() == node.qual()));
        drift.extend(was.and_then(|was| drift_since(&was, node)));
        drift
    }

    /// Returns the times when a node appeared and last changed, if the server saw that.
    pub fn history_of(&self, path: &str, qual: &str) -> NodeHistory {
        self.seen.get(path).and_then(|nodes| nodes.get(qual)).copied().unwrap_or_default()
    }

    /// Records which nodes of a file appear or change with its new facts.
    fn note_seen(&mut self, path: &str, old: Option<&FileFacts>, new: Option<&FileFacts>) {
        if self.seen.len() >= MAX_REMEMBERED {
            self.seen.clear();
        }
        let Some(new) = new else {
            self.seen.remove(path);
            return;
        };
        let before: HashMap<_, _> =
            old.into_iter().flat_map(FileFacts::nodes).map(|node| (node.qual(), node.node().hash)).collect();
        let mut was = self.seen.remove(path);
        let mut now = HashMap::default();
        for node in new.nodes() {
            let mut seen = was.as_mut().and_then(|was| was.remove(node.qual())).unwrap_or_default();
            match before.get(node.qual()) {
                None => seen.first = self.indexed_at,
                Some(hash) if *hash != node.node().hash => seen.changed = self.indexed_at,
                Some(_) => {}
            }
            if seen != NodeHistory::default() {
                now.insert(node.qual().into(), seen);
            }
        }
        if !now.is_empty() {
            self.seen.insert(path.into(), now);
        }
    }

    /// Returns the facts of a file with these bytes; `None` if they are not remembered.
    pub fn find_facts(&self, path: &str, hash: &Hash) -> Option<Arc<FileFacts>> {
        let now = self.index.file_facts(path).filter(|facts| facts.hash == *hash);
        now.or_else(|| self.remembered.get(path, hash)).cloned()
    }

    /// Returns the file whose path ends with `given`; `None` if there is no such file, or more than one.
    pub fn only_file(&self, given: &str) -> Option<&str> {
        CodeLanguage::from_path(given)?;
        let end = format!("/{}", given.trim_start_matches("./"));
        let mut ending = self.index.files().filter(|(path, _)| path.ends_with(&end)).map(|(path, _)| &**path);
        ending.next().filter(|_| ending.next().is_none())
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes
    }
}

/// The queue of files that wait to be read. The files that a caller waits for come first, then the files that changed
/// last.
#[derive(Debug, Default)]
pub struct ReadQueue {
    ranks: HashMap<Box<str>, Rank, FixedState>,
    ordered: std::collections::BTreeSet<(Rank, Box<str>)>,
}

/// The rank of a file in the queue: true if a caller waits for the file, and the time of the file's last change.
type Rank = (bool, i64);

impl ReadQueue {
    /// Adds a file to the queue. If a caller waits for the file already, that stays so.
    pub fn add(&mut self, path: &str, is_asked: bool, modified_ns: i64) {
        let old = self.ranks.get(path).copied();
        let rank = (is_asked || old.is_some_and(|(is_asked, _)| is_asked), modified_ns);
        if old == Some(rank) {
            return;
        }
        self.remove(path);
        self.ranks.insert(path.into(), rank);
        self.ordered.insert((rank, path.into()));
    }

    /// Removes a file from the queue.
    pub fn remove(&mut self, path: &str) {
        if let Some((path, rank)) = self.ranks.remove_entry(path) {
            self.ordered.remove(&(rank, path));
        }
    }

    /// Returns the next file, and true if a caller waits for it. The file stays in the queue until it has been read.
    pub fn next(&self) -> Option<(Box<str>, bool)> {
        self.ordered.last().map(|((is_asked, _), path)| (path.clone(), *is_asked))
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Iterates over the files, in no order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.ranks.keys().map(|path| &**path)
    }

    /// Keeps the files for which `is_there` is true.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        let gone: Vec<_> = self.ranks.keys().filter(|path| !is_there(path)).cloned().collect();
        for path in gone {
            self.remove(&path);
        }
    }
}

/// Remembers the facts of earlier versions of files, up to a limit.
#[derive(Default)]
struct FactsHistory {
    facts: HashMap<(Box<str>, Hash), Arc<FileFacts>, FixedState>,
    oldest_first: VecDeque<(Box<str>, Hash)>,
    bytes: usize,
}

impl FactsHistory {
    fn put(&mut self, path: &str, facts: Arc<FileFacts>, max_bytes: usize) {
        let key = (Box::from(path), facts.hash);
        if self.facts.contains_key(&key) {
            return;
        }
        self.bytes += facts.memory_bytes();
        self.facts.insert(key.clone(), facts);
        self.oldest_first.push_back(key);
        while (self.oldest_first.len() > MAX_REMEMBERED || self.bytes > max_bytes)
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.bytes -= self.facts.remove(&oldest).map_or(0, |facts| facts.memory_bytes());
        }
    }

    fn get(&self, path: &str, hash: &Hash) -> Option<&Arc<FileFacts>> {
        self.facts.get(&(Box::from(path), *hash))
    }
}

/// A set of paths.
pub type Paths = HashSet<Box<str>, FixedState>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::facts_of;

    #[test]
    fn what_is_remembered_of_files_takes_so_much_at_most() {
        let facts = |step: usize| Arc::new(facts_of("a.py", format!("def f{step}():\n    pass\n").as_bytes()).unwrap());
        let each = facts(0).memory_bytes();
        let mut remembered = FactsHistory::default();
        for step in 0..100 {
            remembered.put("a.py", facts(step), each * 10);
            assert!(remembered.bytes <= each * 10, "{} of {each} each", remembered.bytes);
            assert!(remembered.get("a.py", &facts(step).hash).is_some());
        }
        let held: usize = remembered.facts.values().map(|facts| facts.memory_bytes()).sum();
        assert_eq!((remembered.bytes, remembered.oldest_first.len()), (held, remembered.facts.len()));
        assert!(remembered.get("a.py", &facts(0).hash).is_none() && remembered.facts.len() >= 8);
    }
}
