//! What keeps credentials out and paths in place (specification section 8).

pub(crate) mod guard;
pub mod paths;
pub mod secrets;
