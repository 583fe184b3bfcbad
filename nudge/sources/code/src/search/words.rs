//! Splits names into words.

use std::ops::Range;

use nudge_code_index::FileFacts;

/// The words of all names in a file, with the nodes that have these words. All words are in one string, so that a file
/// needs few allocations: when the source starts, it collects the words of every file.
pub struct NameWords {
    text: String,
    /// The range of each word in `text`, with a node that has the word. Sorted by word, then by node, without
    /// repetition.
    entries: Vec<(Range<usize>, u32)>,
}

impl NameWords {
    /// Collects the words of a file's names. A word is a part of a name, or the whole name without case and separators.
    pub fn from_facts(facts: &FileFacts) -> Self {
        let (mut text, mut entries) = (String::new(), Vec::with_capacity(3 * facts.len()));
        for view in facts.nodes() {
            let (from, first) = (text.len(), entries.len());
            append_words(view.name(), &mut text, |part| entries.push((part, view.number())));
            // If a name has several parts, the text of all parts together is the folded name.
            if entries.len() > first + 1 {
                entries.push((from..text.len(), view.number()));
            }
        }
        let word = |range: &Range<usize>| &text[range.clone()];
        entries.sort_unstable_by(|(range, node), (other, other_node)| {
            word(range).cmp(word(other)).then(node.cmp(other_node))
        });
        entries.dedup_by(|(range, node), (other, other_node)| node == other_node && word(range) == word(other));
        Self { text, entries }
    }

    /// Iterates over the words in alphabetical order, each with its nodes.
    pub fn iter_words(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = u32>)> {
        let word = |range: &Range<usize>| &self.text[range.clone()];
        let same = self.entries.chunk_by(move |(range, _), (other, _)| word(range) == word(other));
        same.filter_map(move |same| Some((word(&same.first()?.0), same.iter().map(|(_, node)| *node))))
    }
}

/// Splits a name into words in lower case: `parseHTTPHeader` gives `parse`, `http`, `header`.
pub fn split_name(name: &str) -> Vec<String> {
    let (mut text, mut ranges) = (String::new(), Vec::new());
    append_words(name, &mut text, |part| ranges.push(part));
    ranges.into_iter().filter_map(|part| text.get(part).map(str::to_owned)).collect()
}

/// Folds a name: removes differences of case, and separators.
pub fn fold_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Appends the words of a name to a text, and calls `tell` with the range of each word.
fn append_words(name: &str, text: &mut String, mut tell: impl FnMut(Range<usize>)) {
    let mut from = text.len();
    let mut chars = name.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        let rises = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || chars.peek().is_some_and(|after| after.is_lowercase()));
        if (rises || !c.is_alphanumeric()) && from < text.len() {
            tell(from..text.len());
            from = text.len();
        }
        if c.is_alphanumeric() {
            text.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    if from < text.len() {
        tell(from..text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nudge_code_index::extract;

    #[test]
    fn names_have_words() {
        for (name, words) in [
            ("parse_config", &["parse", "config"][..]),
            ("parseHTTPHeader", &["parse", "http", "header"]),
            ("HTTPServer", &["http", "server"]),
            ("__init__", &["init"]),
            ("sha256sum", &["sha256sum"]),
            ("v2Beta", &["v2", "beta"]),
            ("a_Bc", &["a", "bc"]),
            ("Größe", &["größe"]),
            ("", &[]),
            ("_", &[]),
        ] {
            assert_eq!(split_name(name), words, "{name}");
        }
    }

    #[test]
    fn a_file_has_the_words_of_its_names() {
        let facts = extract("a.py", b"def get_get(): pass\ndef get(): pass\ndef on(): pass\n").unwrap();
        let words = NameWords::from_facts(&facts);
        let all: Vec<_> = words.iter_words().map(|(word, nodes)| (word, nodes.collect::<Vec<_>>())).collect();
        assert_eq!(all, [("get", vec![0, 1]), ("getget", vec![0]), ("on", vec![2])]);
    }
}
