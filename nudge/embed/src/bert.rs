//! Runs a BERT model in memory: turns the tokens of a text into a vector.

use std::sync::{Arc, OnceLock};

use nudge_core::source::gives_way;
use rten::{RunOptions, ThreadPool, Value};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, NdTensorView};

use crate::config::{BertConfig, Pooling};
use crate::network;
use crate::weights::{RowTable, WeightTensors};
use crate::{Precision, Result, broken_model, unusable_model};

/// Smallest length of a text's vector before it is scaled. A shorter vector has no usable direction.
const SHORTEST: f32 = 1e-6;

/// The network of a BERT model, with the embedding tables that produce its input.
pub struct BertNetwork {
    config: BertConfig,
    /// The embedding of each token of the vocabulary.
    words: RowTable,
    /// The embedding of each position. Each already includes the embedding of token kind 0, the only kind that Nudge
    /// uses.
    positions: Vec<f32>,
    network: rten::Model,
    /// A pool of one thread, so that a caller that embeds many texts leaves the other processors free.
    threads: OnceLock<Arc<ThreadPool>>,
    /// A pool of one low-priority thread for background callers, so that prompts, which use the other pool, do not wait
    /// for them. The engine starts the thread, and a thread inherits the priority of the thread that starts it. So the
    /// first background caller, which has a low priority, makes this pool.
    threads_behind: OnceLock<Arc<ThreadPool>>,
}

impl BertNetwork {
    /// Builds the network from the weights.
    ///
    /// # Errors
    /// `E_INVALID` when a tensor is missing or has another shape than `config` says.
    pub fn from_weights(config: BertConfig, weights: &WeightTensors<'_>, precision: Precision) -> Result<Self> {
        let hidden = config.hidden;
        let words = "embeddings.word_embeddings.weight";
        let words = weights.read_rows(words, [config.vocabulary, hidden], precision)?;
        let table =
            |name: &str, rows: usize| weights.read_floats(&format!("embeddings.{name}.weight"), &[rows, hidden]);
        let mut positions = table("position_embeddings", config.positions)?;
        positions.truncate(config.tokens * hidden);
        positions.shrink_to_fit();
        let kinds = table("token_type_embeddings", config.token_kinds)?;
        for position in positions.chunks_exact_mut(hidden) {
            position.iter_mut().zip(&kinds).for_each(|(sum, kind)| *sum += kind);
        }
        let network = network::build_network(&config, weights, precision)?;
        Ok(Self { config, words, positions, network, threads: OnceLock::new(), threads_behind: OnceLock::new() })
    }

    fn threads(&self) -> &Arc<ThreadPool> {
        let threads = if gives_way() { &self.threads_behind } else { &self.threads };
        threads.get_or_init(|| Arc::new(ThreadPool::with_num_threads(1)))
    }

    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// Returns the vector of these tokens. The first and the last token are special tokens, such as `[CLS]`.
    ///
    /// # Errors
    /// `E_INVALID` when a token is not in the vocabulary, or when the vector has no direction. `E_UNAVAILABLE` when the
    /// engine fails.
    pub fn embed_tokens(&self, tokens: &[u32]) -> Result<Vec<f32>> {
        let hidden = self.config.hidden;
        let tokens = &tokens[..tokens.len().min(self.config.tokens)];
        let mut sums = self.positions[..tokens.len() * hidden].to_vec();
        for (&token, sum) in tokens.iter().zip(sums.chunks_exact_mut(hidden)) {
            let token = token as usize;
            if token >= self.config.vocabulary {
                return Err(broken_model("has a tokenizer.json with tokens that its weights do not have"));
            }
            self.words.add_row(token, sum);
        }
        let sums = NdTensor::from_data([tokens.len(), hidden], sums);
        let options = RunOptions::default().with_thread_pool(Some(self.threads().clone()));
        let result = self.network.run_one(sums.view().into(), Some(options));
        let result: Value = result.map_err(|error| unusable_model(format!("could not compute a vector ({error})")))?;
        let vectors: NdTensor<f32, 2> =
            result.try_into().map_err(|_| unusable_model("computed something else than vectors"))?;
        self.pool_vectors(vectors.view())
    }

    /// Combines the vectors of the tokens into one vector of length 1.
    fn pool_vectors(&self, vectors: NdTensorView<f32, 2>) -> Result<Vec<f32>> {
        let rows = match self.config.pooling {
            Pooling::Mean => vectors.size(0),
            Pooling::First => 1,
        };
        let mut sum = vec![0.0_f32; self.config.hidden];
        for row in 0..rows {
            let vector = vectors.slice(row);
            sum.iter_mut().zip(vector.iter()).for_each(|(sum, value)| *sum += value);
        }
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        if !length.is_finite() || length < SHORTEST {
            return Err(broken_model("makes vectors that have no direction"));
        }
        Ok(sum.into_iter().map(|value| value / length).collect())
    }
}
