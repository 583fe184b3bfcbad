//! Relevance: finds the texts that match a sentence, a question or an error, among many short texts.
//!
//! The weight of a matched word depends on its weight in the sentence, on its rarity among the texts, and on the field
//! of the text that has the word. A source that tells lines without a question needs a least relevance: [`FLOOR`].

mod likeness;

use std::collections::HashMap;
use std::collections::hash_map;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use crate::words::{SentenceLanguage, TextWord, WordWeight, split_words};
use likeness::{Head, LetterSet, WordLikeness, head_of_stem};

/// The least relevance at which a line is told without a question: one rare word in a text's name, or two in its prose.
pub const FLOOR: f64 = 0.35;
/// The least share of the best line's relevance at which another line is told without a question.
pub const CUT: f64 = 0.5;

/// The field weight at which a word has half of its weight. A word in more fields of a text weighs more, but never as
/// much as its full weight.
const HALF_FIELD_WEIGHT: f64 = 1.0;
/// The weight of a word that says little, such as `error` or `file`.
const LITTLE: f64 = 0.35;
/// The weight of a word in the middle of a long text, as in a pasted log.
const IN_THE_MIDDLE: f64 = 0.25;
/// The number of lines of a long text's first paragraph that have full weight.
const FIRST_LINES: usize = 3;
/// The number of lines at the end of a long text that have full weight.
const LAST_LINES: usize = 3;
/// The number of lines that are read from the end of an error.
const ERROR_LINES: usize = 12;
/// The number of bytes from which a text counts as long.
const LONG_BYTES: usize = 800;
/// The least number of texts in the calculation of a word's rarity; if there are fewer texts, this number is used.
const MIN_TEXTS: usize = 20;
/// The most different words of a text that are searched. The words with the most weight are kept.
const MAX_TERMS: usize = 192;
/// The most words that are searched with wrong letters when no text has the exact word. Each such search compares all
/// stems.
const MAX_LIKENESSES: usize = 32;
/// The sum of weights from which a sentence counts as informative ([`QueryTerms::say_much`]).
const MUCH: f64 = 4.0;

/// The words of a prompt, a question or an error. Each word occurs once.
#[derive(Debug, Clone, Default)]
pub struct QueryTerms {
    all: Vec<QueryTerm>,
    language: SentenceLanguage,
}

#[derive(Debug, Clone)]
struct QueryTerm {
    word: TextWord,
    weight: f64,
    /// Is true when the word occurs only in paths and identifiers.
    in_code: bool,
}

impl QueryTerms {
    /// Reads the words of a prompt. In a long prompt the first paragraph and the last lines have the most weight,
    /// because people write their request there and paste other text between.
    pub fn of_prompt(text: &str) -> Self {
        let is_empty = |line: &&str| line.trim().is_empty();
        let asked = text.lines().skip_while(is_empty).take_while(|line| !is_empty(line)).count().min(FIRST_LINES);
        let lines: Vec<_> = text.lines().filter(|line| !is_empty(line)).collect();
        let is_long = text.len() > LONG_BYTES && lines.len() > asked + LAST_LINES;
        let weigh = |index: usize| {
            let counts = !is_long || index < asked || index + LAST_LINES >= lines.len();
            if counts { 1.0 } else { IN_THE_MIDDLE }
        };
        let tokens = lines.iter().enumerate().flat_map(|(index, line)| {
            let share = weigh(index);
            // A long text may be a log. The code that a log names is its subject, so no word of a long text counts as
            // code.
            line.split_whitespace().map(move |word| (word, share, !is_long && is_code(word)))
        });
        Self::new(tokens, false)
    }

    /// Reads the words of a question. Common words count only if there are no other words.
    pub fn of_query(text: &str) -> Self {
        let terms = Self::of_prompt(text);
        if terms.is_empty() { Self::new([(text, 1.0, false)].into_iter(), true) } else { terms }
    }

    /// Reads the words of the last lines of an error, which are the most informative. Paths of files are left out,
    /// because they only say where the error is.
    pub fn of_error(text: &str) -> Self {
        let lines = text.lines().rev().filter(|line| !line.trim().is_empty()).take(ERROR_LINES);
        let words = lines.flat_map(str::split_whitespace).filter(|word| !(word.contains('/') && word.contains('.')));
        Self::new(words.map(|word| (word, 1.0, false)), false)
    }

