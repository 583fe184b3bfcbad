//! The token that callers over TCP must show.

use std::fmt;

use nudge::{Error, Result};
use subtle::ConstantTimeEq;

const TOKEN_BYTES: usize = 32;
const MAX_TOKEN_BYTES: usize = 512;

/// A token. Never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the operating system gives no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = [0_u8; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            let message = format!("The system gives no random bytes for a token ({error}); set NUDGE_TOKEN.");
            Error::unavailable(message)
        })?;
        Ok(Self(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect()))
    }

    /// A given one.
    ///
    /// # Errors
    /// `E_INVALID` when it cannot stand in a header.
    pub fn fixed(text: String) -> Result<Self> {
        if (1..=MAX_TOKEN_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Self(text));
        }
        let message = format!("The token must be 1 to {MAX_TOKEN_BYTES} visible ASCII characters without spaces.");
        Err(Error::invalid(message))
    }

    /// For the files that hold it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares a text with it in constant time.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}
