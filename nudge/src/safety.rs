//! What keeps credentials out and paths in place (specification section 8).

pub mod paths;
pub mod secrets;