    /// Collects the words of texts. Each text comes with its share of the weight and a flag for code. If `common_too`
    /// is true, common words get a small weight.
    fn new<'a>(texts: impl Iterator<Item = (&'a str, f64, bool)>, common_too: bool) -> Self {
        let mut terms: Vec<QueryTerm> = Vec::new();
        let mut language = SentenceLanguage::default();
        let mut known: HashMap<Box<str>, usize, RandomState> = HashMap::default();
        for (text, share, in_code) in texts {
            for word in split_words(text) {
                language.hear_word(&word);
                let weight = match word.weight() {
                    WordWeight::Full => 1.0,
                    WordWeight::Little => LITTLE,
                    WordWeight::Nothing if common_too => LITTLE,
                    WordWeight::Nothing => continue,
                };
                match known.entry(word.stem.clone()) {
                    hash_map::Entry::Occupied(occupied) => {
                        let term = &mut terms[*occupied.get()];
                        term.weight = term.weight.max(weight * share);
                        term.in_code &= in_code;
                    }
                    hash_map::Entry::Vacant(free) => {
                        free.insert(terms.len());
                        terms.push(QueryTerm { word, weight: weight * share, in_code });
                    }
                }
            }
        }
        if terms.len() > MAX_TERMS {
            // The sort is stable, so among equal weights the first words are kept.
            terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            terms.truncate(MAX_TERMS);
        }
        Self { all: terms, language }
    }

    /// Returns true when there are no words to search.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns true for an English sentence of many informative words. A text that has just one of these words may
    /// match by accident. In another language most words match no text, so a single match counts.
    ///
    /// ```
    /// use nudge_core::relevance::QueryTerms;
    ///
    /// assert!(QueryTerms::of_prompt("rename the field Release of the entry to Tag and adapt its callers").say_much());
    /// assert!(!QueryTerms::of_prompt("make a release of the site").say_much());
    /// ```
    pub fn say_much(&self) -> bool {
        self.language.is_english() == Some(true) && self.all.iter().map(|term| term.weight).sum::<f64>() >= MUCH
    }

    /// Returns true when every word of a name is a form of one of these words, and at least one word of the name has
    /// full weight.
    pub fn name(&self, name: &str) -> bool {
        let words = split_words(name);
        let known = |word: &TextWord| self.all.iter().any(|term| term.word.stem == word.stem);
        words.iter().all(known) && words.iter().any(|word| word.weight() == WordWeight::Full)
    }

    /// Returns the first word of `text` that is a form of one of these words. A source with few texts can use this
    /// function without a [`StemIndex`].
    ///
    /// ```
    /// use nudge_core::relevance::QueryTerms;
    ///
    /// let terms = QueryTerms::of_prompt("Please run the API-tests");
    /// assert_eq!(terms.first_in("make api").as_deref(), Some("api"));
    /// assert_eq!(terms.first_in("please and the"), None);
    /// ```
    pub fn first_in(&self, text: &str) -> Option<Box<str>> {
        let known = |word: &TextWord| self.all.iter().any(|term| term.word.stem == word.stem);
        split_words(text).into_iter().find(known).map(|word| word.folded)
    }
}

/// Returns true for a word between spaces that is a path or an identifier: it has a sign such as `/` or `_` inside, or
/// a capital letter after a small letter.
fn is_code(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let mut pairs = word.chars().zip(word.chars().skip(1));
    word.contains(['/', '_', '.', ':', '\\']) || pairs.any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}

/// A text that matches the words.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RelevantText<'a> {
    /// The number of the text.
    pub text: u32,
    /// The sum of the weights of the matched words; 0.6 is one rare word in a name.
    pub relevance: f64,
    /// The matched words, folded, in the spelling of the question. The words with the most weight come first.
    pub words: SmallVec<[&'a str; 4]>,
    /// Is true when all matched words occur only in paths and identifiers of the question (`lib/kv.ts`,
    /// `Escrow.release`). Such words only name code.
    pub in_code: bool,
}

/// An index of the words of many texts; each text has a number.
#[derive(Default)]
pub struct StemIndex {
    by_stem: HashMap<Box<str>, u32, RandomState>,
    entries: Vec<StemEntry>,
    free: Vec<u32>,
    texts: HashMap<u32, Box<[u32]>, RandomState>,
}

