//! Turns texts into vectors, so that a question finds texts with the same meaning in other words.
//!
//! Sources use a [`TextEmbedder`] and do not load models. The crate `nudge-embed` chooses the model, loads it, and
//! limits its memory and time. Without a model, sources compare words instead.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};

/// The most tokens of a prompt that are embedded. A longer prompt is cut to its end, which states the request.
const PROMPT_TOKENS: usize = 64;
/// The most characters of a prompt that are embedded.
const PROMPT_CHARS: usize = 512;
/// A model understands the whole question up to this number of tokens for each word. English prose has 1.2 to 1.4 in a
/// model made for English.
const ALL_UNDERSTOOD: f64 = 1.4;
/// A model understands nothing of the question from this number of tokens for each word on. The number was measured on
/// the tuning half of `tests/records/`.
const NOTHING_UNDERSTOOD: f64 = 2.5;
/// The number of ordinary words that are added to the words of a question, because a short question may have only long
/// words.
const MORE_WORDS: f64 = 2.0;
/// The number of sums that are computed in parallel, so that the compiler can use vector instructions.
const LANES: usize = 16;

/// A model that turns texts into vectors. The dot product of two vectors with the same [`id`](Self::id) is the cosine
/// of their angle: 1 for texts with the same meaning. Vectors with different ids cannot be compared.
///
/// ```
/// use nudge_core::embed::{TextEmbedder, LetterEmbedder, cosine};
///
/// let model: &dyn TextEmbedder = &LetterEmbedder("letters");
/// let vectors = model.embed(&["listen", "silent", "cargo"])?;
/// assert!(cosine(&vectors[0], &vectors[1]) > 0.99 && cosine(&vectors[0], &vectors[2]) < 0.1);
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
pub trait TextEmbedder: Send + Sync {
    /// Returns the name of the model and its weights, such as `all-MiniLM-L6-v2@1110a243/mean/256`. Each stored vector
    /// carries this id. Two models that make different vectors of the same text have different ids.
    fn id(&self) -> &str;

    /// Returns the count of numbers in a vector.
    fn dims(&self) -> usize;

    /// Returns the most tokens of a text that the model reads; later tokens change nothing. The count leaves out the
    /// special tokens that the model puts around a text.
    fn max_tokens(&self) -> usize;

    /// Counts all tokens of a text, for a caller that cuts texts into pieces that fit. The time grows with the length
    /// of the text. The count works before the model's large files are loaded.
    fn count_tokens(&self, text: &str) -> usize;

    /// Counts the words of a text that the model has no token for, such as words in another script. The model gives all
    /// of them the same token, so it takes any two of them for equal. Signs without a letter do not count. 0 unless the
    /// model says otherwise.
    fn count_unknown(&self, _text: &str) -> usize {
        0
    }

    /// Returns a vector of length 1 for each text, in order, even for an empty text. A text takes milliseconds to
    /// tenths of a second, by its length, so do not call this on an event loop or under a lock.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the model cannot compute, for example because memory is missing.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// The state of the model.
#[derive(Clone)]
pub enum ModelState {
    /// This machine has no model. Every function compares words instead, and its answer says so.
    Absent,
    /// The model is being loaded in the background; the next call may get it.
    Loading,
    /// The loaded model. Drop it after the present work: the memory is freed when its last holder drops it.
    Ready(Arc<dyn TextEmbedder>),
    /// The model cannot be loaded; the error says why. The provider tries again when the files have changed, and after
    /// a minute.
    Failed(Error),
}

impl ModelState {
    /// Returns the name of the state for people: `absent`, `loading`, `ready` or `failed`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Loading => "loading",
            Self::Ready(_) => "ready",
            Self::Failed(_) => "failed",
        }
    }

    /// Returns the model if it is ready.
    pub fn into_embedder(self) -> Option<Arc<dyn TextEmbedder>> {
        match self {
            Self::Ready(model) => Some(model),
            _ => None,
        }
    }
}

/// Owns the embedding model: loads it on first use, drops it when idle.
pub trait ModelProvider: Send + Sync {
    /// Returns the model. Loads it if it is not in memory, and waits at most `wait` for that.
    fn get(&self, wait: Duration) -> ModelState;

    /// Returns the present state without loading anything. Before the first call of
    /// [`get`](Self::get) the state is `Loading`.
    fn get_loaded(&self) -> ModelState;

    /// Drops the model if it is idle, and returns true if it dropped the model. The server calls this every few
    /// seconds.
    fn drop_idle(&self) -> bool {
        false
    }
}

impl dyn ModelProvider {
    /// Returns the model for background work; `None` when there is nothing to do. A model that is not in memory is
    /// loaded only when `is_missing` returns true. Without a model, `is_missing` is not called.
    ///
    /// A model in memory is returned without a call of `get`. Each `get` keeps the model in memory for longer, and
    /// background work runs again and again.
    /// # Errors
    /// The errors of `is_missing`.
    pub fn for_work(&self, wait: Duration, is_missing: impl FnOnce() -> Result<bool>) -> Result<Option<ModelState>> {
        match self.get_loaded() {
            found @ (ModelState::Ready(_) | ModelState::Absent) => Ok(Some(found)),
            _ if is_missing()? => Ok(Some(self.get(wait))),
            _ => Ok(None),
        }
    }
}

