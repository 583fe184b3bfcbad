//! Indexes the words of hints, for prompts, questions and errors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use nudge_core::context::Context;
use nudge_core::relevance::{QueryTerms, RelevantText, StemIndex};
use nudge_core::steps::StepBudget;
use nudge_core::words::fold_identifier;

use crate::cache::Nudge;
use crate::hint::Hint;
use crate::store::{FittingRow, HintFilter, HintStore};

/// The weights of the fields of a hint. Keys and tags were chosen so that the hint is found by them. Many hints share a
/// component, so a word of the component is not enough alone. A word of a command has little weight, because the
/// command was written to be run, not to be found.
const NAME: f32 = 1.5;
const COMPONENT: f32 = 0.7;
const COMMAND: f32 = 0.8;
const PROSE: f32 = 0.6;
const REASON: f32 = 0.5;
/// The number of bytes of a value that are indexed.
const MAX_VALUE_BYTES: usize = 2 << 10;
/// The most hints that are read while a caller waits. They take a few milliseconds.
const MAX_READ: usize = 1_000;
/// The tag that marks a hint as a fix. It says nothing about the hint's subject.
pub(super) const FIX: &str = "fix";

/// An index of the words of hints, by row. The index is updated only when a caller asks a question: it reads a row
/// again if the row now holds another hint. Therefore no write waits for the index, and a store without questions has
/// no index.
#[derive(Default)]
pub(crate) struct WordIndex {
    index: StemIndex,
    /// The hint that each row held when it was read. A weak pointer keeps the memory of the hint reserved, so that no
    /// other hint gets the same address.
    read: Vec<Weak<Hint>>,
    /// The store's count of gone hints when the index last removed the words of gone hints.
    gone: u64,
    /// Is true when there were more hints to read than the limit allows at once.
    is_behind: bool,
}

impl WordIndex {
    /// Returns the words that the question shares with the hints of these rows, by row. Hints that are not in the index
    /// yet are read first, up to a limit; the next calls read the rest.
    pub(super) fn search_terms<'a>(
        &mut self,
        store: &HintStore,
        fitting: &[FittingRow],
        terms: &'a QueryTerms,
    ) -> ByRow<'a> {
        if terms.is_empty() {
            return ByRow::default();
        }
        self.follow_store(store, fitting);
        let mut fits = vec![false; self.read.len()];
        for (row, hint) in fitting {
            // A row that was not read again still has the words of its earlier hint, so it does not count.
            fits[*row as usize] = self.read[*row as usize].as_ptr() == *hint;
        }
        let found = self.index.search(terms, fitting.len(), |row| fits[row as usize]);
        found.into_iter().map(|relevant| (relevant.text, relevant)).collect()
    }

    /// Reads new hints, and removes the words of hints that are gone.
    fn follow_store(&mut self, store: &HintStore, fitting: &[FittingRow]) {
        let rows = fitting.iter().map(|(row, _)| *row as usize + 1).fold(0, usize::max);
        if rows > self.read.len() {
            self.read.resize(rows, Weak::new());
        }
        let gone = store.count_gone();
        if std::mem::replace(&mut self.gone, gone) != gone {
            for (row, read) in (0..).zip(&mut self.read) {
                if read.strong_count() == 0 && !read.ptr_eq(&Weak::new()) {
                    *read = Weak::new();
                    self.index.remove_text(row);
                }
            }
        }
        let is_new = |(row, hint): &&FittingRow| self.read[*row as usize].as_ptr() != *hint;
        let unread: Vec<_> = fitting.iter().filter(is_new).map(|(row, _)| *row).collect();
        self.is_behind = unread.len() > MAX_READ;
        for (row, hint) in store.hints_of(unread.into_iter().take(MAX_READ)) {
            // The row may hold another hint by now. Secret hints are never indexed.
            if !hint.is_secret() {
                self.read[row as usize] = Arc::downgrade(&hint);
                self.index.set_text(row, weigh_fields(&hint).iter().map(|(text, weight)| (&**text, *weight)));
            }
        }
    }
}

impl Nudge {
    /// Reads more hints into the index, if an earlier call had too many to read.
    pub(crate) fn read_words(&self) {
        if self.words.lock().is_behind {
            let context = Context::default();
            let all = HintFilter {
                include_ineligible: true,
                no_secrets: true,
                ..HintFilter::for_context(&context, self.now())
            };
            let (fitting, _) = self.store.find_fitting(&all, StepBudget::of_a_call());
            self.words.lock().follow_store(&self.store, &fitting);
        }
    }
}

