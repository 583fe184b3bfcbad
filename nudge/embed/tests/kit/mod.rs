//! Makes models of a few kilobytes: two layers with random weights, and a tokenizer that splits most words into
//! letters.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

pub const HIDDEN: usize = 16;
pub const LAYERS: usize = 2;
pub const HEADS: usize = 2;
pub const INTERMEDIATE: usize = 32;
pub const POSITIONS: usize = 40;
/// Largest number of tokens of a text, including two special tokens.
pub const TOKENS: usize = 24;

/// The words that are one token each. The tokenizer splits all other words into letters.
const WORDS: [&str; 6] = ["build", "fails", "header", "two", "eggs", "milk"];
const MARKS: [&str; 4] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"];

/// A model that a test may change before it writes the files.
#[derive(Clone)]
pub struct Tiny {
    pub config: Value,
    pub tokenizer: Value,
    pub tensors: HashMap<String, (Vec<usize>, Vec<f32>)>,
    pub kind: Dtype,
    /// Further files of the model: name and text.
    pub others: Vec<(&'static str, String)>,
}

impl Tiny {
    pub fn new(seed: u64) -> Self {
        let letters: Vec<char> = ('a'..='z').chain('0'..='9').chain(".,!?".chars()).collect();
        let spelt = letters.iter().map(char::to_string).chain(letters.iter().map(|letter| format!("##{letter}")));
        let vocabulary: Vec<String> = MARKS.iter().chain(&WORDS).map(|&word| word.to_owned()).chain(spelt).collect();
        let ids: HashMap<&str, usize> = vocabulary.iter().enumerate().map(|(id, word)| (word.as_str(), id)).collect();
        let special = |id: usize| json!({"id": id, "content": MARKS[id], "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false});
        let template = |id: usize| json!({"id": MARKS[id], "ids": [id], "tokens": [MARKS[id]]});
        let tokenizer = json!({
            "version": "1.0",
            // Nudge must ignore these settings of the file.
            "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
            "padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
            "added_tokens": [special(0), special(1), special(2), special(3)],
            "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"[CLS]": template(2), "[SEP]": template(3)},
            },
            "decoder": null,
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids},
        });
        let config = json!({
            "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "intermediate_size": INTERMEDIATE, "vocab_size": vocabulary.len(),
            "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": 1e-12,
        });
        let sentences = json!({"max_seq_length": TOKENS}).to_string();
        let mut tiny = Self {
            config,
            tokenizer,
            tensors: HashMap::new(),
            kind: Dtype::F32,
            others: vec![("sentence_bert_config.json", sentences)],
        };
        let mut random = Random(seed);
        for (name, rows) in [("word", vocabulary.len()), ("position", POSITIONS), ("token_type", 2)] {
            tiny.random(&mut random, &format!("embeddings.{name}_embeddings.weight"), &[rows, HIDDEN], 1.0);
        }
        tiny.layer_norm(&mut random, "embeddings.LayerNorm");
        for layer in 0..LAYERS {
            let layer = format!("encoder.layer.{layer}");
            for part in ["query", "key", "value"] {
                tiny.dense(&mut random, &format!("{layer}.attention.self.{part}"), HIDDEN, HIDDEN);
            }
            tiny.dense(&mut random, &format!("{layer}.attention.output.dense"), HIDDEN, HIDDEN);
            tiny.layer_norm(&mut random, &format!("{layer}.attention.output.LayerNorm"));
            tiny.dense(&mut random, &format!("{layer}.intermediate.dense"), INTERMEDIATE, HIDDEN);
            tiny.dense(&mut random, &format!("{layer}.output.dense"), HIDDEN, INTERMEDIATE);
            tiny.layer_norm(&mut random, &format!("{layer}.output.LayerNorm"));
        }
        tiny
    }

    /// Writes the model's files into a folder, and returns its path.
    pub fn write(&self, folder: &Path) -> PathBuf {
        for (name, bytes) in self.files() {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder.to_owned()
    }

    /// Returns the model's files: name and bytes.
    pub fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let others = self.others.iter().map(|(name, text)| (*name, text.clone().into_bytes()));
        let described = [("config.json", &self.config), ("tokenizer.json", &self.tokenizer)];
        let described = described.into_iter().map(|(name, value)| (name, value.to_string().into_bytes()));
        described.chain([("model.safetensors", self.weights())]).chain(others).collect()
    }

    fn weights(&self) -> Vec<u8> {
        let mut bytes: Vec<_> =
            self.tensors.iter().map(|(name, (shape, values))| (name, shape, self.packed(values))).collect();
        bytes.sort_by_key(|(name, ..)| (*name).clone());
        let views = bytes
            .iter()
            .map(|(name, shape, bytes)| (name.as_str(), TensorView::new(self.kind, (*shape).clone(), bytes).unwrap()));
        serialize(views, None).unwrap()
    }

    /// Converts numbers to the type of the file. A BF16 number is the upper half of a 32-bit number.
    fn packed(&self, values: &[f32]) -> Vec<u8> {
        match self.kind {
            Dtype::BF16 => values.iter().flat_map(|value| value.to_le_bytes()[2..].to_vec()).collect(),
            Dtype::F16 => values.iter().flat_map(|&value| half(value).to_le_bytes()).collect(),
            _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    fn dense(&mut self, random: &mut Random, name: &str, outputs: usize, inputs: usize) {
        self.random(random, &format!("{name}.weight"), &[outputs, inputs], 0.4);
        self.random(random, &format!("{name}.bias"), &[outputs], 0.1);
    }

    fn layer_norm(&mut self, random: &mut Random, name: &str) {
        self.random(random, &format!("{name}.weight"), &[HIDDEN], 0.3);
        self.tensors.get_mut(&format!("{name}.weight")).unwrap().1.iter_mut().for_each(|value| *value += 1.0);
        self.random(random, &format!("{name}.bias"), &[HIDDEN], 0.1);
    }

    fn random(&mut self, random: &mut Random, name: &str, shape: &[usize], most: f32) {
        let values = (0..shape.iter().product()).map(|_| random.next() * most).collect();
        self.tensors.insert(name.to_owned(), (shape.to_vec(), values));
    }
}

/// Converts a number to 16 bits, and cuts off the bits that do not fit. It is correct for numbers from 2^-24 to 65504.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let exponent = i32::try_from(bits >> 23 & 0xff).unwrap() - 112;
    let fraction = bits & 0x7f_ffff;
    if exponent > 0 {
        return sign | u16::try_from(exponent).unwrap() << 10 | u16::try_from(fraction >> 13).unwrap();
    }
    let shift = u32::try_from(14 - exponent).unwrap();
    sign | if shift > 24 { 0 } else { u16::try_from((fraction | 0x80_0000) >> shift).unwrap() }
}

/// Makes numbers from -1 to 1 (xorshift). The same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        f32::from(u16::try_from(self.0 >> 48).unwrap()) / 32_768.0 - 1.0
    }
}

/// Returns the cosine of two vectors of length 1.
pub fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the folder of the known model, for tests that need its weights. Without the folder it prints a note, and the
/// tests check nothing.
pub fn real_model() -> Option<PathBuf> {
    let folder = std::env::var_os("NUDGE_TEST_MODEL_DIR").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: NUDGE_TEST_MODEL_DIR names no folder; nudge/embed/tests/weights FOLDER makes one");
    }
    folder
}

/// Returns the mode of a file or folder.
#[cfg(unix)]
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}
