//! Turns texts into vectors, so that a question finds the same meaning in other words.
//!
//! Sources know an [`TextEmbedder`] and nothing of models: the crate that has the model decides which one it is, when it is
//! loaded and how much it may cost. There may be none, and everything works without one.

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};

/// Longest prompt that is embedded, in tokens and letters; a longer one is cut to its end, which says the request.
const PROMPT_TOKENS: usize = 64;
const PROMPT_CHARS: usize = 512;
/// Tokens a word up to which a model understands all of a question, and from which on nothing. English prose has 1.2 to
/// 1.4 in a model made for it; the second is by the half of `tests/records/` that is for tuning.
const ALL_UNDERSTOOD: f64 = 1.4;
const NOTHING_UNDERSTOOD: f64 = 2.5;
/// Words of good prose that are added to those of a question: few words may well be long ones.
const MORE_WORDS: f64 = 2.0;
/// The numbers that are summed side by side, so that a compiler makes one instruction of them.
const LANES: usize = 16;

/// A model that turns texts into vectors. Two vectors of the same [`id`](Self::id) are compared by their dot product,
/// which is the cosine of their angle: 1 for texts that say the same. Vectors of two ids have nothing to do with each
/// other.
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
    /// Returns the name of the model and its weights, such as `all-MiniLM-L6-v2@1110a243/mean/256`. It is kept with
    /// every vector, and differs whenever the same text would give another vector.
    fn id(&self) -> &str;

    /// Numbers in a vector.
    fn dims(&self) -> usize;

    /// Returns the most tokens of a text that count; tokens after them change nothing. Marks that the model puts around
    /// a text are not among them.
    fn max_tokens(&self) -> usize;

    /// Counts all tokens of a text, for a caller that cuts texts into pieces that fit. It takes time in proportion to
    /// the text, and needs none of the model's large parts.
    fn count_tokens(&self, text: &str) -> usize;

    /// Returns a vector of length 1 for each text, in order. An empty text has one, too. It takes milliseconds to
    /// tenths of a second for each text, as long as it is: not for an event loop, nor under a lock.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the model cannot compute, such as for want of memory.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// The state of the model, as a caller gets it.
#[derive(Clone)]
pub enum ModelState {
    /// There is none on this machine; everything works by words, and says so.
    Absent,
    /// It is being loaded, in the background; the next caller may get it.
    Loading,
    /// The loaded model. Keep it for the work at hand, not longer: it is dropped when the last holder lets go.
    Ready(Arc<dyn TextEmbedder>),
    /// It cannot be loaded; the error says why. It is tried again when its files have changed, and after a minute.
    Failed(Error),
}

impl ModelState {
    /// As it is shown: `absent`, `loading`, `ready` or `failed`.
    pub fn state(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Loading => "loading",
            Self::Ready(_) => "ready",
            Self::Failed(_) => "failed",
        }
    }

    /// The model, where it is ready.
    pub fn into_embedder(self) -> Option<Arc<dyn TextEmbedder>> {
        match self {
            Self::Ready(model) => Some(model),
            _ => None,
        }
    }
}

/// Owns the embedding model: loads it on first use, drops it when idle.
pub trait ModelProvider: Send + Sync {
    /// Returns the model. A model that is not in memory is loaded, with a wait of at most `wait`.
    fn get(&self, wait: Duration) -> ModelState;

    /// Returns the present state without loading anything: it is also `Loading` for a model that no caller has asked
    /// for.
    fn get_loaded(&self) -> ModelState;

    /// Drops an idle model; returns true when it did. Called every few seconds.
    fn drop_idle(&self) -> bool {
        false
    }
}

impl dyn ModelProvider {
    /// Returns the model for background work, `None` when there is nothing to do. A model in memory is used without a
    /// request for it: such work comes again and again, and a request keeps a model from being dropped. A model that is
    /// not in memory is loaded only when something `is_missing`; without a model, `is_missing` is not called.
    ///
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

/// No model, ever.
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

/// A model that is there from the beginning.
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

/// Treats texts as the same when they have the same letters as often; its id is the given name. For tests.
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

/// The cosine of the angle between two vectors of length 1: the sum of their products, in the same order on every machine.
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

/// A question as a vector of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionVector {
    /// The vector, of length 1.
    pub vector: Vec<f32>,
    /// How much of it the model understands, 0 to 1.
    pub understood: f64,
}

