//! Finds nodes by words: by the words of their names, their owners, their signatures, their documentation and their
//! paths.

mod fields;
mod query;
mod terms;
mod words;

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::FixedState;
use globset::GlobMatcher;
use nudge_code_index::{CodeIndex, FileFacts, NodeKind, NodeView, is_test_path};
use nudge_core::words::TextWord;

use fields::{NodeField, for_each_field};
use query::{NodeQueryWord, ParsedQuery};
use terms::{TermId, TermPosting, TermTable};
pub use words::split_name;
use words::{fold_name, for_each_word};

/// The search ranks this many times the limit, plus `LOOKED_AT_LEAST`, of the best nodes exactly.
const LOOKED_AT: usize = 4;
const LOOKED_AT_LEAST: usize = 64;
/// A word that more nodes have only adds to nodes that another word of the query has found.
const MANY_NODES: usize = 20_000;
/// The weight of a word that only the path has, as a share of a word's full weight.
const IN_PATH: f64 = 0.6;
/// The saturation and the length normalisation of BM25, and the usual weight of a node's words. The usual weight is a
/// constant, so that a change of one file leaves the weights of all others.
const SATURATION: f64 = 1.2;
const NORMALISATION: f64 = 0.4;
const USUAL_LENGTH: f64 = 30.0;
/// Indexes the words of all nodes. A change of a file updates only the words of this file.
///
/// At first the index holds only names, which prompts need at once. The first search adds all other texts
/// ([`NodeTextIndex::with_texts`]), so that a session without a search needs neither their memory nor their time.
#[derive(Debug, Default)]
pub struct NodeTextIndex {
    /// Is true if the index holds more than names.
    has_texts: bool,
    files: Vec<Option<SearchedFile>>,
    free: Vec<u32>,
    numbers: HashMap<Arc<str>, u32, FixedState>,
    terms: TermTable,
    /// The folded name of each node, as a hash. A search compares all of them, which takes 20 µs for 40,000 nodes.
    names: Vec<NameHash>,
}

/// The hash of a node's folded name. A query that may be the name in another spelling, such as `roundUp` for
/// `round_up`, has the same hash.
#[derive(Debug, Clone, Copy)]
struct NameHash {
    hash: u32,
    file: u32,
    node: u32,
}

/// A file of the index.
#[derive(Debug)]
struct SearchedFile {
    path: Arc<str>,
    path_terms: Box<[TermId]>,
    is_test: bool,
}

/// A query for nodes.
pub struct NodeQuery<'a> {
    /// A question, words, parts of names, or whole names.
    pub text: &'a str,
    /// Only nodes of this kind.
    pub kind: Option<NodeKind>,
    /// Only nodes in files whose path matches.
    pub path: Option<&'a GlobMatcher>,
    /// The most results.
    pub limit: usize,
}

impl NodeQuery<'_> {
    fn accepts_node(&self, path: &str, view: &NodeView<'_>) -> bool {
        self.kind.is_none_or(|kind| kind == view.kind()) && self.path.is_none_or(|glob| glob.is_match(path))
    }
}

/// A node that the search found.
#[derive(Debug, Clone)]
pub struct NodeHit<'a> {
    /// The path of the file.
    pub path: &'a str,
    /// The node.
    pub view: NodeView<'a>,
    /// The score, from 0 to 1.
    pub score: f64,
    /// The reason for the score, in words.
    pub reason: String,
}

/// A node as the index stores it: the number of the file, and the number of the node in the file.
type NodeKey = (u32, u32);

/// The words of a query that a node has.
#[derive(Debug, Clone, Copy, Default)]
struct HeldTerms {
    /// The sum of the words' weights.
    weight: f64,
    /// The words, one bit each.
    words: u32,
}

impl NodeTextIndex {
    /// Makes an index of the names and all other texts of the nodes.
    pub fn with_texts(index: &CodeIndex) -> Self {
        let mut all = Self { has_texts: true, ..Self::default() };
        index.files().for_each(|(path, facts)| all.replace_file(path, None, Some(facts)));
        all.terms.shrink_to_fit();
        all
    }

    /// Returns true if the index holds more than names.
    pub fn has_texts(&self) -> bool {
        self.has_texts
    }

    /// Returns the number of bytes that the words take in memory.
    pub fn memory_bytes(&self) -> usize {
        self.terms.memory_bytes() + self.names.capacity() * size_of::<NameHash>()
    }

