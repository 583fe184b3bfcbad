//! Finds the nodes that a text mentions. The text is a prompt, or the output of a failed command.
//!
//! A word counts if it looks like a name in code. A single plain word that happens to be a name does not count; several
//! plain words count together if a node's name consists of them alone. If nothing counts, there is no offer.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::FixedState;
use nudge_code_index::{NodeId, NodeLookup};
use nudge_core::explain::ScoreParts;
use nudge_core::text::{after_mark, before_mark};
use nudge_core::words::{TextWord, WordWeight, split_words};

use crate::live::LiveRoot;
use crate::live::state::RootState;
use crate::search::split_name;

/// The lowest score of an offered node.
pub const FLOOR: f64 = 0.5;
/// The scores of three kinds of mention: a position in a file, a name, and the words of a name.
const PLACE: f64 = 1.0;
const NAME: f64 = 0.9;
const WORDS: f64 = 0.6;
/// The score that a node gets in addition if its file has changed. `CONNECTED` is added if the node calls, or is called
/// by, a node that scores at least `NAME`.
const CHANGED: f64 = 0.3;
const CONNECTED: f64 = 0.2;
/// The most bytes of a text that are read, from its end. An error says the most at its end, and a long prompt has its
/// question there.
const MAX_BYTES: usize = 16 << 10;
/// The most words of a text: `MAX_TOKENS` in all, and `MAX_WORDS` plain words. `MAX_NAMES` limits the names that
/// contain one of the words.
const MAX_TOKENS: usize = 2_000;
const MAX_WORDS: usize = 200;
const MAX_NAMES: usize = 2_000;
/// The most words that look like names and are also tried in other spellings.
const MAX_SHAPED: usize = 50;
/// If the text names a file without a line, at most this many nodes of the file are added. `MAX_CENTRES` limits the
/// nodes whose callers and callees are looked up.
const OF_A_FILE: usize = 3;
const MAX_CENTRES: usize = 3;
/// The most folders that are removed from the front of a path from another machine. `OTHERS` lists folders that hold
/// code of other projects.
const MAX_FOLDERS: usize = 32;
const OTHERS: [&str; 5] = ["site-packages", "dist-packages", "node_modules", ".cargo", "rustlib"];
/// A position counts for a node if it is at most this many lines before the node.
const BEFORE: u32 = 12;
/// The most nodes that one name may mean. A name of more nodes does not count.
const MAX_SAME: usize = 8;

/// A node that a text mentions.
#[derive(Debug, Clone)]
pub struct NodeCandidate {
    /// The node.
    pub id: NodeId,
    /// The score that decides the order.
    pub score: f64,
    /// The terms of the score.
    pub parts: ScoreParts,
    /// The reason for the score, in words.
    pub reason: String,
}

/// The kinds of mention that a search accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedNodes {
    /// All kinds of mention that a person may use.
    Anything,
    /// Only positions and names, as errors contain them.
    Named,
}

struct PromptFinder<'a> {
    live: &'a LiveRoot,
    state: &'a RootState,
    found: HashMap<NodeId, NodeCandidate, FixedState>,
}

