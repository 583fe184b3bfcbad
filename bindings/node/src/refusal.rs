//! Refusals on their way to JavaScript.

/// A refusal as an error whose message is its JSON, which `index.js` makes a `NudgeError` of. The message
/// of a panic is not JSON.
// It is what `map_err` wants.
#[allow(clippy::needless_pass_by_value)]
pub fn refused(error: nudge::Error) -> napi::Error {
    napi::Error::from_reason(error.to_json().to_string())
}
