//! Reads and writes the params and answers of calls as JSON.

use nudge::{Error, Result};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

/// Writes params as JSON.
///
/// # Errors
/// `E_INVALID` when the params cannot be written as JSON.
pub fn to_raw(params: &impl serde::Serialize) -> Result<Box<RawValue>> {
    to_raw_value(params).map_err(|_| Error::invalid("The params cannot be written as JSON."))
}

/// Reads a result.
///
/// # Errors
/// `E_UNAVAILABLE` when the result does not have the form of `T`.
pub fn parsed_as<T: DeserializeOwned>(result: &RawValue) -> Result<T> {
    serde_json::from_str(result.get())
        .map_err(|_| Error::unavailable("The server answered something else than was asked; start it again."))
}
