//! Converts errors to JavaScript errors.

/// Makes an error whose message is the error's JSON; `index.js` makes a `NudgeError` from it. The message of a panic is
/// not JSON, so `index.js` can tell the two apart.
// The parameter is a value, because `map_err` passes the error by value.
#[allow(clippy::needless_pass_by_value)]
pub fn refused(error: nudge::Error) -> napi::Error {
    napi::Error::from_reason(error.to_json().to_string())
}
