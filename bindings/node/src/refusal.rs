//! Makes JavaScript errors of refusals.

/// Makes an error with the refusal's JSON as message; `index.js` makes a `NudgeError` of it. A panic's message is no
/// JSON.
// `map_err` needs this signature.
#[allow(clippy::needless_pass_by_value)]
pub fn refused(error: nudge::Error) -> napi::Error {
    napi::Error::from_reason(error.to_json().to_string())
}
