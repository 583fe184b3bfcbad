//! Reads a query: splits it into words, finds the nodes that match each word, and scores a node.

use nudge_code_index::{FileFacts, NodeView};
use nudge_core::words::{TextWord, WordWeight, split_words};

use super::fields::{NodeField, for_each_field};
use super::terms::{TermId, TermTable};
use super::words::{fold_name, for_each_word, split_name};
use super::{HeldTerms, SearchedFile, to_f64};

/// The most words of a query. If there are more, the rarest words that some node has are searched.
const MAX_WORDS: usize = 24;
/// The most bytes of a query that may be one name, written with spaces.
const MAX_NAME_BYTES: usize = 100;
/// The most words of a query that may be beginnings of words, as a person types them.
const MAX_TYPED: usize = 2;
/// A word that so many nodes have stands for no longer word.
const MANY_EXACT: usize = 500;
/// The least number of nodes in the calculation of a word's rarity; if there are fewer nodes, this number is used.
const MIN_NODES: usize = 64;
/// The score of a name that equals the query. `SAME_BUT_FOR_CASE` is the score of a name that differs only in case and
/// separators, and `BY_WORDS` the highest score of any other node.
const SAME: f64 = 1.0;
const SAME_BUT_FOR_CASE: f64 = 0.95;
const BY_WORDS: f64 = 0.9;
/// The factor for a word that begins a word of the node.
const BEGINS: f64 = 0.75;
/// The part of a score that depends on the share of the name that the query covers.
const COVERAGE: f64 = 0.15;
/// The factor for tests, unless the query has the word `test`. `NAMED_TEST` is the factor for a test of the very name.
const TEST: f64 = 0.5;
const NAMED_TEST: f64 = 0.9;

/// A query, split into words.
pub struct ParsedQuery<'a> {
    text: &'a str,
    /// The words, at most 24.
    pub words: Vec<NodeQueryWord>,
    /// The whole query as one word: in lower case, without separators. Empty if the query is too long for a name.
    pub whole: String,
    /// The sum of the words' rarities.
    total: f64,
    asks_for_tests: bool,
}

/// A word of a query.
pub struct NodeQueryWord {
    text: Box<str>,
    /// The terms of the nodes that match the word, each with a factor from 0 to 1. The exact term comes first.
    pub terms: Vec<(TermId, f64)>,
    /// The number of nodes that match the word.
    pub nodes: usize,
    /// The weight of the word. Few nodes have a rare word.
    pub rarity: f64,
}

impl<'a> ParsedQuery<'a> {
    /// Reads a query. `nodes` is the number of nodes in the index.
    pub fn parse_query(text: &'a str, terms: &TermTable, nodes: usize) -> Self {
        let text = text.trim();
        let mut all: Vec<TextWord> = Vec::new();
        for_each_word(text, &mut String::new(), |word| {
            let mut found = split_words(word);
            if found.is_empty() {
                found.push(TextWord { folded: word.into(), stem: word.into() });
            }
            found.retain(|word| all.iter().all(|known| known.stem != word.stem));
            all.append(&mut found);
        });
        let asks_for_tests = all.iter().any(|word| &*word.stem == "test");
        // A single letter, such as `I`, is a name only where nothing else is asked.
        let is_letter = |word: &TextWord| word.folded.chars().nth(1).is_none() && word.folded.is_ascii();
        let says_something = |word: &TextWord| word.weight() != WordWeight::Nothing && !is_letter(word);
        if all.iter().any(says_something) {
            all.retain(says_something);
        }
        let is_typed = all.len() <= MAX_TYPED;
        let mut words: Vec<_> = all.into_iter().map(|word| NodeQueryWord::find(word, is_typed, terms, nodes)).collect();
        if words.len() > MAX_WORDS {
            words.sort_by(|a, b| (a.nodes == 0).cmp(&(b.nodes == 0)).then(b.rarity.total_cmp(&a.rarity)));
            words.truncate(MAX_WORDS);
        }
        let total = words.iter().map(|word| word.rarity).sum();
        let whole = if text.len() <= MAX_NAME_BYTES { fold_name(text) } else { String::new() };
        Self { text, words, whole, total, asks_for_tests }
    }

    /// Returns the last part of a qualified name, folded.
    pub fn last_name(&self) -> String {
        fold_name(self.text.rsplit(['.', ':']).next().unwrap_or(self.text))
    }

