//! Splits texts into the tokens of a model by its tokenizer.

use serde::Deserialize;
use serde_json::Value;
use tokenizers::Tokenizer;

use crate::{Result, broken_model, unusable_model};

/// Number of bytes of a text that are encoded first. A word of prose has 4 to 6 bytes, so they nearly always yield as
/// many tokens as any model allows.
const FIRST_BYTES: usize = 8 * 1024;

/// Largest factor by which all steps of a normalizer together may lengthen a text. Known normalizers only add or
/// replace a character. In a test, thirty steps that each doubled a text filled 2.5 GB.
const MAX_GROWTH: usize = 64;
/// Largest number of steps of a normalizer, and of pieces of a template.
const MAX_STEPS: usize = 64;

/// The parts of a `tokenizer.json` that Nudge reads itself: those that may make a text longer, and the name of the token
/// for unknown words.
#[derive(Deserialize)]
struct TokenizerParts {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    model: Value,
}

/// The tokenizer of a model.
pub struct ModelTokenizer {
    tokenizer: Tokenizer,
    /// The number of special tokens, such as `[CLS]`, that the tokenizer adds to each text.
    marks: usize,
    /// The token that stands for all unknown words, if the tokenizer has one.
    unknown: Option<u32>,
}

impl ModelTokenizer {
    /// Reads the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    /// `E_INVALID` when the bytes cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let unreadable = |error| broken_model(format!("has a tokenizer.json that cannot be read ({error})"));
        let parts: TokenizerParts = serde_json::from_slice(bytes).map_err(|error| unreadable(error.into()))?;
        let mut steps = 0;
        let fits = compute_growth(&parts.normalizer, &mut steps).is_some_and(|growth| growth <= MAX_GROWTH)
            && steps <= MAX_STEPS
            && has_short_templates(&parts.post_processor);
        if !fits {
            return Err(broken_model("has a tokenizer.json that makes texts longer without end"));
        }
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(unreadable)?;
        let name = parts.model.get("unk_token").and_then(Value::as_str);
        let number = parts.model.get("unk_id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
        let unknown = name.and_then(|name| tokenizer.token_to_id(name)).or(number);
        // The file states the limits that applied in training. `encode` applies Nudge's own limit instead.
        tokenizer.with_padding(None).with_truncation(None).map_err(unreadable)?;
        let empty = tokenizer.encode_fast("", true).map_err(unreadable)?;
        Ok(Self { tokenizer, marks: empty.len(), unknown })
    }

    /// Returns the number of special tokens that the tokenizer adds to each text.
    pub fn count_marks(&self) -> usize {
        self.marks
    }

    /// Counts the tokens of a text, without special tokens.
    pub fn count_tokens(&self, text: &str) -> usize {
        // No error can occur here, because the model has a token for unknown text.
        self.tokenizer.encode_fast(text, false).map_or(0, |tokens| tokens.len())
    }

    /// Counts the tokens of a text that stand for an unknown word. A sign without a letter, such as an emoji, is no word.
    pub fn count_unknown(&self, text: &str) -> usize {
        let Some(unknown) = self.unknown else { return 0 };
        let Ok(tokens) = self.tokenizer.encode(text, false) else { return 0 };
        let places = tokens.get_ids().iter().zip(tokens.get_offsets()).filter(|(token, _)| **token == unknown);
        let words = places.filter_map(|(_, &(from, to))| text.get(from..to));
        words.filter(|word| word.contains(char::is_alphabetic)).count()
    }

    /// Returns the tokens of a text with the special tokens, at most `max` in all.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the tokenizer fails.
    pub fn encode(&self, text: &str, max: usize) -> Result<Vec<u32>> {
        let mut bytes = FIRST_BYTES;
        loop {
            let part = take_beginning(text, bytes);
            let tokens = self.tokenizer.encode_fast(part, true);
            let tokens = tokens.map_err(|error| unusable_model(format!("could not take a text apart ({error})")))?;
            let tokens = tokens.get_ids();
            if tokens.len() <= max && part.len() < text.len() {
                bytes *= 4;
                continue;
            }
            return Ok(self.cut_tokens(tokens, max));
        }
    }