/// A provider that never has a model.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoModels;

impl ModelProvider for NoModels {
    fn get(&self, _: Duration) -> ModelState {
        ModelState::Absent
    }

    fn get_loaded(&self) -> ModelState {
        ModelState::Absent
    }
}

/// A provider with a model that is already in memory.
#[derive(Clone)]
pub struct LoadedModel(pub Arc<dyn TextEmbedder>);

impl ModelProvider for LoadedModel {
    fn get(&self, _: Duration) -> ModelState {
        ModelState::Ready(Arc::clone(&self.0))
    }

    fn get_loaded(&self) -> ModelState {
        self.get(Duration::ZERO)
    }
}

/// A model for tests, with the given id. It treats texts as equal when they have the same letters equally often.
#[derive(Debug, Clone, Copy)]
pub struct LetterEmbedder(pub &'static str);

impl TextEmbedder for LetterEmbedder {
    fn id(&self) -> &str {
        self.0
    }

    fn dims(&self) -> usize {
        26
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let embed_text = |text: &str| {
            let mut counts = [0.0_f32; 26];
            let letters = text.bytes().filter(u8::is_ascii_lowercase);
            letters.for_each(|byte| counts[usize::from(byte - b'a')] += 1.0);
            let length = cosine(&counts, &counts).sqrt().max(1.0);
            counts.map(|count| count / length).to_vec()
        };
        Ok(texts.iter().map(|text| embed_text(text)).collect())
    }
}

/// Returns the cosine of the angle between two vectors of length 1: the sum of their products. Every machine adds the
/// products in the same order, so the result is the same everywhere.
///
/// ```
/// use nudge_core::embed::cosine;
///
/// assert_eq!(cosine(&[1.0, 0.0], &[0.6, 0.8]), 0.6);
/// ```
#[inline]
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// The vector of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionVector {
    /// The vector, of length 1.
    pub vector: Vec<f32>,
    /// The share of the question that the model understands, 0 to 1.
    pub understood: f64,
}

impl QuestionVector {
    /// Makes the vector of a question with `model`.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the model fails.
    pub fn from_text(text: &str, model: &dyn TextEmbedder) -> Result<Self> {
        let understood = understood_share(model, text, text.split_whitespace().count());
        let vector = model.embed(&[text])?.into_iter().next();
        vector.map(|vector| Self { vector, understood }).ok_or_else(|| Error::unavailable("the model gave no vector"))
    }

    /// Makes the vector of a question with the model of `models`. Waits at most `wait` for the model.
    ///
    /// # Errors
    /// The reason why there is no vector: a sentence for people, without its full stop.
    pub fn embed_text(
        text: &str,
        models: &dyn ModelProvider,
        wait: Duration,
    ) -> Result<(Arc<dyn TextEmbedder>, Self), String> {
        match models.get(wait) {
            ModelState::Ready(model) => match Self::from_text(text, &*model) {
                Ok(asked) => Ok((model, asked)),
                Err(error) => Err(error.message().to_owned()),
            },
            ModelState::Absent => Err("no embedding model: nudge model add".to_owned()),
            ModelState::Loading => Err("the embedding model is being loaded".to_owned()),
            ModelState::Failed(error) => Err(error.message().to_owned()),
        }
    }

    /// Makes the vector of the end of a prompt, about 64 tokens: a long prompt states its request there, and a longer
    /// text takes more time.
    ///
    /// # Errors
    /// The errors of [`from_text`](Self::from_text).
    pub fn of_prompt(prompt: &str, model: &dyn TextEmbedder) -> Result<Self> {
        Self::from_text(end_of(prompt, model), model)
    }
}

/// Returns the end of a prompt, short enough for [`PROMPT_TOKENS`] and [`PROMPT_CHARS`].
fn end_of<'a>(prompt: &'a str, model: &dyn TextEmbedder) -> &'a str {
    let mut end = prompt.trim();
    let mut chars = PROMPT_CHARS;
    loop {
        let from = end.char_indices().rev().nth(chars - 1).map_or(0, |(i, _)| i);
        // The cut moves to the next space, if there is one, because half a word can mean something else.
        let cut = &end[from..];
        end = if from == 0 { cut } else { cut.split_once(char::is_whitespace).map_or(cut, |(_, rest)| rest) };
        if model.count_tokens(end) <= PROMPT_TOKENS || chars == 1 {
            return end;
        }
        chars = (end.chars().count() * 3 / 4).max(1);
    }
}

