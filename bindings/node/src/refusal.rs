//! Refusals on their way to JavaScript.

/// Makes an error whose message is the refusal's JSON; `index.js` makes a `NudgeError` of it. The message of a panic is
/// not JSON.
// `map_err` needs this signature.
#[allow(clippy::needless_pass_by_value)]
pub fn refused(error: nudge::Error) -> napi::Error {
    napi::Error::from_reason(error.to_json().to_string())
}
