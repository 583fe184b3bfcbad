//! Texts as the tokens of a model.

use tokenizers::Tokenizer;

use crate::{Result, broken, unusable};

/// Bytes of a text that are looked at first. Words of prose have 4 to 6, so this is enough for any model nearly always.
const FIRST_BYTES: usize = 8 * 1024;

/// The tokenizer of a model.
pub struct Tokens {
    tokenizer: Tokenizer,
    /// Marks that stand around each text.
    marks: usize,
}

impl Tokens {
    /// Reads the bytes of a `tokenizer.json`.
    ///
    /// # Errors
    /// `E_INVALID` when they cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let unreadable = |error| broken(format!("has a tokenizer.json that cannot be read ({error})"));
        let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(unreadable)?;
        // Files say how long texts were when the model was trained; `encode` knows how long they are here.
        tokenizer.with_padding(None).with_truncation(None).map_err(unreadable)?;
        let empty = tokenizer.encode_fast("", true).map_err(unreadable)?;
        Ok(Self { tokenizer, marks: empty.len() })
    }

    /// Marks that stand around each text.
    pub fn marks(&self) -> usize {
        self.marks
    }

    /// Tokens of a text, without marks.
    pub fn count(&self, text: &str) -> usize {
        // Texts that cannot be taken apart do not occur: what a model does not know is its token for that.
        self.tokenizer.encode_fast(text, false).map_or(0, |tokens| tokens.len())
    }

    /// Returns the tokens of a text with the marks, at most `max` in all.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the text cannot be taken apart.
    pub fn encode(&self, text: &str, max: usize) -> Result<Vec<u32>> {
        let mut bytes = FIRST_BYTES;
        loop {
            let part = beginning(text, bytes);
            let tokens = self.tokenizer.encode_fast(part, true);
            let tokens = tokens.map_err(|error| unusable(format!("could not take a text apart ({error})")))?;
            let tokens = tokens.get_ids();
            if tokens.len() <= max && part.len() < text.len() {
                bytes *= 4;
                continue;
            }
            return Ok(self.cut(tokens, max));
        }
    }

    /// The first tokens and the marks behind the last.
    fn cut(&self, tokens: &[u32], max: usize) -> Vec<u32> {
        if tokens.len() <= max {
            return tokens.to_vec();
        }
        let behind = self.marks / 2;
        [&tokens[..max - behind], &tokens[tokens.len() - behind..]].concat()
    }
}

/// The first bytes of a text, up to the end of a word where there is one: half a word would be another token.
fn beginning(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    let cut = text.floor_char_boundary(bytes);
    let word = text[..cut].rfind(char::is_whitespace).filter(|&end| end > cut / 2);
    &text[..word.unwrap_or(cut)]
}