/// Returns the share of a text that a model understands, 0 to 1, by the number of tokens that the model makes of the
/// text's words. A token that stands for an unknown word is not understood.
///
/// ```
/// use nudge_core::embed::{LetterEmbedder, understood_share};
///
/// assert_eq!(understood_share(&LetterEmbedder("letters"), "each word is a token", 5), 1.0);
/// ```
#[allow(clippy::cast_precision_loss, reason = "no text has 2^53 words")]
pub fn understood_share(model: &dyn TextEmbedder, text: &str, words: usize) -> f64 {
    let tokens = model.count_tokens(text);
    share_by_tokens(tokens, words) * (1.0 - model.count_unknown(text) as f64 / tokens.max(1) as f64)
}

/// Returns the share of a text that a model understands if it knows all words: fewer tokens are understood better.
#[allow(clippy::cast_precision_loss, reason = "no text has 2^53 words")]
fn share_by_tokens(tokens: usize, words: usize) -> f64 {
    let a_word = (tokens as f64 + MORE_WORDS * ALL_UNDERSTOOD) / (words as f64 + MORE_WORDS);
    ((NOTHING_UNDERSTOOD - a_word) / (NOTHING_UNDERSTOOD - ALL_UNDERSTOOD)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a token for each word, and one for each letter that is not ASCII.
    struct Counts;

    impl TextEmbedder for Counts {
        fn id(&self) -> &'static str {
            "counts"
        }
        fn dims(&self) -> usize {
            1
        }
        fn max_tokens(&self) -> usize {
            6
        }
        fn count_tokens(&self, text: &str) -> usize {
            text.split_whitespace().count() + text.chars().filter(|c| !c.is_ascii()).count()
        }
        fn count_unknown(&self, text: &str) -> usize {
            text.split_whitespace().filter(|word| word.starts_with('?')).count()
        }
        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
            Ok(vec![vec![1.0]; texts.len()])
        }
    }

    /// A provider in a given state, which counts the calls of `get`.
    struct Asked(ModelState, std::sync::atomic::AtomicU32);

    impl ModelProvider for Asked {
        fn get(&self, _: Duration) -> ModelState {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            ModelState::Loading
        }

        fn get_loaded(&self) -> ModelState {
            self.0.clone()
        }
    }

    #[test]
    fn work_asks_for_no_model_that_is_there_or_has_nothing_to_do() {
        let ready = || ModelState::Ready(Arc::new(Counts));
        for (there, is_missing, model, asked, looked) in [
            (ready(), false, Some("ready"), 0, 0),
            (ready(), true, Some("ready"), 0, 0),
            (ModelState::Loading, true, Some("loading"), 1, 1),
            (ModelState::Loading, false, None, 0, 1),
            (ModelState::Absent, true, Some("absent"), 0, 0),
        ] {
            let (what, mut looks) = (format!("{} {is_missing}", there.state()), 0);
            let models = Asked(there, 0.into());
            let look = || {
                looks += 1;
                Ok(is_missing)
            };
            let found = (&models as &dyn ModelProvider).for_work(Duration::ZERO, look).unwrap();
            assert_eq!(found.map(|model| model.state()), model, "{what}");
            assert_eq!((models.1.into_inner(), looks), (asked, looked), "{what}");
        }
    }

    #[test]
    fn of_a_long_prompt_the_end_is_understood() {
        for whole in ["", "fix it", "  fix it\n"] {
            assert_eq!(end_of(whole, &Counts), whole.trim());
        }
        let words: Vec<_> = (0..500).map(|number| format!("w{number}")).collect();
        let text = words.join(" ");
        let end = end_of(&text, &Counts);
        assert!(
            text.ends_with(end) && (PROMPT_TOKENS / 2..=PROMPT_TOKENS).contains(&Counts.count_tokens(end)),
            "{end}"
        );
        assert!(end.starts_with('w'), "{end}");
        // Tests a text without spaces, and a text with a word that is longer than the limit.
        let text = "ä".repeat(1_000);
        assert!((1..=PROMPT_TOKENS).contains(&Counts.count_tokens(end_of(&text, &Counts))));
        assert_eq!(end_of(&format!("{} fix it", "x".repeat(1_000)), &Counts), "fix it");
    }

    #[test]
    fn more_pieces_are_understood_less() {
        let share_of = |tokens| share_by_tokens(tokens, 10);
        for (tokens, expected) in [(0, 1.0), (14, 1.0), (28, 0.0), (1_000, 0.0)] {
            assert!((share_of(tokens) - expected).abs() < 1e-9, "{tokens}");
        }
        assert!((14..27).all(|tokens| share_of(tokens) > share_of(tokens + 1)));
        assert!((0.5..0.6).contains(&share_by_tokens(39, 20)));
        // A single word proves little: three tokens for it still count as more than half understood.
        assert!(share_by_tokens(3, 1) > 0.5 && share_by_tokens(22, 1) < f64::EPSILON);
    }

    #[test]
    fn unknown_words_are_not_understood() {
        for (text, expected) in [("fix it", 1.0), ("?a ?b", 0.0), ("fix it ?a ?b", 0.5), ("", 1.0)] {
            let found = QuestionVector::from_text(text, &Counts).unwrap().understood;
            assert!((found - expected).abs() < 1e-9, "{text}: {found}");
        }
    }
}
