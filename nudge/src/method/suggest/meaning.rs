//! Computes the meanings of hints in the background. A meaning is a vector: it finds hints for prompts that use other
//! words (semantics section 10).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use nudge_core::context::Context;
use nudge_core::embed::{ModelProvider, ModelState, NoModels, TextEmbedder, cosine};
use nudge_core::steps::StepBudget;
use nudge_core::suggest::SuggestRequest;
use nudge_core::sync::Mutex;

use crate::cache::Nudge;
use crate::hint::Hint;
use crate::store::{FittingRow, HintFilter};

/// The number of hints whose vectors are computed in one batch.
const BATCH: usize = 8;
/// The most hints whose vectors are computed in one turn. A turn takes a few tenths of a second.
const MAX_MADE: usize = 64;
/// The number of bytes of a value that are embedded.
const MAX_VALUE_BYTES: usize = 400;

/// The vectors of the hints that have been embedded so far.
pub(crate) struct HintMeanings {
    models: Arc<dyn ModelProvider>,
    known: Mutex<ModelVectors>,
}

/// The vectors that one model made, by row.
#[derive(Default)]
struct ModelVectors {
    model: Box<str>,
    rows: HashMap<u32, (Weak<Hint>, Vec<f32>), RandomState>,
}

/// The cosine between each hint and the question, by row.
pub(super) type NearByRow = HashMap<u32, f64, RandomState>;

impl Default for HintMeanings {
    fn default() -> Self {
        Self::new(Arc::new(NoModels))
    }
}

impl HintMeanings {
    /// Makes an empty set of vectors. The models of `models` make the vectors.
    pub fn new(models: Arc<dyn ModelProvider>) -> Self {
        Self { models, known: Mutex::default() }
    }

    /// Returns the cosine between each hint and the question. Hints without a vector are left out; without a model, the
    /// result is empty.
    pub(super) fn find_near(&self, request: &SuggestRequest) -> NearByRow {
        let Some((model, thought)) = request.question_vector() else { return NearByRow::default() };
        let known = self.known.lock();
        if &*known.model != model.id() {
            return NearByRow::default();
        }
        let there = known.rows.iter().filter(|(_, (hint, _))| hint.strong_count() > 0);
        there.map(|(row, (_, vector))| (*row, f64::from(cosine(vector, &thought.vector)))).collect()
    }
}

impl Nudge {
    /// Computes vectors for some hints that have none, if a model is loaded. The work is slow, so it runs without a
    /// lock.
    pub(crate) fn read_meanings(&self) {
        let ModelState::Ready(model) = self.meanings.models.get_loaded() else { return };
        let context = Context::default();
        let all =
            HintFilter { include_ineligible: true, no_secrets: true, ..HintFilter::for_context(&context, self.now()) };
        let (rows, _) = self.store.find_fitting(&all, StepBudget::of_a_call());
        let missing = self.meanings.find_missing(&*model, &rows);
        let hints: Vec<_> = self.store.hints_of(missing).into_iter().filter(|(_, hint)| !hint.is_secret()).collect();
        for batch in hints.chunks(BATCH) {
            let texts: Vec<_> = batch.iter().map(|(_, hint)| to_text(hint)).collect();
            // The next turn tries a failed batch again.
            let Ok(vectors) = model.embed(&texts.iter().map(String::as_str).collect::<Vec<_>>()) else { return };
            let mut known = self.meanings.known.lock();
            for ((row, hint), vector) in batch.iter().zip(vectors) {
                known.rows.insert(*row, (Arc::downgrade(hint), vector));
            }
        }
    }

    /// Returns the number of hints that have a vector, for `nudge.status`; `None` without a model.
    pub(crate) fn count_understood(&self) -> Option<usize> {
        let is_there = matches!(self.meanings.models.get_loaded(), ModelState::Ready(_));
        is_there.then(|| self.meanings.known.lock().rows.len())
    }
}