/// Finds the nodes that a text and the given files mention, the best first.
pub fn find_candidates(
    live: &LiveRoot,
    state: &RootState,
    text: &str,
    files: &[String],
    wanted: WantedNodes,
) -> Vec<NodeCandidate> {
    let mut from = text.len().saturating_sub(MAX_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let text = &text[from..];
    let mut finder = PromptFinder { live, state, found: HashMap::default() };
    let tokens: Vec<_> = text.split(is_between).filter(|token| !token.is_empty()).take(MAX_TOKENS).collect();
    for (index, token) in tokens.iter().enumerate() {
        if !finder.take_place(token, &tokens[index + 1..], wanted) {
            finder.name(token);
        }
    }
    for file in files {
        finder.take_file(file);
    }
    if wanted == WantedNodes::Anything {
        finder.take_words(&tokens);
    }
    finder.add_up()
}

/// Returns true for a character that separates names. Backticks and parentheses do not separate names, because they
/// mark a name.
fn is_between(c: char) -> bool {
    c.is_whitespace() || "\"',;<>[]{}|!?=".contains(c)
}

impl PromptFinder<'_> {
    fn add_node(&mut self, id: NodeId, name: &'static str, score: f64, reason: String) {
        if self.found.get(&id).is_some_and(|own| own.score >= score) {
            return;
        }
        self.found.insert(id, NodeCandidate { id, score, parts: ScoreParts::from([(name, score)]), reason });
    }

    /// Handles a token that is a path, with or without a line. Returns true if the token is a path. The line may also
    /// stand in the following tokens `rest`, because Python prints it there.
    fn take_place(&mut self, token: &str, rest: &[&str], wanted: WantedNodes) -> bool {
        let token = token.trim_matches(|c: char| "`().*".contains(c)).trim_end_matches(':');
        if let Some((path, name)) = token.split_once("::")
            && self.take_test(path, name)
        {
            return true;
        }
        let mut pieces = token.split(':');
        let Some(path) = pieces.next().filter(|path| path.contains('.')) else { return false };
        let line = pieces.next().and_then(|line| line.parse::<u32>().ok());
        let line = line.or_else(|| match rest {
            ["line", line, ..] => line.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok(),
            _ => None,
        });
        let Some(path) = self.known_path(path) else { return false };
        let Some(line) = line else {
            // A test runner lists all its files, but only a failure has a line. So in an error, a file without a line
            // does not count.
            if wanted == WantedNodes::Anything {
                self.take_file(&path);
            }
            return true;
        };
        // A line shortly before a node counts as part of the node.
        let near = (line..line.saturating_add(BEFORE)).find_map(|line| self.state.index.by_line(&path, line));
        if let Some(id) = near {
            self.add_node(id, "place", PLACE, format!("{path}:{line} is named"));
        }
        true
    }

    /// Handles a token that is a test in the form of a test runner, such as
    /// `tests/test_app.py::TestApp::test_route[1]`. Returns true if the test exists.
    fn take_test(&mut self, path: &str, name: &str) -> bool {
        let Some(path) = self.known_path(path) else { return false };
        let name = name.split('[').next().unwrap_or(name).replace("::", ".");
        let NodeLookup::One(id) = self.state.index.by_name(&path, &name) else { return false };
        self.add_node(id, "place", PLACE, format!("{path}::{name} is named"));
        true
    }

    /// Finds a file of the project by its whole path. Also finds a file by the end of its path, if only one file has
    /// this end.
    fn known_path(&self, given: &str) -> Option<String> {
        let is_ours = |path: &String| self.state.index.file_facts(path).is_some();
        if let Some(path) = self.live.root().resolve_path(given, None).filter(is_ours) {
            return Some(path);
        }
        if given.starts_with('/') {
            if given.split('/').any(|folder| OTHERS.contains(&folder)) {
                return None;
            }
            // The path may come from another machine, such as a container. Then the end of the path may be a path of
            // this project.
            let ends = given.match_indices('/').skip(1).filter_map(|(slash, _)| given.get(slash + 1..));
            return ends.take(MAX_FOLDERS).map(str::to_owned).find(is_ours);
        }
        self.state.only_file(given).map(str::to_owned)
    }

    /// Adds the largest nodes of a file.
    fn take_file(&mut self, path: &str) {
        let Some(path) = self.live.root().resolve_path(path, None) else { return };
        let Some(facts) = self.state.index.file_facts(&path) else { return };
        let mut nodes: Vec<_> = facts.nodes().filter(|node| !node.qual().contains('.')).collect();
        nodes.sort_by_key(|node| {
            (
                node.is_test(),
                std::cmp::Reverse(node.node().span.end_line - node.node().span.line.min(node.node().span.end_line)),
            )
        });
        for node in nodes.iter().take(OF_A_FILE) {
            if let NodeLookup::One(id) = self.state.index.by_name(&path, node.qual()) {
                self.add_node(id, "file", PLACE, format!("{path} is named"));
            }
        }
    }

    /// Adds the nodes that a word names, if the word looks like a name.
    fn name(&mut self, token: &str) {
        let is_marked = token.contains('`') || token.contains("()");
        let name = trim_token(token).replace("::", ".");
        if !is_marked && !has_shape(&name) {
            return;
        }
        let last = name.rsplit('.').next().unwrap_or(&name);
        if last.is_empty() {
            return;
        }
        let all = self.state.index.keep_definitions(&self.state.index.nodes_by_name(last));
        let is_whole = |id: &NodeId| {
            self.state.index.find_node(*id).is_some_and(|found| {
                found.view.qual() == name
                    || found.view.qual().strip_suffix(&*name).is_some_and(|rest| rest.ends_with('.'))
            })
        };
        let mut meant: Vec<_> = all.iter().copied().filter(is_whole).collect();
        // In `response.close()`, the object `response` does not have the name of its class. So all methods named
        // `close` are candidates.
        if meant.is_empty() && (is_marked || has_shape(last)) {
            meant = all;
        }
        if meant.is_empty() || meant.len() > MAX_SAME {
            return;
        }
        let mut score = NAME / f64::from(u32::try_from(meant.len()).expect("a prompt names less than 2^32 nodes"));
        if is_marked && meant.len() == 2 {
            // A marked name certainly means one of the two nodes, so both are offered.
            score = score.max(FLOOR);
        }
        let reason = match meant.len() {
            1 => format!("`{name}` is named"),
            count => format!("`{name}` is named, one of {count}"),
        };
        for id in meant {
            self.add_node(id, "name", score, reason.clone());
        }
    }

    /// Adds the nodes whose names consist of words from the text. A word that looks like a name counts only as a whole:
    /// the text `client_max_body_size` does not mention `maxSize`, but the text `maxSize` mentions `max_size`.
    fn take_words(&mut self, tokens: &[&str]) {
        let (names, plain): (Vec<&str>, Vec<&str>) = tokens.iter().partition(|token| has_shape(trim_token(token)));
        self.take_said(&plain.join(" "), false);
        for name in names.into_iter().take(MAX_SHAPED) {
            self.take_said(after_mark(trim_token(name), &['.', ':']), true);
        }
    }

    /// Adds the nodes whose names consist only of these words. With `all`, adds the nodes whose names consist of all
    /// these words, in this order.
    fn take_said(&mut self, text: &str, all: bool) {
        let said: HashMap<Box<str>, TextWord, FixedState> = split_words(text)
            .into_iter()
            .filter(|word| word.weight() == WordWeight::Full && word.folded.len() > 2)
            .map(|word| (word.folded.clone(), word))
            .take(MAX_WORDS)
            .collect();
        if said.len() < 2 {
            return;
        }
        let wanted: Vec<String> = if all { split_name(text) } else { Vec::new() };
        let mut counts: BTreeMap<(&str, u32), usize> = BTreeMap::new();
        for word in said.values() {
            for (path, node) in self.state.words.nodes_with(word).take(MAX_NAMES) {
                *counts.entry((path, node)).or_default() += 1;
            }
        }
        let mut same: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        for ((path, node), _) in counts.into_iter().filter(|(_, count)| *count >= 2) {
            let Some(view) = self.state.index.file_facts(path).and_then(|facts| facts.node_by_number(node)) else {
                continue;
            };
            let own = split_name(view.name());
            let is_meant = if all { own == wanted } else { own.iter().all(|part| said.contains_key(&**part)) };
            if is_meant && let NodeLookup::One(id) = self.state.index.by_name(path, view.qual()) {
                same.entry(own.join(" ")).or_default().push(id);
            }
        }
        for (words, ids) in same.into_iter().filter(|(_, ids)| ids.len() <= 2) {
            for id in ids {
                self.add_node(id, "words", WORDS, format!("says {words}"));
            }
        }
    }

    /// Adds the additional scores, and returns the nodes that score at least `FLOOR`, the best first.
    fn add_up(mut self) -> Vec<NodeCandidate> {
        let index = &self.state.index;
        let mut centres: Vec<_> =
            self.found.values().filter(|candidate| candidate.score >= NAME).map(|candidate| candidate.id).collect();
        centres.sort_unstable();
        let mut connected = HashSet::new();
        let calls = index.start_queries();
        for centre in centres.iter().take(MAX_CENTRES).filter(|_| self.found.len() > 1) {
            connected
                .extend(calls.callers_of(*centre, MAX_SAME, false).edges.into_iter().filter_map(|caller| caller.from));
            connected.extend(calls.callees_of(*centre, false).into_iter().map(|callee| callee.to));
        }
        for candidate in self.found.values_mut() {
            if index.find_node(candidate.id).is_some_and(|found| self.state.before.contains_key(found.path)) {
                candidate.parts.push("changed", CHANGED);
                candidate.reason += "; its file was changed";
            }
            if connected.contains(&candidate.id) {
                candidate.parts.push("connected", CONNECTED);
                candidate.reason += "; it calls or is called by what is named";
            }
            candidate.score = candidate.parts.total();
        }
        let mut found: Vec<_> = self.found.into_values().filter(|candidate| candidate.score >= FLOOR).collect();
        found.sort_by(|candidate, other| other.score.total_cmp(&candidate.score).then(candidate.id.cmp(&other.id)));
        found
    }
}

/// Removes the characters before and after the name in a token.
fn trim_token(token: &str) -> &str {
    let token = before_mark(token, &['(']);
    token.trim_matches(|c: char| !(c.is_alphanumeric() || c == '_'))
}

/// Returns true if a word looks like a name in code: `snake_case`, `camelCase`, `HttpProxy`, `dotted.name`.
fn has_shape(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let is_dotted = inner.split('.').count() > 1
        && inner
            .split('.')
            .all(|part| part.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_') && part.len() > 1);
    let humps = inner
        .chars()
        .zip(inner.chars().skip(1))
        .filter(|(current, next)| current.is_lowercase() && next.is_uppercase());
    inner.contains('_') || is_dotted || humps.count() > 0 || (word.starts_with('_') && !inner.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_shape() {
        for word in ["snake_case", "camelCase", "HttpProxy", "app.route", "_private", "a_b"] {
            assert!(has_shape(word), "{word}");
        }
        for word in ["get", "test", "Flask", "HTTP", "e.g", "i.e.", "U.S.A", "_", "", "3.11"] {
            assert!(!has_shape(word), "{word}");
        }
    }
}
