//! Stores the words of nodes as terms. A term is the stem of a word, with the nodes that have a form of the word.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use nudge_core::words::{WordWeight, split_words};

/// The number of unused terms from which the table drops them, if they are more than the used ones.
const MANY_UNUSED: usize = 10_000;
/// The largest weight of a term in a node, as a posting stores it.
const MAX_WEIGHT: u32 = 0x7F;
/// The bit of a posting for a term in the node's name.
const IN_NAME: u32 = 0x80;

/// The number of a term. The highest bit marks a function word such as `the`, which only names have as a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u32);

impl TermId {
    const SAYS_NOTHING: u32 = 1 << 31;

    fn new(index: usize, says_nothing: bool) -> Self {
        let index = u32::try_from(index).expect("a project has less than 2^31 words");
        Self(if says_nothing { index | Self::SAYS_NOTHING } else { index })
    }

    /// Returns true for a function word.
    pub fn says_nothing(self) -> bool {
        self.0 & Self::SAYS_NOTHING != 0
    }

    fn index(self) -> usize {
        (self.0 & !Self::SAYS_NOTHING) as usize
    }
}

/// A node that has a term: the file, the number of the node in the file, and the weight of the term in the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermPosting {
    /// The number of the file.
    pub file: u32,
    /// The number of the node in the upper 24 bits (a file has at most 20,000 nodes), then [`IN_NAME`], then the weight
    /// in 7 bits.
    node_and_weight: u32,
}

impl TermPosting {
    /// Makes a posting. `weight` is from 0 to 1.
    pub fn new(file: u32, node: u32, weight: f64, is_in_name: bool) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a weight from 0 to 1")]
        let weight = (weight.clamp(0.0, 1.0) * f64::from(MAX_WEIGHT)).round() as u32;
        Self { file, node_and_weight: node << 8 | if is_in_name { IN_NAME } else { 0 } | weight }
    }

    /// Returns the number of the node in its file.
    pub fn node(self) -> u32 {
        self.node_and_weight >> 8
    }

    /// Returns the weight of the term in the node, from 0 to 1.
    pub fn weight(self) -> f64 {
        f64::from(self.node_and_weight & MAX_WEIGHT) / f64::from(MAX_WEIGHT)
    }

    /// Returns true if the name of the node has the term.
    pub fn is_in_name(self) -> bool {
        self.node_and_weight & IN_NAME != 0
    }
}

/// The terms of all nodes. The table finds the terms of a word by its spelling, so each spelling is stemmed once.
#[derive(Debug, Default)]
pub struct TermTable {
    by_spelling: HashMap<Box<str>, Box<[TermId]>, FixedState>,
    by_stem: HashMap<Box<str>, TermId, FixedState>,
    /// The nodes that have each term.
    postings: Vec<Vec<TermPosting>>,
    free: Vec<usize>,
    /// The terms of paths, which stay even if no node has them.
    in_paths: HashSet<TermId, FixedState>,
    unused: usize,
}

impl TermTable {
    /// Returns the terms of a word in lower case, and adds those that are new. A word of a script without spaces
    /// between words has several terms.
    pub fn intern(&mut self, word: &str) -> &[TermId] {
        if !self.by_spelling.contains_key(word) {
            let mut terms: Vec<_> = split_words(word)
                .into_iter()
                .map(|found| self.intern_stem(&found.stem, found.weight() == WordWeight::Nothing))
                .collect();
            // A single letter is no word of a sentence, but may be a name.
            if terms.is_empty() {
                terms.push(self.intern_stem(word, true));
            }
            self.by_spelling.insert(word.into(), terms.into());
        }
        &self.by_spelling[word]
    }

    /// Returns the terms of a word of a path.
    pub fn intern_in_path(&mut self, word: &str) -> Vec<TermId> {
        let terms = self.intern(word).to_vec();
        self.in_paths.extend(&terms);
        terms
    }

