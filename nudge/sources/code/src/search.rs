//! Finds nodes by the words of their names.

mod words;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use foldhash::fast::FixedState;
use globset::GlobMatcher;
use nudge_code_index::{CodeIndex, FileFacts, NodeKind, NodeView};

pub use words::split_name;
use words::{NameWords, fold_name};

/// The most words of a query.
const MAX_WORDS: usize = 8;
/// The search ranks this many times the limit, plus `LOOKED_AT_LEAST`, of the best names exactly.
const LOOKED_AT: usize = 4;
const LOOKED_AT_LEAST: usize = 64;
/// The most entries that are counted for one word of a query.
const MAX_ENTRIES: usize = 20_000;
/// The score of a name that equals the query. `SAME_BUT_FOR_CASE` is the score of a name that differs only in case and
/// separators.
const SAME: f64 = 1.0;
const SAME_BUT_FOR_CASE: f64 = 0.95;
/// The score of a query word that is a whole word of the name (`IN_NAME`), begins a word of the name (`BEGINS`), is a
/// word of the owners' names (`AROUND`), or is a word of the path (`IN_PATH`).
const IN_NAME: f64 = 0.9;
const BEGINS: f64 = 0.7;
const AROUND: f64 = 0.5;
const IN_PATH: f64 = 0.3;
/// The part of a score that depends on the share of the name that the query covers.
const COVERAGE: f64 = 0.25;
/// The factor that lowers the scores of tests, because a query for a test contains the word `test`.
const TEST: f64 = 0.9;

/// An entry of a word's posting list: the file, the number of the node in the file, and the length of the node's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NodePosting {
    file: u32,
    /// The number of the node in the upper 24 bits, and the length of its name in the lower 8 bits. A file has at most
    /// 20,000 nodes.
    node_and_length: u32,
}

impl NodePosting {
    fn new(file: u32, view: &NodeView<'_>) -> Self {
        let length = view.name().len().clamp(1, 255);
        let length = u32::try_from(length).expect("at most 255");
        Self { file, node_and_length: (view.number() << 8) | length }
    }

    fn node_number(self) -> u32 {
        self.node_and_length >> 8
    }

    fn name_length(self) -> usize {
        (self.node_and_length & 0xFF) as usize
    }
}

/// Indexes the names of all nodes by their words. A change of a file updates only the names of this file.
#[derive(Debug, Default)]
pub struct NameIndex {
    paths: Vec<Option<Arc<str>>>,
    free: Vec<u32>,
    numbers: HashMap<Arc<str>, u32, FixedState>,
    words: BTreeMap<Box<str>, Vec<NodePosting>>,
}

/// A query for nodes by name.
pub struct NameQuery<'a> {
    /// Words, parts of names, or whole names.
    pub text: &'a str,
    /// Only nodes of this kind.
    pub kind: Option<NodeKind>,
    /// Only nodes in files whose path matches.
    pub path: Option<&'a GlobMatcher>,
    /// The most results.
    pub limit: usize,
}

impl NameQuery<'_> {
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

impl NameIndex {
    /// Replaces the names of a file by the names in its new facts.
    pub fn replace_file(&mut self, path: &str, old: Option<&FileFacts>, new: Option<&FileFacts>) {
        if let (Some(old), Some(&number)) = (old, self.numbers.get(path)) {
            for (word, _) in NameWords::from_facts(old).iter_words() {
                if let Some(entries) = self.words.get_mut(word) {
                    entries.retain(|posting| posting.file != number);
                    if entries.is_empty() {
                        self.words.remove(word);
                    }
                }
            }
        }
        let Some(new) = new else {
            if let Some(number) = self.numbers.remove(path) {
                self.free.push(number);
                if let Some(path) = self.paths.get_mut(number as usize) {
                    *path = None;
                }
            }
            return;
        };
        let number = self.file_number(path);
        for (word, nodes) in NameWords::from_facts(new).iter_words() {
            let nodes = nodes.filter_map(|node| Some(NodePosting::new(number, &new.node_by_number(node)?)));
            match self.words.get_mut(word) {
                Some(entries) => entries.extend(nodes),
                None => drop(self.words.insert(word.into(), nodes.collect())),
            }
        }
    }