/// The words that a question shares with hints, by the row of each hint.
pub(super) type ByRow<'a> = HashMap<u32, RelevantText<'a>, RandomState>;

/// The texts of a hint, each with its weight.
fn weigh_fields(hint: &Hint) -> Vec<(Cow<'_, str>, f32)> {
    let mut fields: Vec<(Cow<'_, str>, f32)> = Vec::new();
    for (name, weight) in [(hint.component(), COMPONENT), (hint.key(), NAME)] {
        fields.push((name.into(), weight));
        let whole = fold_identifier(name);
        if whole.len() < name.len() {
            // A user may write `httpproxy` instead of `http-proxy`.
            fields.push((whole.into(), NAME));
        }
    }
    fields.extend(hint.tags().filter(|tag| *tag != FIX).map(|tag| (tag.into(), NAME)));
    let text = hint.text();
    let end = text.floor_char_boundary(MAX_VALUE_BYTES.min(text.len()));
    fields.push((text[..end].into(), if hint.value().is_command() { COMMAND } else { PROSE }));
    fields.extend(hint.reason().map(|reason| (reason.into(), REASON)));
    fields
}

#[cfg(test)]
mod tests {
    use nudge_core::suggest::{SuggestEvent, SuggestParams};
    use serde_json::json;

    use crate::{Nudge, SetHint};

    /// Returns the keys of the hints that the store suggests for a prompt.
    fn told(store: &Nudge, prompt: &str) -> Vec<String> {
        let params = json!({"event": "prompt", "prompt": prompt});
        let params: SuggestParams = serde_json::from_value(params).unwrap();
        assert_eq!(params.event, SuggestEvent::Prompt);
        let told = store.suggest(params).unwrap();
        told.suggestions.iter().map(|told| told.item.hint.key().to_owned()).collect()
    }

    #[test]
    fn one_word_of_a_long_sentence_may_be_an_accident() {
        let store = Nudge::default();
        store.set(SetHint::new("sign", "xpi", "web-ext sign --channel unlisted")).unwrap();
        store
            .set(SetHint::new("actes", "clauses", "le numéro d'une clause ne change jamais, même si la loi change"))
            .unwrap();
        for (prompt, expected) in [
            ("the sign-in button has to be disabled while the request is running", &[][..]),
            ("now sign the extension, please", &["xpi"]),
            ("look at sign/main.js: the button has to be disabled while the request is running", &["xpi"]),
            ("Der Knopf soll beim sign nicht mehr aktiv sein, solange die Anfrage noch arbeitet", &["xpi"]),
            ("drop the clause about the mortgage that nobody of the notaries wants", &["clauses"]),
        ] {
            assert_eq!(told(&store, prompt), expected, "{prompt}");
        }
    }

    /// A prompt with a path finds a component that is part of the path, even if the component's words carry no meaning.
    #[test]
    fn a_component_in_a_path_brings_its_hints_to_mind() {
        let store = Nudge::default();
        store.set(SetHint::new("all", "serve", "vite")).unwrap();
        assert_eq!(told(&store, "what is in all of them"), Vec::<String>::new());
        assert_eq!(told(&store, "look at all/main.c"), ["serve"]);
    }

    #[test]
    fn the_words_follow_the_store() {
        let store = Nudge::default();
        store.set(SetHint::new("api", "deploy", "make a")).unwrap();
        store.set(SetHint::new("api", "lint", "make b")).unwrap();
        assert_eq!(told(&store, "deploying"), ["deploy"]);
        store.set(SetHint::new("api", "lint", "ruff --strict")).unwrap();
        assert_eq!(told(&store, "is ruff strict?"), ["lint"]);
        assert_eq!(told(&store, "make b"), Vec::<String>::new(), "its old words are gone");
        store.delete(&serde_json::from_value(json!({"component": "api", "key": "deploy"})).unwrap()).unwrap();
        assert_eq!(told(&store, "deploying"), Vec::<String>::new());
        // The row now belongs to another hint.
        store.set(SetHint::new("web", "serve", "vite")).unwrap();
        assert_eq!((told(&store, "deploying"), told(&store, "vite")), (vec![], vec!["serve".to_owned()]));
    }
}
