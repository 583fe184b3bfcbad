//! The words of the hints, for prompts, questions and errors.

use std::borrow::Cow;
use std::sync::{Arc, Weak};

use nudge_core::relevance::{Index, Relevant, Terms};
use nudge_core::words::identifier;

use crate::hint::Hint;
use crate::store::Found;

/// The weights of the fields. A word of a key or a tag was chosen to find the hint by; the component is also that of
/// others, so that it takes another word beside it; one of a command was chosen at least to work.
const NAME: f32 = 1.5;
const COMPONENT: f32 = 0.7;
const COMMAND: f32 = 0.8;
const PROSE: f32 = 0.6;
const REASON: f32 = 0.5;
/// Bytes of a value whose words are looked at.
const MAX_VALUE_BYTES: usize = 2 << 10;
/// The tag that marks a hint as a fix. It says what the hint is, not what it is about.
pub(super) const FIX: &str = "fix";

/// The words of the hints that somebody was told of, by row. It follows the store when it is asked: a hint whose row
/// holds another one by now is read anew. So nobody who stores something waits for it, and a store that nobody asks in
/// words has none.
#[derive(Default)]
pub(crate) struct WordIndex {
    index: Index,
    /// The hint of each row as it was read. It keeps nothing of it alive but its place in memory, by which it is known.
    read: Vec<Weak<Hint>>,
}

impl WordIndex {
    /// Returns those of `eligible` that have one of the words, by their place in it.
    pub(super) fn search(&mut self, eligible: &[Found], terms: &Terms) -> Vec<Relevant> {
        if terms.is_empty() {
            return Vec::new();
        }
        self.follow(eligible);
        let mut place_of = vec![None; self.read.len()];
        for (place, found) in eligible.iter().enumerate() {
            place_of[found.row as usize] = u32::try_from(place).ok();
        }
        let mut found = self.index.search(terms, eligible.len(), |row| place_of[row as usize].is_some());
        for relevant in &mut found {
            relevant.text = place_of[relevant.text as usize].unwrap_or_default();
        }
        found.sort_unstable_by_key(|relevant| relevant.text);
        found
    }

    /// Reads the hints that it has not read, and forgets the words of those that are gone.
    fn follow(&mut self, eligible: &[Found]) {
        for (row, read) in (0..).zip(&mut self.read) {
            if read.strong_count() == 0 && !read.ptr_eq(&Weak::new()) {
                *read = Weak::new();
                self.index.remove(row);
            }
        }
        for found in eligible {
            let (hint, row) = (&found.hint, found.row as usize);
            if row >= self.read.len() {
                self.read.resize(row + 1, Weak::new());
            }
            if self.read[row].as_ptr() != Arc::as_ptr(hint) {
                self.read[row] = Arc::downgrade(hint);
                self.index.put(found.row, fields(hint).iter().map(|(text, weight)| (&**text, *weight)));
            }
        }
    }
}

/// The texts of a hint, each with its weight.
fn fields(hint: &Hint) -> Vec<(Cow<'_, str>, f32)> {
    let mut fields: Vec<(Cow<'_, str>, f32)> = Vec::new();
    for (name, weight) in [(hint.component(), COMPONENT), (hint.key(), NAME)] {
        fields.push((name.into(), weight));
        let whole = identifier(name);
        if whole.len() < name.len() {
            // Who writes `httpproxy` means `http-proxy`.
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
    use nudge_core::suggest::{Suggest, SuggestEvent};
    use serde_json::json;

    use crate::{Nudge, SetHint};

    /// The keys that a prompt brings to mind.
    fn told(store: &Nudge, prompt: &str) -> Vec<String> {
        let params = json!({"event": "prompt", "prompt": prompt});
        let params: Suggest = serde_json::from_value(params).unwrap();
        assert_eq!(params.event, SuggestEvent::Prompt);
        let told = store.suggest(params).unwrap();
        told.suggestions.iter().map(|told| told.item.hint.key().to_owned()).collect()
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
        // The row is another hint's now.
        store.set(SetHint::new("web", "serve", "vite")).unwrap();
        assert_eq!((told(&store, "deploying"), told(&store, "vite")), (vec![], vec!["serve".to_owned()]));
    }
}
