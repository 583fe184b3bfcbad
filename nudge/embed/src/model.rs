//! Loads a sentence model into memory and computes vectors with it.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use nudge_core::embed::TextEmbedder;
use nudge_core::error::Error;

use crate::bert::BertNetwork;
use crate::files::ModelFiles;
use crate::tokens::ModelTokenizer;
use crate::weights::WeightTensors;
use crate::{Precision, Result, broken_model};

/// Two texts with different meanings. A model that makes the same vector for both does not work.
const UNLIKE: [&str; 2] = ["The build fails because a header is missing.", "two eggs, a cup of milk and some flour"];
/// Smallest cosine at which two vectors count as the same.
const SAME: f32 = 0.9999;

/// A BERT sentence model in memory.
///
/// For all callers together, the model computes one text at a time on its own thread. So background work leaves the
/// other processors free.
///
/// ```no_run
/// use nudge_core::embed::TextEmbedder as _;
/// use nudge_embed::{Precision, SentenceModel};
///
/// let model = SentenceModel::load("/opt/models/all-MiniLM-L6-v2".as_ref(), Precision::default())?;
/// assert_eq!((model.id(), model.dims()), ("all-MiniLM-L6-v2@1110a243/mean/256/int8", 384));
/// let vectors = model.embed(&["the tests hang", "pytest never comes back", "a new logo"])?;
/// let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum::<f32>();
/// assert!(cosine(0, 1) > cosine(0, 2));
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
pub struct SentenceModel {
    folder: PathBuf,
    id: String,
    bert: BertNetwork,
    tokens: ModelTokenizer,
}

impl SentenceModel {
    /// Loads the model in this folder, and tests it.
    ///
    /// # Errors
    /// `E_INVALID` when a file is missing or wrong (another architecture, weights of another shape, a tokenizer for
    /// another model), or when the vectors are zero, not finite, or the same for two unlike texts. `E_UNAVAILABLE` when
    /// the library that runs the neural network fails.
    pub fn load(folder: &Path, precision: Precision) -> Result<Self, Error> {
        Self::load_here(folder, precision).map_err(|fault| fault.into_error(folder))
    }

    /// Loads the model as [`load`](Self::load) does, but returns a fault without the folder, which the caller adds.
    pub(crate) fn load_here(folder: &Path, precision: Precision) -> Result<Self> {
        // The libraries may panic on damaged files that no check has found.
        catch_unwind(|| Self::load_unguarded(folder, precision))
            .unwrap_or_else(|_| Err(broken_model("cannot be loaded, because its files are not what they seem")))
    }

    fn load_unguarded(folder: &Path, precision: Precision) -> Result<Self> {
        let files = ModelFiles::read(folder)?;
        let config = files.read_config()?;
        let id = files.make_id(&config, precision);
        let tokens = ModelTokenizer::read(files.tokenizer())?;
        if tokens.count_marks() >= config.tokens {
            return Err(broken_model("leaves no room for a text between the marks of its tokenizer.json"));
        }
        let bert = BertNetwork::from_weights(config, &WeightTensors::read(files.weights())?, precision)?;
        let model = Self { folder: folder.to_owned(), id, bert, tokens };
        model.try_out()?;
        Ok(model)
    }

    /// Embeds two unlike texts and compares the vectors, because weights of the right shape need not be a working
    /// model.
    fn try_out(&self) -> Result<()> {
        let [vector, other] = UNLIKE.map(|text| self.compute_vector(text));
        let cosine: f32 = vector?.iter().zip(&other?).map(|(x, y)| x * y).sum();
        if cosine > SAME { Err(broken_model("makes the same vector of unlike texts")) } else { Ok(()) }
    }

    fn compute_vector(&self, text: &str) -> Result<Vec<f32>> {
        self.bert.embed_tokens(&self.tokens.encode(text, self.bert.config().tokens)?)
    }
}

impl TextEmbedder for SentenceModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn dims(&self) -> usize {
        self.bert.config().hidden
    }

    fn max_tokens(&self) -> usize {
        self.bert.config().tokens - self.tokens.count_marks()
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.tokens.count_tokens(text)
    }

    fn count_unknown(&self, text: &str) -> usize {
        self.tokens.count_unknown(text)
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        texts
            .iter()
            .map(|text| self.compute_vector(text))
            .collect::<Result<_>>()
            .map_err(|fault| fault.into_error(&self.folder))
    }
}
