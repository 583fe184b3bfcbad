//! Turns refusals into JavaScript errors.

/// Makes an error with the refusal's JSON as message; `index.js` makes a `NudgeError` of it. The message of a panic is
/// not JSON.
// `map_err` passes the error by value.
#[allow(clippy::needless_pass_by_value)]
pub fn refused(error: nudge::Error) -> napi::Error {
    napi::Error::from_reason(error.to_json().to_string())
}