/// A stem, and the texts that have the stem.
#[derive(Default)]
struct StemEntry {
    stem: Box<str>,
    /// The first bytes of the stem. A comparison of these bytes rules out most stems quickly.
    head: Head,
    /// The forms of the stem that occur in the texts, each with the set of its letters.
    forms: SmallVec<[(Box<str>, LetterSet); 1]>,
    /// The numbers of the texts, each with the sum of the weights of the fields that have the stem.
    texts: Vec<(u32, f32)>,
}

impl StemIndex {
    /// Sets the fields of a text, each with its weight, and removes the text's earlier fields.
    pub fn set_text<'a>(&mut self, text: u32, fields: impl IntoIterator<Item = (&'a str, f32)>) {
        self.remove_text(text);
        let mut own: HashMap<TextWord, f32, RandomState> = HashMap::default();
        for (field, weight) in fields {
            let mut words = split_words(field);
            words.sort_unstable_by(|a, b| a.folded.cmp(&b.folded));
            words.dedup();
            for word in words {
                *own.entry(word).or_default() += weight;
            }
        }
        let mut stems: HashMap<u32, f32, RandomState> = HashMap::default();
        for (word, weight) in own {
            let slot = self.intern_stem(word.stem);
            let entry = &mut self.entries[slot as usize];
            if !entry.forms.iter().any(|(form, _)| *form == word.folded) {
                let letters = LetterSet::from_word(&word.folded);
                entry.forms.push((word.folded, letters));
            }
            // When a text has two forms of a stem in a field, the larger weight counts.
            let known = stems.entry(slot).or_default();
            *known = known.max(weight);
        }
        for (&slot, &weight) in &stems {
            self.entries[slot as usize].texts.push((text, weight));
        }
        self.texts.insert(text, stems.into_keys().collect());
    }

    /// Removes a text.
    pub fn remove_text(&mut self, text: u32) {
        for slot in self.texts.remove(&text).into_iter().flatten() {
            let entry = &mut self.entries[slot as usize];
            entry.texts.retain(|(other, _)| *other != text);
            if entry.texts.is_empty() {
                let entry = std::mem::take(entry);
                self.by_stem.remove(&entry.stem);
                self.free.push(slot);
            }
        }
    }

    fn intern_stem(&mut self, stem: Box<str>) -> u32 {
        if let Some(&slot) = self.by_stem.get(&stem) {
            return slot;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(StemEntry::default());
            u32::try_from(self.entries.len() - 1).expect("memory holds fewer stems than 2^32")
        });
        self.entries[slot as usize] =
            StemEntry { stem: stem.clone(), head: head_of_stem(&stem), ..StemEntry::default() };
        self.by_stem.insert(stem, slot);
        slot
    }

    /// Finds the texts that have at least one of the words, in no order. Only texts for which `counts` is true are
    /// searched; `total` is the number of these texts.
    pub fn search<'a>(
        &self,
        terms: &'a QueryTerms,
        total: usize,
        counts: impl Fn(u32) -> bool,
    ) -> Vec<RelevantText<'a>> {
        let mut found: HashMap<u32, SmallVec<[(f64, &QueryTerm); 4]>, RandomState> = HashMap::default();
        let mut likenesses = MAX_LIKENESSES;
        for term in &terms.all {
            let mut texts = self.texts_of(&term.word, &counts);
            if texts.is_empty() && likenesses > 0 {
                likenesses -= 1;
                texts = self.texts_like(&term.word, &counts);
            }
            // When there are few texts, a word that all of them have may still matter, so it keeps some weight.
            let rarity = compute_rarity(texts.len(), total.max(MIN_TEXTS));
            for (text, worth) in texts {
                found.entry(text).or_default().push((term.weight * rarity * worth, term));
            }
        }
        let relevant = found.into_iter().map(|(text, mut words)| {
            words.sort_by(|a, b| b.0.total_cmp(&a.0));
            let relevance = words.iter().map(|(worth, _)| worth).sum();
            let in_code = words.iter().all(|(_, term)| term.in_code);
            let words = words.into_iter().map(|(_, term)| &*term.word.folded).collect();
            RelevantText { text, relevance, words, in_code }
        });
        relevant.collect()
    }

    /// Finds the texts that have a form of the word, each with the weight of the word in the text.
    fn texts_of(&self, word: &TextWord, counts: &impl Fn(u32) -> bool) -> Vec<(u32, f64)> {
        let found = self.by_stem.get(&word.stem);
        found.map_or_else(Vec::new, |&slot| self.entries[slot as usize].weigh_texts(1.0, counts).collect())
    }

    /// Finds the texts that have a similar word, each with the weight of the similar word in the text.
    fn texts_like(&self, word: &TextWord, counts: &impl Fn(u32) -> bool) -> Vec<(u32, f64)> {
        let asked = WordLikeness::new(word);
        let mut best: HashMap<u32, f64, RandomState> = HashMap::default();
        for entry in self.entries.iter().filter(|entry| !entry.texts.is_empty()) {
            let Some(share) = asked.find_share(entry) else { continue };
            for (text, worth) in entry.weigh_texts(share, counts) {
                let known = best.entry(text).or_default();
                *known = known.max(worth);
            }
        }
        best.into_iter().collect()
    }
}

