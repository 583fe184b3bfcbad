//! What keeps credentials out and paths in place (semantics section 7).

pub(crate) mod guard;
pub mod paths;
pub mod secrets;