impl QuestionVector {
    /// Has a model make a vector of a question.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when it fails.
    pub fn from_text(text: &str, model: &dyn TextEmbedder) -> Result<Self> {
        let understood = understood_share(model.count_tokens(text), text.split_whitespace().count());
        let vector = model.embed(&[text])?.into_iter().next();
        vector.map(|vector| Self { vector, understood }).ok_or_else(|| Error::unavailable("the model gave no vector"))
    }

    /// Has the model that there is, waited for at most so long, make a vector of a question; where there is none, why.
    ///
    /// # Errors
    /// A sentence for people, without its stop.
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

    /// Has a model make a vector of the end of a prompt, about 64 tokens, where a long one asks: the longer the text,
    /// the longer it takes.
    ///
    /// # Errors
    /// As [`from_text`](Self::from_text).
    pub fn of_prompt(prompt: &str, model: &dyn TextEmbedder) -> Result<Self> {
        Self::from_text(end_of(prompt, model), model)
    }
}

/// The end of a prompt, as much as its meaning is made of.
fn end_of<'a>(prompt: &'a str, model: &dyn TextEmbedder) -> &'a str {
    let mut end = prompt.trim();
    let mut chars = PROMPT_CHARS;
    loop {
        let from = end.char_indices().rev().nth(chars - 1).map_or(0, |(i, _)| i);
        // A word that is cut in two is another one, where there are spaces at all.
        let cut = &end[from..];
        end = if from == 0 { cut } else { cut.split_once(char::is_whitespace).map_or(cut, |(_, rest)| rest) };
        if model.count_tokens(end) <= PROMPT_TOKENS || chars == 1 {
            return end;
        }
        chars = (end.chars().count() * 3 / 4).max(1);
    }
}

/// Returns the share of a question that a model understands, 0 to 1. It depends on the question's words and on the
/// tokens that the model makes of them.
///
/// ```
/// use nudge_core::embed::understood_share;
///
/// assert_eq!(understood_share(8, 7), 1.0);
/// assert!((0.5..0.6).contains(&understood_share(39, 20)));
/// // Of one word, its pieces say little.
/// assert!(understood_share(3, 1) > 0.5);
/// assert_eq!(understood_share(22, 1), 0.0);
/// ```
#[allow(clippy::cast_precision_loss, reason = "no text has 2^53 words")]
pub fn understood_share(tokens: usize, words: usize) -> f64 {
    let a_word = (tokens as f64 + MORE_WORDS * ALL_UNDERSTOOD) / (words as f64 + MORE_WORDS);
    ((NOTHING_UNDERSTOOD - a_word) / (NOTHING_UNDERSTOOD - ALL_UNDERSTOOD)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token for each word, and for each letter that is not ASCII.
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
        fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
            Ok(vec![vec![1.0]; texts.len()])
        }
    }

    /// Is in memory, on the disk, or not there, and counts who asks for it.
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
        // Without spaces, and with one word that is longer than all that counts.
        let text = "ä".repeat(1_000);
        assert!((1..=PROMPT_TOKENS).contains(&Counts.count_tokens(end_of(&text, &Counts))));
        assert_eq!(end_of(&format!("{} fix it", "x".repeat(1_000)), &Counts), "fix it");
    }

    #[test]
    fn more_pieces_are_understood_less() {
        let share_of = |tokens| understood_share(tokens, 10);
        for (tokens, expected) in [(0, 1.0), (14, 1.0), (28, 0.0), (1_000, 0.0)] {
            assert!((share_of(tokens) - expected).abs() < 1e-9, "{tokens}");
        }
        assert!((14..27).all(|tokens| share_of(tokens) > share_of(tokens + 1)));
    }
}