    fn intern_stem(&mut self, stem: &str, says_nothing: bool) -> TermId {
        if let Some(&term) = self.by_stem.get(stem) {
            return term;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.postings.push(Vec::new());
            self.postings.len() - 1
        });
        let term = TermId::new(index, says_nothing);
        self.unused += 1;
        self.by_stem.insert(stem.into(), term);
        term
    }

    /// Returns the term of a stem. It may be the term of a path alone, which no node has.
    pub fn find(&self, stem: &str) -> Option<TermId> {
        self.by_stem.get(stem).copied()
    }

    /// Returns the terms of a word that was added before.
    pub fn known(&self, word: &str) -> &[TermId] {
        self.by_spelling.get(word).map_or(&[], |terms| terms)
    }

    /// Returns the terms of the words that begin with `start`.
    pub fn find_beginning(&self, start: &str) -> Vec<TermId> {
        let begins = self.by_spelling.iter().filter(|(spelling, _)| spelling.starts_with(start));
        let mut terms: Vec<_> = begins.flat_map(|(_, terms)| terms.iter().copied()).collect();
        terms.sort_unstable();
        terms.dedup();
        terms.retain(|term| !self.postings(*term).is_empty());
        terms
    }

    /// Returns the nodes that have a term.
    pub fn postings(&self, term: TermId) -> &[TermPosting] {
        self.postings.get(term.index()).map_or(&[], |postings| postings)
    }

    /// Returns the number of bytes that the terms take in memory.
    pub fn memory_bytes(&self) -> usize {
        let lists =
            self.postings.iter().map(|list| size_of::<Vec<TermPosting>>() + list.capacity() * size_of::<TermPosting>());
        let spellings = self
            .by_spelling
            .iter()
            .map(|(word, terms)| size_of::<(Box<str>, Box<[TermId]>)>() + word.len() + size_of_val::<[TermId]>(terms));
        let stems = self.by_stem.keys().map(|stem| size_of::<(Box<str>, TermId)>() + stem.len());
        lists.chain(spellings).chain(stems).sum()
    }

    /// Adds a node to a term.
    pub fn add(&mut self, term: TermId, posting: TermPosting) {
        if let Some(postings) = self.postings.get_mut(term.index()) {
            self.unused -= usize::from(postings.is_empty());
            postings.push(posting);
        }
    }

    /// Removes the nodes of a file from a term.
    pub fn remove_file(&mut self, term: TermId, file: u32) {
        let Some(postings) = self.postings.get_mut(term.index()).filter(|postings| !postings.is_empty()) else {
            return;
        };
        postings.retain(|posting| posting.file != file);
        if postings.is_empty() {
            *postings = Vec::new();
            self.unused += 1;
        }
    }

    /// Returns the memory that the lists of nodes do not need now.
    pub fn shrink_to_fit(&mut self) {
        self.postings.iter_mut().for_each(Vec::shrink_to_fit);
    }

    /// Drops the terms that no node has any more, once they are many.
    pub fn drop_unused(&mut self) {
        if self.unused < MANY_UNUSED || self.unused * 2 < self.by_stem.len() {
            return;
        }
        let postings = &self.postings;
        let in_paths = &self.in_paths;
        let is_used = |term: TermId| {
            in_paths.contains(&term) || postings.get(term.index()).is_some_and(|postings| !postings.is_empty())
        };
        self.by_spelling.retain(|_, terms| terms.iter().all(|term| is_used(*term)));
        let free = &mut self.free;
        self.by_stem.retain(|_, term| {
            if !is_used(*term) {
                free.push(term.index());
            }
            is_used(*term)
        });
        self.unused = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one_term() {
        let mut table = TermTable::default();
        let term = table.intern("migrations")[0];
        table.add(term, TermPosting::new(3, 7, 0.5, true));
        assert_eq!(table.find("migrat"), Some(term));
        for word in ["migrate", "migrations", "migrating"] {
            assert_eq!(table.intern(word), [term], "{word}");
        }
        assert_eq!(table.find_beginning("migr"), [term]);
        let posting = table.postings(term)[0];
        assert_eq!((posting.file, posting.node(), posting.is_in_name()), (3, 7, true));
        assert!((posting.weight() - 0.5).abs() < 0.01);
        table.remove_file(term, 3);
        assert!(table.postings(term).is_empty() && table.find_beginning("migr").is_empty());
    }

    #[test]
    fn a_word_has_a_term_for_each_part() {
        let mut table = TermTable::default();
        for (word, count, says_nothing) in [("数据库", 2, false), ("x", 1, true), ("the", 1, true), ("cart", 1, false)]
        {
            let terms = table.intern(word);
            assert_eq!((terms.len(), terms[0].says_nothing()), (count, says_nothing), "{word}");
        }
    }

    #[test]
    fn unused_terms_are_dropped() {
        let mut table = TermTable::default();
        let kept = table.intern("kept")[0];
        table.add(kept, TermPosting::new(0, 0, 1.0, true));
        for number in 0..MANY_UNUSED {
            let term = table.intern(&format!("word{number}"))[0];
            table.add(term, TermPosting::new(1, 0, 1.0, true));
            table.remove_file(term, 1);
        }
        table.drop_unused();
        assert_eq!((table.by_spelling.len(), table.by_stem.len(), table.find("kept")), (1, 1, Some(kept)));
        assert_eq!(table.find("word7"), None);
        let path = table.intern_in_path("src");
        table.unused = MANY_UNUSED;
        table.drop_unused();
        assert_eq!(table.find("src"), Some(path[0]), "a path has it");
        let before = table.postings.len();
        table.intern("again");
        assert_eq!(table.postings.len(), before, "the number of a dropped term is given again");
    }
}