    fn file_number(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let path: Arc<str> = path.into();
        let number = self.free.pop().unwrap_or_else(|| {
            self.paths.push(None);
            u32::try_from(self.paths.len() - 1).expect("a project has less than 2^32 files")
        });
        if let Some(place) = self.paths.get_mut(number as usize) {
            *place = Some(Arc::clone(&path));
        }
        self.numbers.insert(path, number);
        number
    }

    /// Returns the best nodes, the best first, and the number of further hits.
    pub fn find<'a>(&'a self, index: &'a CodeIndex, query: &NameQuery<'_>) -> (Vec<NodeHit<'a>>, usize) {
        let asked = ParsedQuery::parse_query(query.text);
        let mut likely = self.rank_by_words(&asked);
        let view = |posting: &NodePosting| {
            let path = self.paths.get(posting.file as usize)?.as_deref()?;
            Some((path, index.file_facts(path)?.node_by_number(posting.node_number())?))
        };
        if query.kind.is_some() || query.path.is_some() {
            likely.retain(|(_, posting)| view(posting).is_some_and(|(path, view)| query.accepts_node(path, &view)));
        }
        let looked_at = query.limit * LOOKED_AT + LOOKED_AT_LEAST;
        let unseen = likely.len().saturating_sub(looked_at);
        if unseen > 0 {
            likely.select_nth_unstable_by(looked_at, |(score, posting), (other, other_at)| {
                other.total_cmp(score).then_with(|| posting.cmp(other_at))
            });
            likely.truncate(looked_at);
        }
        let score = |(_, posting): &(f64, NodePosting)| {
            let (path, view) = view(posting)?;
            Some((asked.score(path, &view)?, path, view))
        };
        let mut hits: Vec<_> = likely.iter().filter_map(score).collect();
        // The order is total: by score, then by the shorter name, then by the earlier position.
        hits.sort_by(|(score, path, view), (other, other_path, other_view)| {
            let rank = |path, view: &NodeView<'_>| (view.qual().len(), path, view.number());
            other.total_cmp(score).then_with(|| rank(*path, view).cmp(&rank(*other_path, other_view)))
        });
        let omitted = hits.len().saturating_sub(query.limit) + unseen;
        hits.truncate(query.limit);
        let told = |(score, path, view)| NodeHit { path, view, score, reason: asked.reason(path, &view) };
        (hits.into_iter().map(told).collect(), omitted)
    }

    /// Ranks the nodes whose names contain words of a query. The score is an estimate from the words alone; the facts
    /// of the nodes are not read.
    fn rank_by_words(&self, asked: &ParsedQuery<'_>) -> Vec<(f64, NodePosting)> {
        let mut sums: HashMap<NodePosting, f64, FixedState> = HashMap::default();
        for word in &asked.words {
            let begin = self.words.range::<str, _>((Bound::Included(&**word), Bound::Unbounded));
            let begin = begin.take_while(|(own, _)| own.starts_with(&**word));
            let entries = begin.flat_map(|(own, entries)| {
                let counts = if **own == **word { IN_NAME } else { BEGINS };
                entries.iter().map(move |posting| (*posting, counts))
            });
            // `whole` joins all words of the query, so a match of it counts as often as there are words.
            let times = if *word == asked.whole { asked.count_words() } else { 1.0 };
            for (posting, counts) in entries.take(MAX_ENTRIES) {
                *sums.entry(posting).or_default() += counts * times;
            }
        }
        let coverage = |posting: NodePosting| {
            1.0 - COVERAGE + COVERAGE * (length_ratio(asked.whole.len()) / length_ratio(posting.name_length())).min(1.0)
        };
        sums.into_iter().map(|(posting, sum)| (sum * coverage(posting), posting)).collect()
    }

    /// Returns the nodes that have this word in their names: the path of the file, and the number of the node in the
    /// file.
    pub fn nodes_with(&self, word: &str) -> impl Iterator<Item = (&str, u32)> {
        let entries = self.words.get(word).into_iter().flatten();
        entries.filter_map(|posting| Some((self.paths.get(posting.file as usize)?.as_deref()?, posting.node_number())))
    }
}

/// A query, split into words.
struct ParsedQuery<'a> {
    text: &'a str,
    words: Vec<String>,
    /// The whole query as one word: in lower case, without separators.
    whole: String,
}

/// The place where a query word matches.
#[derive(Clone, Copy, PartialEq)]
enum WordPlace {
    Name,
    Beginning,
    Around,
    Path,
}

