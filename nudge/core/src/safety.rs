//! Keeps credentials out and paths in place (semantics section 7).

pub mod paths;
pub mod refusal;