    /// Cuts the tokens to `max`. Keeps the first tokens, and the special tokens at the end.
    fn cut_tokens(&self, tokens: &[u32], max: usize) -> Vec<u32> {
        if tokens.len() <= max {
            return tokens.to_vec();
        }
        let behind = self.marks / 2;
        [&tokens[..max - behind], &tokens[tokens.len() - behind..]].concat()
    }
}

/// Returns the largest factor by which a normalizer may lengthen a text; `None` if the factor overflows or the text to
/// prepend is too long. The function adds the number of steps to `steps`.
fn compute_growth(normalizer: &Value, steps: &mut usize) -> Option<usize> {
    *steps += 1;
    let bytes = |name: &str| normalizer.get(name).and_then(Value::as_str).map_or(0, str::len);
    match normalizer.get("type").and_then(Value::as_str) {
        Some("Sequence") => {
            let parts = normalizer.get("normalizers").and_then(Value::as_array);
            parts.into_iter().flatten().try_fold(1_usize, |all, part| all.checked_mul(compute_growth(part, steps)?))
        }
        Some("Replace") => {
            let exact = normalizer.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
            match exact.map(str::len).filter(|bytes| *bytes > 0) {
                Some(exact) => Some(bytes("content").div_ceil(exact).max(1)),
                // A pattern may match a single byte, or the empty text between two bytes.
                None => bytes("content").checked_add(1),
            }
        }
        // The normalizer adds this text only once, at the front, so it does not count as a factor.
        Some("Prepend") => Some(1).filter(|_| bytes("prepend") <= MAX_GROWTH),
        _ => Some(1),
    }
}

/// Returns true if the template has few pieces. Each piece may insert the whole text again.
fn has_short_templates(processor: &Value) -> bool {
    let is_short = |name: &str| processor.get(name).and_then(Value::as_array).is_none_or(|all| all.len() <= MAX_STEPS);
    let within = processor.get("processors").and_then(Value::as_array);
    is_short("single")
        && is_short("pair")
        && within.is_none_or(|all| all.len() <= MAX_STEPS && all.iter().all(has_short_templates))
}

/// Returns the first `bytes` bytes of a text, or fewer. It cuts after a word if possible, because half a word has other
/// tokens.
fn take_beginning(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let cut = text.floor_char_boundary(bytes);
    let word = text[..cut].rfind(char::is_whitespace).filter(|&end| end > cut / 2);
    &text[..word.unwrap_or(cut)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(normalizer: &Value, template: usize) -> Result<ModelTokenizer> {
        let piece = json!({"Sequence": {"id": "A", "type_id": 0}});
        let bytes = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "pre_tokenizer": null,
            "decoder": null, "normalizer": normalizer,
            "post_processor": {"type": "TemplateProcessing", "single": vec![piece.clone(); template],
              "pair": [piece, {"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {}},
            "model": {"type": "WordLevel", "vocab": {"a": 0, "[UNK]": 1}, "unk_token": "[UNK]"},
        });
        ModelTokenizer::read(bytes.to_string().as_bytes())
    }

    #[test]
    fn a_word_that_the_tokenizer_does_not_know_is_counted() {
        let tokenizer = read(&Value::Null, 1).unwrap();
        let counts = ["a", "ข้อมูล", "🚀", ""].map(|text| tokenizer.count_unknown(text));
        assert_eq!(counts, [0, 1, 0, 0]);
    }

    #[test]
    fn a_tokenizer_that_makes_texts_longer_without_end_is_refused() {
        let double = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
        let by_pattern = json!({"type": "Replace", "pattern": {"Regex": "."}, "content": "a".repeat(100)});
        let sequence =
            |part: &Value, count: usize| json!({"type": "Sequence", "normalizers": vec![part.clone(); count]});
        assert_eq!(read(&sequence(&double, 3), 1).unwrap().encode("a", 100).unwrap(), [1]);
        read(&Value::Null, 1).unwrap();
        for (normalizer, template) in [
            (sequence(&double, 30), 1),
            (sequence(&sequence(&double, 6), 5), 1),
            (sequence(&json!({"type": "Lowercase"}), 100), 1),
            (by_pattern, 1),
            (json!({"type": "Prepend", "prepend": "a".repeat(1_000)}), 1),
            (Value::Null, 1_000),
        ] {
            let refused = read(&normalizer, template).err().unwrap();
            assert!(format!("{refused:?}").contains("makes texts longer without end"), "{refused:?}");
        }
    }
}