impl StemEntry {
    /// Returns the texts of this stem, each with the weight of the stem in the text, times `share`.
    fn weigh_texts(&self, share: f64, counts: &impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, f64)> {
        let texts = self.texts.iter().filter(|(text, _)| counts(*text));
        texts.map(move |(text, weight)| (*text, share * saturate(f64::from(*weight))))
    }
}

/// Turns the weight of a field into a share from 0 to 1.
fn saturate(weight: f64) -> f64 {
    weight / (weight + HALF_FIELD_WEIGHT)
}

/// Returns the rarity of a property that `few` of `all` texts have: 1 when one text has it, near 0 when all of many
/// texts have it, 0 when no text has it.
///
/// ```
/// use nudge_core::relevance::compute_rarity;
///
/// assert_eq!(compute_rarity(1, 4), 1.0);
/// assert!(compute_rarity(4, 4) < 0.1);
/// ```
// The counts are exact as `f64`: there are fewer than 2^53 texts.
#[allow(clippy::cast_precision_loss)]
pub fn compute_rarity(few: usize, all: usize) -> f64 {
    let (few, all) = (few as f64, all.max(few) as f64);
    let weigh = |few: f64| (1.0 + (all - few + 0.5) / (few + 0.5)).ln();
    if few == 0.0 { 0.0 } else { weigh(few) / weigh(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: f32 = 1.5;
    const PROSE: f32 = 0.6;

    /// Makes an index of texts. The part of each text before the colon is its name.
    fn index(texts: &[&str]) -> StemIndex {
        let mut index = StemIndex::default();
        for (number, text) in (0..).zip(texts) {
            let (name, prose) = text.split_once(':').unwrap_or((text, ""));
            index.set_text(number, [(name, NAME), (prose, PROSE)]);
        }
        index
    }

    fn found<'a>(index: &StemIndex, terms: &'a QueryTerms, total: usize) -> Vec<RelevantText<'a>> {
        let mut found = index.search(terms, total, |_| true);
        found.sort_by(|a, b| b.relevance.total_cmp(&a.relevance).then(a.text.cmp(&b.text)));
        found
    }

    #[test]
    fn what_a_prompt_brings_to_mind() {
        let texts = [
            "api/build: make api",
            "database/migrate: make migrate",
            "web/test: npm test",
            "cluster/context: kubectl config use-context staging",
            "http-proxy/routes: services/http-proxy/routes.yaml",
            "model/train: python -m train",
            "发布: make release 发布到生产环境",
        ];
        let index = index(&texts);
        for (prompt, told) in [
            ("are all migrations applied?", Some(1)),
            ("run the migratoin agian", Some(1)),
            ("switch the contxt to stagign", Some(3)),
            ("HttpProxy panics", Some(4)),
            ("the trainer hangs", Some(5)),
            ("请发布新版本", Some(6)),
            ("please do it again, thanks", None),
            ("sketch a game of chess", None),
        ] {
            let terms = QueryTerms::of_prompt(prompt);
            let best = found(&index, &terms, texts.len());
            let best = best.first().filter(|best| best.relevance >= FLOOR);
            assert_eq!(best.map(|best| best.text), told, "{prompt}: {best:?}");
        }
    }

    #[test]
    fn rare_words_count_more_and_names_more_than_prose() {
        let index = index(&["a/build", "b/build", "c/build", "c/lint", "d/x: build it, lint"]);
        let all = ["lint", "building", "lint c"].map(QueryTerms::of_prompt);
        let [lint, building, both] = all.each_ref().map(|terms| found(&index, terms, 5));
        assert!(lint[0].relevance > building[0].relevance);
        assert_eq!(lint.iter().map(|found| found.text).collect::<Vec<_>>(), [3, 4]);
        assert_eq!(both[0].words[..], ["lint"]);
    }

    #[test]
    fn the_shorter_a_word_the_less_a_wrong_letter_is_forgiven() {
        let relevance_of = |name: &str, prompt: &str| {
            let index = index(&[name, "other"]);
            found(&index, &QueryTerms::of_prompt(prompt), 2).first().map_or(0.0, |found| found.relevance)
        };
        let (longer, five, four) =
            (relevance_of("docker", "dockre"), relevance_of("proxy", "prxoy"), relevance_of("test", "tset"));
        assert!(longer > five && five > 0.0 && four == 0.0, "{longer} {five} {four}");
        let two = relevance_of("kubernetes", "kubrentes");
        assert!(longer > two && two > 0.0, "{longer} {two}");
    }

    #[test]
    fn only_what_could_be_told_counts() {
        let index = index(&["a/deploy", "b/deploy", "c/deploy", "d/deploys", "e/x"]);
        let terms = QueryTerms::of_prompt("deploy");
        let all = index.search(&terms, 5, |_| true);
        let filtered = index.search(&terms, 2, |text| text == 1 || text == 4);
        assert_eq!((all.len(), filtered.len()), (4, 1));
        assert!(filtered[0].relevance > all[0].relevance);
    }

    #[test]
    fn the_middle_of_what_was_pasted_counts_little() {
        let pasted = format!(
            "why?\n\n{}CUDA out of memory\n\nthat is all\nI know\n",
            "  File \"starlette/core.py\", line 100\n".repeat(40)
        );
        let index = index(&["starlette/x", "cuda/x"]);
        let terms = QueryTerms::of_prompt(&pasted);
        let found = found(&index, &terms, 2);
        assert_eq!(found[0].text, 1, "{found:?}");
        assert!(found[1].relevance < FLOOR, "{found:?}");
    }

    #[test]
    fn a_text_that_is_set_anew_is_found_by_its_new_words_alone() {
        let mut index = index(&["a/build", "b/test"]);
        index.set_text(0, [("a/lint", NAME)]);
        let [building, lint] = ["building", "lint"].map(QueryTerms::of_prompt);
        assert_eq!(found(&index, &building, 2), []);
        assert_eq!(found(&index, &lint, 2)[0].text, 0);
        index.remove_text(0);
        index.remove_text(1);
        assert_eq!(
            (index.by_stem.len(), index.entries.len(), index.free.len()),
            (0, index.free.len(), index.entries.len())
        );
    }

    #[test]
    fn typos_need_letters_enough() {
        let index = index(&["kubernetes/x", "port/x", "serve/x"]);
        for (word, is_found) in [
            ("kuberntes", true),
            ("kubrentes", true),
            ("kuxernxtes", true),
            ("kxbxrnxtes", false),
            ("pory", false),
            ("sevre", true),
            ("sxrvx", false),
        ] {
            assert_eq!(!found(&index, &QueryTerms::of_prompt(word), 3).is_empty(), is_found, "{word}");
        }
    }

    proptest::proptest! {
        /// For any texts, words have letters, the index finds each text by its own words, and removing a text leaves no
        /// entry.
        #[test]
        fn any_text_is_found_by_its_own_words(texts in proptest::collection::vec(".{0,60}", 1..6)) {
            let mut index = StemIndex::default();
            for (number, text) in (0..).zip(&texts) {
                index.set_text(number, [(text.as_str(), NAME)]);
            }
            for (number, text) in (0..).zip(&texts) {
                proptest::prop_assert!(split_words(text).iter().all(|word| !word.folded.is_empty() && !word.stem.is_empty()));
                let terms = QueryTerms::of_query(text);
                let found = index.search(&terms, texts.len(), |_| true);
                proptest::prop_assert!(terms.is_empty() || found.iter().any(|found| found.text == number), "{text:?}");
            }
            (0..).zip(&texts).for_each(|(number, _)| index.remove_text(number));
            proptest::prop_assert_eq!(index.by_stem.len(), 0);
        }
    }
}
