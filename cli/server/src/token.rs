//! The access token that callers over TCP must send.

use std::fmt;
use std::fs::Metadata;
use std::io::Read as _;
use std::path::Path;

use nudge::{Error, Result};
use nudge_os::foreign::{self, LinkPolicy};
use subtle::ConstantTimeEq;

const TOKEN_BYTES: usize = 32;
/// The least bytes of an accepted token; a shorter token could be guessed.
const MIN_TOKEN_BYTES: usize = 16;
const MAX_TOKEN_BYTES: usize = 512;
/// The most bytes that are read from a token's file, which may have white space around the token.
const MAX_FILE_BYTES: u64 = 4 << 10;

/// An access token. The `Debug` output never contains the text.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// Makes a new random token.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the operating system gives no random bytes.
    pub fn new_random() -> Result<Self> {
        let mut bytes = [0_u8; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            let message = format!("The system gives no random bytes for a token ({error}); set NUDGE_TOKEN.");
            Error::unavailable(message)
        })?;
        Ok(Self(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect()))
    }

    /// Makes a token from a given text.
    ///
    /// # Errors
    /// `E_INVALID` when the text is too short or too long, or not allowed in a header.
    pub fn from_text(text: String) -> Result<Self> {
        if (MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Ok(Self(text));
        }
        Err(Error::invalid(format!(
            "The token must be {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES} visible ASCII characters without spaces."
        )))
    }

    /// Reads a token from a file that only its owner can read.
    ///
    /// # Errors
    /// `E_INVALID` when the file cannot be read, is no regular file, or is open to other users; the errors of
    /// [`AccessToken::from_text`].
    pub fn from_file(path: &Path) -> Result<Self> {
        let unusable = |what: &dyn fmt::Display| {
            Error::invalid(format!("The token file {} cannot be used: {what}.", path.display()))
        };
        let read = foreign::open_file(path, LinkPolicy::Followed).and_then(|(file, meta)| {
            let mut text = String::new();
            file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
            Ok((text, meta))
        });
        let (text, meta) = read.map_err(|error| unusable(&error))?;
        if is_open_to_others(&meta) {
            return Err(unusable(&"others can read it; run `chmod 600` on it"));
        }
        Self::from_text(text.trim().to_owned())
    }

    /// Returns the text of the token, to be stored in a file.
    pub fn as_text(&self) -> &str {
        &self.0
    }

    /// Compares a text with the token in constant time.
    pub fn is_equal_to(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(unix)]
fn is_open_to_others(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.mode() & 0o077 != 0
}

/// Returns false, because on this system the permissions of the user's folder protect the file.
#[cfg(not(unix))]
fn is_open_to_others(_: &Metadata) -> bool {
    false
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}