impl HintMeanings {
    /// Returns the rows of the hints that have no vector of this model. Drops the vectors of hints that are gone.
    fn find_missing(&self, model: &dyn TextEmbedder, rows: &[FittingRow]) -> Vec<u32> {
        let mut known = self.known.lock();
        if &*known.model != model.id() {
            *known = ModelVectors { model: model.id().into(), rows: HashMap::default() };
        }
        // A deleted hint may still be in memory for `undo`, so the addresses are compared.
        let live: HashMap<u32, *const Hint, RandomState> = rows.iter().copied().collect();
        known.rows.retain(|row, (hint, _)| live.get(row) == Some(&hint.as_ptr()));
        let missing = rows.iter().map(|(row, _)| *row).filter(|row| !known.rows.contains_key(row));
        missing.take(MAX_MADE).collect()
    }
}

/// Formats a hint as a text that the model can embed.
fn to_text(hint: &Hint) -> String {
    let value = hint.text();
    let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES.min(value.len()))];
    let tags: Vec<_> = hint.tags().collect();
    let name = |name: &str| name.replace(['-', '_', '.', '/'], " ");
    let said = format!("{} {}: {value}", name(hint.component()), name(hint.key()));
    let more = [said, tags.join(", ")].into_iter().chain(hint.reason().map(str::to_owned));
    more.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(". ")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nudge_core::error::Result;

    use super::*;
    use crate::{DeleteHint, Sensitivity, SetHint};

    /// A model whose vectors have only the length of the text.
    struct Lengths;

    impl TextEmbedder for Lengths {
        fn id(&self) -> &'static str {
            "lengths"
        }

        fn dims(&self) -> usize {
            2
        }

        fn max_tokens(&self) -> usize {
            256
        }

        fn count_tokens(&self, text: &str) -> usize {
            text.len()
        }

        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
            Ok(texts.iter().map(|text| if text.len() > 40 { vec![1.0, 0.0] } else { vec![0.0, 1.0] }).collect())
        }
    }

    impl ModelProvider for Lengths {
        fn get(&self, _: Duration) -> ModelState {
            ModelState::Ready(Arc::new(Self))
        }

        fn get_loaded(&self) -> ModelState {
            self.get(Duration::ZERO)
        }
    }

    #[test]
    fn each_hint_but_a_secret_is_given_its_meaning() {
        assert_eq!(Nudge::default().count_understood(), None, "without a model");
        let store = Nudge::default().with_models(Arc::new(Lengths));
        let mut secret = SetHint::new("api", "token", "open sesame");
        secret.meta.sensitivity = Some(Sensitivity::Secret);
        store.set(secret).unwrap();
        store.set(SetHint::new("api", "build", "make api")).unwrap();
        store.set(SetHint::new("api", "test", "run each of the tests that are about the gateway")).unwrap();
        store.read_meanings();
        assert_eq!(store.count_understood(), Some(2));
        let vectors = |store: &Nudge| {
            let mut all: Vec<_> = store.meanings.known.lock().rows.values().map(|(_, vector)| vector.clone()).collect();
            all.sort_by(|a, b| a[0].total_cmp(&b[0]));
            all
        };
        assert_eq!(vectors(&store), [[0.0, 1.0], [1.0, 0.0]]);
        // A changed hint gets a new vector, and the vector of a deleted hint is dropped.
        store.set(SetHint::new("api", "build", "make each of the parts that the gateway consists of")).unwrap();
        let gone = DeleteHint { component: "api".into(), key: "test".into(), variant: None, all: false };
        store.delete(&gone).unwrap();
        store.read_meanings();
        assert_eq!(vectors(&store), [[1.0, 0.0]]);
    }

    #[test]
    fn a_text_has_names_as_words_and_the_beginning_of_a_value() {
        let mut hint = SetHint::new("api-gateway", "build_all", "m".repeat(MAX_VALUE_BYTES - 1) + "\u{e9}x");
        hint.meta.tags = vec!["ci".into(), "slow".into()];
        hint.meta.reason = Some("the default is wrong".into());
        let stored = Nudge::default().set(hint).unwrap();
        let value = "m".repeat(MAX_VALUE_BYTES - 1);
        let expected = format!("api gateway build all: {value}. ci, slow. the default is wrong");
        assert_eq!(to_text(&stored.hint), expected);
    }
}
