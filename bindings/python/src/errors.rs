//! Converts errors to exceptions. Python (`_errors.py`) defines one class for each kind of error.

use nudge::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Returns the name of the exception class for a kind of error.
pub fn class_name(kind: ErrorKind) -> String {
    format!("{kind:?}Error")
}

/// Makes the exception for an error.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let made = || {
        let data = serde_json::to_string(error.data()).unwrap_or_else(|_| "{}".to_owned());
        let data = crate::json::parse(py, &data)?;
        py.import("nudge._errors")?.getattr("refusal")?.call1((error.code(), error.message(), data))
    };
    made().map_or_else(|broken: PyErr| broken, PyErr::from_value)
}

/// Makes an `InvalidError`. `message` must not contain the caller's value, which may be a secret.
pub fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, &Error::invalid(message))
}

/// Returns the text of a Python string. Refuses a string with half of a surrogate pair.
pub fn text<'a>(string: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    // Python's own error would contain the whole string, which may be a secret.
    string.to_str().map_err(|_| invalid(string.py(), "A string holds half of a surrogate pair; pass valid Unicode."))
}

/// Returns the text of an argument. Refuses an argument that is not a string.
pub fn argument<'a>(value: &'a Bound<'_, PyAny>, name: &str) -> PyResult<&'a str> {
    match value.cast::<PyString>() {
        Ok(string) => text(string),
        Err(_) => Err(pyo3::exceptions::PyTypeError::new_err(format!(
            "{name} must be a str, not {}",
            value.get_type().name().map_or_else(|_| "something else".into(), |name| name.to_string())
        ))),
    }
}