    /// Replaces the words of a file by the words of its new facts.
    pub fn replace_file(&mut self, path: &str, old: Option<&FileFacts>, new: Option<&FileFacts>) {
        if let (Some(old), Some(&number)) = (old, self.numbers.get(path)) {
            let mut gone = Vec::new();
            self.for_each_term(old, |_, term, _, _| gone.push(term));
            gone.sort_unstable();
            gone.dedup();
            for term in gone {
                self.terms.remove_file(term, number);
            }
            self.terms.drop_unused();
            self.names.retain(|name| name.file != number);
        }
        let Some(new) = new else {
            if let Some(number) = self.numbers.remove(path) {
                self.free.push(number);
                if let Some(file) = self.files.get_mut(number as usize) {
                    *file = None;
                }
            }
            return;
        };
        let number = self.file_number(path);
        let mut postings = Vec::new();
        self.for_each_term(new, |node, term, weight, is_in_name| {
            postings.push((term, TermPosting::new(number, node, weight, is_in_name)));
        });
        for (term, posting) in postings {
            self.terms.add(term, posting);
        }
        self.names.extend(new.nodes().map(|view| NameHash {
            hash: hash_name(&fold_name(view.name())),
            file: number,
            node: view.number(),
        }));
    }

    fn file_number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let mut path_terms = Vec::new();
        for_each_word(path, &mut String::new(), |word| path_terms.extend(self.terms.intern_in_path(word)));
        let path: Arc<str> = path.into();
        let file =
            SearchedFile { path: Arc::clone(&path), path_terms: path_terms.into(), is_test: is_test_path(&path) };
        let number = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            u32::try_from(self.files.len() - 1).expect("a project has less than 2^32 files")
        });
        if let Some(free) = self.files.get_mut(number as usize) {
            *free = Some(file);
        }
        self.numbers.insert(path, number);
        number
    }

    /// Calls `take` with each term of each node: the number of the node, the term, its weight from 0 to 1, and whether
    /// the name has it.
    fn for_each_term(&mut self, facts: &FileFacts, mut take: impl FnMut(u32, TermId, f64, bool)) {
        let (mut word, mut own) = (String::new(), Vec::new());
        let has_texts = self.has_texts;
        let mut called: Vec<_> = facts.called_names().filter(|_| has_texts).collect();
        called.sort_unstable();
        called.dedup();
        let mut called = called.into_iter().peekable();
        let terms = &mut self.terms;
        for view in facts.nodes() {
            let mut add = |field: NodeField, text: &str| {
                for_each_word(text, &mut word, |word| {
                    let terms = terms.intern(word).iter();
                    // A function word such as `get` says something only in a name.
                    let terms = terms.filter(|term| field == NodeField::Name || !term.says_nothing());
                    own.extend(terms.map(|term| (*term, field)));
                });
            };
            if has_texts {
                for_each_field(&view, &mut add);
            } else {
                add(NodeField::Name, view.name());
            }
            while let Some((_, name)) = called.next_if(|(node, _)| *node <= view.number()) {
                add(NodeField::Called, name);
            }
            let length: f64 = own.iter().map(|(_, field)| field.weight()).sum();
            let slowed = SATURATION * (1.0 - NORMALISATION + NORMALISATION * length / USUAL_LENGTH);
            own.sort_unstable_by_key(|(term, _)| *term);
            for same in own.chunk_by(|(term, _), (other, _)| term == other) {
                let sum: f64 = same.iter().map(|(_, field)| field.weight()).sum();
                let is_in_name = same.iter().any(|(_, field)| *field == NodeField::Name);
                take(view.number(), same[0].0, sum / (sum + slowed), is_in_name);
            }
            own.clear();
        }
    }

    /// Returns the best nodes, the best first, and the number of further hits.
    pub fn find<'a>(&'a self, index: &'a CodeIndex, query: &NodeQuery<'_>) -> (Vec<NodeHit<'a>>, usize) {
        let asked = ParsedQuery::parse_query(query.text, &self.terms, self.names.len());
        let mut likely = self.rank_by_words(&asked);
        let view = |(file, node): NodeKey| {
            let file = self.files.get(file as usize)?.as_ref()?;
            let facts = index.file_facts(&file.path)?;
            Some((file, facts, facts.node_by_number(node)?))
        };
        for (file, node) in self.nodes_named(&asked) {
            // A node of this name is ranked exactly, whatever its words weigh.
            if view((file, node)).is_some_and(|(_, _, view)| asked.is_name_of(&view)) {
                likely.entry((file, node)).or_default().weight = f64::INFINITY;
            }
        }
        let mut likely: Vec<_> = likely.into_iter().collect();
        if query.kind.is_some() || query.path.is_some() {
            likely.retain(|(key, _)| view(*key).is_some_and(|(file, _, view)| query.accepts_node(&file.path, &view)));
        }
        let looked_at = query.limit * LOOKED_AT + LOOKED_AT_LEAST;
        let unseen = likely.len().saturating_sub(looked_at);
        if unseen > 0 {
            likely.select_nth_unstable_by(looked_at, |(key, held), (other_key, other)| {
                other.weight.total_cmp(&held.weight).then_with(|| key.cmp(other_key))
            });
            likely.truncate(looked_at);
        }
        let mut hits: Vec<_> = likely
            .into_iter()
            .filter_map(|(key, held)| {
                let (file, facts, view) = view(key)?;
                Some((asked.score_node(file, &view, held), file, facts, view))
            })
            .collect();
        // The order is total: by score, then by the shorter name, then by the earlier position.
        hits.sort_by(|(score, file, _, view), (other, other_file, _, other_view)| {
            other.total_cmp(score).then_with(|| {
                let (length, other_length) = (view.qual().len(), other_view.qual().len());
                (length, &*file.path, view.number()).cmp(&(other_length, &*other_file.path, other_view.number()))
            })
        });
        let omitted = hits.len().saturating_sub(query.limit) + unseen;
        hits.truncate(query.limit);
        let hits = hits.into_iter().map(|(score, file, facts, view)| {
            let reason = asked.reason(file, facts, &view, &self.terms);
            NodeHit { path: &file.path, view, score, reason }
        });
        (hits.collect(), omitted)
    }

    /// Returns the nodes whose name may be the query, or its last part.
    fn nodes_named(&self, asked: &ParsedQuery<'_>) -> impl Iterator<Item = NodeKey> {
        let hashes = [hash_name(&asked.whole), hash_name(&asked.last_name())];
        let same = self.names.iter().filter(move |name| hashes.contains(&name.hash));
        same.map(|name| (name.file, name.node))
    }

    /// Finds the nodes that have words of a query, with the weights of these words.
    fn rank_by_words(&self, asked: &ParsedQuery<'_>) -> HashMap<NodeKey, HeldTerms, FixedState> {
        let mut found: HashMap<NodeKey, HeldTerms, FixedState> = HashMap::default();
        let mut rarest_first: Vec<_> = (0..asked.words.len()).collect();
        rarest_first.sort_by(|a, b| asked.words[*b].rarity.total_cmp(&asked.words[*a].rarity));
        for index in rarest_first {
            let word = &asked.words[index];
            let only_adds = word.nodes > MANY_NODES && !found.is_empty();
            // The exact term comes first, and a node has at most one term of a word.
            for (term, factor) in &word.terms {
                for posting in self.terms.postings(*term) {
                    let key = (posting.file, posting.node());
                    let held = match found.get_mut(&key) {
                        Some(held) => held,
                        None if only_adds => continue,
                        None => found.entry(key).or_default(),
                    };
                    if held.words & 1 << index == 0 {
                        held.weight += word.rarity * factor * posting.weight();
                        held.words |= 1 << index;
                    }
                }
            }
        }
        let mut in_path: HashMap<u32, u32, FixedState> = HashMap::default();
        for ((file, _), held) in &mut found {
            let words = *in_path.entry(*file).or_insert_with(|| self.words_in_path(*file, asked));
            let added = words & !held.words;
            held.weight += IN_PATH * asked.words_of(added).map(|word| word.rarity).sum::<f64>();
        }
        found
    }

    /// Returns the words of a query that the path of a file has, one bit each.
    fn words_in_path(&self, file: u32, asked: &ParsedQuery<'_>) -> u32 {
        let Some(Some(file)) = self.files.get(file as usize) else { return 0 };
        let has = |word: &NodeQueryWord| word.terms.iter().any(|(term, _)| file.path_terms.contains(term));
        asked.words.iter().enumerate().filter(|(_, word)| has(word)).fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Returns the nodes that have this word in their names: the path of the file, and the number of the node in the
    /// file.
    pub fn nodes_with<'a>(&'a self, word: &TextWord) -> impl Iterator<Item = (&'a str, u32)> {
        let postings = self.terms.find(&word.stem).map_or(&[][..], |term| self.terms.postings(term));
        postings
            .iter()
            .filter(|posting| posting.is_in_name())
            .filter_map(|posting| Some((&*self.files.get(posting.file as usize)?.as_ref()?.path, posting.node())))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of nodes and letters")]
fn to_f64(count: usize) -> f64 {
    count as f64
}

/// Returns a hash of a folded name.
fn hash_name(folded: &str) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
    let hash = FixedState::default().hash_one(folded) as u32;
    hash
}
