//! Reads the settings of a model: `config.json`, and the files in which sentence-transformers states how the vectors of
//! tokens become one vector.

use serde::Deserialize;

use crate::{Result, broken_model};

/// Largest number of tokens of a text for any model. The memory for attention grows with the square of this number.
const MAX_TOKENS: usize = 512;
/// Largest number of tokens of a text for a model that states no limit.
const USUAL_TOKENS: usize = 256;

/// The shape of a BERT network, and the settings for its use.
#[derive(Debug, Clone, PartialEq)]
pub struct BertConfig {
    /// The number of dimensions of a vector, for a token and for a text.
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    /// The number of values between the two dense maps of a layer.
    pub intermediate: usize,
    pub vocabulary: usize,
    /// The number of positions that have an embedding. A text and its two special tokens cannot have more tokens than
    /// this.
    pub positions: usize,
    /// The number of token kinds: BERT gives a first and a second text different kinds.
    pub token_kinds: usize,
    pub epsilon: f32,
    pub pooling: Pooling,
    /// Largest number of tokens of a text that Nudge uses, including two special tokens.
    pub tokens: usize,
}

/// Says how the vectors of the tokens become the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all token vectors.
    Mean,
    /// The vector of the first token, which is the special token before the text.
    First,
}

impl Pooling {
    /// Returns the name that stands for this pooling in the id of a model.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::First => "cls",
        }
    }
}

/// The fields of `config.json` that Nudge reads.
#[derive(Deserialize)]
struct BertConfigFile {
    model_type: Option<String>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
    layer_norm_eps: f32,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
}

/// The fields of `1_Pooling/config.json` that Nudge reads.
#[derive(Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "the file has them")]
struct PoolingFile {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
}

/// The fields of `sentence_bert_config.json` that Nudge reads.
#[derive(Deserialize)]
struct SentenceBertFile {
    max_seq_length: Option<usize>,
}

impl BertConfig {
    /// Reads the contents of `config.json`, `1_Pooling/config.json` and `sentence_bert_config.json`. A model may lack
    /// the last two files.
    ///
    /// # Errors
    /// `E_INVALID` when a file is not JSON, the architecture is not BERT, or a size is out of range.
    pub fn read(config: &[u8], pooling: Option<&[u8]>, sentences: Option<&[u8]>) -> Result<Self> {
        let unreadable = |name: &str| {
            let name = name.to_owned();
            move |error: serde_json::Error| broken_model(format!("has a {name} that cannot be read ({error})"))
        };
        let bert: BertConfigFile = serde_json::from_slice(config).map_err(unreadable("config.json"))?;
        let only = |field: &str, value: &Option<String>, known: &str| match value {
            Some(value) if value != known => {
                let value = nudge_core::text::one_line(value, 40);
                Err(broken_model(format!("has {field} {value:?} in its config.json; only {known:?} can be run")))
            }
            _ => Ok(()),
        };
        let model_type = bert.model_type.or_else(|| Some(String::new()));
        only("model_type", &model_type, "bert")?;
        only("hidden_act", &bert.hidden_act, "gelu")?;
        only("position_embedding_type", &bert.position_embedding_type, "absolute")?;
        let pooling = pooling.map(serde_json::from_slice::<PoolingFile>).transpose();
        let pooling = match pooling.map_err(unreadable("1_Pooling/config.json"))? {
            None => Pooling::Mean,
            Some(pools) if pools.pooling_mode_max_tokens || pools.pooling_mode_mean_sqrt_len_tokens => {
                return Err(broken_model("makes one vector of many in a way that is neither the mean nor the first"));
            }
            Some(pools) => match (pools.pooling_mode_mean_tokens, pools.pooling_mode_cls_token) {
                (true, false) => Pooling::Mean,
                (false, true) => Pooling::First,
                _ => {
                    return Err(broken_model(
                        "does not say in 1_Pooling/config.json which one way of pooling is its own",
                    ));
                }
            },
        };
        let sentences = sentences.map(serde_json::from_slice::<SentenceBertFile>).transpose();
        let tokens = sentences.map_err(unreadable("sentence_bert_config.json"))?.and_then(|file| file.max_seq_length);
        let config = Self {
            hidden: bert.hidden_size,
            layers: bert.num_hidden_layers,
            heads: bert.num_attention_heads,
            intermediate: bert.intermediate_size,
            vocabulary: bert.vocab_size,
            positions: bert.max_position_embeddings,
            token_kinds: bert.type_vocab_size,
            epsilon: bert.layer_norm_eps,
            pooling,
            tokens: tokens.unwrap_or(USUAL_TOKENS).min(bert.max_position_embeddings).min(MAX_TOKENS),
        };
        config.check_sizes()?;
        Ok(config)
    }

    /// Refuses sizes that would cause a division by zero or use up the memory.
    fn check_sizes(&self) -> Result<()> {
        let sizes = [
            ("hidden_size", self.hidden, 4096),
            ("num_hidden_layers", self.layers, 64),
            ("num_attention_heads", self.heads, self.hidden),
            ("intermediate_size", self.intermediate, 16_384),
            ("vocab_size", self.vocabulary, 1_000_000),
            ("max_position_embeddings", self.positions, 16_384),
            ("type_vocab_size", self.token_kinds, 16),
            ("max_seq_length", self.tokens, MAX_TOKENS),
        ];
        for (name, size, max) in sizes {
            if size == 0 || size > max {
                return Err(broken_model(format!("has {name} {size} in its config; 1 to {max} can be run")));
            }
        }
        if !self.hidden.is_multiple_of(self.heads) {
            return Err(broken_model("has a hidden_size in its config.json that its heads do not divide"));
        }
        if !(self.epsilon.is_finite() && self.epsilon > 0.0) {
            return Err(broken_model("has a layer_norm_eps in its config.json that is not above 0"));
        }
        Ok(())
    }
}