impl<'a> ParsedQuery<'a> {
    fn parse_query(text: &'a str) -> Self {
        let text = text.trim();
        let mut words = Vec::new();
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')).flat_map(split_name) {
            if !words.contains(&word) && words.len() < MAX_WORDS {
                words.push(word);
            }
        }
        let whole = fold_name(text);
        // The words may be one name, written with spaces.
        if words.len() > 1 && !words.contains(&whole) {
            words.push(whole.clone());
        }
        Self { text, words, whole }
    }

    fn is_same(&self, view: &NodeView<'_>) -> bool {
        self.text == view.name() || self.text == view.qual()
    }

    /// Returns the number of words, without the joined word.
    fn count_words(&self) -> f64 {
        length_ratio(self.single_words().count().max(1))
    }

    /// Returns the words of the query, without the joined word.
    fn single_words(&self) -> impl Iterator<Item = &str> {
        let many = self.words.len() > 1;
        self.words.iter().filter(move |word| !many || **word != self.whole).map(String::as_str)
    }

    fn find_place(word: &str, path: &str, view: &NodeView<'_>, own: &[String]) -> Option<WordPlace> {
        if own.iter().any(|part| part == word) {
            return Some(WordPlace::Name);
        }
        if own.iter().any(|part| part.starts_with(word)) {
            return Some(WordPlace::Beginning);
        }
        let around = split_name(view.qual());
        if around.iter().any(|part| part == word) {
            return Some(WordPlace::Around);
        }
        split_name(path).iter().any(|part| part == word).then_some(WordPlace::Path)
    }

    fn score(&self, path: &str, view: &NodeView<'_>) -> Option<f64> {
        let test = if view.is_test() { TEST } else { 1.0 };
        if self.is_same(view) {
            return Some(SAME * test);
        }
        let name = fold_name(view.name());
        if name == self.whole || fold_name(view.qual()) == self.whole {
            return Some(SAME_BUT_FOR_CASE * test);
        }
        let own = split_name(view.name());
        let (mut sum, mut count, mut covered) = (0.0, 0_u32, 0_usize);
        for word in self.single_words() {
            count += 1;
            sum += match Self::find_place(word, path, view, &own) {
                Some(WordPlace::Name) => {
                    covered += word.len();
                    IN_NAME
                }
                Some(WordPlace::Beginning) => {
                    covered += word.len();
                    BEGINS
                }
                Some(WordPlace::Around) => AROUND,
                Some(WordPlace::Path) => IN_PATH,
                None => 0.0,
            };
        }
        if name.starts_with(&self.whole) {
            (sum, count, covered) = ((sum / f64::from(count.max(1))).max(BEGINS), 1, covered.max(self.whole.len()));
        }
        let coverage = (length_ratio(covered) / length_ratio(name.len().max(1))).min(1.0);
        let score = sum / f64::from(count.max(1)) * (1.0 - COVERAGE + COVERAGE * coverage) * test;
        (score > 0.0).then_some(score)
    }

    fn reason(&self, path: &str, view: &NodeView<'_>) -> String {
        if self.is_same(view) {
            return "the very name".to_owned();
        }
        if fold_name(view.name()) == self.whole || fold_name(view.qual()) == self.whole {
            return "the name but for case and separators".to_owned();
        }
        let own = split_name(view.name());
        let found: Vec<_> = self.single_words().map(|word| (word, Self::find_place(word, path, view, &own))).collect();
        let words_in = |places: &[WordPlace]| {
            let words = found.iter().filter(|(_, place)| place.is_some_and(|place| places.contains(&place)));
            words.map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
        };
        let said = [
            ("name holds", words_in(&[WordPlace::Name])),
            ("name has words that begin with", words_in(&[WordPlace::Beginning])),
            ("stands in", words_in(&[WordPlace::Around])),
            ("path holds", words_in(&[WordPlace::Path])),
        ];
        let said: Vec<_> =
            said.iter().filter(|(_, words)| !words.is_empty()).map(|(what, words)| format!("{what} {words}")).collect();
        if said.is_empty() { format!("name begins with {}", self.whole) } else { said.join("; ") }
    }
}

#[expect(clippy::cast_precision_loss, reason = "lengths of names")]
fn length_ratio(length: usize) -> f64 {
    length as f64
}