    /// Returns the words that have these bits.
    pub fn words_of(&self, bits: u32) -> impl Iterator<Item = &NodeQueryWord> {
        self.words.iter().enumerate().filter(move |(index, _)| bits & 1 << index != 0).map(|(_, word)| word)
    }

    fn is_same(&self, view: &NodeView<'_>) -> bool {
        self.text == view.name() || self.text == view.qual()
    }

    /// Returns true if the query is the name of a node, whatever its case and separators are.
    pub fn is_name_of(&self, view: &NodeView<'_>) -> bool {
        let is_folded =
            || !self.whole.is_empty() && (fold_name(view.name()) == self.whole || fold_name(view.qual()) == self.whole);
        self.is_same(view) || is_folded()
    }

    /// Returns the score of a node, from 0 to 1.
    pub fn score_node(&self, file: &SearchedFile, view: &NodeView<'_>, held: HeldTerms) -> f64 {
        let is_test = (file.is_test || view.is_test()) && !self.asks_for_tests;
        if self.is_name_of(view) {
            let score = if self.is_same(view) { SAME } else { SAME_BUT_FOR_CASE };
            return if is_test { score * NAMED_TEST } else { score };
        }
        let share = (held.weight / self.total.max(f64::MIN_POSITIVE)).min(1.0);
        BY_WORDS * share * self.name_share(view) * if is_test { TEST } else { 1.0 }
    }

    /// Returns the factor for the share of the name's letters that words of the query cover.
    fn name_share(&self, view: &NodeView<'_>) -> f64 {
        let name = split_name(view.name());
        let is_covered = |part: &&String| self.words.iter().any(|word| part.starts_with(&*word.text));
        let covered: usize = name.iter().filter(is_covered).map(String::len).sum();
        let letters: usize = name.iter().map(String::len).sum();
        1.0 - COVERAGE + COVERAGE * to_f64(covered) / to_f64(letters.max(1))
    }

    /// Says where the words of the query are.
    pub fn reason(&self, file: &SearchedFile, facts: &FileFacts, view: &NodeView<'_>, terms: &TermTable) -> String {
        if self.is_same(view) {
            return "the very name".to_owned();
        }
        if self.is_name_of(view) {
            return "the name but for case and separators".to_owned();
        }
        let mut left: Vec<_> = self.words.iter().collect();
        let mut said = Vec::new();
        let mut tell = |label: &str, text: &str| {
            let mut own = Vec::new();
            for_each_word(text, &mut String::new(), |word| own.extend(terms.known(word)));
            let here: Vec<_> =
                left.extract_if(.., |word| word.terms.iter().any(|(term, _)| own.contains(term))).collect();
            if !here.is_empty() {
                said.push(format!("{label} {}", here.iter().map(|word| &*word.text).collect::<Vec<_>>().join(", ")));
            }
        };
        for_each_field(view, |field, text| tell(field.label(), text));
        let called: Vec<_> =
            facts.called_names().filter(|(node, _)| *node == view.number()).map(|(_, name)| name).collect();
        tell(NodeField::Called.label(), &called.join(" "));
        tell("path has", &file.path);
        said.join("; ")
    }
}

impl NodeQueryWord {
    /// Finds the nodes that match a word. If `is_typed` is true, or if no node has the word, the word may be the
    /// beginning of a node's word.
    fn find(word: TextWord, is_typed: bool, terms: &TermTable, all_nodes: usize) -> Self {
        let exact = terms.find(&word.stem);
        let mut found: Vec<_> = exact.map(|term| (term, 1.0)).into_iter().collect();
        let count = |found: &[(TermId, f64)]| found.iter().map(|(term, _)| terms.postings(*term).len()).sum();
        let nodes: usize = count(&found);
        if nodes == 0 || is_typed && nodes < MANY_EXACT {
            let longer = terms.find_beginning(&word.folded).into_iter().filter(|term| Some(*term) != exact);
            found.extend(longer.map(|term| (term, BEGINS)));
        }
        let nodes = count(&found).min(all_nodes);
        // A word that all nodes of a small project have may still matter, so it keeps some weight.
        let others = all_nodes.max(MIN_NODES) - nodes;
        let rarity = (1.0 + (to_f64(others) + 0.5) / (to_f64(nodes) + 0.5)).ln();
        Self { text: word.folded, terms: found, nodes, rarity }
    }
}
